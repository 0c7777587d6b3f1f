//! robots.txt came, or moved: what now? It is followed to other hosts too, but only where this access point may ask.

use crate::crawler::Crawler;
use crate::routing::{locator::Lookup, outbox::Item};
use nearcrawl_model::{
    fetch::{FetchError, FetchOrder, FetchOutcome, FetchPurpose, FetchReport},
    journal::{Arrival, JournalEntry},
    time::Millis,
    url::{Host, Origin, PageUrl},
};
use std::net::IpAddr;

/// How soon to look again whether it is known where a robots.txt that moved lies.
pub(crate) const SEARCH_AGAIN: Millis = 1_000;

/// Whom an order goes to.
#[derive(Debug)]
pub(crate) enum Asked {
    /// The server at its address.
    There(FetchOrder),
    /// Not known yet, or not settled yet whose server it is.
    Later,
    /// Nobody: that it cannot be had is written down already.
    Never,
}

impl Crawler {
    /// Where an order goes to. All go to the site's own address, but a robots.txt that moved to another host lies where that host
    /// lives: it is asked for if we own the subnet there, so that a server is never asked by two members at once.
    pub(crate) fn place_of(&mut self, host: &Host, order: FetchOrder) -> Asked {
        let target = order.url.host();
        if order.purpose == FetchPurpose::Page || target == *host {
            return Asked::There(order);
        }
        let Some(site) = self.crawl.sites.get_mut(host) else { return Asked::Later };
        let Some(origin) = site.frontier.first().map(|waiting| waiting.url.origin()) else { return Asked::Later };
        let in_scope =
            self.context.settings.scope.admits(&target) || (target.is_within(&site.tree) && !self.context.settings.scope.denies(&target));
        let (home, run) = (site.address, site.key.run);
        let found = match self.routing.locator().lookup(&target, self.context.now.moment) {
            _ if !in_scope => None,
            Lookup::At(located) if located.address == home => Some(Some(home)),
            Lookup::At(located) => self.may_ask_at(located.address, &order.url, run),
            Lookup::Nowhere(_) => None,
            Lookup::Unknown => {
                self.routing.find(&mut self.context, &self.membership, &target);
                Some(None)
            }
        };
        match found {
            Some(Some(address)) => Asked::There(FetchOrder { address, ..order }),
            Some(None) if self.crawl.sites.get_mut(host).is_some_and(|site| site.robots_searched(&origin)) => Asked::Later,
            Some(None) | None => {
                // The server did answer, with a redirect that leads nowhere for us: the rules there cannot be had (RFC 9309 §2.3.1.4).
                let answer = Err(FetchError::BadRedirect);
                self.journal(host, JournalEntry::Robots { origin, at: self.context.now.wall, answer, took: 0 });
                Asked::Never
            }
        }
    }

    /// The address if it is ours to ask, inner none if nobody has it yet, none if it is another member's. Then the host is named to
    /// whoever crawls it, as a link to it would be: what cannot be crawled here for want of its robots.txt is not lost there.
    pub(crate) fn may_ask_at(&mut self, address: IpAddr, url: &PageUrl, run: u32) -> Option<Option<IpAddr>> {
        let claim = self.ownership.register.around(address).filter(|claim| !claim.released);
        let (ours, others) =
            (claim.filter(|claim| claim.owner == self.context.me).map(|claim| claim.subnet), claim.map(|claim| claim.owner));
        if let Some(subnet) = ours {
            let ready = !self.ownership.is_watched(&subnet) && !self.replication.is_loading(&subnet);
            return Some(ready.then_some(address));
        }
        let host = url.host();
        let known = self.routing.first_for(&host).is_some();
        if !known && self.crawl.links.admits_host(&host, self.context.secret.of(host.as_str()), self.context.now.moment) {
            self.routing.put([Item { arrival: Arrival { url: url.root(), place: None, run }, origin: None }]);
        }
        if others.is_some() { None } else { Some(None) }
    }

    /// robots.txt was answered: with a redirect, with rules, or not.
    pub(crate) fn robots_came(&mut self, host: &Host, address: IpAddr, origin: Origin, report: FetchReport) {
        let Some(site) = self.crawl.sites.get_mut(host) else { return };
        let failed = |status: u16| status >= 500 || status == 429;
        let answer = match report.outcome {
            FetchOutcome::Redirect { to, .. } if site.robots_moved(&origin, &to.url) => return self.want(host),
            // It leads on and on, or in circles: as if there were none (RFC 9309 §2.3.1.2).
            FetchOutcome::Redirect { .. } => Ok((404, Vec::new())),
            FetchOutcome::Robots { status, body } => Ok((status, body.to_vec())),
            FetchOutcome::Page { status, .. } | FetchOutcome::NotHtml { status, .. } | FetchOutcome::Status(status) => {
                Ok((status, Vec::new()))
            }
            FetchOutcome::NotModified { .. } => Ok((304, Vec::new())),
            FetchOutcome::Failed(failure) => Err(failure),
        };
        if answer.as_ref().map_or(true, |(status, _)| failed(*status))
            && let Some(pause) = site.robots_failed(&origin)
        {
            self.crawl.scheduler.rest(address, self.context.now.moment.after(pause));
            return self.want(host);
        }
        let (at, took) = (self.context.now.wall, report.took);
        self.journal(host, JournalEntry::Robots { origin: origin.clone(), at, answer, took });
        if let Some(site) = self.crawl.sites.get(host)
            && let Some(delay) = site.crawl_delay(&origin)
        {
            // It holds from the answer that says so.
            self.crawl.scheduler.rest(site.address, self.context.now.moment.after(delay));
        }
        self.want(host);
    }
}
