//! Totals of one run over rows of histories, with estimates of what they come to where not all hosts of an address were visited in it.
//!
//! A row says where its server is today, and whether it is in the sample of the hosts there. A second run comes after all first ones, and in
//! the same order, that of a keyed hash: so those in the sample that have the run are a random sample of all hosts of that address, too. Where
//! all were visited nothing is estimated: which of them have a further run by now depends on when they were visited.

use super::crowds::{Crowds, InCell, Standing, is_known_before};
use nearcrawl_model::{
    estimates::{CellEstimates, Estimates},
    facts::family_word,
    run_totals::{RUN_SPLITS, RunCounts, RunEstimates, RunTotals, value},
    server_rows::{HistoryRow, RunRow, Today},
    split::{NO_LABEL, Split},
    summary::{Counts, Dimension},
};
use std::collections::BTreeMap;

/// By the name of a split and by value.
pub type RunSplitEstimates = BTreeMap<String, BTreeMap<String, RunEstimates>>;

/// The sums of a run; each server is entered once.
#[derive(Debug)]
pub struct RunRows {
    totals: RunTotals,
    /// The two splits that are shown together.
    pair: Option<[Split; 2]>,
    crowds: Crowds,
}

/// What they come to.
#[derive(Debug)]
pub struct RunSums {
    /// What was counted; cells say what they come to themselves.
    pub totals: RunTotals,
    /// Of how much of the hosts of crowded addresses: without sums.
    pub sample: Estimates,
    /// What the sums over all servers come to; none if all is counted.
    pub estimates: Option<RunEstimates>,
    /// The same by split and value, labels among them: of the values of which not all is counted.
    pub estimates_by: RunSplitEstimates,
}

/// What a server is by a split, as far as it is known of one that does not have the run.
fn values_of(split: Split, row: &HistoryRow, run: Option<&RunRow>, today: &Today, labels: &[String]) -> Vec<String> {
    let known = |dimension: Dimension| match dimension {
        Dimension::Country => Some(today.country.clone()),
        Dimension::Registry => Some(today.registry.clone()),
        Dimension::Organisation => Some(today.organisation.clone()),
        Dimension::Tld => Some(row.host.tld().unwrap_or("(address)").to_owned()),
        Dimension::Family => Some(family_word(today.address).to_owned()),
        _ => None,
    };
    match split {
        Split::By(dimension) => match run {
            Some(run) => value(dimension, &row.host, run).into_iter().collect(),
            None => known(dimension).into_iter().collect(),
        },
        Split::Label if labels.is_empty() => vec![NO_LABEL.to_owned()],
        Split::Label => labels.to_vec(),
        Split::Rule => Vec::new(),
    }
}

/// Whether a split's value is known before a visit.
fn is_known(split: Split) -> bool {
    match split {
        Split::By(dimension) => is_known_before(dimension),
        Split::Label => true,
        Split::Rule => false,
    }
}

fn name_of_pair(values: [&String; 2]) -> Vec<String> {
    // Three names, so that no value is taken for the name of a split.
    [String::new()].into_iter().chain(values.into_iter().cloned()).collect()
}

impl RunRows {
    /// Of this run; also by these splits together, if they are two.
    pub fn new(run: u32, by: &[Split]) -> RunRows {
        let pair = <[Split; 2]>::try_from(by).ok();
        RunRows { totals: RunTotals::new(run).crossed(by), pair, crowds: Crowds::default() }
    }

    /// Enters a server with its labels. One that comes a second time is left aside.
    pub fn enter(&mut self, row: &HistoryRow, labels: impl IntoIterator<Item = String>) {
        let labels: Vec<String> = labels.into_iter().collect();
        if !self.totals.enter(row, labels.iter().cloned()) {
            return;
        }
        let Some(today) = &row.today else { return };
        let run = row.runs.iter().find(|run| run.summary.run == self.totals.run);
        let Some(standing) = Standing::of_run(today, run.map(|run| &run.summary)) else { return };
        let RunCounts { servers, up, pages, page_bytes, failing, .. } = run.map(|run| RunCounts::of(&run.summary)).unwrap_or_default();
        let counts = Counts { servers, up, pages, page_bytes, detected_failures: failing, ..Counts::default() };
        let values = |split: Split| values_of(split, row, run, today, &labels);
        let cells = || match self.pair {
            Some(pair) => cells_of_pair(pair, pair.map(values), &counts),
            None => {
                let of = |split: Split| values(split).into_iter().map(move |value| cell_of(split, value, &counts));
                RUN_SPLITS.map(Split::By).into_iter().chain((!labels.is_empty()).then_some(Split::Label)).flat_map(of).collect()
            }
        };
        self.crowds.enter(&standing, &counts, cells);
    }

    /// What they come to.
    pub fn sums(mut self) -> RunSums {
        let crowds = &self.crowds;
        let of = |cell: &[String], counts: &RunCounts| {
            let CellEstimates { servers, up, pages, page_bytes, detected_failures: failing, not_estimated } = crowds.cell(cell)?;
            let mut estimates = RunEstimates { servers, up, pages, page_bytes, failing, not_estimated };
            estimates.settle(counts);
            Some(estimates)
        };
        let splits = self.totals.by.iter().map(|(dimension, values)| (dimension.name(), values));
        let mut estimates_by = RunSplitEstimates::new();
        for (split, values) in splits.chain([(Split::Label.name(), &self.totals.labels)]) {
            let estimated = |(value, counts): (&String, &RunCounts)| Some((value.clone(), of(&[split.to_owned(), value.clone()], counts)?));
            estimates_by.insert(split.to_owned(), values.iter().filter_map(estimated).collect());
        }
        estimates_by.retain(|_, values| !values.is_empty());
        for cell in &mut self.totals.cells {
            cell.estimates = of(&name_of_pair(cell.values.each_ref()), &cell.counts);
        }
        let Estimates { addresses, hosts, sampled, not_estimated, .. } = crowds.all();
        let sample = Estimates { addresses, hosts, sampled, not_estimated, ..Estimates::default() };
        RunSums { estimates: of(&[], &self.totals.total), sample, estimates_by, totals: self.totals }
    }
}

fn cell_of(split: Split, value: String, counts: &Counts) -> InCell {
    let cell = vec![split.name().to_owned(), value];
    InCell { known: if is_known(split) { cell.clone() } else { Vec::new() }, cell, counts: *counts }
}

fn cells_of_pair(pair: [Split; 2], mut values: [Vec<String>; 2], counts: &Counts) -> Vec<InCell> {
    // Of what is not known of a server it is in no cell, but one of the hosts that may be.
    values.iter_mut().filter(|values| values.is_empty()).for_each(|values| values.push(String::new()));
    let [ones, others] = &values;
    let cell = |one: &String, other: &String| {
        let none = String::new();
        let known = [if is_known(pair[0]) { one } else { &none }, if is_known(pair[1]) { other } else { &none }];
        InCell { cell: name_of_pair([one, other]), known: name_of_pair(known), counts: *counts }
    };
    ones.iter().flat_map(|one| others.iter().map(move |other| cell(one, other))).collect()
}
