//! INFINITE (§3.1), a cache of unlimited size: it misses only first requests, the least that any cache can miss.

use super::rule::Cache;

/// The cache that keeps every item.
#[derive(Clone, Debug)]
pub(crate) struct Infinite {
    seen: Vec<bool>,
}

impl Infinite {
    /// For a stream of this many different items.
    pub(super) fn new(distinct: usize) -> Infinite {
        Infinite { seen: vec![false; distinct] }
    }
}

impl Cache for Infinite {
    fn touch(&mut self, item: u32) -> bool {
        std::mem::replace(&mut self.seen[item as usize], true)
    }
}
