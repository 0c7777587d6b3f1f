//! Expected record of each server after a run.

use super::{
    visit::Visit,
    visits::{InRun, authority, in_scope, is_within, origins, unreachable},
};
use crate::{
    census::world::{
        Failures, OUTSIDE, World,
        host::{Content, Host, Nature, Robots},
        title,
    },
    oracle::{self, Kind},
};
use nearcrawl_model::url::PageUrl;
use std::collections::{BTreeMap, BTreeSet};

/// What a level cost and brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Level {
    pub(crate) pages: u64,
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    pub(crate) external_hosts: u64,
}

/// A page as it was in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageThen {
    pub(crate) body: Vec<u8>,
    pub(crate) failures: Failures,
}

/// One server after one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Expected {
    pub(crate) host: String,
    pub(crate) tree: String,
    /// Its registrable domain.
    pub(crate) domain: String,
    pub(crate) tld: String,
    pub(crate) address: String,
    pub(crate) country: String,
    pub(crate) registry: String,
    pub(crate) organisation: String,
    /// The number of its own run: those that are named later begin later.
    pub(crate) run: u32,
    pub(crate) status: &'static str,
    /// What went wrong, if it is down.
    pub(crate) down: Option<&'static str>,
    pub(crate) state: &'static str,
    pub(crate) software: Option<&'static str>,
    pub(crate) known: u64,
    pub(crate) fetched: u64,
    pub(crate) unanswered: u64,
    pub(crate) cut_by_depth: u64,
    pub(crate) cut_by_script: u64,
    pub(crate) refused_by_robots: u64,
    pub(crate) refused_by_robots_unavailable: u64,
    pub(crate) requests: u64,
    pub(crate) failed: u64,
    pub(crate) by_failure: BTreeMap<&'static str, u64>,
    pub(crate) by_status: BTreeMap<u16, u64>,
    pub(crate) bytes: u64,
    pub(crate) page_bytes: u64,
    pub(crate) no_index: u64,
    pub(crate) no_follow: u64,
    pub(crate) deepest: u8,
    pub(crate) external_hosts: BTreeSet<String>,
    pub(crate) external_urls: BTreeSet<String>,
    pub(crate) external_domains: BTreeSet<String>,
    pub(crate) held_hosts: u64,
    pub(crate) held_urls: u64,
    pub(crate) levels: Vec<Level>,
    pub(crate) evaluates: bool,
    pub(crate) pages: BTreeMap<String, PageThen>,
    pub(crate) visits: Vec<Visit>,
    /// Of how many pages of the run before it is known what became of them: new, changed, unchanged, and among these told so.
    pub(crate) compared: Option<[u64; 5]>,
    pub(crate) crawl_delay_ms: Option<u64>,
    /// The facts, by their names in JSON.
    pub(crate) facts: Option<serde_json::Map<String, serde_json::Value>>,
}

/// All records after a run.
pub(super) fn records(
    world: &World,
    run: u32,
    outcome: &oracle::Expected,
    before: Option<&oracle::Expected>,
    previous: Option<&BTreeMap<String, Expected>>,
) -> BTreeMap<String, Expected> {
    let mut servers = BTreeMap::new();
    for name in outcome.trees.keys() {
        let Some(host) = world.host(name.as_str()) else { continue };
        let previous = previous.and_then(|servers| servers.get(&host.name));
        let web = InRun { world, run };
        let mut expected = place(world, host, run);
        expected.count_urls(&web, host, outcome);
        expected.judge(&web, host, outcome);
        expected.levels = levels(&web, host, outcome, &expected);
        expected.compare(previous.filter(|_| before.is_some()));
        expected.facts = Some(facts(&web, host, outcome, &expected));
        expected.remember(previous);
        expected.meet(&web, host, outcome, previous);
        servers.insert(host.name.clone(), expected);
    }
    servers
}

