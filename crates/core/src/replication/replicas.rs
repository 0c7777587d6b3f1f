//! Who keeps copies of what happened, and what is *recorded*?
//!
//! A journal's rows are stored by the owner and copied to min(2, n-1) replicas: the next stewards of the subnet. A row is recorded
//! when it is stored at the owner and, unless the owner is alone, at one replica: then no single crash can lose it.

use nearcrawl_model::{access_point::AccessPoint, journal::JournalKey, subnet::Subnet, time::Moment};
use std::collections::{BTreeMap, BTreeSet};

/// How many copies are aimed at besides the owner's.
pub(super) const REPLICAS: usize = 2;

/// How many journals one copy message may speak of.
const MAX_JOURNALS: usize = 64;

/// What one replica has of one journal.
#[derive(Clone, Copy, Debug, Default)]
struct Copied {
    /// Sequence numbers below this are there.
    upto: u64,
}

#[derive(Debug, Default)]
struct Journal {
    /// Rows below this sequence number are durable here.
    stored: u64,
    replicas: BTreeMap<AccessPoint, Copied>,
}

/// What is to be sent to a replica: rows of these journals from these sequence numbers on, up to the stored ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyOrder {
    /// To whom.
    pub to: AccessPoint,
    /// Which journals, from where (inclusive) to where (exclusive).
    pub ranges: Vec<(JournalKey, u64, u64)>,
}

/// The books on all our own journals.
#[derive(Debug, Default)]
pub(super) struct Replicas {
    journals: BTreeMap<JournalKey, Journal>,
    /// Journals that some replica lacks rows of.
    behind: BTreeMap<AccessPoint, BTreeSet<JournalKey>>,
    /// Replicas with a message under way.
    busy: BTreeSet<AccessPoint>,
    /// Replicas that did not take what was sent, and when they are tried again; busy until then.
    paused: BTreeMap<AccessPoint, Moment>,
}

impl Replicas {
    /// Says who keeps this journal now. Previous replicas are forgotten, new ones start from the beginning.
    pub(super) fn assign(&mut self, key: &JournalKey, replicas: &[AccessPoint]) {
        let journal = self.journals.entry(key.clone()).or_default();
        let gone: Vec<_> = journal.replicas.keys().filter(|k| !replicas.contains(k)).copied().collect();
        for replica in gone {
            journal.replicas.remove(&replica);
            if let Some(behind) = self.behind.get_mut(&replica) {
                behind.remove(key);
            }
        }
        for replica in replicas {
            let copied = *journal.replicas.entry(*replica).or_default();
            if copied.upto < journal.stored {
                self.behind.entry(*replica).or_default().insert(key.clone());
            }
        }
    }

    /// Rows below `upto` are durable here.
    pub(super) fn stored(&mut self, key: &JournalKey, upto: u64) {
        let Some(journal) = self.journals.get_mut(key) else { return };
        journal.stored = journal.stored.max(upto);
        for (replica, copied) in &journal.replicas {
            if copied.upto < journal.stored {
                self.behind.entry(*replica).or_default().insert(key.clone());
            }
        }
    }

    /// What to send now: at most one message a replica under way.
    pub(super) fn orders(&mut self) -> Vec<CopyOrder> {
        // Members come and go: one that lacks nothing is not remembered.
        self.behind.retain(|_, journals| !journals.is_empty());
        let ready: Vec<_> = self.behind.keys().filter(|replica| !self.busy.contains(replica)).copied().collect();
        let mut orders = Vec::new();
        for to in ready {
            let journals = self.behind.get(&to).into_iter().flatten().take(MAX_JOURNALS);
            let ranges = journals.filter_map(|key| {
                let journal = self.journals.get(key)?;
                Some((key.clone(), journal.replicas.get(&to)?.upto, journal.stored))
            });
            orders.push(CopyOrder { to, ranges: ranges.collect() });
            self.busy.insert(to);
        }
        orders
    }

