//! A claim holds, or is stored, or proved doubtful: which machines hear of it, and in which order?

use crate::{
    crawler::Crawler,
    event::{Command, StoreCommand},
    ownership::claims::Holding,
    signal::Signal,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, ClaimReason, SignedClaim},
    subnet::Subnet,
};
use std::collections::BTreeSet;

impl Crawler {
    /// Takes over what is ours to take over, and looks for the history of what already is.
    pub(crate) fn tick_succession(&mut self) {
        self.tick_recovery();
        if !self.shutdown.is_stopping() {
            let handed = |subnet: &Subnet, epoch| self.migration.was_handed(subnet, epoch);
            self.ownership.take_over(&mut self.context, &self.membership, self.delegation.knowledge(), handed);
        }
    }

    /// The roster gave somebody up.
    pub(crate) fn dead(&mut self, gone: AccessPoint) {
        self.ownership.dead(self.context.now.moment, gone);
        self.tick_succession();
    }

    pub(crate) fn tick_watched(&mut self) {
        self.ownership.tick_watched(&mut self.context, &self.membership);
        self.settle_signals();
    }

    /// Nobody disputed a claim of ours: it is acted on.
    pub(crate) fn claim_proven(&mut self, subnet: Subnet) {
        for host in self.crawl.by_subnet.get(&subnet).cloned().unwrap_or_default() {
            self.want(&host);
        }
    }

    /// Whether somebody disputes a claim of ours could not be heard for a while: it begins anew, with what others may know.
    pub(crate) fn claim_doubtful(&mut self, subnet: Subnet) {
        self.dissolve(subnet, true);
        self.replication.load_from_replicas(&mut self.context, &self.membership, subnet);
    }

    /// Claims came from elsewhere: believe those that their owners signed and that are stronger than what we know.
    pub(crate) fn hear_claims(&mut self, proofs: Vec<SignedClaim>) {
        let mut new = Vec::new();
        for proof in proofs {
            if let Some(claim) = self.ownership.check(&mut self.context, &proof)
                && self.hold(claim, proof.clone())
            {
                new.push(proof);
            }
        }
        if !new.is_empty() {
            self.context.commands.push_back(Command::Store(StoreCommand::StoreClaims { receipt: 0, claims: new }));
            self.routing.wake_all();
            self.route();
        }
    }

    /// Enters a claim whose signature was checked; does what follows if it holds. Returns whether it does.
    pub(crate) fn hold(&mut self, claim: Claim, proof: SignedClaim) -> bool {
        let (subnet, owner, released) = (claim.subnet, claim.owner, claim.released);
        let Some(Holding { claim, before }) = self.ownership.merge(claim, proof) else { return false };
        self.migration.claim_holds(&self.context, &claim);
        self.context.signal(Signal::RollUpChanged);
        self.settle_signals();
        let (delegation, context, others) = self.delegating();
        delegation.claim_holds(context, others, &claim, before.as_ref());
        if owner != self.context.me {
            self.yield_to(subnet);
        }
        let was_mine = before.is_some_and(|before| before.owner == self.context.me && !before.released);
        if was_mine && (owner != self.context.me || released) {
            self.give_up(subnet);
        }
        if released {
            self.ownership.freed(self.context.now.moment, &claim);
        }
        true
    }

    /// Claims of ours are durable: they hold, are told, and bring their history.
    pub(crate) fn claims_stored(&mut self, receipt: u64) {
        let Some(proofs) = self.ownership.stored(receipt) else { return };
        for proof in proofs {
            let Ok(claim) = proof.read() else { continue };
            let (subnet, epoch, released) = (claim.subnet, claim.epoch, claim.released);
            self.ownership.end_claim(subnet, epoch);
            let awarded = claim.reason == ClaimReason::Awarded && !released;
            let (inherited, moved) = match claim.reason {
                ClaimReason::OwnerDead | ClaimReason::Released => (!released, false),
                ClaimReason::Moved => (false, !released),
                ClaimReason::OwnSubnet | ClaimReason::Awarded => (false, false),
            };
            let measured = claim.rtt_us.is_some();
            if !self.hold(claim.clone(), proof.clone()) {
                continue;
            }
            if inherited && measured {
                self.context.counters.deputies += 1;
            }
            if released {
                self.migration.release_stored(&mut self.context, subnet, proof.clone());
            }
            self.ownership.tell(&claim, proof);
            if awarded {
                self.ownership.watch_claim(&self.context, &self.membership, subnet);
            }
            if moved {
                self.context.counters.moves_taken += 1;
                self.replication.load(&mut self.context, subnet, BTreeSet::new());
            } else if !released && epoch > 1 {
                self.replication.load_from_replicas(&mut self.context, &self.membership, subnet);
            }
        }
        self.ownership.tell_claims(&mut self.context);
        self.routing.wake_all();
        self.route();
    }

    /// What a member knows that we did not. After the first whole comparison we may act on the map.
    pub(crate) fn compare_answered(&mut self, from: AccessPoint, proofs: Vec<SignedClaim>, more: bool) {
        let before = self.ownership.register.buckets().to_vec();
        self.hear_claims(proofs);
        if more && self.ownership.register.buckets() != before {
            self.ownership.compare_with(&mut self.context, from);
        } else if self.ownership.sync(&mut self.context) {
            self.routing.wake_all();
            self.route();
        }
    }
}
