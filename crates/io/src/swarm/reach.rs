//! How others reach us: directly, or through members that relay.
//!
//! Whether we are reached from outside is checked ([`super::checks`]); a daemon that is not holds places at members that relay
//! ([`super::reservations`]), and comes from connections through them to direct ones where both routers permit it ([`super::ways`]).

use super::{
    behaviour::Behaviour,
    checks::{Checks, MAX_ASKED},
    codec::Arrived,
    config::SwarmConfig,
    dial_back::{DialBack, DialBacks, DialedBack, MAX_PORTS},
    dialling::{DialLimits, Dialable, plain},
    members_only::Members,
    messages::{Reachability, Reached, SwarmCounters, count},
    port::Port,
    reservations::Reservations,
    ways::{AllWays, Ways, is_circuit, is_quic, to_dial},
};
use libp2p::{
    Multiaddr, PeerId,
    core::{ConnectedPoint, transport::ListenerId},
    dcutr, identify,
    multiaddr::Protocol,
    relay,
    request_response::{self, Message, OutboundRequestId, ResponseChannel},
    swarm::{
        self, ConnectionId,
        dial_opts::{DialOpts, PeerCondition},
    },
};
use nearcrawl_model::access_point::AccessPoint;
use rand::seq::SliceRandom;
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

type Libp2p = swarm::Swarm<Behaviour>;
type Answer = (ResponseChannel<DialedBack>, DialedBack);
type DialBackEvent = request_response::Event<Arrived<DialBack>, DialedBack>;

/// Where others are told to reach us: as many addresses as a member may have.
const MAX_ANNOUNCED: usize = 4;

/// Addresses of relays stand in the same list, so they are few.
const MAX_CIRCUITS: usize = 2;

/// Where others are told to reach us is told again at most this often.
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// Without a connection by QUIC to a relay, which shows where a hole may be, one is made this often.
const QUIC_EVERY: Duration = Duration::from_secs(60);

/// A question to a member on its way.
enum Open {
    /// Whether it reaches us at these ports.
    Check(PeerId, Vec<Port>),
    /// Whether it is still there.
    Relay(PeerId),
}

/// How others get to us.
pub(super) struct Reach {
    me: PeerId,
    /// Where the operator says that we are reached.
    announce: Vec<Multiaddr>,
    /// Whether we wait for others anywhere.
    listens: bool,
    relays: bool,
    /// Whether it does so now.
    offers: bool,
    /// Whether those that are no members are told if we reach them.
    tries_readers: bool,
    /// Whether QUIC may be used.
    quic: bool,
    members: Members,
    pub(super) ways: AllWays,
    checks: Checks,
    reservations: Reservations,
    dial_backs: DialBacks,
    answers: (mpsc::Sender<Answer>, mpsc::Receiver<Answer>),
    open: HashMap<OutboundRequestId, Open>,
    external: BTreeSet<Multiaddr>,
    told: (Reachability, Instant),
    next_quic: Instant,
    counters: Arc<SwarmCounters>,
}

/// What the swarm tells.
impl Reach {
    /// Of this access point.
    pub(super) fn new(config: &SwarmConfig, me: PeerId, members: Members, dialable: Dialable, counters: Arc<SwarmCounters>) -> Reach {
        let now = Instant::now();
        Reach {
            me,
            announce: config.announce.iter().filter_map(|text| text.parse().ok()).collect(),
            listens: !config.listen.is_empty(),
            relays: config.relays,
            offers: false,
            tries_readers: config.tries_readers,
            // QUIC has no pre-shared key, and does not leave from a given address.
            quic: config.pre_shared_key.is_none() && config.source_address.is_none(),
            members,
            ways: AllWays::default(),
            checks: Checks::new(now),
            reservations: Reservations::default(),
            dial_backs: DialBacks::new(config.source_address, config.pre_shared_key, dialable),
            answers: mpsc::channel(64),
            open: HashMap::new(),
            external: BTreeSet::new(),
            told: (Reachability::default(), now.checked_sub(TOLD_EVERY).unwrap_or(now)),
            next_quic: now,
            counters,
        }
    }

