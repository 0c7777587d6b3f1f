//! The protocols of a member: libp2p's behaviours, put together with our limits.

use super::{
    codec::MessageCodec,
    config::{StartError, SwarmConfig},
    dial_back::{ANSWERED_WITHIN, DialBack, DialedBack, MAX_DIAL_BACK},
    dial_guard::DialGuard,
    dialling::Dialable,
    hello::{Hello, HelloAnswer},
    members_only::{Members, MembersOnly},
    messages::SwarmCounters,
    protocol,
    slots::Slots,
    topic::{OwnTopic, Subscriptions, subscriptions},
};
use libp2p::{
    StreamProtocol, allow_block_list, connection_limits, dcutr, gossipsub, identify,
    identity::Keypair,
    memory_connection_limits, ping, relay,
    request_response::{self, ProtocolSupport},
    swarm::NetworkBehaviour,
};
use nearcrawl_model::message::{MAX_CIRCUIT_BYTES, MAX_GOSSIP, MAX_MESSAGE, PublicRequest, PublicResponse, Request, Response};
use std::{sync::Arc, time::Duration};

/// How long a hello may take.
pub(super) const HELLO_WITHIN: Duration = Duration::from_secs(5);

/// How often the way to each connected member is timed; both sides do so.
const PING_EVERY: Duration = Duration::from_secs(60);

/// The largest hello, in bytes.
const MAX_HELLO: usize = 4 << 10;

/// Gossip of our swarm.
pub(super) type GossipBehaviour = gossipsub::Behaviour<OwnTopic, Subscriptions>;
/// Questions and answers between members.
pub(super) type MemberBehaviour = request_response::Behaviour<MessageCodec<Request, Response>>;
/// The protocol by which two peers exchange hellos.
pub(super) type HelloBehaviour = request_response::Behaviour<MessageCodec<Hello, HelloAnswer>>;
/// Whether members reach each other.
pub(super) type DialBackBehaviour = request_response::Behaviour<MessageCodec<DialBack, DialedBack>>;
/// The protocol for requests of non-members.
pub(super) type PublicBehaviour = request_response::Behaviour<MessageCodec<PublicRequest, PublicResponse>>;

/// All protocols of a member. The limits come first: a connection that they refuse reaches none of the others.
#[derive(NetworkBehaviour)]
pub(super) struct Behaviour {
    pub(super) blocked: allow_block_list::Behaviour<allow_block_list::BlockedPeers>,
    connections: connection_limits::Behaviour,
    pub(super) slots: Slots,
    memory: memory_connection_limits::Behaviour,
    pub(super) guard: DialGuard,
    identify: identify::Behaviour,
    ping: ping::Behaviour,
    pub(super) gossip: GossipBehaviour,
    pub(super) hello: HelloBehaviour,
    pub(super) member: MemberBehaviour,
    pub(super) brief: libp2p_stream::Behaviour,
    pub(super) public: PublicBehaviour,
    pub(super) dial_back: DialBackBehaviour,
    pub(super) relay: MembersOnly<relay::Behaviour>,
    relayed: relay::client::Behaviour,
    holes: MembersOnly<dcutr::Behaviour>,
}

/// What the behaviours share with those who use them.
pub(super) struct Shared {
    pub(super) topic: OwnTopic,
    pub(super) members: Members,
    pub(super) dialable: Dialable,
    pub(super) relayed: relay::client::Behaviour,
    pub(super) counters: Arc<SwarmCounters>,
}

