//! Votes on the ownership of subnets.
//!
//! The voters of a numbered list decide: more than half of them (of seven and more, more than two thirds) accept each claim, and an owner
//! fetches only while as many have renewed its lease.
//!
//! Both need the votes of the same list, so any two of these groups have a voter in common: one that accepted a claim renews the lease of
//! the owner before no more.

use crate::{
    access_point::AccessPoint,
    claim::Claim,
    ownership_map::at_most,
    replica::{MAX_NAMED, NamedReplica},
    subnet::Subnet,
};
use ed25519_dalek::{Signature, Signer, SigningKey, Verifier, VerifyingKey};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The most voters of a list.
pub const MAX_VOTERS: usize = 21;

/// No swarm is said to be older than this, in seconds: a hundred years.
const MAX_AGE: u64 = 100 * 366 * 86_400;

/// From this size on a list bears liars: two quorums share more voters than a third of the list.
const BEARS_LIARS_FROM: usize = 7;

/// Claims in one [`crate::message::Proposal`], and rows in one answer to a ballot.
pub const MAX_PROPOSED: usize = 128;

/// Unpublished claims that a voter reports to their owner at a time.
pub const MAX_REPORTED: usize = 64;

/// Former owners' sets of replicas that an owner hands on ([`ReplicaSet::inherited`]).
pub const MAX_INHERITED: usize = 8;

/// Owners before of whom a vote for a claim tells: the last one, and those of claims that were accepted and may never have been published.
pub const MAX_BEFORE: usize = 8;

/// Sets of replicas that are handed to the next list: so many take about half of a message.
pub const MAX_HANDED_REPLICAS: usize = 2_048;

/// The domain separators of the signatures, so that none is valid for anything else.
const VOTE_CONTEXT: &[u8] = b"nearcrawl vote 1\0";
const BALLOT_CONTEXT: &[u8] = b"nearcrawl ballot 1\0";
const INSTALLED_CONTEXT: &[u8] = b"nearcrawl installed 1\0";
const REPLICAS_CONTEXT: &[u8] = b"nearcrawl keepers 1\0";
const PART_CONTEXT: &[u8] = b"nearcrawl part 1\0";

/// The voters. Lists are numbered from 1; each is agreed on by the voters of the one before and by its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VoterList {
    /// One more than that of the list before.
    pub number: u64,
    /// Their keys, in ascending order, at most [`MAX_VOTERS`].
    pub voters: Vec<AccessPoint>,
    /// For how long the swarm had existed when the list was proposed, in seconds, as far as the proposer's boot clock told: the time during
    /// which no voter ran is not in it.
    pub age: u64,
}

impl VoterList {
    /// The first list of a swarm: its founder alone.
    pub fn founded_by(founder: AccessPoint) -> VoterList {
        VoterList { number: 1, voters: vec![founder], age: 0 }
    }

    /// How many voters decide.
    pub fn quorum(&self) -> usize {
        quorum_of(self.voters.len())
    }

    /// Whether this access point is one of them.
    pub fn contains(&self, who: &AccessPoint) -> bool {
        self.voters.binary_search(who).is_ok()
    }

    /// Whether keys are in order, each once, there are as many as there may be, and it can be counted on.
    pub fn is_well_formed(&self) -> bool {
        let in_order = self.voters.is_sorted_by(|one, next| one < next);
        (1..=MAX_VOTERS).contains(&self.voters.len()) && self.number > 0 && self.age <= MAX_AGE && in_order
    }

    /// Whether these voters, each once, may choose `next`; those in `lost` do not count. A quorum may, and so may more than half if all
    /// others are no voters any more by that list: so those that are left of seven go on when three of them are gone for good, and of two such
    /// choices, or one and a quorum, no two are made without a voter in common.
    pub fn may_choose(&self, voters: &mut dyn Iterator<Item = &AccessPoint>, next: &VoterList, lost: &BTreeSet<AccessPoint>) -> bool {
        let counts = |voter: &&AccessPoint| self.contains(voter) && !lost.contains(*voter);
        let chosen_by: BTreeSet<_> = voters.filter(counts).collect();
        let there = self.voters.iter().filter(counts).count().max(1);
        let remain = || self.voters.iter().filter(|voter| counts(voter) && next.contains(voter));
        chosen_by.len() >= quorum_of(there) || chosen_by.len() > there / 2 && remain().all(|voter| chosen_by.contains(voter))
    }
}

