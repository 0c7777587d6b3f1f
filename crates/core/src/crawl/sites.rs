//! The open sites of our subnets, by subnet, and which of them have been restored from their journals.

use super::site::{Site, previous_run::Memory};
use crate::ownership::register::Register;
use nearcrawl_model::{access_point::AccessPoint, ids::SiteNumber, journal::JournalKey, subnet::Subnet, url::Host};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

/// The sites of our subnets.
#[derive(Debug)]
pub(crate) struct Sites {
    by_host: BTreeMap<Host, Site>,
    by_subnet: BTreeMap<Subnet, BTreeSet<Host>>,
    /// How many there are at each address.
    by_address: BTreeMap<IpAddr, usize>,
    /// Sites of which the seen set is being told, by number.
    awakening: BTreeMap<SiteNumber, Host>,
    /// The last number given to a site; the numbers of different starts of the process differ.
    last_number: u64,
    /// URLs that wait at all sites together, counted a moment ago.
    waiting: usize,
}

/// Sites come and go.
impl Sites {
    /// None is open. The first gets the number after `last_number`.
    pub(super) fn new(last_number: u64) -> Sites {
        let (by_host, by_subnet, by_address) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Sites { by_host, by_subnet, by_address, awakening: BTreeMap::new(), last_number, waiting: 0 }
    }

    /// A number for a new site.
    pub(super) fn next_number(&mut self) -> SiteNumber {
        self.last_number += 1;
        SiteNumber(self.last_number)
    }

    /// A site is open from now on.
    pub(super) fn insert(&mut self, site: Site) {
        let (subnet, host) = (site.key.subnet, site.key.host.clone());
        self.by_subnet.entry(subnet).or_default().insert(host.clone());
        *self.by_address.entry(site.address).or_default() += 1;
        if let Some(before) = self.by_host.insert(host, site) {
            self.gone_from(before.address);
        }
    }

    fn gone_from(&mut self, address: IpAddr) {
        if let Some(sites) = self.by_address.get_mut(&address) {
            *sites -= 1;
            if *sites == 0 {
                self.by_address.remove(&address);
            }
        }
    }

    /// A site has another address, in the same subnet.
    pub(super) fn moved(&mut self, before: IpAddr, now: IpAddr) {
        self.gone_from(before);
        *self.by_address.entry(now).or_default() += 1;
    }

    /// Takes out a site whose next run begins at once; its subnet goes on counting it.
    pub(super) fn take_for_next_run(&mut self, host: &Host) -> Option<Site> {
        let site = self.by_host.remove(host)?;
        self.gone_from(site.address);
        Some(site)
    }

    /// Takes out a site for good.
    pub(super) fn remove(&mut self, subnet: &Subnet, host: &Host) -> Option<Site> {
        if let Some(here) = self.by_subnet.get_mut(subnet) {
            here.remove(host);
            if here.is_empty() {
                self.by_subnet.remove(subnet);
            }
        }
        let site = self.by_host.remove(host)?;
        self.gone_from(site.address);
        self.awakening.remove(&site.number);
        Some(site)
    }

    /// The seen set is being told of a site: until it knows it, nothing is asked there.
    pub(super) fn await_seen_set(&mut self, number: SiteNumber, host: Host) {
        self.awakening.insert(number, host);
    }

    /// The seen set knows a site.
    pub(super) fn seen_set_knows(&mut self, number: SiteNumber) -> Option<Host> {
        self.awakening.remove(&number)
    }

    /// Counts the URLs that wait at all sites together, one less for each host of a `crowd`: these may wait for months, and must not take
    /// the room of others.
    pub(crate) fn count_waiting(&mut self, crowd: usize) {
        self.waiting = self.by_host.values().map(|site| site.frontier.len()).sum::<usize>().saturating_sub(crowd);
    }

    /// A site, to be changed.
    pub(super) fn get_mut(&mut self, host: &Host) -> Option<&mut Site> {
        self.by_host.get_mut(host)
    }

    /// The site of this number, to be changed, unless it is gone or began anew.
    pub(super) fn numbered_mut(&mut self, host: &Host, number: SiteNumber) -> Option<&mut Site> {
        self.by_host.get_mut(host).filter(|site| site.number == number)
    }
}

