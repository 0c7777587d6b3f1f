//! The table of background tasks: what kinds there are, who owns each, how many run, ended and panicked.
//!
//! Whatever works beside the deciding loop, as a task or a thread, is a [`TaskKind`]. It is counted from [`begin`] until what that returns
//! is dropped. [`run`] also catches a panic, so that its owner can tell what came of the work: nothing that was begun goes without an
//! answer. A panic anywhere else, in a task that a library spawned for example, is counted as [`UNNAMED`] once [`watch_panics`] was called.
//! There is one table a process, as there is one daemon.

use futures::FutureExt;
use nearcrawl_model::view::TaskView;
use std::{
    cell::Cell,
    panic::{self, AssertUnwindSafe},
    sync::{
        Once,
        atomic::{AtomicU64, Ordering},
    },
};

/// The name under which panics are counted that no [`TaskKind`] accounts for.
pub const UNNAMED: &str = "unnamed";

/// Panics that no [`TaskKind`] has accounted for.
static UNNAMED_PANICS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Whether this thread's last panic is still counted as [`UNNAMED`].
    static UNACCOUNTED: Cell<bool> = const { Cell::new(false) };
}

/// From now on every panic of the process is counted. The hook runs where a panic begins, so it counts each as [`UNNAMED`]; a [`Running`]
/// that is dropped while the panic unwinds takes it over.
pub fn watch_panics() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            UNNAMED_PANICS.fetch_add(1, Ordering::Relaxed);
            UNACCOUNTED.set(true);
            before(info);
        }));
    });
}

macro_rules! task_kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal, $owner:literal;)*) => {
        /// The kinds of background tasks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum TaskKind {
            $($(#[$doc])* $kind,)*
        }

        /// Kind, name and owner of each, in the order of the kinds.
        const KINDS: &[(TaskKind, &str, &str)] = &[$((TaskKind::$kind, $name, $owner),)*];

        static TABLE: [Counts; KINDS.len()] = [$({ let _ = TaskKind::$kind; Counts::new() },)*];
    };
}

task_kinds! {
    /// A request to a web server. A panic makes it fail with `FetchError::Crashed`.
    Fetch = "fetch", "fetcher";
    /// Reading a page that came, on a thread of its own. A panic makes the request fail with `FetchError::Crashed`.
    PageReading = "page reading", "fetcher";
    /// Driving one connection to a web server. A panic closes the connection.
    Connection = "connection", "fetcher";
    /// Closing idle connections to web servers. After a panic it goes on.
    Sweep = "idle connections", "fetcher";
    /// Closing the connections to one address.
    Close = "closing connections", "executor";
    /// Reading what the run before knew of a page. After a panic the page is asked for as if nothing were known.
    PreviousPage = "previous page", "executor";
    /// A probe. A panic makes it fail with `FetchError::Crashed`.
    Probe = "probe", "executor";
    /// A look-up in the DNS. A panic makes it fail with `ResolveError::Crashed`.
    Resolve = "resolve", "executor";
    /// Looking for the proof of an opt-out. After a panic nothing was found out, and it is looked again.
    Proof = "opt-out proof", "executor";
    /// Rows to a replica, or rows of a subnet from one. After a panic it counts as not answered, and is tried again.
    PeerTransfer = "member transfer", "executor";
    /// Asking a member for what a reader asked of us. After a panic the reader is told that there is no answer.
    ReaderRelay = "readers' questions", "executor";
    /// Reading pages or links from journals for a reader. After a panic the reader is told that there is no answer.
    Export = "export", "executor";
    /// Searching the log of requests, here or at all members. After a panic there is no answer.
    RequestSearch = "request search", "executor";
    /// Storing the record of requests and sending copies of it. After a panic requests are not on record until the next start.
    RequestRecord = "request record", "executor";
    /// An edition of the hierarchy from other members. After a panic it counts as unusable.
    SnapshotTransfer = "snapshot transfer", "executor";
    /// Pieces of the hierarchy for other members. After a panic the member is asked to come again.
    SnapshotServing = "snapshot serving", "executor";
    /// Files of the hierarchy. After a panic they stay as they are.
    SnapshotFiles = "snapshot files", "executor";
    /// The queue to the store, which carries every command to it out. What is durable is unknown after a panic: it ends the daemon, and the
    /// next start reads the journals.
    StoreQueue = "store queue", "executor";
    /// The thread of `state/`. A panic ends the daemon.
    StateThread = "store thread: state", "store";
    /// The thread of `cache/`. A panic ends the daemon.
    CacheThread = "store thread: cache", "store";
    /// The thread that writes the log of requests. After a panic further lines are dropped, and counted.
    RequestLog = "request log", "executor";
    /// Doing the loop's chores on the disk, one after another. A panic outside of a chore ends the daemon.
    Housekeeping = "housekeeping", "loop";
    /// Free space and sizes on disk. After a panic the last ones stay.
    DiskUsage = "disk usage", "loop";
    /// What is kept for the next start. After a panic it is kept the next time.
    PersistedState = "persisted state", "loop";
    /// Filing the configured hierarchy for other members, and reading it again at SIGHUP. After a panic the one in use stays.
    ConfiguredHierarchy = "configured hierarchy", "loop";
    /// The connections to other members. A panic ends the daemon.
    Swarm = "swarm", "loop";
    /// The API. After a panic it is served again.
    Api = "api", "loop";
    /// Looking at the counters for the charts of the page. After a panic they have a gap.
    History = "history", "api";
    /// Answering one request to the API. A panic makes it fail with status 500.
    ApiRequest = "api request", "api";
}

