//! Rows of our journals are stored durably, then copied to replicas, then count as recorded; and rows of others are kept for them.

use crate::{
    context::Context,
    event::{Command, PeerCommand, StoreCommand},
    membership::Membership,
    ownership::Ownership,
    replication::{Replication, append_queue::Append, replicas::REPLICAS},
    routing::outbox::Item,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    ids::{Ticket, WriteId},
    journal::{JournalEntry, JournalKey, JournalRow},
    message::Response,
    subnet::Subnet,
    time::Millis,
};
use std::collections::BTreeMap;

/// A replica that did not take rows is tried again after so long.
const COPY_AGAIN: Millis = 1_000;

/// What happens to rows.
impl Replication {
    /// Queues what a site has applied as the row of this sequence number.
    pub(crate) fn push(&mut self, cx: &Context, key: JournalKey, sequence: u64, entry: &JournalEntry) {
        self.queue.push(cx.now.moment, key, sequence, entry);
    }

    /// Has the queued rows stored if there are many and this was the last of its kind. A visit is stored together with what is kept of it.
    pub(crate) fn flush_if_full(&mut self, cx: &mut Context, last: &JournalEntry) {
        if self.queue.is_full() && !matches!(last, JournalEntry::Visited { .. }) {
            self.queue.flush(cx);
        }
    }

    /// Has the queued rows stored.
    pub(crate) fn flush(&mut self, cx: &mut Context) {
        self.queue.flush(cx);
    }

    /// Rows are durable: now they count. Returns the URLs that they name, which go on their way now; none if no such rows were waited for.
    pub(crate) fn stored(&mut self, write: WriteId) -> Option<Vec<Item>> {
        let Append { heads, outgoing } = self.queue.stored(write)?;
        for (key, upto) in heads {
            self.replicas.stored(&key, upto);
        }
        Some(outgoing)
    }

    /// URLs named by stored rows go on their way.
    pub(crate) fn forward(&mut self, items: &[Item]) {
        self.forwarding.sent(items);
    }

    /// These URLs have been taken in by their owners, or lead nowhere.
    pub(crate) fn delivered(&mut self, items: &[Item]) {
        self.forwarding.delivered(items);
    }

    /// How far everything outgoing of which journals has arrived, where that is new: it is to be written down, so that a successor need
    /// not send it again.
    pub(crate) fn newly_forwarded(&mut self) -> Vec<(JournalKey, u64)> {
        self.forwarding.mark()
    }

    /// Stores and copies what is due.
    pub(crate) fn tick(&mut self, cx: &mut Context) {
        if self.queue.is_due(cx.now.moment) {
            self.queue.flush(cx);
        }
        self.replicas.resume(cx.now.moment);
        self.send_copies(cx);
    }

    /// A replica answered a copy, or did not.
    pub(crate) fn copied(
        &mut self,
        cx: &Context,
        to: AccessPoint,
        sent: &BTreeMap<JournalKey, u64>,
        heads: Option<Vec<(JournalKey, u64)>>,
    ) {
        let arrived = heads.iter().flatten().any(|(key, head)| sent.get(key).is_some_and(|upto| head >= upto));
        if let Some(heads) = heads {
            self.replicas.answered(to, &heads, sent);
        }
        if !arrived {
            // Refused, lost, or to no effect: the same again at once would go round in circles.
            self.replicas.pause(to, cx.now.moment.after(COPY_AGAIN));
        }
    }

    /// Sends each replica that nothing is on its way to the rows that it lacks.
    pub(crate) fn send_copies(&mut self, cx: &mut Context) {
        cx.commands.extend(self.replicas.orders().into_iter().map(|order| Command::Peers(PeerCommand::Copy(order))));
    }

    /// Says who keeps copies of a journal of ours: the next stewards of its subnet, and the member that is to have it next.
    pub(crate) fn assign(&mut self, cx: &Context, members: &Membership, next_owner: Option<AccessPoint>, key: &JournalKey) {
        let stewards = members.stewards_of(&key.subnet).into_iter();
        let mut replicas: Vec<_> = stewards.filter(|steward| *steward != cx.me).take(REPLICAS).collect();
        replicas.extend(next_owner.filter(|next| !replicas.contains(next)));
        self.replicas.assign(key, &replicas);
    }

    /// Says anew who keeps copies of all journals of a subnet.
    pub(crate) fn assign_subnet(&mut self, cx: &Context, members: &Membership, next_owner: Option<AccessPoint>, subnet: &Subnet) {
        for key in self.replicas.filed_under(subnet) {
            self.assign(cx, members, next_owner, &key);
        }
    }

    /// An owner asks us to keep rows. Only the owner of a subnet may.
    pub(crate) fn keep(&self, cx: &mut Context, ownership: &Ownership, from: AccessPoint, ticket: Ticket, rows: Vec<JournalRow>) {
        let allowed = rows.iter().all(|row| ownership.register().claim(&row.key.subnet).is_none_or(|claim| claim.owner == from));
        if !allowed {
            cx.refuse("journal rows of subnets that the sender does not own");
            return cx.answer(ticket, Response::Refused("the sender does not own the subnet".to_owned()));
        }
        // A new run begins: the one before is still needed until it is complete, those before that are not.
        for row in rows.iter().filter(|row| row.sequence == 0 && row.key.run > 2) {
            cx.commands.push_back(Command::Store(StoreCommand::DropJournal(JournalKey { run: row.key.run - 2, ..row.key.clone() })));
        }
        cx.commands.push_back(Command::Store(StoreCommand::KeepRows { ticket, rows }));
    }

    /// A journal is of a run that is over: its rows are not copied any more.
    pub(crate) fn retire(&mut self, key: &JournalKey) {
        self.replicas.forget(key);
        self.forwarding.forget(key);
    }

    /// A journal is not ours any more: nor are the rows of it that wait to be stored.
    pub(crate) fn forget(&mut self, key: &JournalKey) {
        self.retire(key);
        self.queue.forget(key);
    }
}

/// What others ask of it.
impl Replication {
    /// Whether rows of this journal below `upto` are recorded.
    pub(crate) fn is_recorded(&self, key: &JournalKey, upto: u64) -> bool {
        self.replicas.recorded(key) >= upto
    }

    /// Whether every row of a subnet's journals is durable here.
    pub(crate) fn all_is_stored(&self, subnet: &Subnet) -> bool {
        !self.queue.concerns(subnet)
    }

    /// How many rows of a subnet's journals a replica lacks; none if it does not keep all of them.
    pub(crate) fn lacking(&self, replica: AccessPoint, subnet: &Subnet) -> Option<u64> {
        self.replicas.lacking(replica, subnet)
    }

    /// Rows that wait to be stored.
    pub(crate) fn rows_waiting(&self) -> usize {
        self.queue.len()
    }

    /// Whether rows that wait to be stored name URLs for others.
    pub(crate) fn has_outgoing(&self) -> bool {
        self.queue.has_outgoing()
    }

    /// Whether rows are being stored, or stored ones are not at all their replicas yet.
    pub(crate) fn is_recording(&self) -> bool {
        self.queue.is_appending() || !self.replicas.settled()
    }
}
