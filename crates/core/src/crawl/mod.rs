//! Our servers: which URL next, which server now, what came of it.
//!
//! * [`site`]: one host's tree: frontier, robots.txt, record, the fold of its journal
//! * [`scheduler`]: whose turn is it? Politeness by address
//! * [`admission`]: a URL arrives: was it seen?
//! * [`fetch_cycle`]: request, answer, links; [`pipelining`], [`robots`], [`revisits`], [`frontier_spill`] are parts of it
//! * [`link_filter`]: which links were met lately? [`new_host_quota`]: does a domain name hosts without end?
//! * [`resume`]: a site goes on where its former owner stood
//! * [`scope`]: is a host crawled at all?

pub(crate) mod admission;
pub(crate) mod fetch_cycle;
pub(crate) mod frontier_spill;
pub(crate) mod link_filter;
pub mod new_host_quota;
pub(crate) mod pipelining;
pub mod politeness;
pub(crate) mod resume;
pub(crate) mod revisits;
pub(crate) mod robots;
pub mod scheduler;
pub mod scope;
pub mod site;

use link_filter::LinkFilter;
use nearcrawl_model::{
    journal::JournalKey,
    subnet::Subnet,
    url::{Host, PageUrl},
};
use scheduler::Scheduler;
use site::{Site, former::Memory};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

/// The sites of our subnets, and what is under way at them.
pub(crate) struct Crawl {
    pub(crate) sites: BTreeMap<Host, Site>,
    pub(crate) by_subnet: BTreeMap<Subnet, BTreeSet<Host>>,
    pub(crate) scheduler: Scheduler,
    /// URLs that wait, counted a moment ago.
    pub(crate) waiting: usize,
    /// Whether the disk has room.
    pub(crate) disk_has_space: bool,
    pub(crate) in_flight: BTreeMap<IpAddr, Host>,
    /// Which page of whom is being read while the address may be asked for another.
    pub(crate) received: BTreeMap<IpAddr, (Host, PageUrl)>,
    pub(crate) links: LinkFilter,
    pub(crate) awakening: BTreeMap<u64, Host>,
    pub(crate) seen_pending: BTreeMap<u64, admission::SeenPurpose>,
    pub(crate) next_site: u64,
    /// Journals of earlier runs, dropped when the newer run is complete.
    pub(crate) superseded: BTreeMap<Host, JournalKey>,
}

impl Crawl {
    /// Whether nothing of a subnet's sites is under way: no request, no question to the seen set, no URLs that are read back.
    pub(crate) fn is_quiet(&self, subnet: &Subnet) -> bool {
        let Some(hosts) = self.by_subnet.get(subnet) else { return true };
        let asleep = |site: &Site| site.memory == Memory::Reading || self.awakening.contains_key(&site.number);
        let busy = |host: &Host| self.sites.get(host).is_some_and(|site| site.is_busy() || asleep(site));
        !hosts.iter().any(busy) && !self.seen_pending.values().any(|purpose| purpose.concerns(hosts))
    }
}
