//! Finds start tags: a walk from tag to tag that knows comments, raw text and quoted attributes.

use super::{
    attributes::Attributes,
    blocks::{self, BLOCK, Carry},
    raw_text,
    tag::{ENDS_NAME, StartTag, name_end},
};
use memchr::{memchr, memchr_iter};

/// The start tags of a page that callers look at, in order, and some others. What the HTML standard's tokenizer takes for text, comments,
/// end tags or raw text is skipped.
///
/// Plain tags are found a block at a time, whatever is not plain is read by hand until the next block begins.
pub(crate) struct StartTags<'a> {
    bytes: &'a [u8],
    /// All before is dealt with, but for what is left of the block and the open tag.
    at: usize,
    /// What begins before is read by hand.
    by_hand: usize,
    block: usize,
    /// Of the block: where start tags begin that were not looked at yet, and where tags end.
    starts: u64,
    ends: u64,
    carry: Carry,
    /// Where the last tag begins, if its block does not have its end.
    open: usize,
    /// Where the tag begins that an earlier block left open and this one ends.
    ended: Option<usize>,
    /// How many `svg` and `math` elements are open: inside, a tag that closes itself has no raw text. All is read by hand there.
    foreign: usize,
    /// The most attributes of a tag that is not told.
    untold: usize,
}

/// Tags that are not told, and are not longer than this in bytes, are not asked for their attributes.
const SHORT: usize = 512;

