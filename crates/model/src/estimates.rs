//! Estimates of totals, with their errors, where only a sample of the hosts of an address was visited.
//!
//! An address with many hosts is a stratum: its hosts are visited in the order of a keyed hash, so those visited are a simple random sample
//! of those known (docs/ALGORITHMS.md, "Addresses with many hosts"). Strata are independent: their estimates add up, and so do the
//! variances.

use super::{
    summary::{Counts, Dimension, MAX_VALUE, MAX_VALUES},
    view::counted,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};
use utoipa::ToSchema;

/// The quantile of the normal distribution for an interval that is right in 95 of 100 cases.
const Z: f64 = 1.96;

/// The largest number that is taken over from a member: sums of such stay finite.
const MAX_SUM: f64 = 1e150;

/// Fewer hosts than so many say nothing of how far others differ.
const MIN_SPREAD: u64 = 10;

/// Fewer than so many may all be alike by chance, though others differ.
const MIN_SURE_SPREAD: u64 = 30;

/// A figure of visited hosts: how many they are, its sum and its sum of squares.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sampled {
    /// How many hosts.
    pub hosts: u64,
    /// Their sum.
    pub sum: f64,
    /// The sum of their squares.
    pub squares: f64,
}

impl Sampled {
    fn mean_and_variance(&self) -> (f64, f64) {
        let n = self.hosts as f64;
        let mean = self.sum / n;
        (mean, ((self.squares - n * mean * mean) / (n - 1.0)).max(0.0))
    }
}

/// The estimate of one sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Estimate {
    /// By how much it differs from what was counted.
    pub more: f64,
    /// Its variance.
    pub variance: f64,
    /// What was counted and `more`, rounded. Set by who answers.
    #[serde(default)]
    pub estimated: u64,
    /// Half the width of the 95 % interval, rounded up. Set by who answers.
    #[serde(default)]
    pub margin: u64,
}

/// What is told is finite: [`Estimates::is_tellable`].
impl Eq for Estimate {}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ± {}", self.estimated, self.margin)
    }
}

impl Estimate {
    /// Of a stratum of so many hosts of which `sampled` were visited: the estimate of a sum over all of them. Of those visited these are the
    /// sum and the sum of squares; `counted` is what is in the totals.
    pub fn of_sum(hosts: u64, sampled: u64, sum: f64, squares: f64, counted: f64) -> Estimate {
        let (hosts, n) = (hosts as f64, sampled as f64);
        let mean = sum / n;
        let variance = ((squares - n * mean * mean) / (n - 1.0)).max(0.0);
        Estimate { more: hosts * mean - counted, variance: hosts * hosts * (1.0 - n / hosts) * variance / n, ..Estimate::default() }
    }

    /// The same of how many hosts have a property that `having` of those visited have. The error is that of a share with two more hosts that
    /// have it and two that have not (Agresti and Coull): without them it would be too small where few or almost all have it.
    pub fn of_share(hosts: u64, sampled: u64, having: u64, counted: u64) -> Estimate {
        let (hosts, n, having) = (hosts as f64, sampled as f64, having as f64);
        let share = (having + 2.0) / (n + 4.0);
        let variance = hosts * hosts * (1.0 - n / hosts) * share * (1.0 - share) / (n - 1.0);
        Estimate { more: hosts * having / n - counted as f64, variance, ..Estimate::default() }
    }

    /// Of a number that is known, of which `counted` is in the totals.
    pub fn certain(number: u64, counted: u64) -> Estimate {
        Estimate { more: number as f64 - counted as f64, ..Estimate::default() }
    }

