//! Limits on dials that libp2p begins by itself.
//!
//! They are those of its protocols, hole punching above all, whose addresses others name. They are few at a time, name addresses and no
//! hosts, and go where dialling is permitted ([`super::dialling`] is asked for each once more).

use super::{
    dialling::{Dialable, plain},
    messages::{SwarmCounters, count},
    port::may_be_named,
    rate::TokenBucket,
};
use libp2p::{
    Multiaddr, PeerId,
    core::{Endpoint, transport::PortUse},
    multiaddr::Protocol,
    swarm::{
        ConnectionDenied, ConnectionId, DialFailure, FromSwarm, NetworkBehaviour, THandler, THandlerInEvent, THandlerOutEvent, ToSwarm,
        dummy,
    },
};
use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    convert::Infallible,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

/// Dials that libp2p begins: so many at once, then one in this time.
const AT_ONCE: u32 = 16;
const ONE_EACH: Duration = Duration::from_secs(2);

/// The same of dials to one peer.
const AT_ONCE_TO_PEER: u32 = 3;
const ONE_EACH_TO_PEER: Duration = Duration::from_secs(10);

/// Peers of whom that is counted.
const MAX_PEERS: usize = 1024;

/// Addresses that are tried in one of them, and how many different IP addresses among those that may be dialled: a peer has one of each family,
/// and one in its own network.
const MAX_ADDRESSES: usize = 20;
const MAX_HOSTS: usize = 3;

/// Addresses that are to be told to libp2p.
const MAX_CANDIDATES: usize = 16;

/// Why a dial is not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum GuardError {
    /// There are enough of those that others caused.
    #[error("too many connections are being made that others asked for")]
    TooMany,
    /// None of the addresses may be dialled.
    #[error("none of the addresses may be dialled")]
    Nowhere,
}

/// Judges dials that are not our own, and tells libp2p where we may be reached, so that it tries holes there.
pub(super) struct DialGuard {
    ours: HashSet<ConnectionId>,
    others: TokenBucket,
    peers: HashMap<PeerId, TokenBucket>,
    dialable: Dialable,
    candidates: VecDeque<Multiaddr>,
    counters: Arc<SwarmCounters>,
}

impl DialGuard {
    /// Permits what may be dialled at all.
    pub(super) fn new(dialable: Dialable, counters: Arc<SwarmCounters>) -> DialGuard {
        let others = TokenBucket::every(AT_ONCE, ONE_EACH, Instant::now());
        DialGuard { ours: HashSet::new(), others, peers: HashMap::new(), dialable, candidates: VecDeque::new(), counters }
    }

    /// The dial that makes this connection is our own.
    pub(super) fn ours(&mut self, connection: ConnectionId) {
        self.ours.insert(connection);
    }

    /// It is not begun after all.
    pub(super) fn not_begun(&mut self, connection: ConnectionId) {
        self.ours.remove(&connection);
    }

    /// Others may reach us here, if their packets cross ours.
    pub(super) fn candidate(&mut self, address: Multiaddr) {
        if self.candidates.len() < MAX_CANDIDATES && !self.candidates.contains(&address) {
            self.candidates.push_back(address);
        }
    }

    fn judge(&mut self, peer: Option<PeerId>, addresses: &[Multiaddr], now: Instant) -> Result<(), GuardError> {
        // libp2p adds the bare name of a peer that names an empty address. It leads nowhere.
        let named = addresses.iter().filter(|address| address.iter().any(|part| !matches!(part, Protocol::P2p(_))));
        let places: Option<Vec<SocketAddr>> = named.map(plain).collect();
        let places = places.filter(|places| places.len() <= MAX_ADDRESSES).ok_or(GuardError::Nowhere)?;
        // Those that may not be dialled are refused by the transports; a peer names those of its own network, too.
        let permitted = places.iter().filter(|place| self.dialable.check(place.ip()).is_ok());
        let hosts: BTreeSet<IpAddr> = permitted.clone().map(SocketAddr::ip).collect();
        if hosts.is_empty() || hosts.len() > MAX_HOSTS || !permitted.into_iter().all(|place| may_be_named(place.port())) {
            return Err(GuardError::Nowhere);
        }
        // What is refused takes nothing from others.
        if !peer.is_none_or(|peer| self.has_room_for(peer, now)) || !self.others.take(now) {
            return Err(GuardError::TooMany);
        }
        Ok(())
    }

    fn has_room_for(&mut self, peer: PeerId, now: Instant) -> bool {
        if self.peers.len() >= MAX_PEERS && !self.peers.contains_key(&peer) {
            self.peers.retain(|_, bucket| !bucket.is_full(now));
        }
        let room = self.peers.len() < MAX_PEERS || self.peers.contains_key(&peer);
        room && self.peers.entry(peer).or_insert_with(|| TokenBucket::every(AT_ONCE_TO_PEER, ONE_EACH_TO_PEER, now)).take(now)
    }
}

