//! Test that no URL leads to an address that must not be contacted, from its text through the DNS to the dialler, as in the daemon.

mod table;

use nearcrawl::io::{
    fetcher::{FetchLimits, Fetcher, FetcherConfig},
    prober::{ProbeTimeouts, Prober},
    resolver::{Resolver, ResolverConfig},
};
use nearcrawl_lab::web::dns::{DnsServer, Reply, Zone};
use nearcrawl_model::{
    address::{AddressError, AddressPolicy},
    fetch::{FetchError, FetchOrder, FetchOutcome, FetchPurpose, ProbeKind, ProbeTarget, ResolveError},
    fingerprint::FingerprintKey,
    url::PageUrl,
};
use std::{net::SocketAddr, sync::Arc};
use table::{NAMES, TABLE, Verdict};

/// The daemon's clients for the network, all under one address policy.
struct Clients {
    policy: Arc<AddressPolicy>,
    resolver: Resolver,
    fetcher: Fetcher,
    prober: Prober,
    _dns: DnsServer,
}

impl Clients {
    async fn new() -> Clients {
        let zone = Zone::default();
        for (name, addresses) in NAMES {
            zone.set(name.parse().unwrap(), Reply::Addresses(addresses.iter().map(|address| address.parse().unwrap()).collect()));
        }
        let dns = DnsServer::start("127.0.0.1:0".parse().unwrap(), zone).await.unwrap();
        let policy = Arc::new(AddressPolicy {
            own: vec!["93.184.216.99".parse().unwrap()],
            denied: vec!["131.0.0.0/8".parse().unwrap()].into(),
            ..AddressPolicy::default()
        });
        let config = FetcherConfig {
            user_agent: "nearcrawl/0 (test)".into(),
            from: None,
            source_address: None,
            limits: FetchLimits::default(),
            key: FingerprintKey([7; 16]),
            evaluate: false,
            rate: None,
            unread: None,
        };
        Clients {
            resolver: Resolver::new(ResolverConfig { servers: vec![dns.address()], ..ResolverConfig::default() }, policy.clone()).unwrap(),
            fetcher: Fetcher::new(config, policy.clone()).unwrap(),
            prober: Prober::new(None, policy.clone(), ProbeTimeouts::default(), "nearcrawl/0 (test)").unwrap(),
            policy,
            _dns: dns,
        }
    }

    /// What becomes of a URL. If it is refused, the clients that dial are tried as well, as if it had not been checked before.
    async fn verdict(&self, text: &str) -> Verdict {
        let url = match PageUrl::parse(text) {
            Ok(url) => url,
            Err(refusal) => return Verdict::Never(refusal),
        };
        let host = url.host();
        let found = match (self.resolver.resolve(&host, None).await, host.address()) {
            (Ok(located), _) => Ok(located.address),
            (Err(ResolveError::ForbiddenAddress), Some(address)) => Err(address),
            (Err(failure), _) => return Verdict::Nowhere(failure),
        };
        let at = SocketAddr::new(found.unwrap_or_else(|address| address), url.port());
        match self.policy.check(at) {
            Ok(()) => {
                let shown = TABLE.iter().find_map(|row| {
                    if let Verdict::May(shown) = row.1 {
                        Some(shown).filter(|shown| at.ip() == shown.parse::<std::net::IpAddr>().unwrap())
                    } else {
                        None
                    }
                });
                Verdict::May(shown.unwrap_or("an address that nobody named"))
            }
            Err(refusal) => {
                let order = FetchOrder {
                    address: at.ip(),
                    purpose: FetchPurpose::Page,
                    url: url.clone(),
                    validators: Default::default(),
                    front: true,
                    evaluate: false,
                    reason: Default::default(),
                };
                assert_eq!(self.fetcher.fetch(order).await.outcome, FetchOutcome::Failed(FetchError::ForbiddenAddress), "{text}");
                for kind in [ProbeKind::Tcp, ProbeKind::HttpHead] {
                    let target = ProbeTarget { address: at, host: host.clone(), secure: url.is_secure() };
                    assert_eq!(self.prober.probe(&target, kind).await.rtt_us, Err(FetchError::ForbiddenAddress), "{text}");
                }
                match refusal {
                    AddressError::Port(_) => Verdict::Port,
                    other => Verdict::Refused(other.class()),
                }
            }
        }
    }
}

#[tokio::test]
async fn every_url_leads_where_it_may_or_nowhere() {
    assert!(TABLE.len() >= 120, "{} rows", TABLE.len());
    let clients = Clients::new().await;
    let mut wrong = Vec::new();
    for (text, want, why) in TABLE {
        let found = clients.verdict(text).await;
        if found != *want {
            wrong.push(format!("{text:?} ({why}): {found:?} instead of {want:?}"));
        }
    }
    println!("{} URLs", TABLE.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!((clients.fetcher.opened_connections(), clients.fetcher.connection_slots()), (0, 0), "somebody was contacted");
}
