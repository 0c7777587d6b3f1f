//! `[crawl]`: how the daemon visits servers, and which it never visits.

use super::{
    reader::Section,
    values::{self, Parsed},
};
use ipnetwork::IpNetwork;
use nearcrawl_core::crawl::site::yields::Price;
use nearcrawl_model::{address::AddressPolicy, url::Host};
use std::{net::IpAddr, time::Duration};
use toml::de::DeValue;

/// A public IPv6 range of at least this length lies in the network of one customer.
const MIN_SHARED_V6: u8 = 48;

/// `[crawl]`: how servers are visited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrawlConfig {
    /// The deepest level of a site tree that is fetched; the starting page is level 0 (Low Load Server Crawler).
    pub depth: u8,
    /// What else may end the tree of a site.
    pub rule: CrawlRule,
    /// With `yield`: a page is asked for if it can be expected to name so many external hosts that its site has not named yet.
    pub yield_price: Price,
    /// How long after a run of a site began the next one begins, once it is complete.
    pub revisit: Duration,
    /// How many pages of a site are fetched in a run before it pauses; none = no limit.
    pub max_pages_per_run: Option<u64>,
    /// The own address that requests, probes and DNS questions come from; none = what the system chooses.
    pub source_address: Option<IpAddr>,
    /// How many servers are visited at once.
    pub max_parallel: u32,
    /// How many servers of one /24 (/48 for IPv6) are visited at once.
    pub max_parallel_per_subnet: u32,
    /// The least pause between two requests to one server.
    pub min_delay: Duration,
    /// The pause is at least this many times as long as the last answer took.
    pub delay_factor: u32,
    /// The product token: what robots.txt calls this crawler, and the first word of the User-Agent header.
    pub product_token: String,
    /// The ports that may be contacted.
    pub ports: Vec<u16>,
    /// Private or special ranges that may be contacted nevertheless; empty outside laboratories.
    pub allow_ranges: Vec<IpNetwork>,
    /// Ranges that are never contacted; wins over `allow_ranges`.
    pub deny_ranges: Vec<IpNetwork>,
    /// Hosts that are never contacted, with their subdomains.
    pub deny_hosts: Vec<Host>,
    /// Hosts under these top-level domains are never contacted.
    pub deny_tlds: Vec<String>,
    /// Servers in these autonomous systems, by the hierarchy, are never contacted.
    pub deny_asns: Vec<u32>,
    /// Whether accessibility failures are looked for in each page; the time that takes is part of the access.
    pub evaluation: bool,
    /// How many URLs may wait in the frontier; what is found beyond it is queued when there is room.
    pub max_waiting_urls: u64,
    /// How many new external hosts in scope the pages of one site may lead to in a day; further ones wait. None = no limit.
    pub max_new_hosts_per_site: Option<u64>,
    /// How many new hosts of one registrable domain links may lead to in a day; further ones wait. None = no limit.
    pub max_new_hosts_per_domain: Option<u64>,
}

/// How far a site is crawled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CrawlRule {
    /// Down to the depth, the same for all (Low Load Server Crawler).
    Depth,
    /// At most so far; a branch of a site that brings too little is left out before.
    #[default]
    Yield,
}

const RULES: &[(&str, CrawlRule)] = &[("depth", CrawlRule::Depth), ("yield", CrawlRule::Yield)];

/// The default of `yield_price`, new external hosts for a request: in the laboratory's web 99 % of the hosts for half the requests
/// (docs/RESULTS.md).
const YIELD_PRICE: f64 = 0.004;

impl Default for CrawlConfig {
    fn default() -> Self {
        CrawlConfig {
            depth: 8,
            rule: CrawlRule::default(),
            yield_price: Price::of(YIELD_PRICE).unwrap_or_default(),
            revisit: Duration::from_secs(7 * 86_400),
            max_pages_per_run: Some(1000),
            source_address: None,
            max_parallel: 64,
            max_parallel_per_subnet: 4,
            min_delay: Duration::from_secs(2),
            delay_factor: 10,
            product_token: "nearcrawl".to_owned(),
            ports: vec![80, 443, 8080, 8443],
            allow_ranges: Vec::new(),
            deny_ranges: Vec::new(),
            deny_hosts: Vec::new(),
            deny_tlds: Vec::new(),
            deny_asns: Vec::new(),
            evaluation: false,
            max_waiting_urls: 1_000_000,
            max_new_hosts_per_site: Some(500),
            max_new_hosts_per_domain: Some(50),
        }
    }
}

/// One year: longer pauses are mistakes.
const YEAR: Duration = Duration::from_secs(365 * 86_400);

impl CrawlConfig {
    /// The ranges of `allow_ranges` that make a laboratory. The IPv6 network that a machine in a data centre shares with others is none: what it
    /// has is public.
    pub fn laboratories(&self) -> impl Iterator<Item = IpNetwork> {
        let is_public = |address: IpAddr| AddressPolicy::default().check_ip(address).is_ok();
        let is_shared = move |range: &IpNetwork| range.is_ipv6() && range.prefix() >= MIN_SHARED_V6 && is_public(range.ip());
        self.allow_ranges.iter().copied().filter(move |range| !is_shared(range))
    }

