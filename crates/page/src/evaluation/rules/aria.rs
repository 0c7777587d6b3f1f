//! Rules on roles, states and properties: they are those of WAI-ARIA, with valid values, where they may stand, and all that are needed.

use super::values::{self, Kind};
use crate::evaluation::{
    document::Element,
    found::Found,
    roles::{Role, names},
    semantics::{is_editing_host, is_focusable, is_global, own_role},
};
use nearcrawl_model::evaluation::Rule;

pub(super) fn check(element: Element<'_>, found: &mut Found) {
    if !element.is_html() && !element.is_svg() {
        return;
    }
    for (property, value) in element.attrs().filter_map(|(name, value)| Some((name.strip_prefix("aria-")?, value))) {
        let Some(kind) = values::kind_of(property) else {
            found.judge(Rule::AriaDefined, element, true);
            continue;
        };
        found.judge(Rule::AriaDefined, element, false);
        if !value.trim_ascii().is_empty() && element.document.work().spend(value.len()) {
            found.judge(Rule::AriaValue, element, !kind.admits(value) || lacks_referent(element, property, kind));
        }
        if element.is_exposed() {
            match is_permitted(element, property) {
                Some(is_permitted) => found.judge(Rule::AriaPermitted, element, !is_permitted),
                None => found.cannot_tell(Rule::AriaPermitted),
            }
        }
    }
    if element.is_exposed() {
        if element.says("role") {
            found.judge(Rule::RoleKnown, element, element.explicit_role().is_none());
        }
        // The rule is not about a role that the element has by itself.
        let own = own_role(element).map(|own| own.name);
        if let Some(role) = element.explicit_role().filter(|role| own != Some(role.name)) {
            found.judge(Rule::AriaRequired, element, lacks_required(element, role));
        }
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

/// Whether an element may have a state or property: by its role or, if it has none, by what ARIA in HTML says of it. What its
/// value is does not matter. None if nobody can tell.
fn is_permitted(element: Element<'_>, property: &str) -> Option<bool> {
    let role = match element.role() {
        None if element.is_custom() && !element.document.may_define_elements() => Role::of("generic"),
        role => role,
    };
    let is_prohibited = is_nameless(element) && Role::names(property) || role.is_some_and(|role| role.prohibits(property));
    let supported = match role {
        _ if is_prohibited => Some(""),
        _ if is_global(property) => return Some(true),
        Some(role) => Some(role.supported),
        None => supported_without_role(element),
    };
    supported.map(|supported| names(supported, property)).filter(|is_permitted| *is_permitted || !may_be_more(element, property))
}

/// Whether an element without a role from its author may be more than what the tables say: what is edited has a role that they do not
/// tell, browsers leave out areas that lead nowhere, and a name gives a section or an aside another role, so that ARIA in HTML lets them
/// be named.
fn may_be_more(element: Element<'_>, property: &str) -> bool {
    let has_role = element.explicit_role().is_some_and(|role| !role.is_presentational());
    let leads_nowhere = || element.is("area") && !element.has("href");
    let gains_role = || Role::names(property) && (element.is("section") || element.is("aside"));
    !has_role && (is_editing_host(element) || leads_nowhere() || gains_role())
}

/// Whether an element, without a role from its author, may not be named (ARIA in HTML, "Naming Prohibited"), although it has no role by
/// which it may not, or one that is younger than that.
fn is_nameless(element: Element<'_>) -> bool {
    let nameless = ["abbr", "cite", "figcaption", "kbd", "label", "legend", "mark", "rt", "var"];
    element.is_html() && element.explicit_role().is_none() && nameless.contains(&element.name())
}

/// The states and properties that an element without a role may have besides the global ones (ARIA in HTML, "Requirements for use of ARIA
/// attributes"): mostly those of a role that it could be given. SVG's elements have those of the roles that browsers give them (SVG-AAM). None
/// if nobody can tell: a script may give it any role, for instance.
fn supported_without_role(element: Element<'_>) -> Option<&'static str> {
    let of_role = |name: &str| Role::of(name).map(|role| role.supported);
    match element.name() {
        "a" | "circle" | "ellipse" | "foreignObject" | "g" | "image" | "line" | "path" | "polygon" | "polyline" | "rect" | "text"
        | "textPath" | "tspan" | "use"
            if element.is_svg() =>
        {
            Some("activedescendant expanded")
        }
        _ if !element.is_html() => None,
        "audio" | "video" | "embed" | "iframe" | "object" => of_role("application"),
        "input" if element.attr_is("type", "color") => Some(""),
        "input" if element.attr_is("type", "file") => Some("required"),
        "input" => of_role("textbox"),
        "summary" => of_role("button"),
        "abbr" | "br" | "center" | "cite" | "dd" | "dl" | "dt" | "figcaption" | "font" | "kbd" | "label" | "legend" | "map" | "picture"
        | "rt" | "ruby" | "var" | "wbr" => Some(""),
        _ => None,
    }
}

/// Whether an element with a role from its author lacks what that role needs and the element does not have by itself.
fn lacks_required(element: Element<'_>, role: &Role) -> bool {
    let is_static = role.name == "separator" && !is_focusable(element);
    // WAI-ARIA 1.3 asks a combobox for its list only while it is shown.
    let is_optional = |property: &str| property == "controls" && role.name == "combobox" && element.attr_is("aria-expanded", "false");
    !role.required.is_empty() && !is_static && role.required.split(' ').any(|property| lacks(element, property) && !is_optional(property))
}

fn lacks(element: Element<'_>, property: &str) -> bool {
    let by_nature = match property {
        "checked" => element.is("input") && (element.attr_is("type", "checkbox") || element.attr_is("type", "radio")),
        "valuenow" if element.is("input") => element.attr_is("type", "range") || element.attr_is("type", "number"),
        // A meter without a value stands at 0, a progress bar at nothing.
        "valuenow" => element.is("meter") || (element.is("progress") && element.has("value")),
        _ => false,
    };
    !by_nature && !element.says(&format!("aria-{property}"))
}
