//! Tests that nothing that a web server can do stops the fetcher, fills the memory, or slows the crawl of other servers.
//!
//! One table of hostile servers (SAFETY's W1 to W14), each with the outcome that it must have. Each is tested twice: by the fetcher alone,
//! and all at once, with good servers among them, by the program as its users start it.

mod bodies;
mod case;
mod crawl;
mod heads;
mod pages;
mod times;

use case::{Case, Endpoint, Want};
use futures::StreamExt;
use nearcrawl::io::fetcher::{FetchLimits, Fetcher, FetcherConfig, tls::WebTls};
use nearcrawl_model::{
    address::AddressPolicy,
    fetch::{FetchOrder, FetchPurpose},
    fingerprint::FingerprintKey,
    url::PageUrl,
};
use nearcrawl_test_servers::web::{Log, Site};
use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{self, RootCertStore, ServerConfig, pki_types::PrivateKeyDer},
};

/// The time limits that are reached are scaled down, so that the tests are quick; the sizes are those of every day.
fn limits() -> FetchLimits {
    FetchLimits {
        connect: Duration::from_secs(1),
        tls: Duration::from_secs(1),
        head: Duration::from_secs(1),
        read_idle: Duration::from_secs(1),
        total: Duration::from_secs(3),
        ..FetchLimits::default()
    }
}

/// The whole table.
async fn all() -> Vec<Case> {
    let mut all = bodies::bombs().await;
    all.extend(bodies::lengths());
    all.extend(times::slow());
    all.extend(times::tls());
    all.extend(heads::heads());
    all.extend(heads::afterwards());
    all.extend(heads::refusals());
    all.extend(pages::redirects());
    all.extend(pages::traps());
    all.extend(pages::markup());
    all.extend(pages::robots());
    all.extend(pages::large());
    all
}

/// A server of the table; it ends when this is dropped.
struct Running {
    address: SocketAddr,
    _site: Option<Site>,
    _task: JoinSet<()>,
}

/// Starts a case's server at an address.
async fn open(case: &Case, ip: IpAddr) -> Running {
    let mut task = JoinSet::new();
    let site = match &case.endpoint {
        Endpoint::Asked(_) => {
            let case = case.clone();
            Some(Site::start_at(ip, Log::default(), move |asked| case.script(&asked)).await)
        }
        Endpoint::Unasked(steps) => Some(Site::unasked(ip, steps.clone()).await),
        Endpoint::Closed | Endpoint::Secure(_) => None,
    };
    let address = match (&site, &case.endpoint) {
        (Some(site), _) => site.address,
        (None, endpoint) => {
            let listener = TcpListener::bind((ip, 0)).await.unwrap();
            let address = listener.local_addr().unwrap();
            if let Endpoint::Secure(certificate) = endpoint {
                task.spawn(serve_secretly(listener, certificate));
            }
            address
        }
    };
    Running { address, _site: site, _task: task }
}

fn certificate(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/data/certificates/{name}.der", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Completes the TLS handshake on every connection, and sends a greeting.
async fn serve_secretly(listener: TcpListener, name: &'static str) {
    let key = PrivateKeyDer::try_from(certificate("leaf-key")).unwrap();
    let versions =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider())).with_safe_default_protocol_versions();
    let config = versions.unwrap().with_no_client_auth().with_single_cert(vec![certificate(name).into()], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let mut serving = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let acceptor = acceptor.clone();
        serving.spawn(async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello").await;
            let _ = stream.shutdown().await;
        });
    }
}

/// Trusts the tests' own authority.
fn trusting() -> WebTls {
    let mut roots = RootCertStore::empty();
    roots.add(certificate("ca").into()).unwrap();
    WebTls::with_roots(roots)
}

fn fetcher(port: u16, limits: FetchLimits) -> Fetcher {
    // Evaluation is on: hostile markup must not stall it either.
    let (user_agent, key) = ("nearcrawl/0 (test)".into(), FingerprintKey([7; 16]));
    let config = FetcherConfig { user_agent, from: None, source_address: None, limits, key, evaluate: true, rate: None, unread: None };
    let policy = AddressPolicy { allowed: vec!["127.0.0.0/8".parse().unwrap()], ports: vec![port], ..AddressPolicy::default() };
    Fetcher::with_tls(config, policy, trusting()).unwrap()
}

