//! Tests that every way in which a server can fail ends as what it is, in time.

use super::{FetchLimits, Fetcher, config, decoded, fetcher, order, order_as, policy};
use FetchError::*;
use nearcrawl_model::fetch::{FetchError, FetchOutcome, FetchPurpose};
use nearcrawl_test_servers::web::{Site, Step, answer, html, pack, send};
use std::{io::Write, time::Duration};

const SOON: Duration = Duration::from_millis(300);
const HTML: &str = "Content-Type: text/html\r\n";

/// A head that announces HTML, chunked.
fn chunked() -> Step {
    send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n")
}

fn packed(name: &str, body: &[u8]) -> Vec<Step> {
    vec![answer("200 OK", &format!("{HTML}Content-Encoding: {name}\r\n"), body)]
}

/// Asks a server that always does `steps` and says how it failed, and how often it was asked.
async fn failure_of(steps: Vec<Step>, limits: FetchLimits) -> (Option<FetchError>, usize) {
    let site = Site::always(steps).await;
    let fetcher = fetcher(limits, [site.address.port()]);
    let fetching = fetcher.fetch(order(site.address, "/"));
    let report = tokio::time::timeout(Duration::from_secs(30), fetching).await.expect("the fetcher hangs");
    // After a whole answer, whatever it said, the connection may be kept; after a broken one never.
    let may_be_whole = matches!(report.outcome, FetchOutcome::Page { .. } | FetchOutcome::Failed(BadRedirect | BadEncoding));
    assert!(fetcher.open_connections() <= usize::from(may_be_whole), "{:?}", report.outcome);
    let failure = match report.outcome {
        FetchOutcome::Failed(failure) => Some(failure),
        _ => None,
    };
    (failure, site.heads().len())
}

