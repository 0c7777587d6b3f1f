//! Comparison of a page with its version of the run before: the server's validators, and a number computed from the content.

use serde::{Deserialize, Serialize};

/// The longest `ETag` or `Last-Modified` that is kept, in bytes; a longer one counts as none.
pub const MAX_VALIDATOR: usize = 200;

/// What a server said about the version of a page that it sent, as it said it: the next request names it (RFC 9110 §8.8).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Validators {
    /// `ETag`, weak or strong, with its quotes.
    pub etag: Option<String>,
    /// The `Last-Modified` header, byte for byte as it was sent.
    pub last_modified: Option<String>,
}

impl Validators {
    /// Whether nothing was said: then nothing can be asked conditionally.
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }

    /// These, and where they say nothing, what was said before.
    pub fn or(&self, before: &Validators) -> Validators {
        if self.is_empty() { before.clone() } else { self.clone() }
    }
}

/// What became of a page since the run before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It was no page then, or not known.
    New,
    /// Its content is another.
    Changed,
    /// It was downloaded again and is the same.
    Unchanged,
    /// The server said that it is the same; nothing was downloaded.
    NotModified,
    /// It was a page then, and could not be had now.
    Missed,
}

/// A number that two bodies share only if they are the same, but for one chance in 2^64: by folded multiplications, because it is
/// taken of every page and only accidental collisions matter.
pub fn content_of(body: &[u8]) -> u64 {
    const SEEDS: [u64; 4] = [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0xd6e8_feb8_6659_fd93];
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        (product as u64) ^ (product >> 64) as u64
    };
    // Four at a time: each multiplication waits for the one before it in its lane.
    let mut lanes = SEEDS;
    let mut take = |chunk: &[u8; 64]| {
        let word = |at: usize| chunk[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        for (number, lane) in lanes.iter_mut().enumerate() {
            *lane = fold(*lane ^ word(16 * number), SEEDS[(number + 1) % 4] ^ word(16 * number + 8));
        }
    };
    let (chunks, rest) = body.as_chunks::<64>();
    chunks.iter().for_each(&mut take);
    let mut last = [0; 64];
    last[..rest.len()].copy_from_slice(rest);
    take(&last);
    let halves = [fold(lanes[0], lanes[1] ^ SEEDS[0]), fold(lanes[2], lanes[3] ^ SEEDS[1])];
    // 0 means "not noted".
    fold(fold(halves[0], halves[1] ^ SEEDS[2]) ^ body.len() as u64, SEEDS[3]).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn any_changed_byte_and_any_length_changes_what_content_is_said_to_be() {
        let body: Vec<u8> = (1..200u8).collect();
        let mut met = BTreeSet::from([content_of(&body)]);
        for at in 0..body.len() {
            for bit in 0..8 {
                let mut other = body.clone();
                other[at] ^= 1 << bit;
                assert!(met.insert(content_of(&other)), "byte {at}, bit {bit}");
            }
        }
        for length in 0..199 {
            assert!(met.insert(content_of(&vec![0; length])) && (length == 0 || met.insert(content_of(&body[..length]))), "{length}");
        }
        assert_eq!(content_of(&body), content_of(&body.clone()));
    }
}
