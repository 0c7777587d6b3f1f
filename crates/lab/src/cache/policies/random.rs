//! RANDOM (§3.4): on a miss a random entry is replaced; it needs no bits and no list.

use super::rule::Cache;
use rand::{RngExt, SeedableRng, rngs::StdRng};

/// A random one goes.
#[derive(Debug)]
pub(super) struct Random {
    size: usize,
    slots: Vec<u32>,
    held: Vec<bool>,
    random: StdRng,
}

impl Random {
    /// With so many entries, for a stream of `distinct` different items.
    pub(super) fn new(size: usize, distinct: usize, seed: u64) -> Random {
        Random { size, slots: Vec::new(), held: vec![false; distinct], random: StdRng::seed_from_u64(seed) }
    }

    /// Whether it holds this item, without asking for it.
    #[cfg(test)]
    pub(super) fn holds(&self, item: u32) -> bool {
        self.held[item as usize]
    }
}

impl Cache for Random {
    fn touch(&mut self, item: u32) -> bool {
        let hit = std::mem::replace(&mut self.held[item as usize], true);
        if !hit && self.slots.len() < self.size {
            self.slots.push(item);
        } else if !hit {
            let slot = self.random.random_range(0..self.size);
            let victim = std::mem::replace(&mut self.slots[slot], item);
            self.held[victim as usize] = false;
        }
        hit
    }
}
