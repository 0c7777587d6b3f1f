//! Which links were met lately, and which new hosts may be followed? What passes is what the seen set is asked about.

use super::{new_host_quota::NewHostQuota, site::Site};
use crate::{clock_cache::ClockCache, context::Context};
use nearcrawl_model::{
    fingerprint::Fingerprint,
    ids::SiteNumber,
    journal::{Arrival, Place},
    links::Links,
    time::Moment,
    url::{Host, PageUrl},
};
use std::collections::BTreeSet;

/// External hosts that one run of one site may name.
const MAX_NEW_HOSTS: u64 = 500;

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
}

/// CLOCK caches in front of the seen set, and the quota of new hosts.
#[derive(Debug)]
pub(crate) struct LinkFilter {
    /// URLs of our sites, by site and level.
    internal: ClockCache,
    /// URLs of other sites, by run and level.
    outgoing: ClockCache,
    new_hosts: NewHostQuota,
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

    /// Whether a link to this host may be followed today; `print` stands for the host.
    pub(crate) fn admits_host(&mut self, host: &Host, print: Fingerprint, now: Moment) -> bool {
        self.new_hosts.admit(host, print, now)
    }

    /// Internal or external, in scope or not (LL-4, LL-5, LL-27); what the caches met lately is left out. The links lead to this level,
    /// after so many redirects in a row. With `crowded` no more of the site's own URLs are taken.
    pub(super) fn sort(&mut self, cx: &mut Context, site: &Site, crowded: bool, (level, hops): (u8, u8), links: &Links) -> Sorted {
        let mut sorted = Sorted { children: Vec::with_capacity(links.len()), ..Sorted::default() };
        let mut new_hosts = BTreeSet::new();
        let mut beyond = BTreeSet::new();
        let (host, tree, run) = (&site.key.host, &site.tree, site.key.run);
        for (url, fingerprint) in links.iter() {
            if url.host_str() == host.as_str() {
                if crowded {
                    // Not entered into the seen set either: the next page that names it brings it back.
                    cx.refuse("URLs beyond the limit of queued URLs");
                    continue;
                }
                sorted.children.push(fingerprint);
                if !self.touch(site.number, fingerprint, level) {
                    sorted.internal.push(Candidate { url: url.to_url(), fingerprint, level, hops });
                }
                continue;
            }
            let target = url.host();
            if cx.settings.scope.denies(&target) {
                cx.refuse("hosts on the deny list");
                continue;
            }
            let place = if target.is_within(tree) {
                if level > cx.settings.rules.depth {
                    continue;
                }
                Some(Place { tree: tree.clone(), level, hops })
            } else if !cx.settings.scope.admits(&target) {
                beyond.insert(target);
                sorted.beyond.push(fingerprint.half());
                continue;
            } else {
                None
            };
            sorted.elsewhere.push(fingerprint);
            if !site.has_named(fingerprint) {
                sorted.named.push(url.to_url());
            }
            if self.may_follow(cx, site, &mut new_hosts, target, place.is_none()) {
                let level = place.as_ref().map_or(0, |place| place.level);
                let (known, print) = self.named(run, fingerprint, level);
                if !known {
                    sorted.outgoing_prints.push((print, level));
                    sorted.outgoing.push(Arrival { url: url.to_url(), place, run });
                }
            }
        }
        cx.counters.beyond_scope += beyond.len() as u64;
        sorted.beyond_scope = beyond.into_iter().collect();
        sorted
    }

    /// Whether a link of a site to another host may be followed. `new_hosts` are the external hosts that its page has named so far.
    fn may_follow(&mut self, cx: &mut Context, site: &Site, new_hosts: &mut BTreeSet<Host>, target: Host, external: bool) -> bool {
        let print = cx.secret.of(target.as_str());
        if !self.admits_host(&target, print, cx.now.moment) {
            // Not entered anywhere: tomorrow a link to it may be followed.
            cx.refuse("new hosts beyond 50 per domain and day");
            return false;
        }
        if external && !new_hosts.contains(&target) {
            if site.record.external_hosts + new_hosts.len() as u64 >= MAX_NEW_HOSTS {
                cx.refuse("new external hosts beyond 500 per site");
                return false;
            }
            new_hosts.insert(target);
        }
        true
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
