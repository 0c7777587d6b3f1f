//! Tests that a probe measures, introduces itself, and never has two connections at once.

use super::*;
use crate::fetcher::tests::{
    policy,
    secure::{SecureSite, test_tls},
};
use nearcrawl_test_servers::web::{Site, Step, answer, send};
use std::net::SocketAddr;

fn target(address: SocketAddr, secure: bool) -> ProbeTarget {
    ProbeTarget { address, host: "good.test".parse().unwrap(), secure }
}

fn prober(port: u16, timeouts: ProbeTimeouts) -> Prober {
    Prober::new(Some("127.0.0.78".parse().unwrap()), policy([port]), timeouts, "nearcrawl/0 (test)").unwrap()
}

#[tokio::test]
async fn a_tcp_probe_is_three_connects_one_after_another() {
    let site = Site::always(vec![Step::Close]).await;
    let prober = prober(site.address.port(), ProbeTimeouts { close: Duration::from_secs(5), ..ProbeTimeouts::default() });
    for probes in 1..=5 {
        let report = prober.probe(&target(site.address, false), ProbeKind::Tcp).await;
        assert!(report.rtt_us.is_ok_and(|rtt| rtt > 0 && u64::from(rtt) <= report.took * 1000), "{report:?}");
        assert!(report.took < 5000, "we say that we are done, instead of waiting for the server: {report:?}");
        assert_eq!(site.connections(), CONNECTS * probes);
    }
    let seen = site.log.lock().unwrap();
    assert_eq!((seen.most_open, seen.heads.len()), (1, 0));
    assert!(seen.peers.iter().all(|peer| peer.ip().to_string() == "127.0.0.78"), "{:?}", seen.peers);
}

#[tokio::test]
async fn a_server_that_does_not_close_is_cut() {
    // It never reads, so it never notices that we are done.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let timeouts = ProbeTimeouts { close: Duration::from_millis(50), ..ProbeTimeouts::default() };
    let prober = prober(address.port(), timeouts);
    let report = prober.probe(&target(address, false), ProbeKind::Tcp).await;
    assert!(report.rtt_us.is_ok());
    assert!(report.took >= 150, "each end was waited for: {report:?}");
    for _ in 0..CONNECTS {
        let (mut stream, _) = listener.accept().await.unwrap();
        let error = timeout(Duration::from_secs(5), async {
            loop {
                match stream.read(&mut [0; 16]).await {
                    Ok(0) => tokio::task::yield_now().await,
                    Ok(_) => panic!("a probe sends nothing"),
                    Err(error) => return error,
                }
                if let Err(error) = stream.write_all(b"x").await {
                    return error;
                }
            }
        });
        assert!(error.await.is_ok(), "the connection was left open");
    }
}

