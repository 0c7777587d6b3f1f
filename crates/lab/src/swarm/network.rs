//! The simulated network between members: requests, responses and gossip, with delays, losses and partitions.

use super::{
    disk::{Journals, sort_rows},
    sim_event::SimEventKind,
    world::{Node, World},
};
use crate::rng::KeyedRng;
use nearcrawl_core::event::{CopyAnswer, Event};
use nearcrawl_model::{
    access_point::AccessPoint,
    ids::{QuestionId, Ticket},
    journal::{JournalKey, JournalRow},
    message::{Gossip, Request, Response},
    subnet::Subnet,
    time::Millis,
};
use postcard::ser_flavors::Size;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// How long a question waits for its answer.
const PATIENCE: Millis = 10_000;

/// What forwarding gossip once more takes.
const HOP: Millis = 35;

/// How much later a message is at most that comes late.
const LATE: Millis = 2_000;

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
        Request::CompareClaims(_) | Request::SendClaims(_) => "comparison",
        Request::Locate(_) => "location",
        Request::FindOwner(..) | Request::Reserve(..) | Request::Probe(..) | Request::Award { .. } => "delegation",
        Request::HandOff(_) => "hand-off",
        Request::Offer { .. } | Request::TakeOver(_) => "migration",
        Request::Keep(_) => "copies",
        Request::Recall(..) | Request::Holds(_) => "recovery",
        Request::HierarchyManifest(_) | Request::HierarchyChunk { .. } => "hierarchy",
        Request::Totals => "totals",
        Request::Renew(_) => "leases",
        Request::Propose(_) | Request::Withdraw { .. } | Request::DoubleVote(_) => "votes",
        Request::Ballot(_) | Request::VoterLists(_) => "voter lists",
    }
}

/// What kind of question this answers.
fn answer_kind(response: &Response) -> &'static str {
    match response {
        Response::Noted => "membership",
        Response::Claims(..) | Response::Compared { .. } => "comparison",
        Response::Located(_) => "location",
        Response::FindingOwner(_) | Response::Probed(..) | Response::ProbeDeclined(..) => "delegation",
        Response::HandedOff { .. } | Response::Busy(_) => "hand-off",
        Response::Offered(_) => "migration",
        Response::Kept(..) | Response::NoRoom => "copies",
        Response::Recalled(..) | Response::Held { .. } => "recovery",
        Response::HierarchyManifest(_) | Response::HierarchyChunk(_) => "hierarchy",
        Response::Renewed(_) => "leases",
        Response::Voted(_) => "votes",
        Response::Ballot(_) | Response::VoterLists(_) => "voter lists",
        Response::Totals(_) => "totals",
        Response::Refused(_) => "refusals",
    }
}

/// What kind of gossip this is.
fn gossip_kind(gossip: &Gossip) -> &'static str {
    match gossip {
        Gossip::Claims(_) => "gossip of claims",
        Gossip::RollUp(_) => "gossip of totals",
        Gossip::Endorsement(_) => "gossip of editions",
        Gossip::Distances(_) => "gossip of distances",
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
        Request::Renew(_) => 15,
        Request::Propose(_) => 16,
        Request::Withdraw { .. } => 17,
        Request::Ballot(_) => 18,
        Request::VoterLists(_) => 19,
        Request::SendClaims(_) => 20,
        Request::Totals => 21,
        Request::DoubleVote(_) => 22,
        Request::Holds(_) => 23,
    }
}

/// Added to a request's number, the number of its answer.
const ANSWER: u8 = 64;

/// The first number of gossip.
const GOSSIP: u8 = 128;

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
    /// For what else happens to it.
    pub(super) draw: KeyedRng,
}

