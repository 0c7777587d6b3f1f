//! Effects of claims that are heard, compared, stored, proven or doubtful.

use crate::{
    crawler::Crawler,
    ownership::{
        claims::{Checked, JournalsAt},
        comparison::Heard,
    },
    pending::MapQuestion,
    replication::AwaitedReplicas,
    signal::Signal,
    voting,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, MAX_EPOCH, SignedClaim},
    ids::WriteId,
    message::Response,
    subnet::Subnet,
};

/// Claims of others.
impl Crawler {
    /// Claims of a life before hold; what is ours by them is loaded.
    pub(crate) fn wake_claims(&mut self, claims: Vec<SignedClaim>) {
        for proof in claims {
            // A store may hold claims that an earlier version accepted and this one refuses.
            if let Ok(claim) = proof.read()
                && claim.epoch <= MAX_EPOCH
            {
                self.hold(claim.clone(), proof.clone());
                self.doubt_if_over(&claim, &proof);
            }
        }
        self.ownership.refresh_map();
        let mine: Vec<_> = self.ownership.register().held_by(&self.context.me).collect();
        for subnet in mine {
            let Some(claim) = self.ownership.register().claim(&subnet) else { continue };
            let at = self.ownership.journals_at_start(&self.context, &self.membership, claim);
            // Who has what was recorded in a life before is told by the voters.
            let awaited = if at == JournalsAt::Here { AwaitedReplicas::default() } else { AwaitedReplicas::unknown() };
            self.replication.load(&mut self.context, &self.membership, subnet, at, awaited);
        }
    }

    /// Claims came from elsewhere: believe those that their owners signed and that are stronger than what we know.
    pub(crate) fn hear_claims(&mut self, proofs: Vec<SignedClaim>) {
        let mut claims = Vec::with_capacity(proofs.len());
        for proof in proofs {
            match proof.read() {
                Ok(claim) => claims.push((claim, proof)),
                Err(_) => self.context.refuse("claims with a bad signature"),
            }
        }
        self.enter_heard(claims);
    }

    /// A member answered a question of a comparison, or did not. What it knows that we did not is entered; once the map is whole we act on it.
    pub(crate) fn compare_answered(&mut self, question: MapQuestion, answer: Option<Response>) {
        let claims = self.ownership.comparison_answered(&mut self.context, question, answer);
        let heard = self.enter_heard(claims);
        if self.ownership.go_on_comparing(&mut self.context, &self.membership, heard) {
            self.routing.wake_all();
            self.route();
        }
    }

    /// The same for claims that are decoded.
    fn enter_heard(&mut self, claims: Vec<(Claim, SignedClaim)>) -> Heard {
        let (mut new, mut forged, mut ours) = (Vec::new(), 0, Vec::new());
        for (claim, proof) in claims {
            self.compare_votes(&claim, &proof);
            let own = (claim.owner == self.context.me && !claim.released).then_some(claim.subnet);
            match self.ownership.check(&mut self.context, &claim, &proof) {
                Checked::New if self.is_proven(&claim, &proof) && self.hold(claim.clone(), proof.clone()) => {
                    self.doubt_if_over(&claim, &proof);
                    new.push(proof);
                    ours.extend(own);
                }
                Checked::Forged => forged += 1,
                Checked::New | Checked::Known | Checked::Refused => {}
            }
        }
        // Our own store did not know that it is ours: it was lost or is an old copy, and so may be the journals. Others have them.
        for subnet in ours {
            self.claim_doubtful(subnet);
        }
        let heard = Heard { held: new.len(), forged };
        if !new.is_empty() {
            self.ownership.store_heard(&mut self.context, new);
            self.routing.wake_all();
            self.route();
        }
        heard
    }

    /// If another claim to this subnet was accepted at the same epoch, some voter accepted both.
    fn compare_votes(&mut self, claim: &Claim, proof: &SignedClaim) {
        let others = voting::machine::VotingReads { members: &self.membership, register: self.ownership.register() };
        let Some(held) = others.register.latest(&claim.subnet).filter(|held| held.claim.epoch == claim.epoch) else { return };
        if let (Some(known), Some(votes)) = (held.votes(), &proof.votes)
            && held.claim.owner != claim.owner
        {
            let at = (claim.subnet, claim.epoch);
            self.voting.compare_votes(&mut self.context, others, at, (held.claim.owner, known), (claim.owner, votes));
        }
    }

    /// Whether voters accepted a claim that came from elsewhere.
    fn is_proven(&mut self, claim: &Claim, proof: &SignedClaim) -> bool {
        match self.voting.proves(claim, proof) {
            Some(true) => true,
            Some(false) => {
                self.context.refuse("claims without enough votes");
                false
            }
            None => {
                let me = self.context.me;
                if let Some(member) = self.membership.live().iter().copied().find(|member| *member != me) {
                    self.voting.list_missing(&mut self.context, member);
                }
                false
            }
        }
    }
}

