//! Detects changes of the network by a cumulative sum of deviations, which chance keeps small and a change lets grow (CUSUM, Page 1954).

use serde::{Deserialize, Serialize};

/// Deviations below so many standard deviations are taken for chance.
const ALLOWANCE: f64 = 1.0;

/// Larger deviations are clipped, so that no single access makes an alarm.
const MAX_DEVIATION: f64 = 4.0;

/// The sum that makes an alarm: not reached in 10,000 accesses of an unchanged network.
const THRESHOLD: f64 = 5.0;

/// What the detector says after an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// No change.
    None,
    /// Accesses take longer than they used to.
    Slower,
    /// They take less time.
    Faster,
}

/// The two cumulative sums, in standard deviations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangeDetector {
    slower: f32,
    faster: f32,
}

impl ChangeDetector {
    /// Takes in by how many standard deviations an access took longer than expected, where so many accesses tell the same as one (1 if
    /// each tells something new); after an alarm it begins anew.
    pub fn add(&mut self, deviations: f64, repetition: f64) -> Change {
        let deviations = deviations.clamp(-MAX_DEVIATION, MAX_DEVIATION);
        let grown = |sum: f32, by: f64| (f64::from(sum) + (by - ALLOWANCE) / repetition.max(1.0)).max(0.0) as f32;
        self.slower = grown(self.slower, deviations);
        self.faster = grown(self.faster, -deviations);
        let change = match (f64::from(self.slower) > THRESHOLD, f64::from(self.faster) > THRESHOLD) {
            (true, _) => Change::Slower,
            (_, true) => Change::Faster,
            (false, false) => return Change::None,
        };
        *self = ChangeDetector::default();
        change
    }

    /// Begins anew: what follows is measured elsewhere.
    pub fn restart(&mut self) {
        *self = ChangeDetector::default();
    }
}
