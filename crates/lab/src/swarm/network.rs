//! The simulated network between members: requests, responses and gossip, with delays, losses and partitions.

use super::{
    disk::{Journals, sort_rows},
    sim_event::SimEventKind,
    world::World,
};
use crate::rng::KeyedRng;
use nearcrawl_core::event::Event;
use nearcrawl_model::{
    access_point::AccessPoint,
    ids::{QuestionId, Ticket},
    journal::{JournalKey, JournalRow},
    message::{Gossip, Request, Response},
    subnet::Subnet,
    time::Millis,
};
use std::collections::BTreeMap;

/// How long a question waits for its answer.
const PATIENCE: Millis = 10_000;

/// What a question was asked for.
pub(super) enum Waiting {
    /// The crawler sent it.
    Crawler { question: QuestionId },
    /// Rows for a replica.
    Copy { sent: BTreeMap<JournalKey, u64> },
    /// Rows of a replica, as far as they have arrived.
    Recover { subnet: Subnet, rows: Vec<JournalRow> },
}

/// What kind of question this is.
fn kind(request: &Request) -> &'static str {
    match request {
        Request::Swim(_) | Request::Farewell(_) => "membership",
        Request::CompareClaims(_) => "comparison",
        Request::Locate(_) => "location",
        Request::FindOwner(..) | Request::Reserve(..) | Request::Probe(..) | Request::Award { .. } => "delegation",
        Request::HandOff(_) => "hand-off",
        Request::Offer { .. } | Request::TakeOver(_) => "migration",
        Request::Keep(_) | Request::Recall(..) => "keeping",
        Request::HierarchyManifest(_) | Request::HierarchyChunk { .. } => "hierarchy",
    }
}

/// The number of this kind of message. Delays and losses are drawn from it, so a number never changes its meaning.
fn request_class(request: &Request) -> u8 {
    match request {
        Request::Swim(_) => 0,
        Request::Locate(_) => 1,
        Request::FindOwner(..) => 2,
        Request::Probe(..) => 3,
        Request::Award { .. } => 4,
        Request::HandOff(_) => 5,
        Request::Keep(_) => 6,
        Request::Recall(..) => 7,
        Request::CompareClaims(_) => 8,
        Request::Farewell(_) => 9,
        Request::Reserve(..) => 10,
        Request::HierarchyManifest(_) => 11,
        Request::HierarchyChunk { .. } => 12,
        Request::Offer { .. } => 13,
        Request::TakeOver(_) => 14,
    }
}

/// Added to a request's number, the number of its answer.
const ANSWER: u8 = 64;

/// The number of this kind of gossip, see [`request_class`].
fn gossip_class(gossip: &Gossip) -> u8 {
    match gossip {
        Gossip::Claims(_) => 128,
        Gossip::RollUp(_) => 129,
        Gossip::Endorsement(_) => 130,
        Gossip::Distances(_) => 131,
    }
}

/// What becomes of one message.
pub(super) struct Transmission {
    pub(super) delay: Millis,
    lost: bool,
}

impl World {
    /// Draws a message's delay and loss from the seed, its sender, its receiver, its class and how many such messages there were before:
    /// what else is sent, and in which order, changes nothing.
    pub(super) fn transmission(&mut self, from: AccessPoint, to: AccessPoint, class: u8, loss: f64) -> Transmission {
        let number_of = |who: AccessPoint| self.nodes.get(&who).map_or(u32::MAX, |node| node.number);
        let (from, to) = (number_of(from), number_of(to));
        let count = self.sent.entry((from, to, class)).or_default();
        *count += 1;
        let draw = KeyedRng::new(self.config.seed).of(from.into()).of(to.into()).of(class.into()).of(*count);
        Transmission { delay: 10 + draw.of(0).below(50), lost: loss > 0.0 && draw.of(1).chance(loss) }
    }

    fn together(&self, one: AccessPoint, other: AccessPoint) -> bool {
        self.groups.get(&one) == self.groups.get(&other)
    }

    fn runs(&self, who: AccessPoint) -> bool {
        self.nodes.get(&who).is_some_and(|node| node.crawler.is_some())
    }

