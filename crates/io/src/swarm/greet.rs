//! Accepts and refuses peers: connections, their hellos and their ends.

use super::{
    HelloError, SwarmSecrets,
    behaviour::HELLO_WITHIN,
    codec::Arrived,
    config::StartError,
    hello::{Hello, HelloAnswer, clean, judge, usable_addresses},
    messages::{AskError, SwarmEvent, count},
    peers::{MAX_HELLOS, Peer, Stage},
    run::Runner,
    serve::is_not_spoken,
};
use libp2p::{
    PeerId,
    gossipsub::IdentTopic,
    request_response::{self, Message, OutboundFailure},
    swarm::ConnectionId,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    admission::{Admission, SignedAdmission},
    time::WallTime,
};
use std::{
    io,
    net::IpAddr,
    sync::atomic::Ordering,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// The time by which certificates end.
fn wall_time() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

type HelloEvent = request_response::Event<Arrived<Hello>, HelloAnswer>;

impl Runner {
    /// Listens to the swarm's gossip, once it is known which swarm. The topic names the swarm, so that gossip stays inside.
    pub(super) fn subscribe(&mut self) -> Result<(), StartError> {
        if let Some(secrets) = self.secrets {
            let name: String = secrets.swarm.iter().map(|byte| format!("{byte:02x}")).collect();
            let topic = IdentTopic::new(format!("{}/{name}", super::protocol::TOPIC));
            self.libp2p.behaviour_mut().gossip.subscribe(&topic).map_err(|error| StartError::Library(error.to_string()))?;
            self.own_topic.is(topic.hash());
            self.topic = Some(topic);
        }
        Ok(())
    }

    /// A connection is established. The side that dialled sends the hello.
    pub(super) fn connected(&mut self, peer: PeerId, dialled: bool, remote: Option<IpAddr>) {
        let Some(access_point) = super::access_point_of(&peer) else {
            let _ = self.libp2p.disconnect_peer_id(peer);
            return;
        };
        let now = Instant::now();
        let state = self.peers.entry(peer).or_insert_with(|| Peer::new(access_point, &self.config, now));
        state.remote = remote.or(state.remote);
        (state.beside, state.circuits_dialled) = (false, false);
        if !state.connected {
            state.connected = true;
            state.dialled = false;
            state.refusal = None;
            state.enter(Stage::Greeting, now);
        }
        state.dialled |= dialled;
        if dialled {
            let hello = self.hello();
            self.libp2p.behaviour_mut().hello.send_request(&peer, Arrived::of(hello));
        }
    }

    /// A ping was answered. The time of a peer that is no member yet is reported when it becomes one.
    pub(super) fn timed(&mut self, peer: PeerId, rtt: Duration) {
        let Some(state) = self.peers.get_mut(&peer) else { return };
        let rtt_us = u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX).min(state.rtt_us.unwrap_or(u32::MAX));
        state.rtt_us = Some(rtt_us);
        if state.is_member() {
            self.outbox.push_back(SwarmEvent::Timed { peer: state.access_point, rtt_us, remote: state.remote });
        }
    }

    /// The last connection has ended.
    pub(super) fn disconnected(&mut self, peer: PeerId) {
        let Some(state) = self.peers.get_mut(&peer) else { return };
        state.connected = false;
        self.libp2p.behaviour_mut().slots.no_member(&peer);
        self.counters.meter.known(peer, false);
        self.brief.disconnected(&peer);
        let (was_member, access_point) = (state.is_member(), state.access_point);
        let failure = match state.stage {
            Stage::Refused | Stage::Reader => AskError::NotLetIn("the hello was refused".to_owned()),
            Stage::Greeting | Stage::Member { .. } => AskError::ConnectionLost,
        };
        self.give_up(peer, &failure);
        if was_member {
            self.counters.connected.fetch_sub(1, Ordering::Relaxed);
            self.outbox.push_back(SwarmEvent::Disconnected { peer: access_point });
        }
    }

    pub(super) fn greeted(&mut self, event: HelloEvent) {
        match event {
            HelloEvent::Message { peer, connection_id, message: Message::Request { request, channel, .. } } => {
                let answer = self.answer_hello(peer, connection_id, request);
                let _ = self.libp2p.behaviour_mut().hello.send_response(channel, answer);
            }
            HelloEvent::ResponseSent { peer, .. } => {
                // A joining access point is accepted by the answer to its own hello, never by answering another's.
                if self.secrets.is_some()
                    && let Some(hello) = self.peers.get_mut(&peer).and_then(|state| state.welcomed.take())
                {
                    self.let_in(peer, hello);
                }
            }
            HelloEvent::Message { peer, message: Message::Response { response: HelloAnswer::Welcome { hello, secrets }, .. }, .. } => {
                let judged = judge(&self.hello(), &hello, true).and_then(|()| self.judge_shown(peer, &hello));
                match judged.and_then(|()| self.adopt(peer, &hello, secrets)) {
                    Ok(()) => self.let_in(peer, hello),
                    Err(refusal) => self.refuse(peer, refusal),
                }
            }
            HelloEvent::Message { peer, message: Message::Response { response: HelloAnswer::Refused(text, proof), .. }, .. } => {
                self.refused_by(peer, &clean(&text), proof);
            }
            HelloEvent::OutboundFailure { peer, error, .. } => {
                let refusal = match error {
                    OutboundFailure::Timeout => HelloError::NoHello(HELLO_WITHIN.as_secs()),
                    _ if is_not_spoken(&error) => HelloError::NoSwarm,
                    OutboundFailure::Io(error) if error.kind() == io::ErrorKind::InvalidData => HelloError::Unreadable,
                    // Another connection to this peer may stand and have its own hello.
                    _ => return,
                };
                if self.peers.get(&peer).is_some_and(|state| state.stage == Stage::Greeting) {
                    self.refuse(peer, refusal);
                }
            }
            HelloEvent::InboundFailure { .. } => {}
        }
    }

    /// What a hello is answered with. Who was refused, or reads, does not stay longer by sending more of them, and costs no signatures.
    fn answer_hello(&mut self, peer: PeerId, connection: ConnectionId, hello: Arrived<Hello>) -> HelloAnswer {
        let unreadable = HelloAnswer::refused(&HelloError::Unreadable);
        let Some(state) = self.peers.get_mut(&peer).filter(|state| state.connected) else { return unreadable };
        let count = state.hellos.entry(connection).or_default();
        *count = count.saturating_add(1);
        if *count > MAX_HELLOS {
            self.offended(peer);
            return unreadable;
        }
        match state.stage {
            // It may have been this access point that was refused.
            Stage::Refused => state.refusal.clone().unwrap_or_else(|| HelloAnswer::refused(&HelloError::RefusedBefore)),
            Stage::Greeting | Stage::Member { .. } | Stage::Reader => self.judge_hello(peer, hello),
        }
    }

    fn judge_hello(&mut self, peer: PeerId, hello: Arrived<Hello>) -> HelloAnswer {
        let ours = self.hello();
        let Arrived::Whole(hello, _) = hello else {
            self.offended(peer);
            self.refuse(peer, HelloError::Unreadable);
            return HelloAnswer::refused(&HelloError::Unreadable);
        };
        let Some(state) = self.peers.get_mut(&peer) else { return HelloAnswer::refused(&HelloError::Unreadable) };
        let judged = judge(&ours, &hello, state.dialled);
        let is_one = if hello.reader && state.is_member() { Err(HelloError::ReadingMember) } else { Ok(()) };
        if let Err(refusal) = judged.and(is_one).and_then(|()| self.judge_shown(peer, &hello)) {
            let answer = self.refusal(peer, &refusal);
            self.refuse(peer, refusal);
            return answer;
        }
        let Some(state) = self.peers.get_mut(&peer) else { return HelloAnswer::refused(&HelloError::Unreadable) };
        let wants_in = hello.swarm.is_none() && !hello.reader;
        if !hello.reader {
            state.welcomed = Some(hello);
        } else if state.stage != Stage::Reader {
            state.welcomed = None;
            state.enter(Stage::Reader, Instant::now());
        }
        HelloAnswer::Welcome { hello: ours, secrets: self.secrets.filter(|_| wants_in) }
    }

    /// Whether the gate lets a peer in, by the certificate that it shows. Readers need none.
    fn judge_shown(&self, peer: PeerId, hello: &Hello) -> Result<(), HelloError> {
        let Some(access_point) = super::access_point_of(&peer).filter(|_| !hello.reader) else { return Ok(()) };
        Ok(self.config.gate.judge_shown(&access_point, hello.certificate.as_ref(), wall_time())?)
    }

    /// A refusal, with the expulsion that is its reason.
    fn refusal(&self, peer: PeerId, refusal: &HelloError) -> HelloAnswer {
        let proof = match refusal {
            HelloError::NotAdmitted(why) => super::access_point_of(&peer).and_then(|who| self.config.gate.proof_of(&who, why).cloned()),
            _ => None,
        };
        HelloAnswer::Refused(refusal.to_string(), proof.map(Box::new))
    }

    /// Hangs up on members whom the gate does not let in any more: they were expelled, or their certificates have ended.
    pub(super) fn judge_members(&mut self) {
        let (gate, now) = (&self.config.gate, wall_time());
        if gate.is_open() {
            return;
        }
        let members = self.peers.iter().filter(|(_, state)| state.is_member());
        let refused =
            members.filter_map(|(peer, state)| Some((*peer, gate.judge(&state.access_point, state.certificate.as_ref(), now).err()?)));
        for (peer, why) in refused.collect::<Vec<_>>() {
            self.refuse(peer, why.into());
        }
    }

    /// Joins the swarm of the peer that accepted our hello, if this access point has no swarm.
    fn adopt(&mut self, peer: PeerId, hello: &Hello, secrets: Option<SwarmSecrets>) -> Result<(), HelloError> {
        if self.secrets.is_some() {
            return Ok(());
        }
        let secrets = secrets.filter(|secrets| Some(secrets.swarm) == hello.swarm).ok_or(HelloError::Unreadable)?;
        let by = super::access_point_of(&peer).ok_or(HelloError::Unreadable)?;
        self.secrets = Some(secrets);
        if let Err(error) = self.subscribe() {
            tracing::warn!(%error, "cannot subscribe to the gossip of the swarm: claims arrive only by comparison with other members");
        }
        self.outbox.push_back(SwarmEvent::Admitted { swarm: secrets.swarm, key: secrets.fingerprint_key, by });
        Ok(())
    }

    /// Both hellos are accepted.
    fn let_in(&mut self, peer: PeerId, hello: Hello) {
        self.remember_hello(peer, &hello);
        let opened = self.config.gate.rule.swarm.and_then(|root| hello.certificate.as_ref()?.open(&root).ok());
        let Some(state) = self.peers.get_mut(&peer).filter(|state| state.connected) else { return };
        state.certificate = match opened {
            Some(Admission::Certificate(certificate)) => Some(certificate),
            _ => None,
        };
        let before = state.stage;
        state.protocol = hello.protocol;
        let stage = Stage::Member { incarnation: hello.incarnation };
        state.enter(stage, Instant::now());
        let (access_point, remote, rtt_us) = (state.access_point, state.remote, state.rtt_us);
        let (waiting, held) = (std::mem::take(&mut state.waiting), std::mem::take(&mut state.held));
        self.libp2p.behaviour_mut().slots.let_in(peer);
        self.counters.meter.known(peer, true);
        if !matches!(before, Stage::Member { .. }) {
            self.counters.connected.fetch_add(1, Ordering::Relaxed);
        }
        if before != stage {
            let addresses = usable_addresses(&hello.addresses, access_point);
            let software = clean(&hello.software).chars().take(64).collect();
            let incarnation = hello.incarnation;
            let certificate = hello.certificate.map(Box::new);
            self.outbox.push_back(SwarmEvent::Connected { peer: access_point, addresses, incarnation, software, remote, certificate });
            // It was timed while the hellos were on their way; the next ping is a minute away.
            self.outbox.extend(rtt_us.map(|rtt_us| SwarmEvent::Timed { peer: access_point, rtt_us, remote }));
        }
        for waiting in waiting {
            self.send(peer, waiting.question, waiting.request);
        }
        for (request, bytes, channel) in held {
            self.asked(peer, request, bytes, channel);
        }
    }

    fn remember_hello(&mut self, peer: PeerId, hello: &Hello) {
        if let Some(access_point) = super::access_point_of(&peer) {
            self.remember(access_point, &hello.addresses);
        }
    }

    /// Refuses a peer, or expels it; the connection is closed after it has had time to read the reason.
    pub(super) fn refuse(&mut self, peer: PeerId, reason: HelloError) {
        count(&self.counters.refused);
        let (address, answer) = (self.named(&peer), self.refusal(peer, &reason));
        if let Some(state) = self.peers.get_mut(&peer) {
            state.refusal = Some(answer);
        }
        if let Some(access_point) = self.shut(peer, &AskError::NotLetIn(reason.to_string())) {
            self.outbox.push_back(SwarmEvent::Refused { peer: access_point, reason, address });
        }
    }

    fn refused_by(&mut self, peer: PeerId, reason: &str, proof: Option<Box<SignedAdmission>>) {
        let address = self.named(&peer);
        if let Some(access_point) = self.shut(peer, &AskError::NotLetIn(reason.to_owned())) {
            self.outbox.push_back(SwarmEvent::RefusedBy { peer: access_point, reason: reason.to_owned(), address, proof });
        }
    }

    /// Where it was dialled, as the address was written, if it has not been let in since.
    fn named(&self, peer: &PeerId) -> Option<String> {
        self.peers.get(peer).filter(|state| state.stage == Stage::Greeting).and_then(|state| state.named.clone())
    }

    fn shut(&mut self, peer: PeerId, failure: &AskError) -> Option<AccessPoint> {
        self.libp2p.behaviour_mut().slots.no_member(&peer);
        self.counters.meter.known(peer, false);
        let state = self.peers.get_mut(&peer)?;
        let (was_member, access_point) = (state.is_member(), state.access_point);
        state.enter(Stage::Refused, Instant::now());
        state.held.clear();
        state.welcomed = None;
        self.give_up(peer, failure);
        if was_member {
            self.counters.connected.fetch_sub(1, Ordering::Relaxed);
            self.outbox.push_back(SwarmEvent::Disconnected { peer: access_point });
        }
        Some(access_point)
    }
}
