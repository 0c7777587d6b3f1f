//! Validates attributes that have a grammar of their own: autocomplete, viewport, refresh, and those of WAI-ARIA.

/// What browsers can fill a field with.
const FIELDS: &str = "name honorific-prefix given-name additional-name family-name honorific-suffix nickname username new-password current-password \
    one-time-code organization-title organization street-address address-line1 address-line2 address-line3 address-level4 address-level3 \
    address-level2 address-level1 country country-name postal-code cc-name cc-given-name cc-additional-name cc-family-name cc-number cc-exp \
    cc-exp-month cc-exp-year cc-csc cc-type transaction-currency transaction-amount language bday bday-day bday-month bday-year sex url photo";

/// What there may be several of: at home, at work.
const CONTACTS: &str =
    "tel tel-country-code tel-national tel-area-code tel-local tel-local-prefix tel-local-suffix tel-extension email impp";

fn is_one_of(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|each| each == word)
}

/// Whether these are autofill detail tokens in their order (HTML standard, "Autofill").
pub(super) fn is_autofill(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    let mut tokens = value.split_ascii_whitespace().peekable();
    tokens.next_if(|token| token.starts_with("section-"));
    tokens.next_if(|token| is_one_of("shipping billing", token));
    let is_contact = tokens.next_if(|token| is_one_of("home work mobile fax pager", token)).is_some();
    let names_field = |token: &str| is_one_of(CONTACTS, token) || (!is_contact && is_one_of(FIELDS, token));
    if !tokens.next().is_some_and(names_field) {
        return false;
    }
    tokens.next_if(|token| *token == "webauthn");
    tokens.next().is_none()
}

/// Whether a viewport that says something about zooming lets people double the size; none if it says nothing.
///
/// Numbers and words are read as CSS Device Adaptation §9 says.
pub(super) fn allows_zoom(content: &str) -> Option<bool> {
    let content = content.to_ascii_lowercase();
    let (mut scalable, mut maximum) = (None, None);
    for (name, value) in properties(&content) {
        match name {
            "user-scalable" => scalable = Some(is_scalable(value)),
            "maximum-scale" => maximum = scale(value).or(maximum),
            _ => {}
        }
    }
    let is_enough = maximum.is_none_or(|scale| scale >= 2.0);
    (scalable.is_some() || maximum.is_some()).then(|| scalable.unwrap_or(true) && is_enough)
}

/// `name=value`, with white space, commas and semicolons between them; those without a value are left out.
fn properties(content: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_separator = |letter: char| letter.is_ascii_whitespace() || matches!(letter, ',' | ';');
    let mut rest = content;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|letter| is_separator(letter) || letter == '=');
        if rest.is_empty() {
            return None;
        }
        let (name, behind) = rest.split_at(rest.find(|letter| is_separator(letter) || letter == '=').unwrap_or(rest.len()));
        // Only white space may stand between a name and its equals sign, and between that and the value.
        let Some(value) = behind.trim_ascii_start().strip_prefix('=').map(str::trim_ascii_start) else {
            rest = behind;
            return Some((name, ""));
        };
        let (value, behind) = value.split_at(value.find(|letter| is_separator(letter) || letter == '=').unwrap_or(value.len()));
        rest = behind;
        Some((name, value))
    })
    .filter(|(_, value)| !value.is_empty())
}

fn is_scalable(value: &str) -> bool {
    match value {
        "yes" | "device-width" | "device-height" => true,
        "no" => false,
        _ => number_before(value).is_some_and(|number| number.abs() >= 1.0),
    }
}

/// A scale; none if it is negative, and counts as not said.
fn scale(value: &str) -> Option<f64> {
    match value {
        "yes" => Some(1.0),
        "device-width" | "device-height" => Some(10.0),
        "no" => Some(0.1),
        _ => number_before(value).map_or(Some(0.1), |number| (number >= 0.0).then_some(number)),
    }
}

/// A longer number counts as this beginning of it, in bytes: each beginning is tried, from the longest one on.
const MAX_NUMBER: usize = 100;

/// The number that a text begins with.
fn number_before(text: &str) -> Option<f64> {
    let is_of_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e');
    let length = text.bytes().take(MAX_NUMBER).take_while(is_of_number).count();
    (1..=length).rev().find_map(|length| text[..length].parse().ok())
}

/// After how many seconds a page is to be asked for again; none if the value is not valid (HTML standard, "shared declarative refresh
/// steps").
pub(super) fn refresh_delay(content: &str) -> Option<u64> {
    let text = content.trim_ascii_start();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 && !text.starts_with('.') {
        return None;
    }
    let behind = text[digits..].trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let ends_well = behind.is_empty() || behind.starts_with(|letter: char| letter.is_ascii_whitespace() || matches!(letter, ';' | ','));
    ends_well.then(|| if digits == 0 { 0 } else { text[..digits].parse().unwrap_or(u64::MAX) })
}

