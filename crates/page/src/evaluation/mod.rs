//! What is wrong with a page for people who cannot see it, hear it or use a mouse? Failures that its markup alone proves.
//!
//! Each rule is one of the W3C's ACT rules, named by its id and written from its definition. Other files (style sheets, pictures) are not
//! looked at and scripts are not run: rules that need them are not here, and whatever cannot be told without them is not called a failure.
//! A page without failures is therefore no accessible page, and nothing here says so.
//!
//! The web may be hostile: what a page can cost is bounded before ([`Limits`]), while and after its tree is built.
//!
//! Two files use each other: `document` stores the role and the state of each element as `semantics` derives them, and `semantics` derives
//! them from the part of the document that is already made.

mod document;
mod found;
mod languages;
mod limits;
mod name;
mod parse;
mod roles;
mod rules;
mod semantics;
mod style;

#[cfg(test)]
mod tests;

pub use limits::Limits;

use document::Document;
use found::Found;
use nearcrawl_model::evaluation::{Evaluation, Gate, Rule};
use std::time::Duration;

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
