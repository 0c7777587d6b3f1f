//! Decides whether an element is hidden by its style.
//!
//! It knows the properties that take elements away from everybody, in style attributes and in the rules of style sheets.

/// What declarations say about visibility.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// `display: none`: neither the element nor its descendants are rendered.
    pub(super) gone: bool,
    /// `visibility`: visible or not; none if nothing is said.
    pub(super) visible: Option<bool>,
}

/// The words that values of `display` are made of. What may stand beside what is not told apart.
const DISPLAYS: &str = "block flow flow-root grid inherit initial inline inline-block inline-flex inline-grid inline-table flex contents \
    list-item math none revert revert-layer ruby ruby-base ruby-base-container ruby-text ruby-text-container run-in table table-caption \
    table-cell table-column table-column-group table-footer-group table-header-group table-row table-row-group unset -webkit-box \
    -webkit-flex -webkit-inline-box -webkit-inline-flex";

/// A value of `display` has so many words at most.
const MAX_WORDS: usize = 3;

/// Whether browsers know a value of `display`. A declaration with another value, or with one that is only known where the page is shown
/// (`var()`), does not undo what an earlier one said.
fn is_display(value: &str) -> bool {
    let is_known = |word: &str| DISPLAYS.split_ascii_whitespace().any(|known| known.eq_ignore_ascii_case(word));
    let mut words = value.split_ascii_whitespace();
    !value.is_empty() && words.by_ref().take(MAX_WORDS).all(is_known) && words.next().is_none()
}

/// What a value of `visibility` says: visible or not, or none for the same as around it. None at all if browsers do not know the value.
fn visibility_of(value: &str) -> Option<Option<bool>> {
    let is_one_of = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(value));
    match () {
        () if is_one_of(&["hidden", "collapse"]) => Some(Some(false)),
        () if is_one_of(&["visible", "initial"]) => Some(Some(true)),
        () if is_one_of(&["inherit", "unset", "revert", "revert-layer"]) => Some(None),
        () => None,
    }
}

/// Reads declarations; of several valid declarations the last one counts, important ones before others.
pub(super) fn shown(style: &str) -> Shown {
    let mut shown = Shown::default();
    let (mut display, mut visibility) = (false, false);
    for declaration in style.split(';') {
        let Some((property, value)) = declaration.split_once(':') else { continue };
        let value = value.split("/*").next().unwrap_or_default();
        let (value, important) = match value.split_once('!') {
            Some((value, word)) if word.trim().eq_ignore_ascii_case("important") => (value, true),
            Some(_) => continue,
            None => (value, false),
        };
        let value = value.trim();
        match property.trim() {
            name if name.eq_ignore_ascii_case("display") && (important || !display) && is_display(value) => {
                (shown.gone, display) = (value.eq_ignore_ascii_case("none"), important);
            }
            name if name.eq_ignore_ascii_case("visibility") && (important || !visibility) => {
                if let Some(visible) = visibility_of(value) {
                    (shown.visible, visibility) = (visible, important);
                }
            }
            name if name.eq_ignore_ascii_case("content-visibility") => shown.gone |= value.eq_ignore_ascii_case("hidden"),
            _ => {}
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::{Shown, shown};

    #[test]
    fn hiding_declarations_are_understood() {
        assert_eq!(shown("color: red; DISPLAY : None"), Shown { gone: true, visible: None });
        assert_eq!(shown("display:none!important;display:block"), Shown { gone: true, visible: None });
        assert_eq!(shown("display:none;display:block"), Shown::default());
        assert_eq!(shown("visibility: hidden"), Shown { gone: false, visible: Some(false) });
        assert_eq!(shown("visibility:visible"), Shown { gone: false, visible: Some(true) });
        assert_eq!(shown("display:none /* until it is opened */"), Shown { gone: true, visible: None });
        assert_eq!(shown("position:absolute; left:-9999px; background:url(a;b)"), Shown::default());
    }

    #[test]
    fn what_is_no_valid_declaration_undoes_nothing() {
        let hidden = Shown { gone: true, visible: None };
        for other in ["bogus", "var(--x)", "", "block block block block", "block!x", "none!x"] {
            assert_eq!(shown(&format!("display:none;display:{other}")), hidden, "{other}");
            assert_eq!(shown(&format!("display:{other}")), Shown::default(), "{other}");
        }
        for other in ["BLOCK", "inline flow-root", "-webkit-box", "revert"] {
            assert_eq!(shown(&format!("display:none;display:{other}")), Shown::default(), "{other}");
        }
        let visible = |style: &str| shown(style).visible;
        assert_eq!((visible("visibility:hidden;visibility:bogus"), visible("visibility:bogus")), (Some(false), None));
        assert_eq!((visible("visibility:hidden;visibility:inherit"), visible("visibility:initial")), (None, Some(true)));
    }
}
