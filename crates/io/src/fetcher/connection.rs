//! One open connection: a stream that knows when bytes came, the task that drives it, and an end that is waited for.

use super::{
    dial::dial,
    facts,
    limits::FetchLimits,
    pace::Waits,
    tls::WebTls,
    wire::{Counted, Wire},
};
use crate::tasks::{self, TaskKind};
use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use nearcrawl_model::{
    address::AddressPolicy,
    facts::Fact,
    fetch::FetchError,
    url::{Host, PageUrl},
};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    task::JoinHandle,
};
use tokio_rustls::client::TlsStream;

/// How many headers hyper takes if nothing is said.
const HYPERS_HEADERS: usize = 100;

/// How long a connection may take to end cleanly before it is cut.
const CLOSING: Duration = Duration::from_secs(1);

/// What a connection is good for: scheme and port, and under TLS the host that the certificate was checked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    port: u16,
    secure: Option<Host>,
}

impl Line {
    /// The line that a page's origin needs.
    pub fn of(url: &PageUrl) -> Line {
        Line { port: url.port(), secure: url.is_secure().then(|| url.host()) }
    }
}

/// Counts what comes in, notes when the first of it came, and lets no more in than is allowed: whatever a server calls a head, a chunk
/// or a trailer, reading it costs us time.
pub struct Meter {
    made: Instant,
    read: AtomicU64,
    most: AtomicU64,
    /// Nanoseconds after `made`, 0 for never.
    first: AtomicU64,
}

impl Meter {
    fn new() -> Meter {
        Meter { made: Instant::now(), read: AtomicU64::new(0), most: AtomicU64::new(u64::MAX), first: AtomicU64::new(0) }
    }

    /// Begins anew: before each request. After `most` bytes reading fails.
    pub fn reset(&self, most: u64) {
        self.most.store(most, Ordering::Relaxed);
        self.read.store(0, Ordering::Relaxed);
        self.first.store(0, Ordering::Relaxed);
    }

    /// Lets in so much more.
    pub fn allow(&self, more: u64) {
        self.most.fetch_add(more, Ordering::Relaxed);
    }

    /// Bytes since the last reset.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// When the first byte since the last reset came.
    pub fn first_byte(&self) -> Option<Instant> {
        let nanos = self.first.load(Ordering::Relaxed);
        (nanos > 0).then(|| self.made + Duration::from_nanos(nanos))
    }

