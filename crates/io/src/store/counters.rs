//! Counters of what the store has done so far, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the store was opened. They only grow.
#[derive(Debug, Default)]
pub struct StoreCounters {
    /// Number of actions that changed `state/`.
    pub state_writes: AtomicU64,
    /// Synced commits to `state/`; fewer than the writes, as those that come together are committed together.
    pub state_commits: AtomicU64,
    /// Bytes committed to `state/`.
    pub state_bytes: AtomicU64,
    /// Number of actions that read `state/`.
    pub state_reads: AtomicU64,
    /// Number of actions on `cache/`.
    pub cache_actions: AtomicU64,
    /// Questions to the seen set that were answered on the spot, without the thread of `cache/`.
    pub answered_at_once: AtomicU64,
    /// Questions to the seen set answered "new".
    pub seen_new: AtomicU64,
    /// Questions to the seen set answered "known".
    pub seen_known: AtomicU64,
    /// Questions to the seen set answered "shorter".
    pub seen_shorter: AtomicU64,
    /// Actions refused because the disk was full.
    pub no_space: AtomicU64,
    /// Times a database was closed and opened again after a full disk.
    pub reopened: AtomicU64,
    /// Times a database was found damaged while in use.
    pub damaged: AtomicU64,
}

/// Adds to a counter.
pub(super) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}
