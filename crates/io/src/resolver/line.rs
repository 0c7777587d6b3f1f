//! Counts and limits the questions to name servers.
//!
//! The sockets of the resolver are counted, questions and bytes, and look-ups wait for their turn.

use crate::fetcher::{Counted, Waits, Wire};
use hickory_resolver::net::runtime::{
    DnsUdpSocket, RuntimeProvider, TokioHandle, TokioRuntimeProvider, TokioTime, iocompat::AsyncIoTokioAsStd,
};
use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};
use tokio::net::{TcpSocket, UdpSocket};

/// What Ethernet, IP and UDP add to each datagram, in bytes: what interfaces count, as with connections.
const HEADERS_V4: u64 = 42;
const HEADERS_V6: u64 = 62;

/// How long a connection to a name server may take to stand if nothing is said.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// What questions cost, and how many of them there may be in a second.
#[derive(Debug)]
pub struct Questions {
    wire: Arc<Wire>,
    /// From one question to the next; none without a limit.
    gap: Option<Duration>,
    /// When the next one may be sent.
    next: Mutex<Instant>,
    /// Who has it is first in line.
    line: tokio::sync::Mutex<()>,
    /// Look-ups whose turn came, and questions that were sent: one look-up repeats its question if no answer comes.
    turns: AtomicU64,
    sent: AtomicU64,
    delayed: AtomicU64,
}

impl Questions {
    /// Whose bytes this counts, and how many there may be in a second.
    pub fn new(wire: Arc<Wire>, per_second: Option<u32>) -> Questions {
        let gap = per_second.map(|most| Duration::from_secs(1) / most.max(1));
        let [turns, sent, delayed] = std::array::from_fn(|_| AtomicU64::new(0));
        Questions { wire, gap, next: Mutex::new(Instant::now()), line: Default::default(), turns, sent, delayed }
    }

    /// Questions that were sent since the start, repeated ones included.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// How many of them waited for their turn.
    pub fn delayed(&self) -> u64 {
        self.delayed.load(Ordering::Relaxed)
    }

    /// Takes the next place if its time has come, else says when that is; none is saved up for later.
    fn place(&self, gap: Duration) -> Result<(), Instant> {
        let (mut next, now) = (self.next.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        if *next > now {
            return Err(*next);
        }
        *next = now + gap;
        Ok(())
    }

    /// Waits until one more may be asked.
    pub async fn turn(&self, waits: &Waits) {
        if let Some(gap) = self.gap {
            waits.begin();
            let first = self.line.try_lock().ok();
            let mut waited = first.is_none();
            let _first = if let Some(first) = first { first } else { self.line.lock().await };
            // A question that is repeated meanwhile takes a place, too.
            while let Err(place) = self.place(gap) {
                waited = true;
                tokio::time::sleep_until(place.into()).await;
            }
            self.delayed.fetch_add(u64::from(waited), Ordering::Relaxed);
            waits.end();
        }
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    /// A datagram of so many bytes came or went.
    fn datagram(&self, bytes: usize, other: SocketAddr) {
        let headers = if other.is_ipv4() { HEADERS_V4 } else { HEADERS_V6 };
        self.wire.spend(bytes as u64 + headers);
    }

    /// A question is on its way. One that had no turn is a repeated one: it delays the others.
    fn asked(&self) {
        let sent = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(gap) = self.gap.filter(|_| sent > self.turns.load(Ordering::Relaxed)) {
            self.turns.fetch_add(1, Ordering::Relaxed);
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            *next = (*next).max(Instant::now()) + gap;
        }
    }
}

/// Makes the resolver's sockets.
#[derive(Clone)]
pub struct Line {
    provider: TokioRuntimeProvider,
    questions: Arc<Questions>,
}

impl Line {
    /// They are counted there.
    pub fn new(questions: Arc<Questions>) -> Line {
        Line { provider: TokioRuntimeProvider::default(), questions }
    }
}

impl RuntimeProvider for Line {
    type Handle = TokioHandle;
    type Timer = TokioTime;
    type Udp = CountedUdp;
    type Tcp = AsyncIoTokioAsStd<Counted>;

    fn create_handle(&self) -> TokioHandle {
        self.provider.create_handle()
    }

    fn connect_tcp(
        &self,
        server: SocketAddr,
        source: Option<SocketAddr>,
        patience: Option<Duration>,
    ) -> Pin<Box<dyn Send + Future<Output = io::Result<Self::Tcp>>>> {
        let questions = Arc::clone(&self.questions);
        Box::pin(async move {
            let socket = if server.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            if let Some(source) = source {
                socket.bind(source)?;
            }
            socket.set_nodelay(true)?;
            let connecting = tokio::time::timeout(patience.unwrap_or(CONNECT_WITHIN), socket.connect(server));
            let stream = connecting.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
            questions.asked();
            Ok(AsyncIoTokioAsStd(Counted::prompt(stream, Arc::clone(&questions.wire))))
        })
    }

    fn bind_udp(&self, local: SocketAddr, _: SocketAddr) -> Pin<Box<dyn Send + Future<Output = io::Result<Self::Udp>>>> {
        let questions = Arc::clone(&self.questions);
        Box::pin(async move { Ok(CountedUdp { socket: UdpSocket::bind(local).await?, questions }) })
    }
}

/// A UDP socket whose datagrams are counted.
pub struct CountedUdp {
    socket: UdpSocket,
    questions: Arc<Questions>,
}

impl DnsUdpSocket for CountedUdp {
    type Time = TokioTime;

    fn poll_recv_from(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<(usize, SocketAddr)>> {
        let polled = DnsUdpSocket::poll_recv_from(&self.socket, cx, buffer);
        if let Poll::Ready(Ok((bytes, from))) = &polled {
            self.questions.datagram(*bytes, *from);
        }
        polled
    }

    fn poll_send_to(&self, cx: &mut Context<'_>, bytes: &[u8], to: SocketAddr) -> Poll<io::Result<usize>> {
        let polled = DnsUdpSocket::poll_send_to(&self.socket, cx, bytes, to);
        if let Poll::Ready(Ok(sent)) = &polled {
            self.questions.datagram(*sent, to);
            self.questions.asked();
        }
        polled
    }
}
