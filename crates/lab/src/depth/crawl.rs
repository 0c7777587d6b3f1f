//! Crawl of one tree of a made-up web; the daemon's own [`Site`]s decide what is fetched.

use crate::web::endless::links::{self, Elsewhere, Link};
use crate::web::endless::place::{self, HostName, Place};
use crate::web::endless::plan::Plan;
use crate::web::endless::{EndlessWeb, html};
use nearcrawl_core::crawl::site::{Next, Site, SiteRules};
use nearcrawl_model::{
    fetch::FetchPurpose,
    fingerprint::FingerprintKey,
    ids::SiteNumber,
    journal::{JournalEntry, JournalKey, VisitOutcome},
    record::RunState,
    subnet::Subnet,
    time::WallTime,
    url::{Host, PageUrl},
};
use std::{
    collections::{BTreeMap, BTreeSet, HashSet}, // unordered: what is known already is only asked, never walked
    net::{IpAddr, Ipv4Addr},
};

/// How fingerprints are made; any key will do.
const KEY: FingerprintKey = FingerprintKey([7; 16]);

/// Time stands still: nothing here depends on it.
const NOW: WallTime = WallTime(1);

/// The text of every robots.txt of the made-up web.
pub const ROBOTS: &str = "User-agent: *\nDisallow:\n";

/// What was fetched of one tree, and what its pages named.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Every page, in the order of fetching.
    pub pages: Vec<Page>,
    /// Requests for robots.txt: one for each host of the tree.
    pub robots: u64,
    /// Whether the rule of yield left something out.
    pub stopped: bool,
}

/// A page that was fetched.
#[derive(Clone, Debug)]
pub struct Page {
    /// Which page of its site.
    pub place: Place,
    /// Links from the front page.
    pub level: u8,
    /// The size of its body, in bytes.
    pub bytes: u64,
    /// How long the server was busy with it, in milliseconds.
    pub busy_ms: u64,
    /// What it named outside the tree.
    pub named: Vec<Elsewhere>,
}

/// Crawls the tree of one site by these rules.
pub fn tree(web: &EndlessWeb, site: u64, rules: &SiteRules) -> Tree {
    let mut crawl = Crawl { web, plan: web.plan(site), rules, sites: BTreeMap::new(), known: HashSet::new(), tree: Tree::default() };
    crawl.discover(None, Place::Front, 0);
    while crawl.step() {}
    crawl.tree.stopped = crawl.sites.values().any(|site| site.record.state == RunState::CutByYield);
    crawl.tree
}

struct Crawl<'a> {
    web: &'a EndlessWeb,
    plan: Plan,
    rules: &'a SiteRules,
    /// The hosts of the tree, by the section that has one of its own.
    sites: BTreeMap<Option<u16>, Site>,
    known: HashSet<Place>,
    tree: Tree,
}

impl Crawl<'_> {
    /// One question to the host whose first in line lies nearest to the front page; false if no host has one. The daemon asks
    /// different hosts in any order, and corrects pages that it first found at too deep a level: the pages are the same.
    fn step(&mut self) -> bool {
        let nearest = self.sites.iter().filter_map(|(number, site)| Some((site.frontier.first()?.level, *number))).min();
        let Some((level, number)) = nearest else { return false };
        let Some(site) = self.sites.get_mut(&number) else { return false };
        match site.next(NOW, self.rules, &KEY) {
            Next::Nothing => return false,
            Next::Skip(url, reason) => site.apply(&JournalEntry::Skipped { url, reason }, self.rules, &KEY),
            Next::Fetch(order) if order.purpose == FetchPurpose::Robots => {
                let answer = Ok((200, ROBOTS.as_bytes().to_vec()));
                site.apply(&JournalEntry::Robots { origin: order.url.origin(), at: NOW, answer, took: 10 }, self.rules, &KEY);
                self.tree.robots += 1;
            }
            Next::Fetch(order) => self.visit(number, level, order.url),
        }
        true
    }

    /// A page answers.
    fn visit(&mut self, number: Option<u16>, level: u8, url: PageUrl) {
        let host = HostName { site: self.plan.site, section: number };
        let Some(place) = place::read(&host, &self.plan, url.path_and_query()) else { return };
        let links = links::of(&self.web.shape, &self.plan, &place);
        let (bytes, took) = (html::size(&self.plan, &place, &links) as u64, html::thinking(&self.plan, &place));
        let (mut found, mut named, mut apart) = (Vec::new(), Vec::new(), Vec::new());
        let mut hosts = BTreeSet::new();
        for link in links {
            match link {
                Link::Outside(elsewhere) => {
                    hosts.extend(elsewhere.host.to_string().parse::<Host>());
                    named.push(elsewhere);
                }
                Link::Inside(to) if !self.known.insert(to) => {}
                Link::Inside(to) if HostName::of(&self.plan, &to).section == number => {
                    found.extend(self.web.url(&self.plan, &to).map(|url| (url, level + 1, 0)));
                }
                Link::Inside(to) => apart.push(to),
            }
        }
        let page = KEY.of(url.as_str());
        let urls = named.iter().map(|elsewhere| KEY.of(&elsewhere.at(self.web.port)).half()).collect();
        self.tree.pages.push(Page { place, level, bytes, busy_ms: took, named });
        let entry = JournalEntry::Visited {
            url,
            level,
            at: NOW,
            outcome: VisitOutcome::Page(200),
            took,
            first_byte_us: None,
            bytes,
            software: None,
            children: Vec::new(),
            found,
            outgoing: Vec::new(),
            beyond_scope: hosts.into_iter().collect(),
            rest: None,
        };
        if let Some(site) = self.sites.get_mut(&number) {
            site.apply(&entry, self.rules, &KEY);
            site.apply(&JournalEntry::Beyond { page, urls }, self.rules, &KEY);
        }
        for to in apart {
            self.discover(HostName::of(&self.plan, &to).section, to, level + 1);
        }
    }

    /// A page of another host of the tree is named, or the first of all.
    fn discover(&mut self, number: Option<u16>, place: Place, level: u8) {
        if level > self.rules.depth {
            return;
        }
        let Some(url) = self.web.url(&self.plan, &place) else { return };
        let site = match self.sites.entry(number) {
            std::collections::btree_map::Entry::Occupied(there) => there.into_mut(),
            std::collections::btree_map::Entry::Vacant(room) => {
                let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
                let key = JournalKey { subnet: Subnet::around(address, 24), host: url.host(), run: 1 };
                let tree = HostName { site: self.plan.site, section: None }.to_string().parse().unwrap_or_else(|_| url.host());
                room.insert(Site::open(key, address, tree, SiteNumber(1), NOW))
            }
        };
        self.known.insert(place);
        site.apply(&JournalEntry::Admitted { urls: vec![(url, level, 0)] }, self.rules, &KEY);
    }
}
