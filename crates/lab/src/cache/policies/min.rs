//! MIN (§3.2), Belady's: the fewest misses of any cache of a size.
//!
//! It knows all requests to come, and replaces the item whose next request is furthest.
//!
//! A missed item need not be put in: the paper's model of caching allows that.

use std::collections::BinaryHeap;

/// For each request, when the same item is requested next; [`NEVER`] if it is not.
pub(crate) type Next = Vec<u32>;

/// No request has this number.
const NEVER: u32 = u32::MAX;

/// Reads the stream backwards, as the paper does.
pub(crate) fn next_requests(items: &[u32], distinct: usize) -> Next {
    let mut latest = vec![NEVER; distinct];
    let mut next = vec![NEVER; items.len()];
    for (time, item) in items.iter().enumerate().rev() {
        next[time] = std::mem::replace(&mut latest[*item as usize], time as u32);
    }
    next
}

/// How many requests a cache of `size` entries must miss at least.
pub(crate) fn misses(items: &[u32], next: &Next, size: usize, distinct: usize) -> u64 {
    let mut held = vec![false; distinct];
    let mut len = 0;
    let mut misses = 0;
    // When the held items are requested next. No two share a moment, so a moment says which item it is. Moments that have come are not
    // taken out: all moments to come are greater, and only the greatest is looked at.
    let mut moments = BinaryHeap::new();
    for (item, next) in items.iter().zip(next) {
        let (index, next) = (*item as usize, *next);
        if held[index] {
            if next == NEVER {
                held[index] = false;
                len -= 1;
            } else {
                moments.push(next);
            }
            continue;
        }
        misses += 1;
        if next == NEVER {
            continue;
        }
        if len < size {
            len += 1;
        } else if let Some(mut last) = moments.peek_mut()
            && *last > next
        {
            held[items[*last as usize] as usize] = false;
            *last = next;
            held[index] = true;
            continue;
        } else {
            continue;
        }
        held[index] = true;
        moments.push(next);
    }
    misses
}