#[tokio::test]
async fn limits_are_those_that_are_set() {
    let mib = vec![b'x'; 1 << 20];
    let limits = FetchLimits { wire_bytes: 64 << 10, robots_bytes: 64 << 10, ..FetchLimits::default() };
    let drip = Step::Drip(vec![b'x'; 9000].into(), Duration::from_millis(20));
    let long = send(format!("HTTP/1.1 200 OK\r\n{HTML}Content-Length: 9000\r\n\r\n"));
    let high_roof = FetchLimits { decoded_bytes: 1 << 30, ..FetchLimits::default() };
    let cases = [
        (vec![answer("200 OK", HTML, &mib)], limits.clone(), BodyTooLarge),
        // The size of a chunk, written with zeros without end, is no body: what is read is counted all the same.
        (vec![chunked(), Step::Endless(vec![b'0'; 8192].into())], limits.clone(), BodyTooLarge),
        (vec![Step::Endless("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(300).into())], limits, HeadTooLarge),
        (packed("gzip", &pack("gzip", &vec![0; 16 << 20]).await), high_roof, DecodedTooLarge),
        (vec![long.clone(), drip.clone()], FetchLimits { slow_start: SOON, ..FetchLimits::default() }, BodyTimeout),
        (vec![long, drip], FetchLimits { total: SOON, ..FetchLimits::default() }, BodyTimeout),
    ];
    for (steps, limits, want) in cases {
        assert_eq!(failure_of(steps, limits).await, (Some(want), 1));
    }
}

#[tokio::test]
async fn who_speaks_before_being_asked_is_not_understood() {
    let mail = vec![send("220 mail.test ESMTP\r\n"), Step::Hold];
    let site = Site::unasked("127.0.0.1".parse().unwrap(), mail).await;
    let report = fetcher(FetchLimits::default(), [site.address.port()]).fetch(order(site.address, "/")).await;
    assert_eq!(report.outcome, FetchOutcome::Failed(NotHttp));
}

#[tokio::test]
async fn every_packing_is_unpacked() {
    let plain = "<p>Mambo vipi, dunia? </p>".repeat(2000);
    for name in ["gzip", "x-gzip", "deflate", "br", "zstd", "GZIP", "identity"] {
        let body = if name == "identity" {
            plain.clone().into_bytes()
        } else {
            pack(name.trim_start_matches("x-").to_lowercase().as_str(), plain.as_bytes()).await
        };
        // Piece by piece, so that every boundary falls somewhere inside.
        let mut steps = vec![send(format!("HTTP/1.1 200 OK\r\n{HTML}Content-Encoding: {name}\r\nContent-Length: {}\r\n\r\n", body.len()))];
        steps.extend(body.chunks(body.len().div_ceil(50)).map(|piece| send(piece.to_vec())));
        let site = Site::always(steps).await;
        let report = fetcher(FetchLimits::default(), [site.address.port()]).fetch(order(site.address, "/")).await;
        assert_eq!(decoded(&report), plain.len() as u64, "{name}");
        assert_eq!(report.wire_bytes, body.len() as u64, "{name}");
    }
}

#[tokio::test]
async fn deflate_may_come_with_a_zlib_head_and_gzip_with_padding() {
    let plain = b"the same text, wrapped otherwise";
    let bare = pack("deflate", plain).await;
    let mut zlib = vec![0x78, 0x9c];
    zlib.extend_from_slice(&bare);
    zlib.extend_from_slice(&[0, 0, 0, 0]);
    let mut padded = pack("gzip", plain).await;
    padded.write_all(&[0; 300]).unwrap();
    for (name, body) in [("deflate", zlib), ("gzip", padded), ("gzip", Vec::new())] {
        let whole = if body.is_empty() { 0 } else { plain.len() as u64 };
        let site = Site::always(packed(name, &body)).await;
        let report = fetcher(FetchLimits::default(), [site.address.port()]).fetch(order(site.address, "/")).await;
        assert_eq!(decoded(&report), whole, "{name}");
    }
}

#[tokio::test]
async fn nobody_is_contacted_who_may_not_be() {
    let site = Site::always(vec![html("never")]).await;
    let port = site.address.port();
    let closed =
        Fetcher::new(config(FetchLimits::default()), nearcrawl_model::address::AddressPolicy { ports: vec![port], ..Default::default() })
            .unwrap();
    let other_port = fetcher(FetchLimits::default(), [80]);
    let own = Fetcher::new(
        config(FetchLimits::default()),
        nearcrawl_model::address::AddressPolicy { own: vec![site.address.ip()], ..policy([port]) },
    )
    .unwrap();
    for fetcher in [closed, other_port, own] {
        let report = fetcher.fetch(order(site.address, "/")).await;
        assert_eq!(report.outcome, FetchOutcome::Failed(ForbiddenAddress));
        assert_eq!((report.took, fetcher.opened_connections(), fetcher.connection_slots()), (0, 0, 0));
        let mapped = format!("::ffff:{}", site.address.ip()).parse().unwrap();
        let report = fetcher.fetch(order_as(&format!("http://good.test:{port}/"), mapped, FetchPurpose::Page)).await;
        assert_eq!(report.outcome, FetchOutcome::Failed(ForbiddenAddress));
    }
    assert_eq!(site.connections(), 0);
}

#[tokio::test]
async fn a_closed_port_refuses_and_a_wrong_source_reaches_nothing() {
    let port = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().port()
    };
    let address = format!("127.0.0.1:{port}").parse().unwrap();
    let report = fetcher(FetchLimits::default(), [port]).fetch(order(address, "/")).await;
    assert_eq!(report.outcome, FetchOutcome::Failed(ConnectionRefused));
    for source in ["203.0.113.7", "::1"] {
        let config = super::FetcherConfig { source_address: Some(source.parse().unwrap()), ..config(FetchLimits::default()) };
        let report = Fetcher::new(config, policy([port])).unwrap().fetch(order(address, "/")).await;
        assert_eq!(report.outcome, FetchOutcome::Failed(Unreachable), "from {source}");
    }
}

#[tokio::test]
async fn a_full_queue_makes_connecting_time_out() {
    let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    listener.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    // These fill the queue; the kernel ignores whoever comes next.
    let mut fillers = Vec::new();
    for _ in 0..4 {
        fillers.push(tokio::spawn(tokio::net::TcpStream::connect(address)));
    }
    let mut connected = 0;
    for _ in 0..500 {
        connected = fillers.iter().filter(|filler| filler.is_finished()).count();
        if connected > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(connected > 0, "nobody connected");
    tokio::time::sleep(Duration::from_millis(50)).await;
    let limits = FetchLimits { connect: SOON, ..FetchLimits::default() };
    let fetcher = fetcher(limits, [address.port()]);
    let report = fetcher.fetch(order(address, "/")).await;
    assert_eq!(report.outcome, FetchOutcome::Failed(ConnectTimeout));
    assert!(report.took >= 300, "the time lost is the server's: {}", report.took);
    assert_eq!(fetcher.open_connections(), 0);
    fillers.iter().for_each(|filler| filler.abort());
}