impl World {
    /// Draws a message's delay and loss from the seed, its sender, its receiver, its class and how many such messages there were before:
    /// what else is sent, and in which order, changes nothing.
    pub(super) fn transmission(&mut self, from: AccessPoint, to: AccessPoint, class: u8, loss: f64) -> Transmission {
        let number_of = |who: AccessPoint| self.nodes.get(&who).map_or(u32::MAX, |node| node.number);
        let who = (from, to);
        let (from, to) = (number_of(from), number_of(to));
        let count = self.sent.entry((from, to, class)).or_default();
        *count += 1;
        let draw = KeyedRng::new(self.config.seed).of(from.into()).of(to.into()).of(class.into()).of(*count);
        let delay = self.way(who.0, who.1, class, draw) + self.lateness(draw);
        Transmission { delay, lost: loss > 0.0 && draw.of(1).chance(loss), draw }
    }

    /// How long a message is under way.
    fn way(&self, from: AccessPoint, to: AccessPoint, class: u8, draw: KeyedRng) -> Millis {
        if !self.faults.delays_by_distance {
            return 10 + draw.of(0).below(50);
        }
        let half = (Millis::from(self.distance_us(from, to)) / 2_000).max(1);
        // Members forward gossip for each other: that takes up to two ways more.
        let jitter = if class >= GOSSIP { 2 * half } else { half / 4 };
        half + draw.of(0).below(1 + jitter)
    }

    /// Whether messages pass from one to the other.
    pub(super) fn together(&self, from: AccessPoint, to: AccessPoint) -> bool {
        self.groups.get(&from) == self.groups.get(&to) && self.passes(from, to)
    }

    pub(super) fn runs(&self, who: AccessPoint) -> bool {
        self.nodes.get(&who).is_some_and(|node| node.crawler.is_some())
    }

    /// Connects two access points if they can be: both say hello. Whether they are connected now.
    pub(super) fn link(&mut self, one: AccessPoint, other: AccessPoint) -> bool {
        let other = self.process_of(one, other);
        if one == other || !self.runs(one) || !self.runs(other) || !self.together(one, other) || !self.may_link(one, other) {
            return false;
        }
        let new = self.nodes.get_mut(&one).is_some_and(|node| node.linked.insert(other));
        if let Some(node) = self.nodes.get_mut(&other) {
            node.linked.insert(one);
        }
        if new {
            for (me, you) in [(one, other), (other, one)] {
                let incarnation = self.nodes.get(&you).map_or(0, Node::incarnation);
                let addresses = vec![format!("/sim/{}", self.number_of(you).unwrap_or(0))];
                let (access_point, rtt_us) = (self.identity_of(you), self.distance_us(me, you));
                self.schedule(me, 5, SimEventKind::Event(Box::new(Event::Connected { access_point, incarnation, addresses })));
                self.schedule(me, 6, SimEventKind::Event(Box::new(Event::Distance { to: access_point, rtt_us, remote: None })));
            }
        }
        true
    }

    /// Asks a member something; what for is none if no answer is wanted.
    pub(super) fn ask(&mut self, who: AccessPoint, to: AccessPoint, request: Request, waiting: Option<Waiting>) {
        let to = self.process_of(who, to);
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
        self.count_bytes(kind(&request), &request, 1);
        let transmission = self.transmission(who, to, class, self.loss);
        if transmission.lost || !self.together(who, to) || !self.carries(who, to) {
            return;
        }
        let life = self.nodes.get(&who).map_or(0, |node| node.life);
        if let Some(delay) = self.second_delivery(&transmission) {
            self.schedule(to, delay, SimEventKind::Asked { from: who, life, wire, class, request: Box::new(request.clone()) });
        }
        self.schedule(to, transmission.delay, SimEventKind::Asked { from: who, life, wire, class, request: Box::new(request) });
    }

    /// A question arrives.
    pub(super) fn arrived(&mut self, who: AccessPoint, from: AccessPoint, life: u64, wire: u64, request: Request) {
        let class = request_class(&request);
        if !self.together(from, who) {
            return;
        }
        self.count_arrival(from, who, class);
        self.wires += 1;
        let ticket = Ticket(self.wires);
        if let Some(node) = self.nodes.get_mut(&who) {
            node.tickets.insert(ticket, (from, life, wire, class));
        }
        self.tell(who, Event::Asked { from: self.identity_of(from), ticket, request });
    }

