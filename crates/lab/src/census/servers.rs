//! The made-up web over HTTP and HTTPS on loopback: what answers, what does not, and a log of every request.

use super::{
    certificates::{CertificateError, Certificates},
    world::{
        World,
        host::{Door, Tls},
    },
};
use crate::web::server::{ListenError, Log, RequestSeen};
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response, Version, body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{LazyConfigAcceptor, rustls::ServerConfig, rustls::server::Acceptor};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Where http and https are answered.
pub(crate) const PORT: u16 = 8080;
pub(crate) const SECURE_PORT: u16 = 8443;

/// What all connections share.
struct Shared {
    world: Arc<World>,
    log: Arc<Log>,
    run: AtomicU32,
    tls: [Arc<ServerConfig>; 2],
}

impl Shared {
    fn run(&self) -> u32 {
        self.run.load(Ordering::Relaxed)
    }
}

/// All servers; they end when this is dropped.
pub(crate) struct Servers {
    shared: Arc<Shared>,
    listening: BTreeMap<Ipv4Addr, CancellationToken>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Servers {
    /// None listens before [`Servers::begin`].
    pub(crate) fn new(world: &Arc<World>, certificates: &Certificates) -> Result<Servers, CertificateError> {
        let tls = [certificates.server(Tls::V12)?, certificates.server(Tls::V13)?];
        let shared = Arc::new(Shared { world: world.clone(), log: Arc::default(), run: AtomicU32::new(0), tls });
        Ok(Servers { shared, listening: BTreeMap::new(), stop: CancellationToken::new(), tasks: TaskTracker::new() })
    }

    /// What they saw.
    pub(crate) fn log(&self) -> &Arc<Log> {
        &self.shared.log
    }

    /// From now on they answer as in this run (from 1): some begin to listen, some stop.
    pub(crate) async fn begin(&mut self, run: u32) -> Result<(), ListenError> {
        self.shared.run.store(run, Ordering::Relaxed);
        let world = self.shared.world.clone();
        let addresses: BTreeSet<Ipv4Addr> = world.hosts.iter().map(|host| host.address).collect();
        for address in addresses {
            match (world.listens(address, run), self.listening.contains_key(&address)) {
                (true, false) => {
                    let stop = self.stop.child_token();
                    for (port, secure) in [(PORT, false), (SECURE_PORT, true)] {
                        let at = SocketAddr::from((address, port));
                        let listener = TcpListener::bind(at).await.map_err(|source| ListenError { address: at, source })?;
                        self.tasks.spawn(listen(listener, secure, self.shared.clone(), stop.clone(), self.tasks.clone()));
                    }
                    self.listening.insert(address, stop);
                }
                (false, true) => self.listening.remove(&address).iter().for_each(CancellationToken::cancel),
                _ => {}
            }
        }
        Ok(())
    }

    /// Closes all listeners and connections.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Accepts connections at one address and port.
async fn listen(listener: TcpListener, secure: bool, shared: Arc<Shared>, stop: CancellationToken, tasks: TaskTracker) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, peer)) = accepted else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let (shared, stop) = (shared.clone(), stop.clone());
        tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = open(stream, peer.ip(), secure, shared) => {}
            }
        });
    }
}

/// Speaks on one connection, behind TLS or not.
async fn open(stream: TcpStream, peer: IpAddr, secure: bool, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let (Ok(local), Ok(duplicate)) = (stream.local_addr(), SockRef::from(&stream).try_clone()) else { return };
    let _open = shared.log.opened(local.ip(), duplicate);
    if !secure {
        return talk(stream, local.ip(), peer, false, shared).await;
    }
    let Ok(hello) = LazyConfigAcceptor::new(Acceptor::default(), stream).await else { return };
    let door = hello.client_hello().server_name().and_then(|name| shared.world.host(name)).map(|host| host.door);
    let tls = match door {
        Some(Door::Https(Tls::V12) | Door::Redirects(Tls::V12)) => &shared.tls[0],
        _ => &shared.tls[1],
    };
    if let Ok(stream) = hello.into_stream(tls.clone()).await {
        talk(stream, local.ip(), peer, true, shared).await;
    }
}

/// Answers all requests of one connection.
async fn talk<S: AsyncRead + AsyncWrite + Unpin>(stream: S, server: IpAddr, peer: IpAddr, secure: bool, shared: Arc<Shared>) {
    let service = service_fn(|request: Request<Incoming>| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(answer(&request, server, peer, secure, &shared).await) }
    });
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(300))
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// One request: logged, delayed, answered.
async fn answer(request: &Request<Incoming>, server: IpAddr, peer: IpAddr, secure: bool, shared: &Shared) -> Response<Full<Bytes>> {
    let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let authority = text(header::HOST);
    let name = authority.rsplit_once(':').map_or(authority, |(host, _)| host).to_ascii_lowercase();
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let seen = shared.log.asked(RequestSeen {
        start: shared.log.now(),
        end: None,
        server,
        peer,
        method: request.method().to_string(),
        // Both doors of a host are told apart.
        host: if secure { format!("{name}:{SECURE_PORT}") } else { name.clone() },
        path: path.clone(),
        status: None,
    });
    let known = Some(text(header::IF_NONE_MATCH)).filter(|known| !known.is_empty());
    let reply = shared.world.reply(&name, secure, &path, shared.run(), known);
    if reply.silent {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(Duration::from_millis(shared.world.delay_ms(server, peer))).await;
    let mut response = Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        response = response.header(*name, value);
    }
    if reply.http10 {
        response = response.version(Version::HTTP_10).header(header::CONNECTION, "keep-alive");
    }
    seen.answered(reply.status);
    response.body(Full::new(Bytes::from(reply.body))).unwrap_or_else(|_| {
        let mut broken = Response::new(Full::default());
        *broken.status_mut() = hyper::StatusCode::INTERNAL_SERVER_ERROR;
        broken
    })
}
