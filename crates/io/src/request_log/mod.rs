//! Log of every request to a server outside of the swarm: to whom it went, when, and why.
//!
//! It has JSON lines, one file a day or several, kept for so many days and bytes as the configuration says.
//!
//! A thread of its own writes. Whoever has a line gives it to a bounded queue and never waits. Lines that the disk does not take (it is
//! full) wait and are written when it does. Beyond a number they are dropped and counted, and so are those for which the queue has no place;
//! the next line that is written says how many are missing. Nothing is synchronised: a power cut may cost the last seconds. As long as it
//! runs it holds a lock, so that whoever searches the log knows whether its writer was killed.

mod files;
mod line;
mod reader;
mod search;
#[cfg(test)]
mod tests;

pub use files::RequestLogConfig;
pub use line::{RequestKind, RequestLine};
pub use reader::{Reader, newest};
pub use search::{Found, Writing, search};

use crate::tasks::{self, TaskKind};
use files::Files;
use nearcrawl_model::time::WallTime;
use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Lines that may wait for the disk; each takes some hundred bytes.
const MAX_QUEUED: usize = 4_096;

/// Lines that wait because the disk did not take them: more than come until a daemon sees that its disk is full and asks nothing more.
const MAX_KEPT: usize = 4_096;

/// After so long they are tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Lines that are written at once.
const MAX_AT_ONCE: usize = 256;

/// How often it is looked for files that are too old, though nothing is written.
const LOOK_EVERY: Duration = Duration::from_secs(3_600);

/// At its end the log waits for so long for the disk.
const CLOSE_WITHIN: Duration = Duration::from_secs(3);

/// The log, for those who have lines. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RequestLog(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// None once it is closed.
    lines: Mutex<Option<SyncSender<RequestLine>>>,
    /// Says when the thread has written everything, by going away.
    ended: Mutex<Receiver<()>>,
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    given: AtomicU64,
    written: AtomicU64,
    dropped: AtomicU64,
    /// Of the lines that were dropped, so many are told of in the log.
    told: AtomicU64,
}

impl RequestLog {
    /// Begins its thread, which first writes that it does.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(config: RequestLogConfig) -> io::Result<RequestLog> {
        let (lines, waiting) = sync_channel(MAX_QUEUED);
        let (alive, ended) = sync_channel::<()>(0);
        let counters = Arc::<Counters>::default();
        let counted = Arc::clone(&counters);
        thread::Builder::new().name("request-log".to_owned()).spawn(move || {
            let _alive = alive;
            let _running = tasks::begin(TaskKind::RequestLog);
            let (files, kept) = (Files::new(config), VecDeque::new());
            let writer = Writer { files, lock: None, counters: counted, started: now(), begun: false, kept, failing_since: None };
            writer.serve(&waiting);
        })?;
        Ok(RequestLog(Arc::new(Shared { lines: Mutex::new(Some(lines)), ended: Mutex::new(ended), counters })))
    }

    /// Gives a line to be written; it is dropped and counted if too many wait.
    pub fn write(&self, line: RequestLine) {
        self.0.counters.given.fetch_add(1, Ordering::Relaxed);
        let lines = self.0.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = lines.as_ref().is_some_and(|lines| lines.try_send(line).is_ok());
        if !taken {
            self.0.counters.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines that were written.
    pub fn written(&self) -> u64 {
        self.0.counters.written.load(Ordering::Relaxed)
    }

    /// Lines that are not in the log, and of which nothing there says that they are missing.
    pub fn unwritten(&self) -> u64 {
        let Counters { given, written, told, .. } = &*self.0.counters;
        let there = written.load(Ordering::Relaxed).saturating_add(told.load(Ordering::Relaxed));
        given.load(Ordering::Relaxed).saturating_sub(there)
    }

    /// Lines that could not be written.
    pub fn dropped(&self) -> u64 {
        self.0.counters.dropped.load(Ordering::Relaxed)
    }

    /// Waits until everything is written, a moment at most. What comes later is dropped.
    pub fn close(&self) {
        drop(self.0.lines.lock().unwrap_or_else(PoisonError::into_inner).take());
        // It answers by ending; a disk that hangs is not waited for.
        let _ = self.0.ended.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(CLOSE_WITHIN);
    }
}

fn now() -> WallTime {
    WallTime(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64))
}

