//! Rules on roles that need one another: a list owns items, and an item belongs to a list.

use crate::evaluation::{
    document::{Element, Item, Visit},
    found::Found,
    roles::{Role, names},
    semantics::{has_global_property, is_focusable, own_role},
};
use nearcrawl_model::evaluation::Rule;

pub(super) fn check(element: Element<'_>, found: &mut Found) {
    let Some(role) = element.explicit_role().filter(|_| element.is_exposed() && (element.is_html() || element.is_svg())) else { return };
    if own_role(element).is_some_and(|own| own.name == role.name) {
        return;
    }
    let mut tell = |rule: Rule, fails: Option<bool>| match fails {
        Some(fails) => found.judge(rule, element, fails),
        None => found.cannot_tell(rule),
    };
    if !role.context.is_empty() {
        tell(Rule::RequiredContext, lacks_context(element, role));
    }
    if !role.owned.is_empty() && !is_busy(element) {
        tell(Rule::RequiredOwned, owns_others(element, role));
    }
}

/// Whether an element or one around it says that it is not complete yet.
fn is_busy(element: Element<'_>) -> bool {
    std::iter::once(element).chain(element.ancestors()).any(|element| element.attr_is("aria-busy", "true"))
}

/// Whether assistive technology passes over an element to what is in it: it means nothing, says nothing and cannot have the focus. None
/// if nobody can tell: browsers expose elements for which WAI-ARIA has no role (`label`, `dl`), each in its own way, and standards differ
/// on the headers and footers of parts of the page.
fn is_transparent(element: Element<'_>) -> Option<bool> {
    if has_global_property(element) || is_focusable(element) {
        return Some(false);
    }
    match element.role() {
        Some(role) if element.explicit_role().is_none() && matches!(role.name, "sectionfooter" | "sectionheader") => None,
        Some(role) => Some(role.is_presentational() || role.is_generic()),
        None => is_left_out(element).then_some(true),
    }
}

/// Whether it is one of those elements that no browser exposes (HTML-AAM, "Not mapped").
fn is_left_out(element: Element<'_>) -> bool {
    element.is_html() && matches!(element.name(), "br" | "col" | "colgroup" | "map" | "picture" | "wbr")
}

/// Whether there may be something else here than the markup shows: drawn by a script, or shown by another style sheet.
fn is_unknown(element: Element<'_>) -> bool {
    let may_be_drawn = || element.explicit_role().is_none() || element.document.may_define_elements();
    element.is("slot") || element.state().styled_away || (element.is_custom() && may_be_drawn())
}

/// The same of what something owns: a role from its author is all that matters, unless assistive technology looks into it.
fn is_unknown_as_owned(element: Element<'_>) -> bool {
    let is_settled = element.explicit_role().is_some() && is_transparent(element) == Some(false) && !element.has_role("group");
    is_unknown(element) && !(is_settled && element.is_custom() && !element.state().styled_away)
}

/// How many owners are asked for theirs: aria-owns can lead in a circle.
const MAX_OWNERS: usize = 200;

/// Whether an element has another parent than it must have; none if nobody can tell. What may be passed over has no role that the parent
/// may have: it fails whichever way if the next owner has none either, and if that one has, nobody can tell.
fn lacks_context(element: Element<'_>, role: &Role) -> Option<bool> {
    let owners = std::iter::successors(Some(element), |owned| owned.owner().or_else(|| owned.parent()));
    let mut is_unclear = false;
    for owner in owners.skip(1).take(MAX_OWNERS).take_while(|_| element.document.spend()) {
        if is_unknown(owner) {
            return None;
        }
        let is_transparent = is_transparent(owner);
        is_unclear |= is_transparent.is_none();
        if is_transparent == Some(false) {
            let lacks = !owner.role().is_some_and(|owner| names(role.context, owner.name));
            return (lacks || !is_unclear).then_some(lacks);
        }
    }
    Some(true)
}

/// Whether an element owns something that it may not own, or something, but nothing of what it is for. None if
/// nobody can tell.
fn owns_others(element: Element<'_>, role: &Role) -> Option<bool> {
    let is_allowed = |owned: Element<'_>| owned.role().is_some_and(|owned| names(role.owned, owned.name));
    let (mut has_allowed, mut has_text, mut is_unclear) = (false, false, false);
    let elsewhere = |inner: Element<'_>| inner.owner().is_some_and(|owner| owner.index != element.index);
    let visit = |inner: Element<'_>| match () {
        () if is_unknown_as_owned(inner) => Visit::Over,
        () if !inner.is_exposed() || elsewhere(inner) => Visit::Past,
        () if is_transparent(inner) != Some(false) || (is_allowed(inner) && inner.has_role("group")) => Visit::Into,
        () => Visit::Over,
    };
    for item in element.walk(visit) {
        match item {
            Item::Text(says, _) => has_text |= says,
            Item::Element(inner) if is_unknown_as_owned(inner) => return None,
            Item::Element(inner) if is_allowed(inner) => has_allowed = true,
            Item::Element(inner) => match is_transparent(inner) {
                Some(true) => {}
                // If it is exposed, it may not be owned; if it is passed over, what is in it decides.
                None => is_unclear = true,
                Some(false) => return Some(true),
            },
        }
    }
    for owned in element.referred("aria-owns") {
        if is_unknown_as_owned(owned) || is_transparent(owned) != Some(false) {
            return None;
        }
        if !is_allowed(owned) {
            return Some(true);
        }
        has_allowed = true;
    }
    let is_without = has_text && !has_allowed;
    (is_without || !is_unclear).then_some(is_without)
}