/// How many of so many voters decide: more than half, from seven voters on more than two thirds.
pub fn quorum_of(voters: usize) -> usize {
    if voters >= BEARS_LIARS_FROM { 2 * voters / 3 + 1 } else { voters / 2 + 1 }
}

/// How many of so many voters may lie, so that two quorums still share one that does not. Below seven voters none may.
pub fn liars_borne(voters: usize) -> usize {
    if voters >= BEARS_LIARS_FROM { voters - quorum_of(voters) } else { 0 }
}

/// A signature with the key that it is checked by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Endorsed {
    /// Who signed.
    pub voter: AccessPoint,
    /// Ed25519, 64 bytes.
    pub signature: Vec<u8>,
}

impl Endorsed {
    fn sign(context: &[u8], what: &impl Serialize, key: &SigningKey) -> Endorsed {
        let voter = AccessPoint(key.verifying_key().to_bytes());
        Endorsed { voter, signature: key.sign(&signed_bytes(context, what)).to_bytes().to_vec() }
    }

    fn holds(&self, context: &[u8], what: &impl Serialize) -> bool {
        let Ok(key) = VerifyingKey::from_bytes(&self.voter.0) else { return false };
        let Ok(signature) = Signature::from_slice(&self.signature) else { return false };
        key.verify(&signed_bytes(context, what), &signature).is_ok()
    }
}

fn signed_bytes(context: &[u8], what: &impl Serialize) -> Vec<u8> {
    #[expect(clippy::expect_used, reason = "postcard writes any of these into a growing vector")]
    postcard::to_extend(what, context.to_vec()).expect("it always encodes")
}

/// The number of a ballot: of two the greater one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ballot {
    /// Counts the ballots about one list.
    pub round: u64,
    /// Who proposes.
    pub proposer: AccessPoint,
}

/// A list with the proof that it was agreed on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SignedList {
    /// The list.
    pub list: VoterList,
    /// The ballot in which it was chosen.
    pub ballot: Ballot,
    /// Signatures of voters of the list before: they accepted it in this ballot.
    pub accepted: Vec<Endorsed>,
    /// Signatures of its own voters: they have what those of the list before had accepted.
    pub installed: Vec<Endorsed>,
}

/// Why a list is not adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VoterListError {
    /// Too many voters, none, not in order, or the number 0.
    #[error("the voter list is malformed")]
    Malformed,
    /// It is not the one after the list that is known.
    #[error("the voter list does not follow the one that is known")]
    NotNext,
    /// Too few valid signatures of the voters of the list before.
    #[error("the voter list is not signed by enough voters of the list before")]
    NotAccepted,
    /// Too few valid signatures of its own voters.
    #[error("the voter list is not signed by enough of its own voters")]
    NotInstalled,
}

impl SignedList {
    /// The first list of a swarm, signed by its founder.
    pub fn founded_by(key: &SigningKey) -> SignedList {
        let founder = AccessPoint(key.verifying_key().to_bytes());
        let list = VoterList::founded_by(founder);
        let installed = vec![sign_installed(&list, key)];
        SignedList { list, ballot: Ballot { round: 0, proposer: founder }, accepted: Vec::new(), installed }
    }

    /// Checks a list that is to follow `before`, of whose voters those in `lost` are not counted; the first one follows none.
    pub fn check(&self, before: Option<&VoterList>, lost: &BTreeSet<AccessPoint>) -> Result<(), VoterListError> {
        self.check_accepted(before, lost)?;
        self.check_installed()
    }

    /// Whether enough of its own voters say that they have what was decided before. No more signatures are looked at than that takes, one
    /// of each voter.
    pub fn check_installed(&self) -> Result<(), VoterListError> {
        let valid = first_of_each(&self.installed, &self.list).filter(|by| by.holds(INSTALLED_CONTEXT, &self.list));
        if valid.take(self.list.quorum()).count() >= self.list.quorum() { Ok(()) } else { Err(VoterListError::NotInstalled) }
    }

