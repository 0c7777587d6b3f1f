//! STATIC (§3.6), a cache that never changes: it is loaded with the most requested items and keeps them.
//!
//! The paper does not charge for the loading, so that STATIC seems better than MIN when it holds (almost) everything. Here both
//! accounts are kept.

/// How often requested: the items' counts, the greatest first.
pub(crate) fn counts(items: &[u32], distinct: usize) -> Vec<u32> {
    let mut counts = vec![0; distinct];
    items.iter().for_each(|item| counts[*item as usize] += 1);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts
}

/// The requests that a cache with the `size` most requested items misses; what was loaded is not counted.
pub(crate) fn misses(counts: &[u32], size: usize) -> u64 {
    counts.iter().skip(size).map(|count| u64::from(*count)).sum()
}

/// How many items were loaded.
pub(crate) fn loaded(counts: &[u32], size: usize) -> u64 {
    counts.len().min(size) as u64
}
