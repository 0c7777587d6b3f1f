//! Small queries of `cache/` on the caller's thread, in memory, while the thread of `cache/` is idle.
//!
//! Handing a page's links to another thread and waking up for the answer costs more than the answer: two switches of threads a page. All
//! that reads or writes the disk stays with the store's thread: rows that are not in memory, sweeping, and the log of what callers entered,
//! which they gather for it. So a caller waits neither for a disk that stands still nor for the thread that waits for it, for its lock is
//! only tried. The order is kept: either all earlier actions are done, or the query is queued behind them.

use super::{
    counters::{StoreCounters, add},
    database::Database,
    error::StoreError,
    seen::SeenSet,
};
use nearcrawl_model::seen::{SeenAnswer, SeenBatch};
use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

/// The database and seen set of `cache/`.
pub(super) struct Room {
    pub(super) database: Database,
    pub(super) seen: SeenSet,
}

/// The database, shared by the thread that owns it and callers.
pub(super) struct Shared {
    /// None once it is closed.
    room: Mutex<Option<Room>>,
    /// Actions that were handed to the thread and are not done.
    waiting: AtomicUsize,
}

/// A query that was answered on the caller's thread.
pub(super) struct AtOnce {
    pub(super) answers: Vec<SeenAnswer>,
    /// The thread is to write and sweep now what callers entered. Until it has, it answers all queries.
    pub(super) is_due: bool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(room: Room) -> Shared {
        Shared { room: Mutex::new(Some(room)), waiting: AtomicUsize::new(0) }
    }

    /// An action is about to be handed to the thread.
    pub(super) fn hand_over(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
    }

    /// Locks the database for one action of the thread. None if it is closed.
    pub(super) fn work<T>(&self, work: impl FnOnce(&mut Room) -> T) -> Option<T> {
        let done = self.room.lock().ok()?.as_mut().map(work);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        done
    }

    /// The thread ends: nothing is answered any more.
    pub(super) fn close(&self) -> Option<Room> {
        self.room.lock().ok()?.take()
    }

    /// Answers a query on the caller's thread if it can be done in memory; none if it has to be sent to the store's thread.
    pub(super) fn at_once(&self, batch: &SeenBatch, counters: &StoreCounters) -> Option<AtOnce> {
        if self.waiting.load(Ordering::SeqCst) != 0 {
            return None;
        }
        let mut room = self.room.try_lock().ok()?;
        let Room { database, seen } = room.as_mut()?;
        let answers = seen.ask_in_memory(database, batch)?;
        count(&answers, counters);
        add(&counters.answered_at_once, 1);
        Some(AtOnce { answers, is_due: seen.is_due() })
    }
}

impl Room {
    /// Runs the query and counts it.
    pub(super) fn ask(&mut self, batch: &SeenBatch, counters: &StoreCounters) -> Result<Vec<SeenAnswer>, StoreError> {
        let answers = self.seen.ask(&mut self.database, batch)?;
        count(&answers, counters);
        Ok(answers)
    }
}

fn count(answers: &[SeenAnswer], counters: &StoreCounters) {
    for said in answers {
        let counter = match said {
            SeenAnswer::New => &counters.seen_new,
            SeenAnswer::Known => &counters.seen_known,
            SeenAnswer::Shorter { .. } => &counters.seen_shorter,
        };
        add(counter, 1);
    }
}
