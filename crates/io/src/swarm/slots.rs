//! Limits on connections that others make to us: not too many from one address, and not so many strangers that members get none.

use super::{
    members_only::Members,
    messages::{SwarmCounters, count},
    spent_turns::{Origin, SpentTurns},
    ways::is_circuit,
};
use libp2p::{
    Multiaddr, PeerId,
    core::{Endpoint, transport::PortUse},
    multiaddr::Protocol,
    swarm::{
        CloseConnection, ConnectionClosed, ConnectionDenied, ConnectionId, DialFailure, FromSwarm, ListenFailure, NetworkBehaviour,
        THandler, THandlerInEvent, THandlerOutEvent, ToSwarm, dummy,
    },
};
use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

/// From one address at least so many connections are taken; more if many are taken in all.
const MIN_OF_ONE: u32 = 16;

/// At least so many strangers may be connected at a time, and from one address.
const MIN_STRANGERS: u32 = 16;
const MIN_STRANGERS_OF_ONE: u32 = 2;

/// Of the slots of strangers one in so many is for those from places where members were: a member that comes back is a stranger until its key
/// is known.
const SHARE_KEPT: u32 = 4;

/// One address may take one in so many of the slots of strangers.
const SHARE_OF_ONE: u32 = 8;

/// So many places where members were are remembered, the latest ones.
const MAX_PLACES: usize = 1024;

/// Why a connection is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SlotError {
    /// From this address, or its /64, there are enough.
    #[error("too many connections from this address")]
    Address,
    /// There are enough peers that have not been let in.
    #[error("too many connections of peers that are no members")]
    Strangers,
    /// The bytes for peers that are no members are spent, and it has no turn.
    #[error("the bytes for programs that are no members are spent")]
    Spent,
}

/// How many connections that others made are taken.
struct MaxTaken {
    /// From one address.
    of_one: u32,
    /// Of strangers.
    strangers: u32,
    /// Of strangers from one address at which no member was.
    strangers_of_one: u32,
}

impl MaxTaken {
    fn new(max_connections: u32) -> MaxTaken {
        let strangers = (max_connections / 4).max(MIN_STRANGERS);
        MaxTaken {
            of_one: (max_connections / 8).max(MIN_OF_ONE),
            strangers,
            strangers_of_one: (strangers / SHARE_OF_ONE).max(MIN_STRANGERS_OF_ONE),
        }
    }

    /// Of strangers, from all places like this one together.
    fn strangers_like(&self, knows_place: bool) -> u32 {
        if knows_place { self.strangers } else { self.strangers - self.strangers / SHARE_KEPT }
    }

    /// Of strangers from this place. Where one member was there may be several, behind one router; programs of this machine are the
    /// operator's.
    fn strangers_at(&self, place: IpAddr, knows_place: bool) -> u32 {
        if place.is_loopback() {
            self.of_one
        } else if knows_place {
            (self.of_one / 2).max(self.strangers_of_one)
        } else {
            self.strangers_of_one
        }
    }
}

/// The places where members were, with the order in which they were there last.
#[derive(Default)]
struct Places {
    numbers: HashMap<IpAddr, u64>,
    last: u64,
}

impl Places {
    fn add(&mut self, place: IpAddr) {
        self.last += 1;
        self.numbers.insert(place, self.last);
        if self.numbers.len() > MAX_PLACES
            && let Some(oldest) = self.numbers.iter().min_by_key(|(_, number)| **number).map(|(place, _)| *place)
        {
            self.numbers.remove(&oldest);
        }
    }
}

/// Counts connections that others made to us.
pub(super) struct Slots {
    max: MaxTaken,
    connections: HashMap<ConnectionId, (Option<IpAddr>, Option<PeerId>)>,
    of_address: HashMap<IpAddr, u32>,
    /// Connections that we made: where their peers are.
    dialled: HashMap<ConnectionId, (IpAddr, PeerId)>,
    places: Places,
    /// While the bytes for strangers are spent.
    spent: SpentTurns,
    /// Readers that have asked nothing for a while, the one that was longest here first.
    idle: VecDeque<PeerId>,
    /// Readers that make room for others.
    closing: VecDeque<PeerId>,
    members: Members,
    counters: Arc<SwarmCounters>,
}

