//! Effects of rows of journals that are written, stored and copied.

use crate::{crawler::Crawler, event::CopyAnswer, replication::Reputation, routing::outbox::Item, voting::plan::MAX_CHOSEN_VOTERS};
use nearcrawl_model::{
    access_point::AccessPoint,
    ids::{Ticket, WriteId},
    journal::{JournalEntry, JournalKey},
    message::Response,
    subnet::Subnet,
    url::Host,
};
use std::collections::BTreeMap;

/// In a swarm of at most so many members voters are preferred as replicas: so few can keep the copies of all.
const SMALL: usize = 4 * MAX_CHOSEN_VOTERS;

impl Crawler {
    /// Enters what happened into a site's journal.
    pub(crate) fn journal(&mut self, host: &Host, entry: JournalEntry) {
        self.crawl.journal(&mut self.context, &mut self.replication, host, entry);
    }

    /// Rows are durable: what they name goes on its way, and who waited for them is answered.
    pub(crate) fn rows_stored(&mut self, write: WriteId, growth: BTreeMap<Subnet, i64>) {
        self.replication.resized(&self.context, &self.ownership, None, growth);
        let Some(outgoing) = self.replication.stored(write) else { return };
        self.send_out(outgoing);
        self.acknowledge();
    }

    /// Rows of another owner are durable: it hears how far we have them.
    pub(crate) fn rows_kept(&mut self, ticket: Ticket, heads: Vec<(JournalKey, u64)>, growth: BTreeMap<Subnet, i64>) {
        self.replication.resized(&self.context, &self.ownership, Some(ticket), growth);
        self.answer(ticket, Response::Kept(heads));
    }

    /// URLs named by stored rows go on their way.
    pub(super) fn send_out(&mut self, items: Vec<Item>) {
        if items.is_empty() {
            return;
        }
        self.replication.forward(&items);
        self.routing.put(items);
        self.route();
    }

    /// Rows are stored and copied, and what is of no use any more is dropped.
    pub(crate) fn tick_copies(&mut self) {
        self.replication.tick(&mut self.context);
    }

    /// Journals say how far the URLs that they name have arrived; those of earlier runs go when the newer one is whole.
    pub(crate) fn tick_journals(&mut self) {
        for (key, before) in self.replication.newly_forwarded() {
            // Rows are numbered anew in each run: a mark of the run before would hide URLs of this one that are still under way.
            if self.crawl.site(&key.host).is_some_and(|site| site.key == key) {
                self.journal(&key.host, JournalEntry::Forwarded { before });
            }
        }
        self.crawl.drop_superseded(&mut self.context, &mut self.replication);
    }

    /// A replica answered a copy, or did not.
    pub(crate) fn copied(&mut self, to: AccessPoint, sent: &BTreeMap<JournalKey, u64>, answer: CopyAnswer) {
        if self.replication.copied(&mut self.context, to, sent, answer) {
            self.review_replicas();
        }
        self.acknowledge();
        self.replication.send_copies(&mut self.context);
    }

    /// Looks at who keeps copies of our journals: the living may be others, or one has caught up.
    pub(super) fn review_replicas(&mut self) {
        let next_owner = |subnet: &Subnet| self.migration.next_owner(subnet);
        let now = self.context.now.moment;
        // A voter has held leases for long.
        let list = self.voting.list().filter(|_| self.membership.live().len() <= SMALL);
        let vouched = |member: &AccessPoint| list.is_some_and(|list| list.contains(member));
        let says_so = |member: &AccessPoint| self.membership.is_about_to_leave(now, member);
        let others = Reputation { vouched, leaves: |member: &AccessPoint| says_so(member) || self.voting.is_about_to_leave(now, member) };
        self.replication.review_replicas(&mut self.context, &self.membership, others, next_owner);
        let released = self.ownership.has_released(&self.context.me);
        self.voting.name_replicas(&self.context, self.replication.names().to_vec(), released);
        if !released && self.replication.has_copied_all() {
            self.voting.has_copied_all(&self.context);
        }
        self.acknowledge();
    }

    /// Asks new replicas for what is not known of them yet.
    pub(crate) fn tick_replicas(&mut self) {
        self.review_replicas();
        self.replication.ask_for_stores(&mut self.context);
    }

    /// A member left for good: what it kept is gone.
    pub(crate) fn replica_left(&mut self, member: AccessPoint) {
        self.replication.member_left(&self.context, member);
        self.review_replicas();
    }
}
