//! Are roles, states and properties those of WAI-ARIA, with valid values, where they may stand, and all that are needed?

use super::values::{self, Kind};
use crate::evaluation::{
    document::Element,
    found::Found,
    roles::{Role, names},
    semantics::{is_focusable, is_global, own_role},
};
use nearcrawl_model::evaluation::Rule;

pub(super) fn check(element: Element<'_>, found: &mut Found) {
    if !element.is_html() && !element.is_svg() {
        return;
    }
    for (property, value) in element.attrs().filter_map(|(name, value)| Some((name.strip_prefix("aria-")?, value))) {
        let Some(kind) = values::kind_of(property) else {
            found.fail_if(Rule::AriaDefined, true);
            continue;
        };
        if !value.trim_ascii().is_empty() {
            found.fail_if(Rule::AriaValue, !kind.admits(value) || lacks_referent(element, property, kind));
        }
        if element.is_exposed() {
            found.fail_if(Rule::AriaPermitted, !is_permitted(element, property, value));
        }
    }
    if element.is_exposed() {
        found.fail_if(Rule::RoleKnown, element.says("role") && element.explicit_role().is_none());
        found.fail_if(Rule::AriaRequired, lacks_required(element));
    }
}

/// Whether a property that the element must have refers to nothing. A collapsed combobox may make its list later.
fn lacks_referent(element: Element<'_>, property: &str, kind: Kind) -> bool {
    let must = element.role().is_some_and(|role| names(role.required, property));
    kind == Kind::Ids && must && !is_collapsed(element) && element.referred(&format!("aria-{property}")).next().is_none()
}

fn is_collapsed(element: Element<'_>) -> bool {
    element.has_role("combobox") && !element.attr_is("aria-expanded", "true")
}

/// Whether an element of this role may have a state or property. What elements without a role may have depends on too much else.
fn is_permitted(element: Element<'_>, property: &str, value: &str) -> bool {
    let Some(role) = element.role().filter(|role| !role.is_presentational()) else { return true };
    if role.without_name && matches!(property, "label" | "labelledby") {
        return value.trim_ascii().is_empty() || element.has("contenteditable");
    }
    is_global(property) || names(role.supported, property)
}

/// Whether an element with a role from its author lacks what that role needs and the element does not have by itself.
fn lacks_required(element: Element<'_>) -> bool {
    let Some(role) = element.explicit_role().filter(|role| !role.required.is_empty()) else { return false };
    let is_native = own_role(element).is_some_and(|own| own.name == role.name);
    let is_static = role.name == "separator" && !is_focusable(element);
    !is_native && !is_static && role.required.split(' ').any(|property| lacks(element, role, property))
}

fn lacks(element: Element<'_>, role: &Role, property: &str) -> bool {
    let by_nature = match property {
        "checked" => element.is("input") && (element.attr_is("type", "checkbox") || element.attr_is("type", "radio")),
        "valuenow" => element.is("input") && (element.attr_is("type", "range") || element.attr_is("type", "number")),
        "controls" => role.name == "combobox" && element.attr_is("aria-expanded", "false"),
        _ => false,
    };
    !by_nature && !element.says(&format!("aria-{property}"))
}
