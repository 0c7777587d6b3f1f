//! Limits on connections that others make to us: not too many from one address, and not so many strangers that members get none.

use super::{
    members_only::Members,
    messages::{SwarmCounters, count},
};
use libp2p::{
    Multiaddr, PeerId,
    core::{Endpoint, transport::PortUse},
    multiaddr::Protocol,
    swarm::{
        ConnectionClosed, ConnectionDenied, ConnectionId, FromSwarm, ListenFailure, NetworkBehaviour, THandler, THandlerInEvent,
        THandlerOutEvent, ToSwarm, dummy,
    },
};
use std::{
    collections::HashMap,
    convert::Infallible,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    task::{Context, Poll},
};

/// From one address at least so many connections are taken; more if many are taken in all.
const MIN_OF_ONE: u32 = 16;

/// At least so many strangers may be connected at a time.
const MIN_STRANGERS: u32 = 16;

/// Why a connection is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SlotError {
    /// From this address, or its /64, there are enough.
    #[error("too many connections from this address")]
    Address,
    /// There are enough peers that have not been let in.
    #[error("too many connections of peers that are no members")]
    Strangers,
}

/// Counts connections that others made to us.
pub(super) struct Slots {
    most_of_one: u32,
    most_strangers: u32,
    connections: HashMap<ConnectionId, (Option<IpAddr>, Option<PeerId>)>,
    of_address: HashMap<IpAddr, u32>,
    members: Members,
    counters: Arc<SwarmCounters>,
}

impl Slots {
    /// Of so many connections in all.
    pub(super) fn new(max_connections: u32, members: Members, counters: Arc<SwarmCounters>) -> Slots {
        Slots {
            most_of_one: (max_connections / 8).max(MIN_OF_ONE),
            most_strangers: (max_connections / 4).max(MIN_STRANGERS),
            connections: HashMap::new(),
            of_address: HashMap::new(),
            members,
            counters,
        }
    }

    /// This peer was let in.
    pub(super) fn let_in(&mut self, peer: PeerId) {
        self.members.let_in(peer);
    }

    /// This peer is no member any more.
    pub(super) fn no_member(&mut self, peer: &PeerId) {
        self.members.no_member(peer);
    }

    fn take(&mut self, connection: ConnectionId, remote: &Multiaddr) -> Result<(), SlotError> {
        // A connection through a third member comes from no address.
        let address = place_of(remote);
        let of_address = address.and_then(|address| self.of_address.get(&address)).copied().unwrap_or(0);
        if of_address >= self.most_of_one {
            return Err(SlotError::Address);
        }
        let is_member = |peer: &Option<PeerId>| peer.is_some_and(|peer| self.members.contains(&peer));
        let strangers = self.connections.values().filter(|(_, peer)| !is_member(peer)).count();
        if strangers as u64 >= u64::from(self.most_strangers) {
            return Err(SlotError::Strangers);
        }
        if let Some(address) = address {
            self.of_address.insert(address, of_address + 1);
        }
        self.connections.insert(connection, (address, None));
        Ok(())
    }

    fn free(&mut self, connection: &ConnectionId) {
        let Some((Some(address), _)) = self.connections.remove(connection) else { return };
        if let Some(count) = self.of_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.of_address.remove(&address);
            }
        }
    }
}

/// What counts as one address: of IPv6 the /64, for everybody has as many addresses in one as he likes.
fn place_of(remote: &Multiaddr) -> Option<IpAddr> {
    match remote.iter().next()? {
        Protocol::Ip4(address) => Some(address.into()),
        Protocol::Ip6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => Some(mapped.into()),
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
        _: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        self.take(connection, remote).map_err(|why| {
            count(&self.counters.connections_refused);
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
        if let Some((_, known)) = self.connections.get_mut(&connection) {
            *known = Some(peer);
        }
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
        match event {
            FromSwarm::ConnectionClosed(ConnectionClosed { connection_id, .. })
            | FromSwarm::ListenFailure(ListenFailure { connection_id, .. }) => self.free(&connection_id),
            _ => {}
        }
    }

    fn on_connection_handler_event(&mut self, _: PeerId, _: ConnectionId, event: THandlerOutEvent<Self>) {
        match event {}
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    /// Connections from these addresses: which are taken, in a swarm of 128.
    fn tried(slots: &mut Slots, addresses: impl IntoIterator<Item = String>) -> Vec<Result<ConnectionId, SlotError>> {
        let here: Multiaddr = "/ip4/192.0.2.1/tcp/4817".parse().unwrap();
        let mut connect = |address: String| {
            let connection = ConnectionId::new_unchecked(slots.connections.len() + 1000 * slots.of_address.len());
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

    #[test]
    fn one_address_has_few_slots_and_gets_them_back() {
        let mut slots = slots();
        let taken = tried(&mut slots, (0..20).map(|_| "/ip4/198.51.100.7".to_owned()));
        assert_eq!(taken.iter().filter(|taken| taken.is_ok()).count(), 16);
        assert_eq!(taken[19], Err(SlotError::Address));
        assert_eq!(slots.counters.connections_refused.load(Ordering::Relaxed), 4);
        assert!(tried(&mut slots, ["/ip4/198.51.100.8".to_owned()])[0].is_ok(), "from elsewhere there is room");
        slots.free(taken[3].as_ref().unwrap());
        assert!(tried(&mut slots, ["/ip6/::ffff:198.51.100.7".to_owned()])[0].is_ok());
    }

    #[test]
    fn a_64_of_ipv6_is_one_address() {
        let mut slots = slots();
        let taken = tried(&mut slots, (0..20).map(|number| format!("/ip6/2001:db8:1:2:{number}::1")));
        assert_eq!(taken.iter().filter(|taken| taken.is_ok()).count(), 16);
        assert!(tried(&mut slots, ["/ip6/2001:db8:1:3::1".to_owned()])[0].is_ok());
    }

    #[test]
    fn strangers_leave_room_for_members() {
        let mut slots = slots();
        let taken = tried(&mut slots, (0..40).map(|number| format!("/ip4/198.51.100.{number}")));
        assert_eq!(taken.iter().filter(|taken| taken.is_ok()).count(), 32);
        assert_eq!(taken[39], Err(SlotError::Strangers));
        let (here, remote) = ("/ip4/192.0.2.1/tcp/1".parse().unwrap(), "/ip4/198.51.100.1/tcp/1".parse().unwrap());
        let member = PeerId::random();
        slots.handle_established_inbound_connection(*taken[1].as_ref().unwrap(), member, &here, &remote).unwrap();
        slots.let_in(member);
        assert!(tried(&mut slots, ["/ip4/203.0.113.1".to_owned()])[0].is_ok());
        slots.no_member(&member);
        assert!(tried(&mut slots, ["/ip4/203.0.113.2".to_owned()])[0].is_err());
    }
}