fn place(world: &World, host: &Host, run: u32) -> Expected {
    let land = &world.places.lands[host.land];
    Expected {
        host: host.name.clone(),
        tree: host.tree.clone(),
        domain: host.domain.clone(),
        tld: host.name.rsplit('.').next().unwrap_or_default().to_owned(),
        address: host.address.to_string(),
        country: land.country.to_owned(),
        registry: land.registry.to_owned(),
        organisation: land.organisation.clone(),
        run: run + 1 - host.born,
        evaluates: world.plan.evaluates(run),
        ..Expected::default()
    }
}

/// The URLs of a host that were asked for, with their levels and kinds.
pub(super) fn visits<'a>(host: &'a Host, outcome: &'a oracle::Expected) -> impl Iterator<Item = (&'a PageUrl, u8, Kind)> {
    let own = outcome.fetched.iter().filter(|(url, _)| url.host().as_str() == host.name);
    own.map(|(url, visit)| (url, visit.level, visit.kind))
}

/// The path by which a page is known, apart for both doors.
pub(super) fn key(url: &PageUrl) -> String {
    format!("{}{}", authority(url), url.path_and_query())
}

impl Expected {
    /// What became of its URLs, and what its pages name.
    fn count_urls(&mut self, web: &InRun<'_>, host: &Host, outcome: &oracle::Expected) {
        let own = |urls: &BTreeSet<PageUrl>| urls.iter().filter(|url| url.host().as_str() == host.name).count() as u64;
        self.refused_by_robots = own(&outcome.refused_by_robots);
        self.cut_by_depth = own(&outcome.cut_by_depth);
        self.cut_by_script = own(&outcome.cut_by_script);
        for (url, level, kind) in visits(host, outcome) {
            let page = web.page(url).and_then(|(_, page)| page);
            match kind {
                Kind::Broken => {
                    self.unanswered += 1;
                    self.failed += 1;
                    *self.by_failure.entry(failure(page.map(|page| &page.content))).or_default() += 1;
                }
                _ => self.fetched += 1,
            }
            match (kind, page) {
                (Kind::Page, Some(page)) => {
                    let (body, failures) = web.world.html(host, page, web.run);
                    self.pages.insert(key(url), PageThen { body, failures });
                    self.no_index += u64::from(page.no_index);
                    self.no_follow += u64::from(page.no_follow);
                    self.deepest = self.deepest.max(level);
                    let held = web.held_back(host, page);
                    self.held_hosts += held.len() as u64;
                    self.held_urls += held.values().sum::<u64>();
                    web.all_links(host, page).iter().for_each(|link| self.name(host, link));
                }
                (Kind::Redirect, Some(page)) => {
                    if let Content::Moved(target) = &page.content {
                        web.world.moved_to(host, target).iter().for_each(|link| self.name(host, link));
                    }
                }
                _ => {}
            }
        }
        self.known = self.fetched + self.unanswered + self.refused_by_robots + self.cut_by_depth + self.cut_by_script;
    }

    /// It leads there.
    fn name(&mut self, host: &Host, link: &PageUrl) {
        let name = link.host();
        if is_within(host, name.as_str()) {
            return;
        }
        self.external_urls.insert(link.to_string());
        self.external_domains.insert(domain(name.as_str()));
        self.external_hosts.insert(name.to_string());
    }

    /// What its answers make of it.
    fn judge(&mut self, web: &InRun<'_>, host: &Host, outcome: &oracle::Expected) {
        let down = unreachable(host, web.run);
        self.requests = self.fetched + self.unanswered + origins(host, web.run, outcome).len() as u64;
        if let Some(why) = down {
            self.failed += 1;
            *self.by_failure.entry(why).or_default() += 1;
        }
        if down.is_some() || host.robots == Robots::Fails {
            self.refused_by_robots_unavailable = self.refused_by_robots;
        }
        (self.status, self.down) = match host.nature {
            _ if down.is_some() => ("down", down),
            _ if !self.pages.is_empty() => ("up", None),
            Nature::Silent => ("down", Some("head-timeout")),
            Nature::BarsAll => ("robots", None),
            Nature::RobotsFail => ("robots-unavailable", None),
            Nature::Forbids if !visits(host, outcome).any(|(.., kind)| kind == Kind::Redirect) => ("refused", None),
            _ => ("no-pages", None),
        };
        self.state = match (self.held_hosts, self.cut_by_depth) {
            (1.., _) => "held-back",
            (0, 1..) => "cut-by-depth",
            (0, 0) => "complete",
        };
        let reached = down.is_none();
        self.crawl_delay_ms = (reached && host.robots == Robots::BarsSomeAndWishes).then_some(500);
    }

