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

/// Reads declarations; of several declarations the last one counts, important ones before others.
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
        assert_eq!(shown("position:absolute; left:-9999px; background:url(a;b)"), Shown::default());
    }
}
