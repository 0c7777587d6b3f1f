//! Which links were met lately, and which new hosts may be followed? What passes is what the seen set is asked about.

use super::new_host_quota::NewHostQuota;
use crate::clock_cache::ClockCache;
use nearcrawl_model::{fingerprint::Fingerprint, time::Moment, url::Host};

/// CLOCK caches in front of the seen set, and the quota of new hosts.
#[derive(Debug)]
pub(crate) struct LinkFilter {
    /// URLs of our sites, by site and level.
    internal: ClockCache,
    /// URLs of other sites, by run and level.
    outgoing: ClockCache,
    new_hosts: NewHostQuota,
    /// The number under which the seen set keeps the URLs that leave our sites.
    scope: u64,
}

impl LinkFilter {
    /// Nothing was met yet. `entries` is the capacity of each cache.
    pub(crate) fn new(entries: usize, scope: u64) -> LinkFilter {
        LinkFilter {
            internal: ClockCache::with_capacity(entries),
            outgoing: ClockCache::with_capacity(entries),
            new_hosts: NewHostQuota::default(),
            scope,
        }
    }

    /// Whether this page of a site was met lately at this level; from now on it was. A page met at one level says nothing about a shorter one.
    pub(crate) fn met(&mut self, site: u64, page: Fingerprint, level: u8) -> bool {
        self.internal.touch(page.scoped(site.wrapping_mul(256).wrapping_add(u64::from(level))))
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

    /// The number under which the seen set keeps the URLs that leave our sites.
    pub(crate) fn scope(&self) -> u64 {
        self.scope
    }

    /// The caches, of our own sites' URLs and of others', for their statistics.
    pub(crate) fn caches(&self) -> [&ClockCache; 2] {
        [&self.internal, &self.outgoing]
    }
}
