//! Proposals: our own claims, until enough voters have accepted them.
//!
//! A claim that is not accepted in time is withdrawn: it is never published, and its epoch is never used again by us. The next attempt
//! comes after a rest that differs from member to member, so that two who want the same do not refuse each other for ever.

use crate::voting::voter::MAX_SKIPPED;
use ed25519_dalek::SigningKey;
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, SignedClaim},
    subnet::Subnet,
    time::{Millis, Moment},
    vote::{AcceptedOwner, Endorsed, MAX_PROPOSED, SignedPart, SignedReplicas, Vote, VoterList, Votes},
};
use siphasher::sip::SipHasher13;
use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{Hash, Hasher},
};

/// After which time a claim that too few voters have accepted is withdrawn.
const PROPOSAL_TIMEOUT: Millis = 15_000;

/// When a voter that has not answered is asked again.
const ASK_AGAIN: Millis = 3_000;

/// Claims that are voted on at a time; the others wait.
pub(crate) const MAX_OPEN: usize = 8_192;

/// Subnets of which it is remembered that some of their epochs are used up.
const MAX_IN_VAIN: usize = 100_000;

/// As long as there are fewer, voters are believed that say so of claims that this process did not make.
const MAX_TOLD_IN_VAIN: usize = MAX_IN_VAIN / 2;

/// So many epochs are left out at the word of one voter, which may lie: a quarter of what voters let a claim skip.
const MAX_LEAP: u64 = MAX_SKIPPED / 4;

/// The shortest rest after a withdrawal, and by how much it is longer at most. The latter doubles with each attempt in vain, up to eight
/// times that: many members may want the same subnet, and voters may be slow.
const REST: Millis = 1_000;
const REST_SPREAD: u64 = 4_000;

/// The rest of who had most votes, before it is doubled: a rival's withdrawal comes to the voters meanwhile.
const REST_OF_MOST: Millis = 500;

const MAX_DOUBLED: u32 = 3;

/// After so long without an attempt the earlier ones are not counted any more.
const FORGIVEN: Millis = 120_000;

/// What is remembered of attempts in vain.
#[derive(Clone, Copy, Debug, Default)]
struct InVain {
    /// The lowest epoch that the next attempt may use.
    least: u64,
    attempts: u32,
    last: Moment,
}

/// A claim that is being voted on.
#[derive(Debug)]
struct Open {
    claim: Claim,
    proof: SignedClaim,
    /// The epoch at which it was wanted: ours may be later, if voters know later ones.
    wanted: u64,
    since: Moment,
    /// When each voter was asked last.
    asked: BTreeMap<AccessPoint, Moment>,
    votes: BTreeMap<AccessPoint, Endorsed>,
    refused: BTreeSet<AccessPoint>,
    /// Up to which epoch voters say that all are used up.
    told: BTreeMap<AccessPoint, u64>,
    /// The last sets of replicas of the owners before, of all that voters told.
    before: BTreeMap<AccessPoint, SignedReplicas>,
    /// What the owner of a larger subnet around it says.
    part: Option<Box<SignedPart>>,
}

/// A claim of ours with its votes, and the last sets of replicas of the owners before.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) proof: SignedClaim,
    pub(crate) before: Vec<SignedReplicas>,
}

impl Open {
    /// Up to which epoch all are used up: as more voters say than may lie, or as one says, if it is so near that a later claim would still
    /// be accepted by those that know of no other.
    fn used_up_to(&self, list: &VoterList) -> u64 {
        let mut told: Vec<_> = self.told.iter().filter(|(voter, _)| list.contains(voter)).map(|(_, epoch)| *epoch).collect();
        told.sort_unstable_by(|one, other| other.cmp(one));
        let agreed = told.get(may_lie(list.voters.len())).copied().unwrap_or(0);
        let near = told.into_iter().find(|epoch| *epoch <= self.wanted.saturating_add(MAX_LEAP)).unwrap_or(0);
        agreed.max(near).max(self.claim.epoch)
    }

