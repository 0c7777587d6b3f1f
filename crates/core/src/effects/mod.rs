//! Effects of one fact on several machines, in order: one file for each subject.
//!
//! Each machine is called once for a fact and decides for itself. What is here joins them: a machine together with those that it may read or
//! change.

mod claims;
mod consent;
mod handover;
mod journals;
mod members;
mod moved_hosts;
mod owners;
mod routing;
mod subnets;
mod surveys;
mod totals;
mod visits;
mod votes;

use crate::{
    context::Context,
    crawl::{self, Crawl},
    crawler::Crawler,
    delegation::{self, Delegation},
    migration::{Migration, handover::Surroundings},
    replication::Replication,
    voting::{self, Voting},
};

/// What those say is counted who are known to be no members.
pub(crate) const EXCLUDED: &str = "messages of those who were expelled or whose certificates ended";

/// Machines, each with what it reads and where its commands go.
impl Crawler {
    /// Voting, with what it reads and where its commands go.
    fn voting(&mut self) -> (&mut Voting, &mut Context, voting::machine::VotingReads<'_>) {
        let others = voting::machine::VotingReads { members: &self.membership, register: self.ownership.register() };
        (&mut self.voting, &mut self.context, others)
    }

    /// Delegation, with what it reads and where its commands go.
    pub(crate) fn delegating(&mut self) -> (&mut Delegation, &mut Context, delegation::DelegationReads<'_>) {
        let others = delegation::DelegationReads { members: &self.membership, ownership: &self.ownership, shutdown: &self.shutdown };
        (&mut self.delegation, &mut self.context, others)
    }

    /// The crawl, with what it changes and reads besides.
    fn crawling(&mut self) -> (&mut Crawl, &mut Context, &mut Replication, crawl::CrawlReads<'_>) {
        let Crawler { ownership, delegation, migration, routing, .. } = self;
        let others = crawl::CrawlReads { ownership, delegation, migration, routing };
        (&mut self.crawl, &mut self.context, &mut self.replication, others)
    }

    /// Has migration do something, with all that it reads; then what it wants of others is done.
    fn migrate<T>(&mut self, act: impl FnOnce(&mut Migration, &mut Context, &Surroundings<'_>) -> T) -> T {
        let held_back = self.view().held_back();
        let around = Surroundings {
            membership: &self.membership,
            ownership: &self.ownership,
            crawl: &self.crawl,
            replication: &self.replication,
            delegation: &self.delegation,
            report: &self.report,
            held_back: held_back.as_ref(),
        };
        let done = act(&mut self.migration, &mut self.context, &around);
        self.settle_signals();
        done
    }
}
