//! Tests that there is never more than one connection to an address, and that it is kept for as long as it is good.

use super::{FetchLimits, Fetcher, config, decoded, fetcher, order, order_as, policy};
use nearcrawl_model::{
    fetch::{FetchError, FetchOutcome, FetchPurpose},
    time::WallTime,
};
use nearcrawl_test_servers::web::{Log, Site, Step, answer, html, send};
use std::{net::IpAddr, time::Duration};

/// Waits until `holds`, at most 5 s.
async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..500 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never {what}");
}

#[tokio::test]
async fn ten_requests_take_one_connection() {
    let site = Site::start(|asked| match asked.request % 5 {
        0 => vec![answer("404 Not Found", "", b"small")],
        1 => vec![html("page")],
        2 => vec![answer("302 Found", "Location: /x\r\n", b"")],
        3 => vec![answer("200 OK", "Content-Type: image/gif\r\n", b"GIF89a")],
        _ => vec![send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")],
    })
    .await;
    let fetcher = fetcher(FetchLimits::default(), [site.address.port()]);
    for n in 0..10 {
        let report = fetcher.fetch(order(site.address, &format!("/{n}"))).await;
        assert!(!matches!(report.outcome, FetchOutcome::Failed(_)), "{:?}", report.outcome);
    }
    // Another host at the same address and port needs no other connection.
    let other = format!("http://also.test:{}/", site.address.port());
    fetcher.fetch(order_as(&other, site.address.ip(), FetchPurpose::Page)).await;
    assert_eq!((site.connections(), site.heads().len(), fetcher.open_connections(), fetcher.connection_slots()), (1, 11, 1, 1));
    fetcher.close(site.address.ip()).await;
    assert_eq!((fetcher.open_connections(), fetcher.connection_slots()), (0, 0));
    site.until_all_closed().await;
}

#[tokio::test]
async fn many_at_once_to_one_address_go_one_after_another() {
    let site = Site::start(|asked| match asked.connection % 3 {
        // Some connections end after each request, so that there are several of them.
        0 => vec![Step::Drip("HTTP/1.1 200 OK\r\n".into(), Duration::from_millis(1)), send("Content-Length: 0\r\n\r\n")],
        _ => vec![answer("200 OK", "Content-Type: text/html\r\nConnection: close\r\n", b"bye"), Step::Close],
    })
    .await;
    let fetcher = fetcher(FetchLimits::default(), [site.address.port()]);
    let orders = (0..20).map(|n| fetcher.fetch(order(site.address, &format!("/{n}"))));
    let reports = futures::future::join_all(orders).await;
    assert!(reports.iter().all(|report| !matches!(report.outcome, FetchOutcome::Failed(_))), "{reports:?}");
    assert_eq!(site.heads().len(), 20);
    assert_eq!(site.log.lock().unwrap().most_open, 1);
}

#[tokio::test]
async fn another_port_of_the_same_address_waits_for_the_old_connection_to_end() {
    let log = Log::default();
    let ip: IpAddr = "127.0.0.9".parse().unwrap();
    let one = Site::start_at(ip, log.clone(), |_| vec![html("one")]).await;
    let two = Site::start_at(ip, log.clone(), |_| vec![html("two")]).await;
    let fetcher = fetcher(FetchLimits::default(), [one.address.port(), two.address.port()]);
    for _ in 0..10 {
        for site in [&one, &two] {
            assert_eq!(decoded(&fetcher.fetch(order(site.address, "/")).await), 3);
            assert_eq!(fetcher.open_connections(), 1);
        }
    }
    let seen = log.lock().unwrap();
    assert_eq!((seen.most_open, seen.peers.len()), (1, 20));
}

#[tokio::test]
async fn servers_at_different_addresses_do_not_wait_for_each_other() {
    let slow = Site::start_at("127.0.0.11".parse().unwrap(), Log::default(), |_| vec![Step::Hold]).await;
    let quick = Site::start_at("127.0.0.12".parse().unwrap(), Log::default(), |_| vec![html("quick")]).await;
    let fetcher = fetcher(FetchLimits::default(), [slow.address.port(), quick.address.port()]);
    let waiting = tokio::spawn({
        let (fetcher, address) = (fetcher.clone(), slow.address);
        async move { fetcher.fetch(order(address, "/")).await }
    });
    until("asked", || slow.heads().len() == 1).await;
    assert_eq!(decoded(&fetcher.fetch(order(quick.address, "/")).await), 5);
    assert_eq!(fetcher.open_connections(), 2);
    fetcher.close_all().await;
    assert_eq!(waiting.await.unwrap().outcome, FetchOutcome::Failed(FetchError::Cancelled));
    assert_eq!((fetcher.open_connections(), fetcher.connection_slots()), (0, 0));
    slow.until_all_closed().await;
    quick.until_all_closed().await;
}

#[tokio::test]
async fn a_kept_connection_that_the_server_closed_is_replaced_silently() {
    // The server says nothing of closing, answers once, and closes when it is asked again, or at once.
    for late in [true, false] {
        let site = Site::start(move |asked| match asked.request {
            1 if late => vec![html("good")],
            1 => vec![html("good"), Step::Close],
            _ => vec![Step::Close],
        })
        .await;
        let fetcher = fetcher(FetchLimits::default(), [site.address.port()]);
        for n in 0..4 {
            let report = fetcher.fetch(order(site.address, &format!("/{n}"))).await;
            assert_eq!(decoded(&report), 4, "request {n}, late {late}");
        }
        assert_eq!((site.connections(), site.log.lock().unwrap().most_open), (4, 1));
    }
}

#[tokio::test]
async fn a_second_try_is_only_for_kept_connections_and_only_if_nothing_came() {
    // Fresh connections are not tried again.
    let site = Site::always(vec![Step::Close]).await;
    let fetcher_ = fetcher(FetchLimits::default(), [site.address.port()]);
    let report = fetcher_.fetch(order(site.address, "/")).await;
    assert_eq!((report.outcome, site.connections()), (FetchOutcome::Failed(FetchError::Closed), 1));
    // A kept one that answered a little is not either.
    let site = Site::start(|asked| if asked.request == 1 { vec![html("good")] } else { vec![send("HTTP/1.1 2"), Step::Close] }).await;
    let fetcher_ = fetcher(FetchLimits::default(), [site.address.port()]);
    assert_eq!(decoded(&fetcher_.fetch(order(site.address, "/1")).await), 4);
    let report = fetcher_.fetch(order(site.address, "/2")).await;
    assert_eq!((report.outcome, site.connections()), (FetchOutcome::Failed(FetchError::Closed), 1));
    // And the second try is the last.
    let site = Site::start(|asked| if asked.connection == 1 && asked.request == 1 { vec![html("good")] } else { vec![Step::Reset] }).await;
    let fetcher_ = fetcher(FetchLimits::default(), [site.address.port()]);
    assert_eq!(decoded(&fetcher_.fetch(order(site.address, "/1")).await), 4);
    let report = fetcher_.fetch(order(site.address, "/2")).await;
    assert_eq!((report.outcome, site.connections()), (FetchOutcome::Failed(FetchError::Closed), 2));
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let site = Site::always(vec![html("x")]).await;
    let limits = FetchLimits { idle: Duration::from_millis(100), ..FetchLimits::default() };
    let fetcher = fetcher(limits, [site.address.port()]);
    fetcher.fetch(order(site.address, "/")).await;
    assert_eq!(fetcher.connection_slots(), 1);
    until("closed", || fetcher.open_connections() == 0 && fetcher.connection_slots() == 0).await;
    site.until_all_closed().await;
    fetcher.fetch(order(site.address, "/")).await;
    assert_eq!((site.connections(), fetcher.opened_connections()), (2, 2));
}

#[tokio::test]
async fn no_more_connections_are_kept_than_allowed() {
    let limits = FetchLimits { max_kept: 2, ..FetchLimits::default() };
    let mut sites = Vec::new();
    for last in 21..26 {
        sites.push(Site::start_at(IpAddr::from([127, 0, 0, last]), Log::default(), |_| vec![html("x")]).await);
    }
    let fetcher = fetcher(limits, sites.iter().map(|site| site.address.port()));
    for site in &sites {
        assert_eq!(decoded(&fetcher.fetch(order(site.address, "/")).await), 1);
    }
    assert_eq!((fetcher.open_connections(), fetcher.connection_slots()), (2, 2));
}

#[tokio::test]
async fn an_abandoned_request_leaves_no_second_connection() {
    let site = Site::start(|asked| if asked.path() == "/slow" { vec![Step::Hold] } else { vec![html("x")] }).await;
    let fetcher = fetcher(FetchLimits::default(), [site.address.port()]);
    for _ in 0..3 {
        let slow = fetcher.fetch(order(site.address, "/slow"));
        assert!(tokio::time::timeout(Duration::from_millis(100), slow).await.is_err());
        assert_eq!(decoded(&fetcher.fetch(order(site.address, "/")).await), 1);
        assert_eq!(fetcher.open_connections(), 1);
    }
    assert_eq!(site.log.lock().unwrap().most_open, 1);
}

#[tokio::test]
async fn the_server_sees_the_configured_source_address() {
    let site = Site::always(vec![html("x")]).await;
    let config = super::FetcherConfig { source_address: Some("127.0.0.77".parse().unwrap()), ..config(FetchLimits::default()) };
    let fetcher = Fetcher::new(config, policy([site.address.port()])).unwrap();
    fetcher.fetch(order(site.address, "/")).await;
    assert_eq!(site.log.lock().unwrap().peers[0].ip(), "127.0.0.77".parse::<IpAddr>().unwrap());
}

#[tokio::test]
async fn who_speaks_before_being_asked_is_no_web_server() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut server = tokio::task::JoinSet::new();
    server.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"220 mail.example.org ESMTP\r\n").await;
            while stream.read(&mut [0; 1024]).await.is_ok_and(|read| read > 0) {}
        }
    });
    let fetcher = fetcher(FetchLimits::default(), [address.port()]);
    for _ in 0..5 {
        let report = fetcher.fetch(order(address, "/")).await;
        assert_eq!(report.outcome, FetchOutcome::Failed(FetchError::NotHttp));
    }
}

