//! Requests, responses, gossip and public requests of peers, and the limits on them.

use super::{
    brief::{BriefAnswer, BriefEvent},
    channel::Channel,
    codec::Arrived,
    gossip_limits::{Author, Gossip as Amount},
    messages::{AskError, SwarmEvent, count},
    peers::{MAX_HELD, MAX_OPEN, Peer, Stage},
    reason,
    run::{OpenQuestion, OpenRequest, Runner, Sent},
};
use libp2p::{
    PeerId,
    core::upgrade::NegotiationError,
    gossipsub::{self, MessageAcceptance, PublishError},
    request_response::{self, Message, OutboundFailure},
};
use nearcrawl_model::{
    ids::Ticket,
    message::{Gossip, MAX_GOSSIP, PublicRequest, PublicResponse, Request, Response},
    time::Millis,
};
use std::{io, time::Instant};

type MemberEvent = request_response::Event<Arrived<Request>, Response>;
type PublicEvent = request_response::Event<Arrived<PublicRequest>, PublicResponse>;

/// How long a peer is asked to wait that asks too often.
const COME_BACK_AFTER: Millis = 1_000;

/// Public requests open at the same time, from all peers together.
const MAX_PUBLIC_TICKETS: usize = 64;

/// Whether the other side does not speak the protocol. That comes to light only while the answer is read: the question is sent together
/// with the proposal of the protocol.
pub(super) fn is_not_spoken(error: &OutboundFailure) -> bool {
    match error {
        OutboundFailure::UnsupportedProtocols => true,
        OutboundFailure::Io(error) => {
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<NegotiationError>());
            matches!(inner, Some(NegotiationError::Failed))
        }
        _ => false,
    }
}

/// Why libp2p could not bring an answer, in our terms.
pub(super) fn failure_of(error: &OutboundFailure) -> AskError {
    match error {
        OutboundFailure::DialFailure => AskError::Unreachable("connecting failed".to_owned()),
        OutboundFailure::Timeout => AskError::TimedOut,
        OutboundFailure::ConnectionClosed => AskError::ConnectionLost,
        _ if is_not_spoken(error) => AskError::NotSpoken,
        OutboundFailure::Io(error) if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => {
            AskError::Broken(reason::innermost(error))
        }
        // The connection is open, or its end was reported.
        OutboundFailure::Io(_) | OutboundFailure::UnsupportedProtocols => AskError::Dropped,
    }
}

impl Runner {
    pub(super) fn member_event(&mut self, event: MemberEvent) {
        match event {
            MemberEvent::Message { peer, message: Message::Request { request, channel, .. }, .. } => {
                self.arrived(peer, request, Channel::Own(channel));
            }
            MemberEvent::Message { message: Message::Response { request_id, response }, .. } => {
                self.answered(Sent::Own(request_id), Ok(response));
            }
            MemberEvent::OutboundFailure { peer, request_id, error, .. } => {
                match &error {
                    OutboundFailure::Io(error) if error.kind() != io::ErrorKind::InvalidData => {}
                    OutboundFailure::Io(_) if self.is_newer(peer) => count(&self.counters.unknown),
                    OutboundFailure::Io(_) => self.offended(peer),
                    _ => {}
                }
                self.answered(Sent::Own(request_id), Err(failure_of(&error)));
            }
            MemberEvent::InboundFailure { .. } | MemberEvent::ResponseSent { .. } => {}
        }
    }

    /// What the streams for short questions tell.
    pub(super) fn brief_event(&mut self, event: BriefEvent) {
        match event {
            BriefEvent::Asked { peer, request, reply } => self.arrived(peer, request, Channel::Brief(reply)),
            BriefEvent::Answered { peer, id, answer } => {
                let sent = Sent::Brief(id);
                match answer {
                    BriefAnswer::Whole(response) => self.answered(sent, Ok(*response)),
                    BriefAnswer::TooLong => self.ask_alone(sent),
                    BriefAnswer::Dropped => self.answered(sent, Err(AskError::Dropped)),
                    BriefAnswer::Broken => {
                        if self.is_newer(peer) {
                            count(&self.counters.unknown);
                        } else {
                            self.offended(peer);
                        }
                        self.answered(sent, Err(AskError::Broken("the answer cannot be decoded".to_owned())));
                    }
                }
            }
            BriefEvent::Ended { peer, stream, spoken } => {
                self.brief.ended(peer, stream, spoken);
                let open = |sent: &&Sent| matches!(sent, Sent::Brief(id) if id.is_of(stream));
                let open: Vec<Sent> = self.questions.keys().filter(open).copied().collect();
                open.into_iter().for_each(|sent| self.ask_alone(sent));
            }
        }
    }

