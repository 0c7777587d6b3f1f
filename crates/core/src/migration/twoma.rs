//! The paper's rule of migration (Chen, Wang, Olsen: TWOMA, §3).
//!
//! Reward below the average duration of the arm, penalty above it, and from the boundary to anywhere.

use super::Answer;
use rand::{Rng, RngExt};
use std::collections::BTreeMap;

/// Durations that differ by a smaller share are equal: sums of many are rounded, and an arm of equals must come to rest.
const ROUNDING: f64 = 1e-9;

/// How an access of this duration is answered where accesses take `average` (TW-12, TW-13). Equal is neither (TW-18).
pub fn answer(duration: f64, average: f64) -> Answer {
    if (duration - average).abs() <= ROUNDING * average {
        Answer::Neither
    } else if duration < average {
        Answer::Reward
    } else {
        Answer::Penalty
    }
}

/// Where a subnet goes that was penalised at the boundary: to any other arm, each as likely (TW-14). None if there is no other.
pub fn elsewhere<A: Ord + Copy>(here: A, arms: &[A], chance: &mut impl Rng) -> Option<A> {
    let others = arms.iter().filter(|arm| **arm != here).count();
    if others == 0 {
        return None;
    }
    arms.iter().filter(|arm| **arm != here).nth(chance.random_range(0..others)).copied()
}

/// The durations that an arm's average is of: the latest of each object in it, the judged one included (TW-21).
///
/// In a laboratory all objects of a run are noted before the first is judged. A daemon knows its own subnets only, which are just the
/// objects of its arm, and visits them one by one: there the average is of the latest visits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Arm<O> {
    latest: BTreeMap<O, f64>,
    sum: f64,
}

impl<O> Default for Arm<O> {
    fn default() -> Arm<O> {
        Arm { latest: BTreeMap::new(), sum: 0.0 }
    }
}

impl<O: Ord> Arm<O> {
    /// Notes how long the latest access to an object took, download and evaluation together (TW-10), in any unit.
    pub(crate) fn note(&mut self, object: O, duration: f64) {
        if !duration.is_finite() || duration < 0.0 {
            return;
        }
        self.sum += duration - self.latest.insert(object, duration).unwrap_or(0.0);
    }

    /// An object left the arm.
    pub(crate) fn forget(&mut self, object: &O) {
        if let Some(duration) = self.latest.remove(object) {
            self.sum -= duration;
        }
        if self.latest.is_empty() {
            self.sum = 0.0;
        }
    }

    /// The average duration; none of an empty arm (TW-22).
    pub(crate) fn average(&self) -> Option<f64> {
        match self.latest.len() {
            0 => None,
            count => Some(self.sum / count as f64),
        }
    }

    /// How an object's latest access is answered.
    pub(crate) fn answer(&self, object: &O) -> Answer {
        match (self.latest.get(object), self.average()) {
            (Some(duration), Some(average)) => answer(*duration, average),
            _ => Answer::Neither,
        }
    }
}
