//! Trial of a take-over: how long it takes until what one member owned has living owners.
//!
//! One of a swarm that owns many subnets without servers is killed.

use super::{file::Scenario, play::Play};
use crate::swarm::Played;
use nearcrawl_model::{access_point::AccessPoint, time::Millis};
use serde::Serialize;

const SECOND: Millis = 1_000;

/// When the subnets are claimed and when their owner is killed: the members vote by then, and all maps are whole.
const CLAIMED: Millis = 240 * SECOND;
const KILLED: Millis = 300 * SECOND;

/// Who is killed: one that votes, and did not found the swarm.
const VICTIM: usize = 3;

/// A trial.
#[derive(Clone, Copy, Debug)]
pub struct TakeOverTrial {
    /// Of everything random.
    pub seed: u64,
    /// Members at the beginning, at least four.
    pub members: u32,
    /// How many subnets one of them owns.
    pub subnets: u32,
    /// When the trial ends at the latest, since the owner's death, in milliseconds.
    pub limit_ms: Millis,
}

/// What came of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TakeOver {
    /// Subnets that the member owned when it was killed.
    pub subnets: usize,
    /// From its death until half of them had living owners, as another member's map says; none if they never had.
    pub half_ms: Option<Millis>,
    /// The same for all.
    pub all_ms: Option<Millis>,
    /// The longest time that a crawler took for one event after the death, measured on this machine, in milliseconds.
    pub longest_step_ms: f64,
}

/// How many subnets the dead member holds, as another member's map says.
fn orphans(world: &Played, by: usize, dead: AccessPoint) -> usize {
    world.crawler(by).map_or(0, |crawler| crawler.view().subnets_of(&dead))
}

impl TakeOverTrial {
    /// Plays it.
    pub fn run(&self) -> TakeOver {
        let subnets = 2 * self.members;
        let text = format!("members = {}\nsubnets = {subnets}\nhosts = {subnets}\nminutes = 20\n", self.members);
        let scenario = match Scenario::read(&text) {
            Ok(scenario) => scenario,
            Err(why) => unreachable!("it is of the usual form: {why}"),
        };
        let mut play = match Play::begin(&scenario, self.seed, None) {
            Ok(play) => play,
            Err(why) => unreachable!("it leaves out no rule: {why}"),
        };
        play.run(CLAIMED, &|| ());
        play.fill_map(self.subnets, Some(VICTIM));
        play.run(KILLED, &|| ());
        let dead = play.world.member(VICTIM);
        let all = orphans(&play.world, 0, dead);
        play.world.kill_all(VICTIM);
        if let Some(records) = &mut play.world.records {
            records.longest_step = Default::default();
        }
        let (mut half_ms, mut all_ms) = (None, None);
        while all_ms.is_none() && play.now() < KILLED + self.limit_ms {
            let next = play.now() + SECOND;
            play.run(next, &|| ());
            let (left, since) = (orphans(&play.world, 0, dead), play.now() - KILLED);
            half_ms = half_ms.or((2 * left <= all).then_some(since));
            all_ms = (left == 0).then_some(since);
        }
        let longest = play.world.records.as_ref().map_or(0.0, |records| records.longest_step.as_secs_f64());
        TakeOver { subnets: all, half_ms, all_ms, longest_step_ms: (longest * 1e6).round() / 1e3 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_subnets_of_a_dead_member_have_owners_within_two_minutes() {
        let outcome = TakeOverTrial { seed: 1, members: 7, subnets: 1_000, limit_ms: 180 * SECOND }.run();
        assert!(outcome.subnets >= 1_000, "{outcome:?}");
        assert!(outcome.all_ms.is_some_and(|all| (45 * SECOND..120 * SECOND).contains(&all)), "{outcome:?}");
    }
}
