//! The operator's configuration: one TOML file, read whole, or the defaults.
//!
//! The file is parsed into a table that remembers where everything stands; each section then asks that table for its own keys
//! and gives back plain resolved values. So a mistake is reported with its line, all mistakes are reported at once, and
//! no code outside this module sees text that still has to be parsed.

mod admission;
mod allowance;
mod api;
mod cache;
mod contradictions;
mod crawl;
mod delegation;
mod dns;
mod error;
pub(crate) mod explained;
mod fetch;
mod hierarchy;
mod in_use;
mod log;
mod nat;
mod reader;
mod renamed;
mod scope;
mod store;
mod surroundings;
mod swarm;
#[cfg(test)]
mod tests;
mod timers;
mod values;

pub use admission::AdmissionConfig;
pub use allowance::AllowanceConfig;
pub use api::ApiConfig;
pub use cache::CacheConfig;
pub use crawl::{CrawlConfig, CrawlRule};
pub use delegation::{DelegationConfig, DelegationPolicy};
pub use dns::DnsConfig;
pub use error::{ConfigError, Problem};
pub use fetch::FetchConfig;
pub use hierarchy::{ExtraPrefix, HierarchyConfig, RegistrySource};
pub use in_use::{InUse, SettingView};
pub use log::{Journald, LogConfig};
pub use nat::NatConfig;
pub use scope::ScopeConfig;
pub use store::StoreConfig;
pub use swarm::{Readers, SwarmConfig, TellAllowance, check_dial_address};
pub use timers::TimersConfig;

use crate::io::swarm::MIN_PORT;
use nearcrawl_core::crawl::site::robots::PROGRAM_TOKEN;
use nearcrawl_model::{plan::Pace, view::counted};
use reader::{Reader, line_of};
use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
};
use surroundings::Surroundings;
use toml::de::{DeTable, DeValue};
use values::Parsed;
pub use values::parse_size;

/// Where the packaged service keeps its configuration.
pub const SERVICE_CONFIG: &str = "/etc/nearcrawl/nearcrawl.toml";

/// What `nearcrawl hierarchy renew` puts into the state directory, if the configuration names no other place.
const RENEWED_SNAPSHOT: &str = "hierarchy.snapshot";

/// The directory of the log of requests, in the state directory.
const REQUESTS: &str = "requests";

/// The longest configuration that is read, in bytes.
const MAX_CONFIG: u64 = 1 << 20;

/// With less of `allowance.crawl_rate` for each connection, in bytes a second, it is warned.
const MIN_SHARE: u64 = 1 << 10;

/// What the operator decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where everything is kept that must outlive the process.
    pub state_dir: PathBuf,
    /// Whom a web server's operator can write to: an email address or a web page. Part of the User-Agent header.
    pub contact: Option<String>,
    /// The web page about the crawler, as `bot-site` writes it. Part of the User-Agent header.
    pub page: Option<String>,
    /// How the daemon meets the others.
    pub swarm: SwarmConfig,
    /// What it does for members behind routers.
    pub nat: NatConfig,
    /// Who may be a member.
    pub admission: AdmissionConfig,
    /// How servers are visited.
    pub crawl: CrawlConfig,
    /// Which external hosts are crawled.
    pub scope: ScopeConfig,
    /// How names are resolved.
    pub dns: DnsConfig,
    /// The limits of one request.
    pub fetch: FetchConfig,
    /// Which hierarchy of subnets is used.
    pub hierarchy: HierarchyConfig,
    /// How subnets without an owner get one.
    pub delegation: DelegationConfig,
    /// How silence is judged.
    pub timers: TimersConfig,
    /// The URL cache.
    pub cache: CacheConfig,
    /// `[store]`: sizes and limits of the databases.
    pub store: StoreConfig,
    /// The HTTP interface.
    pub api: ApiConfig,
    /// What the daemon may use of its operator's line, and when.
    pub allowance: AllowanceConfig,
    /// What the daemon tells.
    pub log: LogConfig,
}

