//! Decides whether one comes to an element with the tab key (HTML standard, "sequential focus navigation").

use super::{
    document::Element,
    semantics::{is_focusable_if_shown, tab_index},
};

/// Whether one comes to it with the tab key, and stays there. None if nobody can tell.
pub(super) fn is_in_tab_order(element: Element<'_>) -> Option<bool> {
    is_in_tab_order_if_shown(element).filter(|is_in| !is_in || !element.state().styled_away)
}

/// The same if no style sheet hides it.
pub(super) fn is_in_tab_order_if_shown(element: Element<'_>) -> Option<bool> {
    if !has_place(element) || tab_index(element).is_some_and(|index| index < 0) {
        return Some(false);
    }
    // What is in a frame is another document's.
    (!element.is("iframe") && !may_pass_focus_on(element)).then_some(true)
}

fn has_place(element: Element<'_>) -> bool {
    let is_there = || element.state().is_rendered() && !element.state().inert;
    match element.name() {
        _ if !element.is_html() => is_focusable_if_shown(element),
        "area" => is_there() && is_area_in_use(element),
        // Browsers make a summary where there is none.
        "details" if !element.children().any(|child| child.is("summary")) => is_there(),
        "iframe" => is_there(),
        "input" if element.attr_is("type", "radio") => is_focusable_if_shown(element) && !element.document.is_passed_over(element),
        _ => is_focusable_if_shown(element),
    }
}

/// Whether an area of a map is a link that stands in a picture.
fn is_area_in_use(area: Element<'_>) -> bool {
    let map = || area.ancestors().find(|ancestor| ancestor.is("map"));
    area.has("href") && map().is_some_and(|map| area.document.is_map_in_use(map))
}

/// Whether a script may move the focus elsewhere as soon as it comes here, as the guards before and behind a dialog do: what calls
/// something when it gets the focus, or is named by a script of the page that listens for that. What has neither an id nor a class may be
/// named in other ways.
fn may_pass_focus_on(element: Element<'_>) -> bool {
    let names = || {
        let classes = element.attr("class").unwrap_or_default().split_ascii_whitespace();
        element.attr("id").into_iter().filter(|id| !id.is_empty()).chain(classes)
    };
    let is_watched = || match names().next() {
        None => element.document.is_watching_for_focus(),
        Some(_) => names().any(|name| element.document.is_watched_for_focus(name)),
    };
    element.attr("onfocus").is_some_and(|script| script.contains('(')) || is_watched()
}