    /// The voters of the list before that accepted it, as their valid signatures tell: one of each is looked at.
    pub fn accepted_by(&self, before: &VoterList) -> BTreeSet<AccessPoint> {
        first_of_each(&self.accepted, before).filter(|by| is_accepted(by, &self.list, self.ballot)).map(|by| by.voter).collect()
    }

    /// Whether it can be the list after that one, signatures aside.
    pub fn check_form(&self, before: Option<&VoterList>) -> Result<(), VoterListError> {
        if !self.list.is_well_formed() || self.accepted.len() > MAX_VOTERS || self.installed.len() > MAX_VOTERS {
            return Err(VoterListError::Malformed);
        }
        if self.list.number != before.map_or(1, |before| before.number + 1) || (before.is_none() && self.list.voters.len() != 1) {
            return Err(VoterListError::NotNext);
        }
        Ok(())
    }

    /// The same without the signatures of its own voters: whether it was chosen.
    pub fn check_accepted(&self, before: Option<&VoterList>, lost: &BTreeSet<AccessPoint>) -> Result<(), VoterListError> {
        self.check_form(before)?;
        match before {
            Some(before) if !self.is_chosen_by(&self.accepted_by(before), before, lost) => Err(VoterListError::NotAccepted),
            _ => Ok(()),
        }
    }

    /// Whether these voters of the list before, which accepted it, may choose it.
    pub fn is_chosen_by(&self, accepted: &BTreeSet<AccessPoint>, before: &VoterList, lost: &BTreeSet<AccessPoint>) -> bool {
        // If all are lost, its own voters' word has to do.
        let all_lost = before.voters.iter().all(|voter| lost.contains(voter));
        all_lost || before.may_choose(&mut accepted.iter(), &self.list, lost)
    }
}

/// Of the signatures of each voter of a list the first one. Whoever made a list up has as many checked as there are voters, and no more.
fn first_of_each<'a>(signatures: &'a [Endorsed], list: &'a VoterList) -> impl Iterator<Item = &'a Endorsed> {
    let mut seen = BTreeSet::new();
    signatures.iter().take(MAX_VOTERS).filter(move |by| list.contains(&by.voter) && seen.insert(by.voter))
}

/// A voter of the list before accepts this one in this ballot.
pub fn sign_accepted(list: &VoterList, ballot: Ballot, key: &SigningKey) -> Endorsed {
    Endorsed::sign(BALLOT_CONTEXT, &(list, ballot), key)
}

/// Whether that signature is valid.
pub fn is_accepted(by: &Endorsed, list: &VoterList, ballot: Ballot) -> bool {
    by.holds(BALLOT_CONTEXT, &(list, ballot))
}

/// A voter of this list has what the one before had accepted.
pub fn sign_installed(list: &VoterList, key: &SigningKey) -> Endorsed {
    Endorsed::sign(INSTALLED_CONTEXT, list, key)
}

/// Whether that signature is valid.
pub fn is_installed(by: &Endorsed, list: &VoterList) -> bool {
    by.holds(INSTALLED_CONTEXT, list)
}

/// What a voter accepts: that this access point owns the subnet from this epoch on, as long as its lease is renewed in this term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AcceptedOwner {
    /// The number of the voters' list.
    pub list: u64,
    /// Which subnet.
    pub subnet: Subnet,
    /// The claim's epoch.
    pub epoch: u64,
    /// Who owns it.
    pub owner: AccessPoint,
    /// The term of the owner's lease.
    pub term: u64,
}

impl AcceptedOwner {
    /// A voter accepts it.
    pub fn vote(&self, key: &SigningKey) -> Endorsed {
        Endorsed::sign(VOTE_CONTEXT, self, key)
    }

    /// Whether that vote is valid.
    pub fn is_voted_by(&self, by: &Endorsed) -> bool {
        by.holds(VOTE_CONTEXT, self)
    }
}