    fn count(&self, bytes: usize) {
        if self.read.fetch_add(bytes as u64, Ordering::Relaxed) == 0 {
            let nanos = u64::try_from(self.made.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.first.store(nanos.max(1), Ordering::Relaxed);
        }
    }
}

/// A plain TCP stream or one with TLS.
enum Transport {
    Plain(Counted),
    Secure(Box<TlsStream<Counted>>),
}

/// A stream that is counted as open from its first to its last moment.
struct Metered {
    transport: Transport,
    meter: Arc<Meter>,
    open: Arc<AtomicUsize>,
}

impl Metered {
    fn new(transport: Transport, meter: Arc<Meter>, open: Arc<AtomicUsize>) -> Metered {
        open.fetch_add(1, Ordering::Relaxed);
        Metered { transport, meter, open }
    }
}

impl Drop for Metered {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl AsyncRead for Metered {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.meter.read() > self.meter.most.load(Ordering::Relaxed) {
            return Poll::Ready(Err(io::ErrorKind::FileTooLarge.into()));
        }
        let before = buffer.filled().len();
        let polled = match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Transport::Secure(stream) => Pin::new(stream).poll_read(cx, buffer),
        };
        let came = buffer.filled().len() - before;
        if came > 0 {
            self.meter.count(came);
        }
        polled
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Transport::Secure(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Transport::Secure(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Transport::Secure(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// The settings that all connections are opened with.
pub struct Opening {
    /// Which addresses may be dialled.
    pub policy: Arc<AddressPolicy>,
    /// The local address to connect from; none lets the system choose.
    pub source: Option<IpAddr>,
    /// The time limits.
    pub limits: FetchLimits,
    /// The TLS configuration.
    pub tls: WebTls,
    /// How many connections are open.
    pub open: Arc<AtomicUsize>,
    /// How many were ever opened.
    pub opened: AtomicU64,
    /// The bytes of all of them.
    pub wire: Arc<Wire>,
}

impl Opening {
    /// Connects and, for https, completes the TLS handshake, until the deadline.
    /// One whose bytes do not wait for the operator's limits is counted all the same.
    pub async fn open(&self, address: SocketAddr, line: Line, deadline: Instant, is_prompt: bool) -> Result<Connection, FetchError> {
        let begun = Instant::now();
        let patience = |limit: Duration| limit.min(deadline.saturating_duration_since(Instant::now()));
        let stream = dial(address, self.source, &self.policy, patience(self.limits.connect), self.wire.buffer()).await?;
        let stood_after = begun.elapsed();
        let wire = Arc::clone(&self.wire);
        let stream = if is_prompt { Counted::prompt(stream, wire) } else { Counted::new(stream, wire) };
        let waits = stream.waits();
        self.opened.fetch_add(1, Ordering::Relaxed);
        let (transport, facts) = match &line.secure {
            None => (Transport::Plain(stream), Vec::new()),
            Some(host) => {
                let secure = self.tls.secure(stream, host, patience(self.limits.tls), &waits).await?;
                let facts = facts::of_session(secure.get_ref().1);
                (Transport::Secure(Box::new(secure)), facts)
            }
        };
        let meter = Arc::new(Meter::new());
        let metered = Metered::new(transport, meter.clone(), self.open.clone());
        let mut builder = Builder::new();
        builder.max_header_size(self.limits.head_bytes).max_buf_size(self.limits.head_bytes.max(8192));
        // Saying what hyper does by itself would cost room on the heap for each answer.
        if self.limits.headers != HYPERS_HEADERS {
            builder.max_headers(self.limits.headers);
        }
        let handshake = builder.handshake(TokioIo::new(metered)).await;
        let (sender, driving) = handshake.map_err(|_| FetchError::Closed)?;
        let driver = tokio::spawn(async move {
            let _running = tasks::begin(TaskKind::Connection);
            driving.await
        });
        Ok(Connection { sender, driver, meter, waits, line, stood_after, facts, busy: false, idle_since: Instant::now() })
    }
}

/// An open connection.
pub struct Connection {
    /// The half of the connection that sends requests.
    pub sender: SendRequest<Empty<Bytes>>,
    /// Meters the bytes that the socket receives.
    pub meter: Arc<Meter>,
    /// How long it waited by the operator's limits.
    pub waits: Arc<Waits>,
    /// What the connection is good for.
    pub line: Line,
    /// The duration of the TCP connect.
    pub stood_after: Duration,
    /// What its TLS session says of the server.
    pub facts: Vec<Fact>,
    /// Set while a request is under way. If it is set before one begins, the connection has the rest of an abandoned answer.
    pub busy: bool,
    /// When the last request ended.
    pub idle_since: Instant,
    driver: JoinHandle<hyper::Result<()>>,
}

impl Connection {
    /// Whether another request may go over it, as far as can be seen.
    pub fn is_usable(&self) -> bool {
        !self.busy && !self.sender.is_closed() && !self.driver.is_finished()
    }

    /// Closes it, waits until it is closed, and returns the error that it had ended with, if any.
    pub async fn close(self) -> Option<hyper::Error> {
        let Connection { sender, mut driver, .. } = self;
        // Without a sender the driver has nothing to wait for: it shuts the stream down and ends.
        drop(sender);
        match tokio::time::timeout(CLOSING, &mut driver).await {
            Ok(Ok(ended)) => ended.err(),
            Ok(Err(_)) => None,
            Err(_) => {
                driver.abort();
                let _ = driver.await;
                None
            }
        }
    }
}