    /// Whether as many voters may yet accept it as must. As long as none has refused it, each may.
    fn may_be_accepted(&self, list: &VoterList, quorum: usize, live: &[AccessPoint]) -> bool {
        let may = |voter: &&AccessPoint| !self.refused.contains(voter) && (self.refused.is_empty() || live.contains(voter));
        let waited_for = list.voters.iter().filter(|voter| !self.votes.contains_key(voter)).filter(may).count();
        self.votes.len() + waited_for >= quorum
    }

    /// Whether rivals had fewer of the votes that were given. Who does not reach enough voters has no rival, and must leave room for others that do.
    fn has_most_of_split_votes(&self, now: Moment) -> bool {
        !self.refused.is_empty() && self.votes.len() > self.refused.len() && now.since(self.since) < PROPOSAL_TIMEOUT
    }

    /// Of two sets of an owner the later one counts: any quorum has a voter that knows the one in force, or a later one.
    fn takes_over_from(&mut self, set: &SignedReplicas) {
        let known = self.before.entry(set.replicas.owner).or_insert_with(|| set.clone());
        if known.number() < set.number() {
            known.clone_from(set);
        }
    }
}

/// The claims of ours that are being voted on.
#[derive(Debug, Default)]
pub(crate) struct Proposals {
    open: BTreeMap<Subnet, Open>,
    /// Accepted claims that may not be published yet, with their epochs.
    accepted: BTreeMap<Subnet, u64>,
    /// Claims that are not tried for a while, by subnet and the epoch at which they were wanted: until when.
    resting: BTreeMap<(Subnet, u64), Moment>,
    /// Voters that are working on a proposal of ours, and since when: each gets one at a time.
    working: BTreeMap<AccessPoint, Moment>,
    in_vain: BTreeMap<Subnet, InVain>,
    withdrawals: u64,
}

/// How many of so many voters may lie. The only one is believed.
pub(super) fn may_lie(voters: usize) -> usize {
    if voters < 2 { 0 } else { ((voters - 1) / 3).max(1) }
}

/// What has been decided.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    /// Claims with their votes.
    pub(crate) accepted: Vec<Accepted>,
    /// Claims that are to be told as withdrawn to these voters.
    pub(crate) withdrawn: BTreeMap<AccessPoint, Vec<(Subnet, u64)>>,
    /// Claims that may be made anew, by subnet and the epoch at which they were wanted.
    pub(crate) given_up: Vec<(Subnet, u64)>,
}

impl Proposals {
    /// These claims are to be voted on; those to subnets with a claim under way are given up after a rest.
    pub(crate) fn propose(&mut self, now: Moment, claims: Vec<SignedClaim>, part: Option<Box<SignedPart>>, key: &SigningKey) {
        for proof in claims {
            let Ok(claim) = proof.read() else { continue };
            let rests = now.after(REST);
            // Of one more claim's epochs it could not be remembered which are used up.
            let unknown = self.in_vain.len() + self.open.len() >= MAX_IN_VAIN && !self.in_vain.contains_key(&claim.subnet);
            if self.open.contains_key(&claim.subnet) || self.open.len() >= MAX_OPEN || unknown {
                self.resting.insert((claim.subnet, claim.epoch), rests);
                continue;
            }
            let (wanted, least) = (claim.epoch, self.in_vain.get(&claim.subnet).map_or(0, |in_vain| in_vain.least));
            let (claim, proof) = if least > claim.epoch {
                let later = Claim { epoch: least, ..claim };
                let proof = SignedClaim::sign(&later, key);
                (later, proof)
            } else {
                (claim, proof)
            };
            let (asked, votes, refused, told, before) = Default::default();
            let part = part.clone().filter(|part| part.awarded.part == claim.subnet);
            self.open.insert(claim.subnet, Open { claim, proof, wanted, since: now, asked, votes, refused, told, before, part });
        }
    }

    /// Whether a claim to this subnet is being voted on, or was accepted and may be on its way to the disk.
    pub(crate) fn is_open(&self, subnet: &Subnet, epoch: u64) -> bool {
        self.open.get(subnet).is_some_and(|open| open.claim.epoch == epoch) || self.accepted.get(subnet) == Some(&epoch)
    }

