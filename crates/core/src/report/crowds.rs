//! Estimates over rows of servers, where not all of the many hosts of an address were visited, for a reader that has gathered the rows.
//!
//! A row says with which probability its host is in the sample of its address ([`ServerRow::inclusion_probability`]): the hosts visited in
//! the order of a keyed hash (`strata`). Every host has a row, visited or not. Where the probability is 1 a host is counted as what it is,
//! and stands for no other. So of the other hosts that have something in common which is known of them before a visit, as a survey, a label
//! or a country, it is known how many there are at an address: they are a stratum, of which those in the sample are a simple random sample,
//! whatever the crawl does with other hosts there. Each of these weighs as many hosts as the stratum has, divided by how many of them are
//! in the sample: of all hosts of an address that is the inverse of the probability in their rows (Horvitz and Thompson). Where all hosts
//! of a stratum were visited each of them is counted as what it is.

use super::strata::{Figure, MIN_SAMPLED};
use nearcrawl_model::{
    estimates::{CellEstimates, Estimate, Estimates, MIN_SUMMED},
    record::{RunState, ServerRecord, ServerStatus},
    run_history::RunSummary,
    server_rows::{ServerRow, Today},
    summary::{Counts, Dimension},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

/// Whether it is known before a visit what a host is in this dimension.
pub(super) fn is_known_before(dimension: Dimension) -> bool {
    use Dimension::{Country, Family, Organisation, Registry, Tld};
    [Country, Tld, Registry, Organisation, Family].contains(&dimension)
}

/// Whether a host stands for others at its address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    address: IpAddr,
    /// It counts as what it is and stands for no other: where all hosts were visited, or it was out of its turn.
    certain: bool,
    visited: bool,
    sampled: bool,
}

impl Standing {
    fn at(address: IpAddr, visited: bool, inclusion_probability: Option<f64>) -> Standing {
        let (certain, possible) = (inclusion_probability == Some(1.0), inclusion_probability.is_some_and(|probability| probability > 0.0));
        Standing { address, certain, visited, sampled: visited && possible }
    }

    /// Of a row with this probability; none of a host without an address, which counts as what it is.
    pub(super) fn of(record: &ServerRecord, inclusion_probability: Option<f64>) -> Option<Standing> {
        let visited = inclusion_probability.is_some_and(|probability| probability > 0.0) || super::tally::is_visited(record);
        Some(Standing::at(record.address?, visited, inclusion_probability))
    }

    /// Of a server in a run, or without it. One that was elsewhere in that run counts as what it was.
    pub(super) fn of_run(today: &Today, run: Option<&RunSummary>) -> Option<Standing> {
        let address = today.address?;
        if run.is_some_and(|run| run.address != Some(address)) {
            return None;
        }
        Some(Standing::at(address, run.is_some_and(was_visited), today.inclusion_probability))
    }

    /// How many hosts it stands for whatever else is at its address; none if that depends on the others.
    pub(super) fn weight_alone(&self) -> Option<f64> {
        if self.certain { Some(1.0) } else { (!self.visited).then_some(0.0) }
    }

    pub(super) fn of_row(row: &ServerRow) -> Option<Standing> {
        Standing::of(&row.record, row.inclusion_probability)
    }
}

/// As [`super::tally::is_visited`] says it of a record.
fn was_visited(run: &RunSummary) -> bool {
    let is_over = run.known > 0 && !matches!(run.state, RunState::Running | RunState::PausedByBudget);
    run.status != ServerStatus::Waiting || is_over
}

/// Sums over hosts.
#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    hosts: u64,
    /// Hosts (among them) that count as servers: in sums of a run, those that have it.
    servers: u64,
    up: u64,
    pages: Figure,
    page_bytes: Figure,
    failures: Figure,
}

impl Sums {
    fn add(&mut self, counts: &Counts) {
        self.hosts = self.hosts.saturating_add(1);
        self.servers = self.servers.saturating_add(counts.servers);
        self.up = self.up.saturating_add(counts.up);
        self.pages.change(counts.pages, true);
        self.page_bytes.change(counts.page_bytes, true);
        self.failures.change(counts.detected_failures, true);
    }
}

/// The hosts of an address that have in common what is known before a visit.
#[derive(Debug, Default)]
struct Stratum {
    hosts: u64,
    visited: u64,
    /// Over those in the sample.
    sample: Sums,
}

impl Stratum {
    fn is_whole(&self) -> bool {
        self.visited == self.hosts
    }

    fn is_estimated(&self) -> bool {
        self.sample.hosts >= MIN_SAMPLED
    }

    /// How many hosts one of them stands for: each for itself where all were visited, else those in the sample, unless they are too few.
    fn weight(&self, sampled: bool) -> f64 {
        match (self.is_whole(), sampled && self.is_estimated()) {
            (true, _) => 1.0,
            (false, true) => self.hosts as f64 / self.sample.hosts as f64,
            (false, false) => 0.0,
        }
    }
}

/// The hosts of a stratum that are of one cell: all, and those in the sample.
#[derive(Debug, Default)]
struct Part {
    all: Sums,
    sample: Sums,
}