/// What to ask of a case: robots.txt if that is what it is about.
fn order(case: &Case, address: SocketAddr) -> FetchOrder {
    let (scheme, port) = (case.scheme(), address.port());
    let purpose = if case.robots.is_some() && case.class == "W10" { FetchPurpose::Robots } else { FetchPurpose::Page };
    let path = if purpose == FetchPurpose::Robots { "/robots.txt" } else { "/" };
    let url = PageUrl::parse(&format!("{scheme}://{}.hostile.test:{port}{path}", case.name)).unwrap();
    FetchOrder {
        url,
        address: address.ip(),
        purpose,
        validators: Default::default(),
        front: true,
        evaluate: false,
        reason: Default::default(),
    }
}

/// Asks a server twice, and says what is wrong with that.
async fn fetch_from(case: Case) -> Vec<String> {
    let server = open(&case, "127.0.0.1".parse().unwrap()).await;
    let fetcher = fetcher(server.address.port(), limits());
    let mut wrong = Vec::new();
    for _ in 0..2 {
        let begun = Instant::now();
        let report = fetcher.fetch(order(&case, server.address));
        match tokio::time::timeout(Duration::from_secs(20), report).await {
            Err(_) => wrong.push(format!("{} {}: it hangs", case.class, case.name)),
            Ok(report) => wrong.extend(case.judge(&report).err()),
        }
        let took = begun.elapsed();
        if took > Duration::from_secs(6) {
            wrong.push(format!("{} {}: took {took:?}", case.class, case.name));
        }
    }
    fetcher.close_all().await;
    if fetcher.open_connections() + fetcher.connection_slots() > 0 {
        wrong.push(format!("{} {}: something stayed open", case.class, case.name));
    }
    wrong
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_hostile_answer_ends_as_what_it_is_and_in_time() {
    let cases = all().await;
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name).collect();
    assert!(names.len() == cases.len() && cases.len() >= 200, "{} cases under {} names", cases.len(), names.len());
    let classes: BTreeSet<&str> = cases.iter().map(|case| case.class).collect();
    assert_eq!(classes.len(), 14, "{classes:?}");
    let failures: BTreeSet<_> =
        cases.iter().filter_map(|case| if let Want::Fails(failure) = case.want { Some(failure) } else { None }).collect();
    println!("{} cases, {} kinds of failure", cases.len(), failures.len());
    // Some at a time: most of them only wait.
    let wrong: Vec<String> =
        futures::stream::iter(cases).map(fetch_from).buffer_unordered(12).flat_map(futures::stream::iter).collect().await;
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limits_of_every_day_are_what_they_are_said_to_be_and_hold() {
    let every_day = FetchLimits::default();
    let seconds = [every_day.connect, every_day.tls, every_day.head, every_day.read_idle, every_day.total].map(|limit| limit.as_secs());
    assert_eq!(seconds, [10, 10, 15, 10, 60]);
    assert_eq!((every_day.slow_start.as_secs(), every_day.min_rate), (10, 1024));
    assert_eq!((every_day.wire_bytes, every_day.decoded_bytes, every_day.robots_bytes), (8 << 20, 8 << 20, 500 << 10));
    assert_eq!((every_day.ratio, every_day.ratio_from, every_day.headers, every_day.head_bytes), (200, 64 << 10, 100, 64 << 10));
    let slow = ["tls-tarpit", "body-that-stalls"].map(|name| async move {
        let case = times::slow().into_iter().chain(times::tls()).find(|case| case.name == name).unwrap();
        let server = open(&case, "127.0.0.1".parse().unwrap()).await;
        let begun = Instant::now();
        let report = fetcher(server.address.port(), FetchLimits::default()).fetch(order(&case, server.address)).await;
        (case.judge(&report), begun.elapsed().as_secs())
    });
    for (judged, took) in futures::future::join_all(slow).await {
        assert_eq!(judged, Ok(()));
        assert!((10..15).contains(&took), "{took} s");
    }
}
