//! Which number has this organisation? An index that keeps no second copy of the names.

use super::super::assemble::Holder;
use std::{
    collections::{HashMap, hash_map::RandomState}, // unordered: only looked up in, never walked in an order that matters
    hash::BuildHasher,
};

/// Finds organisations by registry and id.
#[derive(Default)]
pub(super) struct HolderIndex {
    hasher: RandomState,
    /// By hash; of organisations whose hashes are the same, the later ones have the next free number after it.
    by_hash: HashMap<u64, u32>, // unordered: see above
}

impl HolderIndex {
    /// An index of these.
    pub fn of(holders: &[Holder]) -> HolderIndex {
        let mut index = HolderIndex::default();
        (0u32..).zip(holders).for_each(|(number, holder)| index.slot(holders, holder.registry, &holder.id, number).map_or((), |_| ()));
        index
    }

    /// The number of an organisation; none if it got `next` just now.
    fn slot(&mut self, holders: &[Holder], registry: u16, id: &str, next: u32) -> Option<u32> {
        let mut hash = self.hasher.hash_one((registry, id));
        loop {
            match self.by_hash.get(&hash) {
                Some(number) if holders[*number as usize].registry == registry && holders[*number as usize].id == id => {
                    return Some(*number);
                }
                Some(_) => hash = hash.wrapping_add(1),
                None => {
                    self.by_hash.insert(hash, next);
                    return None;
                }
            }
        }
    }

    /// The number of an organisation, which is added to `holders` if it is new.
    pub fn number(&mut self, holders: &mut Vec<Holder>, registry: u16, id: &str) -> u32 {
        let next = holders.len() as u32;
        self.slot(holders, registry, id, next).unwrap_or_else(|| {
            holders.push(Holder { registry, id: id.to_owned(), name: String::new(), asn: 0 });
            next
        })
    }

    /// Forgets all from this number on: they were the last ones added, so that no other's place depends on them.
    pub fn truncate(&mut self, holders: &mut Vec<Holder>, len: usize) {
        if holders.len() > len {
            holders.truncate(len);
            self.by_hash.retain(|_, number| (*number as usize) < len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_again_and_forgotten_ones_are_given_anew() {
        let (mut index, mut holders) = (HolderIndex::default(), Vec::new());
        let numbers: Vec<u32> = (0..1000).map(|n| index.number(&mut holders, n % 3, &format!("ORG-{}", n / 3))).collect();
        assert_eq!(numbers, (0..1000).collect::<Vec<u32>>());
        assert_eq!(index.number(&mut holders, 1, "ORG-100"), 301);
        index.truncate(&mut holders, 301);
        assert_eq!((holders.len(), index.number(&mut holders, 0, "ORG-100"), index.number(&mut holders, 2, "NEW")), (301, 300, 301));
        let mut again = HolderIndex::of(&holders);
        assert_eq!((again.number(&mut holders, 2, "NEW"), holders.len()), (301, 302));
    }
}
