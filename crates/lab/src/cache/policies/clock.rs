//! CLOCK (§3.5) as the product has it: [`ClockCache`] itself, not a copy for the laboratory.

use super::rule::Cache;
use nearcrawl_core::clock_cache::ClockCache;
use nearcrawl_model::fingerprint::Fingerprint;

/// The product's cache, fed with made-up fingerprints.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    cache: ClockCache,
}

impl Clock {
    /// With so many entries.
    pub(super) fn new(size: usize) -> Clock {
        Clock { cache: ClockCache::with_capacity(size) }
    }
}

impl Cache for Clock {
    fn touch(&mut self, item: u32) -> bool {
        // Spread over all 64 bits like real fingerprints, one for each item.
        self.cache.touch(Fingerprint(u64::from(item)).scoped(1))
    }
}
