//! Clocks of this machine: the boot clock for decisions, the wall clock for what is shown.

use nearcrawl_model::time::{Millis, Moment, Now, WallTime};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Both clocks, read now. The boot clock goes on while the machine sleeps, unlike `Instant`, and never jumps.
pub fn now() -> Now {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    Now { moment: Moment(boot_millis()), wall: WallTime(wall) }
}

/// A duration in whole milliseconds, as decisions count time.
pub(crate) fn millis(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX)
}

fn boot_millis() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec of ours, and the clock exists on every Linux since 2.6.39.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    debug_assert_eq!(failed, 0, "CLOCK_BOOTTIME is always readable");
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}
