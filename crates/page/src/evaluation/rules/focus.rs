//! Can the keyboard focus reach elements that are not exposed to assistive technology?

use crate::evaluation::{document::Element, found::Found, semantics::is_in_tab_order};
use nearcrawl_model::evaluation::Rule;

pub(super) fn check(element: Element<'_>, found: &mut Found) {
    if element.attr_is("aria-hidden", "true") && (element.is_html() || element.is_svg()) {
        found.judge(Rule::HiddenFocus, element, is_in_tab_order(element) || element.descendants().any(is_in_tab_order));
    }
    if element.is_exposed() && element.role().is_some_and(|role| role.covers_children) {
        found.judge(Rule::PresentationalFocus, element, element.descendants().any(is_in_tab_order));
    }
}
