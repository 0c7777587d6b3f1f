//! State machine of replication.
//!
//! Rows of our journals are stored durably, then copied to replicas, then count as recorded; and rows of others are kept for them.

use crate::{
    context::Context,
    event::{Command, CopyAnswer, PeerCommand, StoreCommand},
    membership::Membership,
    ownership::Ownership,
    pending::Pending,
    replication::{Replication, Reputation, append_queue::Append},
    routing::outbox::Item,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::Claim,
    ids::{Ticket, WriteId},
    journal::{JournalEntry, JournalKey, JournalRow},
    message::{Request, Response},
    replica::NamedReplica,
    subnet::Subnet,
    time::Millis,
};
use std::collections::{BTreeMap, BTreeSet};

/// A replica that did not take rows is tried again after so long, and after twice as long each time that it takes none again.
const COPY_AGAIN: Millis = 1_000;

/// At the latest after so long.
const MAX_COPY_AGAIN: Millis = 8_000;

/// The same for one that has no room for more rows of ours.
const FULL_AGAIN: Millis = 600_000;

/// What a row counts for besides its entry before it is stored: about its key, in bytes.
const ROW_OVERHEAD: usize = 48;

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
        let Append { heads, outgoing, adopted } = self.queue.stored(write)?;
        for (key, upto) in heads {
            self.replicas.stored(&key, upto);
            if adopted {
                self.replicas.join(&key, upto);
            }
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
    /// Returns whether it has no room for more, which was not known: then others are to be chosen.
    pub(crate) fn copied(&mut self, cx: &mut Context, to: AccessPoint, sent: &BTreeMap<JournalKey, u64>, answer: CopyAnswer) -> bool {
        let now = cx.now.moment;
        if let CopyAnswer::Compared(heads) = &answer
            && !heads.is_empty()
        {
            self.replicas.compared(to, heads, sent);
            return false;
        }
        let is_full = matches!(answer, CopyAnswer::NoRoom);
        let heads = if let CopyAnswer::Kept(heads) = answer { heads } else { Vec::new() };
        let taken: BTreeSet<_> =
            heads.iter().filter(|(key, head)| sent.get(key).is_some_and(|upto| head >= upto)).map(|(key, _)| key).collect();
        if !heads.is_empty() {
            self.replicas.answered(to, &heads, sent);
        }
        self.placement.answered(&to, !taken.is_empty());
        // Refused, lost, or to no effect: the same again at once would go round in circles.
        if is_full {
            cx.refuse("rows of ours that a replica has no room for");
            self.replicas.pause(to, now.after(FULL_AGAIN));
        } else if taken.is_empty() {
            let doubled = COPY_AGAIN << self.replicas.failed(to).min(10);
            self.replicas.pause(to, now.after(doubled.min(MAX_COPY_AGAIN)));
        } else {
            self.replicas.refused(to, sent.keys().filter(|key| !taken.contains(key)).cloned(), now.after(COPY_AGAIN));
        }
        is_full && self.placement.is_full(now, to)
    }

    /// Sends each replica that nothing is on its way to the rows that it lacks.
    pub(crate) fn send_copies(&mut self, cx: &mut Context) {
        cx.commands.extend(self.replicas.orders().into_iter().map(|order| Command::Peers(PeerCommand::Copy(order))));
    }

    /// Who keeps copies of a journal of ours: our replicas, and the member that is to have it next.
    pub(crate) fn assign(&mut self, next_owner: Option<AccessPoint>, key: &JournalKey) {
        let mut replicas: Vec<_> = self.placement.all().collect();
        replicas.extend(next_owner.filter(|next| !replicas.contains(next)));
        self.replicas.assign(key, &replicas);
    }

    /// Has a journal stored and copied whose host goes on in another subnet of ours, before it does.
    pub(crate) fn adopt(&mut self, cx: &mut Context, next_owner: Option<AccessPoint>, key: &JournalKey, entries: &[JournalEntry]) {
        self.assign(next_owner, key);
        self.queue.adopt(cx, key.clone(), entries, Vec::new());
    }

    /// Says anew who keeps copies of all journals of a subnet.
    pub(crate) fn assign_subnet(&mut self, next_owner: Option<AccessPoint>, subnet: &Subnet) {
        for key in self.replicas.filed_under(subnet) {
            self.assign(next_owner, &key);
        }
    }

    /// Looks at who keeps copies of our journals, and chooses others if need be; `others` is what others say of members.
    pub(crate) fn review_replicas(
        &mut self,
        cx: &mut Context,
        members: &Membership,
        others: Reputation<impl Fn(&AccessPoint) -> bool, impl Fn(&AccessPoint) -> bool>,
        next_owner: impl Fn(&Subnet) -> Option<AccessPoint>,
    ) {
        let (whole, recorded) = (|replica: &_| self.replicas.is_whole(replica), |replica: &_| self.replicas.has_recorded(replica));
        let changed = self.placement.review(cx, members, others, whole, recorded);
        if !changed.chosen.is_empty() || !changed.dropped.is_empty() {
            self.assign_all(next_owner);
        }
        changed.dropped.iter().for_each(|member| self.replicas.end(member));
        for member in changed.chosen {
            self.replicas.begin(member);
            ask_for_store(cx, member);
        }
        self.replicas.need(self.placement.needed(cx.me));
    }

    /// The voters know who has all that we recorded; `needed` are those whom they may tell to a successor.
    pub(crate) fn voters_know(&mut self, cx: &Context, needed: Option<Vec<NamedReplica>>) {
        self.placement.told(needed);
        if let Some(needed) = self.placement.needed_now(cx.me) {
            self.replicas.need(needed);
        }
    }

    fn assign_all(&mut self, next_owner: impl Fn(&Subnet) -> Option<AccessPoint>) {
        for key in self.replicas.keys() {
            self.assign(next_owner(&key.subnet), &key);
        }
    }

    /// Asks replicas that have not said yet which database they use.
    pub(crate) fn ask_for_stores(&self, cx: &mut Context) {
        self.placement.unknown().for_each(|member| ask_for_store(cx, member));
    }

    /// A connection to a member was made: if it is a replica, it may have lost its disk before.
    pub(crate) fn connected(&self, cx: &mut Context, member: AccessPoint) {
        if self.placement.contains(&member) {
            ask_for_store(cx, member);
        }
    }

    /// A member said which database it uses.
    pub(crate) fn uses_store(&mut self, cx: &Context, member: AccessPoint, answer: Option<Response>) {
        if let Some(Response::Held { store, .. }) = answer
            && self.placement.uses(&member, store)
        {
            self.replicas.begin(member);
            self.replicas.need(self.placement.needed(cx.me));
        }
    }

    /// A member left for good.
    pub(crate) fn member_left(&mut self, cx: &Context, member: AccessPoint) {
        self.placement.left(cx.now.moment, &member);
    }

    /// An owner asks us to keep rows. Only the owner of a subnet may, by our map, and the one that a release names as the next; and only as
    /// many as its quota allows. The others of a message are left out of the answer: a sender whose claim has not arrived here yet tries again.
    pub(crate) fn keep(&mut self, cx: &mut Context, ownership: &Ownership, from: AccessPoint, ticket: Ticket, mut rows: Vec<JournalRow>) {
        let sent = rows.len();
        rows.retain(|row| may_copy(ownership, &from, &row.key));
        if rows.len() < sent {
            cx.refuse("journal rows of subnets that the sender does not own");
        }
        if rows.is_empty() && sent > 0 {
            return cx.answer(ticket, Response::Refused("the sender does not own the subnet".to_owned()));
        }
        let bytes: u64 = rows.iter().map(|row| (row.entry.len() + ROW_OVERHEAD) as u64).sum();
        if self.kept.of(&from).saturating_add(bytes) > cx.settings.max_kept_per_owner {
            cx.refuse("journal rows beyond what is kept for one owner");
            return cx.answer(ticket, Response::NoRoom);
        }
        self.kept.arrive(ticket, from, bytes);
        // A new run begins: the last one before it is still needed until it is complete, those before that are not. Which one that is only the
        // store knows: a run that caught up with its tree has a number that is greater by more than one.
        for row in rows.iter().filter(|row| row.sequence == 0 && row.key.run > 2) {
            cx.commands.push_back(Command::Store(StoreCommand::DropRuns { before: row.key.clone(), but_newest: true }));
        }
        cx.commands.push_back(Command::Store(StoreCommand::KeepRows { ticket, rows }));
    }

    /// An owner asks with which rows our copies of its journals begin. Those that it may not copy here are left out.
    pub(crate) fn compare_rows(
        &self,
        cx: &mut Context,
        ownership: &Ownership,
        from: AccessPoint,
        ticket: Ticket,
        mut journals: Vec<(JournalKey, u64)>,
    ) {
        journals.retain(|(key, _)| may_copy(ownership, &from, key));
        cx.commands.push_back(Command::Store(StoreCommand::DigestRows { ticket, journals }));
    }

    /// So many rows of a journal of ours were found here, which may be more than was known since we began: they are copied like any other.
    pub(crate) fn holds(&mut self, key: &JournalKey, rows: u64) {
        if self.replicas.stored_rows(key) < rows {
            self.replicas.stored(key, rows);
            self.replicas.join(key, rows);
        }
    }

    /// A journal is of a run that is over: its rows are not copied any more.
    pub(crate) fn retire(&mut self, key: &JournalKey) {
        self.replicas.forget(key);
        self.forwarding.forget(key);
    }

    /// A site is not ours any more: nor are its journals of all runs, nor the rows of them that wait to be stored.
    pub(crate) fn forget_site(&mut self, site: &JournalKey) {
        for key in self.replicas.of_host(site) {
            self.retire(&key);
        }
        self.forwarding.forget(site);
        self.queue.forget_host(site);
    }
}

