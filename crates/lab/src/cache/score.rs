//! Score of a rule at a size: the share of requests that it misses, and how many times as many as MIN.

use super::policies::Policy;
use serde::Serialize;

/// A point of the paper's figures: 2 and 3 for all links, 4 and 5 for those that leave a process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The rule: `lru`, `static-charged`, ….
    pub policy: String,
    /// Entries, of all threads together.
    pub size: usize,
    /// How many links were asked for.
    pub requests: u64,
    /// The share of them that was not in the cache, 0 to 1; above 1 only if loading is charged.
    pub miss_rate: f64,
    /// This miss rate by MIN's with as many entries.
    pub vs_min: f64,
}

impl Row {
    /// From counts of misses.
    pub fn of(policy: Policy, size: usize, requests: u64, misses: u64, of_min: u64) -> Row {
        let share = |a: u64, b: u64| if b == 0 { 0.0 } else { a as f64 / b as f64 };
        Row { policy: policy.to_string(), size, requests, miss_rate: share(misses, requests), vs_min: share(misses, of_min) }
    }
}