    /// A copy message was answered: the replica now has these journals without a gap up to there; `sent` is how far the message went.
    pub(super) fn answered(&mut self, replica: AccessPoint, heads: &[(JournalKey, u64)], sent: &BTreeMap<JournalKey, u64>) {
        self.busy.remove(&replica);
        // Else the pause would end while the next message is under way, and another one would be sent.
        self.paused.remove(&replica);
        for (key, head) in heads {
            let Some(journal) = self.journals.get_mut(key) else { continue };
            let Some(copied) = journal.replicas.get_mut(&replica) else { continue };
            // A replica may hold rows of a previous owner beyond ours: only what we sent counts.
            copied.upto = (*head).min(sent.get(key).copied().unwrap_or(0));
            let behind = self.behind.entry(replica).or_default();
            if copied.upto < journal.stored {
                behind.insert(key.clone());
            } else {
                behind.remove(key);
            }
        }
    }

    /// Sends this replica nothing until then.
    pub(super) fn pause(&mut self, replica: AccessPoint, until: Moment) {
        self.busy.insert(replica);
        self.paused.insert(replica, until);
    }

    /// Replicas that paused until now are tried again.
    pub(super) fn resume(&mut self, now: Moment) {
        for (replica, _) in self.paused.extract_if(.., |_, until| *until <= now) {
            self.busy.remove(&replica);
        }
    }

    /// Rows below this are recorded.
    pub(super) fn recorded(&self, key: &JournalKey) -> u64 {
        let Some(journal) = self.journals.get(key) else { return 0 };
        match journal.replicas.values().map(|copied| copied.upto).max() {
            Some(best) => best.min(journal.stored),
            None => journal.stored,
        }
    }

    /// Not ours any more, or of a run that is over.
    pub(super) fn forget(&mut self, key: &JournalKey) {
        self.journals.remove(key);
        for behind in self.behind.values_mut() {
            behind.remove(key);
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

    /// Whether everything stored is at every replica.
    pub(super) fn settled(&self) -> bool {
        self.behind.values().all(BTreeSet::is_empty)
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
    fn alone_stored_is_recorded_and_in_company_one_replica_is_needed() {
        let mut replicas = Replicas::default();
        let k = key("a.ke");
        replicas.assign(&k, &[]);
        replicas.stored(&k, 5);
        assert_eq!(replicas.recorded(&k), 5);
        replicas.assign(&k, &[A, B]);
        assert_eq!(replicas.recorded(&k), 0, "no other member has it yet");
        let orders = replicas.orders();
        assert_eq!(orders.len(), 2);
        assert_eq!(orders[0], CopyOrder { to: A, ranges: vec![(k.clone(), 0, 5)] });
        assert!(replicas.orders().is_empty(), "one message a replica at a time");
        replicas.answered(A, &[(k.clone(), 4)], &[(k.clone(), 4)].into());
        assert_eq!((replicas.recorded(&k), replicas.settled()), (4, false));
        assert_eq!(replicas.orders()[0].ranges, vec![(k.clone(), 4, 5)]);
        replicas.pause(B, Moment(7));
        replicas.resume(Moment(6));
        assert!(replicas.orders().is_empty(), "not again at once");
        replicas.resume(Moment(7));
        assert_eq!(replicas.orders(), vec![CopyOrder { to: B, ranges: vec![(k.clone(), 0, 5)] }]);
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
        assert_eq!(replicas.orders(), vec![CopyOrder { to: A, ranges: vec![(k, 2, 3)] }], "it answers again");
        replicas.resume(Moment(1_000));
        assert_eq!(replicas.orders(), vec![], "one message at a time");
    }

    #[test]
    fn a_replica_with_another_owners_longer_history_does_not_count_for_more_than_was_sent() {
        let mut replicas = Replicas::default();
        let k = key("a.ke");
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
        assert_eq!(replicas.recorded(&k), 0);
        assert_eq!(replicas.orders(), vec![CopyOrder { to: B, ranges: vec![(k, 0, 3)] }]);
    }
}
