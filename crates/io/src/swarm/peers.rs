//! State of a peer while it is connected, or while questions wait for it.

use super::{
    channel::Channel,
    config::SwarmConfig,
    gossip_limits::{MAX_EXCESS, Sender},
    hello::{Hello, HelloAnswer},
    protocol::PROTOCOL,
    rate::TokenBucket,
};
use libp2p::swarm::ConnectionId;
use nearcrawl_model::{access_point::AccessPoint, admission::Certificate, ids::QuestionId, message::Request};
use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
    time::Instant,
};

/// Questions of ours to one peer, waiting or asked, and questions of one peer to us.
pub(super) const MAX_OPEN: usize = 64;

/// Requests held from a peer whose hello is not settled yet: its answer to our hello may be overtaken by its first requests.
pub(super) const MAX_HELD: usize = 16;

/// Hellos on one connection: one is usual.
pub(super) const MAX_HELLOS: u32 = 4;

/// Bytes of requests of one peer, at once and a second.
pub(super) const MAX_REQUEST_BYTES: (u32, u32) = (16 << 20, 4 << 20);

/// The state of the connection to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The hello is on its way.
    Greeting,
    /// Accepted by both sides.
    Member {
        /// The number of its start, from its hello.
        incarnation: u64,
    },
    /// Asks the public protocol only.
    Reader,
    /// Refused; the connection is closed after a time in which it can read the reason.
    Refused,
}

/// A question of ours that waits for the hello.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) question: QuestionId,
    pub(super) request: Request,
    pub(super) since: Instant,
}

/// A connected peer, with its requests and counters.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) access_point: AccessPoint,
    pub(super) stage: Stage,
    /// When the stage began.
    pub(super) since: Instant,
    /// Whether we chose to connect to it.
    pub(super) dialled: bool,
    pub(super) connected: bool,
    /// It is dialled through members that relay to it beside another dial, and neither of the two has failed.
    pub(super) beside: bool,
    /// The dial under way tries the members that relay to it.
    pub(super) circuits_dialled: bool,
    /// The address at which it was dialled, as it was written.
    pub(super) named: Option<String>,
    /// When it last said anything.
    pub(super) heard: Instant,
    /// The latest protocol version that it speaks, by its hello.
    pub(super) protocol: u32,
    /// The least round trip on its connections, in microseconds.
    pub(super) rtt_us: Option<u32>,
    /// The address at the other end of its last connection.
    pub(super) remote: Option<IpAddr>,
    /// How many hellos came on each of its connections.
    pub(super) hellos: HashMap<ConnectionId, u32>,
    /// The reason for which its hello was refused here, which it is told again without being judged again.
    pub(super) refusal: Option<HelloAnswer>,
    /// Its hello, which was accepted, until our answer has been sent.
    pub(super) welcomed: Option<Hello>,
    /// The certificate that it showed, its signatures checked.
    pub(super) certificate: Option<Certificate>,
    pub(super) waiting: VecDeque<Waiting>,
    /// With the lengths of the requests.
    pub(super) held: Vec<(Request, usize, Channel)>,
    /// Our questions that it has not answered yet.
    pub(super) open: usize,
    /// Its questions that we have not answered yet.
    pub(super) tickets: usize,
    pub(super) requests: TokenBucket,
    pub(super) swim: TokenBucket,
    pub(super) gossip: Sender,
    /// Bytes of its requests.
    pub(super) bytes: TokenBucket,
    /// Empty when it went beyond its limits too often.
    pub(super) patience: TokenBucket,
}

impl Peer {
    /// A peer that has just connected.
    pub(super) fn new(access_point: AccessPoint, config: &SwarmConfig, now: Instant) -> Peer {
        let rate = config.requests_per_second;
        Peer {
            access_point,
            stage: Stage::Greeting,
            since: now,
            dialled: false,
            connected: false,
            beside: false,
            circuits_dialled: false,
            named: None,
            heard: now,
            protocol: PROTOCOL,
            rtt_us: None,
            remote: None,
            hellos: HashMap::new(),
            refusal: None,
            welcomed: None,
            certificate: None,
            waiting: VecDeque::new(),
            held: Vec::new(),
            open: 0,
            tickets: 0,
            requests: TokenBucket::new(rate.saturating_mul(4), rate, now),
            // SWIM must not starve because of a busy hand-off, and gossip is passed on for others.
            swim: TokenBucket::new(400, 100, now),
            gossip: Sender::new(now),
            bytes: TokenBucket::new(MAX_REQUEST_BYTES.0, MAX_REQUEST_BYTES.1, now),
            patience: TokenBucket::new(MAX_EXCESS.0, MAX_EXCESS.1, now),
        }
    }

    /// Whether it may say what only later versions than ours understand. It should not, but that is no offence.
    pub(super) fn is_newer(&self) -> bool {
        self.protocol > PROTOCOL
    }

    /// Whether it is accepted as a member.
    pub(super) fn is_member(&self) -> bool {
        matches!(self.stage, Stage::Member { .. })
    }

    /// Enters a stage.
    pub(super) fn enter(&mut self, stage: Stage, now: Instant) {
        self.stage = stage;
        self.since = now;
    }
}
