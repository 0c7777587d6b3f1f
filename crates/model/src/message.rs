//! Messages of access points: requests and responses between members, gossip to all members, and requests of non-members.
//!
//! Encoded with postcard. New variants go to the end; another meaning needs another protocol version.

use super::{
    access_point::AccessPoint,
    admission::SignedAdmission,
    claim::{Answer, SignedClaim},
    cross_table::CrossTable,
    distances::Distances,
    distinct::{DistinctSets, DistinctView},
    edition::Endorsement,
    exported::{ExportQuery, ExportedRows},
    fetch::{LocatedHost, ProbeReport, ProbeTarget, ResolveError},
    forwarded::{NotForwarded, SealedAnswer, SealedQuestion},
    journal::{Arrival, JournalKey, JournalRow},
    opt_out::{MAX_STATEMENTS, MAX_TOLD, OptOutKey, SignedStatement, StatementHead, StatementId, StatementsDigest},
    ownership_map::{ComparedPart, MAX_COMPARED, MAX_SENT, MAX_WANTED, MapDigest, MapPart, WantedPart, at_most},
    profile::ToldProfile,
    receipt::{Declined, SignedReceipt},
    replica::{MAX_SUBNETS_ASKED, StoreId},
    request_record::{
        HourMarks, MAX_COPIES as MAX_RECORDS_TOLD, MAX_HOURS, MAX_OWNERS as MAX_RECORDS, RecordParcel, RecordRange, RecordTold,
        RecordedRequests, RecordsQuery, RequestsMissing,
    },
    requests_made::{RequestsMade, RequestsQuery, RequestsView},
    rows_digest::{Digests, MAX_JOURNALS_COMPARED},
    server_rows::{MAX_OWNERS, ServerOwner, ServerRows},
    spans::Spans,
    subnet::Subnet,
    summary::{Dimension, RollUp, SwarmResults},
    survey::{MAX_SURVEYS, SignedSurvey, SurveyHead, SurveyId, SurveysDigest},
    survey_probes::{ProbedSurvey, SurveyProbes},
    time::Millis,
    url::Host,
    vote::{BallotAnswer, BallotRequest, DoubleVote, MAX_PROPOSED, Renewal, Renewed, SignedList, SignedPart, Voted},
};
use serde::{Deserialize, Deserializer, Serialize};
use std::{fmt, net::IpAddr};

/// The largest request or answer between members, in bytes.
pub const MAX_MESSAGE: usize = 1 << 20;

/// The largest gossip message, in bytes.
pub const MAX_GOSSIP: usize = 256 << 10;

/// Bytes that a connection of two members through a third one may carry before it is closed: enough for a whole hand-over.
pub const MAX_CIRCUIT_BYTES: u64 = 64 << 20;

/// Hosts in one [`Request::Pinned`].
pub const MAX_PINNED: usize = 256;

/// Lists of voters in one answer.
pub const MAX_VOTER_LISTS: usize = 64;