/// Why a configuration is good enough to look at things, but not to crawl.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    /// No address at which a site owner can reach the operator.
    #[error(
        "contact is not set: operators of web servers must be able to reach you; write contact = \"NAME@DOMAIN\" with your email address \
         (or the address of a web page) at the top of the configuration"
    )]
    NoContact,
    /// The swarm's root key is that of the example.
    #[error(
        "admission.swarm: this is the example's key, by which nobody can be invited; write the one that `nearcrawl swarm init` printed"
    )]
    NoRootKey,
    /// The address that requests are to come from is another machine's.
    #[error("crawl.source_address = \"{0}\": this is not an address of this machine; write one that is, or leave the key out")]
    ForeignSource(IpAddr),
}

impl Default for Config {
    /// The defaults for this process: they depend on the user and on systemd only in `state_dir`.
    fn default() -> Self {
        Config {
            state_dir: Surroundings::of_this_process().state_dir(),
            contact: None,
            page: None,
            swarm: SwarmConfig::default(),
            nat: NatConfig::default(),
            admission: AdmissionConfig::default(),
            crawl: CrawlConfig::default(),
            scope: ScopeConfig::default(),
            dns: DnsConfig::default(),
            fetch: FetchConfig::default(),
            hierarchy: HierarchyConfig::default(),
            delegation: DelegationConfig::default(),
            timers: TimersConfig::default(),
            cache: CacheConfig::default(),
            store: StoreConfig::default(),
            api: ApiConfig::default(),
            allowance: AllowanceConfig::default(),
            log: LogConfig::default(),
        }
    }
}

impl Config {
    /// Reads the file at `path`; the defaults if there is none to read.
    pub fn load(path: Option<&Path>) -> Result<Config, ConfigError> {
        let Some(path) = path else { return Ok(Config::default()) };
        Config::parse(&Config::text_of(path)?, path)
    }

    /// What is in a configuration's file.
    ///
    /// # Errors
    /// It cannot be read, or is far too long for one.
    pub fn text_of(path: &Path) -> Result<String, ConfigError> {
        let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
        let size = fs::metadata(path).map_err(unreadable)?.len();
        if size > MAX_CONFIG {
            let message = format!("the file has {}; a configuration has at most {MAX_CONFIG}", counted(size, "byte"));
            let problems = vec![Problem { line: None, what: String::new(), message }];
            return Err(ConfigError::Wrong { path: path.to_owned(), problems });
        }
        fs::read_to_string(path).map_err(unreadable)
    }

