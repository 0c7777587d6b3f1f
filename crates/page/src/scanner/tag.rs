//! A start tag: its name and its attributes, read in place.

use super::attributes::Attributes;

/// A start tag, in its bytes: everything between its `<` and the closing `>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StartTag<'a>(pub(crate) &'a [u8]);

impl<'a> StartTag<'a> {
    /// The element's name, in the case it was written.
    pub(crate) fn name(&self) -> &'a [u8] {
        &self.0[..name_end(self.0).unwrap_or(self.0.len())]
    }

    /// Everything behind the name.
    pub(crate) fn attributes(&self) -> Attributes<'a> {
        Attributes::new(&self.0[self.name().len()..])
    }

    /// Whether the element is called `name` (lower case).
    pub(crate) fn is(&self, name: &[u8]) -> bool {
        starts_with_ignoring_case(self.0, name) && self.0.get(name.len()).is_none_or(|byte| ENDS_NAME[usize::from(*byte)])
    }

    /// The first two letters of the name in lower case (the second may be no letter): tells most elements apart at once.
    pub(super) fn initials(&self) -> [u8; 2] {
        [self.0.first().map_or(0, u8::to_ascii_lowercase), self.0.get(1).map_or(0, u8::to_ascii_lowercase)]
    }
}

/// Whether a byte ends the name of an element.
pub(super) const ENDS_NAME: [bool; 256] = {
    let mut table = [false; 256];
    let ends = b">/ \n\t\r\x0c";
    let mut at = 0;
    while at < ends.len() {
        table[ends[at] as usize] = true;
        at += 1;
    }
    table
};

/// Where the name ends with which these bytes begin; none if the bytes end before.
pub(super) fn name_end(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| ENDS_NAME[usize::from(*byte)])
}

/// Finds a text without regard to case; `needle` is in lower case and begins with `<`.
pub(super) fn starts_with_ignoring_case(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.len() >= needle.len() && bytes[..needle.len()].eq_ignore_ascii_case(needle)
}
