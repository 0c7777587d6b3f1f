//! Durations in whole milliseconds or microseconds.

use nearcrawl_model::time::Millis;
use std::time::Duration;

/// Whole milliseconds, rounded up: politeness multiplies this, and nothing takes no time.
pub(crate) fn millis(time: Duration) -> Millis {
    Millis::try_from(time.as_micros().div_ceil(1000)).unwrap_or(Millis::MAX)
}

/// A duration in whole microseconds, at most [`u32::MAX`].
pub(crate) fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}
