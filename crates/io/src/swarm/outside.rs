//! Checks whether others would reach a daemon here, before there is one.
//!
//! A program listens for a moment where the daemon would, and asks a member to connect to it.

use super::{
    behaviour::{DialBackBehaviour, PublicBehaviour, public_behaviour},
    codec::{Arrived, MessageCodec},
    config::StartError,
    dial_back::{ANSWERED_WITHIN, DialBack, DialedBack, MAX_DIAL_BACK, MAX_PORTS},
    identity::access_point_of,
    messages::AskError,
    port::Port,
    protocol,
    public::ReaderConfig,
    reason::{self, dial_reason},
    serve::failure_of,
    transport,
    ways::is_quic,
};
use libp2p::{
    Multiaddr, PeerId, StreamProtocol,
    futures::StreamExt,
    identity::Keypair,
    request_response::{self, Message, ProtocolSupport},
    swarm::{self, NetworkBehaviour, SwarmEvent, dial_opts::DialOpts},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    message::{PublicRequest, PublicResponse},
};
use std::{collections::BTreeSet, net::IpAddr, time::Duration};

/// The two questions of a program that is no member: a public one, so that the member keeps the connection, and then whether it is reached.
#[derive(NetworkBehaviour)]
struct Outside {
    public: PublicBehaviour,
    dial_back: DialBackBehaviour,
}

/// What a member found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenFrom {
    /// The member.
    pub member: Option<AccessPoint>,
    /// The address that it sees us at; none if it did not try.
    pub seen: Option<IpAddr>,
    /// Where it tried, as multiaddrs, and whether it reached us there.
    pub tried: Vec<(String, bool)>,
}

