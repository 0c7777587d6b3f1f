//! What is done about subnets that should have another owner, and about the judgements before.

use crate::{
    context::Context,
    crawler::Crawler,
    migration::{
        Migration,
        handover::{Offer, Proposal, Surroundings},
    },
};
use nearcrawl_model::{
    access_point::AccessPoint, claim::SignedClaim, fetch::FetchReport, journal::JournalEntry, message::Response, subnet::Subnet, url::Host,
};

/// Hand-overs and the judgements before them.
impl Crawler {
    /// Has migration do something, with all that it reads; then what it wants of others is done.
    fn migrate<T>(&mut self, act: impl FnOnce(&mut Migration, &mut Context, &Surroundings<'_>) -> T) -> T {
        let held_back = self.held_back().is_some();
        let around = Surroundings {
            membership: &self.membership,
            ownership: &self.ownership,
            crawl: &self.crawl,
            replication: &self.replication,
            delegation: &self.delegation,
            report: &self.report,
            held_back,
        };
        let done = act(&mut self.migration, &mut self.context, &around);
        self.settle_signals();
        done
    }

    /// A subnet of ours should have another owner.
    pub(crate) fn hand_over(&mut self, subnet: Subnet, to: AccessPoint, why: String) {
        self.migrate(|migration, cx, around| migration.propose(cx, around, [Proposal { subnet, to, why }]));
    }

    /// An owner offers us a subnet.
    pub(crate) fn offered(&mut self, ticket: u64, offer: Offer) {
        self.migrate(|migration, cx, around| migration.offered(cx, around, ticket, offer));
    }

    /// An owner hands us a subnet whose journals are all here.
    pub(crate) fn take_over(&mut self, from: AccessPoint, ticket: u64, release: SignedClaim) {
        if self.migration.handed_over(&mut self.context, from, ticket, &release) {
            self.hear_claims(vec![release]);
            self.tick_succession();
            self.answer(ticket, Response::Noted);
        }
    }

    /// Whoever we offered a subnet to answered, or did not.
    pub(crate) fn offer_answered(&mut self, subnet: Subnet, from: AccessPoint, answer: Option<Response>) {
        self.migration.offer_answered(&mut self.context, subnet, from, answer);
        self.settle_signals();
    }

    /// Takes every hand-over one step further, if it is time.
    pub(crate) fn tick_moves(&mut self) {
        for subnet in self.migration.outgoing() {
            self.migrate(|migration, cx, around| migration.step(cx, around, subnet));
        }
    }

    /// Looks at how busy we are.
    pub(crate) fn tick_load(&mut self) {
        self.migrate(|migration, cx, around| migration.tick_load(cx, around));
    }

    /// A request to a server of ours ended.
    pub(crate) fn time_access(&mut self, subnet: Subnet, report: &FetchReport) {
        self.migrate(|migration, cx, around| migration.time_access(cx, around, subnet, report));
    }

    /// A tree of a subnet of ours is done for this time.
    pub(crate) fn end_access(&mut self, subnet: Subnet) {
        self.migrate(|migration, cx, around| migration.end_access(cx, around, subnet));
    }

    /// The next owner of a subnet is known, or there is none any more: who has copies of its journals is another now.
    pub(crate) fn next_owner_changed(&mut self, subnet: Subnet) {
        self.replication.assign_subnet(&self.context, &self.membership, self.migration.next_owner(&subnet), &subnet);
    }

    /// A subnet stays: its crawl goes on.
    pub(crate) fn hand_over_called_off(&mut self, subnet: Subnet) {
        self.next_owner_changed(subnet);
        self.crawl.resume_subnet(&self.context, &subnet);
        self.route();
    }

    /// Nothing of a subnet is under way any more: its last row, if it has a journal, is stored with all before it.
    pub(crate) fn hand_over_closes(&mut self, last_row: Option<(Host, JournalEntry)>) {
        if let Some((host, entry)) = last_row {
            self.journal(&host, entry);
        }
        self.replication.flush(&mut self.context);
    }
}
