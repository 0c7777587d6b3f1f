//! Does every way in which a server can fail end as what it is, in time?

use super::{
    FetchLimits, Fetcher, config, decoded, fetcher, order, order_as, policy,
    site::{Site, Step, answer, html, send},
};
use crate::model::fetch::{FetchFailure, FetchOutcome, FetchPurpose};
use FetchFailure::*;
use std::{
    io::Write,
    time::{Duration, Instant},
};

const SOON: Duration = Duration::from_millis(300);
const HTML: &str = "Content-Type: text/html\r\n";

/// A head that announces HTML, chunked.
fn chunked() -> Step {
    send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n")
}

fn packed(name: &str, body: &[u8]) -> Vec<Step> {
    vec![answer("200 OK", &format!("{HTML}Content-Encoding: {name}\r\n"), body)]
}

async fn pack(name: &str, plain: &[u8]) -> Vec<u8> {
    use async_compression::tokio::write::{BrotliEncoder, DeflateEncoder, GzipEncoder, ZstdEncoder};
    use tokio::io::AsyncWriteExt;
    macro_rules! with {
        ($encoder:ident) => {{
            let mut encoder = $encoder::new(Vec::new());
            encoder.write_all(plain).await.unwrap();
            encoder.shutdown().await.unwrap();
            encoder.into_inner()
        }};
    }
    match name {
        "gzip" => with!(GzipEncoder),
        "deflate" => with!(DeflateEncoder),
        "br" => with!(BrotliEncoder),
        _ => with!(ZstdEncoder),
    }
}

