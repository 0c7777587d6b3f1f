//! Counts the bytes to and from web servers, and limits their rate, at the sockets: heads, bodies and TLS alike.

use super::pace::{Pace, Piece, Waits};
use crate::tcp_bytes::TcpBytes;
use nearcrawl_model::time::WallTime;
use std::{
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker, ready},
    time::{Instant, SystemTime, UNIX_EPOCH},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::Notify,
    time::{Sleep, sleep_until},
};

/// What headers add about to the bytes of a page, in hundredths: 66 octets to each 1,448, and an acknowledgement to every second. Only how much may
/// be read is told by it; what was moved the kernel tells.
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
    /// From this moment on no request begins, in milliseconds since 1970.
    ends_at: AtomicU64,
    /// How fast; none as fast as they come.
    pace: Option<Pace>,
    /// How many bytes a connection may hold that nobody has read.
    unread: Option<u32>,
    /// Streams that wait until more is allowed.
    waiting: Mutex<Vec<Waker>>,
}

impl Default for Wire {
    fn default() -> Wire {
        let (moved, most, low) = (AtomicU64::new(0), AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX));
        let (closed, ends_at, waiting) = (AtomicBool::new(false), AtomicU64::new(u64::MAX), Mutex::default());
        Wire { moved, most, low, running_out: Notify::new(), closed, ends_at, pace: None, unread: None, waiting }
    }
}

impl Wire {
    /// With a limit of bytes a second, and of what each connection may hold that nobody has read.
    pub fn paced(rate: Option<u64>, unread: Option<u32>) -> Wire {
        Wire { pace: rate.map(Pace::new), unread, ..Wire::default() }
    }

    /// How many bytes a socket's own buffer is to hold; none if the system may choose.
    pub fn buffer(&self) -> Option<u32> {
        self.pace.as_ref().map(Pace::buffer).into_iter().chain(self.unread).min()
    }

    /// Bytes since the start, with what TCP, IP and the link add.
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

    /// Bytes that were moved outside of a [`Counted`] stream, headers included. They do not wait; they delay others.
    pub fn spend(&self, bytes: u64) {
        self.count(bytes);
        if let Some(pace) = &self.pace {
            pace.charge(bytes);
        }
    }

    /// From this moment on no request begins; none if there is no such moment. Who waits for bytes looks whether it may still begin.
    pub fn begin_until(&self, end: Option<WallTime>) {
        let end = end.map_or(u64::MAX, |end| end.0);
        if self.ends_at.swap(end, Ordering::Relaxed) != end {
            self.waiting().drain(..).for_each(Waker::wake);
        }
    }

    /// Whether a request may begin now. What was ordered before the end of the operator's hours may have waited for its turn.
    pub fn may_begin(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        now < self.ends_at.load(Ordering::Relaxed)
    }

    /// Returns when bytes may be moved: whether a request may begin then. Whoever waits is woken each time that more bytes are allowed. What may
    /// not begin does not wait for that: when the rest is over, hours later, nobody may want it any more.
    pub async fn opens(&self) -> bool {
        std::future::poll_fn(|cx| match self.may_begin() {
            true if self.must_wait(cx) => Poll::Pending,
            may_begin => Poll::Ready(may_begin),
        })
        .await
    }

    /// Whether no connection is to be opened from now on.
    pub fn close(&self, is_closed: bool) {
        self.closed.store(is_closed, Ordering::Relaxed);
    }

    /// Whether no connection is to be opened.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waker>> {
        // A list of wakers is as good after a panic as before.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a stream has to wait; it is woken when it may go on.
    fn must_wait(&self, cx: &Context<'_>) -> bool {
        let is_spent = self.moved() >= self.most.load(Ordering::Relaxed);
        if is_spent {
            self.wake_later(cx);
        }
        is_spent
    }

    fn wake_later(&self, cx: &Context<'_>) {
        let mut waiting = self.waiting();
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
    }

    fn count(&self, bytes: u64) {
        let before = self.moved.fetch_add(bytes, Ordering::Relaxed);
        let crosses = |mark: &AtomicU64| (before..before.saturating_add(bytes)).contains(&mark.load(Ordering::Relaxed).saturating_sub(1));
        if crosses(&self.low) || crosses(&self.most) {
            self.running_out.notify_one();
        }
    }
}

/// A TCP stream whose bytes are counted, and read no faster than they may be.
pub struct Counted {
    stream: TcpStream,
    wire: Arc<Wire>,
    waits: Arc<Waits>,
    bytes: TcpBytes,
    /// What it may read next, and what wakes it then.
    turn: Option<Turn>,
    /// Whether it is counted only: it measures times, and moves little.
    is_prompt: bool,
}

