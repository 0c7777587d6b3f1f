//! The loop of the swarm task, which joins commands, libp2p's events and the clock.
//!
//! It never waits for the caller: events queue up here, and when too many do, libp2p is not polled until some are taken, so
//! the peers feel it and not our memory.

use super::{
    HelloError, PROTOCOL, SwarmSecrets,
    behaviour::{Behaviour, BehaviourEvent, HELLO_WITHIN, Shared, max_pending},
    brief::{BriefEvent, BriefId, BriefStreams},
    channel::Channel,
    config::{StartError, SwarmConfig},
    diagnosis::{Diagnoses, Looker},
    dialling::{DialLimits, Dialable, ip_of},
    gossip_limits::GossipLimits,
    hello::Hello,
    members_only::Members,
    messages::{AskError, SwarmCommand, SwarmCounters, SwarmEvent, SwarmHandle, count},
    peers::{MAX_OPEN, Peer, Stage, Waiting},
    protocol::OLDEST,
    rate::TokenBucket,
    reach::{Reach, dial_ours},
    reason::{self, dial_reason},
    topic::OwnTopic,
    transport::{self, Line},
    ways,
};
use crate::tasks::{self, TaskKind};
use libp2p::{
    Multiaddr, PeerId,
    core::upgrade::Version,
    futures::StreamExt,
    gossipsub::IdentTopic,
    identity::Keypair,
    ping, relay,
    request_response::{OutboundRequestId, ResponseChannel},
    swarm::{
        self, ConnectionId,
        dial_opts::{DialOpts, PeerCondition},
    },
};
use nearcrawl_model::{
    access_point::AccessPoint,
    ids::{QuestionId, Ticket},
    message::{PublicResponse, Request},
};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};
use tokio::{sync::mpsc, time::MissedTickBehavior};

/// Commands that may wait.
const MAX_COMMANDS: usize = 4096;
/// Events that may wait before libp2p is held up.
const MAX_EVENTS: usize = 1024;
/// Events that may wait before commands are held up, too.
const MAX_EVENTS_AND_ANSWERS: usize = 8192;
/// Peers whose addresses are remembered, and peers with waiting questions.
const MAX_PEERS: usize = 4096;
/// Dials to addresses under way. libp2p's limit of pending connections is lower; this one holds whatever becomes of that.
pub(super) const MAX_DIALS: usize = 256;
/// Malformed messages after which a peer is shut out.
const MAX_OFFENCES: u32 = 16;
/// For how long it is shut out.
const SHUT_OUT_FOR: Duration = Duration::from_secs(3600);
/// How long a refused peer has to read why.
const READ_REFUSAL_WITHIN: Duration = Duration::from_secs(1);
/// How long a reader may stay connected.
const READER_STAYS: Duration = Duration::from_secs(60);
/// It is hung up on before that if others have no room and it has asked nothing for so long.
const READER_IDLE: Duration = Duration::from_secs(10);
/// How often time is looked at.
const TICK: Duration = Duration::from_millis(250);

/// How a member connects.
fn line_of(config: &SwarmConfig, dialable: &Dialable, counters: &SwarmCounters) -> Line {
    let (source, key, meter) = (config.source_address, config.pre_shared_key, Arc::clone(&counters.meter));
    Line { source, key, dialable: Some(dialable.clone()), name_servers: config.name_servers.clone(), meter }
}

/// The swarm; see [`Swarm::start`].
pub struct Swarm;

