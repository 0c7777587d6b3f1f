//! Tests with the W3C's examples of each rule: what passes or does not apply raises no alarm, and what fails is found.

use crate::evaluation::{Limits, evaluate};
use nearcrawl_model::evaluation::Rule;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Deserialize)]
struct Case {
    rule: String,
    expected: String,
    n: u32,
    lang: String,
    code: String,
}

/// Failures that markup alone does not prove; each has its reason.
const NOT_SEEN: [(&str, u32); 1] = [
    // Whether the object shows its picture or its fall-back depends on what the server sends.
    ("8fc3b6", 5),
];

#[test]
fn examples_of_the_rules_are_told_right() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("../../../../../tests/data/act-testcases.json")).unwrap();
    let mut by_rule: BTreeMap<Rule, (u32, u32)> = BTreeMap::new();
    let (mut missed, mut false_alarms) = (Vec::new(), Vec::new());
    for case in &cases {
        let Some(rule) = Rule::ALL.into_iter().find(|rule| rule.id() == case.rule) else { continue };
        // What a server sends as SVG, MathML or a script is no page.
        let is_page = case.lang == "html" || case.code.starts_with("<html");
        let evaluation = if is_page { evaluate(&case.code, &Limits::default(), &|| Duration::ZERO) } else { Default::default() };
        let fails = evaluation.failures.contains_key(&rule);
        let right = fails == (case.expected == "failed");
        let (rights, all) = by_rule.entry(rule).or_default();
        *rights += u32::from(right);
        *all += 1;
        if !right {
            let list = if fails { &mut false_alarms } else { &mut missed };
            list.push((case.rule.as_str(), case.n, case.expected.as_str()));
        }
    }
    for (rule, (right, all)) in &by_rule {
        println!("{} {right:>2}/{all:>2} {}", rule.id(), rule.name());
    }
    let (right, all) = by_rule.values().fold((0, 0), |sum, counts| (sum.0 + counts.0, sum.1 + counts.1));
    println!("{right}/{all} of {} rules; missed {missed:?}; false alarms {false_alarms:?}", by_rule.len());
    assert!(by_rule.len() >= 20);
    assert_eq!(false_alarms, [], "no alarm where a rule passes or does not apply");
    let missed: Vec<(&str, u32)> = missed.into_iter().map(|(rule, n, _)| (rule, n)).collect();
    assert_eq!(missed, NOT_SEEN);
    assert!(right * 100 >= all * 95, "{right} of {all}");
}