    /// Of a sum over those hosts of a stratum that have a property which is not known of a host before it is visited, as `having` of those
    /// visited do: these are their sum and sum of squares, and `counted` is what is in the totals. The error is that of their number, as in
    /// [`Estimate::of_share`], together with that of their mean, and as much wider as Student's distribution is than the normal one. The spread
    /// of few says nothing: then it is that of all visited. That of some more is taken for no smaller than that.
    pub fn of_part(hosts: u64, having: &Sampled, visited: &Sampled, counted: f64) -> Estimate {
        let (hosts, n) = (hosts as f64, visited.hosts as f64);
        let spread = if having.hosts < MIN_SPREAD { visited } else { having };
        let (mut mean, mut variance) = spread.mean_and_variance();
        if (MIN_SPREAD..MIN_SURE_SPREAD).contains(&having.hosts) {
            let of_all = visited.mean_and_variance();
            (mean, variance) = (mean.max(of_all.0), variance.max(of_all.1));
        }
        let wider = 1.0 + (Z * Z + 1.0) / (2.0 * (spread.hosts as f64 - 1.0));
        let share = (having.hosts as f64 + 2.0) / (n + 4.0);
        let of_one = share * (1.0 - share) * mean * mean + share * variance;
        let variance = (hosts * hosts * (1.0 - n / hosts) * of_one * wider / (n - 1.0)).max(0.0);
        Estimate { more: hosts * having.sum / n - counted, variance, ..Estimate::default() }
    }

    /// In words: the number alone if it is certain; where nothing is said of some hosts it may be more.
    pub fn told(&self, not_estimated: u64) -> String {
        let told = if self.variance == 0.0 { self.estimated.to_string() } else { self.to_string() };
        if not_estimated > 0 { format!("{told} or more") } else { told }
    }

    /// Adds another stratum's.
    pub fn add(&mut self, other: &Estimate) {
        self.more += other.more;
        self.variance += other.variance;
    }

    /// Says what it comes to beside what was counted.
    pub fn settle(&mut self, counted: u64) {
        self.estimated = (counted as f64 + self.more).round().max(0.0) as u64;
        self.margin = (Z * self.variance.sqrt()).ceil() as u64;
    }

    fn is_tellable(&self) -> bool {
        self.more.abs() <= MAX_SUM && (0.0..=MAX_SUM).contains(&self.variance)
    }
}

/// The estimates of the sums of one cell of a table, or of one value of a split. Servers are estimated only where it is not known before a visit
/// whether a host is in it; else they are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellEstimates {
    /// Servers in it.
    pub servers: Estimate,
    /// Of these, the ones that would answer with a page.
    pub up: Estimate,
    /// HTML pages that would be fetched of them.
    pub pages: Estimate,
    /// Size of all their bodies, in bytes.
    pub page_bytes: Estimate,
    /// Accessibility failures that would be detected in them; of a rule those of this rule alone.
    pub detected_failures: Estimate,
    /// Hosts that are in it, or may be, at addresses of which so few were visited that nothing can be said of the others.
    pub not_estimated: u64,
}

impl CellEstimates {
    /// What the estimates of a cell come to where nothing is estimated: what was counted.
    pub fn counted(counts: &Counts) -> CellEstimates {
        let mut estimates = CellEstimates::default();
        estimates.settle(counts);
        estimates
    }

    /// One of them in words: the number alone if it is certain; where nothing is said of some hosts it may be more.
    pub fn told(&self, of: impl Fn(&CellEstimates) -> Estimate) -> String {
        of(self).told(self.not_estimated)
    }

    /// Adds those of another stratum.
    pub fn add(&mut self, other: &CellEstimates) {
        self.servers.add(&other.servers);
        self.up.add(&other.up);
        self.pages.add(&other.pages);
        self.page_bytes.add(&other.page_bytes);
        self.detected_failures.add(&other.detected_failures);
        self.not_estimated = self.not_estimated.saturating_add(other.not_estimated);
    }

    /// Says what they come to beside what was counted.
    pub fn settle(&mut self, counts: &Counts) {
        self.servers.settle(counts.servers);
        self.up.settle(counts.up);
        self.pages.settle(counts.pages);
        self.page_bytes.settle(counts.page_bytes);
        self.detected_failures.settle(counts.detected_failures);
    }
}

/// The estimates of totals. Where there are none, the totals are counts of everything that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Estimates {
    /// Addresses with so many hosts that they are visited one after another, and not all have been.
    pub addresses: u64,
    /// Hosts known there.
    pub hosts: u64,
    /// Of these, the ones visited in the order of the sample.
    pub sampled: u64,
    /// Hosts (among `hosts`) at addresses of which so few were visited that nothing can be said of the others.
    pub not_estimated: u64,
    /// Servers that would answer with a page.
    pub up: Estimate,
    /// HTML pages that would be fetched.
    pub pages: Estimate,
    /// Size of all bodies, in bytes.
    pub page_bytes: Estimate,
    /// Servers by dimension and value. Only what is not known before a host is visited is estimated.
    #[schema(value_type = BTreeMap<String, BTreeMap<String, Estimate>>)]
    pub by: BTreeMap<Dimension, BTreeMap<String, Estimate>>,
}