    /// What changed since the run before.
    fn compare(&mut self, previous: Option<&Expected>) {
        let Some(previous) = previous else { return };
        let same = |(key, page): (&String, &PageThen)| previous.pages.get(key).map(|then| then.body == page.body);
        let of = |wanted: Option<bool>| self.pages.iter().filter(|page| same(*page) == wanted).count() as u64;
        let (new, changed, unchanged) = (of(None), of(Some(false)), of(Some(true)));
        self.compared = Some([previous.pages.len() as u64, new, changed, unchanged, previous.pages.len() as u64 - changed - unchanged]);
    }

    /// What the front page said holds until it is downloaded again.
    fn remember(&mut self, previous: Option<&Expected>) {
        let (Some(facts), Some(then)) = (&mut self.facts, previous.and_then(|previous| previous.facts.as_ref())) else { return };
        for name in ["language", "script", "charset", "generator", "title", "tdm_reserved"].iter().filter(|_| self.pages.is_empty()) {
            if facts[*name].is_null() {
                facts[*name] = then[*name].clone();
            }
        }
    }

    /// Whether the server says that this page is the same as in the run before.
    pub(super) fn is_not_modified(&self, host: &Host, (url, kind): (&PageUrl, Kind), body: &[u8], previous: Option<&Expected>) -> bool {
        let same = |previous: &Expected| {
            let is_evaluated = !self.evaluates || previous.evaluates;
            is_evaluated && previous.pages.get(&key(url)).is_some_and(|then| then.body == body)
        };
        kind == Kind::Page && host.etags && previous.is_some_and(same)
    }

    /// What was moved: pages of which the server says that they are the same are not, if they need not be evaluated. The software is the one
    /// that its answers name; where neither they nor a page that was moved say anything of it, it is that of the run before.
    fn meet(&mut self, web: &InRun<'_>, host: &Host, outcome: &oracle::Expected, previous: Option<&Expected>) {
        let (mut named, mut is_moved) = (None, false);
        for (url, _, kind) in visits(host, outcome) {
            let reply = web.world.reply(&host.name, url.is_secure(), url.path_and_query(), web.run, None);
            let not_modified = self.is_not_modified(host, (url, kind), &reply.body, previous);
            if kind != Kind::Broken {
                let status = if not_modified { 304 } else { reply.status };
                named = named.or(host.software_named(web.run, status));
                is_moved |= kind == Kind::Page && !not_modified;
                *self.by_status.entry(status).or_default() += 1;
                self.page_bytes += if kind == Kind::Page { reply.body.len() as u64 } else { 0 };
                self.bytes += if not_modified { 0 } else { reply.body.len() as u64 };
            }
        }
        self.software = named.or_else(|| previous.filter(|_| !is_moved)?.software);
    }
}

/// What an answer that cannot be used is called.
pub(super) fn failure(content: Option<&Content>) -> &'static str {
    match content {
        Some(Content::BadEncoding) => "bad-encoding",
        Some(Content::BadRedirect) => "bad-redirect",
        _ => "head-timeout",
    }
}

/// The registrable domain of a name.
fn domain(name: &str) -> String {
    let outside = OUTSIDE.iter().find(|(_, host, _)| *host == name).map(|(.., domain)| (*domain).to_owned());
    let labels: Vec<&str> = name.rsplitn(3, '.').take(2).collect();
    assert!(outside.is_some() || in_scope(name));
    outside.unwrap_or_else(|| labels.into_iter().rev().collect::<Vec<_>>().join("."))
}

