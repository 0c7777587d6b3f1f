//! Filters the links of a page: which were met lately, and which new hosts may be followed; the seen set is asked about the rest.

use super::{
    new_host_quota::NewHostQuota,
    site::{
        Site,
        held_back::{DAY, MAX_HELD},
    },
};
use crate::{clock_cache::ClockCache, context::Context};
use nearcrawl_model::{
    fingerprint::Fingerprint,
    ids::SiteNumber,
    journal::{Arrival, HostLimit, JournalEntry, Place},
    links::Links,
    url::{Host, PageUrl},
};
use std::collections::{BTreeMap, BTreeSet};

/// URLs that may wait at all sites together because a limit on new hosts holds them back.
pub(crate) const MAX_HELD_TOGETHER: usize = 200_000;

/// A URL with everything that the seen test needs.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub url: PageUrl,
    pub fingerprint: Fingerprint,
    pub level: u8,
    pub hops: u8,
}

/// The links of one page, by where they lead.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    /// All that lead to pages of the same site.
    pub(super) children: Vec<Fingerprint>,
    /// Those of them that the cache does not know.
    pub(super) internal: Vec<Candidate>,
    /// What leads to other sites in scope and the cache does not know, and by which fingerprints and levels the seen set knows it.
    pub(super) outgoing: Vec<Arrival>,
    pub(super) outgoing_prints: Vec<(Fingerprint, u8)>,
    /// Hosts out of scope.
    pub(super) beyond_scope: Vec<Host>,
    /// All that lead out of scope, each by half its fingerprint.
    pub(super) beyond: Vec<u32>,
    /// All that lead to other sites in scope, and to other hosts of the tree.
    pub(super) elsewhere: Vec<Fingerprint>,
    /// Those of them that the journal has not named yet.
    pub(super) named: Vec<PageUrl>,
    /// What leads to new hosts that a limit holds back, and does not wait yet.
    pub(super) held_back: BTreeMap<HostLimit, Vec<Arrival>>,
    /// How many URLs at new hosts cannot even wait.
    pub(super) not_kept: u64,
    /// Pages of the same site for which there is no room in the queue, with their levels; among `internal` they are too deep.
    pub(super) not_queued: BTreeMap<Fingerprint, u8>,
}

/// CLOCK caches in front of the seen set, and the quota of new hosts.
#[derive(Debug)]
pub(crate) struct LinkFilter {
    /// URLs of our sites, by site and level.
    internal: ClockCache,
    /// URLs of other sites, by run and level.
    outgoing: ClockCache,
    new_hosts: NewHostQuota,
    /// URLs that wait at all sites because a limit holds them back, counted a moment ago.
    held_back: usize,
    /// The number under which the seen set keeps the URLs that leave our sites.
    scope: SiteNumber,
}

impl LinkFilter {
    /// Nothing was met yet. `entries` is the capacity of each cache.
    pub(crate) fn new(entries: usize, scope: SiteNumber) -> LinkFilter {
        LinkFilter {
            internal: ClockCache::with_capacity(entries),
            outgoing: ClockCache::with_capacity(entries),
            new_hosts: NewHostQuota::default(),
            held_back: 0,
            scope,
        }
    }

    /// Whether this page of a site was met lately at this level; from now on it was. A page met at one level says nothing about a shorter one.
    pub(crate) fn touch(&mut self, site: SiteNumber, page: Fingerprint, level: u8) -> bool {
        self.internal.touch(page.scoped(site.0.wrapping_mul(256).wrapping_add(u64::from(level))))
    }

    /// Whether this page of another site was named lately in this run at this level; from now on it was. Also returns by which fingerprint
    /// the seen set knows it.
    pub(crate) fn named(&mut self, run: u32, page: Fingerprint, level: u8) -> (bool, Fingerprint) {
        let print = page.scoped(u64::from(run));
        (self.outgoing.touch(print.scoped(u64::from(level) + 1)), print)
    }

    /// Whether links may lead to this host of a site that goes elsewhere; `print` stands for the host.
    pub(crate) fn admits_host(&mut self, cx: &Context, host: &Host, print: Fingerprint) -> bool {
        self.new_hosts.admit(host, print, cx.settings.new_hosts.per_domain, cx.now.moment)
    }

    /// A journal is read: to which hosts its links led in the last day counts towards the limits of their domains, so that these go on where
    /// they were after a restart, and come along with a subnet. What the runs before it led to is not new; when that was the journal of
    /// the run before says, which is read first if it is there.
    pub(super) fn recall(&mut self, cx: &Context, entries: &[JournalEntry]) {
        if cx.settings.new_hosts.per_domain == 0 {
            return;
        }
        let mut before: BTreeSet<Fingerprint> = BTreeSet::new();
        for entry in entries {
            match entry {
                JournalEntry::Followed { hosts, .. } => before.extend(hosts),
                JournalEntry::Visited { at, outgoing, .. } | JournalEntry::Released { at, outgoing } => {
                    let ago = cx.now.wall.0.saturating_sub(at.0);
                    for host in outgoing.iter().map(|arrival| arrival.url.host()) {
                        let print = cx.secret.of(host.as_str());
                        let ago = if before.contains(&print) { DAY } else { ago };
                        self.new_hosts.recall(&host, print, ago, cx.now.moment);
                    }
                }
                _ => {}
            }
        }
    }