/// Asks a server that always does `steps` and says how it failed, and how often it was asked.
async fn failure_of(steps: Vec<Step>, limits: FetchLimits) -> (Option<FetchFailure>, usize) {
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
async fn what_servers_do_wrong_is_named() {
    let bomb = pack("gzip", &vec![0; 64 << 20]).await;
    let mib = vec![b'x'; 1 << 20];
    let many = |count: usize| (0..count).map(|n| format!("X-{n}: y\r\n")).collect::<String>();
    let limits = FetchLimits::default;
    let half_gzip = {
        let whole = pack("gzip", b"half of this is missing, and that is noticed").await;
        whole[..whole.len() / 2].to_vec()
    };
    let flood = |head: &str, bytes: &'static [u8]| vec![send(head.to_owned()), Step::Endless(bytes.into())];
    let cases: Vec<(&str, Vec<Step>, FetchLimits, Option<FetchFailure>)> = vec![
        // W1
        ("gzip bomb", packed("gzip", &bomb), limits(), Some(DecodedTooLarge)),
        ("gzip bomb under a high roof", packed("gzip", &bomb), FetchLimits { decoded_bytes: 1 << 30, ..limits() }, Some(DecodedTooLarge)),
        ("brotli bomb", packed("br", &pack("br", &vec![0; 32 << 20]).await), limits(), Some(DecodedTooLarge)),
        ("zstd bomb", packed("zstd", &pack("zstd", &vec![0; 32 << 20]).await), limits(), Some(DecodedTooLarge)),
        ("deflate bomb", packed("deflate", &pack("deflate", &vec![0; 32 << 20]).await), limits(), Some(DecodedTooLarge)),
        ("two layers", packed("gzip, gzip", &pack("gzip", b"x").await), limits(), Some(BadEncoding)),
        ("two headers", packed("gzip\r\nContent-Encoding: br", b"x"), limits(), Some(BadEncoding)),
        ("unknown encoding", packed("compress", b"x"), limits(), Some(BadEncoding)),
        ("not gzip at all", packed("gzip", b"<html>not packed</html>"), limits(), Some(BadEncoding)),
        ("half of a gzip", packed("gzip", &half_gzip), limits(), Some(BadEncoding)),
        ("large-window brotli", packed("br", &[0x11, 0x1e, 0, 0, 0, 0]), limits(), Some(BadEncoding)),
        ("a single packed byte", packed("zstd", &[0x28]), limits(), Some(BadEncoding)),
        // W2
        (
            "endless chunks",
            {
                let mut s = vec![chunked()];
                s.push(Step::Endless([b"10000\r\n", &[b'x'; 0x10000][..], b"\r\n"].concat().into()));
                s
            },
            limits(),
            Some(BodyTooLarge),
        ),
        ("endless body", flood("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", &[b'x'; 65536]), limits(), Some(BodyTooLarge)),
        (
            "too long by its own word",
            vec![send(format!("HTTP/1.1 200 OK\r\n{HTML}Content-Length: 99999999\r\n\r\n")), Step::Hold],
            limits(),
            Some(BodyTooLarge),
        ),
        ("more than allowed", vec![answer("200 OK", HTML, &mib)], FetchLimits { wire_bytes: 100_000, ..limits() }, Some(BodyTooLarge)),
        (
            "shorter than it said",
            vec![send(format!("HTTP/1.1 200 OK\r\n{HTML}Content-Length: 100\r\n\r\nshort")), Step::Close],
            limits(),
            Some(Closed),
        ),
        (
            "cut by a reset",
            vec![send(format!("HTTP/1.1 200 OK\r\n{HTML}Content-Length: 100\r\n\r\nshort")), Step::Reset],
            limits(),
            Some(Closed),
        ),
        ("chunks without an end", vec![chunked(), send("5\r\nhello\r\n"), Step::Close], limits(), Some(Closed)),
        ("negative length", vec![send(format!("HTTP/1.1 200 OK\r\n{HTML}Content-Length: -5\r\n\r\nhello"))], limits(), Some(NotHttp)),
        (
            "two lengths",
            vec![send(format!("HTTP/1.1 200 OK\r\n{HTML}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"))],
            limits(),
            Some(NotHttp),
        ),
        ("a chunk size that is none", vec![chunked(), send("zz\r\nhello\r\n0\r\n\r\n")], limits(), Some(NotHttp)),
        ("a chunk size beyond all bounds", vec![chunked(), send("fffffffffffffffff\r\nhello")], limits(), Some(NotHttp)),
        // W3
        ("silence", vec![Step::Hold], FetchLimits { head: SOON, ..limits() }, Some(HeadTimeout)),
        (
            "a slow head",
            vec![Step::Drip("HTTP/1.1 200 OK\r\nX-Slow: yes and very much so\r\n".into(), Duration::from_millis(50))],
            FetchLimits { head: SOON, ..limits() },
            Some(HeadTimeout),
        ),
        (
            "a body that stalls",
            vec![send(format!("HTTP/1.1 200 OK\r\n{HTML}Content-Length: 100\r\n\r\nsome")), Step::Hold],
            FetchLimits { read_idle: SOON, ..limits() },
            Some(BodyTimeout),
        ),
        (
            "a body that drips",
            vec![
                send(format!("HTTP/1.1 200 OK\r\n{HTML}Content-Length: 9000\r\n\r\n")),
                Step::Drip(vec![b'x'; 9000].into(), Duration::from_millis(20)),
            ],
            FetchLimits { slow_start: SOON, ..limits() },
            Some(BodyTimeout),
        ),
        (
            "a body that takes too long in all",
            vec![
                send(format!("HTTP/1.1 200 OK\r\n{HTML}Content-Length: 9000\r\n\r\n")),
                Step::Drip(vec![b'x'; 9000].into(), Duration::from_millis(20)),
            ],
            FetchLimits { total: SOON, ..limits() },
            Some(BodyTimeout),
        ),
        // W4
        ("99 headers and a length", vec![answer("200 OK", &format!("{HTML}{}", many(98)), b"fine")], limits(), None),
        ("too many headers", vec![answer("200 OK", &format!("{HTML}{}", many(200)), b"x")], limits(), Some(HeadTooLarge)),
        (
            "a header too long",
            vec![send("HTTP/1.1 200 OK\r\nX-Long: "), Step::Endless(vec![b'x'; 8192].into())],
            limits(),
            Some(HeadTooLarge),
        ),
        (
            "a megabyte of headers",
            vec![send("HTTP/1.1 200 OK\r\n"), Step::Endless("X-Again: and again\r\n".repeat(400).into())],
            limits(),
            Some(HeadTooLarge),
        ),
        ("HTTP/0.9", vec![send("<html>hello</html>"), Step::Close], limits(), Some(NotHttp)),
        ("not HTTP", vec![send("SSH-2.0-OpenSSH_9.2\r\n"), Step::Hold], limits(), Some(NotHttp)),
        ("a status that is none", vec![send("HTTP/1.1 abc OK\r\n\r\n")], limits(), Some(NotHttp)),
        ("NUL in a header", vec![send("HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n")], limits(), Some(NotHttp)),
        ("a folded header", vec![send("HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n")], limits(), Some(NotHttp)),
        ("closed without a word", vec![Step::Close], limits(), Some(Closed)),
        ("reset without a word", vec![Step::Reset], limits(), Some(Closed)),
        ("closed within the head", vec![send("HTTP/1.1 200 OK\r\nX-"), Step::Close], limits(), Some(Closed)),
        // W6
        ("a redirect to nowhere", vec![answer("302 Found", "", b"")], limits(), Some(BadRedirect)),
        ("an empty redirect", vec![answer("302 Found", "Location: \r\n", b"")], limits(), Some(BadRedirect)),
        ("a redirect to a file", vec![answer("301 Moved", "Location: file:///etc/passwd\r\n", b"")], limits(), Some(BadRedirect)),
        ("a redirect to a script", vec![answer("301 Moved", "Location: javascript:alert(1)\r\n", b"")], limits(), Some(BadRedirect)),
        (
            "a redirect of 5000 bytes",
            vec![answer("301 Moved", &format!("Location: /{}\r\n", "x".repeat(5000)), b"")],
            limits(),
            Some(BadRedirect),
        ),
        ("two different redirects", vec![answer("307 Go", "Location: /a\r\nLocation: /b\r\n", b"")], limits(), Some(BadRedirect)),
    ];
    assert!(cases.len() >= 30);
    // Four at a time: the slow ones only wait.
    use futures::StreamExt;
    let wrong: Vec<String> = futures::stream::iter(cases)
        .map(|(name, steps, limits, want)| async move {
            let begun = Instant::now();
            let (found, asked) = failure_of(steps, limits).await;
            (found != want || asked != 1)
                .then(|| format!("{name}: {found:?} instead of {want:?}, asked {asked} times, {:?}", begun.elapsed()))
        })
        .buffer_unordered(4)
        .filter_map(|wrong| async { wrong })
        .collect()
        .await;
    assert!(wrong.is_empty(), "{wrong:#?}");
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
        Fetcher::new(config(FetchLimits::default()), crate::model::address::AddressPolicy { ports: vec![port], ..Default::default() })
            .unwrap();
    let other_port = fetcher(FetchLimits::default(), [80]);
    let own = Fetcher::new(
        config(FetchLimits::default()),
        crate::model::address::AddressPolicy { own: vec![site.address.ip()], ..policy([port]) },
    )
    .unwrap();
    for fetcher in [closed, other_port, own] {
        let report = fetcher.fetch(order(site.address, "/")).await;
        assert_eq!(report.outcome, FetchOutcome::Failed(ForbiddenAddress));
        assert_eq!((report.took, fetcher.opened_connections(), fetcher.lanes()), (0, 0, 0));
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
