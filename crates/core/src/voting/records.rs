//! The records of voting on disk: small, with keys of their own; the machine is restored from them.

use nearcrawl_model::{
    access_point::AccessPoint,
    subnet::Subnet,
    vote::{AcceptedRow, Ballot, DoubleVote, SignedList, SignedReplicas, VoterList},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::collections::{BTreeMap, BTreeSet};

/// One record to be stored, or to be deleted if it has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VotingRecord {
    /// Its key.
    pub key: Vec<u8>,
    /// Its value; none deletes the record.
    pub value: Option<Vec<u8>>,
}

/// What was promised and accepted in ballots about the list after `number`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BallotState {
    /// The number of the list in force then.
    pub(crate) number: u64,
    /// No earlier ballot is taken part in.
    pub(crate) promised: Option<Ballot>,
    /// The last list that was accepted.
    pub(crate) accepted: Option<(Ballot, VoterList)>,
}

/// A claim that was accepted here, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredRow {
    pub(crate) row: AcceptedRow,
    /// The owner's process that proposed it last; 0 if voters before told of it.
    pub(crate) process: u64,
    /// Whether the owner will never publish it: only its epoch is used up.
    pub(crate) withdrawn: bool,
    /// Who owned the subnet before, or may have.
    pub(crate) before: Vec<AccessPoint>,
}

/// Which processes ran with this state directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredProcesses {
    /// The last two, the last one first; 0 for none.
    pub(crate) last: [u64; 2],
    /// Whether no process with another directory can have the same key: false from when the directory was found to be a copy, or moved,
    /// until a quorum of voters gave the lease to a process that used it.
    pub(crate) sure: bool,
}

/// Which record it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Key {
    List(u64),
    Term,
    Row(Subnet),
    Ended(AccessPoint),
    Ballot,
    Installed,
    Lost(AccessPoint),
    Processes,
    DoubleVote(AccessPoint),
    Replicas(AccessPoint),
    Contested(AccessPoint),
    Installing,
}

/// All records, as they were read.
#[derive(Debug, Default)]
pub(crate) struct Restored {
    pub(crate) lists: Vec<SignedList>,
    pub(crate) term: u64,
    pub(crate) rows: BTreeMap<Subnet, StoredRow>,
    pub(crate) ended: BTreeMap<AccessPoint, u64>,
    pub(crate) ballot: BallotState,
    pub(crate) installed: u64,
    pub(crate) lost: BTreeSet<AccessPoint>,
    /// The last processes that ran with this state directory, the last one first.
    pub(crate) processes: Option<StoredProcesses>,
    /// Voters that accepted two claims at one epoch, with the proof.
    pub(crate) liars: BTreeMap<AccessPoint, DoubleVote>,
    /// The last sets of replicas of owners.
    pub(crate) replicas: Vec<SignedReplicas>,
    /// Voters that knew of another process with our key.
    pub(crate) contested: BTreeSet<AccessPoint>,
    /// The list that was brought and by which this access point has not voted yet.
    pub(crate) installing: Option<VoterList>,
}

/// The lists of voters among the records of a state directory, for commands that only look: number and voters, in order.
pub fn lists_in(records: &[(Vec<u8>, Vec<u8>)]) -> Vec<VoterList> {
    Restored::read(records).lists.into_iter().map(|signed| signed.list).collect()
}

impl Restored {
    /// Reads records; what cannot be read is left out.
    pub(crate) fn read(records: &[(Vec<u8>, Vec<u8>)]) -> Restored {
        let mut restored = Restored::default();
        for (key, value) in records {
            let Ok(key) = postcard::from_bytes::<Key>(key) else { continue };
            match key {
                Key::List(_) => restored.lists.extend(decode(value)),
                Key::Term => restored.term = decode(value).unwrap_or(0),
                Key::Row(subnet) => restored.rows.extend(decode(value).map(|row| (subnet, row))),
                Key::Ended(who) => restored.ended.extend(decode(value).map(|term| (who, term))),
                Key::Ballot => restored.ballot = decode(value).unwrap_or_default(),
                Key::Installed => restored.installed = decode(value).unwrap_or(0),
                Key::Lost(who) => drop(restored.lost.insert(who)),
                Key::DoubleVote(who) => restored.liars.extend(decode(value).map(|proof| (who, proof))),
                Key::Replicas(_) => restored.replicas.extend(decode(value)),
                Key::Contested(who) => drop(restored.contested.insert(who)),
                Key::Processes => restored.processes = decode(value),
                Key::Installing => restored.installing = decode(value),
            }
        }
        restored.lists.sort_by_key(|signed| signed.list.number);
        restored
    }
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::from_bytes(bytes).ok()
}

fn encode(value: &impl Serialize) -> Vec<u8> {
    #[expect(clippy::expect_used, reason = "postcard writes any of these into a growing vector")]
    postcard::to_stdvec(value).expect("it always encodes")
}

fn record(key: Key, value: &impl Serialize) -> VotingRecord {
    VotingRecord { key: encode(&key), value: Some(encode(value)) }
}

/// The record of a list of voters.
pub fn list(signed: &SignedList) -> VotingRecord {
    record(Key::List(signed.list.number), signed)
}

pub(crate) fn term(term: u64) -> VotingRecord {
    record(Key::Term, &term)
}

pub(crate) fn row(row: &StoredRow) -> VotingRecord {
    record(Key::Row(row.row.subnet), row)
}

pub(crate) fn no_row(subnet: Subnet) -> VotingRecord {
    VotingRecord { key: encode(&Key::Row(subnet)), value: None }
}

pub(crate) fn ended(who: AccessPoint, term: u64) -> VotingRecord {
    record(Key::Ended(who), &term)
}

pub(crate) fn no_ended(who: AccessPoint) -> VotingRecord {
    VotingRecord { key: encode(&Key::Ended(who)), value: None }
}

pub(crate) fn ballot(state: &BallotState) -> VotingRecord {
    record(Key::Ballot, state)
}

/// The record that what the voters before had decided is stored here.
pub fn installed(number: u64) -> VotingRecord {
    record(Key::Installed, &number)
}

/// The record that a list was brought by which this access point will vote when it has heard what was decided before. Whose disk was lost
/// since it voted by that list has none.
pub(crate) fn installing(list: &VoterList) -> VotingRecord {
    record(Key::Installing, list)
}

pub(crate) fn not_installing() -> VotingRecord {
    VotingRecord { key: encode(&Key::Installing), value: None }
}

pub(crate) fn double_vote(proof: &DoubleVote) -> VotingRecord {
    record(Key::DoubleVote(proof.voter()), proof)
}

pub(crate) fn replicas(set: &SignedReplicas) -> VotingRecord {
    record(Key::Replicas(set.replicas.owner), set)
}

pub(crate) fn no_replicas(owner: AccessPoint) -> VotingRecord {
    VotingRecord { key: encode(&Key::Replicas(owner)), value: None }
}

pub(crate) fn processes(stored: StoredProcesses) -> VotingRecord {
    record(Key::Processes, &stored)
}

pub(crate) fn contested(who: AccessPoint) -> VotingRecord {
    record(Key::Contested(who), &())
}

pub(crate) fn not_contested(who: AccessPoint) -> VotingRecord {
    VotingRecord { key: encode(&Key::Contested(who)), value: None }
}

pub(crate) fn lost(who: AccessPoint) -> VotingRecord {
    record(Key::Lost(who), &())
}

pub(crate) fn not_lost(who: AccessPoint) -> VotingRecord {
    VotingRecord { key: encode(&Key::Lost(who)), value: None }
}
