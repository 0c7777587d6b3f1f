//! The commands and events of the swarm task.

use super::{
    hello::{HelloError, SwarmId},
    meter::SwarmMeter,
    sent_messages::SentMessages,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    admission::{Gate, SignedAdmission},
    fingerprint::FingerprintKey,
    ids::{QuestionId, Ticket},
    message::{Gossip, PublicRequest, PublicResponse, Request, Response},
};
use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::mpsc;

/// A command to the swarm task.
#[derive(Clone, Debug, PartialEq)]
pub enum SwarmCommand {
    /// Connect to this multiaddr, with or without `/p2p/…`; a failure is reported by [`SwarmEvent::DialFailed`].
    Dial {
        /// The multiaddr.
        address: String,
    },
    /// Send a request to a member, connecting first if necessary. There is always exactly one [`SwarmEvent::Answered`].
    Ask {
        /// The member that is asked.
        to: AccessPoint,
        /// The caller's number, given back with the answer.
        question: QuestionId,
        /// The request.
        request: Request,
    },
    /// Answer the request of a [`SwarmEvent::Asked`]; too late or twice has no effect.
    Answer {
        /// The ticket of that event.
        ticket: Ticket,
        /// The response that is sent.
        response: Response,
    },
    /// Gossip this to all members. There is no answer; having no peers is no error.
    Publish(Gossip),
    /// Answer the request of a [`SwarmEvent::PublicAsked`].
    AnswerPublic {
        /// The ticket of that event.
        ticket: Ticket,
        /// The response that is sent.
        response: PublicResponse,
    },
    /// Let in only who passes this gate, and hang up on the members that do not any more.
    Guard(Arc<Gate>),
    /// Show this certificate in every hello from now on, in place of the one before.
    Show(Box<SignedAdmission>),
    /// Use these addresses to reach a member from now on, in place of those known before.
    Remember {
        /// The member.
        peer: AccessPoint,
        /// Its multiaddrs.
        addresses: Vec<String>,
    },
    /// Close all connections and end; answers that were given before are still sent.
    Stop,
}

/// An event of the swarm task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwarmEvent {
    /// Listening here, on a port that is known now.
    Listening {
        /// The multiaddr, with `/p2p/…`: others can dial it as it is.
        address: String,
    },
    /// How others get to this access point has changed.
    Reachable(Reachability),
    /// This access point had no swarm, and a peer accepted it into one: the secrets are to be stored. Comes before that peer's
    /// `Connected`.
    Admitted {
        /// The identifier of the swarm.
        swarm: SwarmId,
        /// The swarm's fingerprint key.
        key: FingerprintKey,
        /// The member that accepted it.
        by: AccessPoint,
    },
    /// A member is connected, and both hellos are accepted. Sent again when the member has restarted.
    Connected {
        /// The member.
        peer: AccessPoint,
        /// Its multiaddrs, as it states them.
        addresses: Vec<String>,
        /// How often it has started.
        incarnation: u64,
        /// Its program and version, as it states them.
        software: String,
        /// The address at the other end of its last connection.
        remote: Option<IpAddr>,
        /// The certificate that it showed; it counts if one is asked for.
        certificate: Option<Box<SignedAdmission>>,
    },
    /// The last connection to a connected member has ended.
    Disconnected {
        /// The member.
        peer: AccessPoint,
    },
    /// The round-trip time to a member was measured by a ping.
    Timed {
        /// The member.
        peer: AccessPoint,
        /// The round-trip time in microseconds.
        rtt_us: u32,
        /// The address at the other end.
        remote: Option<IpAddr>,
    },
    /// A member sent a request.
    Asked {
        /// The member.
        from: AccessPoint,
        /// To answer with; void after [`super::SwarmConfig::answer_within`].
        ticket: Ticket,
        /// The request.
        request: Request,
    },
    /// The result of a [`SwarmCommand::Ask`].
    Answered {
        /// The caller's number.
        question: QuestionId,
        /// Who was asked.
        from: AccessPoint,
        /// The answer, or why there is none.
        result: Result<Response, AskError>,
    },
    /// Gossip of a member arrived, and its signature is right.
    Gossiped {
        /// The member that passed it on.
        from: AccessPoint,
        /// Who wrote and signed it.
        author: AccessPoint,
        /// The message.
        gossip: Gossip,
    },
    /// A peer, member or not, sent a public request.
    PublicAsked {
        /// To answer with.
        ticket: Ticket,
        /// Where it is; none if it comes through a third member.
        remote: Option<IpAddr>,
        /// The request.
        request: PublicRequest,
    },
    /// A peer's hello was refused, or it was disconnected for its behaviour.
    Refused {
        /// The peer.
        peer: AccessPoint,
        /// The reason, which is sent to it.
        reason: HelloError,
        /// The address at which we dialled it; none if it connected to us.
        address: Option<String>,
    },
    /// A peer refused this access point's hello.
    RefusedBy {
        /// The peer.
        peer: AccessPoint,
        /// What it says, cleaned for a log line.
        reason: String,
        /// The address at which we dialled it, if we did.
        address: Option<String>,
        /// The expulsion that it showed as its reason; it is not checked yet.
        proof: Option<Box<SignedAdmission>>,
    },
    /// No connection could be made.
    DialFailed {
        /// The multiaddr that was dialled.
        address: String,
        /// The reason, as the transport gives it.
        reason: String,
    },
}

