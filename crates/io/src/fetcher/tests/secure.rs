//! Tests that https is believed only where the certificate holds, and that its failures are told apart.

use super::{FetchLimits, Fetcher, WebTls, config, decoded, order_as, policy};
use nearcrawl_model::{
    facts::{Fact, HttpVersion, TlsVersion},
    fetch::{FetchError, FetchOutcome, FetchPurpose},
};
use nearcrawl_test_servers::web::{Site, Step, send};
use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{self, HandshakeKind, RootCertStore, ServerConfig, pki_types::PrivateKeyDer},
};

/// A https server for `good.test` and `also.test`, certified by the test root.
pub(crate) struct SecureSite {
    pub(crate) address: SocketAddr,
    /// What was asked for by name, per connection.
    pub(crate) names: Arc<Mutex<Vec<Option<String>>>>,
    resumed: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

/// Trusts the test root and nothing else.
pub(crate) fn test_tls() -> WebTls {
    let mut roots = RootCertStore::empty();
    roots.add(include_bytes!("ca.der").to_vec().into()).unwrap();
    WebTls::with_roots(roots)
}

impl SecureSite {
    pub(crate) async fn start() -> SecureSite {
        SecureSite::saying("secret".to_owned()).await
    }

    /// A server whose every page is this.
    pub(crate) async fn saying(body: String) -> SecureSite {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::try_from(include_bytes!("leaf-key.der").to_vec()).unwrap();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![include_bytes!("leaf.der").to_vec().into()], key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (names, resumed) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let mut task = JoinSet::new();
        let seen = (names.clone(), resumed.clone());
        task.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let session = stream.get_ref().1;
                assert_eq!(session.alpn_protocol(), Some(&b"http/1.1"[..]));
                seen.0.lock().unwrap().push(session.server_name().map(str::to_owned));
                if session.handshake_kind() == Some(HandshakeKind::Resumed) {
                    seen.1.fetch_add(1, Ordering::Relaxed);
                }
                let mut head = Vec::new();
                while stream.read_buf(&mut head).await.is_ok_and(|read| read > 0) {
                    if head.ends_with(b"\r\n\r\n") {
                        head.clear();
                        let answer = format!(
                            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nAlt-Svc: h3=\":443\"\r\n\
                            Strict-Transport-Security: max-age=86400\r\nContent-Length: {}\r\n\r\n{body}",
                            body.len()
                        );
                        let _ = stream.write_all(answer.as_bytes()).await;
                        let _ = stream.flush().await;
                    }
                }
                let _ = stream.shutdown().await;
            }
        });
        SecureSite { address, names, resumed, _task: task }
    }
}

async fn fetch(fetcher: &Fetcher, host: &str, address: SocketAddr) -> nearcrawl_model::fetch::FetchReport {
    let order = order_as(&format!("https://{host}:{}/", address.port()), address.ip(), FetchPurpose::Page);
    tokio::time::timeout(Duration::from_secs(20), fetcher.fetch(order)).await.expect("the fetcher hangs")
}

fn trusting(limits: FetchLimits, port: u16) -> Fetcher {
    Fetcher::with_tls(config(limits), policy([port]), test_tls()).unwrap()
}

#[tokio::test]
async fn a_certified_host_is_read_and_its_session_resumed() {
    let site = SecureSite::start().await;
    let fetcher = trusting(FetchLimits::default(), site.address.port());
    for _ in 0..3 {
        assert_eq!(decoded(&fetch(&fetcher, "good.test", site.address).await), 6);
    }
    assert_eq!(fetcher.opened_connections(), 1);
    fetcher.close_all().await;
    assert_eq!(decoded(&fetch(&fetcher, "good.test", site.address).await), 6);
    assert_eq!((fetcher.opened_connections(), site.resumed.load(Ordering::Relaxed)), (2, 1));
    assert_eq!(site.names.lock().unwrap()[0].as_deref(), Some("good.test"));
}

#[tokio::test]
async fn another_host_behind_the_same_address_gets_its_own_handshake() {
    let site = SecureSite::start().await;
    let fetcher = trusting(FetchLimits::default(), site.address.port());
    for host in ["good.test", "also.test"] {
        assert_eq!(decoded(&fetch(&fetcher, host, site.address).await), 6);
        assert_eq!(fetcher.open_connections(), 1);
    }
    let names: Vec<_> = site.names.lock().unwrap().iter().flatten().cloned().collect();
    assert_eq!(names, ["good.test", "also.test"]);
}

