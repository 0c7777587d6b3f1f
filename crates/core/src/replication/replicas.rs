//! Which member has which rows of our journals, and what is *recorded*.
//!
//! A journal's rows are stored by the owner and copied to min(2, n-1) replicas. A row is recorded when it is stored at the owner and at each
//! member that is needed: each that a successor may be told of. What is recorded stays so, whoever is needed later.

use crate::turns::{Turns, last_turn};
use nearcrawl_model::{access_point::AccessPoint, journal::JournalKey, rows_digest::MAX_JOURNALS_COMPARED, subnet::Subnet, time::Moment};
use std::collections::{BTreeMap, BTreeSet};

/// How many journals one copy message may speak of; how many bytes it may have, the process that sends it knows. One message is under way to
/// a replica at a time, so an owner of very many hosts, each with a journal of a few rows, records so many of them in each round trip at most.
const MAX_JOURNALS: usize = 1_024;

/// A new replica is asked what it has of journals with so many rows: it may have been one before, or an owner.
const COMPARED_FROM: u64 = 8;

/// What one replica has of one journal.
#[derive(Clone, Copy, Debug, Default)]
struct Copied {
    /// Sequence numbers below this are there.
    upto: u64,
    /// Whether it said what it had when it began.
    compared: bool,
    /// Its place among the journals that the replica lacks rows of, if it does.
    place: Option<u64>,
}

#[derive(Debug, Default)]
struct Journal {
    /// Rows below this sequence number are durable here.
    stored: u64,
    /// Rows below this one are recorded.
    recorded: u64,
    replicas: BTreeMap<AccessPoint, Copied>,
}

impl Journal {
    /// What is here and at all that are needed is recorded.
    fn advance(&mut self, needed: Option<&BTreeSet<AccessPoint>>) {
        let Some(needed) = needed else { return };
        let there = needed.iter().map(|replica| self.replicas.get(replica).map_or(0, |copied| copied.upto));
        self.recorded = self.recorded.max(there.min().unwrap_or(self.stored).min(self.stored));
    }
}

/// What is to be sent to a replica: rows of these journals from these sequence numbers on, up to the stored ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyOrder {
    /// To whom.
    pub to: AccessPoint,
    /// Whether it is asked first what it has of them.
    pub compares: bool,
    /// Which journals, from where (inclusive) to where (exclusive).
    pub ranges: Vec<(JournalKey, u64, u64)>,
}

/// The books on all our own journals.
#[derive(Debug, Default)]
pub(super) struct Replicas {
    journals: BTreeMap<JournalKey, Journal>,
    /// Who must have a row before it is recorded; none if nothing is recorded at the moment.
    needed: Option<BTreeSet<AccessPoint>>,
    /// Journals that some replica lacks rows of. Each subnet has its turn, and within it the journal that has lacked them for longest: one with
    /// very many hosts, or very many rows, delays no other.
    behind: BTreeMap<AccessPoint, Turns<Subnet, (u64, JournalKey)>>,
    /// The place of the next journal that a replica lacks rows of.
    next_place: u64,
    /// The subnet that had the last turn in the messages to a replica.
    last_turns: BTreeMap<AccessPoint, Subnet>,
    /// How far new replicas must have which journals before they count.
    joining: BTreeMap<AccessPoint, BTreeMap<JournalKey, u64>>,
    /// Replicas with a message under way.
    busy: BTreeSet<AccessPoint>,
    /// Replicas that did not take what was sent, and when they are tried again; busy until then.
    paused: BTreeMap<AccessPoint, Moment>,
    /// Journals that a replica did not take while it took others, and when they are sent again: it may not know yet that their subnet is ours.
    refused: BTreeSet<(Moment, AccessPoint, JournalKey)>,
    /// How many messages in a row a replica took nothing of; none that took something of the last one.
    failed: BTreeMap<AccessPoint, u32>,
}

