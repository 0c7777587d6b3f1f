//! Measures the round-trip time to a server: a few connects or one small request, one after the other, each closed before the next.

use super::fetcher::{Counted, FetcherConfigError, Waits, Wire, dial::dial, header_value, micros, millis, tls::WebTls};
use nearcrawl_model::{
    address::AddressPolicy,
    fetch::{FetchError, ProbeKind, ProbeReport, ProbeTarget},
    url::Origin,
};
use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// Connects that make one `tcp` probe; the least of them counts, for a queue can only add time.
pub const CONNECTS: usize = 3;

/// The longest head of an answer that is read.
const MAX_HEAD: usize = 64 << 10;

/// The time limits of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeTimeouts {
    /// The longest time for one TCP connect.
    pub connect: Duration,
    /// The longest time for the TLS handshake.
    pub tls: Duration,
    /// The longest time from the request to the head of the answer.
    pub head: Duration,
    /// For the server to close its side, before the connection is cut.
    pub close: Duration,
}

impl Default for ProbeTimeouts {
    fn default() -> Self {
        let long = Duration::from_secs(5);
        ProbeTimeouts { connect: long, tls: long, head: long, close: Duration::from_millis(200) }
    }
}

/// Measures round-trip times to servers. Cheap to clone.
#[derive(Clone)]
pub struct Prober {
    source_address: Option<IpAddr>,
    policy: Arc<AddressPolicy>,
    timeouts: ProbeTimeouts,
    user_agent: Arc<str>,
    tls: WebTls,
    wire: Arc<Wire>,
}

impl Prober {
    /// A prober that trusts the web's roots and calls itself `user_agent` when it asks.
    pub fn new(
        source_address: Option<IpAddr>,
        policy: impl Into<Arc<AddressPolicy>>,
        timeouts: ProbeTimeouts,
        user_agent: &str,
    ) -> Result<Prober, FetcherConfigError> {
        let fits = header_value(user_agent).is_some();
        let user_agent = if fits { user_agent.into() } else { return Err(FetcherConfigError::UserAgent(user_agent.to_owned())) };
        Ok(Prober { source_address, policy: policy.into(), timeouts, user_agent, tls: WebTls::default(), wire: Arc::default() })
    }

    /// The same prober with other roots.
    pub fn trusting(self, tls: WebTls) -> Prober {
        Prober { tls, ..self }
    }

    /// The same prober, and its bytes count among those of a fetcher.
    pub fn counted_by(self, wire: Arc<Wire>) -> Prober {
        Prober { wire, ..self }
    }

    /// Probes once, as soon as bytes may be moved; [`FetchError::Cancelled`], and nothing was sent, if no request may begin any more. When it
    /// returns, no connection is open any more.
    pub async fn probe(&self, target: &ProbeTarget, kind: ProbeKind) -> ProbeReport {
        if !self.wire.opens().await {
            return ProbeReport { rtt_us: Err(FetchError::Cancelled), took: 0 };
        }
        let begun = Instant::now();
        let rtt = match kind {
            ProbeKind::Tcp => self.least_connect(target).await,
            ProbeKind::HttpHead => self.ask_head(target).await,
        };
        ProbeReport { rtt_us: rtt.map(micros), took: millis(begun.elapsed()) }
    }

    async fn connect(&self, target: &ProbeTarget) -> Result<Counted, FetchError> {
        let stream = dial(target.address, self.source_address, &self.policy, self.timeouts.connect, None).await?;
        Ok(Counted::prompt(stream, Arc::clone(&self.wire)))
    }

    /// The least of three connects. The first failure ends it: a server that is down is not knocked at three times.
    async fn least_connect(&self, target: &ProbeTarget) -> Result<Duration, FetchError> {
        let mut least: Option<Duration> = None;
        for _ in 0..CONNECTS {
            let begun = Instant::now();
            match self.connect(target).await {
                Ok(stream) => {
                    let rtt = begun.elapsed();
                    self.close_tcp(stream).await;
                    least = Some(least.map_or(rtt, |least| least.min(rtt)));
                }
                Err(failure) => return least.ok_or(failure),
            }
        }
        least.ok_or(FetchError::Closed)
    }

    async fn ask_head(&self, target: &ProbeTarget) -> Result<Duration, FetchError> {
        let origin = Origin { secure: target.secure, host: target.host.clone(), port: target.address.port() };
        let request = format!(
            "HEAD /robots.txt HTTP/1.1\r\nHost: {}\r\nUser-Agent: {}\r\nAccept: */*\r\nConnection: close\r\n\r\n",
            origin.authority(),
            self.user_agent
        );
        let mut stream = self.connect(target).await?;
        if target.secure {
            let mut stream = self.tls.secure(stream, &target.host, self.timeouts.tls, &Waits::default()).await?;
            let rtt = self.exchange(&mut stream, &request).await;
            self.close(&mut stream).await;
            let (stream, _) = stream.into_inner();
            cut(stream.stream());
            rtt
        } else {
            let rtt = self.exchange(&mut stream, &request).await;
            self.close_tcp(stream).await;
            rtt
        }
    }

    /// From sending the request to the end of the answer's head.
    async fn exchange(&self, stream: &mut (impl AsyncRead + AsyncWrite + Unpin), request: &str) -> Result<Duration, FetchError> {
        let sent = Instant::now();
        let head = async {
            stream.write_all(request.as_bytes()).await.map_err(|_| FetchError::Closed)?;
            stream.flush().await.map_err(|_| FetchError::Closed)?;
            read_head(stream).await
        };
        timeout(self.timeouts.head, head).await.map_err(|_| FetchError::HeadTimeout)??;
        Ok(sent.elapsed())
    }

    async fn close_tcp(&self, mut stream: Counted) {
        self.close(&mut stream).await;
        cut(stream.stream());
    }

    /// Says that we are done and waits a moment for the server to say so too.
    async fn close(&self, stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
        let closing = async {
            let _ = stream.shutdown().await;
            let mut rest = [0u8; 4096];
            while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
        };
        let _ = timeout(self.timeouts.close, closing).await;
    }
}

/// Makes the socket's end final also for a server that has not closed its side: it must not see two of ours at once.
/// Where both sides have closed, this sends nothing.
fn cut(stream: &TcpStream) {
    let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Result<(), FetchError> {
    let mut head = Vec::with_capacity(1024);
    loop {
        match stream.read_buf(&mut head).await {
            Ok(0) | Err(_) => return Err(FetchError::Closed),
            Ok(_) => {}
        }
        let begins = head.len().min(5);
        if head[..begins] != b"HTTP/"[..begins] {
            return Err(FetchError::NotHttp);
        }
        if memchr::memmem::find(&head, b"\r\n\r\n").is_some() || memchr::memmem::find(&head, b"\n\n").is_some() {
            return Ok(());
        }
        if head.len() > MAX_HEAD {
            return Err(FetchError::HeadTooLarge);
        }
    }
}

#[cfg(test)]
mod tests;
