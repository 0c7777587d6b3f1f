//! SIEVE (Zhang et al., NSDI 2024).
//!
//! A queue in order of arrival; a pointer moves from the oldest item to the newest and evicts the first item that was not requested since
//! it last came by.
//!
//! Unlike CLOCK's, a new item goes to the new end of the queue, not to the pointer: what the pointer has passed stays until it has been
//! all the way, which is bad for links that come in bursts.

use super::{list::List, rule::Cache};

/// What the hand finds unmarked goes.
#[derive(Clone, Debug)]
pub(crate) struct Sieve {
    size: usize,
    held: Vec<bool>,
    again: Vec<bool>,
    order: List,
    /// The item that the next search begins at; none: at the oldest.
    hand: Option<u32>,
}

impl Sieve {
    /// With so many entries, for a stream of `distinct` different items.
    pub(super) fn new(size: usize, distinct: usize) -> Sieve {
        Sieve { size, held: vec![false; distinct], again: vec![false; distinct], order: List::new(distinct), hand: None }
    }

    fn evict(&mut self) {
        while let Some(item) = self.hand.or_else(|| self.order.oldest()) {
            self.hand = self.order.newer_than(item);
            if !std::mem::take(&mut self.again[item as usize]) {
                self.order.remove(item);
                self.held[item as usize] = false;
                return;
            }
        }
    }
}

impl Cache for Sieve {
    fn touch(&mut self, item: u32) -> bool {
        if self.held[item as usize] {
            self.again[item as usize] = true;
            return true;
        }
        if self.order.len() >= self.size {
            self.evict();
        }
        self.order.push_newest(item);
        self.held[item as usize] = true;
        false
    }
}
