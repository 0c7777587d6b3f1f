//! Scenarios made from a seed: what happens to a swarm, drawn at random.
//!
//! All that is drawn ends again within minutes but for the loss of one disk, which a swarm must bear for good. Liars, copied keys, moved
//! hosts and boot clocks that stand still are not drawn: what they may cost differs from promise to promise, and has scenarios of its own.

use super::{
    error::Number,
    file::{Action, Clock, ClockChange, DiskFault, Latency, Rule, Scenario, Step},
};
use crate::rng::{SplitMix64, seed_of};
use nearcrawl_model::time::Millis;

const SECOND: Millis = 1_000;
const MINUTE: Millis = 60_000;
const DAY: i64 = 86_400_000;

/// When the first thing happens: by then the first pages are recorded.
const FIRST: Millis = 3 * MINUTE;

/// The least and the greatest time between two things that happen.
const BETWEEN: (Millis, Millis) = (10 * SECOND, 150 * SECOND);

/// Subnets and hosts for each member.
const SUBNETS: u32 = 2;
const HOSTS: u32 = 3;

impl Scenario {
    /// The scenario of this seed. Of fewer than three members some of what is drawn happens to nobody.
    pub fn chaos(seed: u64, members: u32, minutes: u32) -> Scenario {
        let mut draw = Draw { rng: SplitMix64::new(seed_of(seed, u64::from(members))), members: members.max(1), wiped: false };
        let (mut at, end) = (FIRST, Millis::from(minutes) * MINUTE);
        let mut steps = Vec::new();
        while at < end {
            steps.push(Step { at, line: 1, action: draw.action() });
            at += draw.between(BETWEEN.0, BETWEEN.1);
        }
        Scenario {
            members,
            subnets: members * SUBNETS,
            hosts: members * HOSTS,
            minutes,
            latency: Latency::Spread,
            rule: Rule::Default,
            steps,
        }
    }
}

struct Draw {
    rng: SplitMix64,
    members: u32,
    /// Whether a disk has been lost: one in each scenario at most.
    wiped: bool,
}

impl Draw {
    fn below(&mut self, bound: u32) -> u32 {
        self.rng.below(bound.max(1) as usize) as u32
    }

    fn between(&mut self, least: Millis, most: Millis) -> Millis {
        least + self.rng.below((most - least) as usize + 1) as Millis
    }

    /// Some members, at most so many.
    fn some(&mut self, most: u32) -> Vec<Number> {
        let count = 1 + self.below(most);
        let mut all: Vec<Number> = (0..self.members).collect();
        self.rng.shuffle(&mut all);
        all.truncate(count as usize);
        all
    }

    fn halves(&mut self) -> Vec<Vec<Number>> {
        let mut all: Vec<Number> = (0..self.members).collect();
        self.rng.shuffle(&mut all);
        let first = 1 + self.below(self.members.saturating_sub(1));
        let other = all.split_off((first as usize).min(all.len()));
        vec![all, other]
    }

    fn clock(&mut self) -> Action {
        let who = self.some(2);
        let lasts = Some(self.between(2 * MINUTE, 10 * MINUTE));
        let change = if self.below(2) == 0 {
            ClockChange { clock: Clock::Boot, jump: None, rate: Some(0.99 + f64::from(self.below(21)) / 1_000.0) }
        } else {
            let days = i64::from(self.below(1_600)) - 800;
            ClockChange { clock: Clock::Wall, jump: Some(days * DAY), rate: None }
        };
        Action::Clock { who, change, lasts }
    }

    fn action(&mut self) -> Action {
        match self.below(22) {
            0..=4 => Action::Kill(self.some(2), Some(self.between(SECOND / 2, 8 * MINUTE))),
            5 | 6 => Action::Freeze(self.some(2), Some(self.between(2 * SECOND, 4 * MINUTE))),
            7 => Action::Leave(self.some(1), Some(self.between(MINUTE, 5 * MINUTE))),
            8..=10 => Action::Partition(self.halves(), Some(self.between(10 * SECOND, 10 * MINUTE))),
            11 | 12 => {
                let pair = self.some(2);
                let pairs = vec![(pair[0], *pair.last().unwrap_or(&pair[0]))].into_iter().filter(|(one, other)| one != other).collect();
                Action::Cut { pairs, oneway: self.below(2) == 0, lasts: Some(self.between(10 * SECOND, 5 * MINUTE)) }
            }
            13 | 14 => Action::Loss(f64::from(self.below(26)) / 100.0, Some(self.between(30 * SECOND, 5 * MINUTE))),
            15 | 16 => self.clock(),
            17 => {
                let fault = if self.below(2) == 0 { DiskFault::Slow } else { DiskFault::Full };
                Action::Disk { who: self.some(2), fault, lasts: Some(self.between(10 * SECOND, 3 * MINUTE)) }
            }
            18 | 19 => Action::Join { count: 1 + self.below(3), lives: Some(self.between(2 * SECOND, 10 * MINUTE)), returns: None },
            20 if !self.wiped => {
                self.wiped = true;
                Action::Wipe(self.some(1), Some(self.between(SECOND, 2 * MINUTE)))
            }
            _ => Action::Seed(self.some(1)),
        }
    }
}