impl<'a> StartTags<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> StartTags<'a> {
        let carry = Carry::default();
        StartTags { bytes, at: 0, by_hand: 0, block: 0, starts: 0, ends: 0, carry, open: 0, ended: None, foreign: 0, untold: 0 }
    }

    /// All start tags, also those that only a tree is built of: slower.
    pub(crate) fn every(bytes: &'a [u8]) -> StartTags<'a> {
        StartTags { by_hand: usize::MAX, ..StartTags::new(bytes) }
    }

    /// The most attributes that a long tag had which is no start tag: an end tag, or one that the page ends in. Of those that were
    /// read by hand.
    pub(crate) fn most_untold_attributes(&self) -> usize {
        self.untold
    }

    fn leave_untold(&mut self, tag: &'a [u8]) {
        if tag.len() > SHORT {
            self.untold = self.untold.max(StartTag(tag).attributes().count());
        }
    }

    /// The next start tag of the block that matters, and what is behind it.
    fn in_block(&mut self) -> Option<(StartTag<'a>, usize)> {
        loop {
            let (begin, ends) = match self.ended.take() {
                Some(begin) => (begin, self.ends),
                None if self.starts == 0 => return None,
                None => {
                    let bit = self.starts.trailing_zeros();
                    self.starts &= self.starts - 1;
                    (self.block + bit as usize, self.ends & u64::MAX << bit)
                }
            };
            let start = begin + 1;
            if ends != 0 && matters(&self.bytes[start..]) {
                let end = self.block + ends.trailing_zeros() as usize;
                return Some((StartTag(&self.bytes[start..end]), end + 1));
            }
        }
    }

    /// Finds the tags of the next block.
    fn next_block(&mut self) {
        let (block, from) = (self.at / BLOCK * BLOCK, self.at % BLOCK);
        let rest = &self.bytes[block..];
        let mut last = [0; BLOCK + 2];
        let piece = rest.first_chunk().unwrap_or_else(|| {
            last[..rest.len()].copy_from_slice(rest);
            &last
        });
        let was_open = self.carry.in_tag();
        let Some(tags) = blocks::tags(piece, from, &mut self.carry) else {
            self.go_on(if was_open { self.open } else { self.at });
            self.by_hand = block + BLOCK;
            return;
        };
        (self.block, self.starts, self.ends) = (block, tags.starts, tags.ends);
        if was_open && tags.ends != 0 {
            self.ended = Some(self.open);
        }
        if tags.begins != 0 {
            self.open = block + tags.begins.ilog2() as usize;
        }
        self.at = block + tags.upto;
        if tags.upto < BLOCK {
            self.by_hand = self.at + 1;
            self.carry = Carry::default();
        }
    }

    /// Forgets what else is in the block, and goes on outside of all tags.
    fn go_on(&mut self, at: usize) {
        (self.at, self.starts, self.ended, self.carry) = (at, 0, None, Carry::default());
    }

    /// Reads what begins at the next `<`: a start tag, or else something else.
    fn read(&mut self) -> Option<(StartTag<'a>, usize)> {
        let open = self.at + memchr(b'<', &self.bytes[self.at..])?;
        match self.bytes.get(open + 1)? {
            letter if letter.is_ascii_alphabetic() => {
                let tag = self.tag(open + 1)?;
                return Some((tag, self.at));
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
            // The last one of many in a row is the one that may begin something.
            b'<' => {
                let rest = &self.bytes[open + 1..];
                self.at = open + rest.iter().position(|byte| *byte != b'<').unwrap_or(rest.len());
            }
            _ => self.at = open + 1,
        }
        None
    }

    /// Moves behind the next `>` at or after `from`, or to the end.
    fn skip_to_close(&mut self, from: usize) {
        self.at = memchr(b'>', &self.bytes[from..]).map_or(self.bytes.len(), |at| from + at + 1);
    }

    /// Reads a tag whose name begins at `start`; none if the page ends inside. Moves behind it.
    fn tag(&mut self, start: usize) -> Option<StartTag<'a>> {
        let Some(length) = tag_length(&self.bytes[start..]) else {
            self.leave_untold(&self.bytes[start..]);
            return None;
        };
        let end = start + length;
        self.at = end + 1;
        Some(StartTag(&self.bytes[start..end]))
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

    /// What a start tag changes for what follows behind it.
    fn opened(&mut self, tag: &StartTag<'a>, behind: usize) {
        // Nearly all that are asked for.
        if tag.is(b"a") {
            return;
        }
        let closes_itself = || tag.attributes().self_closing();
        match raw_text::kind(tag) {
            raw_text::Kind::Markup if !is_foreign(tag) || closes_itself() => {}
            raw_text::Kind::Markup => {
                self.foreign += 1;
                self.go_on(behind);
            }
            _ if self.foreign > 0 && closes_itself() => {}
            kind => self.go_on(behind + raw_text::length(kind, tag.name(), &self.bytes[behind..])),
        }
    }
}

impl<'a> Iterator for StartTags<'a> {
    type Item = StartTag<'a>;

    fn next(&mut self) -> Option<StartTag<'a>> {
        loop {
            let mut found = self.in_block();
            if found.is_none() {
                if self.at >= self.bytes.len() {
                    return None;
                }
                if self.foreign == 0 && self.at >= self.by_hand {
                    self.next_block();
                    continue;
                }
                let from = self.at;
                found = self.read();
                if found.is_none() && self.at == from {
                    // No `<` follows, or the page ends in what it begins.
                    self.at = self.bytes.len();
                }
            }
            if let Some((tag, behind)) = found {
                self.opened(&tag, behind);
                return Some(tag);
            }
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

/// Whether the element that is named here may be one that anybody asks for: all are let through that are, and few others.
fn matters(name: &[u8]) -> bool {
    let Some([first, second, third]) = name.first_chunk() else { return true };
    let (seconds, thirds) = THAT_MATTER[usize::from(first % 32)];
    seconds >> (second % 32) & thirds >> (third % 32) & 1 == 1
}

/// The elements that anybody asks for, by `StartTags` itself among them.
pub(super) const ASKED_FOR: [&str; 17] = [
    "a",
    "area",
    "base",
    "frame",
    "iframe",
    "link",
    "meta",
    "math",
    "noembed",
    "noframes",
    "plaintext",
    "script",
    "style",
    "svg",
    "textarea",
    "title",
    "xmp",
];

/// By the first letter of a name, which second and third ones matter, one bit each. Cases are not told apart, nor letters from some signs.
const THAT_MATTER: [(u32, u32); 32] = {
    let mut table = [(0, 0); 32];
    // All but `a` itself: behind it stands what ends a name, and behind that anything.
    let mut at = 1;
    while at < ASKED_FOR.len() {
        let name = ASKED_FOR[at].as_bytes();
        let (seconds, thirds) = &mut table[(name[0] % 32) as usize];
        *seconds |= 1 << (name[1] % 32);
        *thirds |= 1 << (name[2] % 32);
        at += 1;
    }
    let (seconds, thirds) = &mut table[(b'a' % 32) as usize];
    let mut at = 0;
    while at < ENDS_NAME.len() {
        if ENDS_NAME[at] {
            *seconds |= 1 << (at % 32);
        }
        at += 1;
    }
    *thirds = u32::MAX;
    table
};

/// How far the `>` is that closes a tag, by reading all its attributes; none if the page ends before.
fn tag_length(tag: &[u8]) -> Option<usize> {
    let name_end = name_end(tag)?;
    let mut attributes = Attributes::new(&tag[name_end..]);
    while attributes.next().is_some() {}
    attributes.closed_at().map(|at| name_end + at)
}