/// What the journals on our disk take.
impl Replication {
    /// Journals grew or shrank by so many bytes; `kept` is what rows of another owner were stored for, if it was that.
    pub(crate) fn resized(&mut self, cx: &Context, ownership: &Ownership, kept: Option<Ticket>, growth: BTreeMap<Subnet, i64>) {
        if let Some(ticket) = kept {
            self.kept.arrived(ticket);
        }
        for (subnet, growth) in growth {
            // Only rows of claimed subnets are written. What is left of others is nobody's who could be refused.
            let owner = ownership.register().latest(&subnet).map_or(cx.me, |held| held.claim.owner);
            self.kept.resized(subnet, owner, growth);
        }
    }

    /// A claim holds: what is here of its subnet takes its owner's quota from now on.
    pub(crate) fn claim_holds(&mut self, claim: &Claim) {
        self.kept.owned_by(claim.subnet, claim.owner);
    }

    /// The most bytes that the journals of one other owner take here.
    pub(crate) fn most_kept(&self, cx: &Context) -> u64 {
        self.kept.most_but(&cx.me)
    }
}

/// What others ask of it.
impl Replication {
    /// Whether rows of this journal below `upto` are recorded.
    pub(crate) fn is_recorded(&self, key: &JournalKey, upto: u64) -> bool {
        self.recorded(key) >= upto
    }

