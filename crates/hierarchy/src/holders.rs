//! Table of the holders of prefixes.
//!
//! Holders are numbered in the order of their first mention; their texts lie one behind the other: a million take some 60 MB.

use std::hash::{BuildHasher, RandomState};

/// No holder: the mark of a free place in the index.
const FREE: u32 = u32::MAX;

/// Organisations as they are read, each registry's id once.
#[derive(Clone, Default)]
pub(super) struct Holders {
    /// Number of the registry.
    registries: Vec<u16>,
    /// Smallest AS number, 0 for none.
    asns: Vec<u32>,
    /// Where each id ends in `ids`.
    id_ends: Vec<usize>,
    ids: String,
    /// Start and length of each name in `names`.
    name_spans: Vec<(usize, u8)>,
    names: String,
    /// Numbers at the places that their hashes point to, or the next free ones. Only looked up in, so its order means nothing;
    /// keyed at random, so that no file can make every id collide.
    index: Vec<u32>,
    hasher: RandomState,
}

/// What is known of a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holder<'a> {
    pub registry: u16,
    pub id: &'a str,
    pub name: &'a str,
    pub asn: u32,
}

impl std::fmt::Debug for Holders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Holders({})", self.len())
    }
}

impl Holders {
    /// How many there are; their numbers are 0 to one less.
    pub(crate) fn len(&self) -> usize {
        self.registries.len()
    }

    /// The number of a registry's holder; a new number if it has none yet.
    pub(crate) fn number(&mut self, registry: u16, id: &str) -> u32 {
        if self.len() * 4 >= self.index.len() * 3 {
            self.grow();
        }
        let place = self.place(registry, id);
        if self.index[place] == FREE {
            self.index[place] = self.len() as u32;
            self.registries.push(registry);
            self.asns.push(0);
            self.ids.push_str(id);
            self.id_ends.push(self.ids.len());
            self.name_spans.push((0, 0));
        }
        self.index[place]
    }

    /// Where in the index a holder is, or would be.
    fn place(&self, registry: u16, id: &str) -> usize {
        let mask = self.index.len() - 1;
        let mut place = self.hasher.hash_one((registry, id)) as usize & mask;
        while let Some(holder) = self.index.get(place).filter(|n| **n != FREE).map(|n| *n as usize) {
            if self.registries[holder] == registry && self.id(holder) == id {
                break;
            }
            place = (place + 1) & mask;
        }
        place
    }

    fn grow(&mut self) {
        let places = (self.len() * 2).next_power_of_two().max(16);
        self.index.clear();
        self.index.resize(places, FREE);
        for holder in 0..self.len() {
            let place = self.place(self.registries[holder], self.id(holder));
            self.index[place] = holder as u32;
        }
    }

    /// Forgets all from this number on.
    pub(crate) fn truncate(&mut self, len: usize) {
        if len >= self.len() {
            return;
        }
        self.registries.truncate(len);
        self.asns.truncate(len);
        self.id_ends.truncate(len);
        self.ids.truncate(self.id_ends.last().copied().unwrap_or(0));
        // Names that nobody refers to any more stay where they are.
        self.name_spans.truncate(len);
        self.grow();
    }

    fn id(&self, holder: usize) -> &str {
        let start = if holder == 0 { 0 } else { self.id_ends[holder - 1] };
        &self.ids[start..self.id_ends[holder]]
    }

    /// What is known of a holder.
    pub(crate) fn get(&self, number: u32) -> Holder<'_> {
        let holder = number as usize;
        let (start, length) = self.name_spans[holder];
        let name = &self.names[start..start + usize::from(length)];
        Holder { registry: self.registries[holder], id: self.id(holder), name, asn: self.asns[holder] }
    }

    /// Names a holder. Names of more than 255 bytes are not taken, and the one before stays.
    pub(crate) fn set_name(&mut self, number: u32, name: &str) {
        let Ok(length) = u8::try_from(name.len()) else { return };
        self.name_spans[number as usize] = (self.names.len(), length);
        self.names.push_str(name);
    }

    /// Sets the AS number; 0 for none.
    pub(crate) fn set_asn(&mut self, number: u32, asn: u32) {
        self.asns[number as usize] = asn;
    }

    /// All holders in the order of their numbers.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = Holder<'_>> {
        (0..self.len() as u32).map(|number| self.get(number))
    }

    /// Gives the registries other numbers.
    pub(crate) fn renumber_registries(&mut self, new: impl Fn(u16) -> u16) {
        self.index = Vec::new();
        self.registries.iter_mut().for_each(|r| *r = new(*r));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_of_a_registry_has_one_number() {
        let mut holders = Holders::default();
        let ids: Vec<String> = (0..5_000).map(|i| format!("ORG-{i}-RIPE")).collect();
        for round in 0..2 {
            for (i, id) in (0u32..).zip(&ids) {
                assert_eq!(holders.number((i % 3) as u16, id), i, "round {round}");
            }
        }
        assert_eq!(holders.len(), 5_000);
        assert_eq!(holders.number(7, "ORG-0-RIPE"), 5_000, "another registry's holder of the same id");
        assert_eq!(holders.number(0, ""), 5_001, "an empty id is an id");
        assert_eq!(holders.get(17), Holder { registry: 2, id: "ORG-17-RIPE", name: "", asn: 0 });
    }

    #[test]
    fn forgotten_ones_are_new_again() {
        let mut holders = Holders::default();
        assert!((0..100).all(|n| holders.number(n % 3, &n.to_string()) == u32::from(n)));
        holders.truncate(40);
        assert_eq!((holders.len(), holders.number(0, "39"), holders.number(2, "50"), holders.number(2, "50")), (40, 39, 40, 40));
    }

    #[test]
    fn names_and_as_numbers_can_be_told_later_and_again() {
        let mut holders = Holders::default();
        let (a, b) = (holders.number(0, "a"), holders.number(0, "b"));
        holders.set_name(b, "Beta");
        holders.set_name(a, "Alpha");
        holders.set_asn(a, 64_512);
        holders.set_name(b, "Better");
        holders.set_name(a, &"x".repeat(256));
        assert_eq!(holders.get(a), Holder { registry: 0, id: "a", name: "Alpha", asn: 64_512 });
        assert_eq!(holders.get(b).name, "Better");
    }
}