/// Whether others reach us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// Nobody has tried yet.
    Unknown,
    /// They do.
    Public,
    /// A router or firewall is in between.
    Behind,
}

/// How others get to an access point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reachability {
    /// Whether they reach it from outside.
    pub reached: Reached,
    /// Where they are told to reach it, the best address first.
    pub addresses: Vec<String>,
    /// The members through which it is reached.
    pub relays: Vec<AccessPoint>,
    /// Where members connected to it, and which.
    pub confirmed: Vec<(String, Vec<AccessPoint>)>,
    /// The addresses that others see it at.
    pub own: Vec<IpAddr>,
    /// Whether others are reached through it.
    pub relays_for_others: bool,
    /// The connected members to which it has no direct connection.
    pub relayed: Vec<AccessPoint>,
}

impl Default for Reachability {
    fn default() -> Self {
        Reachability {
            reached: Reached::Unknown,
            addresses: Vec::new(),
            relays: Vec::new(),
            confirmed: Vec::new(),
            own: Vec::new(),
            relays_for_others: false,
            relayed: Vec::new(),
        }
    }
}

/// Why a question has no answer. Whether the asked side has acted on it is known only where it says so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// Could not be reached; nothing was asked.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// Did not let us in; nothing was asked.
    #[error("did not let us in: {0}")]
    NotLetIn(String),
    /// No answer in time; perhaps acted on.
    #[error("no answer in time")]
    TimedOut,
    /// The connection ended before the answer; perhaps acted on.
    #[error("the connection ended before the answer")]
    ConnectionLost,
    /// The peer ended the question without an answer, as it does with one that was open for too long there; perhaps acted on.
    #[error("the question was dropped without an answer")]
    Dropped,
    /// Does not speak this protocol.
    #[error("does not speak this protocol: is it a nearcrawl daemon of this version?")]
    NotSpoken,
    /// The answer cannot be decoded, or the question or answer is longer than allowed.
    #[error("broken message: {0}")]
    Broken(String),
    /// Too many questions to this peer are open; nothing was asked.
    #[error("too many questions to this peer are open")]
    TooManyOpen,
    /// The swarm is stopping.
    #[error("the swarm is stopping")]
    Stopping,
}

/// Why a command was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TellError {
    /// Too many commands are waiting; try again after taking some events.
    #[error("the swarm has too many commands waiting")]
    Full,
    /// The swarm has ended.
    #[error("the swarm has ended")]
    Ended,
}

/// To talk to the running swarm. It ends when all handles are dropped.
#[derive(Clone, Debug)]
pub struct SwarmHandle {
    pub(super) me: AccessPoint,
    pub(super) commands: mpsc::Sender<SwarmCommand>,
    pub(super) counters: Arc<SwarmCounters>,
}

impl SwarmHandle {
    /// This access point.
    pub fn me(&self) -> AccessPoint {
        self.me
    }