/// Claims of ours.
impl Crawler {
    /// Claims of ours are durable: they hold, are told, and bring their history.
    pub(crate) fn claims_stored(&mut self, write: WriteId) {
        let Some(proofs) = self.ownership.stored(write) else { return };
        for proof in proofs {
            let Ok(claim) = proof.read() else { continue };
            self.ownership.end_claims_upto(claim.subnet, claim.epoch);
            let had_owner = self.ownership.register().latest(&claim.subnet).is_some();
            if self.hold(claim.clone(), proof.clone()) {
                self.own_claim_holds(&claim, proof.clone(), had_owner);
                self.doubt_if_over(&claim, &proof);
            } else {
                self.replication.expects_nothing(&claim.subnet);
            }
        }
        self.ownership.tell_claims(&mut self.context, &self.membership);
        self.routing.wake_all();
        self.route();
    }

    /// A claim of ours that was accepted in an earlier term of our lease is made anew before it is acted on: it was being stored when the
    /// term ended, or on disk when we stopped then.
    pub(crate) fn doubt_if_over(&mut self, claim: &Claim, proof: &SignedClaim) {
        let earlier = proof.votes.as_ref().is_some_and(|votes| votes.term < self.voting.term());
        if earlier && claim.owner == self.context.me && !claim.released {
            self.ownership.doubt(claim);
        }
    }

    /// Who has what a subnet's former owners recorded: as voters told when our claim was accepted; if that was in a life before, what they
    /// tell of all that we took over.
    fn awaited_replicas(&self, subnet: &Subnet) -> AwaitedReplicas {
        if let Some(expected) = self.replication.expected(subnet) {
            return expected.clone();
        }
        self.voting.inherited_replicas().map_or_else(AwaitedReplicas::unknown, AwaitedReplicas::new)
    }

    fn own_claim_holds(&mut self, claim: &Claim, proof: SignedClaim, had_owner: bool) {
        if claim.released {
            self.migration.release_stored(&mut self.context, claim.subnet, proof.clone());
        }
        let again = self.ownership.is_watched(&claim.subnet);
        match self.ownership.own_claim_holds(&mut self.context, &self.membership, claim, proof, had_owner) {
            Some(JournalsAt::Replicas) => {
                let awaited = self.awaited_replicas(&claim.subnet);
                self.replication.load(&mut self.context, &self.membership, claim.subnet, JournalsAt::Replicas, awaited);
            }
            // Who was handed a subnet has all of it: nobody is waited for.
            Some(at) => self.replication.load(&mut self.context, &self.membership, claim.subnet, at, AwaitedReplicas::default()),
            // What is claimed anew may have to begin anew.
            None if again => {}
            None => self.replication.expects_nothing(&claim.subnet),
        }
    }

    /// No member disputed a claim of ours: it is acted on.
    pub(crate) fn claim_proven(&mut self, subnet: Subnet) {
        self.replication.expects_nothing(&subnet);
        self.crawl.resume_subnet(&self.context, &subnet);
    }

    /// Whether a member disputes a claim of ours could not be heard for a while: it begins anew, with what others may know.
    pub(crate) fn claim_doubtful(&mut self, subnet: Subnet) {
        self.dissolve(subnet, true);
        let awaited = self.awaited_replicas(&subnet);
        self.replication.load(&mut self.context, &self.membership, subnet, JournalsAt::Replicas, awaited);
    }

    /// Takes over what is ours to take over, and looks for the history of what already is. Whoever has no room for a claim, or may be no
    /// member, leaves it to others: once it is accepted nobody else may have the subnet, and it is not told before it is stored.
    pub(crate) fn tick_take_over(&mut self) {
        if !self.shutdown.is_stopping() && self.crawl.has_disk_space() && !self.context.is_excluded() {
            let handed = |subnet: &Subnet, epoch| self.migration.was_handed(subnet, epoch);
            let votes = |member: &AccessPoint| self.voting.list().is_some_and(|list| list.contains(member));
            self.ownership.take_over(&mut self.context, &self.membership, self.delegation.knowledge(), votes, handed);
        }
    }
}

/// Claims hold.
impl Crawler {
    /// Enters a claim whose signature was checked; has all machines do what follows if it holds. Returns whether it does.
    pub(crate) fn hold(&mut self, claim: Claim, proof: SignedClaim) -> bool {
        let Some(holding) = self.ownership.merge(claim, proof) else { return false };
        if holding.forgets_epochs() {
            self.context.refuse("claims of which the voters of a later list did not know");
        }
        let claim = &holding.claim;
        self.migration.claim_holds(&self.context, claim);
        self.replication.claim_holds(claim);
        self.report.claim_holds(&self.context, &self.membership, &self.ownership, claim, holding.before.as_ref());
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

    /// Another member's claim holds: what we crawled in its subnet as part of a larger one is its owner's now.
    fn yield_to(&mut self, claimed: Subnet) {
        for ours in self.crawl.sites().larger_than(&claimed) {
            self.yield_to_smaller(ours);
        }
    }
}
