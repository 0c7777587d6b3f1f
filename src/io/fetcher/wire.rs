//! How many bytes go to and from web servers? Counted at the sockets: heads, bodies and TLS alike.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::Notify,
};

/// What TCP and IP add to the bytes of a socket, in hundredths: a header of 52 octets to each 1,448, and an acknowledgement to every second.
const HEADERS_PERCENT: u64 = 6;

/// What a connection costs besides: its handshake and its end.
const PER_CONNECTION: u64 = 400;

/// The bytes of all connections together, and how many they may be. Beyond that nothing more is read or written until more is allowed:
/// requests under way wait.
#[derive(Debug)]
pub struct Wire {
    moved: AtomicU64,
    most: AtomicU64,
    /// From here on more is needed soon.
    low: AtomicU64,
    running_out: Notify,
    /// Whether no connection is to be opened.
    closed: AtomicBool,
    /// How often a stream had to wait.
    stalls: AtomicU64,
    /// Streams that wait until more is allowed.
    waiting: Mutex<Vec<Waker>>,
}

impl Default for Wire {
    fn default() -> Wire {
        let (moved, most, low) = (AtomicU64::new(0), AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX));
        Wire {
            moved,
            most,
            low,
            running_out: Notify::new(),
            closed: AtomicBool::new(false),
            stalls: AtomicU64::new(0),
            waiting: Mutex::default(),
        }
    }
}

impl Wire {
    /// Bytes since the start, with what TCP and IP add by estimate.
    pub fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    /// From now on it may be so many more.
    pub fn allow(&self, more: u64) {
        let moved = self.moved();
        self.most.store(moved.saturating_add(more), Ordering::Relaxed);
        self.low.store(moved.saturating_add(more / 2), Ordering::Relaxed);
        if more > 0 {
            self.waiting().drain(..).for_each(Waker::wake);
        }
    }

    /// Returns when less than half of what was allowed is left, and when nothing is; at once if that happened since it last returned.
    pub async fn running_out(&self) {
        self.running_out.notified().await;
    }

    /// Whether no connection is to be opened from now on.
    pub fn close(&self, is_closed: bool) {
        self.closed.store(is_closed, Ordering::Relaxed);
    }

    /// Whether no connection is to be opened.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// How often a stream had to wait since the start: what took long meanwhile may not have been the server's doing.
    pub fn stalls(&self) -> u64 {
        self.stalls.load(Ordering::Relaxed)
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waker>> {
        // A list of wakers is as good after a panic as before.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a stream has to wait; it is woken when it may go on.
    fn must_wait(&self, cx: &Context<'_>) -> bool {
        let is_spent = self.moved() >= self.most.load(Ordering::Relaxed);
        if is_spent {
            self.stalls.fetch_add(1, Ordering::Relaxed);
            let mut waiting = self.waiting();
            if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                waiting.push(cx.waker().clone());
            }
        }
        is_spent
    }

    fn count(&self, bytes: u64) {
        let before = self.moved.fetch_add(bytes, Ordering::Relaxed);
        let crosses = |mark: &AtomicU64| (before..before.saturating_add(bytes)).contains(&mark.load(Ordering::Relaxed).saturating_sub(1));
        if crosses(&self.low) || crosses(&self.most) {
            self.running_out.notify_one();
        }
    }
}

/// A TCP stream whose bytes are counted.
pub struct Counted {
    stream: TcpStream,
    wire: Arc<Wire>,
    /// Hundredths of bytes that headers took and that are not counted yet.
    rest: u64,
}

impl Counted {
    /// A stream that was opened just now.
    pub fn new(stream: TcpStream, wire: Arc<Wire>) -> Counted {
        wire.count(PER_CONNECTION);
        Counted { stream, wire, rest: 0 }
    }

    fn count(&mut self, bytes: usize) {
        let headers = self.rest + bytes as u64 * HEADERS_PERCENT;
        self.rest = headers % 100;
        self.wire.count(bytes as u64 + headers / 100);
    }
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.wire.must_wait(cx) {
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let came = buffer.filled().len() - before;
        if came > 0 {
            self.count(came);
        }
        polled
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.wire.must_wait(cx) {
            return Poll::Pending;
        }
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(sent)) = &polled {
            self.count(*sent);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if self.wire.must_wait(cx) {
            return Poll::Pending;
        }
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        if let Poll::Ready(Ok(sent)) = &polled {
            self.count(*sent);
        }
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
