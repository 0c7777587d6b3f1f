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
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The quantile of the normal distribution for an interval that is right in 95 of 100 cases.
const Z: f64 = 1.96;

/// The largest number that is taken over from a member: sums of such stay finite.
const MAX_SUM: f64 = 1e150;

/// The largest skewness of an estimate: that of a mean of numbers of which all but one are alike is not larger.
const MAX_SKEWNESS: f64 = 1.0;

/// By how much intervals are wider for the skewness of an estimate: so many times as much as by the first term of the expansion of Cornish
/// and Fisher, and so many times more for each unit of skewness. Samples from a distribution with a long tail show less skewness than it
/// has.
const WIDER_FOR_SKEWNESS: [f64; 2] = [2.0, 4.0];

/// Of fewer visited hosts no sum over others is estimated: where few hosts have most of the pages, fewer visited ones often are none of
/// these.
pub const MIN_SUMMED: u64 = 30;

/// Fewer hosts than so many say nothing of how far others differ.
const MIN_SPREAD: u64 = 10;

/// Fewer than so many may all be alike by chance, though others differ.
const MIN_SURE_SPREAD: u64 = 30;

/// Variances of less than this share of the squared mean are what rounding leaves where all are alike.
const ROUNDING: f64 = 1e-12;

/// A figure of visited hosts: how many they are, and the sums of its first three powers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sampled {
    /// How many hosts.
    pub hosts: u64,
    /// Their sum.
    pub sum: f64,
    /// The sum of their squares.
    pub squares: f64,
    /// The sum of their cubes.
    pub cubes: f64,
}

/// The mean of a figure of one host, its variance and its third central moment.
#[derive(Clone, Copy)]
struct Moments {
    mean: f64,
    variance: f64,
    third: f64,
}

impl Sampled {
    /// Those of all hosts, as far as these say; of none or one, none.
    fn moments(&self) -> Moments {
        let n = self.hosts as f64;
        let mean = self.sum / n.max(1.0);
        let variance = ((self.squares - n * mean * mean) / (n - 1.0).max(1.0)).max(0.0);
        let cubes = self.cubes - 3.0 * mean * self.squares + 2.0 * n * mean * mean * mean;
        Moments { mean, variance, third: cubes * n / ((n - 1.0) * (n - 2.0)).max(1.0) }
    }
}

/// The estimate of one sum. All but the last four add up over strata, which are independent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Estimate {
    /// By how much it differs from what was counted.
    pub more: f64,
    /// Its variance.
    pub variance: f64,
    /// Its third cumulant, by which an interval is wider where few hosts have much of the sum.
    #[serde(default)]
    pub third_cumulant: f64,
    /// The square of the variance, divided by the degrees of freedom that it was found with (Welch and Satterthwaite); 0 where intervals
    /// are those of the normal distribution.
    #[serde(default)]
    pub variance_squared_per_freedom: f64,
    /// How much of what was counted is of hosts that were not visited: the estimate stands in place of it.
    #[serde(default)]
    pub counted_unvisited: f64,
    /// Hosts of which nothing is said, because too few were visited at their address: of these there is only what was counted.
    #[serde(default)]
    pub not_estimated: u64,
    /// What was counted and `more`, rounded. Set by who answers.
    #[serde(default)]
    pub estimated: u64,
    /// Half the width of the 95 % interval, rounded up. Set by who answers.
    #[serde(default)]
    pub margin: u64,
    /// The low end of the interval: `margin` less than `estimated`, but not less than was counted of visited hosts. Set by who answers.
    #[serde(default)]
    pub low: u64,
    /// The high end of the interval. Set by who answers.
    #[serde(default)]
    pub high: u64,
}

/// What is told is finite: [`Estimates::is_tellable`].
impl Eq for Estimate {}

/// The quantile of Student's distribution for an interval that is right in 95 of 100 cases, by the inverse of its degrees of freedom: the
/// first terms of the expansion of Cornish and Fisher. With nine degrees or more the error is below 0.001.
fn student(per_freedom: f64) -> f64 {
    let (z, k) = (Z, per_freedom.min(0.2));
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + k * (first + k * (second + k * third))
}

impl Estimate {
    /// Of `hosts` hosts of which `sampled` were visited, a simple random sample without replacement, by what one host is found to be with
    /// these degrees of freedom; `sum` is that of those visited, `counted` what is in the totals of all these hosts.
    fn of_mean((hosts, sampled): (u64, u64), one: Moments, freedom: f64, sum: f64, counted: f64) -> Estimate {
        let (hosts, n) = (hosts as f64, sampled as f64);
        let rest = 1.0 - n / hosts;
        let variance = (hosts * hosts * rest * one.variance / n).max(0.0);
        Estimate {
            more: hosts * sum / n - counted,
            variance,
            third_cumulant: hosts.powi(3) * rest * (rest - n / hosts) * one.third / (n * n),
            variance_squared_per_freedom: variance * variance / freedom,
            counted_unvisited: counted - sum,
            ..Estimate::default()
        }
    }

