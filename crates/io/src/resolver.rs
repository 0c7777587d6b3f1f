//! Resolves hosts by the DNS.
//!
//! Forbidden addresses are dropped, and the smallest of the rest is pinned, or the one that the host was pinned to before if that is among
//! them.

mod line;

use crate::fetcher::{Waits, Wire};
use hickory_resolver::{
    TokioResolver,
    config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig as Servers},
    lookup::Lookup,
    net::{DnsError, NetError, NoRecords, runtime::TokioRuntimeProvider},
    proto::{
        op::ResponseCode,
        rr::{Name, RData, RecordType},
    },
    system_conf::read_system_conf,
};
use line::{Line, Questions};
use nearcrawl_model::{
    address::AddressPolicy,
    fetch::{LocatedHost, ResolveError},
    time::Millis,
    url::Host,
};
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

/// Of a host with more addresses than this, the others are not looked at.
pub const MAX_ADDRESSES: usize = 16;

/// Of a name with more TXT records than this, the others are not looked at.
pub const MAX_TEXTS: usize = 32;

/// A chain of more aliases than this counts as looping.
pub const MAX_CHAIN: usize = 8;

/// A pin holds for no longer than this: 7 days.
pub const MAX_PIN: Millis = 7 * 24 * 60 * 60 * 1000;

/// The settings of the resolver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolverConfig {
    /// The name servers, asked over UDP and, for what does not fit, TCP. With an empty list the system's servers are asked.
    pub servers: Vec<SocketAddr>,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// How often a question is asked before giving up, at least once.
    pub attempts: usize,
    /// The local address that questions are sent from; servers of the other family are asked from any.
    pub source_address: Option<IpAddr>,
    /// A pin holds for at least this long, whatever the time to live says, so that a short one cannot move a host from owner to owner.
    pub shortest_pin: Millis,
    /// How many questions may be sent in a second, repeated ones included; none without a limit.
    pub per_second: Option<u32>,
}

impl Default for ResolverConfig {
    fn default() -> Self {
        ResolverConfig {
            servers: Vec::new(),
            timeout: Duration::from_secs(3),
            attempts: 2,
            source_address: None,
            shortest_pin: 60_000,
            per_second: None,
        }
    }
}

/// Why a resolver cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolverConfigError {
    /// The system does not say which name servers to ask.
    #[error("the system names no name server ({0}): set `servers` or repair /etc/resolv.conf")]
    NoSystemServers(String),
    /// The library refused the settings.
    #[error("the resolver could not be made: {0}")]
    Refused(String),
}

/// The name servers that the system asks.
///
/// # Errors
///
/// The system names none.
pub fn system_servers() -> Result<Vec<IpAddr>, ResolverConfigError> {
    let (system, _) = read_system_conf().map_err(|error| ResolverConfigError::NoSystemServers(error.to_string()))?;
    Ok(system.name_servers().iter().map(|server| server.ip).collect())
}

/// Asks the DNS. Never reads the hosts file and never appends a search domain: a crawled name is always absolute.
#[derive(Clone)]
pub struct Resolver {
    dns: hickory_resolver::Resolver<Line>,
    questions: Arc<Questions>,
    policy: Arc<AddressPolicy>,
    shortest_pin: Millis,
    longest_wait: Duration,
}

/// A kind of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    Four,
    /// IPv6.
    Six,
}

/// The result of one DNS query.
struct Answer {
    addresses: Vec<IpAddr>,
    aliases: usize,
    valid_for: Millis,
}

impl Resolver {
    /// Makes a resolver that pins only addresses which `policy` lets be contacted.
    pub fn new(config: ResolverConfig, policy: impl Into<Arc<AddressPolicy>>) -> Result<Resolver, ResolverConfigError> {
        Resolver::counted_by(config, policy, Arc::default())
    }

    /// The same, and its bytes count among those of a fetcher.
    pub fn counted_by(
        config: ResolverConfig,
        policy: impl Into<Arc<AddressPolicy>>,
        wire: Arc<Wire>,
    ) -> Result<Resolver, ResolverConfigError> {
        let mut servers = if config.servers.is_empty() {
            // Only the servers are taken over: the system's search list would turn crawled names into local ones.
            let (system, _) = read_system_conf().map_err(|error| ResolverConfigError::NoSystemServers(error.to_string()))?;
            system.name_servers().to_vec()
        } else {
            config.servers.iter().copied().map(name_server).collect()
        };
        for server in &mut servers {
            let source = config.source_address.filter(|source| source.is_ipv4() == server.ip.is_ipv4());
            for connection in &mut server.connections {
                connection.bind_addr = source.map(|source| SocketAddr::new(source, 0));
            }
        }
        let attempts = config.attempts.max(1);
        let questions = Arc::new(Questions::new(wire, config.per_second));
        let provider = Line::new(Arc::clone(&questions));
        let mut builder = hickory_resolver::Resolver::builder_with_config(Servers::from_name_servers(servers), provider);
        let options = builder.options_mut();
        options.timeout = config.timeout;
        options.attempts = attempts - 1;
        options.use_hosts_file = ResolveHosts::Never;
        options.preserve_intermediates = true;
        options.num_concurrent_reqs = 1;
        // Left alone, the library takes a day for the longest time to live there is.
        options.positive_max_ttl = Some(Duration::from_millis(MAX_PIN));
        // The pin is the cache; a second one would only hide that a host has moved.
        options.cache_size = 0;
        let dns = builder.build().map_err(|error| ResolverConfigError::Refused(error.to_string()))?;
        let longest_wait = config.timeout.saturating_mul(2 * u32::try_from(attempts).unwrap_or(u32::MAX));
        let shortest_pin = config.shortest_pin.min(MAX_PIN);
        Ok(Resolver { dns, questions, policy: policy.into(), shortest_pin, longest_wait })
    }