/// The votes for a claim: they travel with it, and with its release.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Votes {
    /// The number of the list whose voters accepted it.
    pub list: u64,
    /// The term of the owner's lease at that time.
    pub term: u64,
    /// Their signatures, at least a quorum of the list, at most [`MAX_VOTERS`].
    pub voters: Vec<Endorsed>,
}

impl Votes {
    /// Whether these are enough valid votes of that list's voters. What is beyond enough is not looked at: signatures cost most.
    pub fn prove(&self, list: &VoterList, subnet: Subnet, epoch: u64, owner: AccessPoint) -> bool {
        if list.number != self.list || self.voters.len() > MAX_VOTERS {
            return false;
        }
        let what = AcceptedOwner { list: self.list, subnet, epoch, owner, term: self.term };
        let mut distinct = BTreeSet::new();
        let valid = self.voters.iter().filter(|by| list.contains(&by.voter) && what.is_voted_by(by));
        valid.map(|by| by.voter).any(|voter| distinct.insert(voter) && distinct.len() >= list.quorum())
    }
}

/// Two votes of one voter for two owners of one subnet at one epoch: it lied, for a voter that withdraws nothing of its own never accepts
/// two claims at an epoch. Anybody can check it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoubleVote {
    /// What the voter accepted.
    pub accepted: [AcceptedOwner; 2],
    /// Its votes for the one and for the other.
    pub votes: [Endorsed; 2],
}

impl DoubleVote {
    /// Who voted twice.
    pub fn voter(&self) -> AccessPoint {
        self.votes[0].voter
    }

    /// The number of the list by which it voted.
    pub fn list(&self) -> u64 {
        self.accepted[0].list
    }

    /// Whether the votes contradict each other, and are that voter's.
    pub fn holds(&self) -> bool {
        let ([one, other], [first, second]) = (&self.accepted, &self.votes);
        let contradict = (one.list, one.subnet, one.epoch) == (other.list, other.subnet, other.epoch) && one.owner != other.owner;
        contradict && first.voter == second.voter && one.is_voted_by(first) && other.is_voted_by(second)
    }

    /// What the votes for two claims of different owners to one subnet at one epoch prove about those who gave them.
    pub fn among(subnet: Subnet, epoch: u64, one: (AccessPoint, &Votes), other: (AccessPoint, &Votes)) -> Vec<DoubleVote> {
        let what = |(owner, votes): (AccessPoint, &Votes)| AcceptedOwner { list: votes.list, subnet, epoch, owner, term: votes.term };
        let accepted = [what(one), what(other)];
        let first = one.1.voters.iter().take(MAX_VOTERS);
        let twice = first.filter_map(|by| Some((by, other.1.voters.iter().take(MAX_VOTERS).find(|second| second.voter == by.voter)?)));
        let proofs = twice.map(|(first, second)| DoubleVote { accepted, votes: [first.clone(), second.clone()] });
        proofs.filter(DoubleVote::holds).collect()
    }
}

/// The owner of a subnet lets another member own a part of it. Without that no voter accepts a claim within another's subnet: whoever holds a
/// lease could take its addresses one by one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwardedPart {
    /// The part.
    pub part: Subnet,
    /// Who may claim it.
    pub to: AccessPoint,
    /// The larger subnet, and the epoch of the claim to it.
    pub within: (Subnet, u64),
}

/// The same, signed by the owner of the larger subnet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedPart {
    /// What is signed.
    pub awarded: AwardedPart,
    /// Who signed it.
    pub by: Endorsed,
}

impl SignedPart {
    /// The owner of the larger subnet signs.
    pub fn sign(awarded: AwardedPart, key: &SigningKey) -> SignedPart {
        let by = Endorsed::sign(PART_CONTEXT, &awarded, key);
        SignedPart { awarded, by }
    }

    /// Whether the owner of what lies `around` lets the claim's owner have its subnet.
    pub fn allows(&self, claim: &Claim, around: &Claim) -> bool {
        let AwardedPart { part, to, within } = self.awarded;
        let fits = (part, to) == (claim.subnet, claim.owner) && within == (around.subnet, around.epoch) && self.by.voter == around.owner;
        fits && self.by.holds(PART_CONTEXT, &self.awarded)
    }
}

