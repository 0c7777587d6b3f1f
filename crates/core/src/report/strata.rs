//! The visited part of the hosts of an address, and what it says of the others.
//!
//! Hosts of one address begin their runs in the order of their places ([`crate::crawl::scheduler::place_of`]). Those visited are not just
//! the first in line: a host that was known when few others were began out of its turn, and one named later stands before some that were
//! visited. So the sample is cut where the line fits best: at the place before which the fewest hosts are not visited and behind which the
//! fewest are. Which hosts stand before it depends on the key and on how many were visited, not on what they are: they are a simple random
//! sample of all that are known. Those visited out of their turn behind it count as what they are, and stand for no others.

use super::contribution::Contribution;
use nearcrawl_model::{
    estimates::{Estimate, Estimates},
    summary::{Counts, Dimension},
    url::Host,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

/// Hosts of one address that are counted without an estimate: they are all visited soon.
pub(crate) const SMALL: usize = 64;

/// So many have to be visited before anything is said of the others.
pub(super) const MIN_SAMPLED: u64 = 10;

/// What is not known before a host is visited.
const ESTIMATED: [Dimension; 6] =
    [Dimension::Software, Dimension::Status, Dimension::Language, Dimension::Script, Dimension::Http, Dimension::Tls];

/// Sums over hosts: visited ones, or the others.
#[derive(Debug, Default, Clone)]
struct Sums {
    hosts: u64,
    up: u64,
    pages: u128,
    pages_squared: u128,
    bytes: u128,
    bytes_squared: u128,
    values: BTreeMap<(Dimension, String), u64>,
}

impl Sums {
    fn change(&mut self, of: &Contribution, enters: bool) {
        let Counts { up, pages, page_bytes, .. } = of.counts;
        let (pages, bytes) = (u128::from(pages), u128::from(page_bytes));
        let sum = |sum: &mut u128, by: u128| *sum = if enters { sum.saturating_add(by) } else { sum.saturating_sub(by) };
        let count = |sum: &mut u64, by: u64| *sum = if enters { sum.saturating_add(by) } else { sum.saturating_sub(by) };
        count(&mut self.hosts, 1);
        count(&mut self.up, up);
        sum(&mut self.pages, pages);
        sum(&mut self.pages_squared, pages.saturating_mul(pages));
        sum(&mut self.bytes, bytes);
        sum(&mut self.bytes_squared, bytes.saturating_mul(bytes));
        for (dimension, value) in of.values.iter().filter(|(dimension, _)| ESTIMATED.contains(dimension)) {
            let key = (*dimension, value.clone());
            let hosts = self.values.entry(key.clone()).or_default();
            count(hosts, 1);
            if *hosts == 0 {
                self.values.remove(&key);
            }
        }
    }
}

/// The hosts of one address.
#[derive(Debug, Default)]
struct Stratum {
    /// In line, and whether each was visited.
    line: BTreeMap<(u64, Host), bool>,
    /// Over those visited, and over the others; kept while there are more than [`SMALL`].
    visited: Sums,
    waiting: Sums,
}

/// Where the sample ends.
#[derive(Debug)]
struct Cut {
    /// The last host in it.
    last: (u64, Host),
    sampled: u64,
}

impl Stratum {
    fn is_large(&self) -> bool {
        self.line.len() > SMALL
    }

    fn sums(&mut self, visited: bool) -> &mut Sums {
        if visited { &mut self.visited } else { &mut self.waiting }
    }

    /// Where the line fits best, if that leaves enough.
    fn cut(&self) -> Option<Cut> {
        let (mut sampled, mut misfits) = (0, i64::try_from(self.visited.hosts).unwrap_or(i64::MAX));
        let (mut best, mut fewest) = (None, misfits);
        for (place, visited) in &self.line {
            sampled += u64::from(*visited);
            misfits += if *visited { -1 } else { 1 };
            if misfits <= fewest && *visited {
                (best, fewest) = (Some((place, sampled)), misfits);
            }
        }
        best.filter(|(_, sampled)| *sampled >= MIN_SAMPLED).map(|(last, sampled)| Cut { last: last.clone(), sampled })
    }

    fn figures(&self, sites: &BTreeMap<Host, Contribution>) -> Figures {
        let hosts = self.line.len() as u64;
        if self.waiting.hosts == 0 {
            return Figures { estimates: Estimates::default(), cut: None };
        }
        let Some(cut) = self.cut() else {
            let estimates = Estimates { addresses: 1, hosts, not_estimated: hosts, ..Estimates::default() };
            return Figures { estimates, cut: None };
        };
        let Cut { last, sampled } = &cut;
        let sampled = *sampled;
        let mut sample = self.visited.clone();
        use std::ops::Bound::{Excluded, Unbounded};
        let ahead = self.line.range((Excluded(last), Unbounded)).filter(|(_, visited)| **visited);
        ahead.filter_map(|((_, host), _)| sites.get(host)).for_each(|contribution| sample.change(contribution, false));
        let counted = |of: fn(&Sums) -> u128| of(&self.visited).saturating_add(of(&self.waiting)) as f64;
        let mut by: BTreeMap<Dimension, BTreeMap<String, Estimate>> = BTreeMap::new();
        let keys: BTreeSet<_> = self.visited.values.keys().chain(self.waiting.values.keys()).collect();
        for key in keys {
            let of = |sums: &Sums| sums.values.get(key).copied().unwrap_or(0);
            let estimate = Estimate::of_share(hosts, sampled, of(&sample), of(&self.visited) + of(&self.waiting));
            by.entry(key.0).or_default().insert(key.1.clone(), estimate);
        }
        let estimates = Estimates {
            addresses: 1,
            hosts,
            sampled,
            not_estimated: 0,
            up: Estimate::of_share(hosts, sampled, sample.up, self.visited.up + self.waiting.up),
            pages: Estimate::of_sum(hosts, sampled, sample.pages as f64, sample.pages_squared as f64, counted(|sums| sums.pages)),
            page_bytes: Estimate::of_sum(hosts, sampled, sample.bytes as f64, sample.bytes_squared as f64, counted(|sums| sums.bytes)),
            by,
        };
        Figures { estimates, cut: Some(cut) }
    }
}

/// What is said of an address.
#[derive(Debug)]
struct Figures {
    estimates: Estimates,
    cut: Option<Cut>,
}

/// The addresses of our hosts.
#[derive(Debug, Default)]
pub(super) struct Strata {
    addresses: BTreeMap<IpAddr, Stratum>,
    /// Those with more than [`SMALL`] hosts; what is said of each, unless something has changed since.
    large: BTreeMap<IpAddr, Option<Figures>>,
}

impl Strata {
    /// A host's contribution counts from now on; `sites` has it already.
    pub(super) fn enter(&mut self, host: &Host, sites: &BTreeMap<Host, Contribution>) {
        let Some(of) = sites.get(host) else { return };
        let Some(address) = of.address else { return };
        let stratum = self.addresses.entry(address).or_default();
        let was_large = stratum.is_large();
        stratum.line.insert((of.place, host.clone()), of.visited);
        if was_large {
            stratum.sums(of.visited).change(of, true);
        } else if stratum.is_large() {
            let all: Vec<_> = stratum.line.keys().filter_map(|(_, host)| sites.get(host)).collect();
            all.into_iter().for_each(|of| stratum.sums(of.visited).change(of, true));
        }
        if stratum.is_large() {
            self.large.insert(address, None);
        }
    }

    /// A host's contribution counts no more.
    pub(super) fn remove(&mut self, host: &Host, of: &Contribution) {
        let Some(address) = of.address else { return };
        let Some(stratum) = self.addresses.get_mut(&address) else { return };
        let was_large = stratum.is_large();
        stratum.line.remove(&(of.place, host.clone()));
        if stratum.is_large() {
            stratum.sums(of.visited).change(of, false);
            self.large.insert(address, None);
        } else if was_large {
            (stratum.visited, stratum.waiting) = (Sums::default(), Sums::default());
            self.large.remove(&address);
        }
        if stratum.line.is_empty() {
            self.addresses.remove(&address);
        }
    }

    /// The estimates of all addresses with many hosts of which some were not visited.
    pub(super) fn estimates(&mut self, sites: &BTreeMap<Host, Contribution>) -> Estimates {
        let mut sum = Estimates::default();
        for (address, known) in &mut self.large {
            let Some(stratum) = self.addresses.get(address) else { continue };
            sum.add(&known.get_or_insert_with(|| stratum.figures(sites)).estimates);
        }
        sum
    }

    /// The probability with which a host is in the sample that estimates rest on, as of when they were made last: 1 at an address with few
    /// hosts, or where all were visited. None of a host that is not in the sample.
    pub(super) fn inclusion_probability(&self, host: &Host, of: &Contribution) -> Option<f64> {
        let Some(known) = of.address.and_then(|address| self.large.get(&address)) else { return Some(1.0) };
        let Figures { estimates, cut } = known.as_ref()?;
        if !estimates.is_any() {
            return Some(1.0);
        }
        let Cut { last, .. } = cut.as_ref()?;
        let is_sampled = of.visited && (of.place, host) <= (last.0, &last.1);
        is_sampled.then(|| estimates.sampled as f64 / estimates.hosts as f64)
    }
}
