//! The visited part of the hosts of an address, and what it says of the others.
//!
//! Hosts of one address begin their runs in the order of their places ([`crate::crawl::scheduler::place_of`]). Those visited are not just
//! the first in line: a host that was known when few others were began out of its turn, and one named later stands before some that were
//! visited. So the line is cut where it fits best: at the place before which the fewest hosts are not visited and behind which the
//! fewest are. Those visited out of their turn are what they are and stand for no others, as if their address were another one: a starting
//! URL is often the largest host of all. These are the ones behind the cut, and those before it that began as early as most of them
//! ([`Stratum::early`]). Of the hosts that remain, which stand before the cut depends on the key and on how many were visited, not on
//! what they are: the visited ones are a simple random sample.

use super::contribution::Contribution;
use nearcrawl_model::{
    estimates::{Estimate, Estimates, MIN_SUMMED, Sampled},
    summary::{Counts, Dimension},
    time::WallTime,
    url::Host,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    ops::Bound::{Excluded, Unbounded},
};

/// Hosts of one address that are counted without an estimate: they are all visited soon.
pub(crate) const SMALL: usize = 64;

/// So many have to be visited before anything is said of the others.
pub(super) const MIN_SAMPLED: u64 = 10;

/// What is not known before a host is visited.
const ESTIMATED: [Dimension; 6] =
    [Dimension::Software, Dimension::Status, Dimension::Language, Dimension::Script, Dimension::Http, Dimension::Tls];

/// The sums of the first three powers of a figure.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Figure {
    pub(super) sum: u128,
    squares: u128,
    cubes: u128,
}

impl Figure {
    pub(super) fn change(&mut self, value: u64, enters: bool) {
        let value = u128::from(value);
        let square = value.saturating_mul(value);
        let powers = [value, square, square.saturating_mul(value)];
        for (sum, by) in [&mut self.sum, &mut self.squares, &mut self.cubes].into_iter().zip(powers) {
            *sum = if enters { sum.saturating_add(by) } else { sum.saturating_sub(by) };
        }
    }

    pub(super) fn of(&self, hosts: u64) -> Sampled {
        Sampled { hosts, sum: self.sum as f64, squares: self.squares as f64, cubes: self.cubes as f64 }
    }
}

/// Sums over hosts: visited ones, or the others.
#[derive(Debug, Default, Clone)]
struct Sums {
    hosts: u64,
    up: u64,
    pages: Figure,
    bytes: Figure,
    values: BTreeMap<(Dimension, String), u64>,
}

impl Sums {
    fn change(&mut self, of: &Contribution, enters: bool) {
        let Counts { up, pages, page_bytes, .. } = of.counts;
        let count = |sum: &mut u64, by: u64| *sum = if enters { sum.saturating_add(by) } else { sum.saturating_sub(by) };
        count(&mut self.hosts, 1);
        count(&mut self.up, up);
        self.pages.change(pages, enters);
        self.bytes.change(page_bytes, enters);
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
    /// In line, and when each that was visited was asked first.
    line: BTreeMap<(u64, Host), Option<WallTime>>,
    /// Over those visited, and over the others; kept while there are more than [`SMALL`].
    visited: Sums,
    waiting: Sums,
}

/// Where the line fits best.
#[derive(Debug)]
struct Cut {
    /// The last host before it.
    last: (u64, Host),
    /// The hosts before it, and how many of these were visited.
    hosts: u64,
    visited: u64,
}

/// Which of the hosts of an address are the sample.
#[derive(Debug)]
struct Sample {
    /// The last one in line.
    last: (u64, Host),
    /// Who began until then did so out of turn.
    early: Option<WallTime>,
    hosts: u64,
    /// Of how many hosts it is a sample: of all but those visited out of their turn.
    of: u64,
}

impl Sample {
    /// Whether a host that was visited was visited out of its turn.
    fn is_certain(&self, at: (u64, &Host), began: WallTime) -> bool {
        at > (self.last.0, &self.last.1) || self.early.is_some_and(|early| began <= early)
    }
}

impl Stratum {
    fn is_large(&self) -> bool {
        self.line.len() > SMALL
    }

    fn sums(&mut self, visited: bool) -> &mut Sums {
        if visited { &mut self.visited } else { &mut self.waiting }
    }

    /// Where the line fits best; none where nothing was visited.
    fn cut(&self) -> Option<Cut> {
        let (mut visited, mut misfits) = (0, i64::try_from(self.visited.hosts).unwrap_or(i64::MAX));
        let (mut best, mut fewest) = (None, misfits);
        for (hosts, (place, began)) in (1..).zip(&self.line) {
            visited += u64::from(began.is_some());
            misfits += if began.is_some() { -1 } else { 1 };
            if misfits <= fewest && began.is_some() {
                (best, fewest) = (Some((place, hosts, visited)), misfits);
            }
        }
        best.map(|(last, hosts, visited)| Cut { last: last.clone(), hosts, visited })
    }

