//! Makes a crawler and an executor of a configuration and a state directory.

use crate::io::{
    fetcher::{FetchLimits, Fetcher, FetcherConfig, WebTls},
    prober::{ProbeTimeouts, Prober},
    request_log::{RequestLog, RequestLogConfig},
    resolver::{Resolver, ResolverConfig},
    store::{Store, StoreConfig},
    swarm::{SwarmConfig, SwarmSecrets},
};
use crate::node::{
    clock::millis,
    config::{Config, CrawlRule, DelegationPolicy, Readers},
    error::NodeError,
    own_addresses::literals,
    state::{
        keyfile::{self, NodeIdentity},
        persisted_state::PersistedState,
    },
};
use ed25519_dalek::SigningKey;
use nearcrawl_core::{
    crawl::{
        politeness::Politeness,
        scope::{EverInScope, Scope},
        site::{SiteRules, frontier::MAX_IN_MEMORY, yields::Price},
    },
    crawler::{Crawler, Identity, NewHostLimits, Settings},
    delegation::Policy,
    membership::{RosterConfig, SwimConfig},
    routing::locator::MAX_LOOKUPS,
};
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{
    address::{AddressPolicy, DeniedRanges, SeenAt},
    admission::Gate,
    claim::SignedClaim,
    fingerprint::FingerprintKey,
    subnet::Subnet,
    time::Now,
    url::Host,
};
use std::{net::IpAddr, sync::Arc, time::Duration};

/// This machine's addresses, as far as the configuration contains them.
pub fn own_addresses(config: &Config) -> Vec<IpAddr> {
    let mut own: Vec<IpAddr> = config.crawl.source_address.into_iter().collect();
    for address in config.swarm.advertise.iter().chain(&config.swarm.listen) {
        own.extend(literals(address));
    }
    own.sort_unstable();
    own.dedup();
    own
}

/// Which hosts are in scope and which are denied.
pub fn scope(config: &Config) -> Scope {
    let (scope, crawl) = (&config.scope, &config.crawl);
    // A name that is listed denies all under it, a top-level domain too.
    let denied_tlds = crawl.deny_tlds.iter().filter_map(|tld| tld.parse::<Host>().ok());
    Scope {
        open: scope.open,
        tlds: scope.tlds.iter().cloned().collect(),
        hosts: scope.hosts.iter().cloned().collect(),
        ranges: scope.ranges.iter().copied().map(Subnet::from).collect(),
        asns: scope.asns.iter().copied().collect(),
        denied: crawl.deny_hosts.iter().cloned().chain(denied_tlds).collect(),
        denied_ranges: crawl.deny_ranges.iter().copied().map(Subnet::from).collect(),
        denied_asns: crawl.deny_asns.iter().copied().collect(),
        ever: EverInScope::default(),
    }
}

/// Which addresses may be contacted. Without a contact these are the laboratory's only, whatever seeds and links lead to: the configuration
/// as it is read does not say where names and pages will lead.
pub fn policy(config: &Config) -> AddressPolicy {
    let is_anonymous = config.contact.is_none();
    let laboratories = || config.crawl.laboratories().collect();
    AddressPolicy {
        allowed: if is_anonymous { laboratories() } else { config.crawl.allow_ranges.clone() },
        only_allowed: is_anonymous,
        denied: config.crawl.deny_ranges.clone().into(),
        own: own_addresses(config),
        seen_at: SeenAt::default(),
        ports: config.crawl.ports.clone(),
    }
}

/// The clients for web servers and the DNS.
#[derive(Clone)]
pub struct WebClients {
    /// Fetches pages and robots.txt.
    pub fetcher: Fetcher,
    /// Measures round-trip times to servers.
    pub prober: Prober,
    /// Looks up addresses of host names.
    pub resolver: Resolver,
    /// The ranges that none of them connects to; they may be replaced.
    pub denied: DeniedRanges,
    /// Where others see us: none of the others contacts these addresses.
    pub seen_at: SeenAt,
}