impl Replicas {
    /// Says who keeps this journal now. Previous replicas are forgotten, new ones are taken to have nothing of it until they say so.
    pub(super) fn assign(&mut self, key: &JournalKey, replicas: &[AccessPoint]) {
        let journal = self.journals.entry(key.clone()).or_default();
        let gone: Vec<_> = journal.replicas.keys().filter(|k| !replicas.contains(k)).copied().collect();
        for replica in replicas {
            journal.replicas.entry(*replica).or_default();
        }
        for replica in gone {
            self.end_lack(key, &replica);
            if let Some(journal) = self.journals.get_mut(key) {
                journal.replicas.remove(&replica);
            }
        }
        replicas.iter().for_each(|replica| self.update_lack(key, replica));
    }

    /// Notes whether a replica lacks rows of a journal; if it did already it keeps its place.
    fn update_lack(&mut self, key: &JournalKey, replica: &AccessPoint) {
        let Some(journal) = self.journals.get_mut(key) else { return };
        let stored = journal.stored;
        let Some(copied) = journal.replicas.get_mut(replica) else { return };
        if copied.upto >= stored {
            return self.end_lack(key, replica);
        }
        if copied.place.is_none() {
            self.next_place += 1;
            copied.place = Some(self.next_place);
            self.behind.entry(*replica).or_default().insert(key.subnet, (self.next_place, key.clone()));
        }
    }

    /// A replica does not lack rows of a journal, or is sent none.
    fn end_lack(&mut self, key: &JournalKey, replica: &AccessPoint) {
        let copied = self.journals.get_mut(key).and_then(|journal| journal.replicas.get_mut(replica));
        if let Some(place) = copied.and_then(|copied| copied.place.take())
            && let Some(behind) = self.behind.get_mut(replica)
        {
            behind.remove(&key.subnet, &(place, key.clone()));
        }
    }

    /// A replica begins: it has nothing, as far as is known.
    pub(super) fn begin(&mut self, replica: AccessPoint) {
        let (mut behind, mut joining) = (Turns::default(), BTreeMap::new());
        for (key, journal) in &mut self.journals {
            if let Some(copied) = journal.replicas.get_mut(&replica) {
                *copied = Copied::default();
                if journal.stored > 0 {
                    self.next_place += 1;
                    copied.place = Some(self.next_place);
                    behind.insert(key.subnet, (self.next_place, key.clone()));
                    joining.insert(key.clone(), journal.stored);
                }
            }
        }
        self.behind.insert(replica, behind);
        self.joining.insert(replica, joining);
    }

    /// A member is no replica any more.
    pub(super) fn end(&mut self, replica: &AccessPoint) {
        self.joining.remove(replica);
    }

    /// What was stored here below this is not ours alone: others wrote it. Replicas are not whole before they have it.
    pub(super) fn join(&mut self, key: &JournalKey, upto: u64) {
        for (replica, copied) in self.journals.get(key).into_iter().flat_map(|journal| &journal.replicas) {
            if let Some(joining) = self.joining.get_mut(replica).filter(|_| copied.upto < upto) {
                joining.insert(key.clone(), upto);
            }
        }
    }

    /// These must have a row from now on before it is recorded; nothing is recorded if there is no telling who.
    pub(super) fn need(&mut self, needed: Option<BTreeSet<AccessPoint>>) {
        if self.needed != needed {
            self.needed = needed;
            self.journals.values_mut().for_each(|journal| journal.advance(self.needed.as_ref()));
        }
    }

    /// Whether a replica has all that is recorded.
    pub(super) fn has_recorded(&self, replica: &AccessPoint) -> bool {
        let lacks = |journal: &Journal| journal.replicas.get(replica).map_or(0, |copied| copied.upto) < journal.recorded;
        !self.journals.values().any(lacks)
    }

    /// Whether a replica has had all that was stored when it began.
    pub(super) fn is_whole(&self, replica: &AccessPoint) -> bool {
        self.joining.get(replica).is_none_or(BTreeMap::is_empty)
    }

