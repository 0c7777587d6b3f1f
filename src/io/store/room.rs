//! Must every query wait for the thread of `cache/`? No: while that thread is idle, the caller may run a small query itself.
//!
//! Handing a page's links to another thread and waking up for the answer costs more than the answer: two switches of threads a page.
//! What may take long (sweeping, flushing, rows that are not in memory) stays with the thread, and so does everything while the disk
//! is slow. The order is kept: either all earlier actions are done, or the query is queued behind them.

use super::{
    counters::{StoreCounters, add},
    database::Database,
    error::StoreError,
    seen::SeenSet,
    stall,
};
use nearcrawl_model::seen::{SeenAnswer, SeenBatch};
use std::{
    sync::{
        Mutex,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// After a query on the caller's thread that took longer than this, the next ones go to the store's thread.
const LONG: Duration = Duration::from_millis(5);

/// The number of questions that the thread gets then.
const FOR_THE_THREAD: u32 = 1_000;

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
    /// How many more queries go to the thread because one took long.
    for_the_thread: AtomicU32,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(room: Room) -> Shared {
        Shared { room: Mutex::new(Some(room)), waiting: AtomicUsize::new(0), for_the_thread: AtomicU32::new(0) }
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

    /// Answers a query on the caller's thread if that is quick; none if it has to be sent to the store's thread.
    pub(super) fn at_once(&self, batch: &SeenBatch, counters: &StoreCounters) -> Option<Result<Vec<SeenAnswer>, StoreError>> {
        if self.waiting.load(Ordering::SeqCst) != 0 || stall::stands_still() {
            return None;
        }
        let left = self.for_the_thread.load(Ordering::Relaxed);
        if left > 0 {
            self.for_the_thread.store(left - 1, Ordering::Relaxed);
            return None;
        }
        let mut room = self.room.try_lock().ok()?;
        let since = Instant::now();
        let room = room.as_mut()?;
        if !room.seen.is_quick(&mut room.database, batch, since) {
            return None;
        }
        let answers = room.ask(batch, counters);
        if since.elapsed() > LONG {
            self.for_the_thread.store(FOR_THE_THREAD, Ordering::Relaxed);
        }
        add(&counters.answered_at_once, 1);
        Some(answers)
    }
}

impl Room {
    /// Runs the query and counts it.
    pub(super) fn ask(&mut self, batch: &SeenBatch, counters: &StoreCounters) -> Result<Vec<SeenAnswer>, StoreError> {
        let answers = self.seen.ask(&mut self.database, batch);
        for said in answers.iter().flatten() {
            let counter = match said {
                SeenAnswer::New => &counters.seen_new,
                SeenAnswer::Known => &counters.seen_known,
                SeenAnswer::Shorter { .. } => &counters.seen_shorter,
            };
            add(counter, 1);
        }
        answers
    }
}
