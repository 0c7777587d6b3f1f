//! Effects of subnets that are handed over, and of how busy we are.

use crate::{
    crawler::Crawler,
    migration::handover::{Offer, Proposal},
};
use nearcrawl_model::{
    access_point::AccessPoint, claim::SignedClaim, ids::Ticket, journal::JournalEntry, message::Response, subnet::Subnet, url::Host,
};

impl Crawler {
    /// A subnet of ours should have another owner.
    pub(crate) fn hand_over(&mut self, subnet: Subnet, to: AccessPoint, why: String) {
        self.migrate(|migration, cx, around| migration.propose(cx, around, [Proposal { subnet, to, why }]));
    }

    /// An owner offers us a subnet.
    pub(crate) fn offered(&mut self, ticket: Ticket, offer: Offer) {
        self.migrate(|migration, cx, around| migration.offered(cx, around, ticket, offer));
    }

    /// An owner hands us a subnet whose journals are all here.
    pub(crate) fn take_over(&mut self, from: AccessPoint, ticket: Ticket, release: SignedClaim) {
        if self.migration.handed_over(&mut self.context, from, ticket, &release) {
            self.hear_claims(vec![release]);
            self.tick_recovery();
            self.tick_take_over();
            self.answer(ticket, Response::Noted);
        }
    }

    /// The member that we offered a subnet to answered, or did not.
    pub(crate) fn offer_answered(&mut self, subnet: Subnet, from: AccessPoint, answer: Option<Response>) {
        self.migration.offer_answered(&mut self.context, subnet, from, answer);
        self.settle_signals();
    }

    /// Takes every hand-over one step further, if it is time; does not wait any more for those that should have come long ago.
    pub(crate) fn tick_moves(&mut self) {
        self.migration.expire_incoming(&self.context);
        for subnet in self.migration.outgoing() {
            self.migrate(|migration, cx, around| migration.step(cx, around, subnet));
        }
    }

    /// Gives away what has work while we may ask nothing.
    pub(crate) fn tick_departure(&mut self) {
        match self.context.outlook.back_at {
            Some(back_at) => self.migrate(|migration, cx, around| migration.depart(cx, around, back_at)),
            None => self.migration.stays(),
        }
    }

    /// Looks at how busy we are.
    pub(crate) fn tick_load(&mut self) {
        self.migrate(|migration, cx, around| migration.tick_load(cx, around));
    }

    /// The next owner of a subnet is known, or there is none any more: who has copies of its journals is another now.
    pub(crate) fn next_owner_changed(&mut self, subnet: Subnet) {
        self.replication.assign_subnet(self.migration.next_owner(&subnet), &subnet);
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
