//! Restricts libp2p's protocols, which it offers to everybody that connects, to members.
//!
//! What streams of others bring is dropped before anything is done about it, and the streams with it.

use super::messages::{SwarmCounters, count};
use libp2p::{
    Multiaddr, PeerId,
    core::{Endpoint, transport::PortUse},
    swarm::{ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, THandler, THandlerInEvent, THandlerOutEvent, ToSwarm},
};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

/// The peers that were let in and are connected. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Members(Arc<Mutex<HashSet<PeerId>>>);

impl Members {
    /// This peer was let in.
    pub(super) fn let_in(&self, peer: PeerId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(peer);
    }

    /// This peer is no member any more.
    pub(super) fn no_member(&self, peer: &PeerId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(peer);
    }

    /// Whether this peer was let in.
    pub(super) fn contains(&self, peer: &PeerId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(peer)
    }
}

/// A protocol of libp2p for members alone.
pub(super) struct MembersOnly<B> {
    pub(super) protocol: B,
    members: Members,
    counters: Arc<SwarmCounters>,
}

impl<B> MembersOnly<B> {
    /// This protocol, for these.
    pub(super) fn new(protocol: B, members: Members, counters: Arc<SwarmCounters>) -> MembersOnly<B> {
        MembersOnly { protocol, members, counters }
    }
}

impl<B: NetworkBehaviour> NetworkBehaviour for MembersOnly<B> {
    type ConnectionHandler = B::ConnectionHandler;
    type ToSwarm = B::ToSwarm;

    fn handle_pending_inbound_connection(
        &mut self,
        connection: ConnectionId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        self.protocol.handle_pending_inbound_connection(connection, local, remote)
    }

    fn handle_established_inbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.protocol.handle_established_inbound_connection(connection, peer, local, remote)
    }

    fn handle_pending_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: Option<PeerId>,
        addresses: &[Multiaddr],
        role: Endpoint,
    ) -> Result<Vec<Multiaddr>, ConnectionDenied> {
        self.protocol.handle_pending_outbound_connection(connection, peer, addresses, role)
    }

    fn handle_established_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        address: &Multiaddr,
        role: Endpoint,
        port: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.protocol.handle_established_outbound_connection(connection, peer, address, role, port)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        self.protocol.on_swarm_event(event);
    }

    fn on_connection_handler_event(&mut self, peer: PeerId, connection: ConnectionId, event: THandlerOutEvent<Self>) {
        if self.members.contains(&peer) {
            self.protocol.on_connection_handler_event(peer, connection, event);
        } else {
            count(&self.counters.uninvited);
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        self.protocol.poll(context)
    }
}