/// What the value of a state or property has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Any text.
    Text,
    /// The id of one element.
    Id,
    /// Ids; whether there are such elements matters where the property is required only.
    Ids,
    /// One of these words.
    Word(&'static str),
    /// Some of these words.
    Words(&'static str),
    /// A whole number.
    Whole,
    /// A number.
    Number,
}

/// What WAI-ARIA says of a state or property, named without `aria-`; none if it does not know it.
pub(super) fn kind_of(property: &str) -> Option<Kind> {
    Some(match property {
        "braillelabel"
        | "brailleroledescription"
        | "colindextext"
        | "description"
        | "keyshortcuts"
        | "label"
        | "placeholder"
        | "roledescription"
        | "rowindextext"
        | "valuetext" => Kind::Text,
        "activedescendant" => Kind::Id,
        "actions" | "controls" | "describedby" | "details" | "errormessage" | "flowto" | "labelledby" | "owns" => Kind::Ids,
        "atomic" | "busy" | "disabled" | "modal" | "multiline" | "multiselectable" | "readonly" | "required" => Kind::Word("true false"),
        "expanded" | "grabbed" | "hidden" | "selected" => Kind::Word("true false undefined"),
        "checked" | "pressed" => Kind::Word("true false mixed undefined"),
        "autocomplete" => Kind::Word("inline list both none"),
        "current" => Kind::Word("page step location date time true false"),
        "haspopup" => Kind::Word("false true menu listbox tree grid dialog"),
        "invalid" => Kind::Word("grammar false spelling true"),
        "live" => Kind::Word("assertive off polite"),
        "orientation" => Kind::Word("vertical horizontal undefined"),
        "sort" => Kind::Word("ascending descending none other"),
        "dropeffect" => Kind::Words("copy execute link move none popup"),
        "relevant" => Kind::Words("additions all removals text"),
        "colcount" | "colindex" | "colspan" | "level" | "posinset" | "rowcount" | "rowindex" | "rowspan" | "setsize" => Kind::Whole,
        "valuemax" | "valuemin" | "valuenow" => Kind::Number,
        _ => return None,
    })
}

impl Kind {
    /// Whether a value, which is not empty, is of this kind.
    pub(super) fn admits(self, value: &str) -> bool {
        let value = value.trim_ascii();
        let is_word = |words: &str, value: &str| words.split(' ').any(|word| word.eq_ignore_ascii_case(value));
        match self {
            Kind::Text | Kind::Ids => true,
            Kind::Id => !value.contains(|letter: char| letter.is_ascii_whitespace()),
            Kind::Word(words) => is_word(words, value),
            Kind::Words(words) => value.split_ascii_whitespace().all(|value| is_word(words, value)),
            Kind::Whole => {
                let digits = value.strip_prefix(['-', '+']).unwrap_or(value);
                !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
            }
            Kind::Number => value.parse().is_ok_and(f64::is_finite),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn autofill_tokens_have_an_order() {
        for good in [
            "name",
            "Street-Address",
            "section-a shipping home tel",
            "work email",
            "billing cc-number",
            "username webauthn",
            "tel-national",
        ] {
            assert!(is_autofill(good), "{good}");
        }
        for bad in ["badname", "work shipping email", "home name", "email invalid", "section-a", "webauthn", "off name", "shipping"] {
            assert!(!is_autofill(bad), "{bad}");
        }
    }

    #[test]
    fn a_viewport_may_lock_the_zoom_in_several_ways() {
        let locked = [
            "user-scalable=no",
            "width=device-width, user-scalable=0",
            "maximum-scale=1.0",
            "maximum-scale = 1.99",
            "maximum-scale=yes",
            "user-scalable=yes;maximum-scale=1.5",
            "user-scalable=0.5",
            "maximum-scale=none",
        ];
        for content in locked {
            assert_eq!(allows_zoom(content), Some(false), "{content}");
        }
        for content in [
            "user-scalable=yes",
            "USER-SCALABLE=1",
            "maximum-scale=2",
            "maximum-scale=5.0",
            "user-scalable=-7",
            "maximum-scale=device-width",
        ] {
            assert_eq!(allows_zoom(content), Some(true), "{content}");
        }
        for content in ["", "width=device-width, initial-scale=1", "maximum-scale=-1", "maximum-scale", "user-scalable,"] {
            assert_eq!(allows_zoom(content), None, "{content}");
        }
        // Each beginning of it that is no number was read once more.
        let endless = format!("maximum-scale={}{}", "1".repeat(500_000), "-".repeat(500_000));
        assert_eq!(allows_zoom(&endless), Some(true));
    }

    #[test]
    fn delays_are_read_as_browsers_read_them() {
        let delays = [("0", Some(0)), (" 5; url=x", Some(5)), ("0.9,x", Some(0)), (".5 x", Some(0)), ("72001 https://a.b", Some(72_001))];
        for (content, delay) in delays {
            assert_eq!(refresh_delay(content), delay, "{content}");
        }
        for content in ["", "foo", "0: https://a.b", "+5", "-00.12 foo", "; 30", "5x"] {
            assert_eq!(refresh_delay(content), None, "{content}");
        }
        assert_eq!(refresh_delay("99999999999999999999999"), Some(u64::MAX));
    }

    #[test]
    fn values_are_of_their_kind() {
        let admits = |property: &str, value: &str| kind_of(property).unwrap().admits(value);
        assert!(admits("expanded", "undefined") && admits("required", "TRUE") && admits("level", "2") && admits("valuenow", "-1.5"));
        assert!(admits("relevant", "text removals") && admits("current", "page") && admits("labelledby", "x y"));
        assert!(
            !admits("expanded", "collapsed") && !admits("required", "undefined") && !admits("level", "2.5") && !admits("valuenow", "one")
        );
        assert!(!admits("relevant", "text always") && !admits("live", "page") && !admits("valuemax", "inf"));
        assert!(!admits("activedescendant", "x y"));
        assert_eq!(kind_of("labelled"), None);
    }
}
