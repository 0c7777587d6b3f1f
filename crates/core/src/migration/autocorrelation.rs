//! Lag-1 autocorrelation of the deviations of successive accesses, learnt for each subnet.
//!
//! On real paths delays come and go. Correlated deviations tell little of a permanent change, but predict the next access: it pays to be
//! elsewhere until they have decayed.

use serde::{Deserialize, Serialize};

/// Prior: as if so many uncorrelated accesses had been seen before the first.
const PRIOR_WEIGHT: f64 = 5.0;

/// The least square that an access adds: otherwise the first large deviation after many small ones would pass for correlation.
const MIN_SQUARE: f64 = 0.3;

/// Exponential decay per access: about the latest hundred count.
const DECAY: f64 = 0.99;

/// A larger coefficient is not believed: it would be a change.
const MAX_COEFFICIENT: f64 = 0.9;

/// Larger deviations are clipped, in standard deviations.
const MAX_DEVIATION: f64 = 4.0;

/// Sums of products and of squares of successive deviations of one subnet, in standard deviations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Autocorrelation {
    products: f32,
    squares: f32,
}

impl Autocorrelation {
    /// Takes in two successive deviations of one arm.
    pub(super) fn add(&mut self, before: f64, after: f64) {
        let (before, after) = (before.clamp(-MAX_DEVIATION, MAX_DEVIATION), after.clamp(-MAX_DEVIATION, MAX_DEVIATION));
        self.products = (DECAY * f64::from(self.products) + before * after) as f32;
        self.squares = (DECAY * f64::from(self.squares) + ((before * before + after * after) / 2.0).max(MIN_SQUARE)) as f32;
    }

    /// The coefficient, 0 to 0.9: which share of a deviation is expected again at the next access.
    pub(crate) fn coefficient(&self) -> f64 {
        (f64::from(self.products) / (f64::from(self.squares) + PRIOR_WEIGHT)).clamp(0.0, MAX_COEFFICIENT)
    }

    /// What is left of a deviation at the next access, that many accesses after it was measured.
    pub(crate) fn decayed(&self, residual: f64, accesses: u32) -> f64 {
        residual.clamp(-MAX_DEVIATION, MAX_DEVIATION) * self.coefficient().powf(f64::from(accesses) + 1.0)
    }

    /// How many correlated accesses say as much as one independent one.
    pub(crate) fn repetition(&self) -> f64 {
        let coefficient = self.coefficient();
        (1.0 + coefficient) / (1.0 - coefficient)
    }

    /// What is saved by being there until the present deviations have decayed, in accesses of the present arm's usual length: the next access
    /// is expected to deviate by `here` and `there` (natural logarithms), and usually takes `longer` there (logarithm).
    pub(crate) fn saves(&self, here: f64, there: f64, longer: f64) -> f64 {
        (here.exp_m1() - longer.exp() * there.exp_m1()) / (1.0 - self.coefficient())
    }
}
