//! Is an element hidden by its style? The two properties that take elements away from everybody, in style attributes and in the plainest
//! rules of the page's own style sheets.

/// What a style attribute says about visibility.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// `display: none`: neither the element nor its descendants are rendered.
    pub(super) gone: bool,
    /// `visibility`: visible or not; none if nothing is said.
    pub(super) visible: Option<bool>,
}

/// Reads a style attribute; of several declarations the last one counts, important ones before others.
pub(super) fn shown(style: &str) -> Shown {
    let mut shown = Shown::default();
    let (mut display, mut visibility) = (false, false);
    for declaration in style.split(';') {
        let Some((property, value)) = declaration.split_once(':') else { continue };
        let (value, important) = match value.split_once('!') {
            Some((value, word)) => (value, word.trim().eq_ignore_ascii_case("important")),
            None => (value, false),
        };
        let value = value.trim();
        match property.trim() {
            name if name.eq_ignore_ascii_case("display") && (important || !display) => {
                (shown.gone, display) = (value.eq_ignore_ascii_case("none"), important);
            }
            name if name.eq_ignore_ascii_case("visibility") && (important || !visibility) => {
                let hidden = value.eq_ignore_ascii_case("hidden") || value.eq_ignore_ascii_case("collapse");
                (shown.visible, visibility) = ((!value.eq_ignore_ascii_case("inherit")).then_some(!hidden), important);
            }
            name if name.eq_ignore_ascii_case("content-visibility") => shown.gone |= value.eq_ignore_ascii_case("hidden"),
            _ => {}
        }
    }
    shown
}

/// The classes and ids (`.class`, `#id`) that a style sheet hides by rules for nothing else. Rules that hold in some media only are passed
/// over, and so is whatever depends on more than one name.
pub(super) fn hidden_names(sheet: &str) -> impl Iterator<Item = String> {
    let mut names = Vec::new();
    let sheet = without_comments(sheet);
    let mut rest = sheet.as_str();
    while let Some((prelude, behind)) = rest.split_once('{') {
        let selectors = prelude.rsplit([';', '}']).next().unwrap_or_default();
        if selectors.trim_ascii_start().starts_with('@') {
            rest = behind_block(behind);
            continue;
        }
        let (body, behind) = behind.split_once('}').unwrap_or((behind, ""));
        let Shown { gone, visible } = shown(body);
        if gone || visible == Some(false) {
            names.extend(selectors.split(',').map(str::trim_ascii).filter(|selector| is_name(selector)).map(str::to_owned));
        }
        rest = behind;
    }
    names.into_iter()
}

fn is_name(selector: &str) -> bool {
    let is_plain = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    selector.strip_prefix(['.', '#']).is_some_and(is_plain)
}

fn without_comments(sheet: &str) -> String {
    let mut pieces = sheet.split("/*");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + piece.split_once("*/").map_or("", |(_, behind)| behind))
}

/// Behind the brace that closes a block, which may contain others.
fn behind_block(text: &str) -> &str {
    let mut open = 1_u32;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => open += 1,
            b'}' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return &text[at + 1..];
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::{Shown, hidden_names, shown};

    #[test]
    fn plain_rules_that_hide_are_found() {
        let sheet =
            "@import 'x'; .a, #b /* { */ , p.c, .d .e { display: none } @media print { .f { display: none } .g{} } .h { color: red }
            .i{visibility:hidden}.j{display:none";
        assert_eq!(hidden_names(sheet).collect::<Vec<_>>(), [".a", "#b", ".i", ".j"]);
        assert_eq!(hidden_names("}} {{ @x { /*").count(), 0);
    }

    #[test]
    fn hiding_declarations_are_understood() {
        assert_eq!(shown("color: red; DISPLAY : None"), Shown { gone: true, visible: None });
        assert_eq!(shown("display:none!important;display:block"), Shown { gone: true, visible: None });
        assert_eq!(shown("display:none;display:block"), Shown::default());
        assert_eq!(shown("visibility: hidden"), Shown { gone: false, visible: Some(false) });
        assert_eq!(shown("visibility:visible"), Shown { gone: false, visible: Some(true) });
        assert_eq!(shown("position:absolute; left:-9999px; background:url(a;b)"), Shown::default());
    }
}