    /// Our journals.
    pub(super) fn keys(&self) -> Vec<JournalKey> {
        self.journals.keys().cloned().collect()
    }

    /// Rows below `upto` are durable here.
    pub(super) fn stored(&mut self, key: &JournalKey, upto: u64) {
        let Some(journal) = self.journals.get_mut(key) else { return };
        journal.stored = journal.stored.max(upto);
        journal.advance(self.needed.as_ref());
        let replicas: Vec<_> = journal.replicas.keys().copied().collect();
        replicas.iter().for_each(|replica| self.update_lack(key, replica));
    }

    /// What to send now: at most one message a replica under way. One that took nothing of the last message gets a single row, each time of
    /// another journal, until it takes one: it may be silent for long, or may not know yet that a subnet is ours.
    pub(super) fn orders(&mut self) -> Vec<CopyOrder> {
        // Members come and go: one that lacks nothing is not remembered.
        self.behind.retain(|_, journals| !journals.is_empty());
        self.failed.retain(|replica, _| self.behind.contains_key(replica));
        self.last_turns.retain(|replica, _| self.behind.contains_key(replica));
        let ready: Vec<_> = self.behind.keys().filter(|replica| !self.busy.contains(replica)).copied().collect();
        let mut orders = Vec::new();
        for to in ready {
            let Some(behind) = self.behind.get(&to) else { continue };
            let next = behind.next(self.last_turns.get(&to), MAX_JOURNALS);
            let unknown = self.uncompared(&to, &next);
            if !unknown.is_empty() {
                orders.push(CopyOrder { to, compares: true, ranges: unknown });
                self.busy.insert(to);
                continue;
            }
            let (journals, most) = match self.failed.get(&to) {
                None => (next, u64::MAX),
                Some(failed) => (behind.iter().nth(*failed as usize % behind.len()).into_iter().cloned().collect(), 1),
            };
            let ranges = journals.iter().filter_map(|(_, key)| {
                let journal = self.journals.get(key)?;
                let from = journal.replicas.get(&to)?.upto;
                Some((key.clone(), from, journal.stored.min(from.saturating_add(most))))
            });
            orders.push(CopyOrder { to, compares: false, ranges: ranges.collect() });
            self.busy.insert(to);
        }
        orders
    }

    /// Those of these journals of which a replica has not said yet what it has; none as long as it does not take anything.
    fn uncompared(&self, to: &AccessPoint, next: &[(u64, JournalKey)]) -> Vec<(JournalKey, u64, u64)> {
        if self.failed.contains_key(to) {
            return Vec::new();
        }
        let unknown = next.iter().filter_map(|(_, key)| {
            let journal = self.journals.get(key)?;
            let copied = journal.replicas.get(to)?;
            let is_unknown = !copied.compared && copied.upto == 0 && journal.stored >= COMPARED_FROM;
            is_unknown.then(|| (key.clone(), 0, journal.stored))
        });
        unknown.take(MAX_JOURNALS_COMPARED).collect()
    }

    /// A replica said with how many of our rows its copies of these journals begin; `sent` is how far they were compared.
    pub(super) fn compared(&mut self, replica: AccessPoint, heads: &[(JournalKey, u64)], sent: &BTreeMap<JournalKey, u64>) {
        for (key, _) in heads {
            if let Some(copied) = self.journals.get_mut(key).and_then(|journal| journal.replicas.get_mut(&replica)) {
                copied.compared = true;
            }
        }
        self.answered(replica, heads, sent);
    }

