//! Totals over rows of servers, whoever owns them, summed as each owner sums its own, for a reader that has gathered them.

use super::{
    crowds::{Crowds, InCell, Standing, is_known_before},
    tally::{Tally, Whereabouts, counts_of},
};
use nearcrawl_model::{
    cross_table::{CrossTable, Pair},
    estimates::{CellEstimates, Estimates},
    record::ServerRecord,
    server_rows::ServerRow,
    split::Split,
    summary::{Counts, Dimension, Summary},
    url::Host,
};
use std::collections::{BTreeMap, BTreeSet};

/// What sums over rows come to where not all hosts of an address were visited, and how many hosts each row stands for; each is entered
/// once.
#[derive(Debug, Default)]
pub struct RowEstimates {
    crowds: Crowds,
    total: Counts,
}

impl RowEstimates {
    /// Enters a row, with the probability with which it is in the sample of its address.
    pub fn enter(&mut self, record: &ServerRecord, inclusion_probability: Option<f64>) {
        let counts = counts_of(record);
        self.total.add(&counts);
        if let Some(standing) = Standing::of(record, inclusion_probability) {
            self.crowds.enter(&standing, &counts, Vec::new);
        }
    }

    /// How many hosts a row stands for whatever else is entered; none if that depends on the other rows of its address.
    pub fn weight_alone(record: &ServerRecord, inclusion_probability: Option<f64>) -> Option<f64> {
        Standing::of(record, inclusion_probability).map_or(Some(1.0), |standing| standing.weight_alone())
    }

    /// How many hosts a row stands for among those that were entered, once all have been: itself, unless not all of the many hosts of its
    /// address were visited that were entered; of those, as many as each one in the sample does; none if it is not in the sample, or that
    /// is too small.
    pub fn weight(&self, record: &ServerRecord, inclusion_probability: Option<f64>) -> f64 {
        Standing::of(record, inclusion_probability).map_or(1.0, |standing| self.crowds.weight(&standing))
    }

    /// What they come to.
    pub fn estimates(&self) -> Estimates {
        let mut estimates = self.crowds.all();
        estimates.settle(&self.total, &BTreeMap::new());
        estimates
    }
}

/// By the name of a split and by value.
pub type SplitEstimates = BTreeMap<String, BTreeMap<String, CellEstimates>>;

/// The sums over rows of servers, each server once: while one is on its way from an owner to another, both may tell of it.
#[derive(Debug, Default)]
pub struct RowTally {
    tally: Tally,
    /// Run and requests of each server that was entered, by which of two rows of it counts; and whether it stands for others at its
    /// address.
    entered: BTreeMap<Host, ((u32, u64), Option<Standing>)>,
    by_label: BTreeMap<String, Tally>,
}

impl RowTally {
    /// Enters a row, with the labels that it has; of two rows of one server the later one counts.
    pub fn enter(&mut self, row: &ServerRow, labels: &BTreeMap<String, BTreeSet<String>>) {
        let rank = (row.record.run, row.record.requests);
        if self.entered.get(&row.record.host).is_some_and(|(known, _)| *known > rank) {
            return;
        }
        let ServerRow { country, registry, organisation, record, .. } = row;
        let whereabouts = Whereabouts { country: country.clone(), registry: registry.clone(), organisation: organisation.clone() };
        // What is estimated rests on what the owner says of the row: places in line do not matter.
        self.tally.enter(record, whereabouts.clone(), 0);
        for (name, value) in labels.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value))) {
            self.by_label.entry(format!("{name}={value}")).or_default().enter(record, whereabouts.clone(), 0);
        }
        self.entered.insert(record.host.clone(), (rank, Standing::of_row(row)));
    }

    /// The sums over all servers, with estimates of what they come to where not all hosts of an address were visited; and by split and value,
    /// labels among them, those of the values of which not all is counted.
    pub fn summary(&self) -> (Summary, SplitEstimates) {
        let (crowds, mut summary) = (self.crowds(), self.tally.summary().clone());
        summary.estimates = crowds.all();
        let mut splits = SplitEstimates::new();
        let of = |split: &'static str, value: &String, counts: &Counts| {
            let mut estimates = crowds.cell(&[split.to_owned(), value.clone()])?;
            estimates.settle(counts);
            Some((value.clone(), estimates))
        };
        for (dimension, values) in &summary.by {
            let estimated: BTreeMap<_, _> = values.iter().filter_map(|(value, counts)| of(dimension.name(), value, counts)).collect();
            // Of values of which nothing is estimated there is only what was counted.
            let of_value = estimated.iter().filter(|(_, estimates)| !is_known_before(*dimension) && estimates.is_any());
            let of_value: BTreeMap<_, _> = of_value.map(|(value, estimates)| (value.clone(), estimates.servers)).collect();
            if !of_value.is_empty() {
                summary.estimates.by.insert(*dimension, of_value);
            }
            splits.insert(dimension.name().to_owned(), estimated);
        }
        let labels = self.labels();
        let of_labels = labels.iter().filter_map(|(label, counts)| of(Split::Label.name(), label, counts)).collect();
        splits.insert(Split::Label.name().to_owned(), of_labels);
        splits.retain(|_, values| !values.is_empty());
        summary.settle();
        (summary, splits)
    }

    /// The addresses with many hosts of which not all were visited.
    fn crowds(&self) -> Crowds {
        let mut crowds = Crowds::default();
        let mut labels = BTreeMap::<&Host, Vec<&String>>::new();
        for (label, tally) in &self.by_label {
            tally.sites().keys().for_each(|host| labels.entry(host).or_default().push(label));
        }
        for (host, site) in self.tally.sites() {
            let Some((_, Some(standing))) = self.entered.get(host) else { continue };
            let cell = |split: &'static str, value: &String, is_known: bool| {
                let cell = vec![split.to_owned(), value.clone()];
                InCell { known: if is_known { cell.clone() } else { Vec::new() }, cell, counts: site.counts }
            };
            let by = |(dimension, value): &(Dimension, String)| cell(dimension.name(), value, is_known_before(*dimension));
            let labels = labels.get(host).into_iter().flatten().map(|label| cell(Split::Label.name(), label, true));
            crowds.enter(standing, &site.counts, || site.values.iter().map(by).chain(labels).collect());
        }
        crowds
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