impl Swarm {
    /// Starts listening and runs the swarm in a task of the current tokio runtime until it is told to stop or all handles
    /// are gone. `seed` is the secret Ed25519 seed of this access point.
    pub fn start(config: SwarmConfig, seed: [u8; 32]) -> Result<(SwarmHandle, mpsc::Receiver<SwarmEvent>), StartError> {
        let keypair = Keypair::ed25519_from_bytes(seed).map_err(|error| StartError::Key(error.to_string()))?;
        let me = super::access_point_of_seed(seed);
        config.announce.iter().try_for_each(|text| parse(text).map(drop))?;
        let counters = Arc::new(SwarmCounters::default());
        let named = config.bootstrap.iter().chain(&config.listen).chain(&config.announce);
        let dialable = Dialable::new(&config.allow_ranges, named, counters.clone());
        let (circuits, relayed) = relay::client::new(keypair.public().to_peer_id());
        let line = line_of(&config, &dialable, &counters);
        let transport = transport::all(&keypair, line, circuits)?;
        let (own_topic, members) = (OwnTopic::new(counters.clone()), Members::default());
        let reach = Reach::new(&config, keypair.public().to_peer_id(), members.clone(), dialable.clone(), counters.clone());
        let shared = Shared { topic: own_topic.clone(), members, dialable: dialable.clone(), relayed, counters: counters.clone() };
        let behaviour = Behaviour::new(&config, &keypair, shared)?;
        // A long idle time-out: accepted peers stay connected, and this module closes the connections to others.
        let limits = swarm::Config::with_tokio_executor()
            .with_idle_connection_timeout(Duration::from_secs(3600))
            .with_max_negotiating_inbound_streams(64)
            // The first protocol is proposed together with the message, not a round trip before it: every question opens a stream.
            .with_substream_upgrade_protocol_override(Version::V1Lazy);
        let mut libp2p = swarm::Swarm::new(transport, behaviour, keypair.public().to_peer_id(), limits);
        listen(&mut libp2p, &config)?;
        let streams = BriefStreams::start(&libp2p.behaviour().brief, config.answer_within);
        let (brief, brief_events) = streams.map_err(|error| StartError::Library(error.to_string()))?;
        let (commands, command_receiver) = mpsc::channel(MAX_COMMANDS);
        let (event_sender, events) = mpsc::channel(MAX_EVENTS);
        let public_rate = config.public_per_second;
        let mut runner = Runner {
            secrets: config.secrets,
            me,
            reach,
            topic: None,
            own_topic,
            libp2p,
            peers: HashMap::new(),
            known: HashMap::new(),
            questions: HashMap::new(),
            brief,
            brief_events,
            tickets: HashMap::new(),
            public_tickets: HashMap::new(),
            next_ticket: 1,
            dials: HashMap::new(),
            diagnoses: Diagnoses::new(),
            offences: HashMap::new(),
            shut_out: VecDeque::new(),
            public_rate: TokenBucket::new(public_rate.saturating_mul(4), public_rate, Instant::now()),
            gossip_limits: GossipLimits::new(Instant::now()),
            dialable,
            dial_limits: DialLimits::new(max_pending(config.max_connections)),
            outbox: VecDeque::new(),
            counters: counters.clone(),
            config,
        };
        runner.subscribe()?;
        // After a panic nobody sends events any more: the owner of `events` sees that the swarm has ended.
        tokio::spawn(tasks::run(TaskKind::Swarm, runner.run(command_receiver, event_sender)));
        Ok((SwarmHandle { me, commands, counters }, events))
    }
}

/// Waits for others where the configuration says; with a pre-shared key there is no QUIC.
fn listen(libp2p: &mut swarm::Swarm<Behaviour>, config: &SwarmConfig) -> Result<(), StartError> {
    for text in &config.listen {
        let address = parse(text)?;
        if config.pre_shared_key.is_some() && ways::is_quic(&address) {
            continue;
        }
        let refused = |error: &dyn std::error::Error| StartError::Listen { address: text.clone(), reason: reason::innermost(error) };
        libp2p.listen_on(address).map_err(|error| refused(&error))?;
    }
    Ok(())
}

fn parse(text: &str) -> Result<Multiaddr, StartError> {
    text.parse().map_err(|_| StartError::BadAddress { address: text.to_owned(), reason: "it is no multiaddr".to_owned() })
}

/// A request of a member that waits for our answer.
pub(super) struct OpenRequest {
    pub(super) peer: PeerId,
    pub(super) channel: Channel,
    /// Counted against the peer's open questions; SWIM's are not.
    pub(super) counted: bool,
}

/// How a question of ours was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Sent {
    /// Over a stream of its own.
    Own(OutboundRequestId),
    /// Over the stream for short ones.
    Brief(BriefId),
}

/// A question of ours that a member has not answered yet.
pub(super) struct OpenQuestion {
    pub(super) question: QuestionId,
    pub(super) peer: PeerId,
    /// When it was sent.
    pub(super) asked: Instant,
    /// A short one: until when, and what was asked, should it have to be asked again over a stream of its own.
    pub(super) brief: Option<(Instant, Request)>,
}

