//! A URL is named: where does it belong? Host → address (its steward) → subnet (hierarchy) → owner (claims) → there.

use crate::routing::{locator::Lookup, outbox::Item};
use crate::{
    crawl::admission::Reply,
    crawler::{Crawler, Pending},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    fetch::{LocatedHost, ResolveError},
    journal::Arrival,
    message::{Request, Response},
    time::Millis,
    url::{Host, PageUrl},
};
use std::collections::BTreeMap;

/// How long a steward may take to answer before it is asked again.
const STEWARD_PATIENCE: Millis = 15_000;

impl Crawler {
    /// People named starting points: external links of nobody.
    pub(crate) fn seeds(&mut self, urls: Vec<PageUrl>) {
        self.context.counters.seeds += urls.len() as u64;
        for url in urls {
            if self.context.settings.scope.denies(&url.host()) {
                self.refuse("hosts on the deny list");
            } else {
                self.routing.outbox.put(Item { arrival: Arrival { url, place: None, run: 1 }, origin: None });
            }
        }
        self.route();
    }

    /// Routes every parcel that may have become routable.
    pub(crate) fn route(&mut self) {
        if self.shutdown.is_over() || (self.shutdown.is_draining() && self.routing.outbox.is_empty()) {
            return;
        }
        let now = self.context.now.moment;
        let mut bound: BTreeMap<AccessPoint, Vec<LocatedHost>> = BTreeMap::new();
        for host in self.routing.outbox.due(now) {
            match self.routing.locator.lookup(&host, now) {
                Lookup::At(located) => match self.owner_for(&located) {
                    Some(owner) if owner == self.context.me => self.admit_own(located),
                    Some(owner) => bound.entry(owner).or_default().push(located),
                    None => self.routing.outbox.later(&host, now),
                },
                Lookup::Nowhere(_) => {
                    let items = self.routing.outbox.take(&host);
                    self.context.counters.nowhere += items.len() as u64;
                    self.delivered(items);
                }
                Lookup::Unknown => {
                    self.find(&host);
                    self.routing.outbox.later(&host, now);
                }
            }
        }
        for (owner, hosts) in bound {
            if !self.routing.outbox.may_send(owner, now) {
                continue;
            }
            let question = self.number();
            let parcels = self.routing.outbox.pack(question, owner, &hosts, now);
            if !parcels.is_empty() {
                self.context.pending.insert(question, Pending::HandOff);
                self.context.commands.push_back(crate::event::Command::Peers(crate::event::PeerCommand::Ask {
                    to: owner,
                    question,
                    request: Request::HandOff(parcels),
                }));
            }
        }
    }

    /// Sees to it that this host's address becomes known.
    pub(crate) fn find(&mut self, host: &Host) {
        let steward = self.steward_of_host(host);
        if steward == self.context.me || host.address().is_some() {
            self.routing.locator.resolve(host, None);
            self.look_up();
        } else if self.routing.locator.should_ask(host, self.context.now.moment, STEWARD_PATIENCE) {
            self.ask(steward, Pending::Locate(host.clone()), Request::Locate(host.clone()));
        }
    }

    /// A member asks us, the host's steward, for its address.
    pub(crate) fn locate_for(&mut self, ticket: u64, host: Host) {
        match self.routing.locator.lookup(&host, self.context.now.moment) {
            Lookup::At(located) => self.answer(ticket, Response::Located(Ok(located))),
            Lookup::Nowhere(failure) => self.answer(ticket, Response::Located(Err(failure))),
            Lookup::Unknown => {
                self.routing.locator.resolve(&host, Some(ticket));
                self.look_up();
            }
        }
    }

    pub(crate) fn look_up(&mut self) {
        while let Some(host) = self.routing.locator.next_lookup() {
            self.context.counters.lookups += 1;
            self.context.commands.push_back(crate::event::Command::Web(crate::event::WebCommand::Resolve(host)));
        }
    }

    /// The DNS answered.
    pub(crate) fn resolved(&mut self, host: Host, answer: Result<LocatedHost, ResolveError>) {
        if let Err(failure) = &answer {
            *self.context.counters.unresolved.entry(*failure).or_default() += 1;
        }
        if answer == Err(ResolveError::ForbiddenAddress) {
            self.refuse("addresses that may not be contacted");
        }
        for ticket in self.routing.locator.resolved(&host, answer.clone(), self.context.now.moment) {
            self.answer(ticket, Response::Located(answer.clone()));
        }
        self.look_up();
        self.routing.outbox.wake(&host);
        self.route();
    }

    /// The host's steward answered.
    pub(crate) fn located(&mut self, host: &Host, answer: Result<LocatedHost, ResolveError>) {
        let fits = answer.as_ref().map_or(true, |located| located.host == *host);
        if !fits {
            self.refuse("answers that do not match the request");
            return;
        }
        self.routing.locator.learn(host, answer, self.context.now.moment);
        self.routing.outbox.wake(host);
        self.route();
    }

    /// A parcel that turned out to be for ourselves.
    pub(crate) fn admit_own(&mut self, located: LocatedHost) {
        let items = self.routing.outbox.take(&located.host);
        let arrivals = items.iter().map(|item| item.arrival.clone()).collect();
        self.admit(&located, arrivals, Reply::Own(items));
    }

    /// An owner answered a hand-off.
    pub(crate) fn handed_off(&mut self, question: u64, answer: Option<Response>) {
        let now = self.context.now.moment;
        match answer {
            Some(Response::HandedOff { not_mine }) => {
                let done = self.routing.outbox.landed(question, &not_mine);
                for host in &not_mine {
                    self.routing.outbox.later(host, now);
                }
                self.delivered(done);
            }
            Some(Response::Busy(pause)) => self.routing.outbox.bounced(question, now, pause.clamp(100, 30_000)),
            Some(_) | None => self.routing.outbox.bounced(question, now, 1_000),
        }
        self.route();
    }
}
