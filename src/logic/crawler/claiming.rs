//! Who says that a subnet is whose? Claims of ours are stored, then told, then watched; claims of others are checked, then held.

use super::{Command, Crawler, ProcedureState};
use crate::{
    logic::ownership::{Merged, claimable},
    model::{
        access_point::{AccessPoint, ShortId},
        claim::{Claim, ClaimReason, SignedClaim},
        subnet::Subnet,
        time::Moment,
    },
};

/// How often a new claim is told while it is watched: whoever owns what lies around it, or in it, must hear of it before it is acted
/// on, also if some gossip is lost.
const TELL_CLAIMS: u64 = 3;

impl Crawler {
    /// Our own subnets are ours from the start (IPMicra §4.1), if they are nobody's.
    pub(super) fn claim_own_subnets(&mut self) {
        let mut claims = Vec::new();
        for address in self.settings.own_addresses.clone() {
            let subnet = self.unit_of(address);
            // Within a larger subnet that somebody holds, that one decides.
            let free = self.ownership.around(address).is_none_or(|claim| claim.subnet == subnet && claim.released);
            if free && !address.is_unspecified() && !claims.iter().any(|claim: &Claim| claim.subnet == subnet) {
                let epoch = self.ownership.next_epoch(&subnet);
                let reason = ClaimReason::OwnSubnet;
                let owner = self.me;
                let (rtt_us, runner_up, answers) = (Some(0), None, Vec::new());
                claims.push(Claim { subnet, epoch, owner, rtt_us, runner_up, probes: 0, reason, released: false, answers });
            }
        }
        self.make_claims(claims);
    }

    /// Signs and stores claims of ours; they hold and are told when they are durable.
    pub(super) fn make_claims(&mut self, claims: Vec<Claim>) {
        if claims.is_empty() {
            return;
        }
        let receipt = self.number();
        let proofs: Vec<_> = claims.iter().map(|claim| SignedClaim::sign(claim, &self.key)).collect();
        self.unstored_claims.insert(receipt, proofs.clone());
        self.commands.push_back(Command::StoreClaims { receipt, claims: proofs });
    }

    /// A new claim of ours is acted on only after a while in which a quorum answered and nobody turned out to have claimed the same:
    /// two stewards may have had different ideas of who is alive, or the network may just have split.
    pub(super) fn watch_claim(&mut self, subnet: Subnet) {
        if !self.roster.standings().is_empty() {
            self.watched.insert(subnet, Watched { since: self.now.moment, interrupted: false, told: 1 });
        }
    }

    pub(super) fn tick_watched(&mut self) {
        let now = self.now.moment;
        let whole = self.roster.may_claim(now);
        let watch = self.roster.watch();
        let mut proven = Vec::new();
        for (subnet, watched) in &mut self.watched {
            if !whole {
                *watched = Watched { since: now, interrupted: true, told: watched.told };
            } else if now.since(watched.since) >= watch {
                proven.push((*subnet, watched.interrupted));
            } else if watched.told < TELL_CLAIMS && now.since(watched.since) >= watch / TELL_CLAIMS * watched.told {
                watched.told += 1;
                self.news.extend(self.ownership.latest(subnet).map(|held| (*subnet, held.proof.clone())));
            }
        }
        for (subnet, interrupted) in proven {
            self.watched.remove(&subnet);
            if interrupted {
                // While we were cut off somebody else may have claimed it at the same epoch, and gone on.
                self.dissolve(subnet, true);
                self.load_from_keepers(subnet);
                continue;
            }
            for host in self.by_subnet.get(&subnet).cloned().unwrap_or_default() {
                self.want(&host);
            }
        }
    }

    /// Claims came from elsewhere: believe those that their owners signed and that are stronger than what we know.
    pub(super) fn hear_claims(&mut self, proofs: Vec<SignedClaim>) {
        let mut new = Vec::new();
        for proof in proofs {
            let known = proof.read().ok().and_then(|claim| self.ownership.latest(&claim.subnet).map(|held| held.proof == proof));
            if known == Some(true) {
                continue;
            }
            match proof.open() {
                Ok(claim) if !claimable(&claim.subnet) => self.refuse("claims to more than a registry gives out"),
                Ok(claim) if !self.ownership.has_room_for(&claim.subnet) => self.refuse("claims beyond the most that are kept"),
                Ok(claim) => {
                    if self.hold(claim, proof.clone()) {
                        new.push(proof);
                    }
                }
                Err(_) => self.refuse("claims with a bad signature"),
            }
        }
        if !new.is_empty() {
            self.commands.push_back(Command::StoreClaims { receipt: 0, claims: new });
            self.outbox.wake_all();
            self.route();
        }
    }

    /// What the probes before a claim measured, its owner's and the others'.
    fn learn_from(&mut self, claim: &Claim) {
        let own = claim.rtt_us.filter(|_| claim.reason != ClaimReason::OwnSubnet).map(|rtt_us| (claim.owner, rtt_us));
        let known = self.incarnations.keys().chain([&self.me]);
        let others = claim.answers.iter();
        let others = others.filter_map(|answer| Some((*known.clone().find(|who| ShortId::from(**who) == answer.prober)?, answer.rtt_us)));
        let measured: Vec<_> = own.into_iter().chain(others).collect();
        for (who, rtt_us) in measured {
            self.knowledge.measured(&self.hierarchy, claim.subnet, who, rtt_us);
        }
    }

    /// Whoever gave a subnet away said how far it had come to be from there: that is newer than any probe.
    fn learn_from_move(&mut self, claim: &Claim, giver: AccessPoint) {
        let said = claim.answers.iter().find(|answer| answer.prober == ShortId::from(giver));
        if let Some(answer) = said {
            self.knowledge.measured_anew(&self.hierarchy, claim.subnet, giver, answer.rtt_us);
        }
    }

    /// Enters a claim whose signature was checked; does what follows if it holds. Returns whether it does.
    pub(super) fn hold(&mut self, claim: Claim, proof: SignedClaim) -> bool {
        let (subnet, owner, released) = (claim.subnet, claim.owner, claim.released);
        let Merged::Holds { before } = self.ownership.merge(claim.clone(), proof) else { return false };
        self.chronicle(&claim);
        self.populate(&claim);
        self.roll_up_changed = true;
        self.learn_from(&claim);
        if let Some(before) = before.as_ref().filter(|_| claim.reason == ClaimReason::Moved && !released) {
            self.learn_from_move(&claim, before.owner);
        }
        if let Some(procedure) = self.procedures.get(&subnet)
            && matches!(procedure.state, ProcedureState::Awarded(_) | ProcedureState::Awarding(..))
        {
            *self.counters.settled.entry(procedure.contacts).or_default() += 1;
        }
        self.placed_by(&claim);
        let was_mine = before.is_some_and(|before| before.owner == self.me && !before.released);
        if was_mine && (owner != self.me || released) {
            self.give_up(subnet);
        }
        if released {
            self.freed(&claim);
        }
        true
    }
}

/// A new claim that is not acted on yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watched {
    /// Since when a quorum has answered.
    since: Moment,
    /// Whether there was none for a while.
    interrupted: bool,
    /// How often it was told.
    told: u64,
}
