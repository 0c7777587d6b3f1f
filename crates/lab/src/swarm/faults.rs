//! Faults of a simulated swarm: cuts, losses and limits of the network, processes that stand still, wrong clocks, bad disks.
//!
//! Faults name members by number, so that they hold for whoever runs under it. All randomness comes from keys of its own: what is not
//! switched on draws nothing.

use super::{
    clocks::{Clocks, wall_time},
    sim_event::SimEvent,
};
use nearcrawl_core::event::StoreCommand;
use nearcrawl_model::{
    access_point::AccessPoint,
    time::{Millis, Moment, Now, WallTime},
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a batch of writes takes on a slow disk.
const SLOW_WRITE: Millis = 5_000;

/// What is wrong at present.
#[derive(Default)]
pub(super) struct Faults {
    /// Pairs without messages from the first to the second, by the step that cut them.
    pub(super) cuts: BTreeMap<u64, Vec<(u32, u32)>>,
    /// The same pairs, together.
    pub(super) cut: BTreeSet<(u32, u32)>,
    /// The part of the network that each member is in; those who are not named are in part 0.
    pub(super) parts: BTreeMap<u32, usize>,
    /// The share of messages that come twice, and of those that come late.
    pub(super) disorder: f64,
    /// The most connections of each member.
    pub(super) limit: Option<usize>,
    /// Members that pass on nothing of what others ask each other through them.
    pub(super) droppers: BTreeSet<u32>,
    /// Processes that stand still, with what they have not taken in yet.
    pub(super) frozen: BTreeMap<AccessPoint, VecDeque<SimEvent>>,
    pub(super) clocks: BTreeMap<u32, Clocks>,
    /// Members whose disks are slow.
    pub(super) slow: BTreeSet<u32>,
    /// Members whose disks are full, with the writes that wait, each with its process and life.
    pub(super) full: BTreeMap<u32, Vec<(AccessPoint, u64, StoreCommand)>>,
    /// Processes that ended, or did not start, because their disks are damaged, until the scenario has looked.
    pub(super) ended_damaged: Vec<AccessPoint>,
    /// Processes with a copied key, by the number of the member that they are copies of.
    pub(super) clones: Vec<(u32, AccessPoint)>,
    /// Keys so far, by number.
    pub(super) generations: BTreeMap<u32, u64>,
    /// Messages take as long as the way between their members is.
    pub(super) delays_by_distance: bool,
    /// Copies of rows are acknowledged, but not kept.
    pub(super) no_copies: bool,
}

impl Faults {
    pub(super) fn clocks(&self, number: u32, now: Now) -> Now {
        match self.clocks.get(&number) {
            None => now,
            Some(clocks) => Now { moment: Moment(clocks.boot.at(now.moment)), wall: WallTime(clocks.wall.at(now.moment)) },
        }
    }

    /// Whether a member's wall clock shows another time than it is, by more than a second.
    pub(super) fn wall_clock_is_wrong(&self, number: u32, now: Moment) -> bool {
        self.clocks.get(&number).is_some_and(|clocks| clocks.wall.at(now).abs_diff(wall_time(now)) > 1_000)
    }

    /// When a member's boot clock shows this.
    pub(super) fn moment_of(&self, number: u32, shown: Moment, now: Moment) -> Moment {
        self.clocks.get(&number).map_or(shown, |clocks| clocks.boot.when(shown.0, now))
    }

    pub(super) fn write_takes(&self, number: u32) -> Option<Millis> {
        self.slow.contains(&number).then_some(SLOW_WRITE)
    }

    pub(super) fn disk_is_full(&self, number: u32) -> bool {
        self.full.contains_key(&number)
    }

    /// A process ended: nothing waits for it any more.
    pub(super) fn stopped(&mut self, who: &AccessPoint) {
        self.frozen.remove(who);
        for writes in self.full.values_mut() {
            writes.retain(|(of, ..)| of != who);
        }
    }

    /// The cuts changed.
    pub(super) fn gather_cuts(&mut self) {
        self.cut = self.cuts.values().flatten().copied().collect();
    }
}
