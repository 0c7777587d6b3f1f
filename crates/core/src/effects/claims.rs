//! A claim is heard, stored, watched or ended, and what everybody knows is told: which machines hear of it, and in which order?

use crate::{crawler::Crawler, ownership::claims::JournalsAt, signal::Signal};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, SignedClaim},
    message::Gossip,
    subnet::Subnet,
};
use std::collections::BTreeSet;

/// What everybody knows.
impl Crawler {
    /// A member told everybody something.
    pub(crate) fn gossiped(&mut self, gossip: Gossip) {
        self.membership.heard(self.context.now.moment);
        match gossip {
            Gossip::Claims(proofs) => self.hear_claims(proofs),
            Gossip::RollUp(roll_up) if roll_up.owner != self.context.me => {
                self.membership.told(roll_up.owner, roll_up.sure_of as usize);
                self.report.hear(*roll_up, self.context.now.moment);
            }
            Gossip::RollUp(_) => {}
            // What an endorsement says of its author was checked by whoever heard it from the network.
            Gossip::Endorsement(endorsement) => self.hierarchy_version.endorsed(endorsement),
            Gossip::Distances(told) => self.delegation.distances_told(&mut self.context, &self.membership, told),
        }
    }

    /// Tells everybody what is new, and repairs what was lost on the way.
    pub(crate) fn tick_spread(&mut self) {
        let now = self.context.now.moment;
        self.ownership.tell_claims(&mut self.context);
        self.delegation.tick_distances(&mut self.context, &self.membership);
        self.report.count_members(self.membership.settled(now).len());
        self.ownership.tick_comparison(&mut self.context, &self.membership);
        if self.report.is_due(now) {
            let load = self.migration.load_told();
            let complete = self.replication.subnets_loading() == 0;
            self.report.tell(&mut self.context, &self.membership, &self.ownership, &self.crawl, load, complete);
        }
    }

    /// What a member knows that we did not. After the first whole comparison we may act on the map.
    pub(crate) fn compare_answered(&mut self, from: AccessPoint, proofs: Vec<SignedClaim>, more: bool) {
        let before = self.ownership.register().buckets().to_vec();
        self.hear_claims(proofs);
        if self.ownership.comparison_answered(&mut self.context, from, more, &before) {
            self.routing.wake_all();
            self.route();
        }
    }
}

/// Claims.
impl Crawler {
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
            self.ownership.store_heard(&mut self.context, new);
            self.routing.wake_all();
            self.route();
        }
    }

    /// Claims of ours are durable: they hold, are told, and bring their history.
    pub(crate) fn claims_stored(&mut self, receipt: u64) {
        let Some(proofs) = self.ownership.stored(receipt) else { return };
        for proof in proofs {
            let Ok(claim) = proof.read() else { continue };
            self.ownership.end_claim(claim.subnet, claim.epoch);
            if self.hold(claim.clone(), proof.clone()) {
                self.own_claim_holds(&claim, proof);
            }
        }
        self.ownership.tell_claims(&mut self.context);
        self.routing.wake_all();
        self.route();
    }

    fn own_claim_holds(&mut self, claim: &Claim, proof: SignedClaim) {
        if claim.released {
            self.migration.release_stored(&mut self.context, claim.subnet, proof.clone());
        }
        match self.ownership.own_claim_holds(&mut self.context, &self.membership, claim, proof) {
            Some(JournalsAt::Here) => self.replication.load(&mut self.context, claim.subnet, BTreeSet::new()),
            Some(JournalsAt::Replicas) => self.replication.load_from_replicas(&mut self.context, &self.membership, claim.subnet),
            None => {}
        }
    }

    /// Enters a claim whose signature was checked; has all machines do what follows if it holds. Returns whether it does.
    pub(crate) fn hold(&mut self, claim: Claim, proof: SignedClaim) -> bool {
        let Some(holding) = self.ownership.merge(claim, proof) else { return false };
        let claim = &holding.claim;
        self.migration.claim_holds(&self.context, claim);
        self.context.signal(Signal::RollUpChanged);
        self.settle_signals();
        let (delegation, context, others) = self.delegating();
        delegation.claim_holds(context, others, claim, holding.before.as_ref());
        if claim.owner != self.context.me {
            self.yield_to(claim.subnet);
        }
        if holding.ends_claim_of(self.context.me) {
            self.give_up(claim.subnet);
        }
        if claim.released {
            self.ownership.freed(self.context.now.moment, claim);
        }
        true
    }

    /// Nobody disputed a claim of ours: it is acted on.
    pub(crate) fn claim_proven(&mut self, subnet: Subnet) {
        self.crawl.resume_subnet(&self.context, &subnet);
    }

    /// Whether somebody disputes a claim of ours could not be heard for a while: it begins anew, with what others may know.
    pub(crate) fn claim_doubtful(&mut self, subnet: Subnet) {
        self.dissolve(subnet, true);
        self.replication.load_from_replicas(&mut self.context, &self.membership, subnet);
    }

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
}
