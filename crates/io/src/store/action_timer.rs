//! Times the action that a thread of the store is at.
//!
//! A disk that stands still is seen by that.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// When a thread began the action that it is at. The thread sets it, and anybody may look.
#[derive(Debug)]
pub(super) struct ActionTimer {
    made: Instant,
    /// Milliseconds from then until the action began, plus one; 0 while the thread is idle.
    began: AtomicU64,
}

impl ActionTimer {
    pub(super) fn new() -> ActionTimer {
        ActionTimer { made: Instant::now(), began: AtomicU64::new(0) }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.made.elapsed().as_millis()).unwrap_or(u64::MAX - 1)
    }

    /// An action begins; the one before it has ended.
    pub(super) fn begin(&self) {
        self.began.store(self.now() + 1, Ordering::Relaxed);
    }

    /// The thread has nothing to do.
    pub(super) fn end(&self) {
        self.began.store(0, Ordering::Relaxed);
    }

    /// How long the present action has taken so far; zero while there is none.
    pub(super) fn elapsed(&self) -> Duration {
        let began = self.began.load(Ordering::Relaxed).checked_sub(1);
        began.map_or(Duration::ZERO, |began| Duration::from_millis(self.now().saturating_sub(began)))
    }
}