    /// Of a stratum of so many hosts of which some were visited: the estimate of a sum over all of them; `counted` is what is in the
    /// totals. Where all that were visited are alike, others may differ: the error is as if one of them did.
    pub fn of_sum(hosts: u64, sample: &Sampled, counted: f64) -> Estimate {
        let mut one = sample.moments();
        let differs = one.mean.max(1.0);
        if one.variance <= ROUNDING * differs * differs {
            one = Moments { variance: differs * differs / sample.hosts as f64, third: 0.0, ..one };
        }
        Estimate::of_mean((hosts, sample.hosts), one, sample.hosts as f64 - 1.0, sample.sum, counted)
    }

    /// The same of how many hosts have a property that `having` of those visited have. The error is that of a share with two more hosts that
    /// have it and two that have not (Agresti and Coull): without them it would be too small where few or almost all have it.
    pub fn of_share(hosts: u64, sampled: u64, having: u64, counted: u64) -> Estimate {
        let share = (having as f64 + 2.0) / (sampled as f64 + 4.0);
        let (hosts, n, having, counted) = (hosts as f64, sampled as f64, having as f64, counted as f64);
        let variance = hosts * hosts * (1.0 - n / hosts) * share * (1.0 - share) / (n - 1.0);
        Estimate { more: hosts * having / n - counted, variance, counted_unvisited: counted - having, ..Estimate::default() }
    }

    /// Of a number that is known, of which `counted` is in the totals.
    pub fn certain(number: u64, counted: u64) -> Estimate {
        Estimate { more: number as f64 - counted as f64, ..Estimate::default() }
    }

    /// Of so many hosts of which too few were visited to say anything.
    pub fn none(hosts: u64) -> Estimate {
        Estimate { not_estimated: hosts, ..Estimate::default() }
    }

    /// Of a sum over those hosts of a stratum that have a property which is not known of a host before it is visited, as `having` of those
    /// visited do; `counted` is what is in the totals. The error is that of their number, as in [`Estimate::of_share`], together with that
    /// of their mean. The spread of few says nothing: then it is that of all visited. That of some more is taken for no smaller than that.
    pub fn of_part(hosts: u64, having: &Sampled, visited: &Sampled, counted: f64) -> Estimate {
        let n = visited.hosts as f64;
        let spread = if having.hosts < MIN_SPREAD { visited } else { having };
        let Moments { mut mean, mut variance, mut third } = spread.moments();
        if (MIN_SPREAD..MIN_SURE_SPREAD).contains(&having.hosts) {
            let of_all = visited.moments();
            (mean, variance, third) = (mean.max(of_all.mean), variance.max(of_all.variance), third.max(of_all.third));
        }
        // A host without the property adds nothing.
        let share = (having.hosts as f64 + 2.0) / (n + 4.0);
        let (square, cube) = (variance + mean * mean, third + 3.0 * mean * variance + mean.powi(3));
        let one = Moments {
            mean: share * mean,
            variance: (share * (1.0 - share) * mean * mean + share * variance) * n / (n - 1.0),
            third: share * cube - 3.0 * share * share * mean * square + 2.0 * (share * mean).powi(3),
        };
        Estimate::of_mean((hosts, visited.hosts), one, spread.hosts as f64 - 1.0, having.sum, counted)
    }

    /// In words: the number alone if it is certain, else with its interval; where nothing is said of some hosts, as of so many at least, it
    /// may be more.
    pub fn told(&self, not_estimated: u64) -> String {
        let Estimate { estimated, margin, low, high, .. } = self;
        let told = if *margin == 0 {
            estimated.to_string()
        } else if estimated.checked_sub(*margin) == Some(*low) {
            format!("{estimated} ± {margin}")
        } else {
            format!("{estimated} ({low} to {high})")
        };
        if not_estimated.max(self.not_estimated) > 0 { format!("{told} or more") } else { told }
    }

    /// Adds another stratum's.
    pub fn add(&mut self, other: &Estimate) {
        self.more += other.more;
        self.variance += other.variance;
        self.third_cumulant += other.third_cumulant;
        self.variance_squared_per_freedom += other.variance_squared_per_freedom;
        self.counted_unvisited += other.counted_unvisited;
        self.not_estimated = self.not_estimated.saturating_add(other.not_estimated);
    }

