//! Digests of the first rows of a journal.
//!
//! Two copies are compared by digests, so that only those rows are sent that differ or are missing.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Journals in one comparison.
pub const MAX_JOURNALS_COMPARED: usize = 64;

/// Places at which one journal is compared, at most.
pub const MAX_PLACES: usize = 16;

/// How many rows less the second place has than the first, and by how many times more each further one.
const STEP: u64 = 4;

/// A digest of the first rows of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RowsDigest(pub [u8; 16]);

/// How many rows there are at each place, and their digest.
pub type Digests = Vec<(u64, RowsDigest)>;

/// Copies mostly differ near their ends, where an owner wrote rows of which not all members heard. So all rows are compared, and all but the
/// last 4, 16, 64 and so on.
fn places(rows: u64) -> Vec<u64> {
    let fewer = std::iter::successors(Some(STEP), |step| step.checked_mul(STEP)).map_while(|step| rows.checked_sub(step));
    std::iter::once(rows).chain(fewer).filter(|place| *place > 0).take(MAX_PLACES).collect()
}

/// Digests of the first rows, row by row.
#[derive(Debug, Default)]
struct Chain {
    rows: u64,
    digest: [u8; 32],
}

impl Chain {
    fn add(&mut self, entry: &[u8]) {
        // What stands before has always the same length, so rows cannot be divided in another way.
        self.digest = Sha256::new().chain_update(self.digest).chain_update(entry).finalize().into();
        self.rows += 1;
    }

    fn digest(&self) -> RowsDigest {
        RowsDigest(*self.digest.first_chunk().unwrap_or(&[0; 16]))
    }
}

/// What is told of a copy, whose rows are added one by one from the first on.
#[derive(Debug)]
pub struct Told {
    places: Vec<u64>,
    chain: Chain,
    digests: Digests,
}

impl Told {
    /// Of a copy with so many rows.
    pub fn of(rows: u64) -> Told {
        Told { places: places(rows), chain: Chain::default(), digests: Digests::new() }
    }

    /// The next row.
    pub fn add(&mut self, entry: &[u8]) {
        self.chain.add(entry);
        if self.places.contains(&self.chain.rows) {
            self.digests.push((self.chain.rows, self.chain.digest()));
        }
    }

    /// All that is told.
    pub fn digests(self) -> Digests {
        self.digests
    }
}

/// How much of our own copy another one has, of which this was told.
#[derive(Debug)]
pub struct InCommon {
    told: Digests,
    chain: Chain,
    rows: u64,
}

impl InCommon {
    /// Of a copy of which this was told.
    pub fn with(mut told: Digests) -> InCommon {
        told.truncate(MAX_PLACES);
        InCommon { told, chain: Chain::default(), rows: 0 }
    }

    /// How many of our rows are to be added.
    pub fn wanted(&self) -> u64 {
        self.told.iter().map(|(rows, _)| *rows).max().unwrap_or(0)
    }

    /// Our next row.
    pub fn add(&mut self, entry: &[u8]) {
        self.chain.add(entry);
        if self.told.contains(&(self.chain.rows, self.chain.digest())) {
            self.rows = self.chain.rows;
        }
    }

    /// So many of the first rows are the same for sure.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(numbers: impl Iterator<Item = u32>) -> Vec<[u8; 4]> {
        numbers.map(u32::to_be_bytes).collect()
    }

    fn digests<'a>(rows: u64, entries: impl IntoIterator<Item = &'a [u8]>) -> Digests {
        let mut told = Told::of(rows);
        entries.into_iter().take(rows as usize).for_each(|entry| told.add(entry));
        told.digests()
    }

    #[test]
    fn a_copy_that_breaks_off_or_goes_on_otherwise_is_taken_up_near_that_place() {
        let ours = rows(0..1_000);
        let told = |theirs: &[[u8; 4]]| digests((theirs.len() as u64).min(1_000), theirs.iter().map(|row| &row[..]));
        let common = |theirs: Vec<[u8; 4]>| {
            let mut common = InCommon::with(told(&theirs));
            ours.iter().take(common.wanted() as usize).for_each(|row| common.add(row));
            common.rows()
        };
        assert_eq!(common(rows(0..1_000)), 1_000);
        assert_eq!(common(rows(0..600)), 600);
        assert_eq!(common(rows((0..600).chain(7..10))), 599, "of the last three rows nothing is told");
        assert_eq!(common(rows((0..600).chain(7..60))), 589);
        assert_eq!(common(rows(0..2_000)), 1_000, "a longer copy");
        assert_eq!(common(rows(1..400)), 0);
        assert_eq!(common(Vec::new()), 0);
        assert!(told(&rows(0..1_000)).len() <= MAX_PLACES);
        assert_eq!(places(3), [3]);
    }

    #[test]
    fn rows_are_not_divided_in_another_way() {
        let (one, other) = ([&b"ab"[..], b"c"], [&b"a"[..], b"bc"]);
        assert_ne!(digests(2, one)[0], digests(2, other)[0]);
    }
}
