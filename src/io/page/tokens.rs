//! Where are the start tags? A walk from `<` to `<` that knows comments, raw text and quoted attributes.

use super::{attributes::Attributes, raw_text};
use memchr::{memchr, memchr_iter, memchr3};

/// A start tag, in its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StartTag<'a> {
    /// The element's name, in the case it was written.
    pub name: &'a [u8],
    /// Everything between the name and the closing `>`.
    pub inside: &'a [u8],
}

impl StartTag<'_> {
    /// Whether the element is called `name` (lower case).
    pub(super) fn is(&self, name: &[u8]) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// The start tags of a page, in order. Text that the tokenizer of the HTML standard would take for text, comments, end tags
/// and raw text is walked over.
pub(super) struct StartTags<'a> {
    bytes: &'a [u8],
    at: usize,
    /// How many `svg` and `math` elements are open: inside, a tag that closes itself has no raw text.
    foreign: usize,
}

impl<'a> StartTags<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> StartTags<'a> {
        StartTags { bytes, at: 0, foreign: 0 }
    }

    /// Moves behind the next `>` at or after `from`, or to the end.
    fn skip_to_close(&mut self, from: usize) {
        self.at = memchr(b'>', &self.bytes[from..]).map_or(self.bytes.len(), |at| from + at + 1);
    }

    /// Reads a tag whose name begins at `start`; none if the page ends inside. Moves behind it.
    fn tag(&mut self, start: usize) -> Option<StartTag<'a>> {
        let rest = &self.bytes[start..];
        let Some(name_end) = rest.iter().position(|byte| matches!(byte, b'>' | b'/' | b' ' | b'\n' | b'\t' | b'\r' | 0x0c)) else {
            self.at = self.bytes.len();
            return None;
        };
        let Some(length) = tag_end(&rest[name_end..]) else {
            self.at = self.bytes.len();
            return None;
        };
        self.at = start + name_end + length + 1;
        Some(StartTag { name: &rest[..name_end], inside: &rest[name_end..name_end + length] })
    }

    /// Behind a comment whose text begins at `from`.
    fn skip_comment(&mut self, from: usize) {
        let rest = &self.bytes[from..];
        let length = if rest.starts_with(b">") {
            Some(1)
        } else if rest.starts_with(b"->") {
            Some(2)
        } else {
            memchr_iter(b'>', rest).find(|&at| rest[..at].ends_with(b"--") || rest[..at].ends_with(b"--!")).map(|at| at + 1)
        };
        self.at = length.map_or(self.bytes.len(), |length| from + length);
    }

    /// What a start tag changes for what follows.
    fn opened(&mut self, tag: &StartTag<'a>) {
        let closes_itself = || Attributes::new(tag.inside).self_closing();
        match raw_text::kind(tag.name) {
            raw_text::Kind::Markup if tag.is(b"svg") || tag.is(b"math") => self.foreign += usize::from(!closes_itself()),
            raw_text::Kind::Markup => {}
            _ if self.foreign > 0 && closes_itself() => {}
            kind => self.at += raw_text::length(kind, tag.name, &self.bytes[self.at..]),
        }
    }
}

impl<'a> Iterator for StartTags<'a> {
    type Item = StartTag<'a>;

    fn next(&mut self) -> Option<StartTag<'a>> {
        loop {
            let open = self.at + memchr(b'<', &self.bytes[self.at..])?;
            match self.bytes.get(open + 1)? {
                letter if letter.is_ascii_alphabetic() => {
                    let tag = self.tag(open + 1)?;
                    self.opened(&tag);
                    return Some(tag);
                }
                b'/' => match self.bytes.get(open + 2)? {
                    letter if letter.is_ascii_alphabetic() => {
                        let tag = self.tag(open + 2)?;
                        if tag.is(b"svg") || tag.is(b"math") {
                            self.foreign = self.foreign.saturating_sub(1);
                        }
                    }
                    _ => self.skip_to_close(open + 2),
                },
                b'!' if self.bytes[open + 2..].starts_with(b"--") => self.skip_comment(open + 4),
                b'!' | b'?' => self.skip_to_close(open + 2),
                _ => self.at = open + 1,
            }
        }
    }
}

/// Where the `>` is that closes a tag: the first one that no quoted attribute value hides.
fn tag_end(inside: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr3(b'>', b'"', b'\'', &inside[from..])?;
        let quote = inside[at];
        if quote == b'>' {
            return Some(at);
        }
        // Nearly all quotes stand in `name="value"`; whatever is odder is read attribute by attribute, from the start.
        if !opens_value(&inside[from..at]) {
            break;
        }
        from = at + 2 + memchr(quote, &inside[at + 1..])?;
    }
    let mut attributes = Attributes::new(inside);
    while attributes.next().is_some() {}
    attributes.closed_at()
}

/// Whether a quote behind these bytes, which begin outside of any value, surely opens a value: they end in ` name=`, and
/// what stands before is not the `=` of an attribute that still waits for its value.
fn opens_value(before: &[u8]) -> bool {
    let Some(rest) = before.strip_suffix(b"=") else { return false };
    let name = rest.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':')).count();
    let rest = &rest[..rest.len() - name];
    let gap = rest.trim_ascii_end();
    name > 0 && gap.len() < rest.len() && gap.last() != Some(&b'=')
}

/// Finds a text without regard to case; `needle` is in lower case and begins with `<`.
pub(super) fn starts_with_ignoring_case(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.len() >= needle.len() && bytes[..needle.len()].eq_ignore_ascii_case(needle)
}