    /// Says what it comes to beside what was counted. It is not less than what was counted of visited hosts.
    pub fn settle(&mut self, counted: u64) {
        let least = (counted as f64 - self.counted_unvisited).round().max(0.0) as u64;
        self.estimated = ((counted as f64 + self.more).round().max(0.0) as u64).max(least);
        self.margin = self.half_width().ceil() as u64;
        self.low = self.estimated.saturating_sub(self.margin).max(least);
        self.high = self.estimated.saturating_add(self.margin);
    }

    /// Half the width of the 95 % interval: Student's, wider for skewness.
    fn half_width(&self) -> f64 {
        if self.variance <= 0.0 {
            return 0.0;
        }
        let error = self.variance.sqrt();
        let quantile = student(self.variance_squared_per_freedom / (self.variance * self.variance));
        let skewness = (self.third_cumulant.abs() / (self.variance * error)).min(MAX_SKEWNESS);
        let [first, second] = WIDER_FOR_SKEWNESS;
        error * (quantile + (2.0 * quantile * quantile + 1.0) / 6.0 * skewness * (first + second * skewness))
    }

    fn is_tellable(&self) -> bool {
        let Estimate { more, variance, third_cumulant, variance_squared_per_freedom, counted_unvisited, .. } = self;
        [more, third_cumulant, counted_unvisited].iter().all(|sum| sum.abs() <= MAX_SUM)
            && [variance, variance_squared_per_freedom].iter().all(|sum| (0.0..=MAX_SUM).contains(*sum))
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

    /// Of hosts of which too few were visited to say anything, of which so many are counted; `is_known`: whether it is known of a host
    /// before a visit that it is in this cell.
    pub fn none(hosts: u64, counted: u64, is_known: bool) -> CellEstimates {
        let none = Estimate::none(hosts);
        let servers = if is_known { Estimate::certain(hosts, counted) } else { none };
        CellEstimates { servers, up: none, pages: none, page_bytes: none, detected_failures: none, not_estimated: hosts }
    }

    /// Whether anything is said of hosts that were not visited.
    pub fn is_any(&self) -> bool {
        self.up.variance > 0.0
    }

    /// One of them in words, as [`Estimate::told`].
    pub fn told(&self, of: impl Fn(&CellEstimates) -> Estimate) -> String {
        of(self).told(0)
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

    /// Of an address with so many hosts of which too few were visited to say anything.
    pub fn none(hosts: u64) -> Estimates {
        let none = Estimate::none(hosts);
        Estimates { addresses: 1, hosts, not_estimated: hosts, up: none, pages: none, page_bytes: none, ..Estimates::default() }
    }

    /// What the sums come to, in words; none if nothing is estimated.
    pub fn totals(&self) -> Option<String> {
        let Estimates { sampled, not_estimated, up, pages, page_bytes, .. } = self;
        let [up, pages, page_bytes] = [up, pages, page_bytes].map(|estimate| estimate.told(*not_estimated));
        (*sampled > 0).then(|| format!("{up} servers up, {pages} pages, {page_bytes} bytes of pages"))
    }

    /// What was estimated, from what, in words; none if all is counted.
    pub fn sentence(&self) -> Option<String> {
        let Estimates { addresses, hosts, sampled, not_estimated, pages, .. } = self;
        let places = format!(
            "{} at {} with many",
            counted(*hosts, "host"),
            if *addresses == 1 { "1 address".to_owned() } else { format!("{addresses} addresses") }
        );
        let mut so_far = format!("{sampled} of {places} were visited so far, in random order");
        if *not_estimated > 0 {
            so_far += &format!("; nothing is estimated of {not_estimated} where too few were");
        }
        if let Some(more @ 1..) = pages.not_estimated.checked_sub(*not_estimated) {
            so_far += &format!("; pages and bytes are not estimated of {more} where fewer than {MIN_SUMMED} were");
        }
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

    fn sampled(hosts: u64, sum: f64, squares: f64, cubes: f64) -> Sampled {
        Sampled { hosts, sum, squares, cubes }
    }

    #[test]
    fn quantiles_of_student_are_those_of_the_tables() {
        for (freedom, wanted) in [(9.0, 2.262), (19.0, 2.093), (29.0, 2.045), (149.0, 1.976)] {
            assert!((student(1.0 / freedom) - wanted).abs() < 1e-3, "{freedom}: {}", student(1.0 / freedom));
        }
        assert_eq!(student(0.0), Z);
    }

    #[test]
    fn an_interval_is_wider_where_few_hosts_have_much_and_never_goes_below_what_was_counted() {
        // Of 30 hosts one has 300 pages, the others have one each.
        let one_large = sampled(30, 329.0, 90_029.0, 27_000_029.0);
        let mut skewed = Estimate::of_sum(1_000, &one_large, 329.0);
        let mut even = Estimate { third_cumulant: 0.0, ..skewed };
        skewed.settle(329);
        even.settle(329);
        assert!(skewed.margin > 3 * even.margin, "{skewed:?} {even:?}");
        assert_eq!((skewed.estimated, skewed.low, skewed.high), (10_967, 329, 10_967 + skewed.margin));
        assert_eq!(skewed.told(0), format!("10967 (329 to {})", skewed.high));
        // What was counted of those not visited is not sure: none of them is waiting in the end.
        let mut waiting = Estimate::of_share(1_000, 100, 0, 900);
        waiting.settle(900);
        assert_eq!((waiting.estimated, waiting.low), (0, 0));
        // Where all are alike others may differ.
        let mut alike = Estimate::of_sum(1_000, &sampled(30, 90.0, 270.0, 810.0), 90.0);
        alike.settle(90);
        assert!(alike.estimated == 3_000 && alike.margin > 100, "{alike:?}");
        let mut none = Estimate::none(50);
        none.settle(3);
        assert_eq!((none.estimated, none.told(0).as_str()), (3, "3 or more"));
    }

    #[test]
    fn a_share_and_a_sum_are_those_of_a_sample_without_replacement() {
        let mut up = Estimate::of_share(1_000, 100, 50, 50);
        up.settle(50);
        // 1000 · √(0.9 · 0.25 / 99) · 1.96 = 93.4
        assert_eq!((up.estimated, up.margin), (500, 94));
        let mut pages = Estimate::of_sum(1_000, &sampled(100, 300.0, 1_000.0, 3_600.0), 300.0);
        pages.settle(300);
        // s² = (1000 − 900) / 99; 1000 · √(0.9 · 1.0101 / 100) · 1.9843 = 189.2
        assert_eq!((pages.estimated, pages.margin, pages.low, pages.high), (3_000, 190, 2_810, 3_190));
        assert_eq!(pages.told(0), "3000 ± 190");
        let mut all = Estimate::of_share(100, 100, 30, 30);
        all.settle(30);
        assert_eq!((all.estimated, all.margin), (30, 0), "nothing is uncertain where all were visited");
    }

    #[test]
    fn a_part_that_few_or_none_of_those_visited_have_is_not_said_to_be_sure() {
        let visited = sampled(100, 300.0, 1_000.0, 3_600.0);
        let all = Estimate::of_part(1_000, &visited, &visited, 300.0);
        let whole = Estimate::of_sum(1_000, &visited, 300.0);
        assert!(all.more == whole.more && (1.0..1.3).contains(&(all.variance / whole.variance)), "{all:?} {whole:?}");
        let mut none = Estimate::of_part(1_000, &Sampled::default(), &visited, 0.0);
        none.settle(0);
        assert!(none.estimated == 0 && none.margin > 50, "{none:?}: others may have it");
        let half = sampled(50, 150.0, 500.0, 1_800.0);
        let mut part = Estimate::of_part(1_000, &half, &visited, 150.0);
        part.settle(150);
        // 1000 · √(0.9 · (0.25 · 9 + 0.5 · 1.0204) / 99) · (2.0096 + 1.5128 · 0.0416 · (2 + 4 · 0.0416)) = 339.9
        assert_eq!((part.estimated, part.margin), (1_500, 340));
        let alike = sampled(20, 0.0, 0.0, 0.0);
        let mut few = Estimate::of_part(1_000, &alike, &visited, 0.0);
        few.settle(0);
        assert!(few.estimated == 0 && few.margin > 150, "{few:?}: others that have it may differ as all do");
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
                "estimated: 26 (20 to 36) servers up, 0 pages, 0 bytes of pages; 40 of 500 hosts at 2 addresses with many were visited \
                 so far, in random order"
            )
        );
        // Of 60 of them nothing is known, of 40 others no sums.
        sum.add(&Estimates::none(60));
        sum.pages.add(&Estimate::none(40));
        sum.settle(&counts(20), &told);
        let said = sum.sentence().unwrap();
        assert!(said.starts_with("estimated: 26 (20 to 36) or more servers up, 0 or more pages, "), "{said}");
        assert!(
            said.ends_with(
                "nothing is estimated of 60 where too few were; pages and bytes are not estimated of 40 where fewer than 30 were"
            ),
            "{said}"
        );
        sum.pages.variance = f64::NAN;
        assert!(!sum.is_tellable());
        sum.pages = Estimate { more: f64::INFINITY, ..Estimate::default() };
        assert!(!sum.is_tellable());
    }
}