    /// A voter says that a claim of ours at this epoch was accepted and is not known to be published. If that is likely, no claim of ours
    /// has this epoch any more: it is known here that it is used up, or it may be of a process before this one. `published` is the last
    /// epoch that is known.
    pub(crate) fn uses_up(&mut self, subnet: Subnet, epoch: u64, published: u64) -> bool {
        let known = self.in_vain.get(&subnet);
        if known.is_some_and(|in_vain| epoch < in_vain.least) {
            return true;
        }
        if epoch > published.saturating_add(MAX_LEAP) || known.is_none() && self.in_vain.len() >= MAX_TOLD_IN_VAIN {
            return false;
        }
        self.used_up(subnet, epoch);
        true
    }

    /// No claim of ours has this epoch any more.
    fn used_up(&mut self, subnet: Subnet, epoch: u64) {
        let in_vain = self.in_vain.entry(subnet).or_default();
        in_vain.least = in_vain.least.max(epoch.saturating_add(1));
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Forgets epochs that are used up and accepted claims that are published: no claim of ours can be wanted at these any more. `published` is
    /// the last epoch that is known of a subnet.
    pub(crate) fn tidy(&mut self, now: Moment, published: impl Fn(&Subnet) -> u64) {
        self.in_vain.retain(|subnet, in_vain| published(subnet) + 1 < in_vain.least || now.since(in_vain.last) < FORGIVEN);
        self.accepted.retain(|subnet, epoch| published(subnet) < *epoch);
    }

    /// What each voter is to be asked now, at most [`MAX_PROPOSED`] claims each.
    pub(crate) fn due(&mut self, now: Moment, list: &VoterList) -> BTreeMap<AccessPoint, Vec<SignedClaim>> {
        let mut due: BTreeMap<AccessPoint, Vec<SignedClaim>> = BTreeMap::new();
        self.working.retain(|_, since| now.since(*since) < ASK_AGAIN);
        if self.open.is_empty() {
            return due;
        }
        let mut free: Vec<_> = list.voters.iter().filter(|voter| !self.working.contains_key(voter)).collect();
        for open in self.open.values_mut() {
            free.retain(|voter| due.get(voter).is_none_or(|claims| claims.len() < MAX_PROPOSED));
            if free.is_empty() {
                break;
            }
            for voter in &free {
                let answered = open.votes.contains_key(*voter) || open.refused.contains(*voter);
                if answered || open.asked.get(*voter).is_some_and(|asked| now.since(*asked) < ASK_AGAIN) {
                    continue;
                }
                open.asked.insert(**voter, now);
                due.entry(**voter).or_default().push(open.proof.clone());
            }
        }
        self.working.extend(due.keys().map(|voter| (*voter, now)));
        due
    }

    /// What the owners of larger subnets say of these.
    pub(crate) fn parts_of(&self, claims: &[(Subnet, u64)]) -> Vec<SignedPart> {
        claims.iter().filter_map(|(subnet, _)| self.open.get(subnet)?.part.as_deref().cloned()).collect()
    }

    /// A voter has answered a proposal: it may be sent the next.
    pub(crate) fn answered(&mut self, from: AccessPoint) {
        self.working.remove(&from);
    }

    /// A voter's votes for the claims that it was asked for, with the sets of replicas that it told.
    pub(crate) fn voted(
        &mut self,
        from: AccessPoint,
        asked: &[(Subnet, u64)],
        (votes, told): (Vec<Vote>, Vec<SignedReplicas>),
        list: u64,
        term: u64,
    ) {
        let told: Vec<_> = told.into_iter().map(|set| set.holds().then_some(set)).collect();
        for ((subnet, epoch), vote) in asked.iter().zip(votes) {
            let Some(open) = self.open.get_mut(subnet).filter(|open| open.claim.epoch == *epoch) else { continue };
            match vote {
                Vote::Accepted(by, before) => {
                    let what = AcceptedOwner { list, subnet: *subnet, epoch: *epoch, owner: open.claim.owner, term };
                    if by.voter == from && what.is_voted_by(&by) {
                        let before = before.into_iter().filter_map(|place| told.get(usize::from(place))?.as_ref());
                        before.for_each(|set| open.takes_over_from(set));
                        open.votes.insert(from, by);
                    } else {
                        open.refused.insert(from);
                    }
                }
                Vote::Epoch(later) => {
                    open.refused.insert(from);
                    open.told.insert(from, later);
                }
                Vote::Owned | Vote::Invalid => drop(open.refused.insert(from)),
            }
        }
    }

    /// Votes of another list, or for another term, do not count any more: all are asked again.
    pub(crate) fn begin_anew(&mut self) {
        for open in self.open.values_mut() {
            open.votes.clear();
            open.refused.clear();
            open.told.clear();
            open.asked.clear();
        }
        self.working.clear();
    }

    /// Claims that enough voters have accepted, and those that cannot be accepted any more. Without a lease nothing is accepted. Once a voter
    /// has refused a claim, those that do not `live` are not waited for: it would keep all others from the subnet and come to nothing.
    pub(crate) fn decide(
        &mut self,
        now: Moment,
        list: &VoterList,
        (quorum, term): (usize, u64),
        me: AccessPoint,
        live: &[AccessPoint],
    ) -> Decided {
        let mut decided = Decided::default();
        let done = |open: &Open| open.votes.len() >= quorum;
        let failed = |open: &Open| !open.may_be_accepted(list, quorum, live) || now.since(open.since) >= PROPOSAL_TIMEOUT;
        let ended: Vec<_> = self.open.iter().filter(|(_, open)| done(open) || failed(open)).map(|(subnet, _)| *subnet).collect();
        for subnet in ended {
            let Some(open) = self.open.remove(&subnet) else { continue };
            if done(&open) {
                let votes = Votes { list: list.number, term, voters: open.votes.into_values().take(quorum).collect() };
                self.accepted.insert(subnet, open.claim.epoch);
                let proof = SignedClaim { votes: Some(Box::new(votes)), ..open.proof };
                decided.accepted.push(Accepted { proof, before: open.before.into_values().collect() });
                self.in_vain.remove(&subnet);
                continue;
            }
            for voter in open.asked.keys() {
                decided.withdrawn.entry(*voter).or_default().push((subnet, open.claim.epoch));
            }
            self.used_up(subnet, open.used_up_to(list));
            let until = now.after(self.rest(now, subnet, me, open.has_most_of_split_votes(now)));
            self.resting.insert((subnet, open.wanted), until);
        }
        decided.given_up.extend(self.resting.iter().filter(|(_, until)| now >= **until).map(|(claim, _)| *claim));
        self.resting.retain(|_, until| now < *until);
        decided
    }

    /// How long a subnet is not claimed after one more attempt in vain. Who had `most` of the votes that were given comes before its rivals, of
    /// which none had: so one of those that split the votes gets them all the next time.
    fn rest(&mut self, now: Moment, subnet: Subnet, me: AccessPoint, most: bool) -> Millis {
        let in_vain = self.in_vain.entry(subnet).or_default();
        let before = if now.since(in_vain.last) < FORGIVEN { in_vain.attempts } else { 0 };
        (in_vain.attempts, in_vain.last) = (before.saturating_add(1), now);
        self.withdrawals += 1;
        if most {
            return REST_OF_MOST << before.min(MAX_DOUBLED);
        }
        let mut hasher = SipHasher13::new();
        (me.0, self.withdrawals, subnet).hash(&mut hasher);
        REST + hasher.finish() % (REST_SPREAD << before.min(MAX_DOUBLED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::claim::ClaimReason;

    const ME: AccessPoint = AccessPoint([1; 32]);

    /// When a claim that no voter accepts is tried, if it is wanted until then; nobody wants it from `break_from` to `break_until`.
    fn attempts(until: u64, pause: std::ops::Range<u64>) -> Vec<u64> {
        let key = SigningKey::from_bytes(&[7; 32]);
        let subnet: Subnet = "9.0.0.0/24".parse().unwrap();
        let (owner, reason) = (AccessPoint(key.verifying_key().to_bytes()), ClaimReason::OwnerDead);
        let claim =
            Claim { subnet, epoch: 3, owner, rtt_us: None, runner_up: None, probes: 0, reason, released: false, answers: Vec::new() };
        let list = VoterList { number: 1, voters: vec![ME], age: 0 };
        let (mut proposals, mut tried, mut epoch) = (Proposals::default(), Vec::new(), None);
        for at in (0..until).step_by(100) {
            let now = Moment(at);
            if proposals.len() == 0 && proposals.resting.is_empty() && !pause.contains(&at) {
                proposals.propose(now, vec![SignedClaim::sign(&claim, &key)], None, &key);
            }
            for (voter, claims) in proposals.due(now, &list) {
                let asked = claims[0].read().unwrap();
                assert!(epoch.replace(asked.epoch) < Some(asked.epoch), "an epoch is used once");
                tried.push(at);
                proposals.answered(voter);
                proposals.voted(voter, &[(subnet, asked.epoch)], (vec![Vote::Owned], Vec::new()), 1, 1);
            }
            proposals.decide(now, &list, (1, 1), ME, &[ME]);
        }
        tried
    }

    #[test]
    fn a_claim_that_is_refused_again_and_again_is_tried_ever_more_rarely_and_never_given_up() {
        let tried = attempts(3_600_000, 0..0);
        let rests: Vec<_> = tried.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(rests[0] <= 5_100 && rests[1] <= 9_100 && rests[2] <= 17_100, "{rests:?}");
        assert!(rests.iter().all(|rest| *rest <= 33_100), "{rests:?}");
        assert!((150..300).contains(&tried.len()), "{} attempts in an hour", tried.len());
    }

    /// After how long a claim is tried again that so many of seven voters accepted and so many refused, if the first so many are up.
    fn tries_again_after(accepted: u8, refused: u8, live: u8) -> Option<Millis> {
        let key = |number| SigningKey::from_bytes(&[number; 32]);
        let voter = |number| AccessPoint(key(number).verifying_key().to_bytes());
        let list = VoterList { number: 1, voters: (1..=7).map(voter).collect(), age: 0 };
        let live: Vec<_> = (1..=live).map(voter).collect();
        let (subnet, owner): (Subnet, _) = ("9.0.0.0/24".parse().unwrap(), voter(9));
        let reason = ClaimReason::OwnerDead;
        let claim =
            Claim { subnet, epoch: 3, owner, rtt_us: None, runner_up: None, probes: 0, reason, released: false, answers: Vec::new() };
        let mut proposals = Proposals::default();
        proposals.propose(Moment(0), vec![SignedClaim::sign(&claim, &key(9))], None, &key(9));
        proposals.due(Moment(0), &list);
        let what = AcceptedOwner { list: 1, subnet, epoch: 3, owner, term: 1 };
        for number in 1..=accepted {
            let vote = Vote::Accepted(what.vote(&key(number)), Vec::new());
            proposals.voted(voter(number), &[(subnet, 3)], (vec![vote], Vec::new()), 1, 1);
        }
        for number in accepted + 1..=accepted + refused {
            proposals.voted(voter(number), &[(subnet, 3)], (vec![Vote::Owned], Vec::new()), 1, 1);
        }
        (0..3 * PROPOSAL_TIMEOUT).step_by(100).find(|at| !proposals.decide(Moment(*at), &list, (5, 1), owner, &live).given_up.is_empty())
    }

    #[test]
    fn of_those_that_split_the_votes_who_has_most_comes_first_and_none_waits_for_voters_that_are_down() {
        assert_eq!(tries_again_after(3, 2, 5), Some(REST_OF_MOST), "two of seven are down");
        assert!(tries_again_after(2, 3, 5).is_some_and(|rest| (REST..=REST + REST_SPREAD).contains(&rest)));
        let in_vain = |after: Option<Millis>| after.is_some_and(|after| after >= PROPOSAL_TIMEOUT + REST);
        assert!(in_vain(tries_again_after(4, 2, 7)), "one may yet accept it");
        assert!(in_vain(tries_again_after(4, 0, 4)), "nobody wants it besides: those that are down may come back");
    }

    #[test]
    fn attempts_of_long_ago_do_not_count() {
        let tried = attempts(700_000, 200_000..600_000);
        let after: Vec<_> = tried.iter().copied().skip_while(|at| *at < 600_000).collect();
        assert!(after[1] - after[0] <= 5_100, "{after:?}");
    }

    /// The epoch of the next attempt at a claim that is wanted at epoch 3, if the first so many of seven voters say this and the others do
    /// not want it.
    fn epoch_after(told: &[u64]) -> u64 {
        let key = |number| SigningKey::from_bytes(&[number; 32]);
        let voter = |number| AccessPoint(key(number).verifying_key().to_bytes());
        let mut voters: Vec<_> = (1..=7).map(voter).collect();
        voters.sort_unstable();
        let list = VoterList { number: 1, voters, age: 0 };
        let (subnet, owner): (Subnet, _) = ("9.0.0.0/24".parse().unwrap(), voter(9));
        let reason = ClaimReason::OwnerDead;
        let claim =
            Claim { subnet, epoch: 3, owner, rtt_us: None, runner_up: None, probes: 0, reason, released: false, answers: Vec::new() };
        let mut proposals = Proposals::default();
        let wants = |proposals: &mut Proposals, now| proposals.propose(now, vec![SignedClaim::sign(&claim, &key(9))], None, &key(9));
        wants(&mut proposals, Moment(0));
        for (place, who) in list.voters.iter().enumerate() {
            let vote = told.get(place).map_or(Vote::Owned, |epoch| Vote::Epoch(*epoch));
            proposals.voted(*who, &[(subnet, 3)], (vec![vote], Vec::new()), 1, 1);
        }
        proposals.decide(Moment(1), &list, (5, 1), owner, &list.voters);
        wants(&mut proposals, Moment(100_000));
        proposals.open[&subnet].claim.epoch
    }

    #[test]
    fn no_voter_that_lies_about_epochs_makes_us_claim_at_one_that_the_others_do_not_accept() {
        assert_eq!(epoch_after(&[]), 4);
        assert_eq!(epoch_after(&[u64::MAX, u64::MAX]), 4, "two of seven may lie");
        assert_eq!(epoch_after(&[u64::MAX, 3 + MAX_LEAP + 1]), 4);
        assert_eq!(epoch_after(&[u64::MAX, 100]), 101, "so near it may be true");
        assert_eq!(epoch_after(&[u64::MAX, 9_000, 8_000]), 8_001, "one of three is honest");
        assert!([1, 3, 5, 7, 21].map(may_lie) == [0, 1, 1, 2, 6]);
    }

    #[test]
    fn what_voters_say_of_claims_of_ours_leaves_room_for_those_that_we_make() {
        let mut proposals = Proposals::default();
        let subnet = |number: u32| format!("{}/32", std::net::Ipv4Addr::from(0x0900_0000 + number)).parse::<Subnet>().unwrap();
        let believed = (0..200_000).filter(|number| proposals.uses_up(subnet(*number), 1, 0)).count();
        assert_eq!((believed, proposals.in_vain.len()), (MAX_TOLD_IN_VAIN, MAX_TOLD_IN_VAIN));
        let key = SigningKey::from_bytes(&[7; 32]);
        let (owner, reason) = (AccessPoint(key.verifying_key().to_bytes()), ClaimReason::OwnerDead);
        let (subnet, answers) = (subnet(900_000), Vec::new());
        let claim = Claim { subnet, epoch: 1, owner, rtt_us: None, runner_up: None, probes: 0, reason, released: false, answers };
        proposals.propose(Moment(0), vec![SignedClaim::sign(&claim, &key)], None, &key);
        assert!(proposals.is_open(&subnet, 1));
    }
}
