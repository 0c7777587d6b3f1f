//! Finds the end of raw text: inside script, style, title and their like, `<` begins no tag.

use super::tag::{StartTag, starts_with_ignoring_case};
use memchr::{memchr, memchr_iter, memchr2_iter};

/// What is inside an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Markup: elements and text.
    Markup,
    /// Text up to the element's end tag.
    Text,
    /// Text that may hide its own end tag in a comment.
    Script,
    /// Text up to the end of the page.
    Plaintext,
}

/// What is inside the element of this name. `noscript` is markup for who runs no scripts.
pub(super) fn kind(tag: &StartTag<'_>) -> Kind {
    let text: &[&[u8]] = match &tag.initials() {
        b"sc" if tag.is(b"script") => return Kind::Script,
        b"pl" if tag.is(b"plaintext") => return Kind::Plaintext,
        b"xm" => &[b"xmp"],
        b"st" => &[b"style"],
        b"ti" => &[b"title"],
        b"if" => &[b"iframe"],
        b"te" => &[b"textarea"],
        b"no" => &[b"noembed", b"noframes"],
        _ => return Kind::Markup,
    };
    if text.iter().any(|name| tag.is(name)) { Kind::Text } else { Kind::Markup }
}

/// How long the raw text is, up to the `<` of the end tag or the end of the page.
pub(super) fn length(kind: Kind, name: &[u8], text: &[u8]) -> usize {
    match kind {
        Kind::Markup => 0,
        Kind::Text => memchr_iter(b'<', text).find(|&at| is_end_tag(&text[at..], name)).unwrap_or(text.len()),
        Kind::Script => script_length(text),
        Kind::Plaintext => text.len(),
    }
}

/// Whether `</name` stands here, and the name ends.
fn is_end_tag(text: &[u8], name: &[u8]) -> bool {
    text.get(1) == Some(&b'/') && starts_with_ignoring_case(&text[2..], name) && ends_name(text.get(2 + name.len()))
}

fn ends_name(byte: Option<&u8>) -> bool {
    byte.is_some_and(|byte| matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | 0x0c | b'/' | b'>'))
}

/// The script data states: behind `<!--`, a `<script` hides the next `</script`, until `-->`.
fn script_length(text: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let Some(open) = memchr(b'<', &text[at..]).map(|found| at + found) else { return text.len() };
        if is_end_tag(&text[open..], b"script") {
            return open;
        }
        if !text[open..].starts_with(b"<!--") {
            at = open + 1;
            continue;
        }
        // The dashes that begin the comment may also end it: `<!-->`.
        match in_comment(text, open + 2) {
            InComment::EndTag(open) => return open,
            InComment::Behind(behind) => at = behind,
        }
    }
}

/// Where a comment in a script leads to.
enum InComment {
    /// To the end tag of the script, which begins here.
    EndTag(usize),
    /// To what stands behind it.
    Behind(usize),
}

/// Walks over a comment once, and no further than to an end tag in it: another script may begin behind that, and a comment in it.
fn in_comment(text: &[u8], from: usize) -> InComment {
    let mut hidden = false;
    for at in memchr2_iter(b'<', b'>', &text[from..]).map(|found| from + found) {
        if text[at] == b'>' {
            if text[from..at].ends_with(b"--") {
                return InComment::Behind(at + 1);
            }
        } else if is_end_tag(&text[at..], b"script") {
            if !hidden {
                return InComment::EndTag(at);
            }
            hidden = false;
        } else if starts_with_ignoring_case(&text[at..], b"<script") && ends_name(text.get(at + 7)) {
            hidden = true;
        }
    }
    InComment::Behind(text.len())
}
