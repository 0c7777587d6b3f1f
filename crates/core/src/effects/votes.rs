//! Effects of what voters decide: leases are renewed, claims accepted.

use crate::{
    crawler::Crawler,
    pending::Pending,
    replication::{Lived, taken_over},
    voting::{asker::Asker, proposals::Accepted},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::SignedClaim,
    ids::{Ticket, WriteId},
    message::{Request, Response},
    replica::NamedReplica,
    time::Moment,
    vote::SignedPart,
};

impl Crawler {
    /// At the start: a swarm begins here unless there is one to join.
    pub(crate) fn wake_votes(&mut self) {
        if self.context.settings.founds {
            self.voting.found(&mut self.context);
        }
        self.lease_changed();
        for address in self.context.settings.own_addresses.clone() {
            self.voting.have(&self.context, address);
        }
    }

    /// A boot clock that stood still does not tell how old the lease is.
    pub(crate) fn compare_clocks(&mut self) {
        if self.voting.compare_clocks(self.context.now) {
            self.lease_changed();
        }
    }

    /// Has the fence know what the voters said, and replication what they know.
    fn lease_changed(&mut self) {
        let (until, why_not) = self.voting.lease(self.context.me);
        self.membership.leased(until, why_not);
        self.take_over_accepted();
        // What was owned in a term before and is not claimed anew yet may be another's by now, who does not have what is written to it here.
        let needed = self.voting.needed_replicas(self.context.now.moment).filter(|_| !self.ownership.is_doubtful());
        self.replication.voters_know(&self.context, needed);
        if self.replication.lacks_replicas()
            && let Some(inherited) = self.voting.inherited_replicas()
        {
            self.replication.learn_replicas(&self.context, &inherited);
        }
        self.settle_signals();
    }

    /// Claims of ours were accepted: a successor of ours must hear who has what their former owners recorded before we act on them.
    fn take_over_accepted(&mut self) {
        let running = self.context.now.moment.since(self.context.started);
        let mut claims = Vec::new();
        let own = NamedReplica { member: self.context.me, store: self.context.store };
        for Accepted { proof, before } in self.voting.take_accepted() {
            let told_for = |member: &AccessPoint| self.report.told_for(member);
            let lived = |member: &AccessPoint| told_for(member).map(|(told, last)| Lived { told, of: last.since(self.context.started) });
            let (before, awaited) = taken_over(before.into_iter().map(|set| set.replicas), own, lived, running);
            if let Ok(claim) = proof.read() {
                self.replication.insert_expected(claim.subnet, awaited);
            }
            claims.push((proof, before));
        }
        if !claims.is_empty() {
            self.voting.take_over(&mut self.context, claims);
        }
    }

    /// As a voter, this access point accepts second claims at an epoch, too, or does so no more: a laboratory's liar.
    pub fn accept_twice(&mut self, twice: bool) {
        self.voting.accept_twice(twice);
    }

    pub(crate) fn tick_voting(&mut self) {
        if self.shutdown.is_leaving() {
            self.voting.leave(self.context.now.moment);
        }
        let (fetches, lease) = (self.crawl.fetches(), self.context.settings.roster.lease);
        let is_due = |due: Moment| due <= self.context.now.moment.after(lease);
        let is_idle = fetches.in_flight() == 0 && !fetches.scheduler().next_due().is_some_and(is_due);
        let (voting, cx, others) = self.voting();
        voting.tick(cx, others, is_idle);
        self.lease_changed();
        self.ownership.claim_again(&mut self.context, &self.membership);
        self.settle_signals();
    }

    /// Claims of ours are voted on.
    pub(crate) fn propose(&mut self, claims: Vec<SignedClaim>, part: Option<Box<SignedPart>>) {
        let (voting, cx, others) = self.voting();
        voting.propose(cx, others, claims, part);
        voting.settle(cx, others);
    }

    pub(crate) fn tidy_votes(&mut self) {
        let (voting, cx, others) = self.voting();
        voting.tidy(cx, others);
    }

    /// A member asks for a vote, or for what was voted on.
    pub(crate) fn asked_to_vote(&mut self, from: AccessPoint, ticket: Ticket, mut request: Request) {
        if let Request::Propose(proposal) = &mut request {
            // What the claims follow must be known here.
            let releases = std::mem::take(&mut proposal.releases);
            self.hear_claims(releases);
        }
        let (voting, cx, others) = self.voting();
        voting.asked(cx, others, Asker::Member(from, ticket), request);
        voting.settle(cx, others);
        self.lease_changed();
    }

    /// A voter answered, or did not.
    pub(crate) fn vote_answered(&mut self, from: AccessPoint, pending: Pending, answer: Option<Response>) {
        let (voting, cx, others) = self.voting();
        voting.answered(cx, others, from, pending, answer);
        voting.settle(cx, others);
        self.lease_changed();
    }

    /// What concerns votes is durable.
    pub(crate) fn voting_stored(&mut self, write: WriteId) {
        let (voting, cx, others) = self.voting();
        voting.stored(cx, write);
        voting.settle(cx, others);
        self.lease_changed();
    }
}
