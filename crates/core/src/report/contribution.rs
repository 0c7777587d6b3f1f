//! The contribution of one site to the sums.

use nearcrawl_model::{
    account::LevelCounts,
    evaluation::EvaluationCounts,
    summary::{Counts, Dimension},
    time::WallTime,
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
    /// If it is known what it is, when it was asked first in this run: at the beginning of time if that was never needed.
    pub(super) visited: Option<WallTime>,
}
