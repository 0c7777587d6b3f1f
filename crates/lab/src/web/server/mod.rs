//! HTTP servers for made-up webs: on many loopback addresses, slow by who asks, with a log of every request.

mod log;
#[cfg(test)]
mod tests;

pub use log::{Log, MAX_KEPT, Most, Pause, RequestSeen};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response, body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use nearcrawl_model::revisit::content_of;
use socket2::SockRef;
use std::{
    convert::Infallible,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The answer of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The HTTP status.
    pub status: u16,
    /// `Content-Type`, if there is a body.
    pub content_type: Option<&'static str>,
    /// `Location`, for a redirect.
    pub location: Option<String>,
    /// The body, as it is sent.
    pub body: Bytes,
}

impl HttpAnswer {
    /// 200 with this content.
    pub fn ok(content_type: &'static str, body: impl Into<Bytes>) -> HttpAnswer {
        HttpAnswer { status: 200, content_type: Some(content_type), location: None, body: body.into() }
    }

    /// 200 with an HTML page.
    pub fn html(body: impl Into<Bytes>) -> HttpAnswer {
        HttpAnswer::ok("text/html; charset=utf-8", body)
    }

    /// A redirect with this status to this URL.
    pub fn redirect(status: u16, to: impl Into<String>) -> HttpAnswer {
        HttpAnswer { status, content_type: None, location: Some(to.into()), body: Bytes::new() }
    }

    /// A status with a short text.
    pub fn status(status: u16) -> HttpAnswer {
        HttpAnswer { status, content_type: Some("text/plain"), location: None, body: Bytes::from_static(b"nothing here\n") }
    }
}

/// A web: what each host answers, and how slowly.
pub trait HttpSite: Send + Sync + 'static {
    /// The answer of `host` (lower case, no port) to `path` (with its query).
    fn respond(&self, host: &str, path: &str) -> HttpAnswer;

    /// How long the answer of the server at `server` takes when `peer` asks.
    fn delay(&self, server: IpAddr, peer: IpAddr) -> Duration {
        let _ = (server, peer);
        Duration::ZERO
    }
}

/// A web server could not listen on its address.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source} (is another demonstration running?)")]
pub struct ListenError {
    /// The address that it was to listen on.
    pub address: SocketAddr,
    /// The error that the system reports.
    pub source: io::Error,
}

/// Servers on many addresses with one log; they end when this is dropped.
#[derive(Debug)]
pub struct WebServers {
    log: Arc<Log>,
    addresses: Vec<SocketAddr>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl WebServers {
    /// Serves `site` on all the addresses.
    pub async fn start<S: HttpSite>(addresses: impl IntoIterator<Item = SocketAddr>, site: Arc<S>) -> Result<WebServers, ListenError> {
        let mut servers =
            WebServers { log: Arc::default(), addresses: Vec::new(), stop: CancellationToken::new(), tasks: TaskTracker::new() };
        for address in addresses {
            let refused = |source| ListenError { address, source };
            let listener = TcpListener::bind(address).await.map_err(refused)?;
            servers.addresses.push(listener.local_addr().map_err(refused)?);
            servers.tasks.spawn(listen(listener, site.clone(), servers.log.clone(), servers.stop.clone(), servers.tasks.clone()));
        }
        Ok(servers)
    }

    /// Serves `site` on what listens already, at `address`.
    pub fn on<S: HttpSite>(listener: TcpListener, address: SocketAddr, site: Arc<S>) -> WebServers {
        let servers =
            WebServers { log: Arc::default(), addresses: vec![address], stop: CancellationToken::new(), tasks: TaskTracker::new() };
        servers.tasks.spawn(listen(listener, site, servers.log.clone(), servers.stop.clone(), servers.tasks.clone()));
        servers
    }

    /// What they saw.
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// Where they listen.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Closes all connections and listeners, and waits until that is done.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for WebServers {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Accepts connections at one address.
async fn listen<S: HttpSite>(listener: TcpListener, site: Arc<S>, log: Arc<Log>, stop: CancellationToken, tasks: TaskTracker) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        // Too many open files, or a connection that was gone again: the listener itself is fine.
        let Ok((stream, peer)) = accepted else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let (site, log, stop) = (site.clone(), log.clone(), stop.clone());
        tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = talk(stream, peer.ip(), site, log) => {}
            }
        });
    }
}

/// Answers all requests of one connection.
async fn talk<S: HttpSite>(stream: TcpStream, peer: IpAddr, site: Arc<S>, log: Arc<Log>) {
    let _ = stream.set_nodelay(true);
    let (Ok(local), Ok(duplicate)) = (stream.local_addr(), SockRef::from(&stream).try_clone()) else { return };
    let server = local.ip();
    // Dropped after the connection, and with it the duplicate: only then does the peer see the end.
    let _open = log.opened(server, duplicate);
    let service = service_fn(|request: Request<Incoming>| {
        let (site, log) = (site.clone(), log.clone());
        async move { Ok::<_, Infallible>(answer(&request, server, peer, &*site, &log).await) }
    });
    // An error is the peer's: it went away or spoke no HTTP.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(120))
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// One request: logged, delayed, answered.
async fn answer<S: HttpSite>(request: &Request<Incoming>, server: IpAddr, peer: IpAddr, site: &S, log: &Arc<Log>) -> Response<Full<Bytes>> {
    let authority = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host).to_ascii_lowercase();
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let seen = log.asked(RequestSeen {
        start: log.now(),
        end: None,
        server,
        peer,
        method: request.method().to_string(),
        host: host.clone(),
        path: path.clone(),
        status: None,
    });
    let mut answer = match request.method().as_str() {
        "GET" | "HEAD" => site.respond(&host, &path),
        _ => HttpAnswer::status(405),
    };
    let version = (answer.status == 200).then(|| format!("\"{:016x}\"", content_of(&answer.body)));
    let known = request.headers().get(header::IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    if version.is_some() && version.as_deref() == known {
        answer = HttpAnswer { content_type: None, body: Bytes::new(), ..HttpAnswer::status(304) };
    }
    tokio::time::sleep(site.delay(server, peer)).await;
    let mut response = Response::builder().status(answer.status).header(header::SERVER, "made-up/1.0");
    if let Some(content_type) = answer.content_type {
        response = response.header(header::CONTENT_TYPE, content_type);
    }
    if let Some(location) = &answer.location {
        response = response.header(header::LOCATION, location);
    }
    if let Some(version) = version {
        response = response.header(header::ETAG, version);
    }
    seen.answered(answer.status);
    // Only a header that a site made up wrongly can fail here.
    response.body(Full::new(answer.body)).unwrap_or_else(|_| {
        let mut broken = Response::new(Full::default());
        *broken.status_mut() = hyper::StatusCode::INTERNAL_SERVER_ERROR;
        broken
    })
}
