//! LRU (§3.3), which replaces the item not requested for longest, with a list where the paper has a heap.

use super::{list::List, rule::Cache};

/// Least recently used goes first.
#[derive(Clone, Debug)]
pub(super) struct Lru {
    size: usize,
    held: Vec<bool>,
    /// The cached items, ordered by their last request.
    order: List,
}

impl Lru {
    /// With so many entries, for a stream of `distinct` different items.
    pub(super) fn new(size: usize, distinct: usize) -> Lru {
        Lru { size, held: vec![false; distinct], order: List::new(distinct) }
    }
}

impl Cache for Lru {
    fn touch(&mut self, item: u32) -> bool {
        let hit = std::mem::replace(&mut self.held[item as usize], true);
        if hit {
            self.order.remove(item);
        } else if self.order.len() >= self.size
            && let Some(oldest) = self.order.oldest()
        {
            self.order.remove(oldest);
            self.held[oldest as usize] = false;
        }
        self.order.push_newest(item);
        hit
    }
}