    /// Sends a command without waiting, so that two loops can never wait for each other.
    pub fn tell(&self, command: SwarmCommand) -> Result<(), TellError> {
        self.commands.try_send(command).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => TellError::Full,
            mpsc::error::TrySendError::Closed(_) => TellError::Ended,
        })
    }

    /// What has been counted since the start.
    pub fn counters(&self) -> &SwarmCounters {
        &self.counters
    }
}

/// What went wrong or was held back, since the start.
#[derive(Debug, Default)]
pub struct SwarmCounters {
    /// The bytes of all connections with members.
    pub meter: Arc<SwarmMeter>,
    /// The messages to members, by kind.
    pub messages: SentMessages,
    /// Requests and gossip that could not be decoded or were too long.
    pub malformed: AtomicU64,
    /// Messages of members of a later protocol version that this version does not know.
    pub unknown: AtomicU64,
    /// Requests from peers that had not been accepted.
    pub uninvited: AtomicU64,
    /// Requests answered with `Busy`, SWIM datagrams and public questions dropped because of their rate.
    pub rate_limited: AtomicU64,
    /// Gossip that was not forwarded: from peers not accepted, or above the rate limit.
    pub gossip_ignored: AtomicU64,
    /// Gossip that could not be published (too large, queues full).
    pub gossip_unsent: AtomicU64,
    /// Hellos refused here.
    pub refused: AtomicU64,
    /// Tickets that expired unanswered.
    pub tickets_expired: AtomicU64,
    /// Peers shut out for malformed messages.
    pub shut_out: AtomicU64,
    /// Peers shut out for sending far more than a member may.
    pub flooding: AtomicU64,
    /// Gossip about something else than this swarm, or too long; nothing of it is kept.
    pub gossip_elsewhere: AtomicU64,
    /// Connections not taken because too many came from one address, or of strangers.
    pub connections_refused: AtomicU64,
    /// Connections that others tried to make and had no turn for, while the bytes for peers that are no members are spent.
    pub connections_spent: AtomicU64,
    /// Addresses of members that were not dialled because of what they are: private, loopback and the like.
    pub dials_forbidden: AtomicU64,
    /// Dials that were not begun because too many were under way, or the member or its place was tried a moment ago.
    pub dials_refused: AtomicU64,
    /// Peers whose addresses were not remembered because those of too many are.
    pub addresses_refused: AtomicU64,
    /// Members connected now.
    pub connected: AtomicU64,
    /// Members that were tried because they asked whether we reach them.
    pub dialled_back: AtomicU64,
    /// Connections of two others that were relayed here.
    pub circuits: AtomicU64,
    /// Such connections, and places for them, that were not given because there are enough.
    pub circuits_refused: AtomicU64,
    /// Direct connections between us and a member that came of both sides' dialling at once.
    pub holes_found: AtomicU64,
    /// Attempts at that which failed.
    pub holes_not_found: AtomicU64,
    /// Attempts that were begun again after libp2p had given up.
    pub holes_sought_again: AtomicU64,
}

impl SwarmCounters {
    /// What was refused since the start, by class.
    pub fn refusals(&self) -> [(&'static str, u64); 15] {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("messages of members that cannot be read", count(&self.malformed)),
            ("messages of a later protocol version", count(&self.unknown)),
            ("members shut out for messages that cannot be read", count(&self.shut_out)),
            ("members shut out for far more messages than a member may send", count(&self.flooding)),
            ("gossip of other swarms, or too long", count(&self.gossip_elsewhere)),
            ("connections beyond those of one address or of strangers", count(&self.connections_refused)),
            ("connections of strangers while their bytes are spent", count(&self.connections_spent)),
            ("requests of peers that are no members", count(&self.uninvited)),
            ("requests of members beyond their rate", count(&self.rate_limited)),
            ("gossip beyond its rate or of peers that are no members", count(&self.gossip_ignored)),
            ("hellos", count(&self.refused)),
            ("addresses of members that may not be dialled", count(&self.dials_forbidden)),
            ("dials beyond the limit of those under way", count(&self.dials_refused)),
            ("addresses of peers beyond the limit", count(&self.addresses_refused)),
            ("connections of others that are not relayed here", count(&self.circuits_refused)),
        ]
    }
}

/// Increases a counter by one.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
