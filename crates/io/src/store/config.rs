//! Limits of the store, with defaults that suit a volunteer's machine.

use std::time::Duration;

/// The limits of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// Memory for blocks read and rows not yet written to tables, in bytes, both databases together; at least 8 MiB are taken.
    pub memory_bytes: usize,
    /// How many actions may wait for each database; further ones wait for a place.
    pub queue: usize,
    /// How long to leave a full disk alone before the next attempt to write.
    pub retry_full_disk: Duration,
}

impl Default for StoreConfig {
    fn default() -> Self {
        StoreConfig { memory_bytes: 64 << 20, queue: 256, retry_full_disk: Duration::from_secs(1) }
    }
}

impl StoreConfig {
    fn memory(&self) -> usize {
        self.memory_bytes.max(8 << 20)
    }

    /// Bytes for blocks read, shared by both databases.
    pub(super) fn block_cache_bytes(&self) -> usize {
        self.memory() / 8
    }

    /// Bytes for rows of `state/` that are not in tables yet: it is small, and every row is in the log already.
    pub(super) fn state_write_buffer_bytes(&self) -> usize {
        self.memory() / 8
    }

    /// Bytes for rows of `cache/` that are not in tables yet.
    pub(super) fn cache_write_buffer_bytes(&self) -> usize {
        self.memory() / 4
    }

    /// Bytes for what changed lately in the seen set. It takes them only as it grows.
    pub(super) fn recent_bytes(&self) -> usize {
        self.memory() / 2
    }
}
