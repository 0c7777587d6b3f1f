//! Clocks of simulated machines, which may be wrong.

use nearcrawl_model::time::{Millis, Moment};

/// When a clock that stands still is looked at again.
const STANDSTILL: Millis = 3_600_000;

/// A clock that went at one rate since some moment of the simulation.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockLine {
    pub(super) since: Moment,
    pub(super) value: u64,
    pub(super) rate: f64,
}

impl ClockLine {
    /// What it shows.
    pub(super) fn at(&self, now: Moment) -> u64 {
        // Exactly the simulation's time where nothing is wrong.
        let passed = now.since(self.since);
        let passed = if self.rate == 1.0 { passed } else { (passed as f64 * self.rate) as u64 };
        self.value.saturating_add(passed)
    }

    /// When it shows this; a moment far ahead if it stands still.
    pub(super) fn when(&self, value: u64, now: Moment) -> Moment {
        let ahead = value.saturating_sub(self.at(now));
        match self.rate {
            1.0 => now.after(ahead),
            rate if rate > 0.0 => now.after((ahead as f64 / rate).ceil() as u64),
            _ => now.after(STANDSTILL),
        }
    }
}

/// What a wall clock shows that is right, in milliseconds since 1970.
pub(super) fn wall_time(now: Moment) -> u64 {
    1_700_000_000_000 + now.0
}

/// Both clocks of a machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clocks {
    pub(super) boot: ClockLine,
    pub(super) wall: ClockLine,
}
