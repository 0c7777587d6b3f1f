//! Limits on the memory for rows that other members send of subnets which became ours: for each transfer, and for all.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

/// Bytes of rows that one member may send of one subnet.
pub const MAX_RECOVERED_ONCE: usize = 64 << 20;

/// Bytes of rows of all transfers together, those included that the crawler has and does not use yet.
pub const MAX_RECOVERED: usize = 256 << 20;

/// What all transfers have taken, and what was refused.
#[derive(Debug, Default)]
pub struct RecoveryBudget {
    /// Of transfers under way, and of rows that are on their way to the crawler.
    taken: AtomicUsize,
    /// Of rows that the crawler has and does not use yet.
    held: AtomicUsize,
    too_much_once: AtomicU64,
    too_much: AtomicU64,
    stuck: AtomicU64,
}

impl RecoveryBudget {
    /// The share of a transfer that begins.
    pub fn share(self: &Arc<Self>) -> Share {
        Share { budget: Arc::clone(self), bytes: 0 }
    }

    /// A member's pieces did not advance.
    pub fn stuck(&self) {
        self.stuck.fetch_add(1, Ordering::Relaxed);
    }

    /// The crawler has taken in what a transfer handed over, and holds so many bytes of this and others now.
    pub fn arrived(&self, bytes: usize, held: usize) {
        self.held.store(held, Ordering::Relaxed);
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes of rows in memory now.
    pub fn used(&self) -> usize {
        self.taken.load(Ordering::Relaxed) + self.held.load(Ordering::Relaxed)
    }

    /// What was refused since the start, by class.
    pub fn refusals(&self) -> [(&'static str, u64); 3] {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("transfers of journal rows cut at 64 MiB for a member and subnet", count(&self.too_much_once)),
            ("transfers of journal rows beyond 256 MiB for all", count(&self.too_much)),
            ("transfers of journal rows that do not advance", count(&self.stuck)),
        ]
    }
}

/// What one transfer has taken; given back when it is dropped.
#[derive(Debug)]
pub struct Share {
    budget: Arc<RecoveryBudget>,
    bytes: usize,
}

impl Share {
    /// The rows go to the crawler: their bytes stay taken until [`RecoveryBudget::arrived`]. Returns how many they are.
    pub fn hand_over(mut self) -> usize {
        std::mem::take(&mut self.bytes)
    }

    /// Whether this transfer may take so much more; counted if not.
    pub fn has_room(&self, bytes: usize) -> bool {
        let room = self.bytes.saturating_add(bytes) <= MAX_RECOVERED_ONCE;
        if !room {
            self.budget.too_much_once.fetch_add(1, Ordering::Relaxed);
        }
        room
    }

    /// Takes so much more if all transfers together may; counted if not.
    pub fn take(&mut self, bytes: usize) -> bool {
        let held = self.budget.held.load(Ordering::Relaxed);
        let more = |taken: usize| taken.checked_add(bytes).filter(|taken| taken.saturating_add(held) <= MAX_RECOVERED);
        let room = self.budget.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        if room {
            self.bytes += bytes;
        } else {
            self.budget.too_much.fetch_add(1, Ordering::Relaxed);
        }
        room
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
