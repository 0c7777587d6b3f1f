//! Claims of subnets: ours are stored, then told, then watched; those of others are checked, then held.

use crate::{
    context::Context,
    event::{Command, StoreCommand},
    membership::{Membership, Shutdown},
    ownership::{
        Ownership, Watched,
        comparison::Comparison,
        register::{Merged, Register, claimable},
    },
    signal::Signal,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, ClaimReason, MAX_ANSWERS, MAX_EPOCH, SignedClaim},
    ids::WriteId,
    message::Award,
    subnet::Subnet,
    time::{Millis, Moment},
};
use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

/// How often a new claim is told while it is watched: the owner of what lies around it, or in it, must hear of it before it is acted
/// on, also if some gossip is lost.
const TELL_CLAIMS: u64 = 2;

/// Claims of ours.
impl Ownership {
    /// Nothing is known yet. `synced` is whether there is no member to compare with first.
    pub(crate) fn new(now: Moment, synced: bool) -> Ownership {
        Ownership {
            register: Register::default(),
            watched: BTreeMap::new(),
            unstored: BTreeMap::new(),
            pending_claims: BTreeMap::new(),
            gossip_due: now,
            comparison: Comparison::default(),
            synced,
            dead_since: BTreeMap::new(),
            freed: BTreeMap::new(),
            doubtful: BTreeMap::new(),
            inheriting: BTreeSet::new(),
            looked_at: super::LookedAt::default(),
        }
    }

    /// Our own subnets are ours from the start (IPMicra §4.1), if they have no owner.
    pub(crate) fn claim_own_subnets(&mut self, cx: &mut Context) {
        let mut claims = Vec::new();
        for address in cx.settings.own_addresses.clone() {
            let subnet = cx.unit_of(address);
            // Within a larger subnet that a member holds, that one decides.
            let free = self.register.around(address).is_none_or(|claim| claim.subnet == subnet && claim.released);
            if free && !address.is_unspecified() && !claims.iter().any(|claim: &Claim| claim.subnet == subnet) {
                let epoch = self.register.next_epoch(&subnet);
                let reason = ClaimReason::OwnSubnet;
                let owner = cx.me;
                let (rtt_us, runner_up, answers) = (Some(0), None, Vec::new());
                claims.push(Claim { subnet, epoch, owner, rtt_us, runner_up, probes: 0, reason, released: false, answers });
            }
        }
        self.make_claims(cx, claims);
    }

    /// Signs and stores claims of ours; they hold and are told when they are durable.
    pub(crate) fn make_claims(&mut self, cx: &mut Context, claims: Vec<Claim>) {
        let (to_vote, to_store): (Vec<_>, Vec<_>) = claims.into_iter().partition(|claim| !claim.released);
        if !to_vote.is_empty() {
            cx.signal(Signal::ClaimsToVote(to_vote.iter().map(|claim| SignedClaim::sign(claim, &cx.key)).collect(), None));
        }
        // A release is proven by the votes for what is released.
        let votes = |claim: &Claim| self.register.latest(&claim.subnet).and_then(|held| held.votes().cloned().map(Box::new));
        let sign = |claim: &Claim| SignedClaim { votes: votes(claim), ..SignedClaim::sign(claim, &cx.key) };
        let proofs: Vec<_> = to_store.iter().map(sign).collect();
        self.store_own(cx, proofs);
    }

    /// Claims of ours that enough voters have accepted, or that need no votes, are stored.
    pub(crate) fn store_own(&mut self, cx: &mut Context, proofs: Vec<SignedClaim>) {
        if proofs.is_empty() {
            return;
        }
        let write = cx.number();
        self.unstored.insert(write, proofs.clone());
        cx.commands.push_back(Command::Store(StoreCommand::StoreClaims { write: Some(write), claims: proofs }));
    }

    /// This claim of ours was accepted in a term of our lease that is over: others may own the subnet by now.
    pub(crate) fn doubt(&mut self, claim: &Claim) {
        self.watched.remove(&claim.subnet);
        self.doubtful.insert(claim.subnet, claim.epoch);
    }

    /// Our lease ran out, and a new term begins: what we owned is claimed anew, and not acted on before.
    pub(crate) fn term_began(&mut self, cx: &mut Context) {
        for subnet in self.register.held_by(&cx.me) {
            let epoch = self.register.claim(&subnet).map_or(0, |claim| claim.epoch);
            self.doubtful.entry(subnet).or_insert(epoch);
        }
        self.watched.clear();
    }