/// Of two sets of replicas of one owner the greater one is the later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SetNumber {
    /// The term of the owner's lease; 0 if it has named nobody.
    pub term: u64,
    /// Grows within a term.
    pub version: u64,
}

/// Members each of which has all that a former owner recorded of what was taken over from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InheritedReplicas {
    /// They; at most [`MAX_NAMED`].
    #[serde(deserialize_with = "at_most::<_, _, MAX_NAMED>")]
    pub members: Vec<NamedReplica>,
    /// For how long a successor waits for one of them, in seconds.
    pub patience_s: u32,
}

/// Who has what an owner recorded, as the owner says and its voters keep it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaSet {
    /// The owner.
    pub owner: AccessPoint,
    /// Which of its sets this is.
    pub number: SetNumber,
    /// Each of these has all that the owner recorded, itself included; empty if it has recorded nothing yet. At most [`MAX_NAMED`].
    #[serde(deserialize_with = "at_most::<_, _, MAX_NAMED>")]
    pub members: Vec<NamedReplica>,
    /// Of what the owner took over from others and has not copied to all of these yet: one of each set has it. At most [`MAX_INHERITED`].
    #[serde(deserialize_with = "at_most::<_, _, MAX_INHERITED>")]
    pub inherited: Vec<InheritedReplicas>,
}

/// The same, signed by the owner: a voter that lies can only withhold it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedReplicas {
    /// What is signed.
    pub replicas: ReplicaSet,
    /// Ed25519, 64 bytes.
    pub signature: Vec<u8>,
}

impl SignedReplicas {
    /// The owner signs.
    pub fn sign(replicas: ReplicaSet, key: &SigningKey) -> SignedReplicas {
        let signature = Endorsed::sign(REPLICAS_CONTEXT, &replicas, key).signature;
        SignedReplicas { replicas, signature }
    }

    /// Whether the owner signed it.
    pub fn holds(&self) -> bool {
        Endorsed { voter: self.replicas.owner, signature: self.signature.clone() }.holds(REPLICAS_CONTEXT, &self.replicas)
    }

    /// Which of its owner's sets this is.
    pub fn number(&self) -> SetNumber {
        self.replicas.number
    }
}

/// An owner asks a voter to renew its lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewal {
    /// The number of the list by which the owner asks.
    pub list: u64,
    /// The term: one more whenever the lease before has run out and was given to others.
    pub term: u64,
    /// How often the owner's process has started with this state directory.
    pub incarnation: u64,
    /// Which process it is: no other with this key has the same number, be it one with a copy of the state directory.
    pub process: u64,
    /// The last two processes before it that surely have ended: they used the same directory on the same machine, whose lock this process
    /// holds. 0 if there is none.
    pub ended: [u64; 2],
    /// Whether any process before with this key surely has ended, as far as this directory tells.
    pub sole: bool,
    /// The number of the last list by which the owner can vote itself: it has what the voters before had decided. 0 if there is none.
    pub installed: u64,
    /// Whether the owner leaves for good: it is not to be a voter any longer.
    pub leaving: bool,
    /// The last of its sets of replicas that the owner knows of.
    pub known: SetNumber,
    /// That set, if the voter has not answered yet that it has it.
    pub replicas: Option<Box<SignedReplicas>>,
}

/// What a voter answers to a [`Renewal`] that it grants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Claims of this owner that were accepted here and never heard of again: subnet, epoch. At most [`MAX_REPORTED`].
    #[serde(deserialize_with = "at_most::<_, _, MAX_REPORTED>")]
    pub unpublished: Vec<(Subnet, u64)>,
    /// The last of the owner's sets of replicas that this voter has stored.
    pub stored: SetNumber,
    /// That set, if the owner does not know it: its disk was lost, or it has just started.
    pub replicas: Option<Box<SignedReplicas>>,
}

