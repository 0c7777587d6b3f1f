//! Rules on focus: the keyboard must not reach elements that are not exposed to assistive technology.

use crate::evaluation::{
    document::Element,
    found::Found,
    tab_order::{is_in_tab_order, is_in_tab_order_if_shown},
};
use nearcrawl_model::evaluation::Rule;

pub(super) fn check(element: Element<'_>, found: &mut Found) {
    let mut tell = |rule: Rule, fails: Option<bool>| match fails {
        Some(fails) => found.judge(rule, element, fails),
        None => found.cannot_tell(rule),
    };
    if element.attr_is("aria-hidden", "true") && (element.is_html() || element.is_svg()) {
        tell(Rule::HiddenFocus, has_focus(element));
    }
    if element.is_exposed() && element.role().is_some_and(|role| role.covers_children) {
        tell(Rule::PresentationalFocus, any(element.descendants().map(is_in_tab_order)));
    }
}

/// Whether the focus comes to an element or to something in it. None if a style sheet may hide all that it could come to: what is hidden
/// from assistive technology often is hidden from everybody until it is opened; and if nobody can tell of some of it.
fn has_focus(element: Element<'_>) -> Option<bool> {
    let may_be_hidden = |inner: Element<'_>| inner.state().styled_away || inner.may_be_hidden_elsewhere(element);
    let comes_to = |inner: Element<'_>| is_in_tab_order_if_shown(inner).filter(|is_in| !is_in || !may_be_hidden(inner));
    any(std::iter::once(element).chain(element.descendants()).map(comes_to))
}

/// Whether something holds of one of them: true if it surely holds of one, else none if nobody can tell of one.
fn any(mut each: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut is_unknown = false;
    let holds = each.any(|holds| {
        is_unknown |= holds.is_none();
        holds == Some(true)
    });
    (holds || !is_unknown).then_some(holds)
}