#[tokio::test]
async fn a_certificate_that_does_not_hold_is_not_believed() {
    let site = SecureSite::start().await;
    let port = site.address.port();
    let wrong_host = fetch(&trusting(FetchLimits::default(), port), "evil.test", site.address).await;
    assert_eq!(wrong_host.outcome, FetchOutcome::Failed(FetchError::CertificateForOther));
    let stranger = Fetcher::new(config(FetchLimits::default()), policy([port])).unwrap();
    let unknown_root = fetch(&stranger, "good.test", site.address).await;
    assert_eq!(unknown_root.outcome, FetchOutcome::Failed(FetchError::UnknownIssuer));
    assert_eq!(stranger.open_connections(), 0);
}

#[tokio::test]
async fn servers_without_tls_fail_otherwise() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut server = JoinSet::new();
    server.spawn(async move {
        let mut served = Vec::new();
        for reply in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"", b"silence"] {
            let Ok((mut stream, _)) = listener.accept().await else { return };
            match reply {
                b"silence" => served.push(stream),
                reply => {
                    let _ = stream.read(&mut [0; 4096]).await;
                    let _ = stream.write_all(reply).await;
                    let _ = stream.shutdown().await;
                }
            }
        }
        // Until the client has had enough.
        for mut stream in served {
            while stream.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {}
        }
    });
    let limits = FetchLimits { tls: Duration::from_millis(300), ..FetchLimits::default() };
    for want in [FetchError::TlsProtocol, FetchError::TlsFailed, FetchError::TlsTimeout] {
        let limits = if want == FetchError::TlsTimeout { limits.clone() } else { FetchLimits::default() };
        let report = fetch(&trusting(limits, address.port()), "good.test", address).await;
        assert_eq!(report.outcome, FetchOutcome::Failed(want));
    }
}

#[tokio::test]
async fn a_plain_answer_is_never_taken_for_a_secure_one() {
    let site = Site::always(vec![send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), Step::Close]).await;
    let fetcher = trusting(FetchLimits { tls: Duration::from_millis(300), ..FetchLimits::default() }, site.address.port());
    let report = fetch(&fetcher, "good.test", site.address).await;
    assert!(matches!(report.outcome, FetchOutcome::Failed(FetchError::TlsProtocol | FetchError::TlsTimeout)), "{:?}", report.outcome);
    assert!(site.heads().is_empty());
}

#[tokio::test]
async fn who_trusts_another_authority_says_so_by_a_file() {
    let site = SecureSite::start().await;
    let asking = |tls: WebTls| Fetcher::with_tls(config(FetchLimits::default()), policy([site.address.port()]), tls).unwrap();
    let browser = fetch(&asking(WebTls::default()), "good.test", site.address).await;
    assert_eq!(browser.outcome, FetchOutcome::Failed(FetchError::UnknownIssuer));
    let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/src/fetcher/tests/ca.pem");
    let told = fetch(&asking(WebTls::with_authorities(&[ours.into()]).unwrap()), "good.test", site.address).await;
    assert!(matches!(told.outcome, FetchOutcome::Page { .. }), "{:?}", told.outcome);

    let dir = tempfile::tempdir().unwrap();
    let (nothing, broken) = (dir.path().join("nothing.pem"), dir.path().join("broken.pem"));
    std::fs::write(&nothing, "no certificate\n").unwrap();
    std::fs::write(&broken, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    for path in [nothing, broken, dir.path().join("missing.pem")] {
        let why = WebTls::with_authorities(std::slice::from_ref(&path)).err().unwrap().to_string();
        assert!(why.starts_with(&format!("fetch.ca_files: {}: ", path.display())) && why.contains("in PEM"), "{why}");
    }
}

#[tokio::test]
async fn the_session_and_the_head_say_what_the_server_is_also_when_it_is_resumed() {
    let site = SecureSite::start().await;
    let fetcher = trusting(FetchLimits::default(), site.address.port());
    for resumed in [0, 1] {
        let report = fetch(&fetcher, "good.test", site.address).await;
        let [
            Fact::Http(HttpVersion::Http11),
            Fact::AltSvc(offers),
            Fact::Hsts(86_400),
            Fact::Tls(TlsVersion::Tls13),
            Fact::Certificate(proven),
        ] = &report.facts[..]
        else {
            panic!("{:?}", report.facts)
        };
        assert_eq!((offers.as_slice(), proven.issuer.as_str()), (&["h3".to_owned()][..], "Test root"));
        assert!(proven.not_before_at < proven.not_after_at);
        assert_eq!(site.resumed.load(Ordering::Relaxed), resumed);
        fetcher.close_all().await;
    }
}