#[tokio::test]
async fn a_head_probe_asks_for_robots_txt_only() {
    let site = Site::start(|_| {
        vec![
            Step::Drip("HTTP/1.1 200 OK\r\nServer: x\r\n".into(), Duration::from_millis(5)),
            send("Content-Length: 9\r\n\r\n"),
            Step::Close,
        ]
    })
    .await;
    let port = site.address.port();
    let report = prober(port, ProbeTimeouts::default()).probe(&target(site.address, false), ProbeKind::HttpHead).await;
    assert!(report.rtt_us.is_ok_and(|rtt| rtt >= 140_000), "{report:?}");
    assert_eq!(
        site.heads(),
        [format!(
            "HEAD /robots.txt HTTP/1.1\r\nHost: good.test:{port}\r\nUser-Agent: nearcrawl/0 (test)\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        )]
    );
    site.until_all_closed().await;
}

#[tokio::test]
async fn any_status_measures_and_no_status_does_not() {
    let short = ProbeTimeouts { head: Duration::from_millis(200), ..ProbeTimeouts::default() };
    for (steps, want) in [
        (vec![answer("404 Not Found", "", b"")], None),
        (vec![answer("500 Oops", "", b""), Step::Close], None),
        (vec![send("HTTP/1.0 200 OK\n\n"), Step::Close], None),
        (vec![Step::Hold], Some(FetchError::HeadTimeout)),
        (vec![Step::Close], Some(FetchError::Closed)),
        (vec![send("SSH-2.0-x\r\n"), Step::Hold], Some(FetchError::NotHttp)),
        (vec![send("HTTP/1.1 200 OK\r\n"), Step::Endless("X: y\r\n".repeat(1000).into())], Some(FetchError::HeadTooLarge)),
    ] {
        let site = Site::always(steps).await;
        let report = prober(site.address.port(), short).probe(&target(site.address, false), ProbeKind::HttpHead).await;
        assert_eq!(report.rtt_us.err(), want);
        site.until_all_closed().await;
    }
}

#[tokio::test]
async fn a_head_probe_speaks_tls_where_the_url_was_https() {
    let site = SecureSite::start().await;
    let prober = prober(site.address.port(), ProbeTimeouts::default());
    let stranger = prober.probe(&target(site.address, true), ProbeKind::HttpHead).await;
    assert_eq!(stranger.rtt_us, Err(FetchError::UnknownIssuer));
    let report = prober.trusting(test_tls()).probe(&target(site.address, true), ProbeKind::HttpHead).await;
    assert!(report.rtt_us.is_ok(), "{report:?}");
    assert_eq!(site.names.lock().unwrap().last().cloned().flatten().as_deref(), Some("good.test"));
}

#[tokio::test]
async fn forbidden_and_dead_servers_are_told_apart() {
    let site = Site::always(vec![Step::Close]).await;
    let port = site.address.port();
    for kind in [ProbeKind::Tcp, ProbeKind::HttpHead] {
        let strict =
            Prober::new(None, AddressPolicy { ports: vec![port], ..AddressPolicy::default() }, ProbeTimeouts::default(), "x").unwrap();
        assert_eq!(strict.probe(&target(site.address, false), kind).await.rtt_us, Err(FetchError::ForbiddenAddress));
    }
    assert_eq!(site.connections(), 0);
    drop(site);
    let free = { std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap() };
    for kind in [ProbeKind::Tcp, ProbeKind::HttpHead] {
        let report = prober(free.port(), ProbeTimeouts::default()).probe(&target(free, false), kind).await;
        assert_eq!(report.rtt_us, Err(FetchError::ConnectionRefused));
    }
    assert!(Prober::new(None, AddressPolicy::default(), ProbeTimeouts::default(), "a\r\nb").is_err());
}

#[tokio::test]
async fn a_probe_counts_among_the_bytes_of_the_fetcher_and_waits_until_some_may_be_moved() {
    let site = Site::always(vec![answer("404 Not Found", "", b"")]).await;
    let wire: Arc<Wire> = Arc::default();
    let prober = prober(site.address.port(), ProbeTimeouts::default()).counted_by(Arc::clone(&wire));
    assert!(prober.probe(&target(site.address, false), ProbeKind::Tcp).await.rtt_us.is_ok());
    let connections = CONNECTS as u64 * 400..=CONNECTS as u64 * (400 + 3 * 70);
    assert!(connections.contains(&wire.moved()), "connections, and nothing said: {}", wire.moved());
    assert!(prober.probe(&target(site.address, false), ProbeKind::HttpHead).await.rtt_us.is_ok());
    let moved = wire.moved();
    assert!(moved > (CONNECTS as u64 + 1) * 400 + 100, "{moved}");
    wire.allow(0);
    let waits = timeout(Duration::from_millis(100), prober.probe(&target(site.address, false), ProbeKind::Tcp)).await;
    assert!(waits.is_err() && wire.moved() == moved, "nothing is left");
    wire.allow(100_000);
    assert!(prober.probe(&target(site.address, false), ProbeKind::Tcp).await.rtt_us.is_ok());
}