    /// Claims anew what we owned when our lease ran out.
    pub(crate) fn claim_again(&mut self, cx: &mut Context, members: &Membership) {
        if self.doubtful.is_empty() || !members.may_claim(cx.now.moment) {
            return;
        }
        let held: Vec<_> = self.doubtful.keys().filter_map(|subnet| self.register.claim(subnet).cloned()).collect();
        let mut claims = Vec::new();
        for claim in held.into_iter().filter(|claim| claim.owner == cx.me) {
            if self.begin_claim(claim.subnet, claim.epoch + 1) {
                claims.push(Claim { epoch: claim.epoch + 1, reason: ClaimReason::OwnerDead, ..claim });
            }
        }
        self.make_claims(cx, claims);
    }

    /// Members did not hear of these claims of ours: they are told again.
    pub(crate) fn tell_again(&mut self, me: AccessPoint, subnets: Vec<Subnet>) {
        for subnet in subnets {
            if let Some(held) = self.register.latest(&subnet).filter(|held| held.claim.owner == me) {
                self.pending_claims.insert(subnet, held.proof());
            }
        }
    }

    /// Whether a member may award us a subnet: if a larger one is claimed, only its owner.
    pub(crate) fn may_be_awarded(&self, from: AccessPoint, subnet: &Subnet) -> bool {
        claimable(subnet) && self.register.covering(subnet).is_none_or(|claim| claim.owner == from && !claim.released)
    }

    /// A steward chose us: claim it. Persist before we speak: the claim counts once it is stored.
    pub(crate) fn awarded(&mut self, cx: &mut Context, members: &Membership, shutdown: &Shutdown, award: Award) {
        let Award { subnet, epoch, rtt_us, runner_up, probes, mut answers, part } = award;
        let free = self.register.claim(&subnet).is_none() && epoch == self.register.next_epoch(&subnet);
        if free && !shutdown.is_leaving() && members.may_claim(cx.now.moment) && self.begin_claim(subnet, epoch) {
            let owner = cx.me;
            let reason = ClaimReason::Awarded;
            answers.truncate(MAX_ANSWERS);
            let claim = Claim { subnet, epoch, owner, rtt_us, runner_up, probes, reason, released: false, answers };
            cx.signal(Signal::ClaimsToVote(vec![SignedClaim::sign(&claim, &cx.key)], part));
        }
    }

    /// A new claim of ours is acted on only after a while in which every member hears of it.
    fn watch_claim(&mut self, cx: &Context, members: &Membership, subnet: Subnet, lasts: Millis) {
        if !members.standings().is_empty() {
            self.watched.insert(subnet, Watched { since: cx.now.moment, lasts, interrupted: false, told: 1 });
        }
    }

    /// Watched claims that no member disputed for long enough are acted on from now on; those that were interrupted need their history
    /// first.
    pub(crate) fn tick_watched(&mut self, cx: &mut Context, members: &Membership) {
        let now = cx.now.moment;
        let whole = members.may_claim(now);
        let mut proven = Vec::new();
        for (subnet, watched) in &mut self.watched {
            if !whole {
                *watched = Watched { since: now, interrupted: true, ..*watched };
            } else if now.since(watched.since) >= watched.lasts {
                proven.push((*subnet, watched.interrupted));
            } else if watched.told < TELL_CLAIMS && now.since(watched.since) >= watched.lasts / TELL_CLAIMS * watched.told {
                watched.told += 1;
                self.pending_claims.extend(self.register.latest(subnet).map(|held| (*subnet, held.proof())));
            }
        }
        for (subnet, interrupted) in proven {
            self.watched.remove(&subnet);
            // While we were cut off another member may have claimed it at the same epoch, and gone on.
            cx.signal(if interrupted { Signal::ClaimDoubtful(subnet) } else { Signal::ClaimProven(subnet) });
        }
    }

    /// Claims of ours that were stored; none if no such claims were waited for.
    pub(crate) fn stored(&mut self, write: WriteId) -> Option<Vec<SignedClaim>> {
        self.unstored.remove(&write)
    }