    /// A copy message was answered: the replica now has these journals without a gap up to there; `sent` is how far the message went.
    pub(super) fn answered(&mut self, replica: AccessPoint, heads: &[(JournalKey, u64)], sent: &BTreeMap<JournalKey, u64>) {
        self.busy.remove(&replica);
        // Else the pause would end while the next message is under way, and another one would be sent.
        self.paused.remove(&replica);
        self.failed.remove(&replica);
        // The message may have had less room than was asked for.
        if let Some(last) = last_turn(self.last_turns.get(&replica), sent.keys().map(|key| key.subnet)) {
            self.last_turns.insert(replica, last);
        }
        for (key, head) in heads {
            let Some(journal) = self.journals.get_mut(key) else { continue };
            let Some(copied) = journal.replicas.get_mut(&replica) else { continue };
            // A replica may hold rows of a previous owner beyond ours: only what we sent counts.
            copied.upto = (*head).min(sent.get(key).copied().unwrap_or(0));
            let copied = *copied;
            journal.advance(self.needed.as_ref());
            if let Some(joining) = self.joining.get_mut(&replica)
                && joining.get(key).is_some_and(|upto| copied.upto >= *upto)
            {
                joining.remove(key);
            }
            // It has had its turn.
            self.end_lack(key, &replica);
            self.update_lack(key, &replica);
        }
    }

    /// A replica took nothing of a message. Returns how many it took nothing of before, one after the other.
    pub(super) fn failed(&mut self, replica: AccessPoint) -> u32 {
        let failed = self.failed.entry(replica).or_default();
        *failed = failed.saturating_add(1);
        *failed - 1
    }

    /// Sends this replica nothing until then.
    pub(super) fn pause(&mut self, replica: AccessPoint, until: Moment) {
        self.busy.insert(replica);
        self.paused.insert(replica, until);
    }

    /// A replica took others of a message but not these journals: it is sent them again then, and the others go on.
    pub(super) fn refused(&mut self, replica: AccessPoint, keys: impl Iterator<Item = JournalKey>, until: Moment) {
        for key in keys {
            self.end_lack(&key, &replica);
            self.refused.insert((until, replica, key));
        }
    }

    /// Replicas that paused until now are tried again, and journals that were not taken.
    pub(super) fn resume(&mut self, now: Moment) {
        while self.refused.first().is_some_and(|(until, ..)| *until <= now) {
            if let Some((_, replica, key)) = self.refused.pop_first() {
                self.update_lack(&key, &replica);
            }
        }
        for (replica, _) in self.paused.extract_if(.., |_, until| *until <= now) {
            self.busy.remove(&replica);
        }
    }

    /// Rows below this one are durable here.
    pub(super) fn stored_rows(&self, key: &JournalKey) -> u64 {
        self.journals.get(key).map_or(0, |journal| journal.stored)
    }

    /// Rows below this one are recorded.
    pub(super) fn recorded(&self, key: &JournalKey) -> u64 {
        self.journals.get(key).map_or(0, |journal| journal.recorded)
    }

    /// Not ours any more, or of a run that is over.
    pub(super) fn forget(&mut self, key: &JournalKey) {
        let replicas: Vec<_> = self.journals.get(key).into_iter().flat_map(|journal| journal.replicas.keys().copied()).collect();
        replicas.iter().for_each(|replica| self.end_lack(key, replica));
        self.journals.remove(key);
        for joining in self.joining.values_mut() {
            joining.remove(key);
        }
    }

    /// How many rows of a subnet's journals are stored here and not yet at this replica; none if it does not keep all of them.
    pub(super) fn lacking(&self, replica: AccessPoint, subnet: &Subnet) -> Option<u64> {
        let filed = self.journals.iter().filter(|(key, _)| key.subnet == *subnet);
        filed.map(|(_, journal)| Some(journal.stored.saturating_sub(journal.replicas.get(&replica)?.upto))).sum()
    }

    /// The journals of a subnet, those of earlier runs included.
    pub(super) fn filed_under(&self, subnet: &Subnet) -> Vec<JournalKey> {
        self.journals.keys().filter(|key| key.subnet == *subnet).cloned().collect()
    }

