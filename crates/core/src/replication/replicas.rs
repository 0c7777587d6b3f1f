//! Who keeps copies of what happened, and what is *recorded*?
//!
//! A journal's rows are stored by the owner and copied to min(2, n-1) keepers: the next stewards of the subnet. A row is recorded
//! when it is stored at the owner and, unless the owner is alone, at one keeper: then no single crash can lose it.

use nearcrawl_model::{access_point::AccessPoint, journal::JournalKey, subnet::Subnet};
use std::collections::{BTreeMap, BTreeSet};

/// How many copies are aimed at besides the owner's.
pub const KEEPERS: usize = 2;

/// How many journals one copy message may speak of.
const MAX_JOURNALS: usize = 64;

/// What one keeper has of one journal.
#[derive(Clone, Copy, Debug, Default)]
struct Copied {
    /// Sequence numbers below this are there.
    upto: u64,
}

#[derive(Debug, Default)]
struct Kept {
    /// Rows below this sequence number are durable here.
    stored: u64,
    keepers: BTreeMap<AccessPoint, Copied>,
}

/// What is to be sent to a keeper: rows of these journals from these sequence numbers on, up to the stored ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyOrder {
    /// To whom.
    pub to: AccessPoint,
    /// Which journals, from where (inclusive) to where (exclusive).
    pub ranges: Vec<(JournalKey, u64, u64)>,
}

/// The books on all our own journals.
#[derive(Debug, Default)]
pub struct Replicas {
    journals: BTreeMap<JournalKey, Kept>,
    /// Journals that some keeper lacks rows of.
    behind: BTreeMap<AccessPoint, BTreeSet<JournalKey>>,
    /// Keepers with a message under way.
    busy: BTreeSet<AccessPoint>,
}

impl Replicas {
    /// Says who keeps this journal now. Former keepers are forgotten, new ones start from the beginning.
    pub fn assign(&mut self, key: &JournalKey, keepers: &[AccessPoint]) {
        let kept = self.journals.entry(key.clone()).or_default();
        let gone: Vec<_> = kept.keepers.keys().filter(|k| !keepers.contains(k)).copied().collect();
        for keeper in gone {
            kept.keepers.remove(&keeper);
            if let Some(behind) = self.behind.get_mut(&keeper) {
                behind.remove(key);
            }
        }
        for keeper in keepers {
            let copied = *kept.keepers.entry(*keeper).or_default();
            if copied.upto < kept.stored {
                self.behind.entry(*keeper).or_default().insert(key.clone());
            }
        }
    }

    /// Rows below `upto` are durable here.
    pub fn stored(&mut self, key: &JournalKey, upto: u64) {
        let Some(kept) = self.journals.get_mut(key) else { return };
        kept.stored = kept.stored.max(upto);
        for (keeper, copied) in &kept.keepers {
            if copied.upto < kept.stored {
                self.behind.entry(*keeper).or_default().insert(key.clone());
            }
        }
    }

    /// What to send now: at most one message a keeper under way.
    pub fn orders(&mut self) -> Vec<CopyOrder> {
        let ready: Vec<_> = self.behind.iter().filter(|(k, b)| !b.is_empty() && !self.busy.contains(k)).map(|(k, _)| *k).collect();
        let mut orders = Vec::new();
        for to in ready {
            let journals = self.behind.get(&to).into_iter().flatten().take(MAX_JOURNALS);
            let ranges = journals.filter_map(|key| {
                let kept = self.journals.get(key)?;
                Some((key.clone(), kept.keepers.get(&to)?.upto, kept.stored))
            });
            orders.push(CopyOrder { to, ranges: ranges.collect() });
            self.busy.insert(to);
        }
        orders
    }

    /// A copy message was answered: the keeper now has these journals without a gap up to there; `sent` is how far the message went.
    pub fn answered(&mut self, keeper: AccessPoint, heads: &[(JournalKey, u64)], sent: &BTreeMap<JournalKey, u64>) {
        self.busy.remove(&keeper);
        for (key, head) in heads {
            let Some(kept) = self.journals.get_mut(key) else { continue };
            let Some(copied) = kept.keepers.get_mut(&keeper) else { continue };
            // A keeper may hold rows of a former owner beyond ours: only what we sent counts.
            copied.upto = (*head).min(sent.get(key).copied().unwrap_or(0));
            let behind = self.behind.entry(keeper).or_default();
            if copied.upto < kept.stored {
                behind.insert(key.clone());
            } else {
                behind.remove(key);
            }
        }
    }