    /// Understands `text`, which was read from `path`: relative paths in it are relative to that file's directory.
    pub fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
        let wrong = |problems| ConfigError::Wrong { path: path.to_owned(), problems };
        let (root, mistakes) = DeTable::parse_recoverable(text);
        if !mistakes.is_empty() {
            // What follows a slip of syntax is guesswork: report the slips alone.
            let problem = |mistake: toml::de::Error| {
                let line = mistake.span().map(|span| line_of(text, span.start));
                let written = line.and_then(|line| text.lines().nth(line - 1)).map(|written| written.trim().chars().take(60).collect());
                Problem {
                    line,
                    what: written.unwrap_or_default(),
                    message: format!("the line cannot be read as TOML: {}", in_plain_words(mistake.message())),
                }
            };
            let mut problems: Vec<_> = mistakes.into_iter().map(problem).collect();
            problems.sort_by_key(|problem| problem.line);
            return Err(wrong(problems));
        }
        let directory = path.parent().unwrap_or(Path::new(""));
        let mut reader = Reader::new(text, root.get_ref(), directory);
        let config = Config::read(&mut reader);
        let problems = reader.finish();
        if problems.is_empty() { Ok(config) } else { Err(wrong(problems)) }
    }

    fn read(reader: &mut Reader<'_>) -> Config {
        let mut top = reader.section("");
        let state_dir = top.path("state_dir");
        let contact = top.take("contact", None, contact);
        let page = top.take("page", None, page);
        if page.is_some() && page == contact {
            let told = "`page` tells site owners what the crawler does, `contact` reaches people: name an email address, or another page"
                .to_owned();
            top.contradicts(&["contact", "page"], told);
        }
        Config {
            state_dir: state_dir.unwrap_or_else(|| Surroundings::of_this_process().state_dir()),
            contact,
            page,
            swarm: SwarmConfig::read(reader.section("swarm")),
            nat: NatConfig::read(reader.section("nat")),
            admission: AdmissionConfig::read(reader.section("admission")),
            crawl: CrawlConfig::read(reader.section("crawl")),
            scope: ScopeConfig::read(reader.section("scope")),
            dns: DnsConfig::read(reader.section("dns")),
            fetch: FetchConfig::read(reader.section("fetch")),
            hierarchy: HierarchyConfig::read(reader.section("hierarchy")),
            delegation: DelegationConfig::read(reader.section("delegation")),
            timers: TimersConfig::read(reader.section("timers")),
            cache: CacheConfig::read(reader.section("cache")),
            store: StoreConfig::read(reader.section("store")),
            api: ApiConfig::read(reader.section("api")),
            allowance: AllowanceConfig::read(reader.section("allowance")),
            log: LogConfig::read(reader.section("log")),
        }
    }

    /// How servers are visited.
    pub fn pace(&self) -> Pace {
        Pace {
            min_delay_ms: u64::try_from(self.crawl.min_delay.as_millis()).unwrap_or(u64::MAX),
            delay_factor: u64::from(self.crawl.delay_factor),
            max_parallel: u64::from(self.max_parallel()),
        }
    }

    /// How many servers are asked at once: `crawl.max_parallel`, or fewer if a limit on bytes is so low that it would not hold otherwise.
    pub fn max_parallel(&self) -> u32 {
        self.allowance.most_parallel().map_or(self.crawl.max_parallel, |most| most.min(self.crawl.max_parallel))
    }

    /// What is sent as User-Agent: the crawler, its version, its page and whom to write to. Under another name the program's stands behind it.
    pub fn user_agent(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let own = &self.crawl.product_token;
        let program = if own.eq_ignore_ascii_case(PROGRAM_TOKEN) { String::new() } else { format!(" {PROGRAM_TOKEN}/{version}") };
        let product = format!("{own}/{version}{program}");
        match (&self.page, &self.contact) {
            (Some(page), Some(contact)) => format!("{product} (+{page}; {contact})"),
            (Some(only), None) | (None, Some(only)) => format!("{product} (+{only})"),
            (None, None) => product,
        }
    }

    /// Where the snapshot of the hierarchy is, or will be once `nearcrawl hierarchy renew` has put one there.
    pub fn snapshot_place(&self) -> PathBuf {
        self.hierarchy.snapshot.clone().unwrap_or_else(|| self.state_dir.join(RENEWED_SNAPSHOT))
    }

    /// The snapshot to begin with: the one that is named, else the one in the state directory if it is there and nothing else is named.
    pub fn snapshot(&self) -> Option<PathBuf> {
        let renewed = || Some(self.snapshot_place()).filter(|place| self.hierarchy.delegated.is_empty() && place.is_file());
        self.hierarchy.snapshot.clone().or_else(renewed)
    }

    /// Where the log of requests is.
    pub fn requests_directory(&self) -> PathBuf {
        self.state_dir.join(REQUESTS)
    }

    /// Whether the daemon may crawl with this configuration; if not, the first reason.
    pub fn ready_to_run(&self) -> Result<(), NotReady> {
        self.not_ready().into_iter().next().map_or(Ok(()), Err)
    }

    /// All reasons why the daemon may not crawl with this configuration.
    pub fn not_ready(&self) -> Vec<NotReady> {
        let has_no_contact = self.contact.is_none() && !self.stays_private();
        let has_no_root_key = self.admission.rule.swarm.is_some_and(|root| root.0.iter().all(|byte| *byte == 0));
        let own = [has_no_contact.then_some(NotReady::NoContact), has_no_root_key.then_some(NotReady::NoRootKey)];
        own.into_iter().chain([self.source_is_here().err()]).flatten().collect()
    }

    /// Whether `crawl.source_address` is an address of this machine: only then a socket can be bound to it.
    pub fn source_is_here(&self) -> Result<(), NotReady> {
        let Some(address) = self.crawl.source_address else { return Ok(()) };
        match std::net::UdpSocket::bind((address, 0)) {
            Err(why) if why.kind() == std::io::ErrorKind::AddrNotAvailable => Err(NotReady::ForeignSource(address)),
            _ => Ok(()),
        }
    }

    /// What is allowed but probably not meant, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let (None, Some(contact)) = (&self.page, self.contact.as_ref().filter(|contact| contact.contains("://"))) {
            warnings.push(format!(
                "contact = \"{contact}\" is a web page: if it is the one that `nearcrawl bot-site` wrote, site owners find nobody there to write to; \
                 then set `page` to it, and `contact` to an email address"
            ));
        }
        if let Some(listen) = self.api.listen.filter(|listen| !listen.ip().is_loopback()) {
            warnings.push(format!("api.listen = \"{listen}\" can be reached from other machines: every program there can read what this daemon knows, and change it if it has the token"));
        }
        if !self.stays_private() && self.crawl.laboratories().next().is_some() {
            warnings.push(
                "crawl.allow_ranges lets links from the public web lead into private ranges; it is meant for laboratories".to_owned(),
            );
        }
        let usual = CrawlConfig::default();
        // Without a contact only the laboratory's servers are asked.
        if self.contact.is_some() && (self.crawl.min_delay < usual.min_delay || self.crawl.delay_factor < usual.delay_factor) {
            warnings.push(format!(
                "crawl.min_delay and crawl.delay_factor are below the pauses that nearcrawl promises to servers ({} s, {} times as long as the \
                 answer took); keep this to servers of your own",
                usual.min_delay.as_secs(),
                usual.delay_factor
            ));
        }
        let share = self.allowance.crawl_rate.map(|rate| rate / u64::from(self.max_parallel().max(1)));
        if share.is_some_and(|share| share < MIN_SHARE) {
            warnings.push(format!(
                "allowance.crawl_rate leaves each of the {} connections of crawl.max_parallel less than 1 KiB a second when all are busy; servers \
                 may hang up on readers that are so slow: lower crawl.max_parallel",
                self.max_parallel()
            ));
        }
        if self.delegation.policy == DelegationPolicy::Random {
            warnings.push(
                "delegation.policy = \"random\" draws the owner of each subnet, near or far, and no subnet moves for nearness; it is meant \
                 for comparisons, in which all members have it"
                    .to_owned(),
            );
        }
        warnings.extend(self.in_vain());
        if self.swarm.listen.is_empty() {
            warnings.push("swarm.listen is empty: no member can connect to this access point".to_owned());
        }
        if self.swarm.pre_shared_key_file.is_some() && self.swarm.listen.iter().any(|address| address.contains("/quic")) {
            warnings.push(
                "swarm.pre_shared_key_file: QUIC has no such key, so this access point uses TCP only, and none of the addresses in \
                 swarm.listen that end in /quic-v1; two members behind routers then meet through others only"
                    .to_owned(),
            );
        }
        warnings
    }

    /// What is allowed and cannot have the effect that is probably meant.
    fn in_vain(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(source) = self.crawl.source_address.filter(|source| source.is_loopback() && !self.stays_private()) {
            warnings.push(format!(
                "crawl.source_address = \"{source}\" is a loopback address: no server beyond this machine can be reached from it"
            ));
        }
        warnings.extend(contradictions::of_scope(&self.scope, &self.crawl));
        warnings.extend(contradictions::of_denied(&self.crawl));
        warnings.extend(contradictions::of_bootstrap(&self.swarm));
        warnings.extend(contradictions::of_limits(&self.fetch, &self.log, &self.allowance));
        if let Some(any) = self.swarm.listen.iter().find(|address| address.ends_with("/tcp/0") || address.contains("/udp/0/")) {
            warnings
                .push(format!("swarm.listen = \"{any}\" takes another port at each start: members and routers cannot know it beforehand"));
        }
        if let Some(low) = self.swarm.low_port().filter(|_| self.swarm.advertise.is_empty()) {
            warnings.push(format!(
                "swarm.listen = \"{low}\": below {MIN_PORT} are ports of other services, at which no member tries whether it reaches this access \
                 point; choose a higher port, or set swarm.advertise"
            ));
        }
        warnings
    }

    /// Whether names come only from name servers in ranges that were opened for it, or the scope is a list of addresses in them:
    /// probably a laboratory, where no site owner has to reach the operator. Without a contact no other server is asked, see
    /// [`policy`](crate::node::setup::policy): seeds and links may lead anywhere.
    fn stays_private(&self) -> bool {
        let opened = |address: IpAddr| self.crawl.laboratories().any(|range| range.contains(address));
        let own_names = !self.dns.servers.is_empty() && self.dns.servers.iter().all(|server| opened(server.ip()));
        let scope = &self.scope;
        let only_hosts = scope.tlds.is_empty() && scope.asns.is_empty() && scope.ranges.is_empty();
        let only_addresses = !scope.open && only_hosts && !scope.hosts.is_empty();
        own_names || (only_addresses && scope.hosts.iter().all(|host| host.address().is_some_and(opened)))
    }
}

