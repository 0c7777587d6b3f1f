//! What do access points say to each other? Questions and answers between members, gossip to all, and what anybody may ask.
//!
//! Encoded with postcard. New variants go to the end; another meaning needs another protocol version.

use super::{
    access_point::AccessPoint,
    claim::{Answer, SignedClaim},
    distances::Distances,
    edition::Endorsement,
    fetch::{LocatedHost, ProbeReport, ProbeTarget, ResolveError},
    journal::{Arrival, JournalKey, JournalRow},
    receipt::{Declined, SignedReceipt},
    subnet::Subnet,
    summary::{RollUp, SwarmResults},
    time::Millis,
    url::Host,
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The largest request or answer between members, in bytes.
pub const MAX_MESSAGE: usize = 1 << 20;

/// The largest gossip message, in bytes.
pub const MAX_GOSSIP: usize = 256 << 10;

/// How many digests an ownership map is compared by.
pub const CLAIM_BUCKETS: usize = 256;

/// What one member asks of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// A SWIM datagram. Answered with [`Response::Noted`].
    Swim(Vec<u8>),
    /// To the host's steward: which address is this host pinned to?
    Locate(Host),
    /// To the guardian of an address that nobody owns: please find an owner; the sender takes the address to lie in this subnet.
    Settle(Subnet, ProbeTarget),
    /// From the subnet's steward: please probe this target once; these are the probes of the subnet that came before.
    Probe(Subnet, ProbeTarget, Vec<SignedReceipt>),
    /// From the subnet's steward to the chosen owner.
    Award {
        /// What it is to claim.
        award: Award,
        /// For how long the probed address is to be left alone from now on.
        rest: Millis,
    },
    /// From a finder to an owner: URLs of hosts in your subnets, all of one host's with its pinned address.
    HandOff(Vec<HandOff>),
    /// From an owner to a keeper: please keep these rows.
    Keep(Vec<JournalRow>),
    /// From a new owner: what have you kept of this subnet, from this row on?
    Recall(Subnet, Option<(JournalKey, u64)>),
    /// Digests of my ownership map, by bucket: which claims do you have where we differ?
    CompareClaims(Vec<u64>),
    /// Good-bye: I am leaving for good (true) or stopping for a while (false).
    Farewell(bool),
    /// From the guardian of an address to the steward of its subnet: please find an owner for this subnet; the address is yours to
    /// have probed until then.
    Lend(Subnet, ProbeTarget),
    /// What is your file of the hierarchy with this hash made of?
    HierarchyManifest([u8; 32]),
    /// A piece of a file of a hierarchy, please.
    HierarchyChunk {
        /// The manifest that the sender goes by.
        manifest: [u8; 32],
        /// Which piece.
        index: u32,
    },
    /// From the owner of a subnet, at this epoch: would you have it? If so, its journals come to you as to a keeper.
    Offer {
        /// Which.
        subnet: Subnet,
        /// The epoch of the claim by which the sender holds it.
        epoch: u64,
    },
    /// From an owner whose offer was accepted and whose journals have all arrived: it is yours, by this release of mine, which names
    /// you as the next.
    TakeOver(SignedClaim),
}

/// A subnet for the access point that turned out to be its nearest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Award {
    /// What.
    pub subnet: Subnet,
    /// The epoch at which to claim.
    pub epoch: u64,
    /// What the new owner's probe measured, in microseconds.
    pub rtt_us: Option<u32>,
    /// Who came next.
    pub runner_up: Option<AccessPoint>,
    /// How many probes it took.
    pub probes: u16,
    /// What the others measured, the nearest first.
    pub answers: Vec<Answer>,
}

/// URLs of one host, handed to its owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOff {
    /// The host with its pinned address.
    pub host: LocatedHost,
    /// The URLs.
    pub arrivals: Vec<Arrival>,
}

/// What the asked member answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Response {
    /// Taken note of; nothing to say.
    Noted,
    /// To `Locate`.
    Located(Result<LocatedHost, ResolveError>),
    /// To `Settle`: it is being worked on, or this claim stands.
    Settling(Option<SignedClaim>),
    /// To `Probe`: what was found, with the receipt to show to whoever is asked next.
    Probed(ProbeReport, SignedReceipt),
    /// To `Probe`: not done, and the probes of this subnet that are known here.
    ProbeDeclined(Declined, Vec<SignedReceipt>),
    /// To `HandOff`: stored and kept; hosts that I do not own are named and must be routed anew.
    HandedOff {
        /// Not mine.
        not_mine: Vec<Host>,
    },
    /// To `HandOff`, `Keep`: too busy, try again after this long.
    Busy(Millis),
    /// To `Keep`: up to (not including) which sequence number each journal is stored here without a gap.
    Kept(Vec<(JournalKey, u64)>),
    /// To `Recall`: rows, and where to go on, if there is more.
    Recalled(Vec<JournalRow>, Option<(JournalKey, u64)>),
    /// To `CompareClaims`: my claims in the buckets that differ; `true` if there are more than fitted.
    Claims(Vec<SignedClaim>, bool),
    /// The request makes no sense here.
    Refused(String),
    /// To `HierarchyManifest`: the encoded manifest; none if there is no such file here.
    HierarchyManifest(Option<Vec<u8>>),
    /// To `HierarchyChunk`: the piece; none if there is no such file or piece here.
    HierarchyChunk(Option<Vec<u8>>),
    /// To `Offer`: yes, or why not.
    Offered(Option<Unwilling>),
}

/// Why an access point does not take over a subnet that it is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unwilling {
    /// It fetches nothing at the moment, or is on its way out.
    HeldBack,
    /// As many subnets are on their way to it as it takes at a time.
    Busy,
    /// As many URLs wait there as may.
    Full,
    /// As far as it knows, that subnet is not the sender's to give.
    NotYours,
}

impl fmt::Display for Unwilling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unwilling::HeldBack => "held-back",
            Unwilling::Busy => "busy",
            Unwilling::Full => "full",
            Unwilling::NotYours => "not-yours",
        })
    }
}

/// What is told to everybody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Gossip {
    /// Claims, at most once a second, many at a time.
    Claims(Vec<SignedClaim>),
    /// What I own adds up to this.
    RollUp(Box<RollUp>),
    /// Which edition of the hierarchy I use and which I vouch for.
    Endorsement(Endorsement),
    /// Where I am, and how far it is from here to others.
    Distances(Distances),
}

/// What anybody may ask, member or not, if the configuration lets them read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PublicRequest {
    /// The swarm's totals.
    Results,
}

/// The answer to a [`PublicRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PublicResponse {
    /// To `Results`.
    Results(Box<SwarmResults>),
    /// Not for you.
    Refused(String),
}