/// What each level cost and brought.
fn levels(web: &InRun<'_>, host: &Host, outcome: &oracle::Expected, expected: &Expected) -> Vec<Level> {
    let mut all: Vec<(u8, &PageUrl, Kind)> = visits(host, outcome).map(|(url, level, kind)| (level, url, kind)).collect();
    all.sort_by_key(|(level, ..)| *level);
    let deepest = all.last().map_or(0, |(level, ..)| usize::from(*level));
    let mut levels = vec![Level::default(); deepest + 1];
    levels[0].requests = origins(host, web.run, outcome).len() as u64;
    let mut named = Expected::default();
    for (level, url, kind) in all {
        let (known, page) = (named.external_hosts.len(), web.page(url).and_then(|(_, page)| page));
        match (kind, page) {
            (Kind::Page, Some(page)) => web.all_links(host, page).iter().for_each(|link| named.name(host, link)),
            (Kind::Redirect, Some(page)) => {
                if let Content::Moved(target) = &page.content {
                    web.world.moved_to(host, target).iter().for_each(|link| named.name(host, link));
                }
            }
            _ => {}
        }
        let reply = web.world.reply(&host.name, url.is_secure(), url.path_and_query(), web.run, None);
        let at = &mut levels[usize::from(level)];
        at.pages += u64::from(kind == Kind::Page);
        at.requests += 1;
        at.bytes += if kind == Kind::Broken { 0 } else { reply.body.len() as u64 };
        at.external_hosts += (named.external_hosts.len() - known) as u64;
    }
    assert_eq!(named.external_hosts, expected.external_hosts);
    levels
}

/// What the answers say of the server besides pages, by names as in JSON. What is measured is not among them, nor the certificate.
fn facts(web: &InRun<'_>, host: &Host, outcome: &oracle::Expected, expected: &Expected) -> serde_json::Map<String, serde_json::Value> {
    use serde_json::{Value, json};
    let reached = unreachable(host, web.run).is_none();
    let secure = reached && origins(host, web.run, outcome).iter().any(|origin| origin.ends_with(":8443"));
    let voice = host.voice(web.run);
    let front = (!expected.pages.is_empty()).then(|| host.pages.first()).flatten();
    let robots = match host.robots {
        _ if !reached => "unavailable",
        Robots::Fails => "unavailable",
        Robots::Absent => "absent",
        Robots::AllowsAll => "allows-all",
        Robots::BarsSome | Robots::BarsSomeAndWishes => "bars-some",
        Robots::BarsAll => "bars-all",
    };
    let offers = host.alt_svc.filter(|_| secure).map_or(&[][..], |(_, offers)| offers);
    let tls = host.door.tls().filter(|_| secure).map(|tls| if tls == crate::census::world::host::Tls::V12 { "1.2" } else { "1.3" });
    let wishes = reached && host.robots == Robots::BarsSomeAndWishes;
    let meta = front.and(host.tdm_meta);
    let Value::Object(facts) = json!({
        "http_version": reached.then_some(if host.http10 { "1.0" } else { "1.1" }),
        "alt_svc": offers,
        "tls_version": tls,
        "hsts_ms": host.hsts.filter(|_| secure).map(|seconds| seconds * 1_000),
        "redirects_to_https": secure && host.home().starts_with("http:"),
        "guard": (reached && host.guarded).then_some("cloudflare"),
        "language": front.and(voice.tag).map(|(tag, _)| tag),
        "script": front.and(voice.script),
        "charset": front.map(|_| if host.latin1 { "windows-1252" } else { "UTF-8" }),
        "generator": front.and(host.generator),
        "title": front.filter(|page| page.titled).map(|page| title(host, page)),
        "robots": robots,
        "content_usage": host.content_usage.filter(|_| reached),
        "robots_content_usage": wishes.then_some("search=y"),
        "tdm_reserved": host.tdm_header.filter(|_| reached).or(meta),
    }) else {
        return serde_json::Map::new();
    };
    facts
}