    /// A short question is asked once more, over a stream of its own.
    fn ask_alone(&mut self, sent: Sent) {
        let peer = self.questions.get(&sent).map(|open| open.peer);
        if peer.is_some_and(|peer| !self.peers.get(&peer).is_some_and(|state| state.connected && state.is_member())) {
            return self.answered(sent, Err(AskError::ConnectionLost));
        }
        if let Some(OpenQuestion { question, peer, brief: Some((_, request)), .. }) = self.questions.remove(&sent) {
            self.send_alone(peer, question, request);
        }
    }

    /// What arrived as a request.
    fn arrived(&mut self, peer: PeerId, request: Arrived<Request>, channel: Channel) {
        match request {
            Arrived::Whole(request, bytes) => self.asked(peer, request, bytes, channel),
            Arrived::Broken if self.is_newer(peer) => {
                count(&self.counters.unknown);
                self.reply(channel, Response::Refused("this version does not know the question".to_owned()));
            }
            // Dropping the channel tells that there is no answer.
            Arrived::Broken => self.offended(peer),
        }
    }

    fn reply(&mut self, channel: Channel, response: Response) {
        self.counters.messages.count(response.kind(), &response);
        match channel {
            // If nobody waits any more, nobody does without it.
            Channel::Own(channel) => drop(self.libp2p.behaviour_mut().member.send_response(channel, response)),
            Channel::Brief(reply) => reply.send(&response),
        }
    }

    fn is_newer(&self, peer: PeerId) -> bool {
        self.peers.get(&peer).is_some_and(Peer::is_newer)
    }

    /// A request of a member, or of a peer whose hello is not settled yet.
    pub(super) fn asked(&mut self, peer: PeerId, request: Request, bytes: usize, channel: Channel) {
        let Some(state) = self.peers.get_mut(&peer) else { return };
        let now = Instant::now();
        state.heard = now;
        let is_swim = matches!(request, Request::Swim(_));
        let refusal = match state.stage {
            Stage::Member { .. } => {
                let in_time = if is_swim { state.swim.take(now) } else { state.requests.take(now) && state.tickets < MAX_OPEN };
                if in_time && state.bytes.take_some(now, bytes as f64) {
                    let ticket = Ticket(self.next_ticket);
                    self.next_ticket += 1;
                    state.tickets += usize::from(!is_swim);
                    let from = state.access_point;
                    self.tickets.insert(ticket, OpenRequest { peer, channel, counted: !is_swim });
                    self.outbox.push_back(SwarmEvent::Asked { from, ticket, request });
                    return;
                }
                count(&self.counters.rate_limited);
                self.exceeded(peer);
                Response::Busy(COME_BACK_AFTER)
            }
            Stage::Greeting if state.held.len() < MAX_HELD => {
                state.held.push((request, bytes, channel));
                return;
            }
            Stage::Greeting | Stage::Reader | Stage::Refused => {
                count(&self.counters.uninvited);
                Response::Refused("say hello first: nothing else is taken from a peer that has not been let in".to_owned())
            }
        };
        self.reply(channel, refusal);
    }

    /// The caller's answer to a member.
    pub(super) fn answer(&mut self, ticket: Ticket, response: Response) {
        if let Some(OpenRequest { peer, channel, counted }) = self.tickets.remove(&ticket) {
            if let Some(state) = self.peers.get_mut(&peer) {
                state.tickets = state.tickets.saturating_sub(usize::from(counted));
            }
            self.reply(channel, response);
        }
    }

    /// A member's answer to us, or none.
    pub(super) fn answered(&mut self, sent: Sent, result: Result<Response, AskError>) {
        if let Some(OpenQuestion { question, peer, asked, .. }) = self.questions.remove(&sent) {
            if let Some(state) = self.peers.get_mut(&peer) {
                state.open = state.open.saturating_sub(1);
                if !matches!(result, Err(AskError::TimedOut)) {
                    state.heard = Instant::now();
                } else if state.heard < asked {
                    // It has said nothing since this was asked: the network lost it, and TCP would notice minutes after it is back. The next
                    // question connects anew.
                    let _ = self.libp2p.disconnect_peer_id(peer);
                }
            }
            if let Some(from) = super::access_point_of(&peer) {
                self.outbox.push_back(SwarmEvent::Answered { question, from, result });
            }
        }
    }