    /// A claim of ours is durable and holds: it is told, and watched if another member may have been chosen at the same time. `had_owner` is
    /// whether another claim is known that held before. Returns where the subnet's journals are, if it has any.
    pub(crate) fn own_claim_holds(
        &mut self,
        cx: &mut Context,
        members: &Membership,
        claim: &Claim,
        proof: SignedClaim,
        had_owner: bool,
    ) -> Option<JournalsAt> {
        self.pending_claims.insert(claim.subnet, proof);
        if claim.released {
            return None;
        }
        self.freed.remove(&claim.subnet);
        if let Some(epoch) = self.doubtful.remove(&claim.subnet) {
            // If it was claimed by others in between, they may have gone on.
            let alone = claim.epoch == epoch + 1;
            cx.signal(if alone { Signal::ClaimProven(claim.subnet) } else { Signal::ClaimDoubtful(claim.subnet) });
            return None;
        }
        match claim.reason {
            ClaimReason::Moved => {
                cx.counters.moves_taken += 1;
                return Some(JournalsAt::Here);
            }
            ClaimReason::OwnerDead | ClaimReason::Released => cx.counters.deputies += u64::from(claim.rtt_us.is_some()),
            ClaimReason::Awarded => {
                // Who has its addresses probed for another subnet, by another hierarchy, must hear of it first; and an owner of what lies
                // around it, of whom the voters have not heard yet, or who still has requests under way there.
                let around = self.register.covering(&claim.subnet).is_some_and(|around| around.owner != cx.me && !around.released);
                let lease = cx.settings.roster.lease;
                self.watch_claim(cx, members, claim.subnet, if around { lease / 3 } else { lease / 15 });
            }
            ClaimReason::OwnSubnet => {}
        }
        // The voters of a later list may not have known that it had an owner, so that it was claimed as if it had none.
        (claim.epoch > 1 || had_owner).then_some(JournalsAt::Replicas)
    }

    /// Where the journals are of what a claim of ours of a life before says is ours.
    pub(crate) fn journals_at_start(&self, cx: &Context, members: &Membership, claim: &Claim) -> JournalsAt {
        // Who is alone, and was, has nobody to ask.
        if !cx.settings.joins && members.standings().is_empty() {
            return JournalsAt::Here;
        }
        // What was begun here is here. If nothing was, it may be that we lost our disk before, heard from others what is ours, and ended
        // before replicas had sent it.
        JournalsAt::HereIfBegun(match claim.reason {
            ClaimReason::OwnerDead | ClaimReason::Released | ClaimReason::Moved => claim.epoch,
            ClaimReason::Awarded | ClaimReason::OwnSubnet => 0,
        })
    }

    /// Notes that a claim to what others left, or awarded, is about to be stored. Whether it was not already.
    pub(crate) fn begin_claim(&mut self, subnet: Subnet, epoch: u64) -> bool {
        self.inheriting.insert((subnet, epoch))
    }

    /// A claim that was wanted at this epoch is given up: it may be made anew.
    pub(crate) fn end_claim(&mut self, subnet: Subnet, epoch: u64) {
        self.inheriting.remove(&(subnet, epoch));
    }

    /// A claim was stored at this epoch, which may be a later one than was wanted.
    pub(crate) fn end_claims_upto(&mut self, subnet: Subnet, epoch: u64) {
        while let Some(claim) = self.inheriting.range((subnet, 0)..=(subnet, epoch)).next().copied() {
            self.inheriting.remove(&claim);
        }
    }

    /// A subnet is not ours any more.
    pub(crate) fn unwatch(&mut self, subnet: &Subnet) {
        self.watched.remove(subnet);
        self.doubtful.remove(subnet);
    }
}

/// All claims.
impl Ownership {
    /// Checks a claim that came from elsewhere, what costs most last: whether its owner signed it.
    pub(crate) fn check(&self, cx: &mut Context, claim: &Claim, proof: &SignedClaim) -> Checked {
        let held = self.register.latest(&claim.subnet);
        if held.is_some_and(|held| claim.strength(&held.claim) != Ordering::Greater && held.strength_of(claim, proof) != Ordering::Greater)
        {
            return Checked::Known;
        }
        let refused = if !claimable(&claim.subnet) {
            "claims larger than a registry allocates"
        } else if claim.epoch > MAX_EPOCH {
            "claims with an epoch that no subnet reaches"
        } else if !self.register.has_room_for(&claim.subnet) {
            "claims beyond the limit"
        } else if proof.verify(claim).is_err() {
            cx.refuse("claims with a bad signature");
            return Checked::Forged;
        } else if held.is_some_and(|held| held.strength_of(claim, proof) != Ordering::Greater) {
            // Of a later epoch, and accepted by nobody, or by the voters of an earlier list.
            "claims without enough votes"
        } else {
            return Checked::New;
        };
        cx.refuse(refused);
        Checked::Refused
    }

