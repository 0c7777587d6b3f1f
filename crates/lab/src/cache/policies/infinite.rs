//! What does a cache miss that forgets nothing? INFINITE (§3.1): only what it never met before, the least that any cache can miss.

use super::Cache;

/// Remembers everything.
#[derive(Clone, Debug)]
pub(crate) struct Infinite {
    met: Vec<bool>,
}

impl Infinite {
    /// For a stream of this many different items.
    pub(super) fn new(distinct: usize) -> Infinite {
        Infinite { met: vec![false; distinct] }
    }
}

impl Cache for Infinite {
    fn touch(&mut self, item: u32) -> bool {
        std::mem::replace(&mut self.met[item as usize], true)
    }
}
