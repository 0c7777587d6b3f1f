//! Requests to servers that are under way, and the addresses whose turn is next.
//!
//! If a server needs no rest, its next page is requested while the last one is being read. One connection, one request at a time, as ever:
//! only the reading of one page and the fetching of the next overlap. With polite pauses an address rests longer than reading takes, and
//! nothing changes.

use super::{
    politeness::Politeness,
    scheduler::{Asks, InLine, Scheduler, place_of},
    site::{Asking, Site},
    sites::Sites,
};
use nearcrawl_model::{
    fingerprint::FingerprintKey,
    time::{Millis, Moment},
    url::{Host, PageUrl},
};
use std::{collections::BTreeMap, net::IpAddr};

/// Requests to servers that are under way, and the addresses whose turn comes next.
#[derive(Debug)]
pub(crate) struct Fetches {
    scheduler: Scheduler,
    /// Whose question each address is being asked.
    in_flight: BTreeMap<IpAddr, Host>,
    /// Which page of whom is being read while the address may be asked for another.
    received: BTreeMap<IpAddr, (Host, PageUrl)>,
}

/// An answer's site.
#[derive(Debug)]
pub(super) struct Returned {
    pub(super) host: Host,
    /// What was asked; none if the site is gone or began anew meanwhile.
    pub(super) asking: Option<Asking>,
    /// Whether the address was given back already when the page came.
    pub(super) given_back: bool,
}

fn in_line(site: &Site, key: &FingerprintKey) -> InLine {
    InLine { run: site.key.run, place: place_of(&site.key.host, key) }
}

impl Fetches {
    /// Nothing is under way.
    pub(super) fn new(politeness: Politeness) -> Fetches {
        Fetches { scheduler: Scheduler::new(politeness), in_flight: BTreeMap::new(), received: BTreeMap::new() }
    }

    /// Hands out the token of an address that may be asked now, with the site whose turn it is.
    pub(super) fn next_turn(&mut self, now: Moment) -> Option<(IpAddr, Host)> {
        self.scheduler.take(now)
    }

    /// The address whose token is out is asked something for this site.
    pub(super) fn sent(&mut self, address: IpAddr, host: &Host) {
        self.in_flight.insert(address, host.clone());
    }

    /// The address whose token is out is asked nothing now.
    pub(super) fn give_back(&mut self, address: IpAddr, now: Moment) {
        self.scheduler.give_back(address, now);
    }

    /// This site has something to ask at its address.
    pub(super) fn want(&mut self, site: &Site, key: &FingerprintKey) {
        let asks = if site.has_begun() { Asks::Further } else { Asks::First(in_line(site, key)) };
        self.scheduler.want(site.address, &site.key.host, asks);
    }

    /// This site has to ask another address than its own first.
    pub(super) fn want_there(&mut self, address: IpAddr, host: &Host) {
        self.scheduler.want(address, host, Asks::Further);
    }

    /// This address is left alone until `until`, at least.
    pub(super) fn rest(&mut self, address: IpAddr, until: Moment) {
        self.scheduler.rest(address, until);
    }

    /// Somebody else may ask this address something, see [`Scheduler::lend`].
    pub(super) fn lend(&mut self, address: IpAddr, now: Moment, length: Millis, asks: bool) -> Option<Moment> {
        self.scheduler.lend(address, now, length, asks)
    }

    /// This site asks nothing any more.
    pub(super) fn drop_site(&mut self, site: &Site, key: &FingerprintKey) {
        self.scheduler.drop_site(site.address, &site.key.host, in_line(site, key));
    }

    /// Forgets what rested long ago.
    pub(crate) fn tidy(&mut self, now: Moment) {
        self.scheduler.tidy(now);
    }

    /// A page came and is being read. The token of an address that needs no rest goes back before that is done.
    pub(super) fn body_received(&mut self, now: Moment, sites: &mut Sites, address: IpAddr, took: Millis) {
        let Some(host) = self.in_flight.get(&address).filter(|_| !self.received.contains_key(&address)) else { return };
        let Some(site) = sites.get_mut(host).filter(|site| site.reading.is_none() && site.digesting == 0) else { return };
        if site.wishes.rest_after(self.scheduler.politeness(), took, None) > 0 {
            return;
        }
        let Some(Asking::Page(waiting)) = &site.asking else { return };
        if site.crawl_delay(&waiting.url.origin()).is_some_and(|delay| delay > 0) {
            return;
        }
        let Some(Asking::Page(waiting)) = site.asking.take() else { return };
        let at = site.address;
        let Some(host) = self.in_flight.remove(&address) else { return };
        let url = waiting.url.clone();
        site.reading = Some(waiting);
        self.scheduler.give_back(address, now);
        self.scheduler.want(at, &host, Asks::Further);
        self.received.insert(address, (host, url));
    }

    /// An answer came from an address, to a request for this URL: whose is it? None if nothing was asked.
    pub(super) fn returned(&mut self, sites: &mut Sites, address: IpAddr, url: &PageUrl) -> Option<Returned> {
        if self.received.get(&address).is_some_and(|(_, reading)| reading == url) {
            let (host, _) = self.received.remove(&address)?;
            let page = sites.get_mut(&host).and_then(|site| site.reading.take_if(|reading| reading.url == *url));
            return Some(Returned { host, asking: page.map(Asking::Page), given_back: true });
        }
        let host = self.in_flight.remove(&address)?;
        let asking = sites.get_mut(&host).and_then(|site| site.asking.take());
        Some(Returned { host, asking, given_back: false })
    }

    /// After an answer the address rests until then.
    pub(super) fn rest_after(&mut self, address: IpAddr, until: Moment, given_back: bool) {
        if given_back {
            self.scheduler.rest(address, until);
        } else {
            self.scheduler.give_back(address, until);
        }
    }

    /// The addresses that are being asked, with the site whose question it is.
    pub(super) fn under_way(&self) -> impl Iterator<Item = (IpAddr, &Host)> {
        self.in_flight.iter().map(|(address, host)| (*address, host))
    }

    /// How many addresses are being asked.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Whether a request is under way, or a page that came is being read.
    pub(crate) fn is_busy(&self) -> bool {
        !self.in_flight.is_empty() || !self.received.is_empty()
    }

    /// Whose turn is it? To be read.
    pub(crate) fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }
}
