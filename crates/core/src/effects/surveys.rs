//! Effects of surveys: what they wish for holds for every site, and servers of their samples are probed.

use crate::{
    crawler::{Crawler, MAX_OUTGOING},
    event::SurveyEvent,
    pending::Pending,
    routing::outbox::Item,
    survey::probing::{ProbeStep, TURN},
};
use nearcrawl_model::{
    fetch::ProbeReport,
    ids::{QuestionId, Ticket},
    journal::Arrival,
    message::{Request, Response},
    time::Millis,
    url::Host,
};
use std::net::IpAddr;

/// What three connects to a server far away take.
const USUAL_PROBE: Millis = 1_000;

impl Crawler {
    /// A survey of our own is made or changed, or one is durable.
    pub(crate) fn survey(&mut self, event: SurveyEvent) {
        match event {
            SurveyEvent::Made(signed) => self.surveys.make(&mut self.context, signed),
            SurveyEvent::Stored { write } => {
                if self.surveys.stored(&mut self.context, &self.membership, write) {
                    self.crawl.wishes_changed(&mut self.context);
                }
            }
            SurveyEvent::ProbesStored { write } => self.surveys.probes_stored(&mut self.context, write),
        }
    }

    /// A probe of ours ended: a survey's, or one that delegation wanted.
    pub(crate) fn probed(&mut self, question: QuestionId, report: ProbeReport) {
        if let Some(address) = self.surveys.probed(&mut self.context, question, &report) {
            let subnet = self.context.hierarchy.unit_of(address);
            let rest = self.context.settings.politeness.rest_after(report.took, None);
            return self.delegation.rest_subnet(&self.context, subnet, rest);
        }
        let (delegation, context, others) = self.delegating();
        delegation.probed(context, others, question, report)
    }

    /// The next server of a survey's sample is probed, if it may be: its owner says when, so that the rests of its address are kept.
    fn probe_for_surveys(&mut self) {
        if self.view().held_back().is_some() {
            return;
        }
        let now = self.context.now.moment;
        let lookup = |host: &Host| self.routing.locator().lookup(host, now);
        let owner_of = |address| self.ownership.register().around(address).filter(|claim| !claim.released).map(|claim| claim.owner);
        match self.surveys.next_step(&mut self.context, lookup, owner_of) {
            ProbeStep::Nothing => {}
            ProbeStep::Contact(server, target) => {
                let may = self.delegation.contact_for_survey(&mut self.context, &target).is_ok();
                self.surveys.contact(&mut self.context, &server, target, may);
            }
            ProbeStep::Find(host) => self.routing.find(&mut self.context, &self.membership, &host),
            ProbeStep::AskTurn(owner, address) if owner == self.context.me => {
                let after = self.lend_turn(address);
                self.surveys.turn_told(&self.context, Some(after));
            }
            ProbeStep::AskTurn(owner, address) => self.context.ask(owner, Pending::ProbeTurn, Request::ProbeTurn(address)),
        }
    }

    /// A member wants to probe an address of ours for a survey. It may although we ask nothing ourselves, as long as the address surely is ours.
    pub(crate) fn probe_turn_wanted(&mut self, ticket: Ticket, address: IpAddr) {
        let is_ours = self.ownership.register().around(address).is_some_and(|claim| claim.owner == self.context.me && !claim.released);
        let is_sure = self.membership.no_lease(self.context.now.moment).is_none() && self.ownership.is_synced();
        let answer = match is_ours && is_sure {
            true => Response::ProbeTurn(self.lend_turn(address)),
            false => Response::Refused("it does not own the address, or is not sure of it at the moment".to_owned()),
        };
        self.answer(ticket, answer);
    }

    /// Leaves an address of ours, and what is around it, to somebody else for one probe: after how many milliseconds; none if that cannot be
    /// said now.
    fn lend_turn(&mut self, address: IpAddr) -> Option<Millis> {
        let (now, subnet) = (self.context.now.moment, self.context.hierarchy.unit_of(address));
        // Only what is loaded tells when the last request was.
        if self.ownership.register().around(address).is_some_and(|claim| self.replication.is_loading(&claim.subnet)) {
            return None;
        }
        if self.delegation.rests_until(&subnet).is_some_and(|until| until > now) {
            return None;
        }
        let length = TURN + self.context.settings.politeness.rest_after(USUAL_PROBE, None);
        let asks = self.view().held_back().is_none();
        let after = self.crawl.lend(&self.context, address, length, asks)?.since(now);
        self.delegation.rest_subnet_as_told(&mut self.context, subnet, after + length);
        Some(after)
    }

    /// Surveys end, are compared with those of other members, and the starting URLs that are for us to name are named.
    pub(crate) fn tick_surveys(&mut self) {
        if self.surveys.tick(&mut self.context, &self.membership) {
            self.crawl.wishes_changed(&mut self.context);
        }
        if !self.ownership.is_synced() || self.shutdown.is_stopping() || self.routing.outbox().len() >= MAX_OUTGOING / 2 {
            return;
        }
        self.probe_for_surveys();
        let urls = self.surveys.next_to_place(&self.context, &self.membership);
        if !urls.is_empty() {
            self.routing.put(urls.into_iter().map(|url| Item { arrival: Arrival { url, place: None, run: 1 }, origin: None }));
            self.route();
        }
    }
}