#[tokio::test]
async fn not_everybody_may_fill_the_memory_at_once() {
    use crate::fetcher::buffers::{LARGE, MAX_LARGE};
    // These send a large body but for its end.
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n", 4 * LARGE);
    let steps = vec![send(head), send(vec![b'x'; 4 * LARGE - 1]), Step::Hold];
    let mut sites = Vec::new();
    for n in 0..MAX_LARGE + 4 {
        let steps = steps.clone();
        sites.push(Site::start_at(format!("127.0.3.{}", n + 1).parse().unwrap(), Log::default(), move |_| steps.clone()).await);
    }
    let small = Site::always(vec![html("small")]).await;
    let ports: Vec<u16> = sites.iter().map(|site| site.address.port()).chain([small.address.port()]).collect();
    let fetcher = fetcher(FetchLimits { read_idle: Duration::from_secs(2), ..FetchLimits::default() }, ports);
    let mut fetching = tokio::task::JoinSet::new();
    for site in &sites {
        let (fetcher, order) = (fetcher.clone(), order(site.address, "/"));
        fetching.spawn(async move { fetcher.fetch(order).await });
    }
    until("so many", || fetcher.large_bodies() == MAX_LARGE).await;
    assert_eq!(decoded(&fetcher.fetch(order(small.address, "/")).await), 5, "small pages do not wait for large ones");
    while let Some(report) = fetching.join_next().await {
        assert_eq!(report.unwrap().outcome, FetchOutcome::Failed(FetchError::BodyTimeout));
    }
    assert_eq!(fetcher.large_bodies(), 0);
}