impl Estimates {
    /// Whether anything is estimated, or would have to be.
    pub fn is_any(&self) -> bool {
        self.addresses > 0
    }

    /// Adds those of other strata.
    pub fn add(&mut self, other: &Estimates) {
        self.addresses = self.addresses.saturating_add(other.addresses);
        self.hosts = self.hosts.saturating_add(other.hosts);
        self.sampled = self.sampled.saturating_add(other.sampled);
        self.not_estimated = self.not_estimated.saturating_add(other.not_estimated);
        self.up.add(&other.up);
        self.pages.add(&other.pages);
        self.page_bytes.add(&other.page_bytes);
        for (dimension, values) in &other.by {
            let mine = self.by.entry(*dimension).or_default();
            values.iter().for_each(|(value, estimate)| mine.entry(value.clone()).or_default().add(estimate));
        }
    }

    /// Those of a summary that tells these values only; all others are added up as `other`. Variances add up as those of values which do not
    /// exclude each other: the error of their sum comes out too large, if anything.
    pub fn within(mut self, told: &BTreeMap<Dimension, BTreeMap<String, Counts>>, other: &str) -> Estimates {
        for (dimension, values) in &mut self.by {
            for (value, estimate) in std::mem::take(values) {
                let is_told = told.get(dimension).is_some_and(|told| told.contains_key(&value));
                let value = if is_told { value } else { other.to_owned() };
                values.entry(value).or_default().add(&estimate);
            }
        }
        self
    }

    /// Says what they come to beside what was counted.
    pub fn settle(&mut self, total: &Counts, by: &BTreeMap<Dimension, BTreeMap<String, Counts>>) {
        self.up.settle(total.up);
        self.pages.settle(total.pages);
        self.page_bytes.settle(total.page_bytes);
        for (dimension, values) in &mut self.by {
            for (value, estimate) in values {
                let counted = by.get(dimension).and_then(|values| values.get(value));
                estimate.settle(counted.map_or(0, |counts| counts.servers));
            }
        }
    }

    /// What the sums come to, in words; none if nothing is estimated.
    pub fn totals(&self) -> Option<String> {
        let Estimates { hosts, not_estimated, up, pages, page_bytes, .. } = self;
        (not_estimated < hosts).then(|| format!("{up} servers up, {pages} pages, {page_bytes} bytes of pages"))
    }

    /// What was estimated, from what, in words; none if all is counted.
    pub fn sentence(&self) -> Option<String> {
        let Estimates { addresses, hosts, sampled, not_estimated, .. } = self;
        let places = format!(
            "{} at {} with many",
            counted(*hosts, "host"),
            if *addresses == 1 { "1 address".to_owned() } else { format!("{addresses} addresses") }
        );
        let so_far = match not_estimated {
            0 => format!("{sampled} of {places} were visited so far, in random order"),
            rest => {
                format!("{sampled} of {places} were visited so far, in random order; nothing is estimated of {rest} where too few were")
            }
        };
        self.is_any().then(|| self.totals().map_or(so_far.clone(), |totals| format!("estimated: {totals}; {so_far}")))
    }

    /// The estimate of how many servers have this value, if there is one.
    pub fn servers(&self, dimension: Dimension, value: &str) -> Option<&Estimate> {
        self.by.get(&dimension)?.get(value)
    }

