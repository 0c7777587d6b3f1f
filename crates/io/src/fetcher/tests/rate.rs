//! Tests that all connections together keep to a rate, TLS included, and that what waits for it is held against no server.

use super::{
    super::{dial::dial, wire::Wire},
    FetchLimits, Fetcher, config, decoded, order, order_as, policy,
    secure::{SecureSite, test_tls},
};
use nearcrawl_model::fetch::{FetchOrder, FetchPurpose, FetchReport, FetchRule};
use nearcrawl_test_servers::web::{Site, answer};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::io::AsyncWriteExt;

const RATE: u64 = 256 << 10;

/// Time limits that every answer would break if its waits counted.
fn impatient() -> FetchLimits {
    let short = Duration::from_millis(700);
    FetchLimits { tls: short, head: short, read_idle: short, total: short, slow_start: short, min_rate: RATE, ..FetchLimits::default() }
}

fn paced(ports: Vec<u16>) -> Fetcher {
    let config = super::FetcherConfig { rate: Some(RATE), ..config(impatient()) };
    Fetcher::with_tls(config, policy(ports), test_tls()).unwrap()
}

#[tokio::test]
async fn many_connections_keep_to_the_rate_together_and_none_of_them_fails() {
    const PAGE: usize = 170_000;
    let body = "Masks, drums and stools. ".repeat(PAGE / 25);
    let mut sites = Vec::new();
    for number in 0..8 {
        let page = answer("200 OK", "Content-Type: text/html\r\n", body.as_bytes());
        let ip = format!("127.0.7.{}", number + 1).parse().unwrap();
        sites.push(Site::start_at(ip, Default::default(), move |_| vec![page.clone()]).await);
    }
    let secure = SecureSite::saying(body.clone()).await;
    let fetcher = paced(sites.iter().map(|site| site.address.port()).chain([secure.address.port()]).collect());
    let (wire, begun) = (fetcher.wire(), Instant::now());
    // Looked at all the time: in no time from the start on was more moved than the rate and its burst allow.
    let most = Arc::new(AtomicU64::new(0));
    let (seen, looked) = (most.clone(), wire.clone());
    let looking = tokio::spawn(async move {
        loop {
            let moved = looked.moved();
            let allowed = begun.elapsed().as_secs_f64() * RATE as f64;
            seen.fetch_max((moved as f64 - allowed).max(0.0) as u64, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let orders = sites.iter().map(|site| order(site.address, "/"));
    let https = order_as(&format!("https://good.test:{}/", secure.address.port()), secure.address.ip(), FetchPurpose::Page);
    let asking = orders.chain([https]).map(|order| {
        let fetcher = fetcher.clone();
        async move { (fetcher.fetch(order.clone()).await, fetcher.fetch(order).await) }
    });
    let reports: Vec<FetchReport> = futures::future::join_all(asking).await.into_iter().flat_map(|(a, b)| [a, b]).collect();
    let (took, moved) = (begun.elapsed().as_secs_f64(), wire.moved());
    looking.abort();
    assert!(reports.iter().all(|report| decoded(report) == body.len() as u64));
    assert!(moved as usize >= 18 * body.len(), "{moved}");
    assert!(took >= 10.0 && moved as f64 <= took * RATE as f64 * 1.01, "{moved} bytes in {took} s");
    assert!(moved as f64 >= took * RATE as f64 * 0.9, "the rate is used: {moved} bytes in {took} s");
    let most = most.load(Ordering::Relaxed);
    assert!(most <= RATE / 10, "{most} bytes ahead of the rate");
    assert!(reports.iter().any(|report| report.first_byte_us.is_none()), "what waited here measures no server");
}

/// A no must be heard whatever the operator's limits say: it is counted, and does not wait.
#[tokio::test]
async fn the_look_for_an_opt_out_goes_out_when_all_bytes_are_spent_and_before_what_waits() {
    let site = Site::always(vec![answer("200 OK", "Content-Type: text/plain\r\n", b"no-crawl")]).await;
    let fetcher = paced(vec![site.address.port()]);
    let wire = fetcher.wire();
    // A minute's worth of the rate is taken.
    wire.spend(60 * RATE);
    wire.allow(0);
    wire.close(true);
    let page = fetcher.fetch(order(site.address, "/")).await;
    assert_eq!(page.outcome, super::FetchOutcome::Failed(nearcrawl_model::fetch::FetchError::Cancelled));
    let (before, begun) = (wire.moved(), Instant::now());
    let report = fetcher.fetch(look_at(&site)).await;
    assert!(matches!(report.outcome, super::FetchOutcome::Robots { status: 200, .. }), "{:?}", report.outcome);
    assert!(wire.moved() > before && begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

fn look_at(site: &Site) -> FetchOrder {
    let mut look = order_as(&format!("http://{}/", site.address), site.address.ip(), FetchPurpose::Robots);
    look.reason.rule = FetchRule::OptOut;
    look
}

/// Its connection does not wait, and what comes after it does.
#[tokio::test]
async fn a_page_after_the_look_for_an_opt_out_keeps_to_the_rate_and_waits_while_nothing_is_allowed() {
    let body = "Masks, drums and stools. ".repeat(40_000);
    let page = answer("200 OK", "Content-Type: text/html\r\n", body.as_bytes());
    let site = Site::always(vec![page]).await;
    let fetcher = paced(vec![site.address.port()]);
    let wire = fetcher.wire();
    fetcher.fetch(look_at(&site)).await;
    // What the look took has had its time.
    let due = wire.moved() as f64 / RATE as f64;
    tokio::time::sleep(Duration::from_secs_f64(due + 0.1)).await;
    let begun = Instant::now();
    assert_eq!(decoded(&fetcher.fetch(order(site.address, "/")).await), body.len() as u64);
    let least = body.len() as f64 / RATE as f64 * 0.9;
    assert!(begun.elapsed().as_secs_f64() >= least, "{:?} for {} bytes", begun.elapsed(), body.len());
    // The connection of that page is kept; a look takes one of its own, which does not wait.
    wire.allow(0);
    let looking = tokio::time::timeout(Duration::from_secs(20), fetcher.fetch(look_at(&site))).await.unwrap();
    assert!(matches!(looking.outcome, super::FetchOutcome::Robots { status: 200, .. }), "{:?}", looking.outcome);
    let waiting = tokio::time::timeout(Duration::from_secs(1), fetcher.fetch(order(site.address, "/"))).await;
    assert!(waiting.is_err(), "nothing may be moved: {waiting:?}");
}

#[tokio::test]
async fn a_server_that_is_slow_itself_still_runs_out_of_time() {
    let site = Site::always(vec![nearcrawl_test_servers::web::Step::Hold]).await;
    let fetcher = paced(vec![site.address.port()]);
    let begun = Instant::now();
    let report = fetcher.fetch(order(site.address, "/")).await;
    assert_eq!(report.outcome, super::FetchOutcome::Failed(nearcrawl_model::fetch::FetchError::HeadTimeout));
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

/// What came and nobody read was on the line, and no limit has counted it.
#[tokio::test]
async fn a_connection_holds_little_that_is_not_read() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (unread, patience) = (Wire::paced(None, Some(16 << 10)).buffer(), Duration::from_secs(5));
    let stream = dial(address, None, &policy([address.port()]), patience, unread).await.unwrap();
    let (mut sender, _) = listener.accept().await.unwrap();
    // Until nothing more is taken.
    let flood = vec![7; 1 << 20];
    while tokio::time::timeout(Duration::from_millis(500), sender.write_all(&flood)).await.is_ok() {}
    let mut buffer = vec![0; 1 << 20];
    let unread = stream.peek(&mut buffer).await.unwrap();
    assert!((1..=48 << 10).contains(&unread), "{unread} bytes");
    assert_eq!(Wire::paced(Some(RATE), Some(20 << 10)).buffer(), Some(20 << 10), "the least of both");
}