    /// Until when hosts began whatever their place, because few others were known; none if no host behind the cut was visited.
    ///
    /// Such hosts stand anywhere in line, so a part of them stands before the cut. They are told from those that began in their turn by
    /// time: of the times at which those behind the cut began, the one until which most of these did, and few of those before the cut. How
    /// many of these there are for each of those behind it, if all began out of turn, follows from how many hosts there are on each side:
    /// up to twice as many, or one at least, are taken for such, and are missed in the sample if they are not.
    fn early(&self, cut: &Cut) -> Option<WallTime> {
        let behind = self.line.range((Excluded(&cut.last), Unbounded)).filter_map(|(_, began)| *began);
        let mut behind: Vec<WallTime> = behind.collect();
        behind.sort_unstable();
        // How many before the cut began since the time before, until each of these times.
        let mut before = vec![0_u64; behind.len()];
        for began in self.line.range(..=&cut.last).filter_map(|(_, began)| *began) {
            if let Some(count) = before.get_mut(behind.partition_point(|until| *until < began)) {
                *count += 1;
            }
        }
        let rest = self.line.len() as u64 - cut.hosts;
        let expected = cut.hosts as f64 / rest.max(1) as f64;
        let worth = (2.0 * expected).max(1.0);
        let (mut early, mut least, mut missed) = (None, 0.0, 0);
        for ((until, before), explained) in behind.into_iter().zip(before).zip(1_u64..) {
            missed += before;
            let cost = missed as f64 - worth * explained as f64;
            if cost <= least {
                (early, least) = (Some(until), cost);
            }
        }
        early
    }

    /// The sample and the sums over it, if it is large enough.
    fn sample(&self, sites: &BTreeMap<Host, Contribution>) -> Option<(Sample, Sums)> {
        let cut = self.cut().filter(|cut| cut.visited >= MIN_SAMPLED)?;
        let early = self.early(&cut);
        let mut sample = Sample { last: cut.last, early, hosts: 0, of: self.line.len() as u64 };
        let mut sums = self.visited.clone();
        for ((place, host), began) in self.line.iter().filter_map(|(at, began)| Some((at, (*began)?))) {
            if sample.is_certain((*place, host), began) {
                sample.of -= 1;
                sites.get(host).iter().for_each(|contribution| sums.change(contribution, false));
            }
        }
        sample.hosts = sums.hosts;
        (sample.hosts >= MIN_SAMPLED).then_some((sample, sums))
    }

    fn figures(&self, sites: &BTreeMap<Host, Contribution>) -> Figures {
        let hosts = self.line.len() as u64;
        if self.waiting.hosts == 0 {
            return Figures { estimates: Estimates::default(), sample: None };
        }
        let Some((sample, sums)) = self.sample(sites) else {
            return Figures { estimates: Estimates::none(hosts), sample: None };
        };
        let (of, sampled) = (sample.of, sample.hosts);
        let mut by: BTreeMap<Dimension, BTreeMap<String, Estimate>> = BTreeMap::new();
        let keys: BTreeSet<_> = self.visited.values.keys().chain(self.waiting.values.keys()).collect();
        for key in keys {
            let [having, waiting] = [&sums, &self.waiting].map(|sums| sums.values.get(key).copied().unwrap_or(0));
            by.entry(key.0).or_default().insert(key.1.clone(), Estimate::of_share(of, sampled, having, having + waiting));
        }
        let sum = |figure: fn(&Sums) -> Figure| {
            let (visited, waiting) = (figure(&sums), figure(&self.waiting));
            let counted = visited.sum.saturating_add(waiting.sum) as f64;
            if sampled < MIN_SUMMED { Estimate::none(hosts) } else { Estimate::of_sum(of, &visited.of(sampled), counted) }
        };
        let estimates = Estimates {
            addresses: 1,
            hosts,
            sampled,
            not_estimated: 0,
            up: Estimate::of_share(of, sampled, sums.up, sums.up + self.waiting.up),
            pages: sum(|sums| sums.pages),
            page_bytes: sum(|sums| sums.bytes),
            by,
        };
        Figures { estimates, sample: Some(sample) }
    }
}

/// What is said of an address.
#[derive(Debug)]
struct Figures {
    estimates: Estimates,
    /// None if it is too small, or nothing is estimated.
    sample: Option<Sample>,
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
            stratum.sums(of.visited.is_some()).change(of, true);
        } else if stratum.is_large() {
            let all: Vec<_> = stratum.line.keys().filter_map(|(_, host)| sites.get(host)).collect();
            all.into_iter().for_each(|of| stratum.sums(of.visited.is_some()).change(of, true));
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
            stratum.sums(of.visited.is_some()).change(of, false);
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

    /// The probability with which a host is in the sample that estimates rest on, since these were made anew: 1 at an address with few
    /// hosts, or where all were visited, and of a host that was visited out of its turn. None of a host that is not in the sample.
    pub(super) fn inclusion_probability(&self, host: &Host, of: &Contribution) -> Option<f64> {
        let Some(known) = of.address.and_then(|address| self.large.get(&address)) else { return Some(1.0) };
        let Figures { estimates, sample } = known.as_ref()?;
        if !estimates.is_any() {
            return Some(1.0);
        }
        let (sample, began) = (sample.as_ref()?, of.visited?);
        Some(if sample.is_certain((of.place, host), began) { 1.0 } else { sample.hosts as f64 / sample.of as f64 })
    }
}