    /// Sends an answer off.
    pub(super) fn answer(&mut self, who: AccessPoint, ticket: Ticket, response: Response) {
        let Some((to, life, wire, class)) = self.nodes.get_mut(&who).and_then(|node| node.tickets.remove(&ticket)) else { return };
        self.count_bytes(answer_kind(&response), &response, 1);
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
    pub(super) fn answer_arrived(&mut self, who: AccessPoint, wire: u64, from: AccessPoint, class: u8, answer: Option<Response>) {
        if answer.is_some() && !self.together(from, who) {
            return;
        }
        if answer.is_some() {
            self.count_arrival(from, who, ANSWER + class);
        }
        let Some(waiting) = self.nodes.get_mut(&who).and_then(|node| node.waiting.remove(&wire)) else { return };
        let from = self.identity_of(from);
        match waiting {
            Waiting::Crawler { question } => self.tell(who, Event::Answered { question, from, answer }),
            Waiting::Copy { sent } => {
                let answer = match answer {
                    Some(Response::Kept(heads)) => CopyAnswer::Kept(heads),
                    Some(Response::NoRoom) => CopyAnswer::NoRoom,
                    Some(_) | None => CopyAnswer::Failed,
                };
                self.tell(who, Event::Copied { to: from, sent, answer });
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

    /// Counts a message that arrived, if anybody asks.
    pub(super) fn count_arrival(&mut self, from: AccessPoint, to: AccessPoint, class: u8) {
        if let Some(arrivals) = &mut self.arrivals {
            let number = |who: &AccessPoint| self.nodes.get(who).map_or(u32::MAX, |node| node.number);
            *arrivals.entry((number(&from), number(&to), class)).or_default() += 1;
        }
    }

    fn recovered(&mut self, who: AccessPoint, subnet: Subnet, from: AccessPoint, journals: Option<Journals>) {
        self.tell(who, Event::Recovered { subnet, from, journals, bytes: 0 });
    }

    /// Sends a gossip message to all access points that can be reached.
    pub(super) fn publish(&mut self, who: AccessPoint, gossip: &Gossip) {
        let ways = self.relays(who);
        let mut receivers = 0;
        for other in self.processes() {
            if other == who || !self.runs(other) {
                continue;
            }
            let class = gossip_class(gossip);
            let transmission = self.transmission(who, other, class, self.gossip_loss);
            let relayed = match &ways {
                None => self.together(who, other).then_some(0),
                Some(ways) => ways.get(&other).copied(),
            };
            let Some(relayed) = relayed.filter(|_| !transmission.lost) else { continue };
            receivers += 1;
            self.schedule(other, transmission.delay + relayed, SimEventKind::Gossiped { from: who, class, gossip: gossip.clone() });
        }
        self.count_bytes(gossip_kind(gossip), gossip, receivers);
    }
}

/// Who reaches whom.
impl World {
    pub(super) fn number(&self, who: AccessPoint) -> u32 {
        self.nodes.get(&who).map_or(u32::MAX, |node| node.number)
    }

    /// What members call a process.
    pub(super) fn identity_of(&self, process: AccessPoint) -> AccessPoint {
        self.nodes.get(&process).map_or(process, |node| node.identity)
    }

    /// All processes, the members in the order of their numbers.
    pub(super) fn processes(&self) -> Vec<AccessPoint> {
        self.members.iter().copied().chain(self.faults.clones.iter().map(|(_, process)| *process)).collect()
    }

    /// Which process a message to a member reaches: one of those that run with its key, always the same for one sender as long as it runs.
    pub(super) fn process_of(&self, from: AccessPoint, to: AccessPoint) -> AccessPoint {
        if self.faults.clones.is_empty() {
            return to;
        }
        let own = self.identity_of(from);
        let identity = self.identity_of(to);
        let alike = |process: &AccessPoint| self.identity_of(*process) == identity && self.runs(*process);
        let all: Vec<_> = self.processes().into_iter().filter(alike).collect();
        if own == identity || all.is_empty() {
            // No process dials its own key.
            return if own == identity { from } else { to };
        }
        let draw = KeyedRng::new(self.config.seed).of(0x636c_6f6e).of(self.number(from).into()).of(self.number(to).into());
        all[draw.below(all.len() as u64) as usize]
    }

    /// Whether no cut and no partition is in the way.
    pub(super) fn passes(&self, from: AccessPoint, to: AccessPoint) -> bool {
        let (from, to) = (self.number(from), self.number(to));
        let part = |number| self.faults.parts.get(&number).copied().unwrap_or(0);
        part(from) == part(to) && !self.faults.cut.contains(&(from, to))
    }

    /// Whether these two may be connected: both ways are open, both say hello, and both have room for one more.
    pub(super) fn may_link(&self, one: AccessPoint, other: AccessPoint) -> bool {
        let linked = |who: &AccessPoint| self.nodes.get(who).map_or(0, |node| node.linked.len());
        let is_linked = self.nodes.get(&one).is_some_and(|node| node.linked.contains(&other));
        let frozen = self.faults.frozen.contains_key(&one) || self.faults.frozen.contains_key(&other);
        let room = self.faults.limit.is_none_or(|limit| linked(&one) < limit && linked(&other) < limit);
        is_linked || self.passes(other, one) && !frozen && room
    }

    /// Whether a message can be sent at all: where connections are limited, over one.
    pub(super) fn carries(&self, from: AccessPoint, to: AccessPoint) -> bool {
        self.faults.limit.is_none() || self.nodes.get(&from).is_some_and(|node| node.linked.contains(&to))
    }

    /// How much later than directly gossip reaches everybody whom it reaches at all, forwarded by those who have it; none where all reach
    /// each other.
    pub(super) fn relays(&self, from: AccessPoint) -> Option<BTreeMap<AccessPoint, Millis>> {
        if self.faults.cut.is_empty() && self.faults.parts.is_empty() && self.faults.limit.is_none() {
            return None;
        }
        let all: Vec<_> = self.processes().into_iter().filter(|process| self.runs(*process)).collect();
        let mut reached = BTreeMap::from([(from, 0)]);
        let mut next = VecDeque::from([(from, 0)]);
        while let Some((at, hops)) = next.pop_front() {
            // Who stands still forwards nothing.
            if self.faults.frozen.contains_key(&at) {
                continue;
            }
            for other in &all {
                if !reached.contains_key(other) && self.together(at, *other) && self.carries(at, *other) {
                    reached.insert(*other, hops * HOP);
                    next.push_back((*other, hops + 1));
                }
            }
        }
        Some(reached)
    }

    /// How much later than others a message comes.
    pub(super) fn lateness(&self, draw: KeyedRng) -> Millis {
        let late = self.faults.disorder > 0.0 && draw.of(2).chance(self.faults.disorder);
        if late { draw.of(3).below(LATE) } else { 0 }
    }

    /// When a message comes a second time, if it does.
    pub(super) fn second_delivery(&self, first: &Transmission) -> Option<Millis> {
        let twice = self.faults.disorder > 0.0 && first.draw.of(4).chance(self.faults.disorder);
        twice.then(|| first.delay + 1 + first.draw.of(5).below(LATE))
    }

    /// Counts a message that goes to so many.
    pub(super) fn count_bytes(&mut self, kind: &'static str, message: &impl Serialize, receivers: u64) {
        if let Some(records) = &mut self.records {
            let bytes = postcard::serialize_with_flavor(message, Size::default()).unwrap_or(0);
            records.bytes += receivers * bytes as u64;
            *records.bytes_by_kind.entry(kind).or_default() += receivers * bytes as u64;
        }
    }
}