    /// Rows of a journal of ours below this one are recorded.
    pub(crate) fn recorded(&self, key: &JournalKey) -> u64 {
        self.replicas.recorded(key)
    }

    /// Who has all that we recorded, ourselves first; empty if nobody else has yet who should.
    pub(crate) fn names(&self) -> &[NamedReplica] {
        self.placement.names()
    }

    /// The members that keep copies, those included that have not all yet.
    pub(crate) fn keepers(&self) -> impl Iterator<Item = AccessPoint> {
        self.placement.all()
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

    /// Whether somebody who has all that we recorded is not known to the voters yet.
    pub(crate) fn is_naming(&self) -> bool {
        self.placement.is_to_be_told()
    }

    /// Whether rows are being stored, or stored ones are not at all their replicas yet that take them.
    pub(crate) fn is_recording(&self) -> bool {
        self.queue.is_appending() || !self.replicas.settled(|replica| !self.placement.is_failing(replica))
    }
}

/// Whether a member may have rows of this journal kept: it owns the subnet, by our map, or a release names it as the next owner.
fn may_copy(ownership: &Ownership, from: &AccessPoint, key: &JournalKey) -> bool {
    let owns = |claim: &Claim| claim.owner == *from || (claim.released && claim.runner_up == Some(*from));
    ownership.register().latest(&key.subnet).is_some_and(|held| owns(&held.claim))
}

/// Asks a replica which database it uses.
fn ask_for_store(cx: &mut Context, member: AccessPoint) {
    cx.ask(member, Pending::StoreOf, Request::Holds(Vec::new()));
}