/// What the thread works with.
struct Writer {
    files: Files,
    /// Held for as long as it runs, from when there is a directory.
    lock: Option<files::WriterLock>,
    counters: Arc<Counters>,
    started: WallTime,
    /// Whether the log says that it began.
    begun: bool,
    /// Lines that the disk did not take, the oldest first.
    kept: VecDeque<RequestLine>,
    /// When an attempt to write failed last, if nothing was written since.
    failing_since: Option<Instant>,
}

impl Writer {
    fn serve(mut self, waiting: &Receiver<RequestLine>) {
        let _ = self.files.prune(now());
        // Of a daemon that is killed before its first request has ended nothing else would tell.
        self.write(Vec::new());
        loop {
            let patience = self.failing_since.map_or(LOOK_EVERY, |since| TRY_AGAIN.saturating_sub(since.elapsed()));
            match waiting.recv_timeout(patience) {
                Ok(first) => self.write(std::iter::once(first).chain(waiting.try_iter().take(MAX_AT_ONCE - 1)).collect()),
                Err(RecvTimeoutError::Timeout) if self.failing_since.is_some() => self.write(Vec::new()),
                Err(RecvTimeoutError::Timeout) => drop(self.files.prune(now())),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        if self.failing_since.is_some() {
            self.failing_since = self.failing_since.and_then(|since| since.checked_sub(TRY_AGAIN));
            self.write(Vec::new());
        }
        self.counters.dropped.fetch_add(self.kept.len() as u64, Ordering::Relaxed);
        if self.begun {
            // Where it cannot be written, what is missing is not known: as after a kill.
            let now = now();
            let gap = self.gap(now).map(|(line, _)| line);
            let end = RequestLine::mark(now, RequestKind::End);
            let _ = self.files.append(&encoded(gap.iter().chain([&end])), now);
        }
    }

    /// What says how many lines were dropped that nothing tells of, and how many there are with them.
    fn gap(&self, now: WallTime) -> Option<(RequestLine, u64)> {
        let (dropped, told) = (self.counters.dropped.load(Ordering::Relaxed), self.counters.told.load(Ordering::Relaxed));
        (dropped > told).then(|| (RequestLine::gap(now, dropped - told), dropped))
    }

    /// Writes what is kept and these lines, or keeps all of them. While the disk takes nothing it is tried once a second. A gap stands before
    /// what was kept: nobody knows which of these lines came before those that are missing.
    fn write(&mut self, lines: Vec<RequestLine>) {
        self.kept.extend(lines);
        if self.failing_since.is_some_and(|since| since.elapsed() < TRY_AGAIN) {
            return self.limit_kept();
        }
        let now = now();
        let begin = (!self.begun).then(|| RequestLine::mark(self.started, RequestKind::Begin));
        let (gap, dropped) = self.gap(now).unzip();
        let text = encoded(begin.iter().chain(&gap).chain(&self.kept));
        match self.files.append(&text, now) {
            Ok(()) => {
                let written = self.kept.len() as u64;
                self.kept = VecDeque::new();
                self.begun = true;
                self.lock = self.lock.take().or_else(|| self.files.lock());
                self.counters.told.fetch_max(dropped.unwrap_or(0), Ordering::Relaxed);
                self.counters.written.fetch_add(written, Ordering::Relaxed);
                if self.failing_since.take().is_some() {
                    tracing::info!("the log of requests is written again");
                }
            }
            Err(why) => {
                if self.failing_since.replace(Instant::now()).is_none() {
                    tracing::warn!(
                        "the log of requests cannot be written; up to {MAX_KEPT} lines wait until it can, further ones are dropped: {why}"
                    );
                }
                self.limit_kept();
            }
        }
    }

    /// Of too many lines that wait the newest go.
    fn limit_kept(&mut self) {
        let beyond = self.kept.len().saturating_sub(MAX_KEPT);
        self.kept.truncate(MAX_KEPT);
        self.counters.dropped.fetch_add(beyond as u64, Ordering::Relaxed);
    }
}

/// Lines as they are written.
fn encoded<'a>(lines: impl IntoIterator<Item = &'a RequestLine>) -> Vec<u8> {
    let mut text = Vec::new();
    for line in lines {
        // A line of plain values always encodes.
        if serde_json::to_writer(&mut text, line).is_ok() {
            text.push(b'\n');
        }
    }
    text
}
