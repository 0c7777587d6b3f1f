//! How does a program that is no member read results? By one connection with a temporary key, one request and one response.

use super::{
    behaviour::{PublicBehaviour, public_behaviour},
    codec::Arrived,
    messages::AskError,
    reason::dial_reason,
    serve::failure_of,
    transport,
};
use libp2p::{
    Multiaddr,
    futures::StreamExt,
    identity::Keypair,
    request_response::{self, Message, ProtocolSupport},
    swarm::{self, SwarmEvent, dial_opts::DialOpts},
};
use nearcrawl_model::message::{PublicRequest, PublicResponse};
use std::{net::IpAddr, time::Duration};

/// How a reader connects.
#[derive(Clone, Debug, Default)]
pub struct ReaderConfig {
    /// Connect from this address.
    pub source_address: Option<IpAddr>,
    /// The swarm's pre-shared key, if it has one.
    pub pre_shared_key: Option<[u8; 32]>,
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
    tokio::time::timeout(timeout, ask(reader, address, request, timeout)).await.unwrap_or(Err(AskError::TimedOut))
}

async fn ask(reader: &ReaderConfig, address: &str, request: PublicRequest, timeout: Duration) -> Result<PublicResponse, AskError> {
    let unreachable = |reason: String| AskError::Unreachable(reason);
    let target: Multiaddr =
        address.parse().map_err(|_| unreachable(format!("{address:?} is not a multiaddr; write it like /ip4/192.0.2.1/tcp/4817")))?;
    let keypair = Keypair::generate_ed25519();
    let transport =
        transport::build(&keypair, reader.source_address, reader.pre_shared_key, None).map_err(|error| unreachable(error.to_string()))?;
    let behaviour: PublicBehaviour =
        public_behaviour(request_response::Config::default().with_request_timeout(timeout), ProtocolSupport::Outbound);
    let config = swarm::Config::with_tokio_executor().with_idle_connection_timeout(timeout);
    let mut libp2p = swarm::Swarm::new(transport, behaviour, keypair.public().to_peer_id(), config);
    libp2p.dial(DialOpts::from(target)).map_err(|error| unreachable(dial_reason(&error)))?;
    let mut question = Some(request);
    loop {
        match libp2p.select_next_some().await {
            SwarmEvent::ConnectionEstablished { peer_id, .. } => {
                if let Some(request) = question.take() {
                    libp2p.behaviour_mut().send_request(&peer_id, Arrived::of(request));
                }
            }
            SwarmEvent::OutgoingConnectionError { error, .. } => return Err(unreachable(dial_reason(&error))),
            SwarmEvent::Behaviour(request_response::Event::Message { message: Message::Response { response, .. }, .. }) => {
                return Ok(response);
            }
            SwarmEvent::Behaviour(request_response::Event::OutboundFailure { error, .. }) => return Err(failure_of(&error)),
            _ => {}
        }
    }
}
