//! A page came; must its server wait until it is read? Not if it needs no rest: then the next page is asked for meanwhile.
//!
//! One connection, one request at a time, as ever: only the reading of one page and the fetching of the next overlap. Whoever is polite
//! rests longer than reading takes, and nothing changes.

use crate::crawl::site::{Asking, frontier::Waiting};
use crate::crawler::Crawler;
use nearcrawl_model::{
    time::Millis,
    url::{Host, PageUrl},
};
use std::net::IpAddr;

impl Crawler {
    /// The token of an address that needs no rest goes back before its page is read.
    pub(crate) fn landed(&mut self, address: IpAddr, took: Millis) {
        if self.crawl.scheduler.politeness().rest_after(took, None) > 0 {
            return;
        }
        let Some(host) = self.crawl.in_flight.get(&address).filter(|_| !self.crawl.received.contains_key(&address)) else { return };
        let Some(site) = self.crawl.sites.get_mut(host).filter(|site| site.reading.is_none() && site.digesting == 0) else { return };
        let Some(Asking::Page(waiting)) = &site.asking else { return };
        if site.crawl_delay(&waiting.url.origin()).is_some_and(|delay| delay > 0) {
            return;
        }
        let Some(Asking::Page(waiting)) = site.asking.take() else { return };
        let at = site.address;
        let Some(host) = self.crawl.in_flight.remove(&address) else { return };
        let url = waiting.url.clone();
        site.reading = Some(waiting);
        self.crawl.scheduler.give_back(address, self.context.now.moment);
        self.crawl.scheduler.want(at, &host);
        self.crawl.received.insert(address, (host, url));
    }

    /// Whose page was being read at this address, if it is this one, and the page itself unless its site is gone or begun anew.
    pub(crate) fn read(&mut self, address: IpAddr, url: &PageUrl) -> Option<(Host, Option<Waiting>)> {
        self.crawl.received.get(&address).filter(|(_, reading)| reading == url)?;
        let (host, _) = self.crawl.received.remove(&address)?;
        let site = self.crawl.sites.get_mut(&host);
        let page = site.and_then(|site| site.reading.take_if(|reading| reading.url == *url));
        Some((host, page))
    }
}
