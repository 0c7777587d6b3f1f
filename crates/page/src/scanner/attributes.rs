//! Attributes of a tag, as the HTML standard's tokenizer reads them, without copying.

use memchr::{memchr, memchr2};

/// The attributes of a tag: `inside` begins behind its name, and may reach beyond its `>`.
#[derive(Clone, Debug)]
pub(crate) struct Attributes<'a> {
    inside: &'a [u8],
    at: usize,
    closed_at: Option<usize>,
    self_closing: bool,
}

/// One attribute: name as written, value as written with its character references, without quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attribute<'a> {
    pub name: &'a [u8],
    pub value: &'a [u8],
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | 0x0c)
}

/// Whether a byte ends the name of an attribute.
const ENDS_NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = matches!(byte as u8, b' ' | b'\n' | b'\t' | b'\r' | 0x0c | b'/' | b'>' | b'=');
        byte += 1;
    }
    table
};

impl<'a> Attributes<'a> {
    pub(super) fn new(inside: &'a [u8]) -> Attributes<'a> {
        Attributes { inside, at: 0, closed_at: None, self_closing: false }
    }

    /// After the last attribute: where the tag's `>` is, if there is one.
    pub(super) fn closed_at(&self) -> Option<usize> {
        self.closed_at
    }

    /// Whether the tag, whose bytes end before its `>`, ends in `/` (and not in a value that does).
    pub(super) fn self_closing(mut self) -> bool {
        if self.inside.last() != Some(&b'/') {
            return false;
        }
        while self.next().is_some() {}
        self.self_closing
    }

    /// The value of an attribute (name in lower case), the first if there are several.
    pub(super) fn get<const N: usize>(self, name: &[u8; N]) -> Option<&'a [u8]> {
        let mut all = self;
        if let Some(value) = all.plain_first(name) {
            return Some(value);
        }
        all.find(|attribute| attribute.name.len() == N && attribute.name.eq_ignore_ascii_case(name)).map(|attribute| attribute.value)
    }

    /// The value of the attribute, if it is the first and written as nearly all are: ` name="value"`.
    fn plain_first<const N: usize>(&self, name: &[u8; N]) -> Option<&'a [u8]> {
        let (written, value) = self.inside.get(self.at..)?.strip_prefix(b" ")?.split_first_chunk::<N>()?;
        let value = value.strip_prefix(b"=\"").filter(|_| written == name)?;
        memchr(b'"', value).map(|length| &value[..length])
    }

    fn byte(&self) -> Option<u8> {
        self.inside.get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while self.byte().is_some_and(is_space) {
            self.at += 1;
        }
    }

    /// Moves to the first byte that `stop` holds for, and returns what was passed.
    fn until(&mut self, stop: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = &self.inside[self.at..];
        let length = rest.iter().position(|&byte| stop(byte)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Attribute<'a>;

    fn next(&mut self) -> Option<Attribute<'a>> {
        if self.closed_at.is_some() {
            return None;
        }
        loop {
            match self.byte() {
                Some(b'>') => {
                    self.closed_at = Some(self.at);
                    return None;
                }
                None => return None,
                Some(b'/') => self.self_closing = true,
                Some(byte) if is_space(byte) => self.self_closing = false,
                Some(_) => break,
            }
            self.at += 1;
        }
        self.self_closing = false;
        // A name may begin with `=`, but not contain it.
        let start = self.at;
        self.at += 1;
        self.until(|byte| ENDS_NAME[usize::from(byte)]);
        let name = &self.inside[start..self.at];
        self.skip_spaces();
        if self.byte() != Some(b'=') {
            return Some(Attribute { name, value: b"" });
        }
        self.at += 1;
        self.skip_spaces();
        let value = match self.byte() {
            Some(quote @ (b'"' | b'\'')) => {
                let rest = &self.inside[self.at + 1..];
                let Some(length) = memchr(quote, rest) else {
                    // The page ends inside the value: there is no tag.
                    self.at = self.inside.len();
                    return None;
                };
                self.at += length + 2;
                &rest[..length]
            }
            Some(b'>') | None => b"",
            Some(_) => self.until(|byte| is_space(byte) || byte == b'>'),
        };
        Some(Attribute { name, value })
    }
}

/// The part of a reference before its fragment, if that can be told without decoding it.
pub(super) fn without_fragment(value: &[u8]) -> &[u8] {
    match memchr2(b'#', b'&', value) {
        Some(at) if value[at] == b'#' => &value[..at],
        // `&#38;` has a `#` too, so what follows an `&` is left alone.
        _ => value,
    }
}
