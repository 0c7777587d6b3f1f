//! Agenda of a scenario: what is to be done in its course, and which of two orders about one matter holds.

use super::file::{Action, Clock, DiskFault};
use nearcrawl_model::time::Millis;

/// What is to be done at some moment.
#[derive(Clone, Debug)]
pub(super) enum Deed {
    Do(Action),
    /// The starting points are named to member 0.
    Seed,
    /// A member starts, unless something else was ordered since by another deed than this.
    Start(usize, u64),
    /// A member that joined ends, and comes back with a new key.
    Retire(usize, Option<Stay>),
    Renew(usize, Stay),
    /// An operator moves the damaged state of a member away, and starts it unless something else was ordered since by another deed than this.
    MoveAside(usize, u64),
    End(Ending),
}

/// How long a member stays each time, and how long it is away.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stay {
    pub(super) lives: Millis,
    pub(super) returns: Millis,
}

/// What is over.
#[derive(Clone, Debug)]
pub(super) enum Ending {
    Cut(u64),
    Partition(u64),
    Loss(u64),
    Limit(u64),
    Freeze(usize, u64),
    Jump(usize, i64),
    Rate(usize, Clock, u64),
    Disk(usize, DiskFault, u64),
    Lie(u64),
}

/// What the newest order decides: of two that overlap, the end of the earlier one is void.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Matter {
    Partition,
    Loss,
    Limit,
    Absence(usize),
    Freeze(usize),
    BootClock(usize),
    WallClock(usize),
    SlowDisk(usize),
    FullDisk(usize),
    DamagedDisk(usize),
}

impl Matter {
    pub(super) fn of_clock(number: usize, clock: Clock) -> Matter {
        if clock == Clock::Boot { Matter::BootClock(number) } else { Matter::WallClock(number) }
    }

    pub(super) fn of_disk(number: usize, fault: DiskFault) -> Matter {
        match fault {
            DiskFault::Slow => Matter::SlowDisk(number),
            DiskFault::Full => Matter::FullDisk(number),
            DiskFault::Damaged => Matter::DamagedDisk(number),
        }
    }
}
