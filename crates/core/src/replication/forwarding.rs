//! Tracks how far the URLs that our journals name for others have been taken in by their owners.

use crate::routing::outbox::Item;
use nearcrawl_model::journal::JournalKey;
use std::collections::BTreeMap;

/// Which rows of each journal named URLs that have not all been taken in by their owners.
#[derive(Debug, Default)]
pub(super) struct Forwarding {
    journals: BTreeMap<JournalKey, Forwarded>,
}

#[derive(Debug, Default)]
struct Forwarded {
    /// How many URLs of each row are under way.
    open: BTreeMap<u64, usize>,
    /// The row behind the last that named any.
    top: u64,
    /// Up to where (exclusive) it was written down that all have arrived.
    marked: u64,
}

impl Forwarding {
    /// These URLs go on their way.
    pub(super) fn sent(&mut self, items: &[Item]) {
        for ((key, sequence), count) in by_origin(items) {
            let journal = self.journals.entry(key).or_default();
            *journal.open.entry(sequence).or_default() += count;
            journal.top = journal.top.max(sequence + 1);
        }
    }

    /// These URLs have been taken in by their owners, or lead nowhere.
    pub(super) fn delivered(&mut self, items: &[Item]) {
        for ((key, sequence), count) in by_origin(items) {
            let Some(journal) = self.journals.get_mut(&key) else { continue };
            if let Some(open) = journal.open.get_mut(&sequence) {
                *open = open.saturating_sub(count);
                if *open == 0 {
                    journal.open.remove(&sequence);
                }
            }
        }
    }

    /// Journals whose URLs have arrived further than was written down, and up to which row (exclusive); it is written down now.
    pub(super) fn mark(&mut self) -> Vec<(JournalKey, u64)> {
        let mut marks = Vec::new();
        for (key, journal) in &mut self.journals {
            let before = journal.open.first_key_value().map_or(journal.top, |(first, _)| *first);
            if before > journal.marked {
                journal.marked = before;
                marks.push((key.clone(), before));
            }
        }
        marks
    }

    /// A journal is not ours any more, or of a run that is over.
    pub(super) fn forget(&mut self, key: &JournalKey) {
        self.journals.remove(key);
    }
}

/// Items by the journal row that named them, with how many of each.
fn by_origin(items: &[Item]) -> BTreeMap<(JournalKey, u64), usize> {
    let mut counts = BTreeMap::new();
    for origin in items.iter().filter_map(|item| item.origin.clone()) {
        *counts.entry(origin).or_default() += 1;
    }
    counts
}