    /// Counts what waits at sites because a limit on new hosts holds it back.
    pub(super) fn count_held_back<'s>(&mut self, sites: impl Iterator<Item = &'s Site> + Clone) {
        let held_back = sites.clone().map(|site| site.held.counts().host_urls as usize).sum();
        if held_back > 0 || self.held_back > 0 {
            self.new_hosts.count_waiting(sites.flat_map(|site| site.held.held_by_domain()));
        }
        self.held_back = held_back;
    }

    /// URLs that wait at all sites because a limit on new hosts holds them back, counted a moment ago.
    pub(crate) fn held_back(&self) -> usize {
        self.held_back
    }

    /// Internal or external, in scope or not (LL-4, LL-5, LL-27); what the caches met lately is left out. The links lead to this level,
    /// after so many redirects in a row. With `crowded` no more of the site's own URLs are queued.
    pub(super) fn sort(&mut self, cx: &mut Context, site: &Site, crowded: bool, (level, hops): (u8, u8), links: &Links) -> Sorted {
        let mut sorted = Sorted { children: Vec::with_capacity(links.len()), ..Sorted::default() };
        let mut led_to = BTreeSet::new();
        let mut beyond = BTreeSet::new();
        let (host, tree, run) = (&site.key.host, &site.tree, site.key.run);
        for (url, fingerprint) in links.iter() {
            if url.host_str() == host.as_str() {
                sorted.children.push(fingerprint);
                // Without room in the queue it is kept like one that lies too deep, and comes nearer when there is room.
                let depth = site.depth(&cx.settings.rules);
                let at = if crowded && level <= depth { depth.saturating_add(1) } else { level };
                if !self.touch(site.number, fingerprint, at) {
                    if at != level {
                        cx.refuse("URLs beyond the limit of queued URLs");
                        sorted.not_queued.insert(fingerprint, level);
                    }
                    sorted.internal.push(Candidate { url: url.to_url(), fingerprint, level: at, hops });
                }
                continue;
            }
            let target = url.host();
            if let Some(class) = cx.drops(&target) {
                cx.refuse(class);
                continue;
            }
            let place = if target.is_within(tree) {
                if level > site.depth(&cx.settings.rules) {
                    continue;
                }
                Some(Place { tree: tree.clone(), level, hops })
            } else if !cx.may_admit(&target) {
                beyond.insert(target);
                sorted.beyond.push(fingerprint.half());
                continue;
            } else {
                None
            };
            sorted.elsewhere.push(fingerprint);
            let named_before = site.has_named(fingerprint);
            if !named_before {
                sorted.named.push(url.to_url());
            }
            let arrival = Arrival { url: url.to_url(), place, run };
            if let Err(by) = self.may_follow(cx, site, &mut led_to, &target, &arrival) {
                self.hold_back(cx, site, &mut sorted, (by, arrival), (fingerprint, named_before));
                continue;
            }
            let level = arrival.place.as_ref().map_or(0, |place| place.level);
            let (known, print) = self.named(run, fingerprint, level);
            if !known {
                sorted.outgoing_prints.push((print, level));
                sorted.outgoing.push(arrival);
            }
        }
        cx.counters.beyond_scope += beyond.len() as u64;
        sorted.beyond_scope = beyond.into_iter().collect();
        sorted
    }

    /// Whether a link of a site to another host may be followed today, or which limit holds it back. Only new hosts in scope count, and those
    /// of the tree. `led_to` are the new external hosts that its page has led to so far.
    fn may_follow(
        &mut self,
        cx: &Context,
        site: &Site,
        led_to: &mut BTreeSet<Fingerprint>,
        target: &Host,
        arrival: &Arrival,
    ) -> Result<(), HostLimit> {
        let print = cx.secret.of(target.as_str());
        if site.held.has_followed(print) || led_to.contains(&print) {
            return Ok(());
        }
        let (external, per_site) = (arrival.place.is_none(), cx.settings.new_hosts.per_site);
        let counts = site.held.counts();
        // Those that wait come first.
        let is_full = || counts.hosts_by_site_limit > 0 || site.held.today(cx.now.wall) + led_to.len() as u64 >= per_site;
        if external && per_site > 0 && is_full() {
            return Err(HostLimit::Site);
        }
        if !self.admits_host(cx, target, print) {
            return Err(HostLimit::Domain);
        }
        if external {
            led_to.insert(print);
        }
        Ok(())
    }

    /// What a limit holds back waits, if there is room. `named_before` is whether the journal has named it: then it is counted already.
    fn hold_back(
        &self,
        cx: &mut Context,
        site: &Site,
        sorted: &mut Sorted,
        (by, arrival): (HostLimit, Arrival),
        (url, named_before): (Fingerprint, bool),
    ) {
        cx.refuse(match by {
            HostLimit::Site => "links to new external hosts beyond the limit for a site and day",
            HostLimit::Domain => "links to new hosts beyond the limit for a domain and day",
        });
        let host = arrival.url.host();
        if site.held.holds(cx.secret.of(host.as_str()), url, &arrival) {
            return;
        }
        let of_page: usize = sorted.held_back.values().map(Vec::len).sum();
        let of_site = site.held.counts().host_urls as usize + of_page;
        let has_room = of_site < MAX_HELD && self.held_back + of_page < MAX_HELD_TOGETHER;
        let may_wait = by == HostLimit::Site || self.new_hosts.may_wait(&host, cx.settings.new_hosts.per_domain);
        if has_room && may_wait {
            sorted.held_back.entry(by).or_default().push(arrival);
        } else {
            sorted.not_kept += u64::from(!named_before);
        }
    }

    /// The number under which the seen set keeps the URLs that leave our sites.
    pub(crate) fn scope(&self) -> SiteNumber {
        self.scope
    }

    /// The caches, of our own sites' URLs and of others', for their statistics.
    pub(crate) fn caches(&self) -> [&ClockCache; 2] {
        [&self.internal, &self.outgoing]
    }
}
