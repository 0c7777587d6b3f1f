//! Limit on the memory that the process uses.
//!
//! Near its limit it takes no further subnets and goes on with what it has, which makes that less; if it stays near, what has work goes to
//! other members. At it, it asks nothing of servers, and takes in no URLs. A mark is reached only by what is in use: the allocator keeps what
//! was freed, so that is given back first.

use crate::io::memory;
use crate::node::allowance::usage_marks::UsageMarks;
use std::{
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Going through all free memory takes up to a tenth of a second and holds up who allocates: it is done so often at most, and seldom where it
/// brings little.
const GIVE_BACK_EVERY: Duration = Duration::from_secs(10);
const GIVE_BACK_SELDOM: Duration = Duration::from_secs(40);

/// When a sixteenth of the limit more is used than after the last time, it is not waited for longer than that.
const GIVE_BACK_SOON: Duration = Duration::from_secs(2);

/// One part in so many of the limit is much to give back.
const MUCH: u64 = 64;

/// Of what the system allows, one part in so many is left to what it counts besides.
const LEFT_TO_SYSTEM: u64 = 8;

/// The system's limits may be changed while the daemon runs.
const READ_LIMITS_EVERY: Duration = Duration::from_secs(60);

/// The limit, and where it stands.
pub struct MemoryLimit {
    configured: Option<u64>,
    limit: Option<u64>,
    limit_read: Option<Instant>,
    used: u64,
    marks: UsageMarks,
    /// What was freed is being given back, with what was used before.
    giving: Option<(JoinHandle<()>, u64)>,
    gave_at: Option<Instant>,
    every: Duration,
    /// What was used after the last time.
    used_after: u64,
}

/// How much memory a daemon may use: as configured, but no more than seven eighths of what the system allows; none without either.
pub fn effective(configured: Option<u64>) -> Option<u64> {
    let of_system = memory::limit().map(|limit| limit - limit / LEFT_TO_SYSTEM);
    // Whole MiB, as people write them.
    configured.into_iter().chain(of_system.map(|limit| limit >> 20 << 20)).min()
}

impl MemoryLimit {
    /// With so many bytes as configured, but no more than the system allows.
    pub fn new(configured: Option<u64>) -> MemoryLimit {
        MemoryLimit {
            configured,
            limit: None,
            limit_read: None,
            used: 0,
            marks: UsageMarks::default(),
            giving: None,
            gave_at: None,
            every: GIVE_BACK_EVERY,
            used_after: 0,
        }
    }

    /// Measures it. What was freed is given back on a thread of its own, and judged when it is measured next.
    ///
    /// At the first look, when little can have been freed and nothing has been asked yet, it is given back and judged at once: a daemon that starts
    /// above its limit asks nothing.
    pub fn look(&mut self, now: Instant) {
        let is_first = self.limit_read.is_none();
        if self.limit_read.is_none_or(|read| now.saturating_duration_since(read) >= READ_LIMITS_EVERY) {
            (self.limit, self.limit_read) = (effective(self.configured), Some(now));
        }
        // First whether it was given back, then what is used: the other way round it would be judged by what was used before.
        let given = self.giving.take_if(|(thread, _)| thread.is_finished());
        let Some(used) = memory::in_use() else { return };
        if let Some((_, before)) = &given {
            self.gave_back(before.saturating_sub(used));
            self.used_after = used;
        }
        let is_near = self.measured(used, given.is_some(), now);
        if is_near && is_first {
            memory::give_back_freed();
            self.gave_at = Some(now);
            self.used_after = memory::in_use().unwrap_or(used);
            self.measured(self.used_after, true, now);
        }
        if is_near && self.is_due(used, now) && self.giving.is_none() {
            self.gave_at = Some(now);
            // Without a thread it is tried again; until then no mark is reached.
            let giving = thread::Builder::new().name("memory".to_owned()).spawn(memory::give_back_freed);
            self.giving = giving.ok().map(|thread| (thread, used));
        }
    }

    /// Whether what was freed is to be given back again while so many bytes are used.
    fn is_due(&self, used: u64, now: Instant) -> bool {
        let grew = self.limit.is_some_and(|limit| used > self.used_after.saturating_add(limit / 16));
        let every = if grew { GIVE_BACK_SOON } else { self.every };
        self.gave_at.is_none_or(|at| now.saturating_duration_since(at) >= every)
    }

    /// That brought so many bytes.
    fn gave_back(&mut self, bytes: u64) {
        let is_much = self.limit.is_some_and(|limit| bytes >= limit / MUCH);
        self.every = if is_much { GIVE_BACK_EVERY } else { (self.every * 2).min(GIVE_BACK_SELDOM) };
    }

    /// So many bytes are used; whether that is near the limit. It counts as near, or full, only if what was freed was given back before.
    fn measured(&mut self, used: u64, gave_back: bool, now: Instant) -> bool {
        self.used = used;
        let Some(limit) = self.limit else {
            self.marks = UsageMarks::default();
            return false;
        };
        self.marks.measured(used, limit, gave_back, now);
        UsageMarks::is_near(used, limit)
    }

    /// The limit, if as much is used, or more.
    pub fn full(&self) -> Option<u64> {
        self.limit.filter(|_| self.marks.reached())
    }

    /// The limit, if nearly as much is used, or more.
    pub fn nearly_full(&self) -> Option<u64> {
        self.limit.filter(|_| self.marks.near())
    }

    /// Whether it stays so.
    pub fn stays_nearly_full(&self, now: Instant) -> bool {
        self.marks.stays_near(now)
    }

    /// Bytes that are used, and how many they may be.
    pub fn view(&self) -> (u64, Option<u64>) {
        (self.used, self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::allowance::usage_marks::STAYS_NEAR;

    const MIB: u64 = 1 << 20;

    fn limited(limit: u64) -> MemoryLimit {
        MemoryLimit { limit: Some(limit), ..MemoryLimit::new(None) }
    }

    #[test]
    fn both_marks_are_left_well_below_where_they_were_reached() {
        let mut memory = limited(160 * MIB);
        let mut at = |mib: u64| {
            memory.measured(mib * MIB, true, Instant::now());
            (memory.nearly_full().is_some(), memory.full().is_some())
        };
        assert_eq!(at(139), (false, false));
        assert_eq!(at(140), (true, false), "from seven eighths on");
        assert_eq!(at(120), (true, false));
        assert_eq!(at(160), (true, true));
        assert_eq!(at(150), (true, true), "it is full until more than a sixteenth is free");
        assert_eq!(at(149), (true, false));
        assert_eq!(at(119), (false, false), "and near until more than a quarter is");
    }

    #[test]
    fn what_was_freed_and_is_kept_by_the_allocator_reaches_no_mark() {
        let (mut memory, now) = (limited(160 * MIB), Instant::now());
        assert!(memory.measured(170 * MIB, false, now), "it is to be given back");
        assert!(memory.full().is_none() && memory.nearly_full().is_none());
        memory.measured(110 * MIB, true, now);
        assert!(memory.full().is_none() && memory.nearly_full().is_none());
        memory.measured(145 * MIB, true, now);
        assert!(!memory.stays_nearly_full(now + STAYS_NEAR / 2) && memory.stays_nearly_full(now + STAYS_NEAR));
        memory.measured(170 * MIB, false, now + STAYS_NEAR);
        assert!(memory.full().is_none(), "a peak between two times that it was given back");
    }

    #[test]
    fn giving_back_becomes_seldom_where_it_brings_little() {
        let mut memory = limited(160 * MIB);
        (0..3).for_each(|_| memory.gave_back(2 * MIB));
        assert_eq!(memory.every, GIVE_BACK_SELDOM);
        // Unless more is used than then: growth is seen within seconds.
        let now = Instant::now();
        (memory.gave_at, memory.used_after) = (Some(now), 145 * MIB);
        let due = |used, after| memory.is_due(used * MIB, now + after);
        assert!(!due(155, GIVE_BACK_EVERY) && due(155, GIVE_BACK_SELDOM));
        assert!(due(156, GIVE_BACK_SOON) && !due(156, GIVE_BACK_SOON / 2));
        memory.gave_back(3 * MIB);
        assert_eq!(memory.every, GIVE_BACK_EVERY);
    }

    #[test]
    fn a_limit_of_ones_own_is_never_above_that_of_the_system() {
        let of_system = effective(None).unwrap_or(u64::MAX);
        assert_eq!(effective(Some(u64::MAX)), effective(None).or(Some(u64::MAX)));
        assert_eq!(effective(Some(MIB)), Some(MIB.min(of_system)));
    }

    #[test]
    fn freed_memory_goes_back_before_it_counts() {
        // So many small pieces that the allocator keeps them, with one left at the end so that the heap does not just shrink.
        let pieces: Vec<Vec<u8>> = (0..40_000).map(|_| vec![1; 4_000]).collect();
        let all = memory::in_use().unwrap();
        let last = pieces.into_iter().last();
        let mut memory = MemoryLimit::new(Some(all));
        let mut now = Instant::now();
        memory.look(now);
        memory.giving.as_ref().inspect(|_| assert!(memory.nearly_full().is_none(), "not before it was given back"));
        while memory.giving.is_some() {
            now += Duration::from_secs(1);
            thread::sleep(Duration::from_millis(10));
            memory.look(now);
        }
        assert!(memory.view().0 < all - 100 * MIB, "{} of {all} bytes", memory.view().0);
        assert!(memory.nearly_full().is_none());
        drop(last);
    }
}
