//! Limit on what the state directory takes of the disk.
//!
//! Near its limit the daemon takes no further subnets, and if it stays near, what has work goes to other members. At it, nothing is asked of
//! servers, and no more copies are kept for others, until there is room again: the store frees it as runs are superseded and subnets go. What
//! is measured is measured every few seconds, and a store that puts its files in order takes some room for a moment: a limit may be passed by
//! a few MiB.

use crate::node::allowance::usage_marks::UsageMarks;
use std::time::Instant;

/// With less free disk than this nothing new is fetched, in bytes.
pub const MIN_FREE: u64 = 256 << 20;

/// The limit, and where it stands.
#[derive(Debug, Default)]
pub struct DiskLimit {
    limit: Option<u64>,
    used: u64,
    marks: UsageMarks,
}

impl DiskLimit {
    /// With so many bytes; none without a limit.
    pub fn new(limit: Option<u64>) -> DiskLimit {
        DiskLimit { limit, ..DiskLimit::default() }
    }

    /// So many bytes are used.
    pub fn measured(&mut self, used: u64, now: Instant) {
        self.used = used;
        if let Some(limit) = self.limit {
            self.marks.measured(used, limit, true, now);
        }
    }

    /// The limit, if it is reached.
    pub fn reached(&self) -> Option<u64> {
        self.limit.filter(|_| self.marks.reached())
    }

    /// The limit, if nearly as much is used.
    pub fn nearly_reached(&self) -> Option<u64> {
        self.limit.filter(|_| self.marks.near())
    }

    /// Whether it has been near for so long that others are to have what has work.
    pub fn stays_near(&self, now: Instant) -> bool {
        self.marks.stays_near(now)
    }

    /// What is used, and the limit.
    pub fn view(&self) -> (u64, Option<u64>) {
        (self.used, self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_limit_is_near_before_it_is_reached_and_is_left_well_below() {
        let (begin, mut disk) = (Instant::now(), DiskLimit::new(Some(1_600)));
        let mut at = |used: u64, seconds: u64| {
            let now = begin + Duration::from_secs(seconds);
            disk.measured(used, now);
            (disk.nearly_reached().is_some(), disk.reached().is_some(), disk.stays_near(now))
        };
        assert_eq!(at(1_399, 0), (false, false, false));
        assert_eq!(at(1_400, 1), (true, false, false));
        assert_eq!(at(1_200, 60), (true, false, false));
        assert_eq!(at(1_300, 61), (true, false, true));
        assert_eq!(at(1_600, 62), (true, true, true));
        assert_eq!(at(1_500, 63), (true, true, true));
        assert_eq!(at(1_499, 64), (true, false, true));
        assert_eq!(at(1_199, 65), (false, false, false));
        let mut without = DiskLimit::new(None);
        without.measured(u64::MAX, begin);
        assert_eq!((without.reached(), without.nearly_reached(), without.view()), (None, None, (u64::MAX, None)));
    }
}