    /// The journals of a journal's host in its subnet, of whichever run.
    pub(super) fn of_host(&self, key: &JournalKey) -> Vec<JournalKey> {
        let runs = JournalKey { run: 0, ..key.clone() }..=JournalKey { run: u32::MAX, ..key.clone() };
        self.journals.range(runs).map(|(key, _)| key.clone()).collect()
    }

    /// Whether everything stored is at every replica, but for those that are not waited for.
    pub(super) fn settled(&self, waited_for: impl Fn(&AccessPoint) -> bool) -> bool {
        let is_taken = |replica: &AccessPoint| !waited_for(replica);
        self.behind.iter().all(|(replica, behind)| behind.is_empty() || is_taken(replica))
            && self.refused.iter().all(|(_, replica, _)| is_taken(replica))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(host: &str) -> JournalKey {
        JournalKey { subnet: "9.0.0.0/24".parse().unwrap(), host: host.parse().unwrap(), run: 1 }
    }

    const A: AccessPoint = AccessPoint([1; 32]);
    const B: AccessPoint = AccessPoint([2; 32]);

    #[test]
    fn alone_stored_is_recorded_and_in_company_every_replica_that_is_needed_must_have_it() {
        let mut replicas = Replicas::default();
        let k = key("a.ke");
        replicas.assign(&k, &[]);
        replicas.stored(&k, 2);
        assert_eq!(replicas.recorded(&k), 0, "it is not known who is needed");
        replicas.need(Some([].into()));
        assert_eq!(replicas.recorded(&k), 2);
        replicas.need(Some([A, B].into()));
        replicas.assign(&k, &[A, B]);
        replicas.stored(&k, 5);
        assert_eq!(replicas.recorded(&k), 2, "no other member has more yet");
        let orders = replicas.orders();
        assert_eq!(orders.len(), 2);
        assert_eq!(orders[0], CopyOrder { to: A, compares: false, ranges: vec![(k.clone(), 0, 5)] });
        assert!(replicas.orders().is_empty(), "one message a replica at a time");
        replicas.answered(A, &[(k.clone(), 4)], &[(k.clone(), 4)].into());
        assert_eq!((replicas.recorded(&k), replicas.settled(|_| true)), (2, false), "the other replica has nothing");
        assert_eq!((replicas.has_recorded(&A), replicas.has_recorded(&B)), (true, false));
        assert_eq!(replicas.orders()[0].ranges, vec![(k.clone(), 4, 5)]);
        replicas.pause(B, Moment(7));
        replicas.resume(Moment(6));
        assert!(replicas.orders().is_empty(), "not again at once");
        replicas.resume(Moment(7));
        assert_eq!(replicas.orders(), vec![CopyOrder { to: B, compares: false, ranges: vec![(k.clone(), 0, 5)] }]);
        replicas.answered(B, &[(k.clone(), 5)], &[(k.clone(), 5)].into());
        assert_eq!(replicas.recorded(&k), 4, "what both have");
        replicas.need(None);
        replicas.answered(A, &[(k.clone(), 5)], &[(k.clone(), 5)].into());
        assert_eq!(replicas.recorded(&k), 4, "nobody knows who is needed");
        replicas.need(Some([A].into()));
        assert_eq!(replicas.recorded(&k), 5);
        replicas.need(Some([A, AccessPoint([3; 32])].into()));
        assert_eq!(replicas.recorded(&k), 5, "what was recorded stays so");
    }

    /// One message to A goes out and is taken. Returns the hosts in it.
    fn copy(replicas: &mut Replicas) -> Vec<String> {
        let ranges = replicas.orders().into_iter().flat_map(|order| order.ranges);
        let sent: BTreeMap<_, _> = ranges.map(|(key, _, upto)| (key, upto)).collect();
        let heads: Vec<_> = sent.clone().into_iter().collect();
        replicas.answered(A, &heads, &sent);
        heads.into_iter().map(|(key, _)| key.host.to_string()).collect()
    }

    #[test]
    fn a_subnet_with_very_many_hosts_delays_no_other_and_each_of_its_hosts_has_its_turn() {
        let mut replicas = Replicas::default();
        let many: Vec<_> = (0..3 * MAX_JOURNALS).map(|number| key(&format!("a{number:04}.ke"))).collect();
        let other = JournalKey { subnet: "9.9.9.0/24".parse().unwrap(), ..key("z.ke") };
        for k in many.iter().chain([&other]) {
            replicas.assign(k, &[A]);
            replicas.stored(k, 1);
        }
        assert!(copy(&mut replicas).contains(&"z.ke".to_owned()), "in the first message");
        for round in 2..4 {
            // Those that were sent have new rows before the next message.
            many[..MAX_JOURNALS].iter().for_each(|k| replicas.stored(k, round));
            copy(&mut replicas);
        }
        let lacking = many[MAX_JOURNALS..].iter().filter(|k| replicas.journals[*k].replicas[&A].upto == 0).count();
        assert!(lacking <= 1, "{lacking} wait behind those that were sent before");
    }

    #[test]
    fn a_journal_that_is_not_taken_delays_no_other() {
        let mut replicas = Replicas::default();
        let (taken, refused) = (key("a.ke"), key("b.ke"));
        for k in [&taken, &refused] {
            replicas.assign(k, &[A]);
            replicas.stored(k, 1);
        }
        assert_eq!(replicas.orders().len(), 1);
        replicas.answered(A, &[(taken.clone(), 1)], &[(taken.clone(), 1), (refused.clone(), 1)].into());
        replicas.refused(A, [refused.clone()].into_iter(), Moment(1_000));
        assert!(replicas.orders().is_empty() && !replicas.settled(|_| true), "it is not sent again at once, and not there");
        replicas.stored(&taken, 2);
        assert_eq!(replicas.orders()[0].ranges, [(taken.clone(), 1, 2)]);
        replicas.answered(A, &[(taken.clone(), 2)], &[(taken, 2)].into());
        replicas.resume(Moment(999));
        assert!(replicas.orders().is_empty());
        replicas.resume(Moment(1_000));
        assert_eq!(replicas.orders()[0].ranges, [(refused, 0, 1)]);
    }

    #[test]
    fn what_others_wrote_makes_a_replica_whole_only_when_it_has_it() {
        let mut replicas = Replicas::default();
        let k = key("a.ke");
        replicas.assign(&k, &[A]);
        replicas.begin(A);
        assert!(replicas.is_whole(&A));
        replicas.stored(&k, 3);
        assert!(replicas.is_whole(&A), "our own rows are counted one by one");
        replicas.join(&k, 3);
        assert!(!replicas.is_whole(&A));
        replicas.answered(A, &[(k.clone(), 3)], &[(k.clone(), 3)].into());
        assert!(replicas.is_whole(&A));
    }

    #[test]
    fn a_replica_that_answers_during_its_pause_is_not_sent_two_messages_at_its_end() {
        let mut replicas = Replicas::default();
        let k = key("a.ke");
        replicas.assign(&k, &[A]);
        replicas.stored(&k, 3);
        assert_eq!(replicas.orders().len(), 1);
        replicas.pause(A, Moment(1_000));
        replicas.answered(A, &[(k.clone(), 2)], &[(k.clone(), 3)].into());
        assert_eq!(replicas.orders(), vec![CopyOrder { to: A, compares: false, ranges: vec![(k, 2, 3)] }], "it answers again");
        replicas.resume(Moment(1_000));
        assert_eq!(replicas.orders(), vec![], "one message at a time");
    }

    #[test]
    fn a_replica_with_another_owners_longer_history_does_not_count_for_more_than_was_sent() {
        let mut replicas = Replicas::default();
        let k = key("a.ke");
        replicas.need(Some([A].into()));
        replicas.assign(&k, &[A]);
        replicas.stored(&k, 3);
        replicas.orders();
        replicas.answered(A, &[(k.clone(), 90)], &[(k.clone(), 3)].into());
        assert_eq!(replicas.recorded(&k), 3);
        replicas.stored(&k, 7);
        assert_eq!(replicas.recorded(&k), 3);
        assert_eq!(replicas.orders()[0].ranges, vec![(k.clone(), 3, 7)]);
    }

    #[test]
    fn a_new_replica_starts_from_the_beginning_and_the_previous_one_is_forgotten() {
        let mut replicas = Replicas::default();
        let k = key("a.ke");
        replicas.assign(&k, &[A]);
        replicas.stored(&k, 3);
        replicas.orders();
        replicas.answered(A, &[(k.clone(), 3)], &[(k.clone(), 3)].into());
        replicas.assign(&k, &[B]);
        assert_eq!(replicas.orders(), vec![CopyOrder { to: B, compares: false, ranges: vec![(k, 0, 3)] }]);
    }

    #[test]
    fn a_new_replica_is_asked_what_it_has_and_sent_only_the_rest() {
        let mut replicas = Replicas::default();
        let (long, short) = (key("a.ke"), key("b.ke"));
        for (key, rows) in [(&long, 100), (&short, 3)] {
            replicas.assign(key, &[A]);
            replicas.stored(key, rows);
        }
        replicas.need(Some([A].into()));
        let question = CopyOrder { to: A, compares: true, ranges: vec![(long.clone(), 0, 100)] };
        replicas.begin(A);
        assert_eq!(replicas.orders(), [question]);
        replicas.compared(A, &[(long.clone(), 84)], &[(long.clone(), 84)].into());
        assert_eq!((replicas.recorded(&long), replicas.is_whole(&A)), (84, false));
        let rest = CopyOrder { to: A, compares: false, ranges: vec![(short.clone(), 0, 3), (long.clone(), 84, 100)] };
        assert_eq!(replicas.orders(), [rest]);
        let heads = [(long.clone(), 100), (short, 3)];
        replicas.answered(A, &heads, &heads.clone().into());
        assert!(replicas.is_whole(&A));
        replicas.stored(&long, 101);
        assert_eq!(replicas.orders(), [CopyOrder { to: A, compares: false, ranges: vec![(long, 100, 101)] }], "it is asked once");
        replicas.answered(A, &[], &[].into());
        replicas.begin(A);
        assert!(replicas.orders()[0].compares, "it has another disk");
    }

    #[test]
    fn who_has_nothing_of_a_journal_is_sent_all_of_it() {
        let mut replicas = Replicas::default();
        let k = key("a.ke");
        replicas.assign(&k, &[A]);
        replicas.stored(&k, 100);
        assert!(replicas.orders()[0].compares);
        replicas.compared(A, &[(k.clone(), 0)], &[(k.clone(), 0)].into());
        assert_eq!(replicas.orders(), [CopyOrder { to: A, compares: false, ranges: vec![(k, 0, 100)] }]);
    }

    #[test]
    fn a_replica_is_whole_when_it_has_what_was_stored_when_it_began_and_not_after_the_loss_of_its_disk() {
        let mut replicas = Replicas::default();
        let (k, other) = (key("a.ke"), key("b.ke"));
        for key in [&k, &other] {
            replicas.assign(key, &[A]);
            replicas.stored(key, 3);
        }
        replicas.begin(A);
        assert!(!replicas.is_whole(&A));
        replicas.orders();
        replicas.stored(&k, 9);
        replicas.answered(A, &[(k.clone(), 3), (other.clone(), 2)], &[(k.clone(), 3), (other.clone(), 2)].into());
        assert!(!replicas.is_whole(&A));
        replicas.forget(&other);
        assert!(replicas.is_whole(&A), "what came since then is another matter");
        replicas.begin(A);
        assert!(!replicas.is_whole(&A));
        assert_eq!(
            replicas.orders(),
            vec![CopyOrder { to: A, compares: true, ranges: vec![(k, 0, 9)] }],
            "nothing of it is taken to be there"
        );
    }
}