    /// A connection stands.
    pub(super) fn opened(&mut self, peer: PeerId, id: ConnectionId, end: &ConnectedPoint) {
        self.ways.opened(peer, id, end, Instant::now());
    }

    /// A connection has ended.
    pub(super) fn closed(&mut self, peer: PeerId, id: ConnectionId) {
        let now = Instant::now();
        self.ways.closed(&peer, id, now);
        if self.ways.of(&peer).and_then(|ways| ways.dialled()).is_none() {
            self.reservations.gone(&peer, now);
        }
    }

    /// A listener has an address; whether it is one through a relay.
    pub(super) fn listens(&mut self, listener: ListenerId, address: &Multiaddr) -> bool {
        if !is_circuit(address) {
            self.checks.hurry(Instant::now());
            return false;
        }
        let last = address.iter().last();
        let address =
            if last == Some(Protocol::P2p(self.me)) { address.iter().take(address.iter().count() - 1).collect() } else { address.clone() };
        self.reservations.granted(listener, address);
        true
    }

    /// A listener lost an address, or closed.
    pub(super) fn listens_no_more(&mut self, listener: ListenerId) {
        let now = Instant::now();
        if !self.reservations.closed(listener, now) {
            self.checks.hurry(now + TOLD_EVERY);
        }
    }

    /// A peer said which protocols it speaks. What address it sees us at is not believed.
    pub(super) fn identified(&mut self, event: &identify::Event) {
        if let identify::Event::Received { peer_id, info, .. } = event {
            self.ways.relays(peer_id, info.protocols.contains(&relay::HOP_PROTOCOL_NAME));
        }
    }

    /// What came of looking for a hole.
    pub(super) fn punched(&mut self, event: &dcutr::Event) {
        count(if event.result.is_ok() { &self.counters.holes_found } else { &self.counters.holes_not_found });
    }

    /// What we do for others.
    pub(super) fn relayed(&mut self, event: &relay::Event) {
        match event {
            relay::Event::CircuitReqAccepted { .. } => count(&self.counters.circuits),
            relay::Event::CircuitReqDenied { .. } | relay::Event::ReservationReqDenied { .. } => count(&self.counters.circuits_refused),
            _ => {}
        }
    }

    /// A member asks whether we reach it, or answered.
    pub(super) fn asked(&mut self, libp2p: &mut Libp2p, event: DialBackEvent) {
        let now = Instant::now();
        match event {
            DialBackEvent::Message { peer, connection_id, message: Message::Request { request, channel, .. } } => {
                let Arrived::Whole(question, _) = request else { return };
                self.answer(libp2p, (peer, connection_id), question, channel, now);
            }
            DialBackEvent::Message { message: Message::Response { request_id, response }, .. } => {
                if let Some(Open::Check(peer, ports)) = self.open.remove(&request_id) {
                    self.checks.answered(peer, &ports, response);
                }
            }
            DialBackEvent::OutboundFailure { request_id, .. } => {
                if let Some(Open::Relay(relay)) = self.open.remove(&request_id) {
                    tracing::info!("the member that relayed to us, {relay}, does not answer any more");
                    self.reservations.gone(&relay, now);
                    // Our address may be another one.
                    self.checks.hurry(now);
                    // Its reservation ends with its connections.
                    let _ = libp2p.disconnect_peer_id(relay);
                }
            }
            DialBackEvent::InboundFailure { .. } | DialBackEvent::ResponseSent { .. } => {}
        }
    }