/// The executor for web servers, under the swarm's fingerprint key.
pub fn web_clients(config: &Config, key: FingerprintKey) -> Result<WebClients, NodeError> {
    let policy = Arc::new(policy(config));
    let denied = policy.denied.clone();
    let seen_at = policy.seen_at.clone();
    let fetch = &config.fetch;
    let limits = FetchLimits {
        connect: fetch.connect_timeout,
        tls: fetch.tls_timeout,
        head: fetch.head_timeout,
        read_idle: fetch.idle_timeout,
        total: fetch.total_timeout,
        wire_bytes: fetch.max_body_size,
        decoded_bytes: fetch.max_decoded_size,
        idle: fetch.keep_alive,
        ..FetchLimits::default()
    };
    let source_address = config.crawl.source_address;
    let user_agent = config.user_agent();
    let from = config.contact.clone().filter(|contact| contact.contains('@'));
    let (rate, unread) = (config.allowance.crawl_rate, config.allowance.unread_at_each(config.max_parallel()));
    let (agent, evaluate) = (user_agent.clone(), config.crawl.evaluation);
    let fetcher = FetcherConfig { user_agent: agent, from, source_address, limits, key, evaluate, rate, unread };
    let resolver = ResolverConfig {
        servers: config.dns.servers.clone(),
        timeout: config.dns.timeout,
        attempts: config.dns.attempts as usize,
        source_address,
        shortest_pin: millis(config.dns.min_ttl),
        per_second: (config.dns.max_per_second > 0).then_some(config.dns.max_per_second),
    };
    let fetcher = Fetcher::with_tls(fetcher, Arc::clone(&policy), WebTls::with_authorities(&fetch.ca_files)?)?;
    let prober = Prober::new(source_address, Arc::clone(&policy), ProbeTimeouts::default(), &user_agent)?;
    Ok(WebClients {
        prober: prober.counted_by(fetcher.wire()),
        // Names are looked up for the whole swarm, and others may contact what they lead to.
        resolver: Resolver::counted_by(resolver, AddressPolicy { only_allowed: false, ..policy.as_ref().clone() }, fetcher.wire())?,
        fetcher,
        denied,
        seen_at,
    })
}

/// The store in the state directory.
pub fn store(config: &Config) -> Result<Store, NodeError> {
    let limits = StoreConfig { memory_bytes: config.store.memory as usize, ..StoreConfig::default() };
    let (store, report) = Store::open(&config.state_dir, &limits)?;
    if let Some(rebuilt) = report.cache_rebuilt {
        tracing::warn!(
            "the cache database was damaged ({}); it was moved to {} and is rebuilt from the journals",
            rebuilt.reason,
            rebuilt.moved_to.display()
        );
    }
    Ok(store)
}

/// The log of requests, if there is to be one.
pub fn request_log(config: &Config) -> Result<Option<RequestLog>, NodeError> {
    if !config.log.requests {
        return Ok(None);
    }
    let log = RequestLogConfig {
        directory: config.requests_directory(),
        max_days: (config.log.max_requests_age.as_secs() / 86_400).max(1),
        max_bytes: config.log.max_requests_bytes,
    };
    RequestLog::start(log).map(Some).map_err(|_| NodeError::Ended("the thread of the log of requests"))
}

/// Secrets for a swarm that begins here.
pub fn new_secrets() -> Result<SwarmSecrets, NodeError> {
    let random =
        keyfile::random_seed().map_err(|error| NodeError::Key { path: "/dev/urandom".into(), why: error.to_string(), forbidden: false })?;
    let (mut swarm, mut key) = ([0; 16], [0; 16]);
    swarm.copy_from_slice(&random[..16]);
    key.copy_from_slice(&random[16..]);
    Ok(SwarmSecrets { swarm, fingerprint_key: FingerprintKey(key) })
}

