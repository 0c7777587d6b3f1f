//! `[cache]`: how many recently seen URLs are remembered.

use super::{reader::Section, values};

/// `[cache]`: the URL cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Entries of the CLOCK cache for each of `crawl.parallel` (100 to 500 in the URL caching paper).
    pub entries_per_fetch: u32,
}

impl Default for CacheConfig {
    fn default() -> Self {
        CacheConfig { entries_per_fetch: 256 }
    }
}

impl CacheConfig {
    pub(super) fn read(mut section: Section<'_, '_>) -> CacheConfig {
        let default = CacheConfig::default();
        CacheConfig { entries_per_fetch: section.take("entries_per_fetch", default.entries_per_fetch, values::whole(1..=65_536)) }
    }
}
