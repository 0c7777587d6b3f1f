//! A URL is named: where does it belong? Host → address (its steward) → subnet (hierarchy) → owner (claims) → there.

use super::{Crawler, Pending, admission::Reply};
use crate::{
    logic::{locator::Lookup, outbox::Item},
    model::{
        access_point::AccessPoint,
        fetch::{LocatedHost, ResolveFailure},
        journal::Arrival,
        message::{Request, Response},
        time::Millis,
        url::{Host, PageUrl},
    },
};
use std::collections::BTreeMap;

/// How long a steward may take to answer before it is asked again.
const STEWARD_PATIENCE: Millis = 15_000;

impl Crawler {
    /// People named starting points: external links of nobody.
    pub(super) fn seeds(&mut self, urls: Vec<PageUrl>) {
        self.counters.seeds += urls.len() as u64;
        for url in urls {
            if self.settings.scope.denies(&url.host()) {
                self.refuse("hosts on the deny list");
            } else {
                self.outbox.put(Item { arrival: Arrival { url, place: None, run: 1 }, origin: None });
            }
        }
        self.route();
    }

    /// Routes every parcel that may have become routable.
    pub(super) fn route(&mut self) {
        if self.releasing || self.finished || (self.draining && self.outbox.is_empty()) {
            return;
        }
        let now = self.now.moment;
        let mut bound: BTreeMap<AccessPoint, Vec<LocatedHost>> = BTreeMap::new();
        for host in self.outbox.due(now) {
            match self.locator.lookup(&host, now) {
                Lookup::At(located) => match self.owner_for(&located) {
                    Some(owner) if owner == self.me => self.admit_own(located),
                    Some(owner) => bound.entry(owner).or_default().push(located),
                    None => self.outbox.later(&host, now),
                },
                Lookup::Nowhere(_) => {
                    let items = self.outbox.take(&host);
                    self.counters.nowhere += items.len() as u64;
                    self.delivered(items);
                }
                Lookup::Unknown => {
                    self.find(&host);
                    self.outbox.later(&host, now);
                }
            }
        }
        for (owner, hosts) in bound {
            if !self.outbox.may_send(owner, now) {
                continue;
            }
            let question = self.number();
            let parcels = self.outbox.pack(question, owner, &hosts, now);
            if !parcels.is_empty() {
                self.pending.insert(question, Pending::HandOff);
                self.commands.push_back(super::Command::Ask { to: owner, question, request: Request::HandOff(parcels) });
            }
        }
    }

    /// Sees to it that this host's address becomes known.
    pub(super) fn find(&mut self, host: &Host) {
        let steward = self.steward_of_host(host);
        if steward == self.me || host.address().is_some() {
            self.locator.resolve(host, None);
            self.look_up();
        } else if self.locator.should_ask(host, self.now.moment, STEWARD_PATIENCE) {
            self.ask(steward, Pending::Locate(host.clone()), Request::Locate(host.clone()));
        }
    }

    /// A member asks us, the host's steward, for its address.
    pub(super) fn locate_for(&mut self, ticket: u64, host: Host) {
        match self.locator.lookup(&host, self.now.moment) {
            Lookup::At(located) => self.answer(ticket, Response::Located(Ok(located))),
            Lookup::Nowhere(failure) => self.answer(ticket, Response::Located(Err(failure))),
            Lookup::Unknown => {
                self.locator.resolve(&host, Some(ticket));
                self.look_up();
            }
        }
    }

    fn look_up(&mut self) {
        while let Some(host) = self.locator.next_lookup() {
            self.counters.lookups += 1;
            self.commands.push_back(super::Command::Resolve(host));
        }
    }

    /// The DNS answered.
    pub(super) fn resolved(&mut self, host: Host, answer: Result<LocatedHost, ResolveFailure>) {
        if let Err(failure) = &answer {
            *self.counters.unresolved.entry(*failure).or_default() += 1;
        }
        if answer == Err(ResolveFailure::ForbiddenAddress) {
            self.refuse("addresses that may not be contacted");
        }
        for ticket in self.locator.resolved(&host, answer.clone(), self.now.moment) {
            self.answer(ticket, Response::Located(answer.clone()));
        }
        self.look_up();
        self.outbox.wake(&host);
        self.route();
    }

    /// The host's steward answered.
    pub(super) fn located(&mut self, host: &Host, answer: Result<LocatedHost, ResolveFailure>) {
        let fits = answer.as_ref().map_or(true, |located| located.host == *host);
        if !fits {
            self.refuse("answers that do not fit the question");
            return;
        }
        self.locator.learn(host, answer, self.now.moment);
        self.outbox.wake(host);
        self.route();
    }

    /// A parcel that turned out to be for ourselves.
    fn admit_own(&mut self, located: LocatedHost) {
        let items = self.outbox.take(&located.host);
        let arrivals = items.iter().map(|item| item.arrival.clone()).collect();
        self.admit(&located, arrivals, Reply::Own(items));
    }

    /// An owner answered a hand-off.
    pub(super) fn handed_off(&mut self, question: u64, answer: Option<Response>) {
        let now = self.now.moment;
        match answer {
            Some(Response::HandedOff { not_mine }) => {
                let done = self.outbox.landed(question, &not_mine);
                for host in &not_mine {
                    self.outbox.later(host, now);
                }
                self.delivered(done);
            }
            Some(Response::Busy(pause)) => self.outbox.bounced(question, now, pause.clamp(100, 30_000)),
            Some(_) | None => self.outbox.bounced(question, now, 1_000),
        }
        self.route();
    }
}