/// How the swarm is joined.
pub fn swarm_config(
    config: &Config,
    identity: &NodeIdentity,
    secrets: Option<SwarmSecrets>,
    pre_shared_key: Option<[u8; 32]>,
    hierarchy: &Hierarchy,
    incarnation: u64,
) -> SwarmConfig {
    SwarmConfig {
        listen: config.swarm.listen.clone(),
        announce: config.swarm.advertise.clone(),
        bootstrap: config.swarm.bootstrap.clone(),
        allow_ranges: config.crawl.allow_ranges.clone(),
        source_address: config.crawl.source_address,
        name_servers: config.dns.servers.clone(),
        pre_shared_key,
        secrets,
        hierarchy_hash: hierarchy.hash(),
        gate: Arc::new(Gate { rule: config.admission.rule.clone(), ..Gate::default() }),
        certificate: identity.certificate.clone(),
        incarnation,
        relays: config.nat.relay,
        tries_readers: config.swarm.readers == Readers::Anybody,
        max_connections: config.swarm.max_connected.saturating_mul(2).max(8),
        ..SwarmConfig::default()
    }
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}

/// By which procedure subnets are given away.
fn policy_of(config: &Config) -> Policy {
    let delegation = &config.delegation;
    match delegation.policy {
        DelegationPolicy::Nearcrawl => Policy::Nearcrawl { price_us: micros(delegation.probe_price) },
        DelegationPolicy::Ipmicra => Policy::Ipmicra { threshold_us: micros(delegation.threshold) },
        DelegationPolicy::Random => Policy::Random,
    }
}

/// How many new hosts links may lead to in a day.
fn new_hosts(config: &Config) -> NewHostLimits {
    let limit = |limit: Option<u64>| limit.unwrap_or(0);
    NewHostLimits { per_site: limit(config.crawl.max_new_hosts_per_site), per_domain: limit(config.crawl.max_new_hosts_per_domain) }
}

/// The part of the configuration that the crawler uses.
pub fn settings(config: &Config, joins: bool) -> Settings {
    let crawl = &config.crawl;
    let timers = &config.timers;
    Settings {
        rules: SiteRules {
            depth: crawl.depth,
            price: match crawl.rule {
                CrawlRule::Depth => Price::default(),
                CrawlRule::Yield => crawl.yield_price,
            },
            pages_per_run: crawl.max_pages_per_run.unwrap_or(0),
            product_token: crawl.product_token.clone(),
        },
        scope: scope(config),
        new_hosts: new_hosts(config),
        politeness: Politeness {
            min_delay: millis(crawl.min_delay),
            factor: u64::from(crawl.delay_factor),
            parallel: config.max_parallel() as usize,
            per_block: crawl.max_parallel_per_subnet as usize,
        },
        policy: policy_of(config),
        migration: config.delegation.migration,
        probe: config.delegation.probe,
        home_port: config.delegation.home_port,
        max_parallel_rounds: config.delegation.max_parallel_rounds as usize,
        ignore_orders_of: config.swarm.ignore_orders_of.iter().copied().collect(),
        admission: config.admission.rule.clone(),
        contacts_per_subnet: config.delegation.max_contacts_per_subnet,
        max_lookups: MAX_LOOKUPS,
        revisit: millis(crawl.revisit),
        max_waiting: crawl.max_waiting_urls as usize,
        max_in_memory: MAX_IN_MEMORY,
        max_kept_per_owner: config.store.max_bytes_per_owner,
        cache_entries: (config.cache.entries_per_fetch as usize).saturating_mul(crawl.max_parallel as usize).max(1),
        own_addresses: own_addresses(config),
        joins,
        founds: config.swarm.bootstrap.is_empty(),
        member: true,
        membership: SwimConfig {
            probe_every: millis(timers.ping_interval),
            probe_rtt: millis(timers.ping_timeout),
            suspect_to_down: millis(timers.suspicion_timeout),
            ..SwimConfig::default()
        },
        roster: RosterConfig {
            dead_after: millis(timers.dead_after),
            replace_voter_after: millis(timers.replace_voter_after),
            vote_after: millis(timers.vote_after),
            singly: crawl.laboratories().map(Subnet::from).collect(),
            without: None,
            lease: millis(timers.lease),
        },
    }
}

