//! May this hierarchy replace that one? What a rebuild changed, and whether the time between them explains so much change.
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
    /// Days from the newest source before to the newest source now; 0 where one of them has no date.
    pub days: u32,
    /// The ratio of the subnets that may come or go in that time.
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
        let days = match (newest(previous.sources()), newest(now.sources())) {
            (Some(before), Some(after)) => after.saturating_sub(before),
            _ => 0,
        };
        let before = u64::from(previous.len());
        Change {
            before,
            kept,
            added: u64::from(now.len()) - kept,
            removed: before - kept,
            days,
            explained_ratio: (EXPLAINED_PERCENT_A_YEAR * f64::from(days) / 365.25).max(MIN_EXPLAINED_PERCENT) / 100.0,
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

/// Days since some day of a date like 20260401, of the newest of the sources that has one.
fn newest(sources: &[Source]) -> Option<u32> {
    let date = sources.iter().filter_map(|s| delegated::date(&s.date)).max()?;
    let (year, month, day) = (date / 10_000, date / 100 % 100, date % 100);
    // Years that begin in March have the leap day at their end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    Some(365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day)
}
