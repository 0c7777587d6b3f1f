//! Entry of the seen set for a page: its code and what became of it, in one word.

use nearcrawl_model::{
    fingerprint::Fingerprint,
    seen::{DEEPEST_LEVEL, PageState},
};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// How many bits of a page's fingerprint are remembered: pages of a site are told apart by these.
pub(super) const CODE_BITS: u32 = 56;

/// What became of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Remembered {
    pub(super) level: u8,
    pub(super) state: PageState,
}

impl Remembered {
    /// Six bits of level, two of state.
    pub(super) fn byte(self) -> u8 {
        let state = match self.state {
            PageState::Waiting => 0,
            PageState::Cut => 1,
            PageState::Visited => 2,
        };
        self.level.min(DEEPEST_LEVEL) << 2 | state
    }

    pub(super) fn of(byte: u8) -> Remembered {
        let state = match byte & 3 {
            0 => PageState::Waiting,
            1 => PageState::Cut,
            _ => PageState::Visited,
        };
        Remembered { level: byte >> 2, state }
    }
}

/// The code of a page: uniform within each site, whatever fingerprints are.
pub(super) fn code(site: u64, page: Fingerprint) -> u64 {
    page.scoped(site).0 >> (64 - CODE_BITS)
}

/// A code, and the byte of what became of the page. Entries are equal if their codes are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry(pub(super) u64);

impl Entry {
    pub(super) fn new(code: u64, colour: u8) -> Entry {
        Entry(code << 8 | u64::from(colour))
    }

    pub(super) fn code(self) -> u64 {
        self.0 >> 8
    }

    /// The byte of what became of it.
    pub(super) fn colour(self) -> u8 {
        self.0 as u8
    }

    /// The same with only the first `bits` of its code.
    pub(super) fn cut_to(self, bits: u32) -> Entry {
        let unknown = CODE_BITS - bits;
        Entry::new(self.code() >> unknown << unknown, self.colour())
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.code() == other.code()
    }
}

impl Eq for Entry {}

impl Hash for Entry {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u64(self.code());
    }
}

/// For codes, which are hashes already.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, code: u64) {
        // Hash tables look at the highest bits, too.
        self.0 = code << 8 | code >> (CODE_BITS - 8);
    }
}

pub(super) type AsTheyAre = BuildHasherDefault<AsItIs>;