    pub(super) fn read(mut section: Section<'_, '_>) -> CrawlConfig {
        let default = CrawlConfig::default();
        let max_pages_per_run = section.take("max_pages_per_run", default.max_pages_per_run.unwrap_or(0), values::whole(0..=1_000_000_000));
        let mut new_hosts = |key, default: Option<u64>| {
            let limit = section.take(key, default.unwrap_or(0), values::whole(0..=100_000));
            (limit > 0).then_some(limit)
        };
        let max_new_hosts_per_site = new_hosts("max_new_hosts_per_site", default.max_new_hosts_per_site);
        let max_new_hosts_per_domain = new_hosts("max_new_hosts_per_domain", default.max_new_hosts_per_domain);
        let config = CrawlConfig {
            depth: section.take("depth", default.depth, values::whole(0..=63)),
            rule: section.take("rule", default.rule, values::choice(RULES)),
            yield_price: section.take("yield_price", default.yield_price, price),
            revisit: section.take("revisit", default.revisit, values::duration(Duration::from_secs(1)..=YEAR)),
            max_pages_per_run: (max_pages_per_run > 0).then_some(max_pages_per_run),
            source_address: section.take("source_address", default.source_address, source_address),
            max_parallel: section.take("max_parallel", default.max_parallel, values::whole(1..=10_000)),
            max_parallel_per_subnet: section.take("max_parallel_per_subnet", default.max_parallel_per_subnet, values::whole(1..=10_000)),
            min_delay: section.take("min_delay", default.min_delay, values::duration(Duration::ZERO..=Duration::from_secs(3600))),
            delay_factor: section.take("delay_factor", default.delay_factor, values::whole(0..=1000)),
            product_token: section.take("product_token", default.product_token, product_token),
            ports: section.list("ports", default.ports, web_port),
            allow_ranges: section.list("allow_ranges", default.allow_ranges, narrow_range),
            deny_ranges: section.list("deny_ranges", default.deny_ranges, values::range),
            deny_hosts: section.list("deny_hosts", default.deny_hosts, values::host),
            deny_tlds: section.list("deny_tlds", default.deny_tlds, values::top_level_domain),
            deny_asns: section.list("deny_asns", default.deny_asns, values::as_number),
            evaluation: section.take("evaluation", default.evaluation, values::truth),
            max_waiting_urls: section.take("max_waiting_urls", default.max_waiting_urls, values::whole(1000..=1_000_000_000)),
            max_new_hosts_per_site,
            max_new_hosts_per_domain,
        };
        if config.ports.is_empty() {
            section.contradicts(&["ports"], "without a port nothing can be crawled; name at least one, like [80, 443]".to_owned());
        }
        config
    }
}

/// Hosts for a request.
fn price(value: &DeValue<'_>) -> Parsed<Price> {
    let number = value.as_float().map(|float| float.as_str()).or_else(|| value.as_integer().map(|integer| integer.as_str()));
    let price = number.and_then(|text| text.parse().ok()).and_then(Price::of);
    price.ok_or_else(|| "write new external hosts for a request as a number from 0 to 1000, like 0.004".to_owned())
}

/// An address that a socket can be bound to and be answered at.
fn source_address(value: &DeValue<'_>) -> Parsed<Option<IpAddr>> {
    let address = values::address(value)?;
    if values::is_of_one_machine(address) {
        Ok(Some(address))
    } else {
        Err("no server could answer there; write an address of this machine, or leave the key out".to_owned())
    }
}

/// Ports of other services that the Fetch Standard lets no program ask for pages, of those that are common.
const OTHER_SERVICES: &[u16] = &[
    1, 7, 9, 13, 15, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 79, 110, 111, 113, 119, 123, 135, 137, 139, 143, 161, 179, 389, 465, 512,
    513, 514, 515, 540, 548, 554, 587, 601, 636, 989, 990, 993, 995, 1723, 2049, 3659, 5060, 5061, 6000, 6667, 6697,
];

/// A port at which there may be a web server.
fn web_port(value: &DeValue<'_>) -> Parsed<u16> {
    let port = values::whole(1..=u16::MAX)(value)?;
    if OTHER_SERVICES.contains(&port) {
        return Err(
            "this is the port of another service, whose operators take a request for a page for an attack; browsers refuse it, too"
                .to_owned(),
        );
    }
    Ok(port)
}

/// What others' crawlers are called: robots.txt files mean those by it, and their operators answer for it.
const OTHER_CRAWLERS: &[&str] = &[
    "googlebot",
    "google-extended",
    "bingbot",
    "slurp",
    "duckduckbot",
    "baiduspider",
    "yandexbot",
    "yandex",
    "applebot",
    "amazonbot",
    "gptbot",
    "ccbot",
    "claudebot",
    "bytespider",
    "petalbot",
    "ahrefsbot",
    "semrushbot",
    "dotbot",
    "perplexitybot",
    "facebookexternalhit",
    "seznambot",
    "ia_archiver",
    "twitterbot",
    "heritrix",
];

/// What RFC 9309 §2.2.1 lets a crawler be called.
fn product_token(value: &DeValue<'_>) -> Parsed<String> {
    let wanted = "write the crawler's name in quotes: 1 to 64 letters, `-` and `_` only; version and contact are added to it";
    let text = value.as_str().filter(|text| (1..=64).contains(&text.len())).ok_or(wanted)?;
    let fits = text.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_'));
    if OTHER_CRAWLERS.iter().any(|other| other.eq_ignore_ascii_case(text)) {
        return Err("this is the name of another crawler, for which its own operators answer; write one of your own".to_owned());
    }
    if fits { Ok(text.to_owned()) } else { Err(wanted.to_owned()) }
}

/// A range small enough to be meant: one that covers half the address space would switch the guard off.
fn narrow_range(value: &DeValue<'_>) -> Parsed<IpNetwork> {
    let range = values::range(value)?;
    let least = if range.is_ipv4() { 8 } else { 7 };
    if range.prefix() >= least {
        Ok(range)
    } else {
        Err("this would open nearly every special address; name the ranges one by one, like \"127.0.0.0/8\"".to_owned())
    }
}