    fn answer(
        &mut self,
        libp2p: &mut Libp2p,
        (peer, connection): (PeerId, ConnectionId),
        question: DialBack,
        channel: ResponseChannel<DialedBack>,
        now: Instant,
    ) {
        let from = self.ways.from(&peer, connection);
        let answers = self.answers.0.clone();
        if question.ports.is_empty() {
            // A member that cannot be reached learns where it is.
            let seen = from.filter(|_| self.members.contains(&peer));
            let _ = libp2p.behaviour_mut().dial_back.send_response(channel, DialedBack { seen, ..DialedBack::nothing() });
        // If the swarm has ended, nobody waits for the answer.
        } else if self.members.contains(&peer)
            && let Some(answer) = from.and_then(|from| self.dial_backs.answer(peer, from, question.clone(), now))
        {
            count(&self.counters.dialled_back);
            tokio::spawn(async move { drop(answers.send((channel, answer.await)).await) });
        } else if !self.members.contains(&peer)
            && self.tries_readers
            && let Some(answer) = from.and_then(|from| self.dial_backs.answer_reader(peer, from, question, now))
        {
            count(&self.counters.dialled_back);
            tokio::spawn(async move { drop(answers.send((channel, answer.await)).await) });
        } else {
            let _ = libp2p.behaviour_mut().dial_back.send_response(channel, DialedBack::nothing());
        }
    }
}

/// What is done when the clock is looked at.
impl Reach {
    /// `known`: where members say that they are reached. `is_quiet`: nothing is under way between us and a peer. What is to be told, if it
    /// is new.
    pub(super) fn tick(
        &mut self,
        libp2p: &mut Libp2p,
        known: &HashMap<PeerId, Vec<Multiaddr>>,
        limits: &mut DialLimits,
        is_quiet: impl Fn(&PeerId) -> bool,
        now: Instant,
    ) -> Option<Reachability> {
        while let Ok((channel, answer)) = self.answers.1.try_recv() {
            let _ = libp2p.behaviour_mut().dial_back.send_response(channel, answer);
        }
        self.check(libp2p, now);
        self.keep_relays(libp2p, known, now);
        self.come_closer(libp2p, known, limits, now);
        for surplus in self.ways.superfluous(now, is_quiet) {
            libp2p.close_connection(surplus);
        }
        self.news(libp2p, now)
    }

    /// Whether others reach us. What the operator says of it is not put to the test.
    fn state(&self) -> Reached {
        if self.announce.is_empty() { self.checks.state() } else { Reached::Public }
    }

    /// Whether what members found out is told to others, and not what the operator says.
    fn finds_out(&self) -> bool {
        self.announce.is_empty()
    }

    /// Asks members whether they reach us, when it is time.
    fn check(&mut self, libp2p: &mut Libp2p, now: Instant) {
        let open = self.open.values().filter(|open| matches!(open, Open::Check(..))).count();
        self.checks.tick(now, open);
        let ports: BTreeSet<Port> = libp2p.listeners().filter(|address| !is_circuit(address)).filter_map(Port::of).collect();
        // Who is not reached, or says itself where, asks all the same: it must know its own address, so as to ask no server there.
        if !self.listens {
            self.checks.listens_nowhere();
        } else if ports.is_empty() {
            return;
        }
        let ports: Vec<Port> = ports.into_iter().take(MAX_PORTS).collect();
        let asked = self.drawn();
        if !self.checks.is_due(now, asked.len()) {
            return;
        }
        self.checks.begin(now, asked.len(), &ports);
        for peer in asked {
            let question = Arrived::of(DialBack { ports: ports.clone() });
            let id = libp2p.behaviour_mut().dial_back.send_request(&peer, question);
            self.open.insert(id, Open::Check(peer, ports.clone()));
        }
    }

    /// Members that are asked whether they reach us, each at another place: those that we chose to connect to before those that came to us, and
    /// drawn anew each time, since whoever makes keys chooses the order of their names.
    fn drawn(&self) -> Vec<PeerId> {
        let place = |ways: &Ways| ways.direct_from();
        let members = self.ways.direct().filter(|(peer, _)| self.members.contains(peer));
        let mut members: Vec<_> = members.filter_map(|(peer, ways)| Some((ways.dialled().is_none(), *peer, place(ways)?))).collect();
        members.shuffle(&mut rand::rng());
        members.sort_by_key(|(came, ..)| *came);
        let mut places = BTreeSet::new();
        members.retain(|(.., place)| places.insert(*place));
        members.into_iter().map(|(_, peer, _)| peer).take(MAX_ASKED).collect()
    }

