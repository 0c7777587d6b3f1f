//! The contribution of one site to the sums.

use nearcrawl_model::{
    account::LevelCounts,
    evaluation::EvaluationCounts,
    summary::{Counts, Dimension},
};
use std::net::IpAddr;

/// What one site adds to the sums.
#[derive(Debug)]
pub(super) struct Contribution {
    pub(super) counts: Counts,
    pub(super) values: [(Dimension, String); Dimension::ALL.len()],
    pub(super) levels: Vec<LevelCounts>,
    pub(super) evaluation: Option<EvaluationCounts>,
    pub(super) address: Option<IpAddr>,
    /// Its place in line among the hosts of its address.
    pub(super) place: u64,
    /// Whether it is known what it is.
    pub(super) visited: bool,
}