/// The state of the loop. Greeting is in `greet`, serving in `serve`.
pub(super) struct Runner {
    pub(super) config: SwarmConfig,
    pub(super) secrets: Option<SwarmSecrets>,
    pub(super) me: AccessPoint,
    pub(super) reach: Reach,
    pub(super) topic: Option<IdentTopic>,
    pub(super) own_topic: OwnTopic,
    pub(super) libp2p: swarm::Swarm<Behaviour>,
    pub(super) peers: HashMap<PeerId, Peer>,
    pub(super) known: HashMap<PeerId, Vec<Multiaddr>>,
    pub(super) questions: HashMap<Sent, OpenQuestion>,
    pub(super) brief: BriefStreams,
    brief_events: mpsc::Receiver<BriefEvent>,
    pub(super) tickets: HashMap<Ticket, OpenRequest>,
    pub(super) public_tickets: HashMap<Ticket, (PeerId, ResponseChannel<PublicResponse>)>,
    pub(super) next_ticket: u64,
    dials: HashMap<ConnectionId, String>,
    diagnoses: Diagnoses,
    offences: HashMap<PeerId, u32>,
    shut_out: VecDeque<(Instant, PeerId)>,
    pub(super) public_rate: TokenBucket,
    pub(super) gossip_limits: GossipLimits,
    dialable: Dialable,
    dial_limits: DialLimits,
    pub(super) outbox: VecDeque<SwarmEvent>,
    pub(super) counters: Arc<SwarmCounters>,
}

