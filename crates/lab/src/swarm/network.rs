//! The simulated network between members: requests, responses and gossip, with delays, losses and partitions.

use super::{
    clocks::wall_time,
    disk::sort_rows,
    records::Stream,
    sim_event::SimEventKind,
    world::{Node, World, own_address},
};
use crate::rng::KeyedRng;
use nearcrawl_core::event::{AdmissionEvent, CopyAnswer, Event};
use nearcrawl_model::{
    access_point::AccessPoint,
    admission::Gate,
    ids::{QuestionId, Ticket, TransferId},
    journal::{JournalKey, JournalRow},
    message::{Gossip, Request, Response},
    packed::pack,
    rows_digest::Digests,
    subnet::Subnet,
    time::{Millis, WallTime},
    url::Host,
};
use postcard::ser_flavors::Size;
use serde::Serialize;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// How long a question waits for its answer.
const ANSWER_TIMEOUT: Millis = 10_000;

/// When it is known that a connection cannot be made because one of both has too many.
const NO_ROOM: Millis = 50;

/// What forwarding gossip once more takes.
const HOP: Millis = 35;

/// How much later a message is at most that comes late.
const LATE: Millis = 2_000;

/// What the process of an access point exchanges with a member.
pub(super) enum Exchange {
    /// Rows for a replica.
    Copy { sent: BTreeMap<JournalKey, u64> },
    /// What a replica has of journals.
    Compare,
    /// Rows of a member, as far as they have arrived.
    Recover { subnet: Subnet, host: Option<Host>, rows: Vec<JournalRow> },
}

/// What the wire adds to a question or an answer, in bytes: its length and number (4), a frame of yamux (12) and a record of Noise (18). TCP's
/// and IP's headers are not counted. A test of the daemon's swarm measures this.
const FRAMING: u64 = 34;

/// The same for one that goes with another at the same moment: they share the frame and the record.
const FRAMING_TOGETHER: u64 = 4;

/// The same if it is long, or its answer is: such a question opens a stream. Its protocol is named by both sides (41 bytes each), in three
/// frames the one way and four the other, in as many records.
const FRAMING_ALONE: u64 = 135;

/// The longest message that goes over the stream for short ones, in bytes.
const MAX_SHORT: usize = 32 << 10;

/// Whether a question of this class has a stream of its own, because its answer is long: rows and claims that are wanted, lists and ballots of
/// voters, the hierarchy.
fn is_answered_at_length(class: u8) -> bool {
    matches!(class, 7 | 11 | 12 | 18 | 19 | 20)
}

/// What the wire adds to a gossip message: its author, number, topic and signature (170 bytes), a frame and a record.
const GOSSIP_FRAMING: u64 = 215;

/// How often a member hears each gossip message, from neighbours in a mesh.
const GOSSIP_COPIES: u64 = 2;

