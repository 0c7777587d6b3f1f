//! Semantics of an element: rendered or not, operable or not, and which role HTML gives it (HTML-AAM, ARIA in HTML).

use super::{
    document::{Element, State},
    roles::Role,
    style,
};

/// What an element has from its parent and itself.
pub(super) fn state(element: Element<'_>, inherited: State) -> State {
    let (html, svg) = match element.namespace() {
        "http://www.w3.org/1999/xhtml" => (true, false),
        "http://www.w3.org/2000/svg" => (false, true),
        _ => (false, false),
    };
    let own = State { html, svg, ..inherited };
    // What a style says takes longer to find than to read.
    let style = element.attr("style").filter(|style| element.document.work().spend(style.len() / 2));
    let shown = style.map(style::shown).unwrap_or_default();
    State {
        unrendered: inherited.unrendered || shown.gone || is_never_rendered(element, own),
        invisible: shown.visible.map_or(inherited.invisible, |visible| !visible),
        aria_hidden: inherited.aria_hidden || element.attr_is("aria-hidden", "true"),
        styled_away: inherited.styled_away || element.may_be_styled_away(),
        inert: inherited.inert || (html && element.has("inert")),
        sectioned: inherited.sectioned || element.parent().is_some_and(is_section),
        in_part: inherited.in_part || element.parent().is_some_and(is_part),
        disabled: inherited.disabled && !is_first_legend(element, html)
            || (html && element.name() == "fieldset" && element.has("disabled")),
        ..own
    }
}

/// Whether it is sectioning content of HTML.
fn is_section(element: Element<'_>) -> bool {
    element.is_html() && matches!(element.name(), "article" | "aside" | "nav" | "section")
}

/// Whether headers and footers in it are those of a part of the page: by its element, or by a role from its author (ARIA in HTML).
fn is_part(element: Element<'_>) -> bool {
    let has_role = |role: &Role| matches!(role.name, "article" | "complementary" | "main" | "navigation" | "region");
    is_section(element) || element.is("main") || element.explicit_role().is_some_and(has_role)
}

/// What browsers do not render: metadata, scripts, fall-backs, and what is closed.
fn is_never_rendered(element: Element<'_>, state: State) -> bool {
    if !state.html {
        return state.svg && matches!(element.name(), "defs" | "metadata" | "symbol" | "script" | "style");
    }
    let never = match element.name() {
        "base" | "datalist" | "head" | "link" | "meta" | "noembed" | "noframes" | "noscript" | "param" | "rp" | "script" | "source"
        | "style" | "title" | "track" => true,
        "input" => element.attr_is("type", "hidden"),
        "dialog" => !element.has("open"),
        "audio" => !element.has("controls"),
        _ => element.has("popover"),
    };
    never || element.has("hidden") || element.parent().is_some_and(|parent| hides_child(parent, element))
}

/// What of its children an element does not render: those of closed details, and those that stand in for media.
fn hides_child(parent: Element<'_>, child: Element<'_>) -> bool {
    match parent.name() {
        "details" => parent.is_html() && !parent.has("open") && !is_summary_of(child, parent),
        "video" | "audio" | "object" | "iframe" => parent.is_html(),
        _ => false,
    }
}

fn is_summary_of(child: Element<'_>, details: Element<'_>) -> bool {
    child.name() == "summary" && details.children().find(|other| other.is("summary")).is_none_or(|first| first.index == child.index)
}

/// Whether an element is the summary of its details: the first one.
pub(super) fn is_summary(element: Element<'_>) -> bool {
    element.is("summary") && element.parent().is_some_and(|parent| parent.is("details") && is_summary_of(element, parent))
}

/// What is in the first legend of a disabled fieldset is not disabled.
fn is_first_legend(element: Element<'_>, html: bool) -> bool {
    let is_first =
        |fieldset: Element<'_>| fieldset.children().find(|child| child.is("legend")).is_none_or(|first| first.index == element.index);
    html && element.name() == "legend" && element.parent().is_some_and(|parent| parent.is("fieldset") && is_first(parent))
}