    /// Questions that were sent since the start, and how many of them waited for their turn.
    pub fn questions(&self) -> (u64, u64) {
        (self.questions.sent(), self.questions.delayed())
    }

    /// Asks once, as soon as that may be.
    async fn question(&self, name: Name, kind: RecordType, waits: &Waits) -> Result<Lookup, NetError> {
        self.questions.turn(waits).await;
        self.dns.lookup(name, kind).await
    }

    /// Waits for an answer as long as that may take; the time until a question may be sent comes besides.
    async fn patiently<T>(&self, waits: &Waits, asking: impl Future<Output = T>) -> Result<T, ResolveError> {
        waits.timeout_at(Instant::now() + self.longest_wait, asking).await.ok_or(ResolveError::TimedOut)
    }

    /// Finds the address to contact a host at: `pinned`, where it was before, if it still has that one; else the smallest one allowed, IPv4
    /// before IPv6. A host that is an address is checked in the same way, without a question.
    pub async fn resolve(&self, host: &Host, pinned: Option<IpAddr>) -> Result<LocatedHost, ResolveError> {
        if let Some(address) = host.address() {
            return self.pin(host, None, &[address], MAX_PIN).ok_or(ResolveError::ForbiddenAddress);
        }
        let waits = Waits::default();
        self.patiently(&waits, self.ask(host, pinned, &waits)).await?
    }

    /// All addresses of a host that are of this family, whatever may be contacted; none if its name has no such record.
    ///
    /// # Errors
    ///
    /// There is no such name, or the name servers did not say.
    pub async fn every_address(&self, host: &Host, family: Family) -> Result<Vec<IpAddr>, ResolveError> {
        if let Some(address) = host.address() {
            return Ok([address].into_iter().filter(|address| address.is_ipv4() == (family == Family::Four)).collect());
        }
        let name = Name::from_ascii(format!("{host}.")).map_err(|_| ResolveError::NoSuchName)?;
        let kind = if family == Family::Four { RecordType::A } else { RecordType::AAAA };
        let waits = Waits::default();
        let answer = self.patiently(&waits, self.lookup(&name, kind, &waits)).await??;
        Ok(answer.map_or_else(|_| Vec::new(), |answer| answer.addresses.iter().map(IpAddr::to_canonical).collect()))
    }

    /// The TXT records of a name, each with its strings joined; none if there is no such name, or it has no such record.
    ///
    /// # Errors
    ///
    /// The name servers did not say.
    pub async fn texts(&self, name: &str) -> Result<Vec<String>, ResolveError> {
        let name = Name::from_ascii(format!("{name}.")).map_err(|_| ResolveError::NoSuchName)?;
        let waits = Waits::default();
        let lookup = match self.patiently(&waits, self.question(name, RecordType::TXT, &waits)).await? {
            Ok(lookup) => lookup,
            Err(NetError::Dns(DnsError::NoRecordsFound(none))) if none.response_code == ResponseCode::NoError => return Ok(Vec::new()),
            Err(error) if error.is_nx_domain() => return Ok(Vec::new()),
            Err(error) => return Err(failure(&error)),
        };
        let texts = lookup.answers().iter().filter_map(|record| match &record.data {
            RData::TXT(text) => Some(String::from_utf8_lossy(&text.txt_data.concat()).into_owned()),
            _ => None,
        });
        Ok(texts.take(MAX_TEXTS).collect())
    }