impl Runner {
    async fn run(mut self, mut commands: mpsc::Receiver<SwarmCommand>, events: mpsc::Sender<SwarmEvent>) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                permit = events.reserve(), if !self.outbox.is_empty() => match (permit, self.outbox.pop_front()) {
                    (Ok(permit), Some(event)) => permit.send(event),
                    _ => break,
                },
                () = events.closed(), if self.outbox.is_empty() => break,
                command = commands.recv(), if self.outbox.len() < MAX_EVENTS_AND_ANSWERS => match command {
                    None | Some(SwarmCommand::Stop) => break,
                    Some(command) => self.obey(command),
                },
                event = self.libp2p.select_next_some(), if self.outbox.len() < MAX_EVENTS => self.happened(event),
                Some(event) = self.brief_events.recv(), if self.outbox.len() < MAX_EVENTS => self.brief_event(event),
                Some((address, reason)) = self.diagnoses.next(), if self.outbox.len() < MAX_EVENTS => {
                    self.outbox.push_back(SwarmEvent::DialFailed { address, reason });
                }
                _ = tick.tick() => self.look_at_the_clock(Instant::now()),
            }
        }
        self.wind_up().await;
    }

    /// Lets what was answered go out, then hangs up.
    async fn wind_up(mut self) {
        let answers_out = tokio::time::sleep(Duration::from_millis(200));
        tokio::pin!(answers_out);
        loop {
            tokio::select! {
                () = &mut answers_out => break,
                _ = self.libp2p.select_next_some() => {}
            }
        }
        let connected: Vec<_> = self.libp2p.connected_peers().copied().collect();
        for peer in connected {
            let _ = self.libp2p.disconnect_peer_id(peer);
        }
        let closed = async {
            while self.libp2p.connected_peers().next().is_some() {
                self.libp2p.select_next_some().await;
            }
        };
        let _ = tokio::time::timeout(Duration::from_millis(500), closed).await;
    }

    fn obey(&mut self, command: SwarmCommand) {
        match command {
            SwarmCommand::Dial { address } => self.dial_text(address),
            SwarmCommand::Ask { to, question, request } => self.ask(to, question, request),
            SwarmCommand::Answer { ticket, response } => self.answer(ticket, response),
            SwarmCommand::Publish(gossip) => self.publish(&gossip),
            SwarmCommand::AnswerPublic { ticket, response } => {
                if let Some((peer, channel)) = self.public_tickets.remove(&ticket) {
                    if let Some(state) = self.peers.get_mut(&peer) {
                        state.heard = Instant::now();
                    }
                    let _ = self.libp2p.behaviour_mut().public.send_response(channel, response);
                }
            }
            SwarmCommand::Guard(gate) => {
                self.config.gate = gate;
                self.judge_members();
            }
            SwarmCommand::Show(certificate) => self.config.certificate = Some(*certificate),
            SwarmCommand::Remember { peer, addresses } => self.remember(peer, &addresses),
            SwarmCommand::Stop => {}
        }
    }

    fn dial_text(&mut self, address: String) {
        let failed = |address: String, reason: String| SwarmEvent::DialFailed { address, reason };
        let parsed = match address.parse::<Multiaddr>() {
            Ok(parsed) => parsed,
            Err(_) => {
                let reason = "this is not a multiaddr; write it like /ip4/192.0.2.1/tcp/4817".to_owned();
                self.outbox.push_back(failed(address, reason));
                return;
            }
        };
        if self.dials.len() >= MAX_DIALS {
            count(&self.counters.dials_refused);
            self.outbox.push_back(failed(address, "too many dials are under way".to_owned()));
            return;
        }
        if self.config.bootstrap.contains(&address) {
            self.dialable.open_named(&parsed);
        }
        let options = DialOpts::from(parsed);
        let connection = options.connection_id();
        match dial_ours(&mut self.libp2p, options) {
            Ok(()) => {
                self.dials.insert(connection, address);
            }
            // Connected, or on the way: what the caller wants.
            Err(swarm::DialError::DialPeerConditionFalse(_)) => {}
            Err(error) => self.outbox.push_back(failed(address, dial_reason(&error))),
        }
    }

    /// Says why, after a closer look where the operator named a member and something else may answer.
    fn dial_failed(&mut self, address: String, error: &swarm::DialError) {
        let reason = match error {
            swarm::DialError::WrongPeerId { obtained, .. } if obtained == self.libp2p.local_peer_id() => reason::ITSELF.to_owned(),
            error => dial_reason(error),
        };
        if self.config.bootstrap.contains(&address) && Diagnoses::helps(error) {
            let ours = Looker {
                source: self.config.source_address,
                key: self.config.pre_shared_key.is_some(),
                dialable: Some(self.dialable.clone()),
                name_servers: self.config.name_servers.clone(),
            };
            self.diagnoses.begin(address, reason, ours);
        } else {
            self.outbox.push_back(SwarmEvent::DialFailed { address, reason });
        }
    }

    pub(super) fn remember(&mut self, access_point: AccessPoint, addresses: &[String]) {
        let usable = super::hello::usable_addresses(addresses, access_point);
        let parsed: Vec<Multiaddr> = usable.iter().filter_map(|text| text.parse().ok()).collect();
        if let Some(peer) = super::peer_id_of(access_point)
            && !parsed.is_empty()
        {
            if self.known.len() < MAX_PEERS || self.known.contains_key(&peer) {
                self.known.insert(peer, parsed);
            } else {
                count(&self.counters.addresses_refused);
            }
        }
    }

    fn ask(&mut self, to: AccessPoint, question: QuestionId, request: Request) {
        let failed = |failure: AskError| SwarmEvent::Answered { question, from: to, result: Err(failure) };
        let Some(peer) = super::peer_id_of(to).filter(|_| to != self.me) else {
            self.outbox
                .push_back(failed(AskError::Unreachable("no member can have this key, or it is that of this access point".to_owned())));
            return;
        };
        if !self.peers.contains_key(&peer) && self.peers.len() >= MAX_PEERS {
            self.outbox.push_back(failed(AskError::TooManyOpen));
            return;
        }
        let now = Instant::now();
        let state = self.peers.entry(peer).or_insert_with(|| Peer::new(to, &self.config, now));
        if state.open + state.waiting.len() >= MAX_OPEN {
            self.outbox.push_back(failed(AskError::TooManyOpen));
            return;
        }
        match state.stage {
            Stage::Member { .. } => self.send(peer, question, request),
            Stage::Refused | Stage::Reader => self.outbox.push_back(failed(AskError::NotLetIn("the hello was refused".to_owned()))),
            Stage::Greeting => {
                state.waiting.push_back(Waiting { question, request, since: now });
                if !state.connected {
                    self.dial_asked(peer, now);
                }
            }
        }
    }

    /// Dials a peer for which a question waits.
    fn dial_asked(&mut self, peer: PeerId, now: Instant) {
        let known = self.known.get(&peer).cloned().unwrap_or_default();
        let quic = self.config.pre_shared_key.is_none() && self.config.source_address.is_none();
        let known = ways::to_dial(known, self.dial_limits.has_failed(&peer), quic);
        let unknown = known.is_empty();
        let addresses = self.dial_limits.take(peer, known, now);
        if addresses.is_empty() && !unknown && !self.libp2p.is_connected(&peer) {
            count(&self.counters.dials_refused);
            self.give_up(peer, &AskError::Unreachable("it, or its place, was tried a moment ago".to_owned()));
            return;
        }
        let circuits: Vec<Multiaddr> = addresses.iter().filter(|address| ways::is_circuit(address)).cloned().collect();
        match dial_ours(&mut self.libp2p, DialOpts::peer_id(peer).addresses(addresses).build()) {
            // What relays to it is being tried: a question that comes before it is connected dials nothing more.
            Ok(()) => drop(self.peers.get_mut(&peer).map(|state| state.circuits_dialled = !circuits.is_empty())),
            Err(swarm::DialError::DialPeerConditionFalse(_)) => self.dial_beside(peer, circuits),
            Err(swarm::DialError::NoAddresses) => self.give_up(peer, &AskError::Unreachable("no address is known".to_owned())),
            Err(error) => {
                self.dial_limits.failed(peer, now);
                self.give_up(peer, &AskError::Unreachable(dial_reason(&error)));
            }
        }
    }

    /// A peer is being dialled already, perhaps at an address where a router answers nothing for ten seconds: members that relay to it are
    /// tried beside that, once.
    fn dial_beside(&mut self, peer: PeerId, circuits: Vec<Multiaddr>) {
        let Some(state) = self.peers.get_mut(&peer).filter(|state| !state.circuits_dialled && !circuits.is_empty()) else { return };
        let options = DialOpts::peer_id(peer).addresses(circuits).condition(PeerCondition::Disconnected).build();
        // If it cannot be begun, the other dial is waited for.
        state.beside = dial_ours(&mut self.libp2p, options).is_ok();
        state.circuits_dialled = state.beside;
    }

    /// Sends a question to a member that is connected.
    pub(super) fn send(&mut self, peer: PeerId, question: QuestionId, request: Request) {
        self.counters.messages.count(request.kind(), &request);
        match self.brief.ask(peer, &request) {
            Some(id) => {
                let asked = Instant::now();
                let brief = Some((asked + self.config.answer_within, request));
                self.questions.insert(Sent::Brief(id), OpenQuestion { question, peer, asked, brief });
            }
            None => self.send_alone(peer, question, request),
        }
        if let Some(state) = self.peers.get_mut(&peer) {
            state.open += 1;
        }
    }

    /// Sends it over a stream of its own.
    pub(super) fn send_alone(&mut self, peer: PeerId, question: QuestionId, request: Request) {
        let id = self.libp2p.behaviour_mut().member.send_request(&peer, super::codec::Arrived::of(request));
        self.questions.insert(Sent::Own(id), OpenQuestion { question, peer, asked: Instant::now(), brief: None });
    }

    /// Answers all questions that wait for this peer with a failure; forgets the peer if it is not connected.
    pub(super) fn give_up(&mut self, peer: PeerId, failure: &AskError) {
        let Some(state) = self.peers.get_mut(&peer) else { return };
        let from = state.access_point;
        for waiting in state.waiting.drain(..) {
            self.outbox.push_back(SwarmEvent::Answered { question: waiting.question, from, result: Err(failure.clone()) });
        }
        if !state.connected {
            self.peers.remove(&peer);
        }
    }

    fn happened(&mut self, event: swarm::SwarmEvent<BehaviourEvent>) {
        match event {
            swarm::SwarmEvent::Behaviour(BehaviourEvent::Hello(event)) => self.greeted(event),
            swarm::SwarmEvent::Behaviour(BehaviourEvent::Member(event)) => self.member_event(event),
            swarm::SwarmEvent::Behaviour(BehaviourEvent::Public(event)) => self.public_event(event),
            swarm::SwarmEvent::Behaviour(BehaviourEvent::Gossip(event)) => self.gossip_event(event),
            swarm::SwarmEvent::Behaviour(BehaviourEvent::Ping(ping::Event { peer, result: Ok(rtt), .. })) => self.timed(peer, rtt),
            swarm::SwarmEvent::Behaviour(BehaviourEvent::DialBack(event)) => self.reach.asked(&mut self.libp2p, event),
            swarm::SwarmEvent::Behaviour(BehaviourEvent::Identify(event)) => self.reach.identified(&event),
            swarm::SwarmEvent::Behaviour(BehaviourEvent::Holes(event)) => self.reach.punched(&event),
            swarm::SwarmEvent::Behaviour(BehaviourEvent::Relay(event)) => self.reach.relayed(&event),
            swarm::SwarmEvent::ConnectionEstablished { peer_id, endpoint, connection_id, .. } => {
                let named = self.dials.remove(&connection_id);
                self.reach.opened(peer_id, connection_id, &endpoint);
                // Through a third member nothing is known of where the peer is.
                let direct = !endpoint.is_relayed();
                self.dial_limits.connected(peer_id, endpoint.is_dialer() && direct);
                self.connected(peer_id, endpoint.is_dialer(), ip_of(endpoint.get_remote_address()).filter(|_| direct));
                if let Some(state) = self.peers.get_mut(&peer_id) {
                    state.named = named.or_else(|| state.named.take());
                }
            }
            swarm::SwarmEvent::ConnectionClosed { peer_id, connection_id, num_established, .. } => {
                self.reach.closed(peer_id, connection_id);
                if let Some(state) = self.peers.get_mut(&peer_id) {
                    state.hellos.remove(&connection_id);
                }
                if num_established == 0 {
                    self.disconnected(peer_id);
                }
            }
            swarm::SwarmEvent::OutgoingConnectionError { peer_id, connection_id, error } => {
                if let Some(address) = self.dials.remove(&connection_id) {
                    self.dial_failed(address, &error);
                }
                if let Some(peer) = peer_id {
                    self.not_reached(peer, &error);
                }
            }
            swarm::SwarmEvent::NewListenAddr { address, listener_id } => {
                if self.reach.listens(listener_id, &address) {
                    return;
                }
                let address = address.with_p2p(*self.libp2p.local_peer_id()).unwrap_or_else(|address| address);
                self.outbox.push_back(SwarmEvent::Listening { address: address.to_string() });
            }
            swarm::SwarmEvent::ListenerClosed { listener_id, .. } | swarm::SwarmEvent::ExpiredListenAddr { listener_id, .. } => {
                self.reach.listens_no_more(listener_id);
            }
            swarm::SwarmEvent::ListenerError { error, .. } => tracing::warn!(%error, "cannot accept connections of peers"),
            _ => {}
        }
    }

    /// A dial of this peer failed.
    fn not_reached(&mut self, peer: PeerId, error: &swarm::DialError) {
        let state = self.peers.get_mut(&peer);
        // Of a peer that is connected only a nearer way was not found; and if two are under way, the questions wait for the other one.
        if state.is_some_and(|state| state.connected || std::mem::take(&mut state.beside)) {
            return;
        }
        self.dial_limits.failed(peer, Instant::now());
        self.give_up(peer, &AskError::Unreachable(dial_reason(error)));
    }

    fn look_at_the_clock(&mut self, now: Instant) {
        let before = self.tickets.len() + self.public_tickets.len();
        self.tickets.retain(|_, ticket| {
            let open = ticket.channel.is_open(now);
            if !open
                && ticket.counted
                && let Some(state) = self.peers.get_mut(&ticket.peer)
            {
                state.tickets = state.tickets.saturating_sub(1);
            }
            open
        });
        self.public_tickets.retain(|_, (_, channel)| channel.is_open());
        let expired = before - self.tickets.len() - self.public_tickets.len();
        self.counters.tickets_expired.fetch_add(expired as u64, Ordering::Relaxed);
        let late = |open: &OpenQuestion| open.brief.as_ref().is_some_and(|(until, _)| now >= *until);
        let late: Vec<Sent> = self.questions.iter().filter(|(_, open)| late(open)).map(|(sent, _)| *sent).collect();
        late.into_iter().for_each(|sent| self.answered(sent, Err(AskError::TimedOut)));
        let within = self.config.answer_within;
        let mut hang_up = Vec::new();
        for (peer, state) in &mut self.peers {
            while state.waiting.front().is_some_and(|waiting| now.saturating_duration_since(waiting.since) >= within) {
                let late = state.waiting.pop_front().map(|waiting| waiting.question);
                self.outbox.extend(late.map(|question| SwarmEvent::Answered {
                    question,
                    from: state.access_point,
                    result: Err(AskError::TimedOut),
                }));
            }
            let lasted = now.saturating_duration_since(state.since);
            let overdue = match state.stage {
                Stage::Greeting if state.connected => lasted >= HELLO_WITHIN + READ_REFUSAL_WITHIN,
                Stage::Reader => lasted >= READER_STAYS,
                Stage::Refused => lasted >= READ_REFUSAL_WITHIN,
                Stage::Greeting | Stage::Member { .. } => false,
            };
            if overdue {
                hang_up.push((*peer, state.stage));
            }
        }
        self.judge_members();
        for (peer, stage) in hang_up {
            if stage == Stage::Greeting {
                self.refuse(peer, HelloError::NoHello(HELLO_WITHIN.as_secs()));
            }
            let _ = self.libp2p.disconnect_peer_id(peer);
        }
        self.peers.retain(|_, state| state.connected || !state.waiting.is_empty());
        self.look_at_reach(now);
        self.show_idle_readers(now);
        while self.shut_out.front().is_some_and(|(since, _)| now.saturating_duration_since(*since) >= SHUT_OUT_FOR) {
            if let Some((_, peer)) = self.shut_out.pop_front() {
                self.libp2p.behaviour_mut().blocked.unblock_peer(peer);
            }
        }
    }

    /// Readers that ask nothing make room if many strangers connect.
    fn show_idle_readers(&mut self, now: Instant) {
        let waits = |peer: &PeerId| self.public_tickets.values().any(|(asking, _)| asking == peer);
        let is_idle =
            |state: &Peer| state.connected && state.stage == Stage::Reader && now.saturating_duration_since(state.heard) >= READER_IDLE;
        let idle = self.peers.iter().filter(|(peer, state)| is_idle(state) && !waits(peer));
        let mut idle: Vec<(Instant, PeerId)> = idle.map(|(peer, state)| (state.since, *peer)).collect();
        idle.sort_unstable();
        self.libp2p.behaviour_mut().slots.idle(idle.into_iter().map(|(_, peer)| peer));
    }

    /// How others get to us may have changed.
    fn look_at_reach(&mut self, now: Instant) {
        let peers = &self.peers;
        let is_quiet = |peer: &PeerId| peers.get(peer).is_none_or(|state| state.open == 0 && state.tickets == 0);
        let news = self.reach.tick(&mut self.libp2p, &self.known, &mut self.dial_limits, is_quiet, now);
        self.outbox.extend(news.map(SwarmEvent::Reachable));
    }

    /// Counts a malformed message against the peer that sent it.
    pub(super) fn offended(&mut self, peer: PeerId) {
        count(&self.counters.malformed);
        if self.offences.len() >= MAX_PEERS && !self.offences.contains_key(&peer) {
            self.offences.clear();
        }
        let offences = self.offences.entry(peer).or_default();
        *offences += 1;
        let offences = *offences;
        if offences >= MAX_OFFENCES {
            self.offences.remove(&peer);
            count(&self.counters.shut_out);
            self.shut_out(peer, HelloError::Misbehaved(offences));
        }
    }

    /// Counts a message beyond its limits against the peer that sent it.
    pub(super) fn exceeded(&mut self, peer: PeerId) {
        let Some(state) = self.peers.get_mut(&peer).filter(|state| state.is_member()) else { return };
        if !state.patience.take(Instant::now()) {
            count(&self.counters.flooding);
            self.shut_out(peer, HelloError::Flooding);
        }
    }

    /// Hangs up, and takes no connection of this peer for a while.
    fn shut_out(&mut self, peer: PeerId, reason: HelloError) {
        self.refuse(peer, reason);
        // Blocking hangs up, too.
        self.libp2p.behaviour_mut().blocked.block_peer(peer);
        self.shut_out.push_back((Instant::now(), peer));
        if self.shut_out.len() > MAX_PEERS
            && let Some((_, oldest)) = self.shut_out.pop_front()
        {
            self.libp2p.behaviour_mut().blocked.unblock_peer(oldest);
        }
    }

    /// Our hello, as things are now.
    pub(super) fn hello(&self) -> Hello {
        let addresses = self.reach.addresses(&self.libp2p).iter().map(ToString::to_string).collect();
        Hello {
            protocol: PROTOCOL,
            swarm: self.secrets.map(|secrets| secrets.swarm),
            hierarchy_hash: self.config.hierarchy_hash,
            incarnation: self.config.incarnation,
            software: self.config.software.chars().take(64).collect(),
            reader: false,
            addresses,
            oldest: OLDEST,
            certificate: self.config.certificate.clone(),
        }
    }
}
