//! Rules on controls and navigation.
//!
//! What can be operated, and what leads through a page, must say what it is; and form fields must say rightly what they want to be filled
//! with.

use super::{images::is_image_button, values};
use crate::evaluation::{
    document::Element,
    found::Found,
    name::has_name,
    semantics::{is_disabled, is_summary, tab_index},
};
use nearcrawl_model::evaluation::Rule;

pub(super) fn check(element: Element<'_>, found: &mut Found) {
    if !element.is_html() {
        return;
    }
    if element.is_exposed()
        && let Some(rule) = rule_for_name(element)
    {
        found.judge(rule, element, !has_name(element));
    }
    if wants_to_be_filled(element) {
        found.judge(Rule::Autocomplete, element, !element.attr("autocomplete").is_some_and(values::is_autofill));
    }
}

/// The rule by which an element needs a name.
fn rule_for_name(element: Element<'_>) -> Option<Rule> {
    if is_summary(element) && element.explicit_role().is_none_or(|role| role.is_presentational()) {
        return Some(Rule::SummaryName);
    }
    if element.is("iframe") {
        let is_met = element.explicit_role().is_none() && tab_index(element).is_none_or(|index| index >= 0);
        return is_met.then_some(Rule::FrameName);
    }
    match element.role()? {
        role if role.is_link() => Some(Rule::LinkName),
        role if role.is_form_field() => Some(Rule::FormFieldName),
        role => match role.name {
            "button" if !is_image_button(element) => Some(Rule::ButtonName),
            "heading" => Some(Rule::HeadingName),
            "menuitem" => Some(Rule::MenuItemName),
            _ => None,
        },
    }
}

/// Whether a field for the user's data says with what browsers could fill it.
fn wants_to_be_filled(element: Element<'_>) -> bool {
    let kinds = ["hidden", "button", "submit", "reset", "image", "checkbox", "radio", "file"];
    let is_field = match element.name() {
        "input" => !kinds.iter().any(|kind| element.attr_is("type", kind)),
        "select" | "textarea" => true,
        _ => false,
    };
    let is_switch = |value: &str| value.trim_ascii().eq_ignore_ascii_case("on") || value.trim_ascii().eq_ignore_ascii_case("off");
    let is_widget = || element.explicit_role().or(element.role()).is_none_or(|role| role.widget);
    is_field
        && element.attr("autocomplete").is_some_and(|value| !value.trim_ascii().is_empty() && !is_switch(value))
        && element.is_rendered()
        && !is_disabled(element)
        && !element.has("readonly")
        && !element.attr_is("aria-disabled", "true")
        && (tab_index(element).is_none_or(|index| index >= 0) || is_widget())
}
