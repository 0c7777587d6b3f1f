//! Compact tables of the prefixes while files are read: 20 bytes for an IPv4 prefix, 32 for an IPv6 prefix.

use super::{prefix::Prefix, source::Place};
use std::cmp::{Ordering, Reverse};

/// The kind of file that a prefix comes from; later variants take precedence over earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Origin {
    /// A table of countries.
    Placed,
    /// A table of routes.
    Routed,
    /// A table of nested networks.
    Compiled,
    /// A registry's WHOIS data.
    Registered,
    /// A registry's delegated statistics.
    Delegated,
    Configured,
}

/// All of them, by their numbers.
const ORIGINS: [Origin; 6] = [Origin::Placed, Origin::Routed, Origin::Compiled, Origin::Registered, Origin::Delegated, Origin::Configured];

/// Which statement about a prefix takes precedence: the one with the greater rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub origin: Origin,
    /// YYYYMMDD, 0 unknown.
    pub date: u32,
}

/// How many bits a date has within a packed rank: enough for the year 13,000.
const DATE_BITS: u32 = 27;

impl Rank {
    /// One number with the same order.
    fn packed(self) -> u32 {
        (self.origin as u32) << DATE_BITS | self.date.min((1 << DATE_BITS) - 1)
    }

    fn unpacked(packed: u32) -> Rank {
        let origin = ORIGINS.get((packed >> DATE_BITS) as usize).copied().unwrap_or(Origin::Placed);
        Rank { origin, date: packed & ((1 << DATE_BITS) - 1) }
    }
}

/// A prefix and who holds it; numbers are those of the material around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub prefix: Prefix,
    pub place: Place,
    pub organisation: u32,
    pub rank: Rank,
}

/// An IPv6 address as two halves: aligned to 8 bytes, so that a row takes 32 and not 48.
type Halves = [u64; 2];

#[derive(Clone, Copy, Debug)]
struct Row<A> {
    first: A,
    organisation: u32,
    rank: u32,
    place: Place,
    length: u8,
}

/// Whatever the order in which rows arrive, this one decides which of one prefix is kept: the first.
fn key<A: Copy>(row: &Row<A>) -> (A, u8, Reverse<u32>, u16, u32, [u8; 2]) {
    (row.first, row.length, Reverse(row.rank), row.place.registry, row.organisation, row.place.country)
}

fn keep_first<A: Copy + Ord>(rows: &mut Vec<Row<A>>) {
    rows.sort_unstable_by_key(key);
    rows.dedup_by_key(|row| (row.first, row.length));
}

/// A prefix with its holder, without what was only needed to choose it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub prefix: Prefix,
    pub place: Place,
    pub organisation: u32,
}

fn short(row: &Row<u32>) -> Held {
    let prefix = Prefix { v6: false, first: u128::from(row.first), length: row.length };
    Held { prefix, place: row.place, organisation: row.organisation }
}

fn long(row: &Row<Halves>) -> Held {
    let first = u128::from(row.first[0]) << 64 | u128::from(row.first[1]);
    Held { prefix: Prefix { v6: true, first, length: row.length }, place: row.place, organisation: row.organisation }
}

/// An address as a row has it.
trait Address: Copy + Ord {
    const V6: bool;
    fn number(self) -> u128;
}

impl Address for u32 {
    const V6: bool = false;
    fn number(self) -> u128 {
        self.into()
    }
}

impl Address for Halves {
    const V6: bool = true;
    fn number(self) -> u128 {
        u128::from(self[0]) << 64 | u128::from(self[1])
    }
}

impl<A: Address> Row<A> {
    fn entry(&self) -> Entry {
        let prefix = Prefix { v6: A::V6, first: self.first.number(), length: self.length };
        Entry { prefix, place: self.place, organisation: self.organisation, rank: Rank::unpacked(self.rank) }
    }
}

/// Of rows of one prefix the most believed first; `tie` says which of two that are believed alike.
fn sort_rows<A: Address>(rows: &mut [Row<A>], tie: &impl Fn(&Entry, &Entry) -> Ordering) {
    rows.sort_unstable_by(|a, b| {
        let key = |row: &Row<A>| (row.first, row.length, Reverse(row.rank));
        key(a).cmp(&key(b)).then_with(|| tie(&a.entry(), &b.entry()))
    });
}

/// Calls `settle` for rows of the same prefix, with the one that is kept as the first argument.
fn merge_rows<A: Address>(rows: &mut Vec<Row<A>>, settle: &mut impl FnMut(&mut Entry, &Entry)) {
    rows.dedup_by(|next, kept| {
        let same = (next.first, next.length) == (kept.first, kept.length);
        if same {
            let mut entry = kept.entry();
            settle(&mut entry, &next.entry());
            (kept.place, kept.organisation) = (entry.place, entry.organisation);
        }
        same
    });
}

/// Prefixes in any order, until they are sorted.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    v4: Vec<Row<u32>>,
    v6: Vec<Row<Halves>>,
}

