//! Rules on the page as a whole.
//!
//! It needs a title and a language, must stay as it is, let itself be enlarged, and use each id once.

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
        found.judge(Rule::PageTitle, title.unwrap_or(root), !title.is_some_and(has_text));
        check_language(root, found);
    }
    let meta = |key: &'static str, value: &'static str| {
        let metas = document.elements().filter(move |element| element.is("meta") && element.attr_is(key, value));
        metas.filter_map(|element| Some((element, element.attr("content")?)))
    };
    for (viewport, content) in meta("name", "viewport") {
        if let Some(allows) = values::allows_zoom(content) {
            found.judge(Rule::Zoom, viewport, !allows);
        }
    }
    // Of several only the first valid one has an effect.
    let delayed = |(element, content)| Some((element, values::refresh_delay(content)?));
    if let Some((element, delay)) = meta("http-equiv", "refresh").find_map(delayed) {
        found.judge(Rule::RefreshDelay, element, delay > 0 && delay <= LONG);
        found.judge(Rule::RefreshDelayStrict, element, delay > 0);
    }
    check_ids(document, found);
}

fn has_text(title: Element<'_>) -> bool {
    title.walk(|_| Visit::Into).any(|item| matches!(item, Item::Text(true, _)))
}

fn check_language(root: Element<'_>, found: &mut Found) {
    found.judge(Rule::PageLanguage, root, !root.says("lang"));
    if !root.says("lang") {
        return;
    }
    let language = |name: &str| root.attr(name).and_then(languages::primary);
    found.judge(Rule::PageLanguageTag, root, language("lang").is_none());
    if let (Some(lang), Some(xml)) = (language("lang"), language("xml:lang")) {
        found.judge(Rule::PageLanguagesMatch, root, lang != xml);
    }
}

/// No element may have an id that another one has too.
fn check_ids(document: &Document<'_>, found: &mut Found) {
    let with_ids = || {
        let elements = document.elements().filter_map(|element| Some((element, element.attr("id")?)));
        elements.filter(|(_, id)| !id.trim().is_empty())
    };
    // unordered: only looked up.
    let mut counts: HashMap<&str, u32> = HashMap::new();
    for (_, id) in with_ids() {
        *counts.entry(id).or_default() += 1;
    }
    for (element, id) in with_ids() {
        found.judge(Rule::UniqueId, element, counts.get(id).is_some_and(|count| *count > 1));
    }
}
