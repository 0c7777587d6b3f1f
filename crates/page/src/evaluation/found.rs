//! Findings in a page: the outcome of each rule, how many elements fail it, and where they are.

use super::document::Element;
use nearcrawl_model::evaluation::{Evaluation, Gate, Rule};
use std::collections::BTreeMap;

/// Of so many failures of a rule in a page it is told where they are.
pub const MAX_PLACES: usize = 1000;

/// The length of a [`Place::tag`], in characters.
const TAG_LENGTH: usize = 100;

/// What came of a rule in a page (ACT Rules Format, "Outcome"). Of several elements the last one of these counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// There is nothing on the page that the rule is about.
    #[default]
    Inapplicable,
    /// Everything that the rule is about complies with it, as far as markup shows.
    Passed,
    /// Markup alone does not tell, or the page was not looked at.
    CannotTell,
    /// Something fails it.
    Failed,
}

/// Where something fails a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The rule.
    pub rule: Rule,
    /// The line in which the tag of the element begins, from 1. Of an element without a tag: where the parser had to make it.
    pub line: u32,
    /// The start tag, with the first 100 characters of its attributes; control characters are spaces.
    pub tag: String,
}

/// What was found in a page, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The result.
    pub evaluation: Evaluation,
    /// The failures, in the order of the rules and of the page: the first 1000 of each rule.
    pub places: Vec<Place>,
    outcomes: Outcomes,
}

impl Findings {
    /// What is said of a page that was not evaluated, for this reason.
    pub fn refused(gate: Gate) -> Findings {
        Findings { evaluation: Evaluation::refused(gate), ..Findings::default() }
    }

    /// The line of the first failure of each rule that the page fails, in the order of the rules.
    pub fn first_lines(&self) -> Vec<u32> {
        let of_rule = |rule: &Rule| self.places.iter().find(|place| place.rule == *rule).map_or(0, |place| place.line);
        self.evaluation.failures.keys().map(of_rule).collect()
    }

    /// What came of a rule.
    pub fn outcome(&self, rule: Rule) -> Outcome {
        if self.evaluation.gate.is_some() { Outcome::CannotTell } else { self.outcomes.0[rule as usize] }
    }
}

/// An outcome for each rule, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outcomes([Outcome; Rule::ALL.len()]);

impl Default for Outcomes {
    fn default() -> Self {
        Outcomes([Outcome::default(); Rule::ALL.len()])
    }
}

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Found {
    failures: BTreeMap<Rule, u32>,
    places: Vec<Place>,
    outcomes: Outcomes,
    pub elements: u32,
}

impl Found {
    /// Says of an element that a rule is about whether it fails it.
    pub(super) fn judge(&mut self, rule: Rule, element: Element<'_>, fails: bool) {
        self.note(rule, if fails { Outcome::Failed } else { Outcome::Passed });
        if fails {
            self.fail(rule, element.line(), || tag_of(element));
        }
    }

    /// Says of an element that a rule is about that it may fail it or not.
    pub(super) fn cannot_tell(&mut self, rule: Rule) {
        self.note(rule, Outcome::CannotTell);
    }

    /// Says of the page's tags whether they comply with a rule: where they do not, and how they are written.
    pub(super) fn judge_tags<'t>(&mut self, rule: Rule, failing: impl Iterator<Item = (u32, &'t str)>) {
        self.note(rule, Outcome::Passed);
        for (line, tag) in failing {
            self.note(rule, Outcome::Failed);
            self.fail(rule, line, || shortened(tag.chars()));
        }
    }

    fn note(&mut self, rule: Rule, outcome: Outcome) {
        let known = &mut self.outcomes.0[rule as usize];
        *known = outcome.max(*known);
    }

    fn fail(&mut self, rule: Rule, line: u32, tag: impl FnOnce() -> String) {
        let count = self.failures.entry(rule).or_default();
        *count = count.saturating_add(1);
        if *count as usize <= MAX_PLACES {
            self.places.push(Place { rule, line, tag: tag() });
        }
    }

    pub(super) fn findings(mut self) -> Findings {
        self.places.sort_by_key(|place| (place.rule, place.line));
        let evaluation = Evaluation { failures: self.failures, elements: self.elements, gate: None };
        Findings { evaluation, places: self.places, outcomes: self.outcomes }
    }
}

fn tag_of(element: Element<'_>) -> String {
    let attributes = element.attrs().flat_map(|(name, value)| [" ", name, "=\"", value, "\""]);
    let text = std::iter::once(element.name()).chain(attributes).flat_map(str::chars);
    format!("<{}>", shortened(text))
}

fn shortened(text: impl Iterator<Item = char>) -> String {
    let mut text = text.map(|letter| if letter.is_control() { ' ' } else { letter });
    let mut short: String = text.by_ref().take(TAG_LENGTH).collect();
    if text.next().is_some() {
        short.push('…');
    }
    short
}
