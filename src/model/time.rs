//! What time is it? Two clocks, never mixed: one for deciding, one for telling people.

use serde::{Deserialize, Serialize};

/// A moment on the machine's own boot clock, in milliseconds; it goes on while a laptop sleeps and never jumps.
/// All decisions use this one. It means nothing on another machine: messages carry durations instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

/// A length of time, in milliseconds.
pub type Millis = u64;

impl Moment {
    /// This moment plus `millis`, saturating.
    pub fn after(self, millis: Millis) -> Moment {
        Moment(self.0.saturating_add(millis))
    }

    /// How long ago `earlier` was, zero if it lies ahead.
    pub fn since(self, earlier: Moment) -> Millis {
        self.0.saturating_sub(earlier.0)
    }
}

/// Wall-clock time: milliseconds since 1970-01-01 UTC. Shown and stored, never used to decide what is safe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WallTime(pub u64);

/// What every event brings along: both clocks, read once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// For deciding.
    pub moment: Moment,
    /// For telling.
    pub wall: WallTime,
}
