//! Starting points of a crawl, and why nothing was fetched of some of them.

use crate::{
    cli::{
        error::{CommandError, Exit},
        seed,
    },
    node::{
        config::Config,
        standalone::{self, Findings, Instead},
    },
};
use nearcrawl_model::{
    fetch::{FetchError, ResolveError},
    journal::{SkipReason, VisitOutcome},
    record::{ServerRecord, ServerStatus},
    url::{Host, PageUrl},
    view::{RefusedSeed, counted},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// How many lines that cannot be used, and how many starting URLs without a page, are listed.
const MAX_SHOWN: usize = 20;

/// What to begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The URL.
    pub(super) url: PageUrl,
    /// A host was given: it is asked over http if it does not answer over https.
    pub(super) plain: Option<PageUrl>,
}

/// Reads a URL, or the name or address of a host, which stands for its front page.
pub(super) fn read(text: &str) -> Result<Seed, String> {
    if text.contains("://") {
        return PageUrl::parse(text).map(|url| Seed { url, plain: None }).map_err(|why| why.to_string());
    }
    let front = |scheme: &str| PageUrl::parse(&format!("{scheme}://{text}/"));
    let is_host = |url: &PageUrl| {
        let names = url.host_str().contains(['.', ':']) || url.host_str() == "localhost";
        names && url.path() == "/" && url.query().is_none() && !text.contains(['@', '/', '#', '?'])
    };
    match (front("https").ok().filter(is_host), front("http").ok()) {
        (Some(url), plain) => Ok(Seed { url, plain }),
        _ => Err("neither a URL nor a host".to_owned()),
    }
}

/// What stands in a file of them: one a line, behind `#` comments. Of lines that cannot be read: where, and why.
pub(super) fn read_file(path: &Path) -> Result<(Vec<Seed>, Vec<String>), CommandError> {
    let text = seed::read(path)?;
    let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    let (mut seeds, mut wrong) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let ends = line.find(" #").into_iter().chain(line.find("\t#"));
        let line = line[..ends.min().unwrap_or(line.len())].trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match read(line) {
            Ok(seed) => seeds.push(seed),
            Err(why) => {
                let shown: String = line.chars().take(80).map(|c| if c.is_control() { '·' } else { c }).collect();
                wrong.push(format!("{name}, line {number}: {shown}: {why}"));
            }
        }
    }
    if seeds.is_empty() && wrong.is_empty() {
        return Err(CommandError::new(Exit::Data, format!("{name} has no URL"))
            .hint("write one URL or host a line, like https://example.org/ or example.org"));
    }
    Ok((seeds, wrong))
}

/// The first of these lines, and how many more there are.
pub(super) fn shortened(lines: &[String]) -> String {
    let mut text = lines.iter().take(MAX_SHOWN).map(String::as_str).collect::<Vec<_>>().join("\n  ");
    if lines.len() > MAX_SHOWN {
        text += &format!("\n  and {} more", lines.len() - MAX_SHOWN);
    }
    text
}

/// What came of one starting URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It was asked for; if it leads elsewhere, where to.
    Visited(VisitOutcome, Option<String>),
    /// It was set aside.
    Skipped(SkipReason),
}

/// What became of the starting URLs.
#[derive(Debug, Default)]
pub(super) struct Fates {
    seeds: Vec<Seed>,
    /// Why some are not asked for.
    refused: BTreeMap<String, String>,
    by_url: BTreeMap<String, Option<Fate>>,
    hosts: BTreeMap<Host, Option<ResolveError>>,
    /// Hosts that are asked over http if nothing came over https: what is asked for then.
    plain: BTreeMap<Host, Instead>,
}

impl Fates {
    /// Of these; those that may be begun with, each once.
    pub(super) fn of(seeds: &[Seed], config: &Config) -> (Fates, Vec<PageUrl>) {
        let mut fates = Fates::default();
        let mut urls = Vec::new();
        for seed in seeds {
            if fates.by_url.contains_key(seed.url.as_str()) || fates.refused.contains_key(seed.url.as_str()) {
                continue;
            }
            fates.seeds.push(seed.clone());
            if let Some(why) = standalone::seed_refusal(config, &seed.url) {
                fates.refused.insert(seed.url.to_string(), why);
                continue;
            }
            fates.by_url.insert(seed.url.to_string(), None);
            fates.hosts.insert(seed.url.host(), None);
            if let Some(plain) = seed.plain.as_ref().filter(|plain| standalone::seed_refusal(config, plain).is_none()) {
                fates.by_url.insert(plain.to_string(), None);
                fates.plain.insert(plain.host(), Instead { of: seed.url.clone(), url: plain.clone() });
            }
            urls.push(seed.url.clone());
        }
        (fates, urls)
    }

    /// A host has no address.
    pub(super) fn unresolved(&mut self, host: &Host, why: ResolveError) {
        if let Some(known) = self.hosts.get_mut(host) {
            *known = Some(why);
        }
    }

    /// Whether somebody wants to know what comes of this URL.
    pub(super) fn is_one(&self, url: &str) -> bool {
        self.by_url.contains_key(url)
    }

