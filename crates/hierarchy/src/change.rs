//! Decides whether a rebuilt hierarchy may replace the present one.
//!
//! Compares what the rebuild changed with what the time between the two explains.
//!
//! Hierarchies are rebuilt every three months (IPMicra §4.1) and members keep what they own where the subnet stays. A rebuild with much
//! more change than that time explains comes from a broken or forged file.

use super::{
    delegated,
    source::Source,
    tree::{Hierarchy, Position},
};
use nearcrawl_model::view::counted;
use serde::Serialize;
use std::{collections::BTreeMap, fmt};

/// Of a hundred subnets, how many may come or go in a year.
pub(crate) const EXPLAINED_PERCENT_A_YEAR: f64 = 20.0;

/// Of a hundred subnets, how many may come or go even from one day to the next.
pub(crate) const MIN_EXPLAINED_PERCENT: f64 = 5.0;

/// What changed from one hierarchy to the next.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Subnets in the earlier hierarchy.
    pub before: u64,
    /// Subnets that are in both.
    pub kept: u64,
    /// Subnets that are only in the new one.
    pub added: u64,
    /// Subnets that are only in the earlier one.
    pub removed: u64,
    /// Days from the sources before to the same sources now: the mean over all subnets before, each with the days of its registry's source; 0
    /// where a source has no date.
    pub days: u32,
    /// The ratio of the subnets that may come or go in that time: the mean over the same.
    pub explained_ratio: f64,
    /// Sources whose data is older than before: name, date before, date now.
    pub older: Vec<(String, String, String)>,
    /// Sources that had a part in the one before and have none now.
    pub missing: Vec<String>,
}

impl Change {
    /// What changed from `previous` to `now`.
    pub fn between(previous: &Hierarchy, now: &Hierarchy) -> Change {
        let kept = (0..now.len()).filter(|p| previous.position(now.subnet(Position(*p))).is_some()).count() as u64;
        let (dates_before, dates_now) = (latest(previous.sources()), latest(now.sources()));
        let older = dates_before.iter().filter_map(|(name, before)| {
            let date = dates_now.get(name)?;
            (date < before).then(|| ((*name).to_owned(), (*before).to_owned(), (*date).to_owned()))
        });
        let before = u64::from(previous.len());
        let (days, explained_ratio) = explained(previous, &dates_before, &dates_now);
        Change {
            before,
            kept,
            added: u64::from(now.len()) - kept,
            removed: before - kept,
            days,
            explained_ratio,
            older: older.collect(),
            missing: dates_before.keys().filter(|name| !dates_now.contains_key(*name)).map(|name| (*name).to_owned()).collect(),
        }
    }

    /// Whether this is more than the time explains, a step back in time, or without a source that was there: a registry does not go.
    pub fn is_doubtful(&self) -> bool {
        let most = self.before as f64 * self.explained_ratio;
        self.before > 0 && (self.added.max(self.removed) as f64 > most || !self.older.is_empty() || !self.missing.is_empty())
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} kept, {} added, {} removed", counted(self.kept, "subnet"), self.added, self.removed)?;
        write!(f, " (explained by {}: {:.1} % of {})", counted(self.days, "day"), self.explained_ratio * 100.0, self.before)?;
        self.older.iter().try_for_each(|(name, before, now)| write!(f, "; the file of {name} is of {now}, older than {before} before"))?;
        self.missing.iter().try_for_each(|name| write!(f, "; nothing is from {name} any more"))
    }
}

/// A source may have several files: the latest of their dates is used.
fn latest(sources: &[Source]) -> BTreeMap<&str, &str> {
    let mut latest = BTreeMap::new();
    for Source { name, date } in sources {
        let known = latest.entry(name.as_str()).or_insert(date.as_str());
        *known = date.as_str().max(known);
    }
    latest
}

/// Days between two editions and the ratio that may come or go in them, as means over the subnets of the earlier one. The editions of one hierarchy's
/// sources may be years apart.
fn explained(previous: &Hierarchy, before: &BTreeMap<&str, &str>, now: &BTreeMap<&str, &str>) -> (u32, f64) {
    let mut subnets: BTreeMap<&str, u32> = BTreeMap::new();
    (0..previous.len()).for_each(|position| *subnets.entry(previous.registry(Position(position))).or_default() += 1);
    let between = |name: &str| {
        let (before, now) = (day(before.get(name)?)?, day(now.get(name)?)?);
        Some(now.saturating_sub(before))
    };
    let (mut all_days, mut explained) = (0, 0.0);
    for (name, count) in &subnets {
        let days = between(name).unwrap_or(0);
        all_days += u64::from(days) * u64::from(*count);
        explained += f64::from(*count) * (EXPLAINED_PERCENT_A_YEAR * f64::from(days) / 365.25).max(MIN_EXPLAINED_PERCENT) / 100.0;
    }
    let total = previous.len().max(1);
    (u32::try_from(all_days / u64::from(total)).unwrap_or(u32::MAX), explained / f64::from(total))
}

/// Days since some day of a date like 20260401; none if it is no date.
fn day(date: &str) -> Option<u32> {
    let date = delegated::date(date)?;
    let (year, month, day) = (date / 10_000, date / 100 % 100, date % 100);
    // Years that begin in March have the leap day at their end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    Some(365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day)
}