/// A voter's answer to a [`Renewal`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Renewed {
    /// The lease lasts from when the renewal was sent.
    Granted(Box<Grant>),
    /// Terms up to this one have run out: others may own what was owned in them.
    Ended(u64),
    /// A process with the same key holds the lease.
    Held,
    /// A later process with the same key has started, for the so manieth time.
    Superseded(u64),
    /// This voter changes to another list at the moment.
    Changing,
    /// This access point goes by the list with this number.
    OtherList(u64),
}

/// What a voter says to one claim of a [`crate::message::Proposal`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Vote {
    /// Accepted, durably. Which of the sets of replicas in the same answer are of owners before: their places.
    Accepted(Endorsed, #[serde(deserialize_with = "at_most::<_, _, MAX_BEFORE>")] Vec<u16>),
    /// Another owner holds it, or a claim of it is being decided.
    Owned,
    /// This epoch or a later one was accepted already.
    Epoch(u64),
    /// The claim is not a valid one, or the sender may not make it.
    Invalid,
}

/// A voter's answer to a [`crate::message::Proposal`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Voted {
    /// One vote a claim, at most [`MAX_PROPOSED`], in the order of the proposal; and the last sets of replicas of the owners before, as far
    /// as this voter knows them, at most [`MAX_PROPOSED`].
    Votes(
        #[serde(deserialize_with = "at_most::<_, _, MAX_PROPOSED>")] Vec<Vote>,
        #[serde(deserialize_with = "at_most::<_, _, MAX_PROPOSED>")] Vec<SignedReplicas>,
    ),
    /// This voter changes to another list at the moment, or has too much to do.
    Later,
    /// The sender holds no lease here.
    NoLease,
    /// This access point goes by the list with this number.
    OtherList(u64),
}

/// A claim that a voter has accepted and not heard of again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedRow {
    /// Which subnet.
    pub subnet: Subnet,
    /// The claim's epoch.
    pub epoch: u64,
    /// Whose claim.
    pub owner: AccessPoint,
    /// The term of its lease.
    pub term: u64,
}

/// What the voters of a list had decided when the next one was chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedOver {
    /// Claims accepted of late.
    pub rows: Vec<AcceptedRow>,
    /// The last ended terms of owners.
    pub ended: Vec<(AccessPoint, u64)>,
    /// The last sets of replicas of owners, at most [`MAX_HANDED_REPLICAS`].
    #[serde(deserialize_with = "at_most::<_, _, MAX_HANDED_REPLICAS>")]
    pub replicas: Vec<SignedReplicas>,
}

/// A step of the choice of the list after `number`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BallotRequest {
    /// Promise to take part in no earlier ballot, if you would accept this list, or have accepted another.
    Prepare {
        /// The number of the present list.
        number: u64,
        /// The ballot.
        ballot: Ballot,
        /// The list that the proposer wants; another follows if voters say that they accepted it.
        wanted: VoterList,
    },
    /// Accept this list, and decide nothing more by the present one.
    Accept {
        /// The ballot.
        ballot: Ballot,
        /// The next list.
        list: VoterList,
    },
    /// To a voter of the list that was chosen: store what the voters before had decided.
    Install {
        /// The list, with the signatures of those who accepted it.
        list: SignedList,
        /// What they had decided.
        before: HandedOver,
    },
    /// To every member: this list is in force.
    Adopt(SignedList),
    /// From a voter of the list with this number to one of the list before, or to one that votes by it: what was decided before it?
    Decided(u64),
}

/// The answer to a [`BallotRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BallotAnswer {
    /// To `Prepare`: what was accepted before, if anything.
    Promised(Option<(Ballot, VoterList)>),
    /// To `Prepare` and `Accept`: this later ballot was promised.
    Outvoted(Ballot),
    /// To `Accept`: accepted.
    Accepted(Endorsed, HandedOver),
    /// To `Install`: stored.
    Installed(Endorsed),
    /// This access point goes by the list with this number.
    OtherList(u64),
    /// To `Adopt`; or the request makes no sense here.
    Noted,
    /// To `Decided`: this was decided before the list with this number, as far as this voter knows.
    Decided(u64, HandedOver),
}