    /// Whether a member may tell them.
    pub fn is_tellable(&self) -> bool {
        let fits = |values: &BTreeMap<String, Estimate>| {
            values.len() <= MAX_VALUES + 1 && values.iter().all(|(value, estimate)| value.len() <= MAX_VALUE && estimate.is_tellable())
        };
        [self.up, self.pages, self.page_bytes].iter().all(Estimate::is_tellable) && self.by.values().all(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_and_a_sum_are_those_of_a_sample_without_replacement() {
        let mut up = Estimate::of_share(1_000, 100, 50, 50);
        up.settle(50);
        // 1000 · √(0.9 · 0.25 / 99) · 1.96 = 93.4
        assert_eq!((up.estimated, up.margin), (500, 94));
        let mut pages = Estimate::of_sum(1_000, 100, 300.0, 1_000.0, 300.0);
        pages.settle(300);
        // s² = (1000 − 900) / 99; 1000 · √(0.9 · 1.0101 / 100) · 1.96 = 186.9
        assert_eq!((pages.estimated, pages.margin), (3_000, 187));
        let mut all = Estimate::of_share(100, 100, 30, 30);
        all.settle(30);
        assert_eq!((all.estimated, all.margin), (30, 0), "nothing is uncertain where all were visited");
    }

    #[test]
    fn a_part_that_few_or_none_of_those_visited_have_is_not_said_to_be_sure() {
        let visited = Sampled { hosts: 100, sum: 300.0, squares: 1_000.0 };
        let all = Estimate::of_part(1_000, &visited, &visited, 300.0);
        let whole = Estimate::of_sum(1_000, 100, 300.0, 1_000.0, 300.0);
        assert!(all.more == whole.more && (1.0..1.3).contains(&(all.variance / whole.variance)), "{all:?} {whole:?}");
        let mut none = Estimate::of_part(1_000, &Sampled::default(), &visited, 0.0);
        none.settle(0);
        assert!(none.estimated == 0 && none.margin > 50, "{none}: others may have it");
        let half = Sampled { hosts: 50, sum: 150.0, squares: 500.0 };
        let mut part = Estimate::of_part(1_000, &half, &visited, 150.0);
        part.settle(150);
        // 1000 · √(0.9 · (0.25 · 9 + 0.5 · 1.0204) · (1 + 4.8416 / 98) / 99) · 1.96 = 318.1
        assert_eq!((part.estimated, part.margin), (1_500, 319));
        let alike = Sampled { hosts: 20, sum: 0.0, squares: 0.0 };
        let mut few = Estimate::of_part(1_000, &alike, &visited, 0.0);
        few.settle(0);
        assert!(few.estimated == 0 && few.margin > 150, "{few}: others that have it may differ as all do");
        assert_eq!(Estimate::of_part(100, &half, &Sampled { hosts: 100, ..visited }, 150.0).variance, 0.0, "all were visited");
    }

    #[test]
    fn strata_add_up_and_what_is_not_finite_is_not_told() {
        let one = Estimate { more: 10.0, variance: 9.0, ..Estimate::default() };
        let other = Estimate { more: -4.0, variance: 16.0, ..Estimate::default() };
        let by = |value: &str, estimate| BTreeMap::from([(Dimension::Status, BTreeMap::from([(value.to_owned(), estimate)]))]);
        let mut sum = Estimates { addresses: 1, up: one, by: by("up", one), ..Estimates::default() };
        sum.add(&Estimates { addresses: 1, up: other, by: by("down", other), ..Estimates::default() });
        let counts = |servers| Counts { servers, up: servers, ..Counts::default() };
        let told = BTreeMap::from([(Dimension::Status, BTreeMap::from([("up".to_owned(), counts(20))]))]);
        sum.settle(&counts(20), &told);
        assert_eq!((sum.up.estimated, sum.up.margin, sum.addresses), (26, 10, 2));
        assert_eq!(sum.servers(Dimension::Status, "up").map(|up| up.estimated), Some(30));
        let within = sum.clone().within(&told, "(other)");
        assert_eq!(within.by[&Dimension::Status].keys().collect::<Vec<_>>(), ["(other)", "up"]);
        assert!(sum.is_tellable());
        assert_eq!(Estimates::default().sentence(), None);
        (sum.hosts, sum.sampled) = (500, 40);
        assert_eq!(
            sum.sentence().as_deref(),
            Some(
                "estimated: 26 ± 10 servers up, 0 ± 0 pages, 0 ± 0 bytes of pages; 40 of 500 hosts at 2 addresses with many were visited so far, \
                 in random order"
            )
        );
        sum.pages.variance = f64::NAN;
        assert!(!sum.is_tellable());
        sum.pages = Estimate { more: f64::INFINITY, ..Estimate::default() };
        assert!(!sum.is_tellable());
    }
}