    /// Enters a claim whose signature was checked. If it holds, the others have to hear of it.
    #[must_use]
    pub(crate) fn merge(&mut self, claim: Claim, proof: SignedClaim) -> Option<Holding> {
        let Merged::Holds { before } = self.register.merge(claim.clone(), &proof) else { return None };
        self.comparison.changed();
        Some(Holding { claim, before })
    }

    /// Stores claims of others that hold since they were heard. Nothing waits for it.
    pub(crate) fn store_heard(&mut self, cx: &mut Context, claims: Vec<SignedClaim>) {
        self.refresh_map();
        cx.commands.push_back(Command::Store(StoreCommand::StoreClaims { write: None, claims }));
    }
}

/// What others ask of it.
impl Ownership {
    /// All claims that are known.
    pub(crate) fn register(&self) -> &Register {
        &self.register
    }

    /// Whether a claim of ours is still being watched.
    pub(crate) fn is_watched(&self, subnet: &Subnet) -> bool {
        self.watched.contains_key(subnet) || self.doubtful.contains_key(subnet)
    }

    /// Whether some of what was ours in an earlier term of our lease has not been claimed again yet.
    pub(crate) fn is_doubtful(&self) -> bool {
        !self.doubtful.is_empty()
    }

    /// Owners that are no members, and since when.
    pub(crate) fn dead_since(&self) -> impl Iterator<Item = (AccessPoint, Moment)> {
        self.dead_since.iter().map(|(gone, since)| (*gone, *since))
    }

    /// The subnet of ours that an address is in, if it is ours.
    pub(crate) fn own_subnet_around(&self, me: AccessPoint, address: IpAddr) -> Option<Subnet> {
        self.register.around(address).filter(|claim| claim.owner == me && !claim.released).map(|claim| claim.subnet)
    }

    /// Whether claims of ours are still being stored.
    pub(crate) fn is_storing(&self) -> bool {
        !self.unstored.is_empty()
    }

    /// Whether claims of ours are still being stored or wait to be told.
    pub(crate) fn is_telling(&self) -> bool {
        !self.unstored.is_empty() || !self.pending_claims.is_empty()
    }
}

/// What is to be thought of a claim that came from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    /// It is stronger than what is known, and its owner signed it.
    New,
    /// This claim or a stronger one is known.
    Known,
    /// It is not accepted, whoever signed it.
    Refused,
    /// Its owner did not sign it.
    Forged,
}

/// A claim that holds and did not before.
#[derive(Debug)]
pub(crate) struct Holding {
    pub(crate) claim: Claim,
    /// What held before.
    pub(crate) before: Option<Claim>,
}

impl Holding {
    /// Whether it is no later than what it takes the place of, which voters of an earlier list had accepted: those who agreed on the list were
    /// not told of that, or it was hidden from them.
    pub(crate) fn forgets_epochs(&self) -> bool {
        let forgets =
            |before: &Claim| before.epoch > self.claim.epoch || before.epoch == self.claim.epoch && before.owner != self.claim.owner;
        self.before.as_ref().is_some_and(forgets)
    }

    /// Whether this member's claim to the subnet ends by it.
    pub(crate) fn ends_claim_of(&self, member: AccessPoint) -> bool {
        let before = self.before.as_ref().is_some_and(|before| before.owner == member && !before.released);
        before && (self.claim.owner != member || self.claim.released)
    }
}

/// Where the journals are of a subnet that became ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JournalsAt {
    /// In our own store: they were copied before it was handed over, or it has been ours all the time.
    Here,
    /// In our own store if it says that we began at this epoch: we may have stopped after we took the subnet over and before its journals
    /// had come. If not, at others.
    HereIfBegun(u64),
    /// At the replicas of the owner before, if anywhere.
    Replicas,
}