impl Slots {
    /// Of so many connections in all.
    pub(super) fn new(max_connections: u32, members: Members, counters: Arc<SwarmCounters>) -> Slots {
        Slots {
            max: MaxTaken::new(max_connections),
            connections: HashMap::new(),
            of_address: HashMap::new(),
            dialled: HashMap::new(),
            places: Places::default(),
            spent: SpentTurns::new(Instant::now()),
            idle: VecDeque::new(),
            closing: VecDeque::new(),
            members,
            counters,
        }
    }

    /// This peer was let in.
    pub(super) fn let_in(&mut self, peer: PeerId) {
        self.members.let_in(peer);
        let ours = self.dialled.values().filter(|(_, other)| *other == peer).map(|(place, _)| *place);
        let its = self.connections.values().filter(|(_, other)| *other == Some(peer)).filter_map(|(place, _)| *place);
        ours.chain(its).for_each(|place| self.places.add(place));
    }

    /// This peer is no member any more.
    pub(super) fn no_member(&mut self, peer: &PeerId) {
        self.members.no_member(peer);
    }

    /// These readers have asked nothing for a while, the one that was longest here first.
    pub(super) fn idle(&mut self, readers: impl Iterator<Item = PeerId>) {
        self.idle.clear();
        self.idle.extend(readers);
    }

    fn is_stranger(&self, peer: Option<PeerId>) -> bool {
        !peer.is_some_and(|peer| self.members.contains(&peer))
    }

    fn take(&mut self, connection: ConnectionId, local: &Multiaddr, remote: &Multiaddr) -> Result<(), SlotError> {
        // A connection through a third member comes from no address.
        let place = place_of(remote);
        let of_address = place.and_then(|place| self.of_address.get(&place)).copied().unwrap_or(0);
        let knows_place = place.is_some_and(|place| place.is_loopback() || self.places.numbers.contains_key(&place));
        let strangers = self.connections.values().filter(|(_, peer)| self.is_stranger(*peer));
        let (mut all, mut here) = (0, 0);
        for (at, _) in strangers {
            all += 1;
            here += u32::from(place.is_some() && *at == place);
        }
        if of_address >= self.max.of_one || place.is_some_and(|place| here >= self.max.strangers_at(place, knows_place)) {
            return Err(SlotError::Address);
        }
        let is_full = all >= self.max.strangers_like(knows_place);
        if is_full && self.idle.is_empty() {
            return Err(SlotError::Strangers);
        }
        // After what else may refuse it: a turn is for a connection.
        if self.counters.meter.readers_spent() && !knows_place && !self.spent.take(origin_of(local, place), Instant::now()) {
            return Err(SlotError::Spent);
        }
        if is_full && !self.make_room() {
            return Err(SlotError::Strangers);
        }
        if let Some(place) = place {
            *self.of_address.entry(place).or_default() += 1;
        }
        self.connections.insert(connection, (place, None));
        Ok(())
    }

    /// Has the reader hung up on that was longest here and asks nothing, if there is one.
    fn make_room(&mut self) -> bool {
        while let Some(reader) = self.idle.pop_front() {
            let its = self.connections.iter().filter(|(_, (_, peer))| *peer == Some(reader));
            let its: Vec<ConnectionId> = its.map(|(connection, _)| *connection).collect();
            if !its.is_empty() && self.is_stranger(Some(reader)) {
                its.iter().for_each(|connection| self.free(connection));
                self.closing.push_back(reader);
                return true;
            }
        }
        false
    }

    fn free(&mut self, connection: &ConnectionId) {
        self.dialled.remove(connection);
        let Some((Some(address), _)) = self.connections.remove(connection) else { return };
        if let Some(count) = self.of_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.of_address.remove(&address);
            }
        }
    }
}

/// Where a connection comes from: of one through a relay its own end is an address of that relay, and the other end is none.
fn origin_of(local: &Multiaddr, place: Option<IpAddr>) -> Origin {
    let relay = if is_circuit(local) { address_of(local) } else { None };
    relay.map(Origin::Relay).or(place.map(Origin::Place)).unwrap_or(Origin::Unknown)
}