impl Entries {
    pub(crate) fn push(&mut self, entry: Entry) {
        let Entry { prefix: Prefix { v6, first, length }, place, organisation, rank } = entry;
        let rank = rank.packed();
        if v6 {
            self.v6.push(Row { first: [(first >> 64) as u64, first as u64], organisation, rank, place, length });
        } else {
            self.v4.push(Row { first: first as u32, organisation, rank, place, length });
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Changes places and organisations where they lie.
    pub(crate) fn renumber(&mut self, mut change: impl FnMut(&mut Place, &mut u32)) {
        self.v4.iter_mut().for_each(|row| change(&mut row.place, &mut row.organisation));
        self.v6.iter_mut().for_each(|row| change(&mut row.place, &mut row.organisation));
    }

    /// How many of each family there are, for [`Entries::truncate`].
    pub(crate) fn mark(&self) -> (usize, usize) {
        (self.v4.len(), self.v6.len())
    }

    /// Forgets what was pushed since the mark.
    pub(crate) fn truncate(&mut self, (v4, v6): (usize, usize)) {
        self.v4.truncate(v4);
        self.v6.truncate(v6);
    }

    /// Sorts by address, IPv4 first; of one prefix the most believed first, then as `tie` says.
    pub(crate) fn sort_by(&mut self, tie: impl Fn(&Entry, &Entry) -> Ordering) {
        sort_rows(&mut self.v4, &tie);
        sort_rows(&mut self.v6, &tie);
    }

    /// Of sorted entries, keeps the first of each prefix. `settle` may change its place and organisation by each of the others.
    pub(crate) fn merge(&mut self, mut settle: impl FnMut(&mut Entry, &Entry)) {
        merge_rows(&mut self.v4, &mut settle);
        merge_rows(&mut self.v6, &mut settle);
    }

    /// Keeps those for whose index, in the order that they are in, `keep` says so.
    pub(crate) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let mut index = 0..;
        self.v4.retain(|_| index.next().is_some_and(&keep));
        self.v6.retain(|_| index.next().is_some_and(&keep));
    }

    /// All that is known of the entry at an index.
    pub(crate) fn entry(&self, index: usize) -> Entry {
        match self.v4.get(index) {
            Some(row) => row.entry(),
            None => self.v6[index - self.v4.len()].entry(),
        }
    }

    /// Changes place and organisation of the entry at an index.
    pub(crate) fn set(&mut self, index: usize, place: Place, organisation: u32) {
        let shorts = self.v4.len();
        let row = match self.v4.get_mut(index) {
            Some(row) => (&mut row.place, &mut row.organisation),
            None => {
                let row = &mut self.v6[index - shorts];
                (&mut row.place, &mut row.organisation)
            }
        };
        (*row.0, *row.1) = (place, organisation);
    }

    /// Sorts by address, IPv4 first, and keeps the most believed of each prefix. Registries and organisations must be numbered
    /// by name, so that ties are broken alike in any order of the input.
    pub(crate) fn sort(&mut self) {
        keep_first(&mut self.v4);
        keep_first(&mut self.v6);
    }

    /// The entry at an index, in the order that they are in: IPv4 first.
    pub(crate) fn get(&self, index: usize) -> Held {
        match self.v4.get(index) {
            Some(row) => short(row),
            None => long(&self.v6[index - self.v4.len()]),
        }
    }

    /// All entries, IPv4 first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Held> + '_ {
        self.v4.iter().map(short).chain(self.v6.iter().map(long))
    }

    /// How many are IPv6.
    pub(crate) fn long(&self) -> usize {
        self.v6.len()
    }
}

impl Extend<Entry> for Entries {
    fn extend<I: IntoIterator<Item = Entry>>(&mut self, entries: I) {
        entries.into_iter().for_each(|entry| self.push(entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_takes_few_bytes() {
        assert_eq!((size_of::<Row<u32>>(), size_of::<Row<Halves>>()), (20, 32));
    }

    #[test]
    fn packed_ranks_keep_their_order() {
        let ranks = ORIGINS.into_iter().flat_map(|origin| [0, 1, 19_830_101, 99_991_231].map(|date| Rank { origin, date }));
        let ranks: Vec<Rank> = ranks.collect();
        assert!(ranks.is_sorted());
        assert!(ranks.iter().all(|rank| Rank::unpacked(rank.packed()) == *rank));
        assert!(ranks.windows(2).all(|w| w[0].packed() < w[1].packed()));
        let beyond = Rank { origin: Origin::Routed, date: u32::MAX };
        assert!(beyond.packed() < Rank { origin: Origin::Delegated, date: 0 }.packed(), "an absurd date is not another origin");
    }

    #[test]
    fn sorting_keeps_the_most_believed_of_each_prefix() {
        let entry = |v6, first, length, organisation, date| Entry {
            prefix: Prefix { v6, first, length },
            place: Place { registry: 0, country: *b"KE" },
            organisation,
            rank: Rank { origin: Origin::Delegated, date },
        };
        let mut entries = Entries::default();
        entries.extend([
            entry(true, 1 << 100, 28, 5, 0),
            entry(false, 512, 24, 2, 1),
            entry(false, 0, 8, 3, 7),
            entry(false, 512, 24, 1, 2),
        ]);
        entries.sort();
        let kept: Vec<(u128, u32)> = entries.iter().map(|h| (h.prefix.first, h.organisation)).collect();
        assert_eq!(kept, [(0, 3), (512, 1), (1 << 100, 5)]);
        assert_eq!((entries.len(), entries.long()), (3, 1));
        assert_eq!(entries.get(2).prefix, Prefix { v6: true, first: 1 << 100, length: 28 });
    }
}