struct Counts {
    started: AtomicU64,
    ended: AtomicU64,
    panicked: AtomicU64,
    /// How many of the next ones are made to panic, for tests.
    injected: AtomicU64,
}

impl Counts {
    const fn new() -> Counts {
        Counts { started: AtomicU64::new(0), ended: AtomicU64::new(0), panicked: AtomicU64::new(0), injected: AtomicU64::new(0) }
    }
}

impl TaskKind {
    /// What it is called in the status.
    pub fn name(self) -> &'static str {
        KINDS[self as usize].1
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<TaskKind> {
        KINDS.iter().find(|(_, known, _)| *known == name).map(|(kind, ..)| *kind)
    }

    fn counts(self) -> &'static Counts {
        &TABLE[self as usize]
    }
}

/// A task panicked; the panic itself was logged where it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a task of nearcrawl panicked: {}", .0.name())]
pub struct TaskPanicError(pub TaskKind);

/// A task is running as long as this is not dropped.
#[derive(Debug)]
pub struct Running(TaskKind);

impl Drop for Running {
    fn drop(&mut self) {
        let counts = self.0.counts();
        if std::thread::panicking() {
            counts.panicked.fetch_add(1, Ordering::Relaxed);
            if UNACCOUNTED.replace(false) {
                UNNAMED_PANICS.fetch_sub(1, Ordering::Relaxed);
            }
            tracing::error!("a task panicked: {}", self.0.name());
        } else {
            counts.ended.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Counts a task from now on: to be called in the task itself, so that its panic is attributed to it.
#[must_use = "the task ends when this is dropped"]
pub fn begin(kind: TaskKind) -> Running {
    kind.counts().started.fetch_add(1, Ordering::Relaxed);
    let running = Running(kind);
    if cfg!(debug_assertions) {
        strike(kind);
    }
    running
}

/// Runs a task to its end, or to its panic.
pub async fn run<T>(kind: TaskKind, task: impl Future<Output = T>) -> Result<T, TaskPanicError> {
    let counted = async {
        let _running = begin(kind);
        task.await
    };
    // What a panic may have left half-done was the task's own and goes with it; what is shared is behind locks and channels.
    AssertUnwindSafe(counted).catch_unwind().await.map_err(|_| TaskPanicError(kind))
}

/// Makes the next tasks of a kind panic, in builds for testing.
pub fn inject_panics(kind: TaskKind, times: u64) {
    kind.counts().injected.store(times, Ordering::Relaxed);
}

fn strike(kind: TaskKind) {
    let injected = &kind.counts().injected;
    let left = injected.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    assert!(left.is_err(), "a panic that a test asked for, in a task: {}", kind.name());
}

/// One line for each kind of task, also for those that have not run yet, and one for panics outside of all of them.
pub fn table() -> Vec<TaskView> {
    let line = |(kind, name, owner): &(TaskKind, &str, &str)| {
        let counts = kind.counts();
        // Ends first: a task that begins or ends meanwhile then counts as running, not as less than none.
        let (ended, panicked) = (counts.ended.load(Ordering::Acquire), counts.panicked.load(Ordering::Acquire));
        let started = counts.started.load(Ordering::Acquire);
        let running = started.saturating_sub(ended).saturating_sub(panicked);
        TaskView { name: (*name).to_owned(), part: (*owner).to_owned(), running, started, ended, panicked }
    };
    let panicked = UNNAMED_PANICS.load(Ordering::Relaxed);
    let unnamed = TaskView { name: UNNAMED.to_owned(), part: "libraries".to_owned(), running: 0, started: panicked, ended: 0, panicked };
    KINDS.iter().map(line).chain([unnamed]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: TaskKind) -> TaskView {
        table().into_iter().find(|line| line.name == kind.name()).unwrap_or_default()
    }

    #[tokio::test]
    async fn a_task_is_counted_while_it_runs_and_when_it_ends_or_panics() {
        let before = line(TaskKind::PreviousPage);
        let running = run(TaskKind::PreviousPage, async { line(TaskKind::PreviousPage).running }).await.unwrap();
        assert_eq!(running, before.running + 1);
        inject_panics(TaskKind::PreviousPage, 1);
        assert_eq!(run(TaskKind::PreviousPage, async {}).await, Err(TaskPanicError(TaskKind::PreviousPage)));
        assert_eq!(run(TaskKind::PreviousPage, async {}).await, Ok(()), "one panic was asked for");
        let after = line(TaskKind::PreviousPage);
        assert_eq!((after.started, after.ended, after.panicked), (before.started + 3, before.ended + 2, before.panicked + 1));
        assert_eq!(after.running, before.running);
    }

    #[tokio::test]
    async fn a_panic_is_counted_once_by_its_name_or_as_unnamed() {
        watch_panics();
        let unnamed = || table().into_iter().find(|line| line.name == UNNAMED).unwrap().panicked;
        let before = (unnamed(), line(TaskKind::Close).panicked);
        assert!(tokio::spawn(async { panic!("a test asked for it") }).await.is_err());
        assert_eq!((unnamed(), line(TaskKind::Close).panicked), (before.0 + 1, before.1));
        assert!(run(TaskKind::Close, async { panic!("a test asked for it") }).await.is_err());
        assert_eq!((unnamed(), line(TaskKind::Close).panicked), (before.0 + 1, before.1 + 1));
        assert!(std::thread::spawn(|| panic!("a test asked for it")).join().is_err());
        assert_eq!(unnamed(), before.0 + 2);
    }

    #[test]
    fn names_are_told_apart_and_found_again() {
        for (kind, name, _) in KINDS {
            assert_eq!(TaskKind::named(name), Some(*kind));
            assert_eq!(kind.name(), *name);
        }
    }
}
