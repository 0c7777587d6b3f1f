//! Rules on languages: parts of a page in another language must say rightly in which.

use crate::evaluation::{
    document::{Element, Item, Visit},
    found::Found,
    languages,
};
use nearcrawl_model::evaluation::Rule;

pub(super) fn check(element: Element<'_>, found: &mut Found) {
    let Some(tag) = element.attr("lang").filter(|tag| !tag.is_empty() && element.is_html() && !element.is("html")) else { return };
    let is_known = languages::primary(tag).is_some();
    if is_known || says_something(element) {
        found.judge(Rule::PartLanguageTag, element, !is_known);
    }
}

/// Whether there is text, to be seen or to be heard, whose language is this element's.
fn says_something(element: Element<'_>) -> bool {
    let visit = |inner: Element<'_>| {
        if inner.has("lang") || inner.state().unrendered || inner.state().styled_away { Visit::Past } else { Visit::Into }
    };
    let is_heard = |inner: Element<'_>| inner.is_rendered() && ["alt", "aria-label"].iter().any(|name| inner.says(name));
    is_heard(element)
        || element.walk(visit).any(|item| match item {
            Item::Text(says, state) => says && state.is_rendered() && !state.styled_away,
            Item::Element(inner) => is_heard(inner),
        })
}
