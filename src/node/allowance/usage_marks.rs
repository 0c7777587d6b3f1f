//! Marks of a limit on what is used: near it, and at it; for disk and memory alike.
//!
//! A limit is near from seven eighths on, until less than three quarters are used; it is reached until less than fifteen sixteenths are. Each
//! mark is so left well below where it is reached: one file or page more or less is no change.

use std::time::{Duration, Instant};

/// When it was near for so long, others are to have what has work.
pub const STAYS_NEAR: Duration = Duration::from_secs(60);

/// Where the use of something stands.
#[derive(Debug, Default)]
pub struct UsageMarks {
    is_reached: bool,
    near_since: Option<Instant>,
}

impl UsageMarks {
    /// So much of the limit is used. Marks are left in any case, and reached only if `rises`.
    pub fn measured(&mut self, used: u64, limit: u64, rises: bool, now: Instant) {
        let (is_near, is_at) = (Self::is_near(used, limit), used >= limit);
        self.is_reached = (self.is_reached && used >= limit - limit / 16) || (is_at && rises);
        let since = self.near_since.filter(|_| used >= limit - limit / 4);
        self.near_since = since.or_else(|| (is_near && rises).then_some(now));
    }

    /// Whether so much is near the limit, by itself.
    pub fn is_near(used: u64, limit: u64) -> bool {
        used >= limit - limit / 8
    }

    /// Whether the limit is reached, and not left since.
    pub fn reached(&self) -> bool {
        self.is_reached
    }

    /// The same of the mark before.
    pub fn near(&self) -> bool {
        self.near_since.is_some()
    }

    /// Whether it has been near for so long that others are to have what has work.
    pub fn stays_near(&self, now: Instant) -> bool {
        self.near_since.is_some_and(|since| now.saturating_duration_since(since) >= STAYS_NEAR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_reached_only_if_they_may_be_and_are_left_well_below() {
        let (begin, mut marks) = (Instant::now(), UsageMarks::default());
        let mut at = |used: u64, rises: bool, seconds: u64| {
            let now = begin + Duration::from_secs(seconds);
            marks.measured(used, 1_600, rises, now);
            (marks.near(), marks.reached(), marks.stays_near(now))
        };
        assert_eq!(at(1_700, false, 0), (false, false, false));
        assert_eq!(at(1_399, true, 0), (false, false, false));
        assert_eq!(at(1_400, true, 1), (true, false, false));
        assert_eq!(at(1_200, true, 60), (true, false, false));
        assert_eq!(at(1_600, false, 61), (true, false, true));
        assert_eq!(at(1_600, true, 62), (true, true, true));
        assert_eq!(at(1_500, false, 63), (true, true, true));
        assert_eq!(at(1_499, true, 64), (true, false, true));
        assert_eq!(at(1_199, false, 65), (false, false, false));
    }
}