    /// Holds places at members that relay, if we are not reached otherwise.
    fn keep_relays(&mut self, libp2p: &mut Libp2p, known: &HashMap<PeerId, Vec<Multiaddr>>, now: Instant) {
        for relay in self.reservations.tick(now) {
            let id = libp2p.behaviour_mut().dial_back.send_request(&relay, Arrived::of(DialBack { ports: Vec::new() }));
            self.open.insert(id, Open::Relay(relay));
        }
        let wanted = if self.finds_out() { self.reservations.wanted(self.checks.state()) } else { 0 };
        if wanted > 0 {
            let mut free = Vec::new();
            for (peer, ways) in self.ways.direct().filter(|(peer, ways)| ways.relays && self.members.contains(peer)) {
                if let Some(address) = ways.dialled().filter(|_| self.reservations.may_ask(peer, now)) {
                    free.push((*peer, address.clone()));
                }
            }
            free.shuffle(&mut rand::rng());
            for (relay, address) in free.into_iter().take(wanted) {
                let plain: Multiaddr = address.iter().filter(|part| !matches!(part, Protocol::P2p(_))).collect();
                if let Ok(listener) = libp2p.listen_on(plain.with(Protocol::P2p(relay)).with(Protocol::P2pCircuit)) {
                    self.reservations.asked(relay, listener, now);
                }
            }
        }
        self.show_hole(libp2p, known, now);
    }

    /// By a connection with QUIC its other end sees at which address our router lets others in, and the router keeps that address for us.
    fn show_hole(&mut self, libp2p: &mut Libp2p, known: &HashMap<PeerId, Vec<Multiaddr>>, now: Instant) {
        if !self.quic || now < self.next_quic || self.state() != Reached::Behind {
            return;
        }
        let relays = || self.ways.direct().filter(|(peer, _)| self.reservations.is_held(peer));
        if relays().any(|(_, ways)| ways.has_quic()) || !libp2p.listeners().any(is_quic) {
            return;
        }
        let by_quic = |peer: &PeerId| known.get(peer).into_iter().flatten().find(|address| is_quic(address)).cloned();
        let Some((relay, address)) = relays().find_map(|(peer, _)| Some((*peer, by_quic(peer)?))) else { return };
        self.next_quic = now + QUIC_EVERY;
        dial(libp2p, relay, vec![address]);
    }

    /// Dials members that are reached through others only: where they say they are, and through the third member once more, so that libp2p
    /// looks for a hole again.
    fn come_closer(&mut self, libp2p: &mut Libp2p, known: &HashMap<PeerId, Vec<Multiaddr>>, limits: &mut DialLimits, now: Instant) {
        for (peer, again) in self.ways.due(now) {
            let Some(known) = known.get(&peer).filter(|_| self.members.contains(&peer)) else { continue };
            let (circuits, direct): (Vec<_>, Vec<_>) = to_dial(known.clone(), true, self.quic).into_iter().partition(is_circuit);
            // It says itself where it is, and somebody else may be there.
            let direct = limits.take(peer, direct.into_iter().filter(|address| plain(address).is_some()).collect(), now);
            if !direct.is_empty() && !dial(libp2p, peer, direct) {
                limits.failed(peer, now);
            }
            if again && !circuits.is_empty() && self.quic {
                count(&self.counters.holes_sought_again);
                dial(libp2p, peer, circuits);
            }
        }
    }

