//! Rate limit on bytes, as a token bucket over all connections.
//!
//! A connection that reads is given a piece and a moment from which on it may be read.
//!
//! Pieces are handed out one behind the other, so connections take turns, and what was too much (a head, a write, a question) delays the
//! pieces after it. So the average over any time is the rate, and at most [`BURST`] of it besides.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::time::timeout_at;

/// What was not used is saved up for at most so long: 0.05 s of a rate.
const BURST: Duration = Duration::from_millis(50);

/// Pieces of a second: small enough for turns that nobody notices.
const PIECES: u64 = 64;

/// The least and the greatest piece, in bytes: a segment of TCP, and what a socket holds.
const MIN_PIECE: u64 = 1_448;
const MAX_PIECE: u64 = 256 << 10;

/// Bytes that may wait in the system's buffer of each connection, besides: they are on the wire before they are read.
const MIN_BUFFER: u64 = 16 << 10;
const MAX_BUFFER: u64 = 1 << 20;

/// A rate of bytes a second.
#[derive(Debug)]
pub struct Pace {
    rate: u64,
    made: Instant,
    /// Nanoseconds after `made`: when all that was handed out has had its time.
    due: AtomicU64,
}

/// So many bytes may be read from then on.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// How many.
    pub bytes: u64,
    /// When.
    pub from: Instant,
}

impl Pace {
    /// So many bytes a second, at least one.
    pub fn new(rate: u64) -> Pace {
        Pace { rate: rate.max(1), made: Instant::now(), due: AtomicU64::new(0) }
    }

    /// How many bytes a socket's own buffer is to hold.
    pub fn buffer(&self) -> u32 {
        (self.rate / 8).clamp(MIN_BUFFER, MAX_BUFFER) as u32
    }

    /// The next piece: behind all that were handed out.
    pub fn piece(&self) -> Piece {
        let bytes = (self.rate / PIECES).clamp(MIN_PIECE, MAX_PIECE);
        let start = self.add(self.nanos(bytes));
        Piece { bytes, from: self.made + Duration::from_nanos(start) }
    }

    /// Bytes that were moved without a piece, or beyond one.
    pub fn charge(&self, bytes: u64) {
        self.add(self.nanos(bytes));
    }

    /// Bytes of a piece that were not moved.
    pub fn give_back(&self, bytes: u64) {
        let nanos = self.nanos(bytes);
        let _ = self.due.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |due| Some(due.saturating_sub(nanos)));
    }

    /// How long so many bytes take.
    fn nanos(&self, bytes: u64) -> u64 {
        u64::try_from(u128::from(bytes) * 1_000_000_000 / u128::from(self.rate)).unwrap_or(u64::MAX)
    }

    /// Returns when what is added begins.
    fn add(&self, nanos: u64) -> u64 {
        let now = nanos_of(self.made.elapsed()).saturating_sub(nanos_of(BURST));
        let added = |due: u64| Some(due.max(now).saturating_add(nanos));
        self.due.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added).map_or(now, |before| before.max(now))
    }
}

fn nanos_of(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// How long a connection waited for its turn, or until more bytes were allowed: that is not the server's doing, and no time limit runs meanwhile.
#[derive(Debug)]
pub struct Waits {
    made: Instant,
    /// Nanoseconds of waits that are over.
    over: AtomicU64,
    /// Nanoseconds after `made` at which the present wait began, and one; 0 for none.
    since: AtomicU64,
}

impl Default for Waits {
    fn default() -> Waits {
        Waits { made: Instant::now(), over: AtomicU64::new(0), since: AtomicU64::new(0) }
    }
}

impl Waits {
    /// It waits from now on, if it does not already.
    pub fn begin(&self) {
        let now = nanos_of(self.made.elapsed()).saturating_add(1);
        let _ = self.since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// It waits no more.
    pub fn end(&self) {
        let since = self.since.swap(0, Ordering::Relaxed);
        if since > 0 {
            self.over.fetch_add(nanos_of(self.made.elapsed()).saturating_add(1).saturating_sub(since), Ordering::Relaxed);
        }
    }

    /// How long it has waited since it was made.
    pub fn total(&self) -> Duration {
        let (over, since) = (self.over.load(Ordering::Relaxed), self.since.load(Ordering::Relaxed));
        let present = if since > 0 { nanos_of(self.made.elapsed()).saturating_add(1).saturating_sub(since) } else { 0 };
        Duration::from_nanos(over.saturating_add(present))
    }

    /// Waits for something until then, and as much longer as the connection waits meanwhile. None: it has not come.
    pub async fn timeout_at<F: Future>(&self, until: Instant, future: F) -> Option<F::Output> {
        let mut future = std::pin::pin!(future);
        let before = self.total();
        let mut granted = Duration::ZERO;
        loop {
            if let Ok(output) = timeout_at((until + granted).into(), &mut future).await {
                return Some(output);
            }
            let waited = self.total().saturating_sub(before);
            if waited <= granted {
                return None;
            }
            granted = waited;
        }
    }
}

/// When a request must be over, the waits of its connection aside.
#[derive(Clone, Debug)]
pub struct Deadline {
    at: Instant,
    waits: Arc<Waits>,
    /// How long the connection had waited before.
    before: Duration,
}

impl Deadline {
    /// Of a request whose connection waits as told here.
    pub fn new(at: Instant, waits: Arc<Waits>, is_new: bool) -> Deadline {
        let before = if is_new { Duration::ZERO } else { waits.total() };
        Deadline { at, waits, before }
    }

    /// How long its connection has waited since.
    pub fn waited(&self) -> Duration {
        self.waits.total().saturating_sub(self.before)
    }

    /// Waits for something for so long, but not beyond the deadline. None: it has not come.
    pub async fn within<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        self.waits.timeout_at((self.at + self.waited()).min(Instant::now() + limit), future).await
    }

    /// Waits for something that is no doing of the server's either.
    pub async fn aside<F: Future>(&self, future: F) -> F::Output {
        self.waits.begin();
        let output = future.await;
        self.waits.end();
        output
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_follow_each_other_at_the_rate_and_what_is_given_back_is_handed_out_again() {
        let pace = Pace::new(640_000);
        let begun = Instant::now();
        let mut bytes = 0;
        let last = loop {
            let piece = pace.piece();
            bytes += piece.bytes;
            if bytes >= 6_400_000 {
                break piece.from + Duration::from_secs(piece.bytes) / 640_000;
            }
        };
        let took = last.saturating_duration_since(begun);
        assert!(took <= Duration::from_secs(10) && took >= Duration::from_secs(10) - 2 * BURST, "{took:?}");
        pace.give_back(3_200_000);
        let next = pace.piece().from.saturating_duration_since(begun);
        assert!(next <= Duration::from_secs(5) && next >= Duration::from_secs(5) - 3 * BURST, "{next:?}");
        pace.charge(640_000);
        assert!(pace.piece().from >= begun + next + Duration::from_secs(1));
    }

    #[tokio::test]
    async fn a_time_limit_stands_still_while_its_connection_waits() {
        let waits = Waits::default();
        let never = std::future::pending::<()>();
        waits.begin();
        let begun = Instant::now();
        let slept = tokio::join!(waits.timeout_at(begun + Duration::from_millis(20), never), async {
            tokio::time::sleep(Duration::from_millis(150)).await;
            waits.end();
        });
        assert_eq!(slept.0, None);
        assert!(begun.elapsed() >= Duration::from_millis(165), "{:?}", begun.elapsed());
        assert!(waits.total() >= Duration::from_millis(150));
    }
}