impl NetworkBehaviour for DialGuard {
    type ConnectionHandler = dummy::ConnectionHandler;
    type ToSwarm = Infallible;

    fn handle_pending_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: Option<PeerId>,
        addresses: &[Multiaddr],
        _: Endpoint,
    ) -> Result<Vec<Multiaddr>, ConnectionDenied> {
        if !self.ours.remove(&connection) {
            self.judge(peer, addresses, Instant::now()).map_err(|why| {
                count(&self.counters.dials_refused);
                ConnectionDenied::new(why)
            })?;
        }
        Ok(Vec::new())
    }

    fn handle_established_inbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(dummy::ConnectionHandler)
    }

    fn handle_established_outbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(dummy::ConnectionHandler)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        // One that another behaviour refused first never came here.
        if let FromSwarm::DialFailure(DialFailure { connection_id, .. }) = event {
            self.ours.remove(&connection_id);
        }
    }

    fn on_connection_handler_event(&mut self, _: PeerId, _: ConnectionId, event: THandlerOutEvent<Self>) {
        match event {}
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        match self.candidates.pop_front() {
            Some(address) => Poll::Ready(ToSwarm::NewExternalAddrCandidate(address)),
            None => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libp2p::swarm::dial_opts::DialOpts;
    use std::sync::atomic::Ordering;

    fn guard() -> DialGuard {
        let counters = Arc::new(SwarmCounters::default());
        DialGuard::new(Dialable::new(&[], std::iter::empty(), counters.clone()), counters)
    }

    fn dial(guard: &mut DialGuard, addresses: &[&str]) -> bool {
        let addresses: Vec<Multiaddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        let connection = ConnectionId::new_unchecked(7);
        guard.handle_pending_outbound_connection(connection, Some(PeerId::random()), &addresses, Endpoint::Dialer).is_ok()
    }

    #[test]
    fn what_others_name_is_dialled_only_where_dialling_is_permitted() {
        let mut guard = guard();
        assert!(dial(&mut guard, &["/ip4/1.1.1.1/udp/4817/quic-v1"]));
        assert!(!dial(&mut guard, &["/ip4/169.254.169.254/tcp/80"]) && !dial(&mut guard, &["/ip4/127.0.0.1/udp/1/quic-v1"]));
        assert!(!dial(&mut guard, &["/dns4/localhost/tcp/80", "/ip4/1.1.1.1/tcp/1"]) && !dial(&mut guard, &[]));
        assert!(!dial(&mut guard, &["/ip4/1.1.1.1/tcp/4817"; 21]) && !dial(&mut guard, &["/ip4/1.1.1.1/tcp/25"]));
        assert!(!dial(&mut guard, &["/ip4/1.1.1.1/tcp/4817/ip4/127.0.0.1/tcp/6379"]), "libp2p would take the last address");
        let four = ["/ip4/1.1.1.1/tcp/4817", "/ip4/1.0.0.1/tcp/4817", "/ip4/8.8.8.8/tcp/4817", "/ip4/9.9.9.9/tcp/4817"];
        assert!(!dial(&mut guard, &four) && dial(&mut guard, &four[..3]));
        assert!(dial(&mut guard, &["/ip4/192.168.0.7/tcp/4817", "/ip4/1.1.1.1/tcp/4817"]), "its own network is named beside");
    }

    #[test]
    fn a_peer_with_many_wishes_and_addresses_that_may_not_be_dialled_leave_room_for_others() {
        let mut guard = guard();
        let mut to = |peer: PeerId, address: &str| guard.judge(Some(peer), &[address.parse().unwrap()], Instant::now()).is_ok();
        let greedy = PeerId::random();
        assert!((0..1_000).all(|_| !to(PeerId::random(), "/ip4/10.0.0.1/tcp/4817")));
        assert_eq!((0..1_000).filter(|_| to(greedy, "/ip4/1.1.1.1/tcp/4817")).count(), AT_ONCE_TO_PEER as usize);
        assert!(to(PeerId::random(), "/ip4/1.1.1.1/tcp/4817"));
    }

    #[test]
    fn what_others_name_is_dialled_seldom_and_what_we_want_always() {
        let mut guard = guard();
        let begun = (0..10_000).filter(|_| dial(&mut guard, &["/ip4/1.1.1.1/tcp/4817"])).count();
        assert!((AT_ONCE as usize..AT_ONCE as usize + 4).contains(&begun), "{begun}");
        assert!(guard.counters.dials_refused.load(Ordering::Relaxed) >= 9_000);
        let ours = DialOpts::from("/ip4/1.1.1.1/tcp/1".parse::<Multiaddr>().unwrap());
        guard.ours(ours.connection_id());
        assert!(guard.handle_pending_outbound_connection(ours.connection_id(), None, &[], Endpoint::Dialer).is_ok());
    }
}