    /// A first; AAAA only if that leaves no address to use, or if the host was pinned to one. A server that fails is not taken for one
    /// without IPv4: otherwise the pin would depend on when the name was looked up.
    async fn ask(&self, host: &Host, pinned: Option<IpAddr>, waits: &Waits) -> Result<LocatedHost, ResolveError> {
        let name = Name::from_ascii(format!("{host}.")).map_err(|_| ResolveError::NoSuchName)?;
        if pinned.is_some_and(|pinned| pinned.is_ipv6())
            && let Ok(answer) = self.lookup(&name, RecordType::AAAA, waits).await?
            && let Some(located) =
                self.pin(host, pinned, &answer.addresses, answer.valid_for).filter(|located| Some(located.address) == pinned)
        {
            return Ok(located);
        }
        let v4 = self.lookup(&name, RecordType::A, waits).await?;
        let first = v4.as_ref().ok();
        if let Some(located) = first.and_then(|answer| self.pin(host, pinned, &answer.addresses, answer.valid_for)) {
            return Ok(located);
        }
        let forbidden = first.is_some();
        match self.lookup(&name, RecordType::AAAA, waits).await {
            Ok(Ok(answer)) => self.pin(host, pinned, &answer.addresses, answer.valid_for).ok_or(ResolveError::ForbiddenAddress),
            _ if forbidden => Err(ResolveError::ForbiddenAddress),
            Ok(Err(none)) => Err(self.why_none(&none, waits).await),
            Err(failure) => Err(failure),
        }
    }

    /// One question. The inner error means that the name exists but has no record of the kind.
    async fn lookup(&self, name: &Name, kind: RecordType, waits: &Waits) -> Result<Result<Answer, NoRecords>, ResolveError> {
        let lookup = match self.question(name.clone(), kind, waits).await {
            Ok(lookup) => lookup,
            Err(NetError::Dns(DnsError::NoRecordsFound(none))) if none.response_code == ResponseCode::NoError => return Ok(Err(none)),
            Err(error) => return Err(failure(&error)),
        };
        let records = lookup.answers();
        let mut answer = Answer { addresses: Vec::new(), aliases: 0, valid_for: MAX_PIN };
        for record in records {
            answer.valid_for = answer.valid_for.min(Millis::from(record.ttl) * 1000);
            match &record.data {
                RData::A(address) if answer.addresses.len() < MAX_ADDRESSES => answer.addresses.push(IpAddr::V4(address.0)),
                RData::AAAA(address) if answer.addresses.len() < MAX_ADDRESSES => answer.addresses.push(IpAddr::V6(address.0)),
                RData::CNAME(_) => answer.aliases += 1,
                _ => {}
            }
        }
        if answer.aliases > MAX_CHAIN { Err(ResolveError::Looping) } else { Ok(Ok(answer)) }
    }

    /// Did a chain of aliases end at a name without an address, or did the library stop following it? It reports both as
    /// "no records"; a name where it stopped still has an alias.
    async fn why_none(&self, none: &NoRecords, waits: &Waits) -> ResolveError {
        match self.question(none.query.name().clone(), RecordType::CNAME, waits).await {
            Ok(lookup) if lookup.answers().iter().any(|record| matches!(record.data, RData::CNAME(_))) => ResolveError::Looping,
            _ => ResolveError::NoAddress,
        }
    }

    fn pin(&self, host: &Host, pinned: Option<IpAddr>, addresses: &[IpAddr], valid_for: Millis) -> Option<LocatedHost> {
        let allowed = addresses.iter().map(IpAddr::to_canonical).filter(|address| self.policy.check_ip(*address).is_ok());
        // `IpAddr` orders IPv4 before IPv6.
        let address = allowed.clone().find(|address| Some(*address) == pinned).or_else(|| allowed.min())?;
        Some(LocatedHost { host: host.clone(), address, valid_for: valid_for.clamp(self.shortest_pin, MAX_PIN) })
    }
}

/// A resolver's configuration that asks these name servers.
pub(crate) fn asking(servers: &[SocketAddr]) -> Servers {
    Servers::from_name_servers(servers.iter().copied().map(name_server).collect())
}

/// The addresses of a member's name, by these name servers.
pub(crate) async fn addresses(name: &str, servers: &[SocketAddr]) -> std::io::Result<Vec<IpAddr>> {
    let resolver = TokioResolver::builder_with_config(asking(servers), TokioRuntimeProvider::default()).build();
    let found = resolver.map_err(std::io::Error::other)?.lookup_ip(name).await.map_err(std::io::Error::other)?;
    Ok(found.iter().collect())
}

fn name_server(address: SocketAddr) -> NameServerConfig {
    let mut connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
    connections.iter_mut().for_each(|connection| connection.port = address.port());
    NameServerConfig::new(address.ip(), true, connections)
}

fn failure(error: &NetError) -> ResolveError {
    match error {
        NetError::Timeout => ResolveError::TimedOut,
        NetError::Io(error) if error.kind() == std::io::ErrorKind::TimedOut => ResolveError::TimedOut,
        error if error.is_nx_domain() => ResolveError::NoSuchName,
        _ => ResolveError::ServerFailed,
    }
}

#[cfg(test)]
pub(crate) mod tests;