/// A request from one member to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// A SWIM datagram. Answered with [`Response::Swim`] if it makes the receiver send one back, else with [`Response::Noted`].
    Swim(Vec<u8>),
    /// To the host's steward: which address is this host pinned to?
    Locate(Host),
    /// To an address's steward, for an address without an owner: have an owner found. The sender takes the address to lie in this
    /// subnet.
    FindOwner(Subnet, ProbeTarget),
    /// From the subnet's steward: please probe this target once; these are the probes of the subnet that came before.
    Probe(Subnet, ProbeTarget, Vec<SignedReceipt>),
    /// From the subnet's steward to the chosen owner.
    Award {
        /// What it is to claim.
        award: Award,
        /// For how long no request may go to the probed address from now on, in milliseconds.
        rest: Millis,
    },
    /// From the member that found URLs to the owner of their subnets: each [`HandOff`] holds URLs of one host.
    HandOff(Vec<HandOff>),
    /// From an owner to a replica: store these journal rows. Answered with [`Response::Kept`].
    Keep(Vec<JournalRow>),
    /// From a new owner to a replica: send the stored rows of this subnet, from this one on. Answered with [`Response::Recalled`].
    Recall(Subnet, Option<(JournalKey, u64)>),
    /// Digests of parts of the sender's ownership map, at most [`MAX_COMPARED`]: which of them differ? Answered with
    /// [`Response::Compared`].
    CompareClaims(#[serde(deserialize_with = "at_most::<_, _, MAX_COMPARED>")] Vec<(MapPart, MapDigest)>),
    /// The sender stops: it leaves the swarm for good (true) or for a while (false).
    Farewell(bool),
    /// From an address's steward to the steward of its subnet: find an owner for this subnet. Until then the receiver holds the
    /// address's reservation and alone may have it probed.
    Reserve(Subnet, ProbeTarget),
    /// Send the manifest of the hierarchy file with this hash.
    HierarchyManifest([u8; 32]),
    /// Send one chunk of a hierarchy file.
    HierarchyChunk {
        /// The hash of the manifest that the sender goes by.
        manifest: [u8; 32],
        /// The number of the chunk in the manifest, from 0.
        index: u32,
    },
    /// From the owner of a subnet, at this epoch: will the receiver take it over? If so, it is sent the journals like a replica.
    Offer {
        /// The subnet offered.
        subnet: Subnet,
        /// The epoch of the claim by which the sender holds it.
        epoch: u64,
    },
    /// From an owner whose offer was accepted and whose journals have all arrived: claim the subnet now. The owner's signed release names
    /// the receiver as the first successor.
    TakeOver(SignedClaim),
    /// From an owner to a voter: renew my lease. Answered with [`Response::Renewed`].
    Renew(Renewal),
    /// From an owner to a voter: accept these claims. Answered with [`Response::Voted`].
    Propose(Proposal),
    /// From an owner to a voter: these claims, by subnet and epoch, will never be published.
    Withdraw {
        /// The owner's process ([`Renewal::process`]): what a later one claimed is not withdrawn by it.
        process: u64,
        /// Subnets and epochs.
        claims: Vec<(Subnet, u64)>,
    },
    /// From a voter: a step of the choice of the next list of voters. Answered with [`Response::Ballot`].
    Ballot(Box<BallotRequest>),
    /// Send the lists of voters after this one. Answered with [`Response::VoterLists`].
    VoterLists(u64),
    /// Send the claims of these parts of the ownership map that the sender has not, at most [`MAX_WANTED`] parts. Answered with
    /// [`Response::Claims`].
    SendClaims(#[serde(deserialize_with = "at_most::<_, _, MAX_WANTED>")] Vec<WantedPart>),
    /// Send your totals: gossip of them did not arrive for a while. Answered with [`Response::Totals`].
    Totals,
    /// A voter accepted two claims to one subnet at one epoch: it votes no more. Answered with [`Response::Noted`].
    DoubleVote(Box<DoubleVote>),
    /// From an owner: of which of these subnets, at most [`MAX_SUBNETS_ASKED`], does the receiver have journal rows? Answered with
    /// [`Response::Held`].
    Holds(#[serde(deserialize_with = "at_most::<_, _, MAX_SUBNETS_ASKED>")] Vec<Subnet>),
    /// A question whose asker does not reach who is asked: to a third member, which passes it on to who is asked. Answered with
    /// [`Response::Forwarded`].
    Forward(Box<SealedQuestion>),
    /// Claims that are new, as in [`Gossip::Claims`], at most [`MAX_SENT`]. Answered with [`Response::Noted`].
    TellClaims(#[serde(deserialize_with = "at_most::<_, _, MAX_SENT>")] Vec<SignedClaim>),
    /// The sender's totals of this version still hold; do yours? Answered with [`Response::TotalsHold`] or [`Response::Totals`].
    CompareTotals {
        /// The version of the sender's totals as they are now.
        mine: u64,
        /// The version of the receiver's totals that the sender knows; 0 if none.
        yours: u64,
    },
    /// To the host's steward, from the owner of the address that the host is pinned to: look its name up once more. Answered with
    /// [`Response::Located`]: the same address as long as it is among those that the name has.
    Confirm(Host, IpAddr),
    /// From a host's steward to the owner of the address that it was pinned to: its name leads to this one now. Answered with
    /// [`Response::Noted`] if the receiver has the host and sees to it, else with [`Response::Refused`].
    HostMoved(LocatedHost),
    /// From the owner of the address that a host had to the owner of the one it has now: take its journals over. Answered with
    /// [`Response::Noted`] as soon as they are recorded there.
    TakeHost {
        /// The host with its new address.
        host: LocatedHost,
        /// Its last journal, as the sender files it.
        journal: JournalKey,
        /// How many rows that one has.
        rows: u64,
    },
    /// From the owner of these addresses to the steward of these hosts, at most [`MAX_PINNED`], which was another member until now: they are
    /// pinned there. Answered with [`Response::Noted`].
    Pinned(#[serde(deserialize_with = "at_most::<_, _, MAX_PINNED>")] Vec<(Host, IpAddr)>),
    /// What gossip would bring to all, in a swarm so small that it is sent to each. Answered with [`Response::Noted`].
    Tell(Box<Gossip>),
    /// From an owner to a replica: with which rows do its copies of these journals begin, at most [`MAX_JOURNALS_COMPARED`], of which the owner
    /// has so many rows? Answered with [`Response::RowsCompared`].
    CompareRows(#[serde(deserialize_with = "at_most::<_, _, MAX_JOURNALS_COMPARED>")] Vec<(JournalKey, u64)>),
    /// The sender's totals, which are others than before; do those of the receiver of this version hold, 0 if none is known? Answered with
    /// [`Response::TotalsHold`] or [`Response::Totals`].
    ExchangeTotals(Box<RollUp>, u64),
    /// For a reader: the servers that the receiver has on record, behind this host. Answered with [`Response::ServerRows`].
    ServerRows(Option<Host>),
    /// Send your sums by the values of these two dimensions. Answered with [`Response::CrossTotals`], or refused if that is asked too often.
    CrossTotals(Dimension, Dimension),
    /// For a reader: the runs of the servers that the receiver has on record, behind this host. Answered with [`Response::ServerRows`].
    HistoryRows(Option<Host>),
    /// For a reader: pages or links of the servers that the receiver has on record. Answered with [`Response::ExportedRows`].
    ExportRows(ExportQuery),
    /// The sender's surveys have this digest; which ones does the receiver have? Answered with [`Response::SurveyHeads`].
    CompareSurveys(SurveysDigest),
    /// Send these surveys, at most [`MAX_SURVEYS`]. Answered with [`Response::Surveys`].
    SendSurveys(#[serde(deserialize_with = "at_most::<_, _, MAX_SURVEYS>")] Vec<SurveyId>),
    /// Send your distinct sets, unless they are those with this digest. Answered with [`Response::Distinct`].
    Distinct(u64),
    /// For a reader: what the receiver's probes of this survey's sample came to. Answered with [`Response::SurveyProbes`].
    SurveyProbes(SurveyId),
    /// To the owner of this address: may the sender probe it once for a survey? Answered with [`Response::ProbeTurn`], or refused by who does not
    /// own it.
    ProbeTurn(IpAddr),
    /// The sender's statements about opt-outs have this digest; which ones does the receiver have? Answered with
    /// [`Response::OptOutHeads`].
    CompareOptOuts(StatementsDigest),
    /// Send these statements about opt-outs, at most [`MAX_TOLD`]. Answered with [`Response::OptOuts`].
    SendOptOuts(#[serde(deserialize_with = "at_most::<_, _, MAX_TOLD>")] Vec<StatementId>),
    /// The sender's certificates and expulsions have this digest; which ones does the receiver have? Answered with
    /// [`Response::AdmissionHeads`].
    CompareAdmissions(StatementsDigest),
    /// Send these certificates and expulsions, at most [`MAX_TOLD`]. Answered with [`Response::Admissions`].
    SendAdmissions(#[serde(deserialize_with = "at_most::<_, _, MAX_TOLD>")] Vec<StatementId>),
    /// For the owner of a web site: did the receiver make these requests? Answered with [`Response::RequestsMade`].
    RequestsMade(RequestsQuery),
    /// For somebody at the sender: why is this URL, host, address or subnet crawled by whom, by what the receiver knows? At most [`MAX_SUBJECT`] bytes. Answered
    /// with [`Response::Why`].
    Why(String),
    /// From a member to a replica: keep this copy of the record of its requests. Answered with [`Response::RecordKept`].
    KeepRecord(Box<RecordParcel>),
    /// For the owner of a web site: what do the receiver's copies of these members' records say? Answered with [`Response::Records`].
    Records(Box<RecordsQuery>),
    /// From a member to a replica: which of these hours of its record does the receiver have? Answered with [`Response::RecordHours`].
    CompareRecord(RecordRange),
}

/// The longest subject of a [`Request::Why`], in bytes.
pub const MAX_SUBJECT: usize = 4_096;

/// An owner asks a voter to accept claims, at most [`crate::vote::MAX_PROPOSED`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// The number of the list by which it asks.
    pub list: u64,
    /// The term of its lease.
    pub term: u64,
    /// The owner's process ([`Renewal::process`]).
    pub process: u64,
    /// The claims, without votes.
    pub claims: Vec<SignedClaim>,
    /// Releases that some of them follow: the voter may not have heard of these yet.
    pub releases: Vec<SignedClaim>,
    /// What the owners of larger subnets say of those that are parts of these.
    #[serde(deserialize_with = "at_most::<_, _, MAX_PROPOSED>")]
    pub parts: Vec<SignedPart>,
}

/// A subnet assigned to the access point that proved to be its nearest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Award {
    /// The subnet to claim.
    pub subnet: Subnet,
    /// The epoch at which to claim.
    pub epoch: u64,
    /// The round-trip time of the new owner's probe, in microseconds; none if it was not measured.
    pub rtt_us: Option<u32>,
    /// The second nearest: the first to claim the subnet if the owner dies. None if no other member answered.
    pub runner_up: Option<AccessPoint>,
    /// Probes that the search took, by all members together.
    pub probes: u16,
    /// What the other members measured, the nearest first.
    pub answers: Vec<Answer>,
    /// If it lies within a larger subnet of the awarding member: that this one lets the new owner have it.
    pub part: Option<Box<SignedPart>>,
}

/// URLs of one host, handed to its owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOff {
    /// The host with its pinned address.
    pub host: LocatedHost,
    /// URLs of that host.
    pub arrivals: Vec<Arrival>,
}

/// What the asked member answers to a [`Request`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Response {
    /// The request was carried out; there is nothing to return.
    Noted,
    /// To `Locate`: the host with its pinned address, or why it has none.
    Located(Result<LocatedHost, ResolveError>),
    /// To `FindOwner` and `Reserve`: an owner is being searched for (none), or this claim is in force already.
    FindingOwner(Option<SignedClaim>),
    /// To `Probe`: what the probe measured, with a signed receipt for the next member that is asked.
    Probed(ProbeReport, SignedReceipt),
    /// To `Probe`: refused, and the probes of this subnet that the refusing member knows of.
    ProbeDeclined(Declined, Vec<SignedReceipt>),
    /// To `HandOff`: the URLs are stored, except those of the hosts named here.
    HandedOff {
        /// Hosts whose subnets the answering member does not own: the sender routes them anew.
        not_mine: Vec<Host>,
    },
    /// To `HandOff` and `Keep`: overloaded, send it again after this many milliseconds.
    Busy(Millis),
    /// To `Keep`: for each journal the first sequence number that is not stored here; all rows before it are.
    Kept(Vec<(JournalKey, u64)>),
    /// To `Recall`: rows, and from which one to go on; none if these were the last.
    Recalled(Vec<JournalRow>, Option<(JournalKey, u64)>),
    /// To `SendClaims`: claims of the parts that were named, part by part in the order of the request, in each by the places of their
    /// subnets; at most [`MAX_SENT`]. `true` if more follow the last one.
    Claims(#[serde(deserialize_with = "at_most::<_, _, MAX_SENT>")] Vec<SignedClaim>, bool),
    /// The request is not allowed or makes no sense at this member; why, as a sentence.
    Refused(String),
    /// To `HierarchyManifest`: the encoded manifest; none if there is no such file here.
    HierarchyManifest(Option<Vec<u8>>),
    /// To `HierarchyChunk`: the piece; none if there is no such file or piece here.
    HierarchyChunk(Option<Vec<u8>>),
    /// To `Offer`: none if the subnet is accepted, else why not.
    Offered(Option<Unwilling>),
    /// To `Renew`.
    Renewed(Renewed),
    /// To `Propose`.
    Voted(Voted),
    /// To `Ballot`.
    Ballot(Box<BallotAnswer>),
    /// To `VoterLists`: the next ones in order, at most [`MAX_VOTER_LISTS`].
    VoterLists(Vec<SignedList>),
    /// To `CompareClaims`: the parts in the order of the request.
    Compared {
        /// Whether the answering member's map was compared as a whole, so that it acts on it.
        whole: bool,
        /// How each part compares, at most [`MAX_COMPARED`].
        #[serde(deserialize_with = "at_most::<_, _, MAX_COMPARED>")]
        parts: Vec<ComparedPart>,
    },
    /// To `Keep`: the journals of the sender take as much of the answering member's disk as they may. Another replica is to be chosen.
    NoRoom,
    /// To `Totals`: the answering member's, at most a second old.
    Totals(Box<RollUp>),
    /// To `Holds`.
    Held {
        /// The database that was looked at.
        store: StoreId,
        /// Those of the subnets of which it has journal rows.
        #[serde(deserialize_with = "at_most::<_, _, MAX_SUBNETS_ASKED>")]
        subnets: Vec<Subnet>,
    },
    /// To `Forward`: what who is asked answers, or why nothing came of passing the question on.
    Forwarded(Result<Box<SealedAnswer>, NotForwarded>),
    /// To `Swim`: the SWIM datagram that is sent back.
    Swim(Vec<u8>),
    /// To `CompareTotals` and `ExchangeTotals`: the answering member's totals are of the version that was named, and still hold.
    TotalsHold,
    /// To `CompareRows`: the journals that the asking member may have copied here, with digests of the first rows.
    RowsCompared(#[serde(deserialize_with = "at_most::<_, _, MAX_JOURNALS_COMPARED>")] Vec<(JournalKey, Digests)>),
    /// To `ServerRows` and `HistoryRows`.
    ServerRows(ServerRows),
    /// To `CrossTotals`: the answering member's own sums.
    CrossTotals(Box<CrossTable>),
    /// To `Distinct`: the answering member's sets; none if they are those that were named.
    Distinct(Option<Box<DistinctSets>>),
    /// To `ExportRows`.
    ExportedRows(ExportedRows),
    /// To `CompareSurveys`: those that the answering member has, in order; none if they are the same as the sender's.
    SurveyHeads(#[serde(deserialize_with = "heads")] Option<Vec<SurveyHead>>),
    /// To `SendSurveys`: those of them that the answering member has, as many as fit into a message.
    Surveys(#[serde(deserialize_with = "at_most::<_, _, MAX_SURVEYS>")] Vec<SignedSurvey>),
    /// To `SurveyProbes`: none if the answering member has no such survey, or one without a sample.
    SurveyProbes(Option<Box<SurveyProbes>>),
    /// To `ProbeTurn`: after so many milliseconds nobody else asks the address anything for a moment; none if it is to be asked again later.
    ProbeTurn(Option<Millis>),
    /// To `CompareOptOuts`: the statements that the answering member has, in order; none if they are the same as the sender's.
    OptOutHeads(#[serde(deserialize_with = "statement_heads")] Option<Vec<StatementHead>>),
    /// To `SendOptOuts`: those of them that the answering member has.
    OptOuts(#[serde(deserialize_with = "at_most::<_, _, MAX_TOLD>")] Vec<SignedStatement>),
    /// To `CompareAdmissions`: those that the answering member has, in order; none if they are the same as the sender's.
    AdmissionHeads(#[serde(deserialize_with = "statement_heads")] Option<Vec<StatementHead>>),
    /// To `SendAdmissions`: those of them that the answering member has.
    Admissions(#[serde(deserialize_with = "at_most::<_, _, MAX_TOLD>")] Vec<SignedAdmission>),
    /// To `RequestsMade`: what the log of the answering member says.
    RequestsMade(Box<RequestsMade>),
    /// To `Why`: the explanation as JSON, like that of the receiver's API.
    Why(String),
    /// To `KeepRecord`: the hours of the sender's record that are stored here.
    RecordKept(Spans),
    /// To `Records`: what the record of each member says of which there is a copy here.
    Records(#[serde(deserialize_with = "at_most::<_, _, MAX_RECORDS>")] Vec<RecordedRequests>),
    /// To `CompareRecord`: the hours of the sender's record that are stored here, with the marks of what was sent last; none if they are
    /// those of the sender.
    RecordHours(#[serde(deserialize_with = "hour_marks")] Option<HourMarks>),
}

fn hour_marks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<HourMarks>, D::Error> {
    #[derive(Deserialize)]
    struct Hours(#[serde(deserialize_with = "at_most::<_, _, MAX_HOURS>")] HourMarks);
    Ok(Option::<Hours>::deserialize(deserializer)?.map(|hours| hours.0))
}

fn statement_heads<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<StatementHead>>, D::Error> {
    #[derive(Deserialize)]
    struct Heads(#[serde(deserialize_with = "at_most::<_, _, MAX_STATEMENTS>")] Vec<StatementHead>);
    Ok(Option::<Heads>::deserialize(deserializer)?.map(|heads| heads.0))
}

fn heads<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<SurveyHead>>, D::Error> {
    #[derive(Deserialize)]
    struct Heads(#[serde(deserialize_with = "at_most::<_, _, MAX_SURVEYS>")] Vec<SurveyHead>);
    Ok(Option::<Heads>::deserialize(deserializer)?.map(|heads| heads.0))
}

/// Why an access point does not take over a subnet that it is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unwilling {
    /// It does not fetch at the moment (fenced, starting, or at a limit) or is shutting down.
    HeldBack,
    /// It takes over as many subnets already as it may at a time.
    Busy,
    /// It has as many waiting URLs as it may.
    Full,
    /// By its ownership map the sender does not own the subnet.
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

/// A message that gossip carries to all members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Gossip {
    /// Signed claims; a member sends at most one such message a second.
    Claims(Vec<SignedClaim>),
    /// The sums over everything that the sender owns.
    RollUp(Box<RollUp>),
    /// Which version of the hierarchy the sender uses, and which one it votes for.
    Endorsement(Endorsement),
    /// The sender's position and the round-trip times that it measured to landmarks and members.
    Distances(Distances),
    /// Surveys that are new or changed: who lacks one asks the sender for it.
    Surveys(#[serde(deserialize_with = "at_most::<_, _, MAX_SURVEYS>")] Vec<SurveyHead>),
    /// Statements about opt-outs that are new, at most [`MAX_TOLD`].
    OptOuts(#[serde(deserialize_with = "at_most::<_, _, MAX_TOLD>")] Vec<SignedStatement>),
    /// Certificates and expulsions that are new, at most [`MAX_TOLD`].
    Admissions(#[serde(deserialize_with = "at_most::<_, _, MAX_TOLD>")] Vec<SignedAdmission>),
    /// What the sender tells of itself, if its operator chose so.
    Profile(ToldProfile),
    /// The sender is about to leave for good: it is no replica to choose, and what it keeps for others has to be elsewhere.
    Leaving,
}

/// What any program, member or not, may ask if the configuration allows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PublicRequest {
    /// The totals of the swarm.
    Results,
    /// Which members own servers.
    Owners,
    /// The servers that this member has on record, behind this host. Who is asked asks it.
    ServerRows {
        /// Their owner.
        of: AccessPoint,
        /// Those behind this one; from the first one, if none.
        after: Option<Host>,
    },
    /// The same with all runs of each server.
    HistoryRows {
        /// Their owner.
        of: AccessPoint,
        /// Those behind this one; from the first one, if none.
        after: Option<Host>,
    },
    /// Pages or links of the servers that this member has on record. Who is asked asks it.
    ExportRows {
        /// Their owner.
        of: AccessPoint,
        /// Which rows.
        query: ExportQuery,
    },
    /// How many different hosts, domains and addresses there are in the swarm. Who asks again gets what the members told meanwhile.
    Distinct,
    /// Did any member make these requests? Who is asked asks all of them, and where their logs do not say, for the records that they have.
    RequestsMade(RequestsQuery),
    /// The survey that people call so, which has a sample, and the members that probe it.
    ProbedSurvey(String),
    /// What a member's probes of a survey's sample came to. Who is asked asks it.
    SurveyProbes {
        /// The member.
        of: AccessPoint,
        /// The survey.
        survey: SurveyId,
    },
    /// From the owner of a web site: look for the proof of this opt-out, and have nothing asked there any more (true), or take it back.
    OptOut(OptOutKey, bool),
    /// The opt-outs that this member knows of, behind this one; from the first one, if none.
    OptOuts {
        /// Those behind this one.
        after: Option<OptOutKey>,
    },
}

/// The answer to a [`PublicRequest`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PublicResponse {
    /// To `Results`: the totals, with whose roll-ups they contain.
    Results(Box<SwarmResults>),
    /// The sender may not read here, or there is no answer; why, as a sentence.
    Refused(String),
    /// To `Owners`.
    Owners(#[serde(deserialize_with = "at_most::<_, _, MAX_OWNERS>")] Vec<ServerOwner>),
    /// To `ServerRows` and `HistoryRows`.
    ServerRows(ServerRows),
    /// To `ExportRows`.
    ExportedRows(ExportedRows),
    /// To `Distinct`.
    Distinct(Box<DistinctView>),
    /// To `RequestsMade`: what the logs say, what the records do, and what is missing to know more.
    RequestsMade(Box<RequestsView>, #[serde(deserialize_with = "at_most::<_, _, MAX_RECORDS_TOLD>")] Vec<RecordTold>, Box<RequestsMissing>),
    /// To `ProbedSurvey`.
    ProbedSurvey(Box<ProbedSurvey>),
    /// To `SurveyProbes`.
    SurveyProbes(Box<SurveyProbes>),
    /// To `OptOut`: how it stands, as JSON like that of the API.
    OptOut(String),
    /// To `OptOuts`.
    OptOuts {
        /// A list of them, as JSON like that of the API.
        views: String,
        /// The last of them, if there are more.
        next: Option<OptOutKey>,
    },
}
