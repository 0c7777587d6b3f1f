//! Rules on focus: the keyboard must not reach elements that are not exposed to assistive technology.

use crate::evaluation::{
    document::Element,
    found::Found,
    semantics::{is_in_tab_order, is_in_tab_order_if_shown},
};
use nearcrawl_model::evaluation::Rule;

pub(super) fn check(element: Element<'_>, found: &mut Found) {
    if element.attr_is("aria-hidden", "true") && (element.is_html() || element.is_svg()) {
        match has_focus(element) {
            Some(has) => found.judge(Rule::HiddenFocus, element, has),
            None => found.cannot_tell(Rule::HiddenFocus),
        }
    }
    if element.is_exposed() && element.role().is_some_and(|role| role.covers_children) {
        found.judge(Rule::PresentationalFocus, element, element.descendants().any(is_in_tab_order));
    }
}

/// Whether the focus comes to an element or to something in it. None if a style sheet may hide all that it could come to: what is hidden
/// from assistive technology often is hidden from everybody until it is opened.
fn has_focus(element: Element<'_>) -> Option<bool> {
    let mut is_unknown = false;
    for inner in std::iter::once(element).chain(element.descendants()).filter(|inner| is_in_tab_order_if_shown(*inner)) {
        if !inner.state().styled_away && !inner.may_be_hidden_elsewhere(element) {
            return Some(true);
        }
        is_unknown = true;
    }
    (!is_unknown).then_some(false)
}