/// A crawler that starts with what was stored.
pub fn crawler(
    identity: &NodeIdentity,
    persisted: &PersistedState,
    secrets: SwarmSecrets,
    claims: Vec<SignedClaim>,
    settings: Settings,
    hierarchy: Arc<Hierarchy>,
    now: Now,
) -> Crawler {
    let settings = Settings { scope: Scope { ever: persisted.ever_in_scope.clone(), ..settings.scope }, ..settings };
    let identity = Identity {
        key: SigningKey::from_bytes(&identity.seed),
        incarnation: persisted.incarnation,
        // The swarm says where others reach us once it knows.
        addresses: Vec::new(),
        fingerprints: secrets.fingerprint_key,
        claims,
        members: persisted.members.clone(),
        voting: persisted.voting.clone(),
        sole: persisted.sole,
        store: persisted.store,
        contacts: persisted.contacts.clone(),
        surveys: persisted.surveys.clone(),
        survey_probes: persisted.survey_probes.clone(),
        opt_outs: persisted.opt_outs.clone(),
        admissions: persisted.admissions.clone(),
        certificate: identity.certificate.clone(),
    };
    Crawler::new(identity, settings, hierarchy, now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::{
        fetch::{FetchError, FetchOrder, FetchOutcome, FetchPurpose, ProbeKind, ProbeTarget},
        url::PageUrl,
    };
    use std::{net::SocketAddr, path::Path};

    const LABORATORIES: [&str; 2] = ["[scope]\nhosts = [\"127.41.0.99\"]\n", "[scope]\nopen = true\n[dns]\nservers = [\"127.0.0.53\"]\n"];

    /// What a fetch and both kinds of probe of this address fail with.
    async fn failures(clients: &WebClients, address: &str) -> [Option<FetchError>; 3] {
        let url = PageUrl::parse(&format!("http://{address}/")).unwrap();
        let address = SocketAddr::new(address.parse().unwrap(), 80);
        let target = ProbeTarget { address, host: url.host(), secure: false };
        let probe = async |kind| clients.prober.probe(&target, kind).await.rtt_us.err();
        let order = FetchOrder {
            url,
            address: address.ip(),
            purpose: FetchPurpose::Robots,
            validators: Default::default(),
            front: false,
            evaluate: false,
            reason: Default::default(),
        };
        let fetched = match clients.fetcher.fetch(order).await.outcome {
            FetchOutcome::Failed(failure) => Some(failure),
            _ => None,
        };
        [fetched, probe(ProbeKind::Tcp).await, probe(ProbeKind::HttpHead).await]
    }

    #[tokio::test]
    async fn without_a_contact_no_socket_is_opened_to_a_public_server() {
        for laboratory in LABORATORIES {
            let text = format!("[crawl]\nmin_delay = \"0s\"\nallow_ranges = [\"127.0.0.0/8\", \"2a00:1:2:3::/64\"]\n{laboratory}");
            let config = Config::parse(&text, Path::new("node.toml")).unwrap();
            assert_eq!(config.ready_to_run(), Ok(()), "it looks like a laboratory");
            assert!(config.warnings().is_empty(), "{:?}", config.warnings());
            let clients = web_clients(&config, FingerprintKey([7; 16])).unwrap();
            assert_eq!(failures(&clients, "1.1.1.1").await, [Some(FetchError::ForbiddenAddress); 3]);
            assert_eq!(policy(&config).check_ip("127.41.0.99".parse().unwrap()), Ok(()));
            let shared = policy(&config).check_ip("2a00:1:2:3::9".parse().unwrap());
            assert!(shared.is_err(), "a network that a data centre's customers share is no laboratory");
            let known = Config::parse(&format!("contact = \"me@museum.ke\"\n{text}"), Path::new("node.toml")).unwrap();
            assert!(known.warnings().iter().any(|warning| warning.contains("below the pauses")), "public servers may be asked");
            assert_eq!(policy(&known).check_ip("1.1.1.1".parse().unwrap()), Ok(()));
        }
    }
}
