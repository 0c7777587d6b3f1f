//! Tests that the fetcher brings what servers say, keeps to its limits, and holds one connection to an address.

mod answers;
mod connections;
mod failures;
mod pipelining;
mod rate;
pub(crate) mod secure;

use super::{FetchLimits, Fetcher, FetcherConfig, FetcherConfigError, tls::WebTls};
use nearcrawl_model::{
    address::AddressPolicy,
    fetch::{FetchOrder, FetchOutcome, FetchPurpose, FetchReport},
    fingerprint::FingerprintKey,
    url::PageUrl,
};
use std::net::{IpAddr, SocketAddr};

pub(crate) const KEY: FingerprintKey = FingerprintKey([7; 16]);

/// Loopback is open at these ports.
pub(crate) fn policy(ports: impl IntoIterator<Item = u16>) -> AddressPolicy {
    AddressPolicy { allowed: vec!["127.0.0.0/8".parse().unwrap()], ports: ports.into_iter().collect(), ..AddressPolicy::default() }
}

fn config(limits: FetchLimits) -> FetcherConfig {
    FetcherConfig {
        user_agent: "nearcrawl/0 (test)".into(),
        from: Some("web@example.org".into()),
        source_address: None,
        limits,
        key: KEY,
        evaluate: false,
        rate: None,
        unread: None,
    }
}

fn fetcher(limits: FetchLimits, ports: impl IntoIterator<Item = u16>) -> Fetcher {
    Fetcher::new(config(limits), policy(ports)).unwrap()
}

/// What to ask a server for, under the host name `good.test`.
fn order(address: SocketAddr, path: &str) -> FetchOrder {
    order_as(&format!("http://good.test:{}{path}", address.port()), address.ip(), FetchPurpose::Page)
}

fn order_as(url: &str, address: IpAddr, purpose: FetchPurpose) -> FetchOrder {
    FetchOrder {
        url: PageUrl::parse(url).unwrap(),
        address,
        purpose,
        validators: Default::default(),
        front: true,
        evaluate: false,
        reason: Default::default(),
    }
}

fn decoded(report: &FetchReport) -> u64 {
    match &report.outcome {
        FetchOutcome::Page { page, .. } => page.decoded_bytes,
        other => panic!("not a page: {other:?}"),
    }
}

#[test]
fn a_name_that_cannot_be_sent_is_refused() {
    let bad = FetcherConfig { user_agent: "near\ncrawl".into(), ..config(FetchLimits::default()) };
    assert_eq!(Fetcher::new(bad, AddressPolicy::default()).err(), Some(FetcherConfigError::UserAgent("near\ncrawl".into())));
    let bad = FetcherConfig { user_agent: String::new(), ..config(FetchLimits::default()) };
    assert!(Fetcher::new(bad, AddressPolicy::default()).is_err());
    let bad = FetcherConfig { from: Some("a\0b".into()), ..config(FetchLimits::default()) };
    assert_eq!(Fetcher::new(bad, AddressPolicy::default()).err(), Some(FetcherConfigError::From("a\0b".into())));
}