/// Which are open.
impl Sites {
    /// The site of a host.
    pub(crate) fn get(&self, host: &Host) -> Option<&Site> {
        self.by_host.get(host)
    }

    /// The site of this number, unless it is gone or began anew.
    pub(super) fn numbered(&self, host: &Host, number: SiteNumber) -> Option<&Site> {
        self.by_host.get(host).filter(|site| site.number == number)
    }

    /// All sites, in the order of their hosts.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Site> + Clone {
        self.by_host.values()
    }

    /// The hosts of all sites, in order.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.by_host.keys()
    }

    /// The sites after this host, in order.
    pub(crate) fn after<'s>(&'s self, host: Option<&Host>) -> impl Iterator<Item = &'s Site> + use<'s> {
        use std::ops::Bound::{Excluded, Unbounded};
        self.by_host.range::<Host, _>((host.map_or(Unbounded, Excluded), Unbounded)).map(|(_, site)| site)
    }

    /// How many are open.
    pub(crate) fn len(&self) -> usize {
        self.by_host.len()
    }

    /// How many are open at an address.
    pub(crate) fn at(&self, address: IpAddr) -> usize {
        self.by_address.get(&address).copied().unwrap_or(0)
    }

    /// How much of what all sites together may have is this one's, at least 1: each address has an equal share, and so has each host of one, so
    /// that an address with very many takes nothing of the others'.
    pub(super) fn share_of(&self, host: &Host, of_all: usize) -> Option<usize> {
        let address = self.by_host.get(host)?.address;
        Some((of_all / self.by_address.len().max(1) / self.at(address).max(1)).max(1))
    }

    /// How many are open at the address that has most.
    pub(crate) fn most_at_one_address(&self) -> usize {
        self.by_address.values().copied().max().unwrap_or(0)
    }

    /// Whether none is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_host.is_empty()
    }

    /// The hosts of a subnet's sites, in order.
    pub(crate) fn within(&self, subnet: &Subnet) -> impl Iterator<Item = &Host> + Clone {
        self.by_subnet.get(subnet).into_iter().flatten()
    }

    /// The subnets that sites are open in and that this one is a part of, in order.
    pub(crate) fn larger_than(&self, subnet: &Subnet) -> Vec<Subnet> {
        self.by_subnet.keys().filter(|ours| *ours != subnet && ours.covers(subnet)).copied().collect()
    }

    /// Whether this host, or anything in the smaller subnet, is crawled as part of the larger one.
    pub(crate) fn is_crawled(&self, host: &Host, larger: &Subnet, smaller: &Subnet) -> bool {
        let filed = self.by_host.get(host).is_some_and(|site| site.key.subnet == *larger);
        filed || self.within(larger).any(|host| self.by_host.get(host).is_some_and(|site| smaller.contains(site.address)))
    }

    /// The hosts of a subnet's sites that lie in smaller subnets of other owners.
    pub(crate) fn lost_within(&self, me: AccessPoint, register: &Register, subnet: &Subnet) -> Vec<Host> {
        let theirs = |host: &&Host| {
            let claim = self.by_host.get(*host).and_then(|site| register.around(site.address));
            claim.is_some_and(|claim| claim.subnet != *subnet && claim.owner != me)
        };
        self.within(subnet).filter(theirs).cloned().collect()
    }

    /// The hosts of a subnet's sites; none if it has none.
    pub(super) fn hosts_of(&self, subnet: &Subnet) -> Option<&BTreeSet<Host>> {
        self.by_subnet.get(subnet)
    }

    /// Whether a journal is that of a site of ours.
    pub(crate) fn owns(&self, key: &JournalKey) -> bool {
        self.by_host.get(&key.host).is_some_and(|site| site.key.subnet == key.subnet)
    }

    /// Whether a site does not know yet where it stands.
    pub(super) fn is_asleep(&self, site: &Site) -> bool {
        site.memory == Memory::Reading || self.awakening.contains_key(&site.number)
    }

    /// Whether the seen set is being told of a site.
    pub(crate) fn is_awaiting_seen_set(&self) -> bool {
        !self.awakening.is_empty()
    }

    /// URLs that wait at all sites together, counted a moment ago.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }
}
