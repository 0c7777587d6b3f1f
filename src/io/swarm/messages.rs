//! What is the swarm told to do, and what does it tell?

use super::hello::{HelloError, SwarmId};
use nearcrawl_model::{
    access_point::AccessPoint,
    fingerprint::FingerprintKey,
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

/// What the swarm is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwarmCommand {
    /// Connect to this multiaddr, with or without `/p2p/…`; failing is told with [`SwarmEvent::DialFailed`].
    Dial {
        /// Where.
        address: String,
    },
    /// Ask a member. Answered with [`SwarmEvent::Answered`], always and once. Connects first if need be.
    Ask {
        /// Whom.
        to: AccessPoint,
        /// The caller's number, given back with the answer.
        question: u64,
        /// What.
        request: Request,
    },
    /// Answer what [`SwarmEvent::Asked`] brought; too late or twice is harmless.
    Answer {
        /// Its ticket.
        ticket: u64,
        /// The answer.
        response: Response,
    },
    /// Tell everybody. Nothing comes back; being alone is no error.
    Publish(Gossip),
    /// Answer what [`SwarmEvent::PublicAsked`] brought.
    AnswerPublic {
        /// Its ticket.
        ticket: u64,
        /// The answer.
        response: PublicResponse,
    },
    /// Where a member can be reached, for later questions; replaces what was known.
    Remember {
        /// Who.
        peer: AccessPoint,
        /// Where, as multiaddrs.
        addresses: Vec<String>,
    },
    /// Hang up on everybody and end; what was answered before is still sent.
    Stop,
}

/// What the swarm tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwarmEvent {
    /// Listening here, on a port that is known now.
    Listening {
        /// The multiaddr, with `/p2p/…`: others can dial it as it is.
        address: String,
    },
    /// This access point, which had no swarm, was let into one: to be kept on disk. Comes before that peer's `Connected`.
    Admitted {
        /// Which.
        swarm: SwarmId,
        /// The swarm's fingerprint key.
        key: FingerprintKey,
        /// By whom.
        by: AccessPoint,
    },
    /// A member is connected, and both hellos are accepted. Said again when it comes back with a new life.
    Connected {
        /// Who.
        peer: AccessPoint,
        /// Where it can be reached, as it says.
        addresses: Vec<String>,
        /// How often it has started.
        incarnation: u64,
        /// Its software.
        software: String,
    },
    /// The last connection to a connected member has ended.
    Disconnected {
        /// Who.
        peer: AccessPoint,
    },
    /// The connection to a member was timed: a ping and its echo.
    Timed {
        /// Who.
        peer: AccessPoint,
        /// The round trip in microseconds.
        rtt_us: u32,
        /// The address at the other end.
        remote: Option<IpAddr>,
    },
    /// A member asks.
    Asked {
        /// Who.
        from: AccessPoint,
        /// To answer with; void after [`super::SwarmConfig::answer_within`].
        ticket: u64,
        /// What.
        request: Request,
    },
    /// What came of an [`SwarmCommand::Ask`].
    Answered {
        /// The caller's number.
        question: u64,
        /// Who was asked.
        from: AccessPoint,
        /// The answer, or why there is none.
        result: Result<Response, AskError>,
    },
    /// Gossip arrived.
    Gossiped {
        /// The member that passed it on.
        from: AccessPoint,
        /// Who wrote and signed it.
        author: AccessPoint,
        /// What.
        gossip: Gossip,
    },
    /// Anybody asks.
    PublicAsked {
        /// To answer with.
        ticket: u64,
        /// What.
        request: PublicRequest,
    },
    /// A peer was not let in, or was thrown out.
    Refused {
        /// Who.
        peer: AccessPoint,
        /// Why.
        reason: HelloError,
    },
    /// A peer did not let us in.
    RefusedBy {
        /// Who.
        peer: AccessPoint,
        /// What it says, cleaned for a log line.
        reason: String,
    },
    /// Connecting failed.
    DialFailed {
        /// Where to.
        address: String,
        /// Why.
        reason: String,
    },
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

    /// Hands a command over without waiting, so that two loops can never wait for each other.
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
    /// Requests and gossip that could not be decoded or were too long.
    pub malformed: AtomicU64,
    /// Requests from peers that had not been let in.
    pub uninvited: AtomicU64,
    /// Requests answered with `Busy`, SWIM datagrams and public questions dropped because of their rate.
    pub rate_limited: AtomicU64,
    /// Gossip that was not passed on: from peers not let in, or too much of it.
    pub gossip_ignored: AtomicU64,
    /// Gossip that could not be published (too large, queues full).
    pub gossip_unsent: AtomicU64,
    /// Hellos refused here.
    pub refused: AtomicU64,
    /// Tickets that expired unanswered.
    pub tickets_expired: AtomicU64,
    /// Peers shut out for malformed messages.
    pub shut_out: AtomicU64,
    /// Members connected now.
    pub connected: AtomicU64,
}

/// Counts one.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
