//! Cache of recently seen fingerprints with CLOCK replacement (Broder, Najork and Wiener, "Efficient URL caching", §4 and §5.3).
//!
//! CLOCK comes within a tenth of a point of LRU above the critical size and costs one bit an item instead of a list. A new item
//! starts unmarked, a hit marks it; on a miss the handle goes round, clearing marks, until it finds an unmarked slot, whose item
//! is replaced, and then rests on the slot after it.
//!
//! Items are found through a scatter table with circular chains: every chain begins in its bucket and closes there, so the item before any
//! other is reached by walking on, and an item can be taken out without back pointers.
//!
//! **Memory:** 8 bytes for an item with its link, 4 for its place in the scatter table and one mark bit: 12⅛ bytes an entry, all of it
//! fixed by the capacity.
//!
//! **An item is known by its bucket and 37 bits of its fingerprint.** So an item never met is taken for known with a probability of 2^-37
//! for each item in its bucket, of which there is one on average: once in 10^11 misses, which is rarer than in the seen set behind it.

use nearcrawl_model::fingerprint::Fingerprint;

/// How many bits of an item's word say what comes behind it in its chain: a slot, or, with the highest of them set, the bucket.
const LINK_BITS: u32 = 27;

/// Marks a link that leads back to the bucket.
const BUCKET: u32 = 1 << (LINK_BITS - 1);

/// The most entries that links can tell apart.
const MAX_ENTRIES: usize = BUCKET as usize;

/// A cache of a fixed number of fingerprints with CLOCK replacement.
#[derive(Clone, Debug)]
pub struct ClockCache {
    /// The item in each slot, by its lowest bits, and its link; slots fill up from 0.
    items: Vec<u64>,
    /// For each bucket, the first slot of its chain, or a link to itself.
    buckets: Vec<u32>,
    /// One bit a slot: hit since the handle last came by.
    marks: Vec<u64>,
    /// The slot that the next search for a victim starts at.
    handle: u32,
    hits: u64,
    misses: u64,
}

/// How a [`ClockCache`] is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockStatistics {
    /// Fingerprints that were known.
    pub hits: u64,
    /// Fingerprints that were not, and were put in.
    pub misses: u64,
    /// Fingerprints held now.
    pub len: usize,
    /// The most that are ever held.
    pub capacity: usize,
}

impl ClockCache {
    /// A cache of `capacity` fingerprints, at least one and at most 2^26. Takes [`Self::bytes_for`] bytes once full.
    pub fn with_capacity(capacity: usize) -> ClockCache {
        let capacity = capacity.clamp(1, MAX_ENTRIES);
        ClockCache {
            items: Vec::with_capacity(capacity),
            buckets: (0..capacity as u32).map(|bucket| bucket | BUCKET).collect(),
            marks: vec![0; capacity.div_ceil(64)],
            handle: 0,
            hits: 0,
            misses: 0,
        }
    }

    #[cfg(test)]
    /// How many bytes a cache of `capacity` fingerprints takes.
    pub(crate) const fn bytes_for(capacity: usize) -> usize {
        capacity * (size_of::<u64>() + size_of::<u32>()) + capacity.div_ceil(64) * size_of::<u64>()
    }

    /// Whether `item` is in the cache; marks it if so, else puts it in.
    pub fn touch(&mut self, item: Fingerprint) -> bool {
        let bucket = self.bucket(item);
        if let Some(slot) = self.find(bucket, item) {
            self.marks[slot as usize / 64] |= 1 << (slot % 64);
            self.hits += 1;
            return true;
        }
        self.misses += 1;
        let slot = if self.items.len() < self.buckets.len() {
            // Empty slots are unmarked slots: the handle passes over each of them once and comes back to slot 0 when all are full.
            self.items.push(0);
            self.items.len() as u32 - 1
        } else {
            let slot = self.victim();
            self.unchain(slot);
            slot
        };
        let first = std::mem::replace(&mut self.buckets[bucket], slot);
        self.items[slot as usize] = item.0 << LINK_BITS | u64::from(first);
        false
    }

    /// Hits, misses and sizes so far.
    pub fn statistics(&self) -> ClockStatistics {
        ClockStatistics { hits: self.hits, misses: self.misses, len: self.items.len(), capacity: self.buckets.len() }
    }

    /// The bucket of an item. Fingerprints are uniform already, so scaling them down is as good as a hash and needs no power of 2.
    fn bucket(&self, item: Fingerprint) -> usize {
        ((u128::from(item.0) * self.buckets.len() as u128) >> 64) as usize
    }

    /// What comes behind a slot.
    fn behind(&self, slot: u32) -> u32 {
        self.items[slot as usize] as u32 & (2 * BUCKET - 1)
    }

    /// The slot that holds `item`.
    fn find(&self, bucket: usize, item: Fingerprint) -> Option<u32> {
        let mut slot = self.buckets[bucket];
        while slot & BUCKET == 0 {
            let held = self.items[slot as usize];
            if (held ^ item.0 << LINK_BITS) >> LINK_BITS == 0 {
                return Some(slot);
            }
            slot = held as u32 & (2 * BUCKET - 1);
        }
        None
    }

