//! Reads results for a program that is no member: one connection with a temporary key, and one question after another over it.

use super::{
    behaviour::{PublicBehaviour, public_behaviour},
    codec::Arrived,
    diagnosis::{Diagnoses, Looker},
    messages::AskError,
    reason::dial_reason,
    serve::failure_of,
    transport::{self, Line},
};
use libp2p::{
    Multiaddr, PeerId,
    futures::StreamExt,
    identity::Keypair,
    request_response::{self, Message, ProtocolSupport},
    swarm::{self, SwarmEvent, dial_opts::DialOpts},
};
use nearcrawl_model::message::{PublicRequest, PublicResponse};
use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

/// How a reader connects.
#[derive(Clone, Debug, Default)]
pub struct ReaderConfig {
    /// Connect from this address.
    pub source_address: Option<IpAddr>,
    /// The swarm's pre-shared key, if it has one.
    pub pre_shared_key: Option<[u8; 32]>,
    /// Who is asked for the addresses of names; nobody in particular for those that the system asks.
    pub name_servers: Vec<SocketAddr>,
}

impl ReaderConfig {
    pub(super) fn line(&self) -> Line {
        let (source, key, name_servers) = (self.source_address, self.pre_shared_key, self.name_servers.clone());
        Line { source, key, name_servers, ..Line::default() }
    }

    /// Who answers at an address with which no connection came about, if that is not a member like this one: another program, or a member with
    /// another pre-shared key.
    async fn diagnosed(&self, target: &Multiaddr, reason: String) -> String {
        let key = self.pre_shared_key.is_some();
        let looker = Looker { source: self.source_address, key, dialable: None, name_servers: self.name_servers.clone() };
        looker.look(target).await.unwrap_or(reason)
    }
}

/// Sends a public request to the access point at this multiaddr; neither side needs to know the other.
pub async fn ask_public(address: &str, request: PublicRequest, timeout: Duration) -> Result<PublicResponse, AskError> {
    ask_public_with(&ReaderConfig::default(), address, request, timeout).await
}

/// The same, connecting in a certain way.
pub async fn ask_public_with(
    reader: &ReaderConfig,
    address: &str,
    request: PublicRequest,
    timeout: Duration,
) -> Result<PublicResponse, AskError> {
    let ask = async { Reader::connect(reader, address, timeout).await?.ask(request).await };
    tokio::time::timeout(timeout, ask).await.unwrap_or(Err(AskError::TimedOut))
}

/// A connection to an access point, over which one question after another is asked.
pub struct Reader {
    libp2p: swarm::Swarm<PublicBehaviour>,
    peer: PeerId,
    timeout: Duration,
}

impl Reader {
    /// Connects; each answer may take so long.
    pub async fn connect(reader: &ReaderConfig, address: &str, timeout: Duration) -> Result<Reader, AskError> {
        let unreachable = |reason: String| AskError::Unreachable(reason);
        let target: Multiaddr =
            address.parse().map_err(|_| unreachable(format!("{address:?} is not a multiaddr; write it like /ip4/192.0.2.1/tcp/4817")))?;
        let keypair = Keypair::generate_ed25519();
        let line = reader.line();
        let transport = transport::direct(&keypair, line).map_err(|error| unreachable(error.to_string()))?;
        let behaviour: PublicBehaviour =
            public_behaviour(request_response::Config::default().with_request_timeout(timeout), ProtocolSupport::Outbound);
        let config = swarm::Config::with_tokio_executor().with_idle_connection_timeout(timeout);
        let mut libp2p = swarm::Swarm::new(transport, behaviour, keypair.public().to_peer_id(), config);
        libp2p.dial(DialOpts::from(target.clone())).map_err(|error| unreachable(dial_reason(&error)))?;
        let connecting = async {
            loop {
                match libp2p.select_next_some().await {
                    SwarmEvent::ConnectionEstablished { peer_id, .. } => return Ok(peer_id),
                    SwarmEvent::OutgoingConnectionError { error, .. } => return Err(error),
                    _ => {}
                }
            }
        };
        let peer = match tokio::time::timeout(timeout, connecting).await {
            Ok(Ok(peer)) => peer,
            Ok(Err(error)) if Diagnoses::helps(&error) => return Err(unreachable(reader.diagnosed(&target, dial_reason(&error)).await)),
            Ok(Err(error)) => return Err(unreachable(dial_reason(&error))),
            Err(_) => return Err(AskError::TimedOut),
        };
        Ok(Reader { libp2p, peer, timeout })
    }

    /// Asks, and waits for the answer.
    pub async fn ask(&mut self, request: PublicRequest) -> Result<PublicResponse, AskError> {
        tokio::time::timeout(self.timeout, self.answer(request)).await.unwrap_or(Err(AskError::TimedOut))
    }

    async fn answer(&mut self, request: PublicRequest) -> Result<PublicResponse, AskError> {
        let asked = self.libp2p.behaviour_mut().send_request(&self.peer, Arrived::of(request));
        loop {
            match self.libp2p.select_next_some().await {
                SwarmEvent::OutgoingConnectionError { error, .. } => return Err(AskError::Unreachable(dial_reason(&error))),
                SwarmEvent::Behaviour(request_response::Event::Message { message: Message::Response { request_id, response }, .. })
                    if request_id == asked =>
                {
                    return Ok(response);
                }
                SwarmEvent::Behaviour(request_response::Event::OutboundFailure { error, request_id, .. }) if request_id == asked => {
                    return Err(failure_of(&error));
                }
                _ => {}
            }
        }
    }
}