    pub(super) fn public_event(&mut self, event: PublicEvent) {
        let PublicEvent::Message { peer, message: Message::Request { request, channel, .. }, .. } = event else { return };
        let Arrived::Whole(request, _) = request else {
            self.offended(peer);
            return;
        };
        let now = Instant::now();
        if let Some(state) = self.peers.get_mut(&peer) {
            state.heard = now;
            if state.stage == Stage::Greeting && !state.dialled {
                state.enter(Stage::Reader, now);
            }
        }
        if !self.public_rate.take(now) || self.public_tickets.len() >= MAX_PUBLIC_TICKETS {
            count(&self.counters.rate_limited);
            let busy = PublicResponse::Refused(
                "too many questions at the moment: ask again in a few seconds, or ask another access point".to_owned(),
            );
            let _ = self.libp2p.behaviour_mut().public.send_response(channel, busy);
            return;
        }
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.public_tickets.insert(ticket, (peer, channel));
        let remote = self.peers.get(&peer).and_then(|state| state.remote);
        self.outbox.push_back(SwarmEvent::PublicAsked { ticket, remote, request });
    }

    /// Gossips a message to all members.
    pub(super) fn publish(&mut self, gossip: &Gossip) {
        let Some(topic) = &self.topic else { return };
        self.counters.messages.count(gossip.kind(), gossip);
        let outcome = match postcard::to_stdvec(gossip) {
            Ok(bytes) if bytes.len() <= MAX_GOSSIP => self.libp2p.behaviour_mut().gossip.publish(topic.hash(), bytes),
            _ => Err(PublishError::MessageTooLarge),
        };
        match outcome {
            // Being alone is normal.
            Ok(_) | Err(PublishError::NoPeersSubscribedToTopic) => {}
            Err(error) => {
                count(&self.counters.gossip_unsent);
                tracing::debug!(%error, "a gossip message could not be sent");
            }
        }
    }

    pub(super) fn gossip_event(&mut self, event: gossipsub::Event) {
        let gossipsub::Event::Message { propagation_source: relay, message_id, message } = event else { return };
        let acceptance = match (message.source, self.how_much(relay, &message)) {
            (Some(_), Amount::Taken | Amount::Heard) if message.data.len() > MAX_GOSSIP => self.not_gossip(relay),
            (Some(author), amount @ (Amount::Taken | Amount::Heard)) => match postcard::from_bytes::<Gossip>(&message.data) {
                Ok(gossip) => self.hear(relay, author, gossip, amount),
                Err(_) if self.is_newer(relay) => {
                    count(&self.counters.unknown);
                    MessageAcceptance::Ignore
                }
                Err(_) => self.not_gossip(relay),
            },
            (_, amount) => {
                count(&self.counters.gossip_ignored);
                if amount == Amount::Excess {
                    self.exceeded(relay);
                }
                MessageAcceptance::Ignore
            }
        };
        self.libp2p.behaviour_mut().gossip.report_message_validation_result(&message_id, &relay, acceptance);
    }

    /// Whether there is room for what a peer says or passes on.
    fn how_much(&mut self, relay: PeerId, message: &gossipsub::Message) -> Amount {
        let Some(author) = message.source else { return Amount::Left };
        let known = self.known.contains_key(&author) || self.peers.get(&author).is_some_and(Peer::is_member);
        let author = match (author == relay, known) {
            (true, _) => Author::Sender,
            (false, true) => Author::Known(author),
            (false, false) => Author::Unknown,
        };
        match self.peers.get_mut(&relay).filter(|state| state.is_member()) {
            Some(state) => {
                let now = Instant::now();
                state.heard = now;
                self.gossip_limits.judge(&mut state.gossip, author, message.data.len(), now)
            }
            None => Amount::Left,
        }
    }

    fn hear(&mut self, relay: PeerId, author: PeerId, gossip: Gossip, amount: Amount) -> MessageAcceptance {
        let (Some(from), Some(author)) = (super::access_point_of(&relay), super::access_point_of(&author)) else {
            return self.not_gossip(relay);
        };
        self.outbox.push_back(SwarmEvent::Gossiped { from, author, gossip });
        if amount == Amount::Taken { MessageAcceptance::Accept } else { MessageAcceptance::Ignore }
    }

    /// Members check messages before they pass them on, so the one that did is at fault.
    fn not_gossip(&mut self, relay: PeerId) -> MessageAcceptance {
        self.offended(relay);
        MessageAcceptance::Reject
    }
}
