//! Does the process use more memory than it may?
//!
//! Near its limit it takes no further subnets and goes on with what it has, which makes that less; above it, it asks nothing of servers.
//! Both end well below where they begin, so that one page more or less is no change. What was freed goes back to the system first: the
//! allocator keeps it otherwise, and it would count.

use crate::io::memory;
use std::time::{Duration, Instant};

/// Going through all free memory takes milliseconds: it is done so often at most.
const GIVE_BACK_EVERY: Duration = Duration::from_secs(10);

/// Of what the system allows, one part in so many is left to what it counts besides.
const LEFT_TO_SYSTEM: u64 = 8;

/// The limit, and where it stands.
pub struct MemoryLimit {
    limit: Option<u64>,
    used: u64,
    is_full: bool,
    is_nearly_full: bool,
    gave_back: Option<Instant>,
}

impl MemoryLimit {
    /// With so many bytes as configured, else with seven eighths of what the system allows.
    pub fn new(configured: Option<u64>) -> MemoryLimit {
        let of_system = || memory::limit().map(|limit| limit - limit / LEFT_TO_SYSTEM);
        MemoryLimit { limit: configured.or_else(of_system), used: 0, is_full: false, is_nearly_full: false, gave_back: None }
    }

    /// Measures it.
    pub fn look(&mut self, now: Instant) {
        let Some(used) = memory::resident() else { return };
        self.measured(used);
        let may_give = self.gave_back.is_none_or(|at| now.saturating_duration_since(at) >= GIVE_BACK_EVERY);
        if self.is_nearly_full && may_give {
            self.gave_back = Some(now);
            memory::give_back_freed();
            self.measured(memory::resident().unwrap_or(used));
        }
    }

    /// So many bytes are used.
    fn measured(&mut self, used: u64) {
        self.used = used;
        let Some(limit) = self.limit else { return };
        self.is_full = used > if self.is_full { limit - limit / 16 } else { limit };
        self.is_nearly_full = used > if self.is_nearly_full { limit - limit / 4 } else { limit - limit / 8 };
    }

    /// The limit, if more is used.
    pub fn full(&self) -> Option<u64> {
        self.limit.filter(|_| self.is_full)
    }

    /// The limit, if nearly as much is used, or more.
    pub fn nearly_full(&self) -> Option<u64> {
        self.limit.filter(|_| self.is_nearly_full)
    }

    /// Bytes that are used, and how many they may be.
    pub fn view(&self) -> (u64, Option<u64>) {
        (self.used, self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn both_marks_are_left_well_below_where_they_were_reached() {
        let mut memory = MemoryLimit::new(Some(160 * MIB));
        let mut at = |mib: u64| {
            memory.measured(mib * MIB);
            (memory.nearly_full().is_some(), memory.full().is_some())
        };
        assert_eq!(at(140), (false, false), "seven eighths are no more than that");
        assert_eq!(at(141), (true, false));
        assert_eq!(at(121), (true, false));
        assert_eq!(at(161), (true, true));
        assert_eq!(at(151), (true, true), "it is not full only when a sixteenth is free");
        assert_eq!(at(150), (true, false));
        assert_eq!(at(120), (false, false), "and not near only when a quarter is");
    }

    #[test]
    fn without_a_limit_it_is_only_measured() {
        let mut memory = MemoryLimit { limit: None, ..MemoryLimit::new(Some(MIB)) };
        memory.look(Instant::now());
        assert!(memory.full().is_none() && memory.nearly_full().is_none() && memory.view().0 > MIB);
    }

    #[test]
    fn what_was_freed_does_not_count() {
        // So many small pieces that the allocator would keep them, with one left at the end so that the heap does not just shrink.
        let pieces: Vec<Vec<u8>> = (0..40_000).map(|_| vec![1; 4_000]).collect();
        let full = memory::resident().unwrap();
        let last = pieces.into_iter().last();
        let mut memory = MemoryLimit::new(Some(full));
        memory.look(Instant::now());
        assert!(memory.view().0 < full - 100 * MIB, "{} of {full} bytes", memory.view().0);
        drop(last);
    }
}