impl Behaviour {
    /// The behaviours of an access point with this key.
    pub(super) fn new(config: &SwarmConfig, keypair: &Keypair, shared: Shared) -> Result<Behaviour, StartError> {
        let Shared { topic, members, dialable, relayed, counters } = shared;
        let me = keypair.public().to_peer_id();
        let mut relay = relay::Behaviour::new(me, relay_limits());
        // Until it is known that others reach us.
        relay.set_status(Some(relay::Status::Disable));
        let connections = connection_limits::ConnectionLimits::default()
            .with_max_pending_incoming(Some(max_pending(config.max_connections)))
            .with_max_pending_outgoing(Some(max_pending(config.max_connections)))
            .with_max_established(Some(config.max_connections))
            // Whoever connects to us leaves room for those to whom we connect.
            .with_max_established_incoming(Some((config.max_connections / 4 * 3).max(1)))
            .with_max_established_per_peer(Some(4));
        let identify = identify::Config::new(protocol::IDENTIFY.to_owned(), keypair.public())
            .with_agent_version(config.software.clone())
            .with_push_listen_addr_updates(false)
            .with_cache_size(0);
        let hello = request_response::Config::default().with_request_timeout(HELLO_WITHIN).with_max_concurrent_streams(8);
        let member = request_response::Config::default().with_request_timeout(config.answer_within).with_max_concurrent_streams(160);
        let public = request_response::Config::default().with_request_timeout(config.answer_within).with_max_concurrent_streams(8);
        Ok(Behaviour {
            blocked: allow_block_list::Behaviour::default(),
            connections: connection_limits::Behaviour::new(connections),
            slots: Slots::new(config.max_connections, members.clone(), counters.clone()),
            memory: memory_connection_limits::Behaviour::with_max_bytes(config.max_memory),
            identify: identify::Behaviour::new(identify),
            guard: DialGuard::new(dialable, counters.clone()),
            ping: ping::Behaviour::new(ping::Config::new().with_interval(PING_EVERY)),
            gossip: gossip(keypair, topic)?,
            hello: HelloBehaviour::with_codec(
                MessageCodec::new(MAX_HELLO),
                [(StreamProtocol::new(protocol::HELLO), ProtocolSupport::Full)],
                hello,
            ),
            member: MemberBehaviour::with_codec(
                MessageCodec::new(MAX_MESSAGE),
                [(StreamProtocol::new(protocol::MEMBER), ProtocolSupport::Full)],
                member,
            ),
            brief: libp2p_stream::Behaviour::new(),
            // A member only answers here; its own requests use a connection with a temporary key, like those of non-members.
            public: public_behaviour(public, ProtocolSupport::Inbound),
            dial_back: DialBackBehaviour::with_codec(
                MessageCodec::new(MAX_DIAL_BACK),
                [(StreamProtocol::new(protocol::DIAL_BACK), ProtocolSupport::Full)],
                request_response::Config::default().with_request_timeout(ANSWERED_WITHIN).with_max_concurrent_streams(8),
            ),
            relay: MembersOnly::new(relay, members.clone(), counters.clone()),
            relayed,
            holes: MembersOnly::new(dcutr::Behaviour::new(me), members, counters),
        })
    }
}

/// How much is done for others: enough for a whole hand-over between two of them.
fn relay_limits() -> relay::Config {
    relay::Config {
        max_reservations: 64,
        // libp2p permits one more than these.
        max_reservations_per_peer: 1,
        max_circuits: 32,
        max_circuits_per_peer: 2,
        // A place ends with its connection. Before that it would end by the wall clocks of both, and a renewal in the moment of its end panics
        // in libp2p-relay 0.22.
        reservation_duration: Duration::from_secs(30 * 86_400),
        max_circuit_duration: Duration::from_secs(3600),
        max_circuit_bytes: MAX_CIRCUIT_BYTES,
        ..relay::Config::default()
    }
}

/// Connections that are being made at a time, of each direction.
pub(super) fn max_pending(max_connections: u32) -> u32 {
    max_connections / 4 + 4
}

/// The public protocol, for answering or for asking.
pub(super) fn public_behaviour(config: request_response::Config, support: ProtocolSupport) -> PublicBehaviour {
    PublicBehaviour::with_codec(MessageCodec::new(MAX_MESSAGE), [(StreamProtocol::new(protocol::PUBLIC), support)], config)
}

fn gossip(keypair: &Keypair, topic: OwnTopic) -> Result<GossipBehaviour, StartError> {
    let config = gossipsub::ConfigBuilder::default()
        // Room for what gossipsub wraps around the message: author, number, signature, topic.
        .max_transmit_size(MAX_GOSSIP + 1024)
        .validation_mode(gossipsub::ValidationMode::Strict)
        // No message is forwarded before it and its sender are checked.
        .validate_messages()
        // Each message comes as often as there are neighbours in the mesh, less one, and from its author besides if that floods. What a sparse
        // mesh loses is asked for at the next heartbeat, and what nobody tells of any more is found by asking for it (maps, totals): so each
        // member tells one other, once, what it has, and not six of them at three heartbeats, which takes more bytes than the messages do.
        .flood_publish(false)
        .mesh_n_low(2)
        .mesh_n(3)
        .mesh_n_high(4)
        .mesh_outbound_min(1)
        .gossip_lazy(1)
        .gossip_factor(0.0)
        .history_gossip(1)
        .heartbeat_initial_delay(Duration::from_millis(500))
        .heartbeat_interval(Duration::from_secs(1))
        .duplicate_cache_time(Duration::from_secs(120))
        .build()
        .map_err(|error| StartError::Library(error.to_string()))?;
    let signed = gossipsub::MessageAuthenticity::Signed(keypair.clone());
    gossipsub::Behaviour::new_with_subscription_filter_and_transform(signed, config, subscriptions(), topic)
        .map_err(|error| StartError::Library(error.to_owned()))
}
