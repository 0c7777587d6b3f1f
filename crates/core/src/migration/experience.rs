//! What a subnet learnt of an arm that it was in: a mean, how much stands behind it, and how far it may be off by now.

use serde::{Deserialize, Serialize};

/// The most accesses that a memory weighs: what lies further back counts less and less.
const MAX_WEIGHT: f32 = 64.0;

/// By how much the variance of what is remembered grows with each access made elsewhere: a tenth up or down after a hundred.
const DRIFT: f64 = 1e-4;

/// One tried arm. Times are natural logarithms of seconds for a unit of work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Experience<A> {
    pub arm: A,
    /// The mean of what was measured there.
    pub mean: f32,
    /// Of how many accesses.
    pub weight: f32,
    /// The variance that changes of the network added to it.
    pub doubt: f32,
    /// The number of the access that came last.
    pub latest: u32,
    /// By how much that was above the mean.
    pub residual: f32,
}

impl<A> Experience<A> {
    pub(super) fn first(arm: A, log: f64, weight: f64, access: u32) -> Experience<A> {
        Experience { arm, mean: log as f32, weight: weight as f32, doubt: 0.0, latest: access, residual: 0.0 }
    }

    /// By how much the mean may be off: as a variance, where single accesses scatter by `noise`.
    pub(crate) fn variance(&self, noise: f64, accesses: u32) -> f64 {
        let age = f64::from(accesses.saturating_sub(self.latest));
        noise / f64::from(self.weight.max(1e-3)) + f64::from(self.doubt) + DRIFT * age
    }

    /// Takes another access in. What is uncertain or old weighs less.
    pub(super) fn add(&mut self, log: f64, weight: f64, noise: f64, access: u32) {
        // As many accesses as would be as sure as the old mean still is.
        let before = noise / self.variance(noise, access.saturating_sub(1)).max(noise / f64::from(MAX_WEIGHT));
        let after = before + weight;
        self.mean += ((log - f64::from(self.mean)) * weight / after) as f32;
        self.weight = (after as f32).min(MAX_WEIGHT);
        self.doubt = 0.0;
        self.latest = access;
        self.residual = (log - f64::from(self.mean)) as f32;
    }
}
