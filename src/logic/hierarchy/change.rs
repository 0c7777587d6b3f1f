//! May this hierarchy follow that one? What a rebuild changed, and whether that is more than a quarter of a year explains.
//!
//! Hierarchies are rebuilt every three months (IPMicra §4.1) and members keep what they own where the subnet stays. A rebuild
//! that changes much more than the world does comes from a broken or forged file.

use super::tree::{Hierarchy, Position};
use serde::Serialize;
use std::fmt;

/// Of a hundred subnets, how many may come or go between two hierarchies.
pub const MOST_CHANGED_PERCENT: u64 = 20;

/// What changed from one hierarchy to the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Subnets before.
    pub before: u64,
    /// Subnets that are in both.
    pub kept: u64,
    /// Subnets that are new.
    pub added: u64,
    /// Subnets that are gone.
    pub removed: u64,
    /// Registries whose data is older than before: name, date before, date now.
    pub older: Vec<(String, String, String)>,
}

impl Change {
    /// Whether this is more than three months explain, or a step back in time.
    pub fn is_doubtful(&self) -> bool {
        let most = self.before * MOST_CHANGED_PERCENT / 100;
        self.before > 0 && (self.added > most || self.removed > most || !self.older.is_empty())
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} subnets kept, {} added, {} removed", self.kept, self.added, self.removed)?;
        self.older.iter().try_for_each(|(name, before, now)| write!(f, "; the file of {name} is of {now}, older than {before} before"))
    }
}

impl Hierarchy {
    /// What changed since `previous`.
    pub fn change_since(&self, previous: &Hierarchy) -> Change {
        let kept = (0..self.len()).filter(|p| previous.position(self.subnet(Position(*p))).is_some()).count() as u64;
        // Several files of one registry are possible: the latest date speaks for it.
        let latest = |h: &Hierarchy, name: &str| h.sources().iter().filter(|s| s.name == name).map(|s| s.date.clone()).max();
        let mut names: Vec<&str> = previous.sources().iter().map(|s| s.name.as_str()).collect();
        names.dedup();
        let older = names.into_iter().filter_map(|name| {
            let (before, now) = (latest(previous, name)?, latest(self, name)?);
            (now < before).then(|| (name.to_owned(), before, now))
        });
        let before = u64::from(previous.len());
        Change { before, kept, added: u64::from(self.len()) - kept, removed: before - kept, older: older.collect() }
    }
}