    /// Tells libp2p at which addresses we are reached, and the daemon, if it is new.
    fn news(&mut self, libp2p: &mut Libp2p, now: Instant) -> Option<Reachability> {
        let found_out = self.checks.confirmed().filter(|_| self.finds_out());
        let confirmed: BTreeSet<Multiaddr> = found_out.chain(&self.announce).cloned().collect();
        if confirmed != self.external {
            for gone in self.external.difference(&confirmed) {
                libp2p.remove_external_address(gone);
            }
            for new in confirmed.difference(&self.external) {
                libp2p.add_external_address(new.clone());
                libp2p.behaviour_mut().guard.candidate(new.clone());
            }
            self.external = confirmed;
        }
        let offers = self.relays && !self.external.is_empty() && !self.counters.meter.is_spent();
        if offers != std::mem::replace(&mut self.offers, offers) {
            let status = if offers { relay::Status::Enable } else { relay::Status::Disable };
            libp2p.behaviour_mut().relay.protocol.set_status(Some(status));
        }
        if now.saturating_duration_since(self.told.1) < TOLD_EVERY {
            return None;
        }
        let news = Reachability {
            reached: self.state(),
            addresses: self.addresses(libp2p).iter().map(|address| named(address, self.me)).collect(),
            relays: self.reservations.granted_by().filter_map(|(relay, _)| super::access_point_of(relay)).collect(),
            confirmed: self.confirmed_by(),
            own: self.checks.own().collect(),
            relays_for_others: offers,
            relayed: self.ways.relayed().filter(|peer| self.members.contains(peer)).filter_map(super::access_point_of).collect(),
        };
        if news == self.told.0 {
            return None;
        }
        self.told = (news.clone(), now);
        Some(news)
    }

    /// Where members reached us, and which.
    fn confirmed_by(&self) -> Vec<(String, Vec<AccessPoint>)> {
        let found_out = self.checks.confirmed_by().filter(|_| self.finds_out());
        found_out.map(|(address, by)| (named(address, self.me), by)).collect()
    }

    /// Where others are told to reach us, the best first.
    pub(super) fn addresses(&self, libp2p: &Libp2p) -> Vec<Multiaddr> {
        if !self.announce.is_empty() {
            return self.announce.iter().take(MAX_ANNOUNCED).cloned().collect();
        }
        let mut listening: Vec<&Multiaddr> = libp2p.listeners().filter(|address| !is_circuit(address)).collect();
        listening.sort_by_key(|address| is_quic(address));
        // A loopback address is of no use to others, unless the machine has no other address.
        let only_loopback = listening.iter().all(|address| is_loopback(address));
        let listening = listening.into_iter().filter(|address| only_loopback || !is_loopback(address));
        let circuits = self.reservations.granted_by().map(|(_, address)| address).take(MAX_CIRCUITS);
        let circuits = circuits.filter(|_| self.checks.state() != Reached::Public);
        let mut all: Vec<Multiaddr> = Vec::new();
        for address in self.checks.confirmed().chain(circuits).chain(listening) {
            if all.len() < MAX_ANNOUNCED && !all.contains(address) {
                all.push(address.clone());
            }
        }
        all
    }
}

/// An address with the name of the access point there, which one through a third member has no room for.
fn named(address: &Multiaddr, me: PeerId) -> String {
    let named = if is_circuit(address) { None } else { address.clone().with_p2p(me).ok() };
    named.unwrap_or_else(|| address.clone()).to_string()
}

fn is_loopback(address: &Multiaddr) -> bool {
    address.iter().any(|part| match part {
        Protocol::Ip4(ip) => ip.is_loopback(),
        Protocol::Ip6(ip) => ip.is_loopback(),
        _ => false,
    })
}

/// Makes one more connection to a peer that is connected; whether that has begun.
fn dial(libp2p: &mut Libp2p, peer: PeerId, addresses: Vec<Multiaddr>) -> bool {
    let options = DialOpts::peer_id(peer).addresses(addresses).condition(PeerCondition::Always).build();
    let begun = dial_ours(libp2p, options);
    if let Err(error) = &begun {
        tracing::debug!(%error, %peer, "no further connection is made");
    }
    begun.is_ok()
}

/// Dials what we want to, and nobody else caused.
pub(super) fn dial_ours(libp2p: &mut Libp2p, options: DialOpts) -> Result<(), swarm::DialError> {
    let connection = options.connection_id();
    libp2p.behaviour_mut().guard.ours(connection);
    let dialled = libp2p.dial(options);
    if dialled.is_err() {
        libp2p.behaviour_mut().guard.not_begun(connection);
    }
    dialled
}
