//! Does the page as a whole have a title and a language? Does it stay as it is, let itself be enlarged, and use each id once?

use super::values;
use crate::evaluation::{
    document::{Document, Element, Item, Visit},
    found::Found,
    languages,
};
use nearcrawl_model::evaluation::Rule;
use std::collections::HashMap;

/// How long a page may wait before it goes elsewhere, in seconds: who waits longer than 20 hours will not be disturbed (WCAG 2.2.1).
const LONG: u64 = 72_000;

pub(super) fn check(document: &Document<'_>, found: &mut Found) {
    if let Some(root) = document.root().filter(|root| root.is("html")) {
        let title = document.elements().find(|element| element.is("title"));
        found.fail_if(Rule::PageTitle, !title.is_some_and(has_text));
        check_language(root, found);
    }
    let meta = |key: &'static str, value: &'static str| {
        let metas = document.elements().filter(move |element| element.is("meta") && element.attr_is(key, value));
        metas.filter_map(|element| element.attr("content"))
    };
    for viewport in meta("name", "viewport") {
        found.fail_if(Rule::Zoom, values::allows_zoom(viewport) == Some(false));
    }
    // Of several only the first valid one has an effect.
    let refresh = meta("http-equiv", "refresh").find_map(values::refresh_delay);
    found.fail_if(Rule::RefreshDelay, refresh.is_some_and(|delay| delay > 0 && delay <= LONG));
    found.fail_if(Rule::RefreshDelayStrict, refresh.is_some_and(|delay| delay > 0));
    found.add(Rule::UniqueId, repeated_ids(document));
}

fn has_text(title: Element<'_>) -> bool {
    title.walk(|_| Visit::Into).any(|item| matches!(item, Item::Text(text, _) if !text.trim().is_empty()))
}

fn check_language(root: Element<'_>, found: &mut Found) {
    if !root.says("lang") {
        return found.fail_if(Rule::PageLanguage, true);
    }
    let language = |name: &str| root.attr(name).and_then(languages::primary);
    found.fail_if(Rule::PageLanguageTag, language("lang").is_none());
    if let (Some(lang), Some(xml)) = (language("lang"), language("xml:lang")) {
        found.fail_if(Rule::PageLanguagesMatch, lang != xml);
    }
}

/// How many elements have an id that another one has too.
fn repeated_ids(document: &Document<'_>) -> u32 {
    // unordered: only added up.
    let mut counts: HashMap<&str, u32> = HashMap::new();
    for id in document.elements().filter_map(|element| element.attr("id")).filter(|id| !id.trim().is_empty()) {
        *counts.entry(id).or_default() += 1;
    }
    counts.into_values().filter(|count| *count > 1).sum()
}