/// What counts as one address: of IPv6 the /64, for everybody has as many addresses in one as they like.
fn place_of(remote: &Multiaddr) -> Option<IpAddr> {
    // Of a circuit it is that of the member in between.
    if is_circuit(remote) { None } else { address_of(remote) }
}

/// The address with which it begins.
fn address_of(multiaddr: &Multiaddr) -> Option<IpAddr> {
    match multiaddr.iter().next()? {
        Protocol::Ip4(address) => Some(address.into()),
        Protocol::Ip6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => Some(mapped.into()),
            None if address.is_loopback() => Some(address.into()),
            None => Some(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into()),
        },
        _ => None,
    }
}

impl NetworkBehaviour for Slots {
    type ConnectionHandler = dummy::ConnectionHandler;
    type ToSwarm = Infallible;

    fn handle_pending_inbound_connection(
        &mut self,
        connection: ConnectionId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        self.take(connection, local, remote).map_err(|why| {
            count(if why == SlotError::Spent { &self.counters.connections_spent } else { &self.counters.connections_refused });
            ConnectionDenied::new(why)
        })
    }

    fn handle_established_inbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        if let Some((place, known)) = self.connections.get_mut(&connection) {
            *known = Some(peer);
            // A member may have come from somewhere else.
            if let Some(place) = place.filter(|_| self.members.contains(&peer)) {
                self.places.add(place);
            }
        }
        Ok(dummy::ConnectionHandler)
    }

    fn handle_established_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        remote: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        if let Some(place) = place_of(remote) {
            self.dialled.insert(connection, (place, peer));
        }
        Ok(dummy::ConnectionHandler)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        match event {
            FromSwarm::ConnectionClosed(ConnectionClosed { connection_id, .. })
            | FromSwarm::ListenFailure(ListenFailure { connection_id, .. })
            | FromSwarm::DialFailure(DialFailure { connection_id, .. }) => self.free(&connection_id),
            _ => {}
        }
    }

    fn on_connection_handler_event(&mut self, _: PeerId, _: ConnectionId, event: THandlerOutEvent<Self>) {
        match event {}
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        match self.closing.pop_front() {
            Some(peer_id) => Poll::Ready(ToSwarm::CloseConnection { peer_id, connection: CloseConnection::All }),
            None => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Connections from these addresses: which are taken, in a swarm of 128.
    fn tried(slots: &mut Slots, addresses: impl IntoIterator<Item = String>) -> Vec<Result<ConnectionId, SlotError>> {
        static LAST: AtomicUsize = AtomicUsize::new(0);
        let here: Multiaddr = "/ip4/192.0.2.1/tcp/4817".parse().unwrap();
        let mut connect = |address: String| {
            let connection = ConnectionId::new_unchecked(LAST.fetch_add(1, Ordering::Relaxed));
            let remote = format!("{address}/tcp/999").parse().unwrap();
            match slots.handle_pending_inbound_connection(connection, &here, &remote) {
                Ok(()) => Ok(connection),
                Err(denied) => Err(denied.downcast::<SlotError>().unwrap()),
            }
        };
        addresses.into_iter().map(&mut connect).collect()
    }

    fn slots() -> Slots {
        Slots::new(128, Members::default(), Arc::default())
    }

    /// How many of so many from an address are taken.
    fn taken(slots: &mut Slots, number: usize, address: &str) -> usize {
        tried(slots, (0..number).map(|_| address.to_owned())).iter().filter(|taken| taken.is_ok()).count()
    }

    /// The peer at the other end of a connection turns out to have this key.
    fn is_of(slots: &mut Slots, connection: ConnectionId, peer: PeerId) {
        let (here, remote) = ("/ip4/192.0.2.1/tcp/1".parse().unwrap(), "/ip4/198.51.100.1/tcp/1".parse().unwrap());
        slots.handle_established_inbound_connection(connection, peer, &here, &remote).unwrap();
    }

    /// A member connects from there and is let in.
    fn member_from(slots: &mut Slots, address: &str) -> (ConnectionId, PeerId) {
        let (connection, member) = (tried(slots, [address.to_owned()])[0].unwrap(), PeerId::random());
        is_of(slots, connection, member);
        slots.let_in(member);
        (connection, member)
    }

    #[test]
    fn one_address_has_few_slots_and_gets_them_back() {
        let mut slots = slots();
        let taken = tried(&mut slots, (0..20).map(|_| "/ip4/198.51.100.7".to_owned()));
        assert_eq!(taken.iter().filter(|taken| taken.is_ok()).count(), 4);
        assert_eq!(taken[19], Err(SlotError::Address));
        assert_eq!(slots.counters.connections_refused.load(Ordering::Relaxed), 16);
        assert!(tried(&mut slots, ["/ip4/198.51.100.8".to_owned()])[0].is_ok(), "from elsewhere there is room");
        slots.free(taken[3].as_ref().unwrap());
        assert!(tried(&mut slots, ["/ip6/::ffff:198.51.100.7".to_owned()])[0].is_ok());
        assert_eq!(self::taken(&mut slots, 20, "/ip4/127.0.0.1"), 16, "programs of this machine");
    }

    #[test]
    fn members_at_one_address_are_as_many_as_before() {
        let mut slots = slots();
        for _ in 0..16 {
            member_from(&mut slots, "/ip4/198.51.100.7");
        }
        assert_eq!(tried(&mut slots, ["/ip4/198.51.100.7".to_owned()])[0], Err(SlotError::Address));
    }

    #[test]
    fn a_64_of_ipv6_is_one_address() {
        let mut slots = slots();
        let taken = tried(&mut slots, (0..20).map(|number| format!("/ip6/2001:db8:1:2:{number}::1")));
        assert_eq!(taken.iter().filter(|taken| taken.is_ok()).count(), 4);
        assert!(tried(&mut slots, ["/ip6/2001:db8:1:3::1".to_owned()])[0].is_ok());
    }

    #[test]
    fn strangers_leave_room_for_members() {
        let mut slots = slots();
        let taken = tried(&mut slots, (0..40).map(|number| format!("/ip4/198.51.100.{number}")));
        assert_eq!(taken.iter().filter(|taken| taken.is_ok()).count(), 24);
        assert_eq!(taken[39], Err(SlotError::Strangers));
        let member = PeerId::random();
        is_of(&mut slots, *taken[1].as_ref().unwrap(), member);
        slots.let_in(member);
        assert!(tried(&mut slots, ["/ip4/203.0.113.1".to_owned()])[0].is_ok());
        slots.no_member(&member);
        assert!(tried(&mut slots, ["/ip4/203.0.113.2".to_owned()])[0].is_err());
    }

    #[test]
    fn a_member_that_comes_back_finds_a_slot_whoever_else_connects_from_a_few_addresses() {
        let mut slots = slots();
        let (connection, member) = member_from(&mut slots, "/ip4/203.0.113.1");
        let dialled: Multiaddr = "/ip4/203.0.113.2/tcp/4817".parse().unwrap();
        let ours = ConnectionId::new_unchecked(1_000_000);
        slots.handle_established_outbound_connection(ours, PeerId::random(), &dialled, Endpoint::Dialer, PortUse::New).unwrap();
        let other = slots.dialled[&ours].1;
        slots.let_in(other);
        slots.free(&connection);
        slots.no_member(&member);
        // Two addresses take all that they get; then many do.
        assert_eq!(taken(&mut slots, 100, "/ip4/198.51.100.7") + taken(&mut slots, 100, "/ip4/198.51.100.8"), 8);
        assert!(tried(&mut slots, ["/ip4/192.0.2.77".to_owned()])[0].is_ok(), "others find room beside them");
        for number in 0..50 {
            taken(&mut slots, 4, &format!("/ip4/198.51.100.{number}"));
        }
        assert_eq!(tried(&mut slots, ["/ip4/192.0.2.78".to_owned()])[0], Err(SlotError::Strangers));
        let back = tried(&mut slots, ["/ip4/203.0.113.1", "/ip4/203.0.113.2"].map(str::to_owned));
        assert!(back.iter().all(Result::is_ok), "{back:?}");
        assert_eq!(taken(&mut slots, 100, "/ip4/203.0.113.1"), 6, "the slots that are kept are eight");
    }

    #[test]
    fn with_the_bytes_for_strangers_spent_a_stranger_connects_a_few_times_and_members_as_before() {
        let mut slots = slots();
        member_from(&mut slots, "/ip4/203.0.113.1");
        slots.counters.meter.spend_readers(true);
        assert_eq!(taken(&mut slots, 6, "/ip4/198.51.100.7"), 3);
        assert_eq!(tried(&mut slots, ["/ip4/198.51.100.7".to_owned()])[0], Err(SlotError::Spent));
        assert_eq!(slots.counters.connections_spent.load(Ordering::Relaxed), 4);
        assert!(tried(&mut slots, ["/ip4/198.51.100.8".to_owned()])[0].is_ok(), "it may be a new member");
        assert_eq!((taken(&mut slots, 3, "/ip4/203.0.113.1"), taken(&mut slots, 3, "/ip4/127.0.0.1")), (3, 3));
        slots.counters.meter.spend_readers(false);
        assert_eq!(taken(&mut slots, 4, "/ip4/198.51.100.9"), 4, "on the next day");
    }

    #[test]
    fn few_places_of_members_are_remembered() {
        let mut places = Places::default();
        (0..2 * MAX_PLACES as u32).for_each(|number| places.add(std::net::Ipv4Addr::from_bits(number).into()));
        assert_eq!(places.numbers.len(), MAX_PLACES);
        assert!(places.numbers.contains_key(&std::net::Ipv4Addr::from_bits(2 * MAX_PLACES as u32 - 1).into()));
    }

    #[test]
    fn through_a_third_member_nobody_is_at_that_ones_address() {
        let relay = PeerId::random();
        let circuit: Multiaddr = format!("/ip4/203.0.113.1/tcp/1/p2p/{relay}/p2p-circuit").parse().unwrap();
        assert_eq!(place_of(&circuit), None);
    }

    #[test]
    fn with_the_bytes_for_strangers_spent_one_relay_uses_up_its_own_turns_only() {
        let mut slots = slots();
        slots.counters.meter.spend_readers(true);
        let mut number = 2_000_000;
        let mut taken = |through: &str| {
            let relay = PeerId::random();
            let connect = |_: &usize| {
                number += 1;
                let local = format!("{through}/tcp/4817/p2p/{relay}/p2p-circuit").parse().unwrap();
                let remote = format!("/p2p/{}", PeerId::random()).parse().unwrap();
                slots.handle_pending_inbound_connection(ConnectionId::new_unchecked(number), &local, &remote).is_ok()
            };
            (0..20).filter(connect).count()
        };
        assert_eq!((taken("/ip4/203.0.113.1"), taken("/ip4/203.0.113.2"), taken("/ip4/203.0.113.1")), (8, 8, 0));
    }

    #[test]
    fn a_reader_that_asks_nothing_any_more_makes_room_for_who_comes() {
        let mut slots = slots();
        let full = tried(&mut slots, (0..24).map(|number| format!("/ip4/198.51.100.{number}")));
        let readers = [PeerId::random(), PeerId::random()];
        let (member_connection, member) = (*full[2].as_ref().unwrap(), PeerId::random());
        is_of(&mut slots, *full[0].as_ref().unwrap(), readers[0]);
        is_of(&mut slots, *full[1].as_ref().unwrap(), readers[1]);
        is_of(&mut slots, member_connection, member);
        slots.let_in(member);
        assert!(tried(&mut slots, ["/ip4/203.0.113.1".to_owned()])[0].is_ok());
        assert!(tried(&mut slots, ["/ip4/203.0.113.2".to_owned()])[0].is_err(), "nobody is idle");
        slots.idle([PeerId::random(), member, readers[0], readers[1]].into_iter());
        let come = tried(&mut slots, (3..8).map(|number| format!("/ip4/203.0.113.{number}")));
        assert_eq!(come.iter().filter(|come| come.is_ok()).count(), 2);
        let mut context = Context::from_waker(std::task::Waker::noop());
        for reader in readers {
            let closes = slots.poll(&mut context);
            assert!(matches!(closes, Poll::Ready(ToSwarm::CloseConnection { peer_id, .. }) if peer_id == reader), "{reader}");
        }
        assert!(slots.poll(&mut context).is_pending(), "members stay");
    }
}
