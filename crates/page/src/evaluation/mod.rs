//! What is wrong with a page for people who cannot see it, hear it or use a mouse? Failures that its markup alone proves.
//!
//! Each rule is one of the W3C's ACT rules, named by its id and written from its definition. Other files (style sheets, pictures) are not
//! looked at and scripts are not run: rules that need them are not here, and whatever cannot be told without them is not called a failure.
//! A page without failures is therefore no accessible page, and nothing here says so.
//!
//! The web may be hostile: what a page can cost is bounded before ([`Limits`]), while and after its tree is built.

mod document;
mod languages;
mod name;
mod parse;
mod roles;
mod rules;
mod semantics;
mod style;

#[cfg(test)]
mod tests;

use document::Document;
use nearcrawl_model::evaluation::{Evaluation, Gate, Rule};
use std::{collections::BTreeMap, time::Duration};

/// What a page may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of its text.
    pub bytes: usize,
    /// Attributes of one tag.
    pub attributes: usize,
    /// How deep its elements may lie in one another.
    pub depth: usize,
    /// Elements in its tree.
    pub elements: usize,
    /// For making the tree. Depth and number of elements bound it; this is for what nobody thought of.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { bytes: 1 << 20, attributes: 200, depth: 128, elements: 100_000, time: Duration::from_millis(500) }
    }
}

/// Looks for failures in a page, or says why it is not looked at.
/// `elapsed` is the caller's clock, from any beginning: a page that takes longer than [`Limits::time`] is given up.
pub fn evaluate(text: &str, limits: &Limits, elapsed: &dyn Fn() -> Duration) -> Evaluation {
    look(text, limits, elapsed).unwrap_or_else(Evaluation::refused)
}

fn look(text: &str, limits: &Limits, elapsed: &dyn Fn() -> Duration) -> Result<Evaluation, Gate> {
    if text.len() > limits.bytes {
        return Err(Gate::TooLong);
    }
    let tags = parse::read_tags(text, limits)?;
    let html = parse::tree(text, limits, elapsed)?;
    let document = Document::new(&html);
    let mut found = Found::default();
    found.add(Rule::UniqueAttribute, tags.with_duplicates);
    rules::check(&document, &mut found);
    if document.is_entangled() {
        return Err(Gate::TooEntangled);
    }
    Ok(Evaluation { failures: found.failures, elements: found.elements, gate: None })
}

/// The failures found so far.
#[derive(Debug, Default)]
struct Found {
    failures: BTreeMap<Rule, u32>,
    elements: u32,
}

impl Found {
    fn add(&mut self, rule: Rule, count: u32) {
        if count > 0 {
            let sum = self.failures.entry(rule).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    fn fail_if(&mut self, rule: Rule, fails: bool) {
        self.add(rule, u32::from(fails));
    }
}
