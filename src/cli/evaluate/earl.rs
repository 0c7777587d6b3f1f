//! Findings in the Evaluation and Report Language (EARL) 1.0 of the W3C.
//!
//! It is JSON-LD, as it is required of implementations of the ACT rules: <https://www.w3.org/WAI/standards-guidelines/act/report/earl>.

use nearcrawl_model::evaluation::{RULE_SET, Rule};
use nearcrawl_page::evaluation::{Findings, Outcome, Place};
use serde_json::{Value, json};
use std::path::{Component, Path, absolute};
use url::Url;

/// What was found in each file that could be read: one test subject a file, one assertion a failing element, and one for each rule that
/// nothing fails.
pub(super) fn report<'f>(found: impl Iterator<Item = (&'f Path, &'f Findings)>) -> Value {
    let subjects: Vec<Value> = found.map(|(file, found)| subject(file, found)).collect();
    json!({ "@context": context(), "@graph": subjects })
}

/// The terms of the W3C's own context for these reports that are used here, and no others: so nothing needs to be fetched to read one.
fn context() -> Value {
    json!({
        "@vocab": "http://www.w3.org/ns/earl#",
        "earl": "http://www.w3.org/ns/earl#",
        "dct": "http://purl.org/dc/terms/",
        "doap": "http://usefulinc.com/ns/doap#",
        "ptr": "http://www.w3.org/2009/pointers#",
        "source": "dct:source",
        "title": "dct:title",
        "Project": "doap:Project",
        "Version": "doap:Version",
        "name": "doap:name",
        "release": "doap:release",
        "revision": "doap:revision",
        "description": "doap:description",
        "assertions": { "@reverse": "subject" },
        "assertedBy": { "@type": "@id" },
        "outcome": { "@type": "@id" },
        "mode": { "@type": "@id" },
    })
}

fn subject(file: &Path, found: &Findings) -> Value {
    let source = source(file);
    let failing = found.places.iter().map(|place| assertion(&source, place.rule, failed(place)));
    let others = Rule::ALL.into_iter().filter_map(|rule| {
        let mut result = json!({ "@type": "TestResult", "outcome": outcome(found.outcome(rule))? });
        if let Some(gate) = found.evaluation.gate {
            result["info"] = json!(gate.to_string());
        }
        Some(assertion(&source, rule, result))
    });
    let assertions: Vec<Value> = failing.chain(others).collect();
    json!({ "@type": "TestSubject", "@id": source, "source": source, "assertions": assertions })
}

/// The file's URL, without `..`: what that is of a directory that is a link elsewhere, the file system alone knows.
fn source(file: &Path) -> String {
    let climbs = file.components().any(|part| part == Component::ParentDir);
    let path = if climbs { file.canonicalize() } else { absolute(file) };
    let url = path.ok().and_then(|path| Url::from_file_path(path).ok());
    url.map_or_else(|| file.display().to_string(), String::from)
}

/// What nothing fails came to; none of what fails, which is told by element.
fn outcome(outcome: Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Inapplicable => Some("earl:inapplicable"),
        Outcome::Passed => Some("earl:passed"),
        Outcome::CannotTell => Some("earl:cantTell"),
        Outcome::Failed => None,
    }
}

fn failed(place: &Place) -> Value {
    json!({
        "@type": "TestResult",
        "outcome": "earl:failed",
        "info": place.tag,
        "pointer": { "@type": "ptr:LineCharPointer", "ptr:lineNumber": place.line },
    })
}

fn assertion(source: &str, rule: Rule, result: Value) -> Value {
    let test = format!("https://www.w3.org/WAI/standards-guidelines/act/rules/{}/", rule.id());
    json!({
        "@type": "Assertion",
        "mode": "earl:automatic",
        "assertedBy": {
            "@type": ["Assertor", "Software", "Project"],
            "name": env!("CARGO_PKG_NAME"),
            "description": format!("rule set {RULE_SET}"),
            "release": { "@type": "Version", "revision": env!("CARGO_PKG_VERSION") },
        },
        "subject": { "@type": "TestSubject", "@id": source, "source": source },
        "test": { "@type": "TestCase", "@id": test, "title": rule.name() },
        "result": result,
    })
}