/// Why nothing was found out.
#[derive(Debug, thiserror::Error)]
pub enum OutsideError {
    /// It cannot be listened here.
    #[error(transparent)]
    Listen(#[from] StartError),
    /// The member does not answer.
    #[error(transparent)]
    Ask(#[from] AskError),
}

/// Listens at these addresses for a moment and asks the member at that multiaddr to connect to them. All is done under a key that is
/// discarded.
///
/// # Errors
/// It cannot be listened there, or the member does not answer.
pub async fn seen_from(reader: &ReaderConfig, member: &str, listen: &[String], patience: Duration) -> Result<SeenFrom, OutsideError> {
    let mut asking = Asking::new(reader, listen)?;
    let ask = async {
        let ports = asking.ports().await?;
        let peer = asking.connect(member).await?;
        asking.introduce(peer).await?;
        let answer = asking.dialled_back(peer, &ports).await?;
        let tried = match answer.seen {
            Some(seen) if answer.reached.len() == ports.len() => {
                ports.iter().zip(answer.reached).map(|(port, reached)| (port.at(seen.to_canonical()).to_string(), reached)).collect()
            }
            _ => Vec::new(),
        };
        Ok(SeenFrom { member: access_point_of(&peer), seen: answer.seen.map(|seen| seen.to_canonical()), tried })
    };
    tokio::time::timeout(patience, ask).await.unwrap_or(Err(OutsideError::Ask(AskError::TimedOut)))
}

struct Asking {
    libp2p: swarm::Swarm<Outside>,
    /// Listeners that have no address yet.
    waiting: usize,
}

impl Asking {
    fn new(reader: &ReaderConfig, listen: &[String]) -> Result<Asking, StartError> {
        let keypair = Keypair::generate_ed25519();
        let transport = transport::direct(&keypair, reader.line())?;
        let config = request_response::Config::default().with_request_timeout(ANSWERED_WITHIN);
        let behaviour = Outside {
            public: public_behaviour(config.clone(), ProtocolSupport::Outbound),
            dial_back: DialBackBehaviour::with_codec(
                MessageCodec::new(MAX_DIAL_BACK),
                [(StreamProtocol::new(protocol::DIAL_BACK), ProtocolSupport::Outbound)],
                config,
            ),
        };
        let settings = swarm::Config::with_tokio_executor().with_idle_connection_timeout(ANSWERED_WITHIN);
        let mut libp2p = swarm::Swarm::new(transport, behaviour, keypair.public().to_peer_id(), settings);
        let mut waiting = 0;
        for text in listen {
            let address: Multiaddr = text
                .parse()
                .map_err(|why: libp2p::multiaddr::Error| StartError::BadAddress { address: text.clone(), reason: why.to_string() })?;
            // QUIC has no pre-shared key.
            if reader.pre_shared_key.is_some() && is_quic(&address) {
                continue;
            }
            let refused = |error: &dyn std::error::Error| StartError::Listen { address: text.clone(), reason: reason::innermost(error) };
            libp2p.listen_on(address).map_err(|error| refused(&error))?;
            waiting += 1;
        }
        Ok(Asking { libp2p, waiting })
    }

    /// The ports, as soon as there is an address for each.
    async fn ports(&mut self) -> Result<Vec<Port>, OutsideError> {
        while self.waiting > 0 {
            match self.libp2p.select_next_some().await {
                SwarmEvent::NewListenAddr { .. } => self.waiting -= 1,
                SwarmEvent::ListenerClosed { reason: Err(why), .. } => return Err(AskError::Unreachable(why.to_string()).into()),
                _ => {}
            }
        }
        let ports: BTreeSet<Port> = self.libp2p.listeners().filter_map(Port::of).collect();
        Ok(ports.into_iter().take(MAX_PORTS).collect())
    }

    async fn connect(&mut self, member: &str) -> Result<PeerId, AskError> {
        let target: Multiaddr = member.parse().map_err(|_| AskError::Unreachable(format!("{member:?} is not a multiaddr")))?;
        let options = DialOpts::from(target);
        let dialled = options.connection_id();
        self.libp2p.dial(options).map_err(|error| AskError::Unreachable(dial_reason(&error)))?;
        loop {
            match self.libp2p.select_next_some().await {
                SwarmEvent::ConnectionEstablished { peer_id, connection_id, .. } if connection_id == dialled => return Ok(peer_id),
                SwarmEvent::OutgoingConnectionError { error, .. } => return Err(AskError::Unreachable(dial_reason(&error))),
                _ => {}
            }
        }
    }

    /// Who asks something public is taken for a reader, whatever the answer is; who says nothing is hung up on.
    async fn introduce(&mut self, peer: PeerId) -> Result<PublicResponse, AskError> {
        let asked = self.libp2p.behaviour_mut().public.send_request(&peer, Arrived::of(PublicRequest::Owners));
        loop {
            match self.libp2p.select_next_some().await {
                SwarmEvent::Behaviour(OutsideEvent::Public(request_response::Event::Message {
                    message: Message::Response { request_id, response },
                    ..
                })) if request_id == asked => return Ok(response),
                SwarmEvent::Behaviour(OutsideEvent::Public(request_response::Event::OutboundFailure { error, request_id, .. }))
                    if request_id == asked =>
                {
                    return Err(failure_of(&error));
                }
                _ => {}
            }
        }
    }

    async fn dialled_back(&mut self, peer: PeerId, ports: &[Port]) -> Result<DialedBack, AskError> {
        let asked = self.libp2p.behaviour_mut().dial_back.send_request(&peer, Arrived::of(DialBack { ports: ports.to_vec() }));
        loop {
            match self.libp2p.select_next_some().await {
                SwarmEvent::Behaviour(OutsideEvent::DialBack(request_response::Event::Message {
                    message: Message::Response { request_id, response },
                    ..
                })) if request_id == asked => return Ok(response),
                SwarmEvent::Behaviour(OutsideEvent::DialBack(request_response::Event::OutboundFailure { error, request_id, .. }))
                    if request_id == asked =>
                {
                    return Err(failure_of(&error));
                }
                _ => {}
            }
        }
    }
}
