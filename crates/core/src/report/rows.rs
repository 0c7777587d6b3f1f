//! Totals over rows of servers, whoever owns them, summed as each owner sums its own, for a reader that has gathered them.

use super::tally::{Tally, Whereabouts};
use nearcrawl_model::{
    cross_table::{CrossTable, Pair},
    server_rows::ServerRow,
    summary::{Counts, Summary},
    url::Host,
};
use std::collections::{BTreeMap, BTreeSet};

/// The sums over rows of servers, each server once: while one is on its way from an owner to another, both may tell of it.
#[derive(Debug, Default)]
pub struct RowTally {
    tally: Tally,
    /// Run and requests of each server that was entered, by which of two rows of it counts.
    entered: BTreeMap<Host, (u32, u64)>,
    by_label: BTreeMap<String, Tally>,
}

impl RowTally {
    /// Enters a row, with the labels that it has; of two rows of one server the later one counts.
    pub fn enter(&mut self, row: &ServerRow, labels: &BTreeMap<String, BTreeSet<String>>) {
        let rank = (row.record.run, row.record.requests);
        if self.entered.get(&row.record.host).is_some_and(|known| *known > rank) {
            return;
        }
        let ServerRow { country, registry, organisation, record, .. } = row;
        let whereabouts = Whereabouts { country: country.clone(), registry: registry.clone(), organisation: organisation.clone() };
        // Nothing is estimated: which hosts of an address are in a survey is not drawn by chance, so places in line do not matter.
        self.tally.enter(record, whereabouts.clone(), 0);
        for (name, value) in labels.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value))) {
            self.by_label.entry(format!("{name}={value}")).or_default().enter(record, whereabouts.clone(), 0);
        }
        self.entered.insert(record.host.clone(), rank);
    }

    /// The sums over all servers.
    pub fn summary(&self) -> &Summary {
        self.tally.summary()
    }

    /// The sums over the servers with each label, as in `sector=university`.
    pub fn labels(&self) -> BTreeMap<String, Counts> {
        self.by_label.iter().map(|(label, tally)| (label.clone(), tally.summary().total)).collect()
    }

    /// The sums by two dimensions.
    pub fn cross(&self, by: Pair) -> CrossTable {
        self.tally.cross(by)
    }
}
