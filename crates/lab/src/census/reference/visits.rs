//! The made-up web of one run as the oracle sees it, and what its servers are asked.

use crate::{
    census::world::{
        TLDS, World,
        host::{Content, Door, Host, Nature, Page, Robots},
    },
    oracle,
    web::{Answer, Web},
};
use nearcrawl_model::url::{self, PageUrl};
use std::collections::{BTreeMap, BTreeSet};

/// A URL as servers see it: `host` or `host:8443`, and the path.
pub(crate) type Asked = (String, String);

/// How often robots.txt is asked for that answers 500.
const ROBOTS_TRIES: u64 = 3;

/// The web in one run.
#[derive(Clone, Copy)]
pub(super) struct InRun<'a> {
    pub(super) world: &'a World,
    pub(super) run: u32,
}

/// Why nothing can be asked, as the status says it.
pub(super) fn unreachable(host: &Host, run: u32) -> Option<&'static str> {
    match host.nature {
        _ if !host.listens.has(run) => Some("connection-refused"),
        Nature::Expired => Some("certificate-expired"),
        Nature::ForOther => Some("certificate-for-other"),
        Nature::Stranger => Some("unknown-issuer"),
        _ => None,
    }
}

/// Whether a redirect from http alone leads to this URL, and no link.
pub(super) fn is_behind_door(world: &World, url: &PageUrl) -> bool {
    let host = world.host(url.host().as_str());
    url.is_secure() && url.path_and_query() == "/" && host.is_some_and(|host| matches!(host.door, Door::Redirects(_)))
}

/// Whether a name is in scope.
pub(super) fn in_scope(host: &str) -> bool {
    TLDS.contains(&host.rsplit('.').next().unwrap_or_default())
}

impl InRun<'_> {
    /// The host and the page of a URL; no page if another door of it, or nothing, is there.
    pub(super) fn page(&self, url: &PageUrl) -> Option<(&Host, Option<&Page>)> {
        let host = self.world.host(url.host().as_str())?;
        let is_door = matches!(host.door, Door::Redirects(_)) && !url.is_secure();
        Some((host, host.page(url.path_and_query(), self.run).filter(|_| !is_door && host.nature != Nature::Forbids)))
    }

    /// Where a page leads, whether limits hold it back or not.
    pub(super) fn all_links(&self, host: &Host, page: &Page) -> Vec<PageUrl> {
        if page.no_follow { Vec::new() } else { self.world.links(host, page, self.run) }
    }

    /// Hosts in scope that this page names beyond the limit for a day, with the number of their URLs.
    pub(super) fn held_back(&self, host: &Host, page: &Page) -> BTreeMap<String, u64> {
        let (mut led_to, mut held) = (BTreeSet::new(), BTreeMap::new());
        for link in self.all_links(host, page) {
            let name = link.host();
            if is_within(host, name.as_str()) || !in_scope(name.as_str()) || led_to.contains(&name) {
                continue;
            }
            if led_to.len() < self.world.plan.new_hosts_per_site() {
                led_to.insert(name);
            } else {
                *held.entry(name.to_string()).or_default() += 1;
            }
        }
        held
    }
}

/// Whether a name belongs to a host's tree.
pub(super) fn is_within(host: &Host, name: &str) -> bool {
    name == host.tree || name.ends_with(&format!(".{}", host.tree))
}

impl Web for InRun<'_> {
    fn answer(&self, url: &PageUrl) -> Answer {
        let Some((host, page)) = self.page(url) else { return Answer::Broken };
        if matches!(host.door, Door::Redirects(_)) && !url.is_secure() && url.path_and_query() == "/" {
            return PageUrl::parse(&format!("{}/", host.origin())).map_or(Answer::Broken, Answer::Redirect);
        }
        let Some(page) = page else { return Answer::Status(if host.nature == Nature::Forbids { 403 } else { 404 }) };
        match &page.content {
            Content::Html => {
                let held = self.held_back(host, page);
                let mut links = self.all_links(host, page);
                links.retain(|link| !held.contains_key(link.host().as_str()));
                Answer::Page(links)
            }
            Content::Pdf => Answer::NotHtml,
            Content::Moved(target) => self.world.moved_to(host, target).map_or(Answer::Broken, Answer::Redirect),
            Content::Status(status) => Answer::Status(*status),
            Content::Silence | Content::BadEncoding | Content::BadRedirect => Answer::Broken,
        }
    }

    fn allowed(&self, url: &PageUrl) -> bool {
        let Some(host) = self.world.host(url.host().as_str()) else { return true };
        let bars = match host.robots {
            Robots::Absent | Robots::AllowsAll => false,
            Robots::BarsSome | Robots::BarsSomeAndWishes => url.path().starts_with("/private/"),
            Robots::BarsAll | Robots::Fails => true,
        };
        !bars && unreachable(host, self.run).is_none()
    }

    fn in_scope(&self, host: &url::Host) -> bool {
        in_scope(host.as_str())
    }
}

/// The authority that a server tells its visitors apart by.
pub(super) fn authority(url: &PageUrl) -> String {
    if url.is_secure() { format!("{}:8443", url.host()) } else { url.host().to_string() }
}

/// The origins of a host whose robots.txt is asked for.
pub(super) fn origins(host: &Host, run: u32, outcome: &oracle::Expected) -> Vec<String> {
    let (plain, secure) = (host.name.clone(), format!("{}:8443", host.name));
    if unreachable(host, run).is_some() {
        return vec![plain];
    }
    let front = PageUrl::parse(&host.home()).is_ok_and(|home| outcome.fetched.contains_key(&home));
    match host.door {
        Door::Http => vec![plain],
        Door::Https(_) => vec![secure],
        Door::Redirects(_) if front => vec![plain, secure],
        Door::Redirects(_) => vec![plain],
    }
}

/// How often each URL is asked for in a run. Servers do not see who could not connect.
pub(super) fn asked(world: &World, run: u32, outcome: &oracle::Expected) -> BTreeMap<Asked, u64> {
    let mut asked = BTreeMap::new();
    for url in outcome.fetched.keys().filter(|url| world.host(url.host().as_str()).is_some()) {
        asked.insert((authority(url), url.path_and_query().to_owned()), 1);
    }
    let known = outcome.trees.keys().filter_map(|host| world.host(host.as_str()));
    for host in known.filter(|host| unreachable(host, run).is_none()) {
        let tries = if host.robots == Robots::Fails { ROBOTS_TRIES } else { 1 };
        asked.extend(origins(host, run, outcome).into_iter().map(|origin| ((origin, "/robots.txt".to_owned()), tries)));
    }
    asked
}
