//! Checks for an accessible name, by the part of "Accessible Name and Description Computation" that markup alone decides.
//!
//! Rules ask whether there is a name, not which one; so the search ends with the first visible character, and nothing recurses: what
//! counts within an element counts however deep it lies.

use super::{
    document::{Element, Item, State, Visit},
    semantics::own_role,
};

/// Whether an element has a name that is not empty.
pub(super) fn has_name(element: Element<'_>) -> bool {
    is_labelled(element)
        || is_named_by_nature(element)
        || (element.role().is_none_or(|role| role.named_by_content) && takes_content(element) && has_content(element, Content::of(element)))
        || element.says("title")
}

/// By aria-labelledby or aria-label.
pub(super) fn is_labelled(element: Element<'_>) -> bool {
    element.referred("aria-labelledby").any(speaks) || element.says("aria-label")
}

/// Elements whose content is something else than what they are called.
fn takes_content(element: Element<'_>) -> bool {
    !(element.is_svg() || matches!(element.name(), "audio" | "iframe" | "img" | "input" | "object" | "select" | "textarea" | "video"))
}

/// What an element says when another one points at it: hidden or not, it is what was meant.
fn speaks(element: Element<'_>) -> bool {
    let content = Content { hidden: !element.is_exposed(), references: false, except: None };
    element.says("aria-label")
        || is_named_by_nature(element)
        || (!element.is("select") && has_content(element, content))
        || has_value(element)
        || element.says("title")
}

/// By what HTML and SVG have for it: alternatives, labels, legends, captions, values of buttons.
fn is_named_by_nature(element: Element<'_>) -> bool {
    if element.is_svg() {
        return element.children().any(|child| child.is_svg() && child.name() == "title" && has_text(child)) || element.says("title");
    }
    if !element.is_html() {
        return false;
    }
    let by_child = |name: &str| element.children().any(|child| child.is(name) && has_content(child, Content::of(child)));
    match element.name() {
        "img" | "area" => element.says("alt"),
        "input" => is_input_named(element),
        "button" | "meter" | "output" | "progress" => is_labelled_by_element(element),
        "select" | "textarea" => is_labelled_by_element(element) || element.says("placeholder"),
        "fieldset" => by_child("legend"),
        "figure" => by_child("figcaption"),
        "table" => by_child("caption"),
        _ => false,
    }
}

fn is_input_named(element: Element<'_>) -> bool {
    let kind = element.attr("type").unwrap_or_default().trim_ascii().to_ascii_lowercase();
    match kind.as_str() {
        // Without a value browsers write one in their own language.
        "submit" | "reset" => {
            element.attr("value").is_none_or(|value| value.is_empty() || !value.trim().is_empty()) || is_labelled_by_element(element)
        }
        "button" => element.says("value") || is_labelled_by_element(element),
        "image" => element.says("alt") || element.says("value") || is_labelled_by_element(element),
        _ => is_labelled_by_element(element) || element.says("placeholder"),
    }
}

fn is_labelled_by_element(element: Element<'_>) -> bool {
    element.labels().any(|label| {
        let content = Content { except: Some(element), ..Content::of(label) };
        label.says("aria-label") || has_content(label, content)
    })
}

/// What a control holds, where it stands in the text that names something else.
fn has_value(element: Element<'_>) -> bool {
    match element.name() {
        "input" => element.says("value"),
        "select" if element.is_html() => has_choice(element),
        _ => element.says("aria-valuetext") || element.says("aria-valuenow"),
    }
}

/// Whether the option of a `select` that is chosen while nobody has chosen one says something (HTML standard, "ask for a reset"). A
/// script may fill one that has no options.
fn has_choice(select: Element<'_>) -> bool {
    let options = || select.descendants().filter(|option| option.is("option"));
    let says = |option: Element<'_>| option.says("label") || has_text(option);
    let is_disabled = |option: Element<'_>| {
        let is_in_disabled = |group: Element<'_>| group.is("optgroup") && group.has("disabled");
        option.has("disabled") || option.parent().is_some_and(is_in_disabled)
    };
    if options().next().is_none() {
        return select.document.may_define_elements();
    }
    if own_role(select).is_some_and(|role| role.name == "listbox") {
        return options().any(|option| option.has("selected") && says(option));
    }
    let first = || options().find(|option| !is_disabled(*option));
    options().filter(|option| option.has("selected")).last().or_else(first).is_some_and(says)
}

/// Text of an element, whatever it is.
fn has_text(element: Element<'_>) -> bool {
    element.walk(|_| Visit::Into).any(|item| matches!(item, Item::Text(true, _)))
}

/// What of an element's content counts.
#[derive(Clone, Copy)]
struct Content<'d> {
    /// What is hidden counts too.
    hidden: bool,
    /// References are followed.
    references: bool,
    /// What is being named: it does not name itself.
    except: Option<Element<'d>>,
}

impl<'d> Content<'d> {
    fn of(element: Element<'d>) -> Content<'d> {
        Content { hidden: !element.is_exposed(), references: true, except: None }
    }
}

fn has_content(element: Element<'_>, content: Content<'_>) -> bool {
    // What is only invisible may have visible descendants.
    let is_hidden = |state: State| !content.hidden && !State { invisible: false, ..state }.is_exposed();
    let is_left_out = |inner: Element<'_>| {
        let is_named = content.except.is_some_and(|named| named.index == inner.index);
        is_named || is_hidden(inner.state()) || matches!(inner.name(), "script" | "style" | "noscript")
    };
    let mut items = element.walk(|inner| match inner.name() {
        _ if is_left_out(inner) => Visit::Past,
        "iframe" | "select" | "textarea" => Visit::Over,
        _ => Visit::Into,
    });
    let counts = |state: State| content.hidden || state.is_exposed();
    items.any(|item| match item {
        Item::Text(says, state) => says && counts(state),
        Item::Element(inner) => counts(inner.state()) && contributes(inner, content.references),
    })
}

/// Whether an element by itself adds to the name of what it stands in.
fn contributes(inner: Element<'_>, references: bool) -> bool {
    let alternative =
        || matches!(inner.name(), "img" | "area") && inner.says("alt") && !inner.role().is_some_and(|role| role.is_presentational());
    // What scripts draw, or what is fetched to stand there, cannot be seen from here.
    let unknown = || inner.is_custom() || (inner.is_html() && matches!(inner.name(), "object" | "slot" | "embed"));
    (references && inner.referred("aria-labelledby").any(speaks))
        || inner.says("aria-label")
        || alternative()
        || inner.says("title")
        || (matches!(inner.name(), "input" | "select") && has_value(inner))
        || unknown()
}
