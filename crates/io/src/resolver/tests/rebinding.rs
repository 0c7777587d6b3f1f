//! Test that a name whose addresses change cannot make the daemon connect to a forbidden address.
//!
//! It runs the real resolver and the real dialler against a name server that gives a different answer each time.

use super::*;
use crate::fetcher::{FetchLimits, Fetcher, FetcherConfig, tests::KEY};
use nearcrawl_model::{
    fetch::{FetchError, FetchOrder, FetchOutcome, FetchPurpose},
    url::PageUrl,
};
use nearcrawl_test_servers::web::{Log, Site, html};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::{net::TcpListener, task::JoinSet};

/// How often it is tried.
const TRIES: usize = 10_000;

/// Tries under way at once.
const AT_ONCE: usize = 8;

/// What is allowed, and what is not, both on loopback so that both can be watched.
const PUBLIC: &str = "127.67.0.1";
const PRIVATE: &str = "127.66.0.1";

/// One answer after the other, none of which may be remembered.
fn answers(name: &str, count: usize) -> Vec<Record> {
    let addresses: &[&str] = match count % 6 {
        0 => &[PUBLIC],
        1 => &[PRIVATE],
        2 => &[PRIVATE, PUBLIC],
        3 => &[PUBLIC, PRIVATE],
        4 => &["169.254.169.254", PRIVATE],
        _ => &["10.0.0.1", PUBLIC, "0.0.0.0"],
    };
    addresses.iter().map(|address| a(name, 0, address)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_changes_of_mind_bring_no_connection_to_a_forbidden_address() {
    let public = Site::start_at(PUBLIC.parse().unwrap(), Log::default(), |_| vec![html("x")]).await;
    let port = public.address.port();
    let private = TcpListener::bind((PRIVATE, port)).await.unwrap();
    let reached = Arc::new(AtomicUsize::new(0));
    let (count_reached, count_asked) = (reached.clone(), AtomicUsize::new(0));
    let mut watching = JoinSet::new();
    watching.spawn(async move {
        while private.accept().await.is_ok() {
            count_reached.fetch_add(1, Ordering::Relaxed);
        }
    });
    let dns = Dns::start(move |name, kind| match kind {
        RecordType::A => Reply::Records(answers(name, count_asked.fetch_add(1, Ordering::Relaxed))),
        _ => Reply::Records(vec![aaaa(name, 0, "::1"), aaaa(name, 0, "::ffff:127.66.0.1")]),
    })
    .await;
    let policy = Arc::new(AddressPolicy { allowed: vec!["127.67.0.0/16".parse().unwrap()], ports: vec![port], ..AddressPolicy::default() });
    let resolver = Resolver::new(ResolverConfig { servers: vec![dns.address], ..ResolverConfig::default() }, policy.clone()).unwrap();
    let config = FetcherConfig {
        user_agent: "nearcrawl/0 (test)".into(),
        from: None,
        source_address: None,
        limits: FetchLimits::default(),
        key: KEY,
        evaluate: false,
        rate: None,
        unread: None,
    };
    let fetcher = Fetcher::new(config, policy).unwrap();
    let url = PageUrl::parse(&format!("http://changing.test:{port}/")).unwrap();

    let mut trying = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (resolver, fetcher, url) = (resolver.clone(), fetcher.clone(), url.clone());
        trying.spawn(async move {
            let (mut fetched, mut refused, mut unanswered) = (0, 0, 0);
            for _ in 0..TRIES / AT_ONCE {
                let order = |address| FetchOrder {
                    url: url.clone(),
                    address,
                    purpose: FetchPurpose::Page,
                    validators: Default::default(),
                    front: true,
                    evaluate: false,
                    reason: Default::default(),
                };
                match resolver.resolve(&url.host(), None).await {
                    Ok(located) => {
                        let report = fetcher.fetch(order(located.address)).await;
                        assert!(matches!(report.outcome, FetchOutcome::Page { .. }), "{:?}", report.outcome);
                        fetched += 1;
                    }
                    // So many questions on a busy machine: a datagram may be lost.
                    Err(ResolveError::TimedOut | ResolveError::ServerFailed) => unanswered += 1,
                    Err(failure) => {
                        assert_eq!(failure, ResolveError::ForbiddenAddress);
                        // Nor would the dialler, should somebody have slipped it the address.
                        let report = fetcher.fetch(order(PRIVATE.parse().unwrap())).await;
                        assert_eq!(report.outcome, FetchOutcome::Failed(FetchError::ForbiddenAddress));
                        refused += 1;
                    }
                }
            }
            (fetched, refused, unanswered)
        });
    }
    let (mut fetched, mut refused, mut unanswered) = (0, 0, 0);
    while let Some(tried) = trying.join_next().await {
        let tried = tried.unwrap();
        fetched += tried.0;
        refused += tried.1;
        unanswered += tried.2;
    }
    println!("{fetched} fetched, {refused} refused, {unanswered} unanswered");
    assert_eq!(fetched + refused + unanswered, TRIES);
    assert!(fetched > TRIES / 4 && refused > TRIES / 4, "{fetched} fetched, {refused} refused, {unanswered} unanswered");
    assert_eq!(reached.load(Ordering::Relaxed), 0, "a forbidden address was connected to");
    fetcher.close_all().await;
}