/// What a member is told of each gossip message besides: that others have it.
const GOSSIP_NOTICES: u64 = 115;

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
        Request::Forward(_) => 24,
        Request::CompareTotals { .. } => 25,
        Request::TellClaims(_) => 26,
        Request::Confirm(..) => 27,
        Request::HostMoved(_) => 28,
        Request::TakeHost { .. } => 29,
        Request::Pinned(_) => 30,
        Request::Tell(_) => 31,
        Request::CompareRows(_) => 32,
        Request::ExchangeTotals(..) => 33,
        Request::ServerRows(_) => 34,
        Request::CrossTotals(..) => 35,
        Request::HistoryRows(_) => 36,
        Request::ExportRows(_) => 37,
        Request::CompareSurveys(_) => 38,
        Request::SendSurveys(_) => 39,
        Request::Distinct(_) => 40,
        Request::SurveyProbes(_) => 41,
        Request::ProbeTurn(_) => 42,
        Request::CompareOptOuts(_) => 43,
        Request::SendOptOuts(_) => 44,
        Request::CompareAdmissions(_) => 45,
        Request::SendAdmissions(_) => 46,
        Request::RequestsMade(_) => 47,
        Request::Why(_) => 48,
        Request::KeepRecord(_) => 49,
        Request::Records(_) => 50,
        Request::CompareRecord(_) => 51,
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
        Gossip::Surveys(_) => 132,
        Gossip::OptOuts(_) => 133,
        Gossip::Admissions(_) => 134,
        Gossip::Profile(_) => 135,
        Gossip::Leaving => 136,
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
        if !self.lets_in(one, other) || !self.lets_in(other, one) {
            return false;
        }
        let new = self.nodes.get_mut(&one).is_some_and(|node| node.linked.insert(other));
        if let Some(node) = self.nodes.get_mut(&other) {
            node.linked.insert(one);
        }
        if new {
            for (me, you) in [(one, other), (other, one)] {
                if let Some(shown) = self.nodes.get(&you).and_then(|node| node.certificate.clone()) {
                    let shown = Event::Admission(AdmissionEvent::Shown(Box::new(shown)));
                    self.schedule(me, 4, SimEventKind::Event(Box::new(shown)));
                }
                let incarnation = self.nodes.get(&you).map_or(0, Node::incarnation);
                let addresses = vec![format!("/sim/{}", self.number_of(you).unwrap_or(0))];
                let (access_point, rtt_us) = (self.identity_of(you), self.distance_us(me, you));
                let remote = self.number_of(you).map(own_address);
                self.schedule(me, 5, SimEventKind::Event(Box::new(Event::Connected { access_point, incarnation, addresses, remote })));
                self.schedule(me, 6, SimEventKind::Event(Box::new(Event::Distance { to: access_point, rtt_us, remote: None })));
            }
        }
        true
    }

    /// Whether the gate of one lets in another, by the certificate that it shows.
    fn lets_in(&self, one: AccessPoint, other: AccessPoint) -> bool {
        let Some(gate) = self.nodes.get(&one).map(|node| &node.gate).filter(|gate| !gate.is_open()) else { return true };
        let shown = self.nodes.get(&other).and_then(|node| node.certificate.as_ref());
        gate.judge_shown(&self.identity_of(other), shown, WallTime(wall_time(self.now))).is_ok()
    }

    /// An access point lets in only who passes this gate, and hangs up on those that do not any more.
    pub(super) fn guard(&mut self, who: AccessPoint, gate: Arc<Gate>) {
        let Some(node) = self.nodes.get_mut(&who) else { return };
        node.gate = gate;
        let linked = node.linked.clone();
        for other in linked.into_iter().filter(|other| !self.lets_in(who, *other)).collect::<Vec<_>>() {
            for (one, other) in [(who, other), (other, who)] {
                self.nodes.get_mut(&one).map(|node| node.linked.remove(&other));
            }
        }
    }

    /// Asks a member something.
    pub(super) fn ask(&mut self, who: AccessPoint, to: AccessPoint, question: QuestionId, mut request: Request) {
        self.faults.liars.asks(self.number(who), &mut request);
        let to = self.process_of(who, to);
        self.wires += 1;
        let wire = self.wires;
        let class = request_class(&request);
        *self.questions.entry(request.kind()).or_default() += 1;
        self.link(who, to);
        if question != QuestionId::NO_ANSWER
            && let Some(node) = self.nodes.get_mut(&who)
        {
            node.waiting.insert(wire, question);
            // Who has no connection to spare knows that at once.
            let patience = if self.carries(who, to) { ANSWER_TIMEOUT } else { NO_ROOM };
            self.schedule(who, patience, SimEventKind::Answered { wire, from: to, class, response: None });
        }
        self.count_question(who, to, &request);
        let transmission = self.transmission(who, to, class, self.loss);
        if transmission.lost || !self.together(who, to) || !self.carries(who, to) {
            return self.end_stream(who, to);
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
        if !self.together(from, who) || self.drops(who, &request) || !self.lets_in(who, from) {
            return;
        }
        self.count_arrival(from, who, class);
        for (voter, empty) in self.faults.liars.brings(self.number(who), self.identity_of(who), &request) {
            self.ask(who, voter, QuestionId::NO_ANSWER, empty);
        }
        self.wires += 1;
        let ticket = Ticket(self.wires);
        if let Some(node) = self.nodes.get_mut(&who) {
            node.tickets.insert(ticket, (from, life, wire, class));
        }
        self.tell(who, Event::Asked { from: self.identity_of(from), ticket, request });
    }

    /// Whether a member leaves aside what it is to pass on, or to answer.
    fn drops(&self, who: AccessPoint, request: &Request) -> bool {
        let (liars, number) = (&self.faults.liars, self.number(who));
        let Request::Forward(sealed) = request else { return liars.is_silent(number, request) };
        let is_its_own = || sealed.read().is_ok_and(|question| question.to == self.identity_of(who));
        liars.drops.contains(&number) && !is_its_own()
    }

    /// Sends an answer off.
    pub(super) fn answer(&mut self, who: AccessPoint, ticket: Ticket, mut response: Response) {
        self.faults.liars.answers(self.number(who), &mut response);
        let Some((to, life, wire, class)) = self.nodes.get_mut(&who).and_then(|node| node.tickets.remove(&ticket)) else { return };
        let bytes = self.on_the_wire((to, who), true, class, &response);
        self.count_bytes(response.kind(), bytes);
        let transmission = self.transmission(who, to, ANSWER + class, self.loss);
        if transmission.lost || !self.together(who, to) {
            return self.end_stream(to, who);
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
        let Some(question) = self.nodes.get_mut(&who).and_then(|node| node.waiting.remove(&wire)) else { return };
        self.tell(who, Event::Answered { question, from: self.identity_of(from), answer });
    }

    /// The process of an access point asks a member something by way of its crawler.
    pub(super) fn exchange(&mut self, who: AccessPoint, with: AccessPoint, request: Request, exchange: Exchange) {
        self.wires += 1;
        let transfer = TransferId(self.wires);
        let Some(node) = self.nodes.get_mut(&who) else { return };
        node.exchanges.insert(transfer, (with, exchange));
        // After what the present event orders.
        self.schedule(who, 0, SimEventKind::Event(Box::new(Event::Transfer { transfer, to: with, request })));
    }

    /// What the process asked was answered, or was not.
    pub(super) fn transferred(&mut self, who: AccessPoint, transfer: TransferId, answer: Option<Response>) {
        let Some((with, exchange)) = self.nodes.get_mut(&who).and_then(|node| node.exchanges.remove(&transfer)) else { return };
        let event = match (exchange, answer) {
            (Exchange::Copy { sent }, answer) => {
                let answer = match answer {
                    Some(Response::Kept(heads)) => CopyAnswer::Kept(heads),
                    Some(Response::NoRoom) => CopyAnswer::NoRoom,
                    Some(_) | None => CopyAnswer::Failed,
                };
                Event::Copied { to: with, sent, answer }
            }
            (Exchange::Compare, Some(Response::RowsCompared(told))) => {
                let Some(node) = self.nodes.get(&who) else { return };
                let common = |(key, told): (JournalKey, Digests)| (key.clone(), node.disk.rows_in_common(&key, told));
                let heads: Vec<_> = told.into_iter().map(common).collect();
                Event::Copied { to: with, sent: heads.iter().cloned().collect(), answer: CopyAnswer::Compared(heads) }
            }
            (Exchange::Compare, _) => Event::Copied { to: with, sent: BTreeMap::new(), answer: CopyAnswer::Failed },
            (Exchange::Recover { subnet, host, mut rows }, Some(Response::Recalled(more, next))) => {
                let wanted = |key: &JournalKey| host.as_ref().is_none_or(|host| *host == key.host);
                rows.extend(more.into_iter().filter(|row| wanted(&row.key)));
                if let Some(next) = next.filter(|(key, _)| wanted(key)) {
                    return self.exchange(who, with, Request::Recall(subnet, Some(next)), Exchange::Recover { subnet, host, rows });
                }
                Event::Recovered { subnet, host, from: with, journals: Some(sort_rows(rows)), bytes: 0 }
            }
            (Exchange::Recover { subnet, host, .. }, _) => Event::Recovered { subnet, host, from: with, journals: None, bytes: 0 },
        };
        self.schedule(who, 0, SimEventKind::Event(Box::new(event)));
    }

    /// Counts a message that arrived, if anybody asks.
    pub(super) fn count_arrival(&mut self, from: AccessPoint, to: AccessPoint, class: u8) {
        if let Some(arrivals) = &mut self.arrivals {
            let number = |who: &AccessPoint| self.nodes.get(who).map_or(u32::MAX, |node| node.number);
            *arrivals.entry((number(&from), number(&to), class)).or_default() += 1;
        }
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
        let each = GOSSIP_COPIES * (GOSSIP_FRAMING + encoded_len(gossip)) + GOSSIP_NOTICES;
        self.count_bytes(gossip.kind(), receivers * each);
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

    /// Counts a question. Rows of journals that are sent to a replica which has them already are counted apart. Nothing is sent to a process
    /// that does not run: there is no connection.
    fn count_question(&mut self, from: AccessPoint, to: AccessPoint, request: &Request) {
        if !self.runs(to) {
            return;
        }
        let (mut there, mut rows_there) = (0, 0);
        let bytes = self.on_the_wire((from, to), false, request_class(request), request);
        if let (Request::Keep(rows), Some(node)) = (request, self.nodes.get(&to)) {
            let has =
                |row: &&JournalRow| node.disk.journals.get(&row.key).and_then(|journal| journal.get(&row.sequence)) == Some(&row.entry);
            rows_there = rows.iter().filter(has).count() as u64;
            there = bytes * rows_there / (rows.len() as u64).max(1);
        }
        if there > 0 {
            self.count_bytes("copies of what is there", there);
        }
        if rows_there == 0 || there < bytes {
            self.count_bytes(request.kind(), bytes - there);
        }
    }

    /// What a question, or the answer to one, takes on its way between who asks and who is asked; 0 if nobody counts.
    fn on_the_wire(&mut self, (from, to): (AccessPoint, AccessPoint), answers: bool, class: u8, message: &impl Serialize) -> u64 {
        let life = |who: &AccessPoint| self.nodes.get(who).map_or(0, |node| node.life);
        let lives = (life(&from), life(&to));
        let Some(records) = &mut self.records else { return 0 };
        let Ok(said) = postcard::to_stdvec(message) else { return 0 };
        if is_answered_at_length(class) || said.len() > MAX_SHORT {
            return FRAMING_ALONE + pack(&said).len() as u64;
        }
        let stream = records.streams.entry((from, to)).or_default();
        if stream.lives != lives {
            *stream = Stream { lives, ..Stream::default() };
        }
        let (packer, last) = if answers { &mut stream.answers } else { &mut stream.questions };
        let framing = if last.replace(self.now) == Some(self.now) { FRAMING_TOGETHER } else { FRAMING };
        framing + packer.pack(&said).len() as u64
    }

    /// The connection of these two may be broken: the next question opens a stream.
    fn end_stream(&mut self, from: AccessPoint, to: AccessPoint) {
        if let Some(records) = &mut self.records {
            records.streams.remove(&(from, to));
        }
    }

    /// Counts bytes that one member sends and another receives.
    pub(super) fn count_bytes(&mut self, kind: &'static str, bytes: u64) {
        if let Some(records) = &mut self.records {
            records.bytes += bytes;
            *records.bytes_by_kind.entry(kind).or_default() += bytes;
        }
    }
}

/// The length of a message as it is encoded, in bytes.
fn encoded_len(message: &impl Serialize) -> u64 {
    postcard::serialize_with_flavor(message, Size::default()).unwrap_or(0) as u64
}