    pub(super) fn tell(&mut self, url: &str, fate: Fate) {
        if let Some(known) = self.by_url.get_mut(url) {
            *known = Some(fate);
        }
    }

    /// What to ask for next at a host that is done: its front page over http, if nothing came over https.
    pub(super) fn further(&mut self, record: &ServerRecord) -> Option<Instead> {
        let plain = self.plain.remove(&record.host)?;
        let is_silent = record.pages == 0 && matches!(record.status, ServerStatus::Down | ServerStatus::RobotsUnavailable);
        is_silent.then_some(plain)
    }

    /// The starting URLs of whose sites there is no page, and why.
    pub(super) fn without_page(&self, found: &Findings) -> Vec<RefusedSeed> {
        let records: BTreeMap<&Host, &ServerRecord> = found.servers.iter().map(|record| (&record.host, record)).collect();
        let with_pages = found.servers.iter().filter(|record| record.pages > 0);
        let trees: BTreeSet<&Host> = with_pages.flat_map(|record| [&record.host, &record.tree]).collect();
        let is_without = |seed: &&Seed| {
            let host = seed.url.host();
            self.refused.contains_key(seed.url.as_str()) || !(trees.contains(&host) || trees.contains(&host.without_www()))
        };
        let told = |seed: &Seed| RefusedSeed {
            url: seed.url.to_string(),
            reason_text: self.reason(seed, records.get(&seed.url.host()).copied(), found.exact),
        };
        self.seeds.iter().filter(is_without).map(told).collect()
    }

    fn reason(&self, seed: &Seed, record: Option<&ServerRecord>, exact: bool) -> String {
        if let Some(why) = self.refused.get(seed.url.as_str()) {
            return format!("address not allowed: {why}");
        }
        let fate = |url: &PageUrl| self.by_url.get(url.as_str()).and_then(Option::as_ref);
        let (fate, host) = (seed.plain.as_ref().and_then(fate).or_else(|| fate(&seed.url)), seed.url.host());
        if let Some(Some(why)) = self.hosts.get(&host).filter(|_| record.is_none()) {
            return match why {
                ResolveError::NoSuchName => "no such host".to_owned(),
                ResolveError::ForbiddenAddress => {
                    format!(
                        "address not allowed: {why}, or in the network of this machine (crawl.allow_ranges or --allow-range opens a range)"
                    )
                }
                why => format!("no address: {why}"),
            };
        }
        if let Some(Fate::Visited(outcome, Some(to))) = fate
            && let Some(status) = outcome.status().filter(|_| outcome.is_redirect())
        {
            return format!("it redirects to {to} (status {status}), of which there is no page; --follow host:NAME follows to other hosts");
        }
        match record {
            Some(record) if record.requests > 0 || record.refused_by_robots > 0 => of_record(record),
            _ if exact => "not asked for".to_owned(),
            _ => "not asked for before the crawl was ended".to_owned(),
        }
    }
}

/// Why there is no page of a server that was asked.
fn of_record(record: &ServerRecord) -> String {
    let statuses = || {
        let statuses: Vec<_> = record.by_status.keys().map(u16::to_string).collect();
        if statuses.is_empty() { String::new() } else { format!(" (status {})", statuses.join(", ")) }
    };
    match (record.status, record.main_failure()) {
        (ServerStatus::Robots, _) if record.refused_by_crawl_delay > 0 => "robots.txt demands a longer pause than is waited".to_owned(),
        (ServerStatus::Robots, _) => "robots.txt forbids it".to_owned(),
        (ServerStatus::Refused, Some(failure @ FetchError::Challenged)) => format!("refused: {failure}"),
        (ServerStatus::Refused, _) => format!("refused by the server{}", statuses()),
        (ServerStatus::Down | ServerStatus::RobotsUnavailable, Some(failure)) => of_failure(failure),
        (ServerStatus::RobotsUnavailable, None) => format!("robots.txt could not be had{}, which counts as a refusal", statuses()),
        (ServerStatus::Waiting, _) => "not answered before the crawl was ended".to_owned(),
        (_, Some(failure)) if record.by_status.is_empty() => of_failure(failure),
        _ => format!("no HTML page{}", statuses()),
    }
}

fn of_failure(failure: FetchError) -> String {
    let what = match failure {
        FetchError::ForbiddenAddress => "address not allowed",
        FetchError::BadCertificate
        | FetchError::TlsFailed
        | FetchError::TlsTimeout
        | FetchError::CertificateExpired
        | FetchError::CertificateForOther
        | FetchError::UnknownIssuer
        | FetchError::TlsProtocol => "TLS",
        FetchError::ConnectionRefused | FetchError::Unreachable | FetchError::ConnectTimeout => "no connection",
        _ => "no usable answer",
    };
    format!("{what}: {failure}")
}

/// The closing lines: of how many starting URLs there is no page, and why.
pub(super) fn told(without: &[RefusedSeed]) -> String {
    let lines: Vec<_> = without.iter().map(|seed| format!("{}: {}", seed.url, seed.reason_text)).collect();
    format!("no page of {}:\n  {}", counted(lines.len() as u64, "starting URL"), shortened(&lines))
}