    /// Turns the handle to the first unmarked slot, clearing marks on the way, and leaves it on the slot behind.
    fn victim(&mut self) -> u32 {
        loop {
            let slot = self.handle;
            self.handle = if slot as usize + 1 == self.items.len() { 0 } else { slot + 1 };
            let (word, bit) = (slot as usize / 64, 1 << (slot % 64));
            if self.marks[word] & bit == 0 {
                return slot;
            }
            self.marks[word] &= !bit;
        }
    }

    /// Takes a filled slot out of its chain, finding the one before it by walking round.
    fn unchain(&mut self, slot: u32) {
        let behind = self.behind(slot);
        let mut before = behind;
        while before & BUCKET == 0 {
            before = self.behind(before);
        }
        let bucket = (before & !BUCKET) as usize;
        if self.buckets[bucket] == slot {
            self.buckets[bucket] = behind;
            return;
        }
        before = self.buckets[bucket];
        while self.behind(before) != slot {
            before = self.behind(before);
        }
        let held = &mut self.items[before as usize];
        *held = *held >> LINK_BITS << LINK_BITS | u64::from(behind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// CLOCK as the paper tells it: an array of slots with mark bits, searched from end to end.
    struct Naive {
        slots: Vec<Option<(u64, bool)>>,
        handle: usize,
    }

    impl Naive {
        fn touch(&mut self, item: u64) -> bool {
            if let Some(slot) = self.slots.iter_mut().flatten().find(|(held, _)| *held == item) {
                slot.1 = true;
                return true;
            }
            loop {
                let at = self.handle;
                self.handle = (at + 1) % self.slots.len();
                match &mut self.slots[at] {
                    Some((_, marked)) if *marked => *marked = false,
                    free => {
                        *free = Some((item, false));
                        return false;
                    }
                }
            }
        }
    }

    /// Spreads small numbers over all 64 bits, as real fingerprints are.
    fn spread(n: u64) -> Fingerprint {
        Fingerprint(n).scoped(1)
    }

    proptest! {
        #[test]
        fn behaves_exactly_like_the_naive_clock(
            capacity in 1usize..70,
            items in prop::collection::vec(0u64..100, 0..1500),
            bunched in any::<bool>(),
        ) {
            let mut cache = ClockCache::with_capacity(capacity);
            let mut naive = Naive { slots: vec![None; capacity], handle: 0 };
            for (i, item) in items.iter().enumerate() {
                // Bunched items all fall into the first bucket: one long chain.
                let item = if bunched { Fingerprint(*item) } else { spread(*item) };
                prop_assert_eq!(cache.touch(item), naive.touch(item.0), "at the {}th item", i);
            }
            let held: Vec<_> = naive.slots.iter().flatten().map(|(item, _)| item << LINK_BITS).collect();
            prop_assert_eq!(cache.items.iter().map(|item| item >> LINK_BITS << LINK_BITS).collect::<Vec<_>>(), held.clone());
            let statistics = cache.statistics();
            prop_assert_eq!(statistics.hits + statistics.misses, items.len() as u64);
            prop_assert_eq!(statistics.len, held.len());
            prop_assert_eq!(statistics.capacity, capacity);
        }
    }

    #[test]
    fn a_new_item_is_unmarked_and_goes_before_one_that_was_met_twice() {
        let mut cache = ClockCache::with_capacity(2);
        assert!(!cache.touch(spread(1)));
        assert!(!cache.touch(spread(2)));
        assert!(cache.touch(spread(1)));
        assert!(!cache.touch(spread(3)), "replaces 2: 1 was marked");
        assert!(cache.touch(spread(1)));
        assert!(!cache.touch(spread(2)));
    }

    #[test]
    fn never_holds_more_than_its_capacity() {
        let mut cache = ClockCache::with_capacity(1000);
        for n in 0..100_000 {
            cache.touch(spread(n));
        }
        assert_eq!(cache.statistics(), ClockStatistics { hits: 0, misses: 100_000, len: 1000, capacity: 1000 });
        let bytes = cache.items.capacity() * 8 + cache.buckets.capacity() * 4 + cache.marks.capacity() * 8;
        assert_eq!(bytes, ClockCache::bytes_for(1000));
        assert!(bytes < 12_200, "{bytes}");
    }

    #[test]
    fn a_capacity_of_zero_still_remembers_one() {
        let mut cache = ClockCache::with_capacity(0);
        assert!(!cache.touch(spread(1)));
        assert!(cache.touch(spread(1)));
    }

    /// UC-55: with links de-duplicated within a page, SIEVE stays at 94 % misses where CLOCK follows the working set.
    #[test]
    fn follows_pages_that_share_a_template() {
        let mut cache = ClockCache::with_capacity(400);
        for page in 0..2000u64 {
            // 50 links that every page of the host has, 10 of its own; a new host every 100 pages.
            for link in 0..50 {
                cache.touch(spread((page / 100) * 1_000_000 + link));
            }
            for link in 0..10 {
                cache.touch(spread(u64::MAX / 2 + page * 10 + link));
            }
        }
        let statistics = cache.statistics();
        assert!(statistics.hits * 100 > (statistics.hits + statistics.misses) * 80, "{statistics:?}");
    }
}
