//! Where are the start tags? A walk from `<` to `<` that knows comments, raw text and quoted attributes.

use super::{attributes::Attributes, marks::Marks, raw_text};
use memchr::{memchr, memchr_iter};

/// A start tag, in its bytes: everything between its `<` and the closing `>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::io) struct StartTag<'a>(pub(super) &'a [u8]);

impl<'a> StartTag<'a> {
    /// The element's name, in the case it was written.
    pub(super) fn name(&self) -> &'a [u8] {
        &self.0[..name_end(self.0).unwrap_or(self.0.len())]
    }

    /// Everything behind the name.
    pub(in crate::io) fn attributes(&self) -> Attributes<'a> {
        Attributes::new(&self.0[self.name().len()..])
    }

    /// Whether the element is called `name` (lower case).
    pub(in crate::io) fn is(&self, name: &[u8]) -> bool {
        starts_with_ignoring_case(self.0, name) && self.0.get(name.len()).is_none_or(|byte| ENDS_NAME[usize::from(*byte)])
    }

    /// The first two letters of the name in lower case (the second may be no letter): tells most elements apart at once.
    pub(super) fn initials(&self) -> [u8; 2] {
        [self.0.first().map_or(0, u8::to_ascii_lowercase), self.0.get(1).map_or(0, u8::to_ascii_lowercase)]
    }
}

/// Whether a byte ends the name of an element.
const ENDS_NAME: [bool; 256] = {
    let mut table = [false; 256];
    let ends = b">/ \n\t\r\x0c";
    let mut at = 0;
    while at < ends.len() {
        table[ends[at] as usize] = true;
        at += 1;
    }
    table
};

fn name_end(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| ENDS_NAME[usize::from(*byte)])
}

/// The start tags of a page, in order. Text that the tokenizer of the HTML standard would take for text, comments, end tags
/// and raw text is walked over.
pub(in crate::io) struct StartTags<'a> {
    bytes: &'a [u8],
    marks: Marks<'a>,
    at: usize,
    /// How many `svg` and `math` elements are open: inside, a tag that closes itself has no raw text.
    foreign: usize,
    /// The most attributes of a tag that is not told.
    untold: usize,
}

/// Tags that are not told, and are not longer than this in bytes, are not asked for their attributes.
const SHORT: usize = 512;

impl<'a> StartTags<'a> {
    pub(in crate::io) fn new(bytes: &'a [u8]) -> StartTags<'a> {
        StartTags { bytes, marks: Marks::new(bytes), at: 0, foreign: 0, untold: 0 }
    }

    /// The most attributes that a long tag had which is no start tag: an end tag, or one that the page ends in.
    pub(in crate::io) fn most_untold_attributes(&self) -> usize {
        self.untold
    }

    fn leave_untold(&mut self, tag: &'a [u8]) {
        if tag.len() > SHORT {
            self.untold = self.untold.max(StartTag(tag).attributes().count());
        }
    }

    /// The next place at or after `from` where `wanted` stands.
    #[inline]
    fn find(&mut self, wanted: u8, from: usize) -> Option<usize> {
        let mut place = self.marks.next_from(from)?;
        while self.bytes[place] != wanted {
            place = self.marks.next_from(place + 1)?;
        }
        Some(place)
    }

    /// Moves behind the next `>` at or after `from`, or to the end.
    fn skip_to_close(&mut self, from: usize) {
        self.at = memchr(b'>', &self.bytes[from..]).map_or(self.bytes.len(), |at| from + at + 1);
    }

    /// Reads a tag whose name begins at `start`; none if the page ends inside. Moves behind it.
    fn tag(&mut self, start: usize) -> Option<StartTag<'a>> {
        let Some(end) = self.tag_end(start) else {
            self.leave_untold(&self.bytes[start..]);
            self.at = self.bytes.len();
            return None;
        };
        self.at = end + 1;
        Some(StartTag(&self.bytes[start..end]))
    }

    /// Where the `>` is that closes a tag: the first one that no quoted attribute value hides.
    fn tag_end(&mut self, start: usize) -> Option<usize> {
        let (mut from, mut place) = (start, self.marks.next_from(start)?);
        loop {
            match self.bytes[place] {
                b'>' => return Some(place),
                b'<' => place = self.marks.next_from(place + 1)?,
                // Nearly all quotes stand in `name="value"`; whatever is odder is read attribute by attribute, from the start.
                _ if !opens_value(&self.bytes[from..place]) => return odd_tag_end(&self.bytes[start..]).map(|length| start + length),
                quote => {
                    from = self.find(quote, place + 1)? + 1;
                    place = self.marks.next_from(from)?;
                }
            }
        }
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
        let closes_itself = || tag.attributes().self_closing();
        match raw_text::kind(tag) {
            raw_text::Kind::Markup if is_foreign(tag) => self.foreign += usize::from(!closes_itself()),
            raw_text::Kind::Markup => {}
            _ if self.foreign > 0 && closes_itself() => {}
            kind => self.at += raw_text::length(kind, tag.name(), &self.bytes[self.at..]),
        }
    }
}

fn is_foreign(tag: &StartTag<'_>) -> bool {
    match tag.initials() {
        [b's', b'v'] => tag.is(b"svg"),
        [b'm', b'a'] => tag.is(b"math"),
        _ => false,
    }
}

impl<'a> Iterator for StartTags<'a> {
    type Item = StartTag<'a>;

    fn next(&mut self) -> Option<StartTag<'a>> {
        loop {
            let open = self.find(b'<', self.at)?;
            match self.bytes.get(open + 1)? {
                letter if letter.is_ascii_alphabetic() => {
                    let tag = self.tag(open + 1)?;
                    self.opened(&tag);
                    return Some(tag);
                }
                b'/' => match self.bytes.get(open + 2)? {
                    letter if letter.is_ascii_alphabetic() => {
                        let tag = self.tag(open + 2)?;
                        self.leave_untold(tag.0);
                        if self.foreign > 0 && is_foreign(&tag) {
                            self.foreign -= 1;
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

/// How far the `>` is that closes a tag, by reading all its attributes.
fn odd_tag_end(tag: &[u8]) -> Option<usize> {
    let name_end = name_end(tag)?;
    let mut attributes = Attributes::new(&tag[name_end..]);
    while attributes.next().is_some() {}
    attributes.closed_at().map(|at| name_end + at)
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