    /// Connects two access points if they can be: both say hello. Whether they are connected now.
    pub(super) fn link(&mut self, one: AccessPoint, other: AccessPoint) -> bool {
        if one == other || !self.runs(one) || !self.runs(other) || !self.together(one, other) {
            return false;
        }
        let new = self.nodes.get_mut(&one).is_some_and(|node| node.linked.insert(other));
        if let Some(node) = self.nodes.get_mut(&other) {
            node.linked.insert(one);
        }
        if new {
            for (me, you) in [(one, other), (other, one)] {
                let incarnation = self.nodes.get(&you).map_or(0, |node| node.life);
                let addresses = vec![format!("/sim/{}", self.members.iter().position(|member| *member == you).unwrap_or(0))];
                self.schedule(me, 5, SimEventKind::Event(Box::new(Event::Connected { access_point: you, incarnation, addresses })));
                let rtt_us = self.distance_us(me, you);
                self.schedule(me, 6, SimEventKind::Event(Box::new(Event::Distance { to: you, rtt_us, remote: None })));
            }
        }
        true
    }

    /// Asks a member something; what for is none if no answer is wanted.
    pub(super) fn ask(&mut self, who: AccessPoint, to: AccessPoint, request: Request, waiting: Option<Waiting>) {
        self.wires += 1;
        let wire = self.wires;
        let class = request_class(&request);
        *self.questions.entry(kind(&request)).or_default() += 1;
        if let Some(waiting) = waiting
            && let Some(node) = self.nodes.get_mut(&who)
        {
            node.waiting.insert(wire, waiting);
            self.schedule(who, PATIENCE, SimEventKind::Answered { wire, from: to, class, response: None });
        }
        self.link(who, to);
        let transmission = self.transmission(who, to, class, self.loss);
        if transmission.lost || !self.together(who, to) {
            return;
        }
        let life = self.nodes.get(&who).map_or(0, |node| node.life);
        self.schedule(to, transmission.delay, SimEventKind::Asked { from: who, life, wire, class, request: Box::new(request) });
    }

    /// A question arrives.
    pub(super) fn arrived(&mut self, who: AccessPoint, from: AccessPoint, life: u64, wire: u64, request: Request) {
        let class = request_class(&request);
        if !self.together(who, from) {
            return;
        }
        self.wires += 1;
        let ticket = Ticket(self.wires);
        if let Some(node) = self.nodes.get_mut(&who) {
            node.tickets.insert(ticket, (from, life, wire, class));
        }
        self.tell(who, Event::Asked { from, ticket, request });
    }

    /// Sends an answer off.
    pub(super) fn answer(&mut self, who: AccessPoint, ticket: Ticket, response: Response) {
        let Some((to, life, wire, class)) = self.nodes.get_mut(&who).and_then(|node| node.tickets.remove(&ticket)) else { return };
        let transmission = self.transmission(who, to, ANSWER + class, self.loss);
        if transmission.lost || !self.together(who, to) {
            return;
        }
        self.schedule_for_life(
            to,
            life,
            transmission.delay,
            SimEventKind::Answered { wire, from: who, class, response: Some(Box::new(response)) },
        );
    }

    /// An answer arrives, or does not come any more.
    pub(super) fn answer_arrived(&mut self, who: AccessPoint, wire: u64, from: AccessPoint, answer: Option<Response>) {
        if answer.is_some() && !self.together(who, from) {
            return;
        }
        let Some(waiting) = self.nodes.get_mut(&who).and_then(|node| node.waiting.remove(&wire)) else { return };
        match waiting {
            Waiting::Crawler { question } => self.tell(who, Event::Answered { question, from, answer }),
            Waiting::Copy { sent } => {
                let heads = if let Some(Response::Kept(heads)) = answer { Some(heads) } else { None };
                self.tell(who, Event::Copied { to: from, sent, heads });
            }
            Waiting::Recover { subnet, mut rows } => match answer {
                Some(Response::Recalled(more, next)) => {
                    rows.extend(more);
                    match next {
                        None => self.recovered(who, subnet, from, Some(sort_rows(rows))),
                        next => self.ask(who, from, Request::Recall(subnet, next), Some(Waiting::Recover { subnet, rows })),
                    }
                }
                Some(_) | None => self.recovered(who, subnet, from, None),
            },
        }
    }

    fn recovered(&mut self, who: AccessPoint, subnet: Subnet, from: AccessPoint, journals: Option<Journals>) {
        self.tell(who, Event::Recovered { subnet, from, journals });
    }

    /// Sends a gossip message to all access points that can be reached.
    pub(super) fn publish(&mut self, who: AccessPoint, gossip: &Gossip) {
        for other in self.members.clone() {
            if other == who || !self.runs(other) {
                continue;
            }
            let class = gossip_class(gossip);
            let transmission = self.transmission(who, other, class, self.gossip_loss);
            if !transmission.lost && self.together(who, other) {
                self.schedule(other, transmission.delay, SimEventKind::Gossiped { from: who, class, gossip: gossip.clone() });
            }
        }
    }
}
