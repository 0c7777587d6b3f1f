//! Who says that a subnet is whose? Claims of ours are stored, then told, then watched; claims of others are checked, then held.

use crate::{
    context::Context,
    event::{Command, StoreCommand},
    membership::{Membership, Shutdown},
    ownership::{
        Ownership,
        register::{Merged, claimable},
    },
    signal::Signal,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, ClaimReason, MAX_ANSWERS, SignedClaim},
    message::Award,
    subnet::Subnet,
    time::Moment,
};

/// How often a new claim is told while it is watched: whoever owns what lies around it, or in it, must hear of it before it is acted
/// on, also if some gossip is lost.
const TELL_CLAIMS: u64 = 3;

impl Ownership {
    /// Our own subnets are ours from the start (IPMicra §4.1), if they are nobody's.
    pub(crate) fn claim_own_subnets(&mut self, cx: &mut Context) {
        let mut claims = Vec::new();
        for address in cx.settings.own_addresses.clone() {
            let subnet = cx.unit_of(address);
            // Within a larger subnet that somebody holds, that one decides.
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
        if claims.is_empty() {
            return;
        }
        let receipt = cx.number();
        let proofs: Vec<_> = claims.iter().map(|claim| SignedClaim::sign(claim, &cx.key)).collect();
        self.unstored.insert(receipt, proofs.clone());
        cx.commands.push_back(Command::Store(StoreCommand::StoreClaims { receipt, claims: proofs }));
    }

    /// Whether somebody may award us a subnet: if a larger one is claimed, only its owner.
    pub(crate) fn may_be_awarded(&self, from: AccessPoint, subnet: &Subnet) -> bool {
        claimable(subnet) && self.register.covering(subnet).is_none_or(|claim| claim.owner == from && !claim.released)
    }

    /// A steward chose us: claim it. Persist before we speak: the claim counts once it is stored.
    pub(crate) fn awarded(&mut self, cx: &mut Context, members: &Membership, shutdown: &Shutdown, award: Award) {
        let Award { subnet, epoch, rtt_us, runner_up, probes, mut answers } = award;
        let free = self.register.claim(&subnet).is_none() && epoch == self.register.next_epoch(&subnet);
        if free && !shutdown.is_leaving() && members.may_claim(cx.now.moment) && self.begin_claim(subnet, epoch) {
            let owner = cx.me;
            let reason = ClaimReason::Awarded;
            answers.truncate(MAX_ANSWERS);
            self.make_claims(cx, vec![Claim { subnet, epoch, owner, rtt_us, runner_up, probes, reason, released: false, answers }]);
        }
    }

    /// A new claim of ours is acted on only after a while in which a quorum answered and nobody turned out to have claimed the same:
    /// two stewards may have had different ideas of who is alive, or the network may just have split.
    pub(crate) fn watch_claim(&mut self, cx: &Context, members: &Membership, subnet: Subnet) {
        if !members.standings().is_empty() {
            self.watched.insert(subnet, Watched { since: cx.now.moment, interrupted: false, told: 1 });
        }
    }

    /// Watched claims that nobody disputed for long enough are acted on from now on; those that were interrupted need their history first.
    pub(crate) fn tick_watched(&mut self, cx: &mut Context, members: &Membership) {
        let now = cx.now.moment;
        let whole = members.may_claim(now);
        let watch = members.watch();
        let mut proven = Vec::new();
        for (subnet, watched) in &mut self.watched {
            if !whole {
                *watched = Watched { since: now, interrupted: true, told: watched.told };
            } else if now.since(watched.since) >= watch {
                proven.push((*subnet, watched.interrupted));
            } else if watched.told < TELL_CLAIMS && now.since(watched.since) >= watch / TELL_CLAIMS * watched.told {
                watched.told += 1;
                self.pending_claims.extend(self.register.latest(subnet).map(|held| (*subnet, held.proof.clone())));
            }
        }
        for (subnet, interrupted) in proven {
            self.watched.remove(&subnet);
            // While we were cut off somebody else may have claimed it at the same epoch, and gone on.
            cx.signal(if interrupted { Signal::ClaimDoubtful(subnet) } else { Signal::ClaimProven(subnet) });
        }
    }

    /// Whether a claim of ours is still being watched.
    pub(crate) fn is_watched(&self, subnet: &Subnet) -> bool {
        self.watched.contains_key(subnet)
    }

    /// Checks a claim that came from elsewhere; none if it is known, refused or not signed by its owner.
    pub(crate) fn check(&self, cx: &mut Context, proof: &SignedClaim) -> Option<Claim> {
        let known = proof.read().ok().and_then(|claim| self.register.latest(&claim.subnet).map(|held| held.proof == *proof));
        if known == Some(true) {
            return None;
        }
        match proof.open() {
            Ok(claim) if !claimable(&claim.subnet) => cx.refuse("claims larger than a registry allocates"),
            Ok(claim) if !self.register.has_room_for(&claim.subnet) => cx.refuse("claims beyond the limit"),
            Ok(claim) => return Some(claim),
            Err(_) => cx.refuse("claims with a bad signature"),
        }
        None
    }

    /// Enters a claim whose signature was checked. If it holds, the others have to hear of it.
    #[must_use]
    pub(crate) fn merge(&mut self, claim: Claim, proof: SignedClaim) -> Option<Holding> {
        let Merged::Holds { before } = self.register.merge(claim.clone(), proof) else { return None };
        Some(Holding { claim, before })
    }

    /// Claims of ours that were stored; none if no such claims were waited for.
    pub(crate) fn stored(&mut self, receipt: u64) -> Option<Vec<SignedClaim>> {
        self.unstored.remove(&receipt)
    }

    /// A claim of ours is durable: from now on it may be told.
    pub(crate) fn tell(&mut self, claim: &Claim, proof: SignedClaim) {
        if !claim.released {
            self.freed.remove(&claim.subnet);
        }
        self.pending_claims.insert(claim.subnet, proof);
    }

    /// Notes that a claim to what others left, or awarded, is about to be stored. Whether it was not already.
    pub(crate) fn begin_claim(&mut self, subnet: Subnet, epoch: u64) -> bool {
        self.inheriting.insert((subnet, epoch))
    }

    /// The claim was stored.
    pub(crate) fn end_claim(&mut self, subnet: Subnet, epoch: u64) {
        self.inheriting.remove(&(subnet, epoch));
    }

    /// A subnet is not ours any more.
    pub(crate) fn unwatch(&mut self, subnet: &Subnet) {
        self.watched.remove(subnet);
    }
}

/// A new claim that is not acted on yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    /// Since when a quorum has answered.
    since: Moment,
    /// Whether there was none for a while.
    interrupted: bool,
    /// How often it was told.
    told: u64,
}

/// A claim that holds and did not before.
#[derive(Debug)]
pub(crate) struct Holding {
    pub(crate) claim: Claim,
    /// What held before.
    pub(crate) before: Option<Claim>,
}