/// What the parser means by some of its messages.
fn in_plain_words(message: &str) -> &str {
    let is = |part: &str| message.contains(part);
    match message {
        _ if is("invalid boolean") || is("must be quoted") => "a text stands in quotes; only numbers, true, false and lists have none",
        _ if is("unclosed table") => "the name of a section stands in square brackets, like [crawl]",
        _ => message,
    }
}

/// Whether the domain is one that RFC 2606 sets aside for examples.
fn is_placeholder(contact: &str) -> bool {
    let place = contact.split_once("://").map_or(contact, |(_, rest)| rest.split('/').next().unwrap_or_default());
    let domain = place.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
    let reserved = ["example.org", "example.com", "example.net"];
    reserved.iter().any(|example| domain == *example || domain.ends_with(&format!(".{example}"))) || domain.ends_with(".example")
}

/// Whether nothing in it could end a header, or the comment that it stands in.
fn is_plain(text: &str) -> bool {
    text.len() <= 200 && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'(' | b')' | b'\\' | b'"'))
}

/// Whether it is the address of a web page.
fn is_web_page(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, rest)| matches!(scheme, "http" | "https") && rest.contains('.'))
}

/// The address of a web page, for the same header.
fn page(value: &DeValue<'_>) -> Parsed<Option<String>> {
    let wanted = "write the address of the page about your crawler in quotes, like \"https://DOMAIN/crawler\"";
    let text = value.as_str().ok_or(wanted)?;
    match text {
        "" => Ok(None),
        _ if is_placeholder(text) => Err("this is an address from the documentation; write that of your own page".to_owned()),
        _ if is_plain(text) && is_web_page(text) => Ok(Some(text.to_owned())),
        _ => Err(wanted.to_owned()),
    }
}

/// An email address or a web page.
fn contact(value: &DeValue<'_>) -> Parsed<Option<String>> {
    let wanted = "write your email address or web page in quotes, like \"NAME@DOMAIN\" or \"https://DOMAIN/crawler\"";
    let text = value.as_str().ok_or(wanted)?;
    let writes_to =
        |text: &str| text.trim_start_matches("mailto:").split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty());
    let reaches = |text: &str| if text.contains("://") { is_web_page(text) } else { writes_to(text) };
    match text {
        "" => Ok(None),
        _ if is_placeholder(text) => {
            Err("this is an address from the documentation, at which no site owner can reach you; write your own".to_owned())
        }
        _ if is_plain(text) && reaches(text) => Ok(Some(text.to_owned())),
        _ => Err(wanted.to_owned()),
    }
}