/// A request that waits for the one before it, or is ordered too late, is not made; what has begun may end.
#[tokio::test]
async fn no_request_begins_after_the_end_of_the_operators_hours() {
    let wall = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    let site = Site::start(|asked| match asked.path() {
        "/slow" => vec![Step::Drip(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\ngood".into(),
            Duration::from_millis(10),
        )],
        _ => vec![html("good")],
    })
    .await;
    let fetcher = fetcher(FetchLimits::default(), [site.address.port()]);
    let wire = fetcher.wire();
    wire.begin_until(Some(WallTime(wall() + 300)));
    assert_eq!(decoded(&fetcher.fetch(order(site.address, "/early")).await), 4);
    let asking = ["/slow", "/waits"].map(|path| {
        let (fetcher, order) = (fetcher.clone(), order(site.address, path));
        async move { fetcher.fetch(order).await }
    });
    let [slow, waits] = <[_; 2]>::try_from(futures::future::join_all(asking).await).unwrap();
    assert_eq!((decoded(&slow), waits.outcome), (4, FetchOutcome::Failed(FetchError::Cancelled)));
    let late = fetcher.fetch(order(site.address, "/late")).await;
    assert_eq!((late.outcome, site.heads().len()), (FetchOutcome::Failed(FetchError::Cancelled), 2), "{:?}", site.heads());
    assert!(!wire.opens().await, "a probe is not sent, and does not wait for the morning either");
    wire.begin_until(None);
    wire.allow(0);
    let waiting = tokio::spawn(async move { wire.opens().await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!waiting.is_finished(), "it waits for bytes");
    let wire = fetcher.wire();
    wire.begin_until(Some(WallTime(0)));
    assert!(!waiting.await.unwrap(), "a rest began meanwhile: it does not wait for the bytes of another day");
    wire.begin_until(None);
    wire.allow(u64::MAX);
    assert!(wire.opens().await);
    assert_eq!(decoded(&fetcher.fetch(order(site.address, "/morning")).await), 4);
}