/// A piece that a stream waits for.
struct Turn {
    piece: Piece,
    sleep: Pin<Box<Sleep>>,
}

impl Counted {
    /// A stream that was opened just now.
    pub fn new(stream: TcpStream, wire: Arc<Wire>) -> Counted {
        wire.spend(PER_CONNECTION);
        let bytes = TcpBytes::of(&stream, stream.peer_addr().ok());
        Counted { stream, wire, waits: Arc::default(), bytes, turn: None, is_prompt: false }
    }

    /// The same, but it does not wait: what it moves delays others.
    pub fn prompt(stream: TcpStream, wire: Arc<Wire>) -> Counted {
        let mut counted = Counted::new(stream, wire);
        counted.is_prompt = true;
        counted
    }

    /// The stream itself.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// How long it waited by its own limits.
    pub fn waits(&self) -> Arc<Waits> {
        Arc::clone(&self.waits)
    }

    /// Returns how many bytes they are with headers.
    fn count(&mut self, bytes: usize) -> u64 {
        let all = self.bytes.more(bytes as u64);
        self.wire.count(all);
        all
    }

    /// Whether it has to wait until more bytes are allowed.
    fn must_wait(&self, cx: &Context<'_>) -> bool {
        let must_wait = !self.is_prompt && self.wire.must_wait(cx);
        if must_wait {
            self.waits.begin();
        } else if self.turn.is_none() {
            self.waits.end();
        }
        must_wait
    }

    /// The piece that may be read now; it is waited for only when there is something to read.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Piece>>> {
        let Some(pace) = self.wire.pace.as_ref().filter(|_| !self.is_prompt) else { return Poll::Ready(Ok(None)) };
        if self.turn.is_none() {
            ready!(self.stream.poll_read_ready(cx))?;
            let piece = pace.piece();
            if piece.from <= Instant::now() {
                return Poll::Ready(Ok(Some(piece)));
            }
            self.waits.begin();
            self.turn = Some(Turn { piece, sleep: Box::pin(sleep_until(piece.from.into())) });
        }
        let Some(turn) = &mut self.turn else { return Poll::Pending };
        ready!(turn.sleep.as_mut().poll(cx));
        self.waits.end();
        Poll::Ready(Ok(self.turn.take().map(|turn| turn.piece)))
    }

    fn poll_some(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<u64>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let came = buffer.filled().len() - before;
        let counted = if came > 0 { self.count(came) } else { 0 };
        polled.map_ok(|()| counted)
    }

    /// Reads no more than a piece.
    fn poll_read_piece(&mut self, cx: &mut Context<'_>, piece: Piece, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let most = usize::try_from(piece.bytes * 100 / (100 + HEADERS_PERCENT)).unwrap_or(usize::MAX).min(buffer.remaining());
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(most));
        let polled = self.poll_some(cx, &mut part);
        let came = part.filled().len();
        buffer.advance(came);
        let moved = if let Poll::Ready(Ok(moved)) = &polled { *moved } else { 0 };
        if let Some(pace) = &self.wire.pace {
            pace.give_back(piece.bytes.saturating_sub(moved));
            pace.charge(moved.saturating_sub(piece.bytes));
        }
        polled.map_ok(|_| ())
    }

    /// A request, or what TLS says: little, and not waited for. It delays what is read next.
    fn sent(&mut self, polled: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(sent)) = polled {
            let all = self.count(*sent);
            if let Some(pace) = &self.wire.pace {
                pace.charge(all);
            }
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let rest = self.bytes.rest();
        self.wire.count(rest);
        if let Some(pace) = &self.wire.pace {
            pace.charge(rest);
        }
        if let (Some(pace), Some(turn)) = (&self.wire.pace, &self.turn) {
            pace.give_back(turn.piece.bytes);
        }
    }
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.must_wait(cx) {
            return Poll::Pending;
        }
        if let Some(piece) = ready!(self.poll_piece(cx))? {
            return self.poll_read_piece(cx, piece, buffer);
        }
        let polled = self.poll_some(cx, buffer);
        if let (Some(pace), Poll::Ready(Ok(moved))) = (&self.wire.pace, &polled) {
            pace.charge(*moved);
        }
        polled.map_ok(|_| ())
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.must_wait(cx) {
            return Poll::Pending;
        }
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.sent(&polled);
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if self.must_wait(cx) {
            return Poll::Pending;
        }
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.sent(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