/// Whether an element of HTML cannot be used, because it is disabled itself or in a disabled fieldset.
pub(super) fn is_disabled(element: Element<'_>) -> bool {
    let can_be = matches!(element.name(), "button" | "input" | "select" | "textarea");
    can_be && element.is_html() && (element.has("disabled") || element.state().disabled)
}

/// The tabindex, if there is a valid one.
pub(super) fn tab_index(element: Element<'_>) -> Option<i64> {
    let text = element.attr("tabindex")?.trim_ascii_start();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text).bytes().take_while(u8::is_ascii_digit).count();
    let sign = text.len() - text.strip_prefix(['-', '+']).unwrap_or(text).len();
    text[..sign + digits].parse().ok()
}

/// Whether it can have the focus, by a pointer or a script at least.
pub(super) fn is_focusable(element: Element<'_>) -> bool {
    is_focusable_if_shown(element) && !element.state().styled_away
}

/// Whether that holds if no style sheet hides it.
pub(super) fn is_focusable_if_shown(element: Element<'_>) -> bool {
    (tab_index(element).is_some() || is_focusable_by_nature(element))
        && !is_disabled(element)
        && element.state().is_rendered()
        && !element.state().inert
}

/// Whether its content can be edited because it says so itself. Invalid values are as none (HTML standard, "contenteditable").
pub(super) fn is_editing_host(element: Element<'_>) -> bool {
    let is_on = |value: &str| ["", "true", "plaintext-only"].iter().any(|on| on.eq_ignore_ascii_case(value));
    element.is_html() && element.attr("contenteditable").is_some_and(is_on)
}

/// Frames are left out: whether one comes to something in them is their document's business.
fn is_focusable_by_nature(element: Element<'_>) -> bool {
    match element.name() {
        "a" => element.has("href"),
        _ if !element.is_html() => false,
        "input" => !element.attr_is("type", "hidden"),
        "button" | "select" | "textarea" => true,
        "audio" | "video" => element.has("controls"),
        "summary" => is_summary(element),
        _ => is_editing_host(element),
    }
}

/// The global states and properties of WAI-ARIA; the last four are so no longer, but are allowed everywhere still.
const GLOBAL: &str = "atomic braillelabel brailleroledescription busy controls current describedby description details dropeffect flowto grabbed \
                      hidden keyshortcuts label labelledby live owns relevant roledescription disabled errormessage haspopup invalid";

/// Whether every element may have this state or property (named without `aria-`).
pub(super) fn is_global(property: &str) -> bool {
    super::roles::names(GLOBAL, property)
}

/// Whether an element says something of itself that a presentational role would take away. `aria-hidden` takes away as much.
/// Empty ones count, as the examples of the W3C's rules have it.
pub(super) fn has_global_property(element: Element<'_>) -> bool {
    let is_told = |property: &str| property != "hidden" && element.document.spend() && is_global(property);
    let speaks = |name: &str| name.strip_prefix("aria-").is_some_and(is_told);
    element.attr_names().any(speaks)
}

/// Whether its author says that it is decoration: by a presentational role, or an empty text alternative.
pub(super) fn is_decorative(element: Element<'_>) -> bool {
    match element.explicit_role() {
        Some(role) => role.is_presentational(),
        None => element.is("img") && element.attr("alt") == Some(""),
    }
}