    /// Sends this keeper nothing until [`Replicas::failed`] says that it may be tried again.
    pub fn pause(&mut self, keeper: AccessPoint) {
        self.busy.insert(keeper);
    }

    /// A copy message got no answer; it will be sent again.
    pub fn failed(&mut self, keeper: AccessPoint) {
        self.busy.remove(&keeper);
    }

    /// Rows below this are recorded.
    pub fn recorded(&self, key: &JournalKey) -> u64 {
        let Some(kept) = self.journals.get(key) else { return 0 };
        match kept.keepers.values().map(|copied| copied.upto).max() {
            Some(best) => best.min(kept.stored),
            None => kept.stored,
        }
    }

    /// Not ours any more, or of a run that is over.
    pub fn forget(&mut self, key: &JournalKey) {
        self.journals.remove(key);
        for behind in self.behind.values_mut() {
            behind.remove(key);
        }
    }

    /// How many rows of a subnet's journals are stored here and not yet at this keeper; none if it does not keep all of them.
    pub fn lacking(&self, keeper: AccessPoint, subnet: &Subnet) -> Option<u64> {
        let filed = self.journals.iter().filter(|(key, _)| key.subnet == *subnet);
        filed.map(|(_, kept)| Some(kept.stored.saturating_sub(kept.keepers.get(&keeper)?.upto))).sum()
    }

    /// The journals of a subnet, those of earlier runs included.
    pub fn filed_under(&self, subnet: &Subnet) -> Vec<JournalKey> {
        self.journals.keys().filter(|key| key.subnet == *subnet).cloned().collect()
    }

    /// Whether everything stored is at every keeper.
    pub fn settled(&self) -> bool {
        self.behind.values().all(BTreeSet::is_empty)
    }

    /// How many (journal, keeper) pairs lack rows.
    pub fn lagging(&self) -> usize {
        self.behind.values().map(BTreeSet::len).sum()
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
    fn alone_stored_is_recorded_and_in_company_one_keeper_is_needed() {
        let mut keeping = Replicas::default();
        let k = key("a.ke");
        keeping.assign(&k, &[]);
        keeping.stored(&k, 5);
        assert_eq!(keeping.recorded(&k), 5);
        keeping.assign(&k, &[A, B]);
        assert_eq!(keeping.recorded(&k), 0, "nobody else has it yet");
        let orders = keeping.orders();
        assert_eq!(orders.len(), 2);
        assert_eq!(orders[0], CopyOrder { to: A, ranges: vec![(k.clone(), 0, 5)] });
        assert!(keeping.orders().is_empty(), "one message a keeper at a time");
        keeping.answered(A, &[(k.clone(), 4)], &[(k.clone(), 4)].into());
        assert_eq!((keeping.recorded(&k), keeping.settled()), (4, false));
        assert_eq!(keeping.orders()[0].ranges, vec![(k.clone(), 4, 5)]);
        keeping.failed(B);
        keeping.pause(B);
        assert!(keeping.orders().is_empty(), "not again at once");
        keeping.failed(B);
        assert_eq!(keeping.orders(), vec![CopyOrder { to: B, ranges: vec![(k.clone(), 0, 5)] }]);
    }

    #[test]
    fn a_keeper_with_somebody_elses_longer_history_does_not_count_for_more_than_was_sent() {
        let mut keeping = Replicas::default();
        let k = key("a.ke");
        keeping.assign(&k, &[A]);
        keeping.stored(&k, 3);
        keeping.orders();
        keeping.answered(A, &[(k.clone(), 90)], &[(k.clone(), 3)].into());
        assert_eq!(keeping.recorded(&k), 3);
        keeping.stored(&k, 7);
        assert_eq!(keeping.recorded(&k), 3);
        assert_eq!(keeping.orders()[0].ranges, vec![(k.clone(), 3, 7)]);
    }

    #[test]
    fn a_new_keeper_starts_from_the_beginning_and_a_former_one_is_forgotten() {
        let mut keeping = Replicas::default();
        let k = key("a.ke");
        keeping.assign(&k, &[A]);
        keeping.stored(&k, 3);
        keeping.orders();
        keeping.answered(A, &[(k.clone(), 3)], &[(k.clone(), 3)].into());
        keeping.assign(&k, &[B]);
        assert_eq!(keeping.recorded(&k), 0);
        assert_eq!(keeping.orders(), vec![CopyOrder { to: B, ranges: vec![(k, 0, 3)] }]);
    }
}