impl Part {
    /// What they come to; `is_known`: whether the cell has all hosts of the stratum.
    fn estimates(&self, stratum: &Stratum, is_known: bool) -> CellEstimates {
        let (hosts, sampled) = (stratum.hosts, stratum.sample.hosts);
        let share = |of: fn(&Sums) -> u64| Estimate::of_share(hosts, sampled, of(&self.sample), of(&self.all));
        let sum = |of: fn(&Sums) -> Figure| {
            let (having, counted) = (of(&self.sample).of(self.sample.hosts), of(&self.all).sum as f64);
            match (sampled < MIN_SUMMED, is_known) {
                (true, _) => Estimate::none(hosts),
                (false, true) => Estimate::of_sum(hosts, &having, counted),
                (false, false) => Estimate::of_part(hosts, &having, &of(&stratum.sample).of(sampled), counted),
            }
        };
        CellEstimates {
            // How many hosts there are is certain, and what is counted of them is known.
            servers: if is_known { Estimate::certain(hosts, self.all.servers) } else { share(|sums| sums.hosts) },
            up: share(|sums| sums.up),
            pages: sum(|sums| sums.pages),
            page_bytes: sum(|sums| sums.page_bytes),
            detected_failures: sum(|sums| sums.failures),
            not_estimated: 0,
        }
    }
}

/// A cell of a table, as a host is in it.
#[derive(Clone, Debug)]
pub(super) struct InCell {
    /// What it is called.
    pub(super) cell: Vec<String>,
    /// What of that is known before a visit: the stratum.
    pub(super) known: Vec<String>,
    /// What the host adds to it.
    pub(super) counts: Counts,
}

#[derive(Debug, Default)]
struct Cell {
    known: Vec<String>,
    parts: BTreeMap<IpAddr, Part>,
}

/// Addresses with many hosts of which not all were visited, with sums by cell. The cell without a name has all hosts.
#[derive(Debug, Default)]
pub(super) struct Crowds {
    strata: BTreeMap<(Vec<String>, IpAddr), Stratum>,
    cells: BTreeMap<Vec<String>, Cell>,
    /// How many hosts of each address count as what they are and stand for no other.
    certain: BTreeMap<IpAddr, u64>,
}

impl Crowds {
    /// Enters a host, with all that it adds to sums, and the cells that it is in.
    pub(super) fn enter(&mut self, at: &Standing, counts: &Counts, cells: impl FnOnce() -> Vec<InCell>) {
        if at.certain {
            *self.certain.entry(at.address).or_default() += 1;
            return;
        }
        let all = InCell { cell: Vec::new(), known: Vec::new(), counts: *counts };
        let cells = [all].into_iter().chain(cells()).collect::<Vec<_>>();
        for known in cells.iter().map(|cell| &cell.known).collect::<BTreeSet<_>>() {
            let stratum = self.strata.entry((known.clone(), at.address)).or_default();
            stratum.hosts += 1;
            stratum.visited += u64::from(at.visited);
            if at.sampled {
                stratum.sample.add(counts);
            }
        }
        for InCell { cell, known, counts } in cells {
            let part =
                self.cells.entry(cell).or_insert_with(|| Cell { known, parts: BTreeMap::new() }).parts.entry(at.address).or_default();
            part.all.add(&counts);
            if at.sampled {
                part.sample.add(&counts);
            }
        }
    }

    /// The estimates of a cell, as what they differ by from what was counted; none where all is counted.
    pub(super) fn cell(&self, cell: &[String]) -> Option<CellEstimates> {
        let Cell { known, parts } = self.cells.get(cell)?;
        let mut estimates: Option<CellEstimates> = None;
        for (address, part) in parts {
            let Some(stratum) = self.strata.get(&(known.clone(), *address)).filter(|stratum| !stratum.is_whole()) else { continue };
            let sum = estimates.get_or_insert_default();
            let is_known = cell == known;
            sum.add(&if stratum.is_estimated() {
                part.estimates(stratum, is_known)
            } else {
                CellEstimates::none(stratum.hosts, part.all.servers, is_known)
            });
        }
        estimates
    }

    /// The estimates of the sums over all hosts, without those by split, as what they differ by from what was counted.
    pub(super) fn all(&self) -> Estimates {
        let mut estimates = Estimates::default();
        for ((_, address), stratum) in self.strata.iter().filter(|((known, _), stratum)| known.is_empty() && !stratum.is_whole()) {
            estimates.addresses += 1;
            estimates.hosts += stratum.hosts + self.certain.get(address).copied().unwrap_or(0);
            estimates.sampled += if stratum.is_estimated() { stratum.sample.hosts } else { 0 };
            estimates.not_estimated += if stratum.is_estimated() { 0 } else { stratum.hosts };
        }
        let CellEstimates { up, pages, page_bytes, .. } = self.cell(&[]).unwrap_or_default();
        Estimates { up, pages, page_bytes, ..estimates }
    }

    /// How many hosts this one stands for among all that were entered, now that they have been.
    pub(super) fn weight(&self, at: &Standing) -> f64 {
        let stratum = self.strata.get(&(Vec::new(), at.address)).filter(|_| !at.certain);
        stratum.map_or(1.0, |stratum| stratum.weight(at.sampled))
    }
}