/// The role that an element would have without one from its author.
pub(super) fn own_role(element: Element<'_>) -> Option<&'static Role> {
    implicit(element, false)
}

/// The role of an element. A presentational one does not hold for what can have the focus or has global properties.
pub(super) fn role(element: Element<'_>) -> Option<&'static Role> {
    let insists = || is_focusable(element) || has_global_property(element);
    match element.explicit_role() {
        Some(role) if !role.is_presentational() || !insists() => Some(role),
        _ => implicit(element, insists()),
    }
}

/// Whether its author names it by an attribute. Whether what `aria-labelledby` refers to says anything is not asked: it may stand further
/// down, where the page is not read yet.
fn is_named(element: Element<'_>) -> bool {
    ["aria-label", "aria-labelledby", "title"].iter().any(|name| element.says(name))
}

/// The role of an element whose author gave it none: a table with one row for each name, as HTML-AAM has it.
fn implicit(element: Element<'_>, insists: bool) -> Option<&'static Role> {
    if element.is_svg() {
        return match element.name() {
            "svg" => Role::of("graphics-document"),
            "a" if element.has("href") => Role::of("link"),
            _ => None,
        };
    }
    if !element.is_html() {
        return Role::of(element.name()).filter(|role| role.name == "math");
    }
    let name = match element.name() {
        "a" | "area" if element.has("href") => "link",
        "address" | "details" | "fieldset" | "hgroup" | "optgroup" => "group",
        "article" => "article",
        "aside" if !element.state().sectioned || is_named(element) => "complementary",
        "section" if is_named(element) => "region",
        "a" | "area" | "aside" | "b" | "bdi" | "bdo" | "body" | "data" | "div" | "i" | "pre" | "q" | "samp" | "section" | "small"
        | "span" | "u" => "generic",
        "blockquote" => "blockquote",
        "button" => "button",
        "caption" => "caption",
        "code" => "code",
        "datalist" => "listbox",
        "del" | "s" => "deletion",
        "dfn" => "term",
        "dialog" => "dialog",
        "em" => "emphasis",
        "figure" => "figure",
        "footer" if element.state().in_part => "sectionfooter",
        "footer" => "contentinfo",
        "form" => "form",
        "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => "heading",
        "header" if element.state().in_part => "sectionheader",
        "header" => "banner",
        "hr" => "separator",
        "html" => "document",
        "img" if element.attr("alt") == Some("") && !insists => "none",
        "img" => "img",
        "input" => input(element)?,
        "ins" => "insertion",
        "li" => list_item(element),
        "main" => "main",
        "mark" => "mark",
        "menu" | "ol" | "ul" => "list",
        "meter" => "meter",
        "nav" => "navigation",
        "option" => "option",
        "output" => "status",
        "p" => "paragraph",
        "progress" => "progressbar",
        "search" => "search",
        "select"
            if element.has("multiple")
                || element.attr("size").and_then(|size| size.trim().parse().ok()).is_some_and(|size: u32| size > 1) =>
        {
            "listbox"
        }
        "select" => "combobox",
        "strong" => "strong",
        "sub" => "subscript",
        "sup" => "superscript",
        "table" => "table",
        "tbody" | "td" | "tfoot" | "th" | "thead" | "tr" => part_of_table(element),
        "textarea" => "textbox",
        "time" => "time",
        _ => return None,
    };
    Role::of(name)
}

/// Several types have no role: passwords, dates, colours, files.
fn input(element: Element<'_>) -> Option<&'static str> {
    let kind = element.attr("type").unwrap_or_default().trim_ascii().to_ascii_lowercase();
    let suggests = element.has("list");
    match kind.as_str() {
        "button" | "image" | "reset" | "submit" => Some("button"),
        "checkbox" => Some("checkbox"),
        "number" => Some("spinbutton"),
        "radio" => Some("radio"),
        "range" => Some("slider"),
        "color" | "date" | "datetime-local" | "file" | "hidden" | "month" | "password" | "time" | "week" => None,
        _ if suggests => Some("combobox"),
        "search" => Some("searchbox"),
        _ => Some("textbox"),
    }
}

/// An item of a list, if it stands in one.
fn list_item(element: Element<'_>) -> &'static str {
    let parent = element.parent().and_then(Element::role).map(|role| role.name);
    if matches!(parent, Some("list" | "directory")) { "listitem" } else { "generic" }
}

/// Rows and cells of a table that is only there for its looks are only there for their looks.
fn part_of_table(element: Element<'_>) -> &'static str {
    let table = element.ancestors().find(|ancestor| ancestor.is("table")).and_then(Element::role).map_or("table", |role| role.name);
    let is_grid = matches!(table, "grid" | "treegrid");
    match element.name() {
        _ if !is_grid && table != "table" => "generic",
        "tr" => "row",
        "td" if is_grid => "gridcell",
        "td" => "cell",
        "th" if element.attr_is("scope", "row") || element.attr_is("scope", "rowgroup") => "rowheader",
        "th" => "columnheader",
        _ => "rowgroup",
    }
}
