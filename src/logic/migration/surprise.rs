//! Has the network changed? A sum of surprises, which chance keeps small and a change lets grow (CUSUM, Page 1954).

use serde::{Deserialize, Serialize};

/// Surprises below so many standard deviations are chance's.
const ALLOWED: f64 = 1.0;

/// The largest surprise that is believed at once: no single access makes an alarm.
const LARGEST: f64 = 4.0;

/// What the surprises of an unchanged network do not add up to in 10,000 accesses.
const ALARM: f64 = 5.0;

/// What became of the surprises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing that chance would not do.
    None,
    /// Accesses take longer than they used to.
    Slower,
    /// They take less time.
    Faster,
}

/// The surprises so far, in standard deviations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Surprise {
    slower: f32,
    faster: f32,
}

impl Surprise {
    /// Takes in by how many standard deviations an access took longer than expected, where so many accesses tell the same as one (1 if
    /// each tells something new); after an alarm it begins anew.
    pub fn add(&mut self, deviations: f64, repetition: f64) -> Change {
        let deviations = deviations.clamp(-LARGEST, LARGEST);
        let grown = |sum: f32, by: f64| (f64::from(sum) + (by - ALLOWED) / repetition.max(1.0)).max(0.0) as f32;
        self.slower = grown(self.slower, deviations);
        self.faster = grown(self.faster, -deviations);
        let change = match (f64::from(self.slower) > ALARM, f64::from(self.faster) > ALARM) {
            (true, _) => Change::Slower,
            (_, true) => Change::Faster,
            (false, false) => return Change::None,
        };
        *self = Surprise::default();
        change
    }

    /// Begins anew: what follows is measured elsewhere.
    pub fn restart(&mut self) {
        *self = Surprise::default();
    }
}
