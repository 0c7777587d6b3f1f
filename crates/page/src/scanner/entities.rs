//! Decodes character references such as `&amp;` and `&#38;` in attributes.

use std::borrow::Cow;

/// The names that need no semicolon for U+00A0 to U+00FF, in that order.
const LATIN_1: [&str; 96] = [
    "nbsp", "iexcl", "cent", "pound", "curren", "yen", "brvbar", "sect", "uml", "copy", "ordf", "laquo", "not", "shy", "reg", "macr",
    "deg", "plusmn", "sup2", "sup3", "acute", "micro", "para", "middot", "cedil", "sup1", "ordm", "raquo", "frac14", "frac12", "frac34",
    "iquest", "Agrave", "Aacute", "Acirc", "Atilde", "Auml", "Aring", "AElig", "Ccedil", "Egrave", "Eacute", "Ecirc", "Euml", "Igrave",
    "Iacute", "Icirc", "Iuml", "ETH", "Ntilde", "Ograve", "Oacute", "Ocirc", "Otilde", "Ouml", "times", "Oslash", "Ugrave", "Uacute",
    "Ucirc", "Uuml", "Yacute", "THORN", "szlig", "agrave", "aacute", "acirc", "atilde", "auml", "aring", "aelig", "ccedil", "egrave",
    "eacute", "ecirc", "euml", "igrave", "iacute", "icirc", "iuml", "eth", "ntilde", "ograve", "oacute", "ocirc", "otilde", "ouml",
    "divide", "oslash", "ugrave", "uacute", "ucirc", "uuml", "yacute", "thorn", "yuml",
];

/// The other names that need no semicolon.
const LEGACY: [(&str, char); 10] = [
    ("amp", '&'),
    ("AMP", '&'),
    ("lt", '<'),
    ("LT", '<'),
    ("gt", '>'),
    ("GT", '>'),
    ("quot", '"'),
    ("QUOT", '"'),
    ("copy", '©'),
    ("COPY", '©'),
];

/// Names that need a semicolon, and may stand in URLs.
const NAMED: [(&str, char); 47] = [
    ("REG", '®'),
    ("apos", '\''),
    ("Tab", '\t'),
    ("NewLine", '\n'),
    ("excl", '!'),
    ("num", '#'),
    ("dollar", '$'),
    ("percnt", '%'),
    ("lpar", '('),
    ("rpar", ')'),
    ("ast", '*'),
    ("midast", '*'),
    ("plus", '+'),
    ("comma", ','),
    ("period", '.'),
    ("sol", '/'),
    ("colon", ':'),
    ("semi", ';'),
    ("equals", '='),
    ("quest", '?'),
    ("commat", '@'),
    ("lsqb", '['),
    ("lbrack", '['),
    ("bsol", '\\'),
    ("rsqb", ']'),
    ("rbrack", ']'),
    ("Hat", '^'),
    ("lowbar", '_'),
    ("UnderBar", '_'),
    ("grave", '`'),
    ("lcub", '{'),
    ("lbrace", '{'),
    ("verbar", '|'),
    ("vert", '|'),
    ("rcub", '}'),
    ("rbrace", '}'),
    ("hyphen", '‐'),
    ("dash", '‐'),
    ("ndash", '–'),
    ("mdash", '—'),
    ("lsquo", '‘'),
    ("rsquo", '’'),
    ("ldquo", '“'),
    ("rdquo", '”'),
    ("hellip", '…'),
    ("euro", '€'),
    ("trade", '™'),
];

/// What Windows-1252 has where Unicode has control characters: that is what is meant by `&#128;` to `&#159;`.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’', '“', '”', '•', '–',
    '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// Replaces the character references of an attribute's value, and NUL by U+FFFD.
pub(super) fn decode(text: Cow<'_, str>) -> Cow<'_, str> {
    if memchr::memchr2(b'&', 0, text.as_bytes()).is_none() {
        return text;
    }
    let mut decoded = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = memchr::memchr2(b'&', 0, rest.as_bytes()) {
        decoded.push_str(&rest[..at]);
        let found = if rest.as_bytes()[at] == 0 { Some((char::REPLACEMENT_CHARACTER, 1)) } else { reference(&rest[at..]) };
        match found {
            Some((character, length)) => {
                decoded.push(character);
                rest = &rest[at + length..];
            }
            None => {
                decoded.push('&');
                rest = &rest[at + 1..];
            }
        }
    }
    decoded.push_str(rest);
    Cow::Owned(decoded)
}

/// The character that a text beginning with `&` begins with, and the length of its name.
fn reference(text: &str) -> Option<(char, usize)> {
    let body = &text[1..];
    if let Some(digits) = body.strip_prefix('#') {
        return numeric(digits).map(|(character, length)| (character, length + 2));
    }
    let length = body.bytes().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(body.len());
    // The longest name of the standard has 31 letters.
    if length == 0 || length > 32 {
        return None;
    }
    let name = &body[..length];
    let legacy = || {
        let latin = LATIN_1.iter().position(|known| *known == name).and_then(|at| char::from_u32(0xa0 + at as u32));
        latin.or_else(|| LEGACY.iter().find(|(known, _)| *known == name).map(|(_, character)| *character))
    };
    match body.as_bytes().get(length) {
        Some(b';') => {
            let named = || NAMED.iter().find(|(known, _)| *known == name).map(|(_, character)| *character);
            legacy().or_else(named).map(|character| (character, length + 2))
        }
        // `?a&copy=1` is a parameter.
        Some(b'=') => None,
        _ => legacy().or_else(|| (name == "REG").then_some('®')).map(|character| (character, length + 1)),
    }
}

/// The number behind `&#`, with what ends it.
fn numeric(digits: &str) -> Option<(char, usize)> {
    let (radix, skip) = if digits.starts_with(['x', 'X']) { (16, 1) } else { (10, 0) };
    let mut value: u32 = 0;
    let mut length = skip;
    for digit in digits[skip..].chars().map_while(|c| c.to_digit(radix)) {
        value = value.saturating_mul(radix).saturating_add(digit);
        length += 1;
    }
    if length == skip {
        return None;
    }
    let character = match value {
        0 => char::REPLACEMENT_CHARACTER,
        0x80..=0x9f => WINDOWS_1252[(value - 0x80) as usize],
        _ => char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER),
    };
    Some((character, length + usize::from(digits.as_bytes().get(length) == Some(&b';'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_in_attributes() {
        let table = [
            ("/a?b=1&amp;c=2", "/a?b=1&c=2"),
            ("/a?b=1&ampc=2", "/a?b=1&ampc=2"),
            ("/a?b&amp", "/a?b&"),
            ("/a?b&copy=1&lt=2", "/a?b&copy=1&lt=2"),
            ("/a?b&copy;1&copy&x", "/a?b©1©&x"),
            ("&#47;&#x2F;&#X2f;&#47x", "////x"),
            ("&#0;&#x110000;&#xD800;&#99999999999999;", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
            ("&#128;&#;&#x;&#xg;", "€&#;&#x;&#xg;"),
            ("&sol;&colon;&num;&apos;&REG;&REG&yuml;", "/:#'®®ÿ"),
            ("&&amp;&unknown;&;& &notit;", "&&&unknown;&;& &notit;"),
            ("a\0b", "a\u{fffd}b"),
        ];
        for (text, expected) in table {
            assert_eq!(decode(Cow::Borrowed(text)), expected, "{text:?}");
        }
    }
}
