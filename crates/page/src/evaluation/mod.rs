//! Accessibility failures of a page that its markup alone proves.
//!
//! They concern people who cannot see the page, hear it or use a mouse.
//!
//! Each rule is one of the W3C's ACT rules, named by its id and written from its definition. Other files (style sheets, pictures) are not
//! looked at, the page's own style sheets are read for what they may hide, and scripts are not run: rules that need more are not here, and
//! whatever cannot be told without that is not called a failure.
//! A page without failures is therefore no accessible page, and nothing here says so.
//!
//! The web may be hostile: what a page can cost is bounded before ([`Limits`]), while and after its tree is built.
//!
//! Two files use each other: `document` stores the role and the state of each element as `semantics` derives them, and `semantics` derives
//! them from the part of the document that is already made.

mod document;
mod found;
mod kind;
mod languages;
mod limits;
mod name;
mod parse;
mod roles;
mod rules;
mod selector;
mod semantics;
mod sheet;
mod style;
mod tab_order;
mod work;

#[cfg(test)]
mod tests;

pub use found::{Findings, MAX_PLACES, Outcome, Place};
pub use kind::{is_html, type_of};
pub use limits::Limits;

use document::Document;
use found::Found;
use nearcrawl_model::evaluation::{Evaluation, Gate, Rule};
use std::time::Duration;

/// Looks for failures in a page, or says why it is not looked at.
/// `elapsed` is the caller's clock, from any beginning: a page that takes longer than [`Limits::time`] is given up.
pub fn evaluate(text: &str, limits: &Limits, elapsed: &dyn Fn() -> Duration) -> Evaluation {
    find(text, limits, elapsed).evaluation
}

/// Like [`evaluate`], and tells where the failures are.
pub fn find(text: &str, limits: &Limits, elapsed: &dyn Fn() -> Duration) -> Findings {
    look(text, limits, elapsed).unwrap_or_else(Findings::refused)
}

fn look(text: &str, limits: &Limits, elapsed: &dyn Fn() -> Duration) -> Result<Findings, Gate> {
    if text.len() > limits.bytes {
        return Err(Gate::TooLong);
    }
    if kind::is_binary(text) {
        return Err(Gate::NotHtml);
    }
    let with_duplicates = parse::read_tags(text, limits)?;
    let tree = parse::tree(text, limits, elapsed)?;
    let document = Document::new(&tree, limits);
    let mut found = Found::default();
    found.judge_tags(Rule::UniqueAttribute, with_duplicates.into_iter());
    rules::check(&document, &mut found);
    if document.work().is_spent() {
        return Err(Gate::TooEntangled);
    }
    Ok(found.findings())
}
