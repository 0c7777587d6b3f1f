//! Experiments on rules of migration (TWOMA §4): by which sites find the access point from which they are crawled soonest.
//!
//! Rules beside the paper's are compared with it.
//!
//! In every run each site is accessed once, from where it is; then the rule may move sites, to be accessed from there in the next run. What
//! a rule may know is what a daemon knows: see [`policies`] and [`nearcrawl`]. The [`world`] says how long accesses take, the
//! [`yardstick`] what could nobody do better.

mod knowledge;
mod nearcrawl;
mod oma;
pub mod policies;
pub mod score;
pub mod slices;
pub mod world;
mod yardstick;

#[cfg(test)]
mod tests;

use crate::rng::{normal, seed_of};
use knowledge::Knowledge;
use nearcrawl::Nearcrawl;
use oma::Partition;
use policies::{Policy, RuleState, Twoma, uniform};
use rand::{SeedableRng, rngs::StdRng};
use score::{Reached, Row, Score};
use slices::Slices;
use std::{
    num::NonZero,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};
use world::{Capacity, Shape, World};
use yardstick::{Yardstick, loads, total};

/// Where the sites are before the first run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Evenly over the access points, whatever the distance.
    Uniform,
    /// Where what is known beforehand says it is nearest.
    IpMicra,
}

/// Which rules are compared, in which worlds, and how often.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The world, but for its numbers of access points and of sites.
    pub shape: Shape,
    /// How many access points, one after the other.
    pub access_points: Vec<usize>,
    /// How many sites, one after the other, for each of these; what the slices have, if there are slices.
    pub sites: Vec<usize>,
    /// Measured times instead of drawn ones.
    pub slices: Option<Slices>,
    /// How many runs.
    pub runs: usize,
    /// States of an arm.
    pub states: u8,
    /// The rules, in the order of the rows.
    pub policies: Vec<Policy>,
    /// Where sites begin.
    pub start: Start,
    /// The error of what is known before the first run, as a standard deviation of logarithms; without one nothing is known.
    pub prior_error: Option<f64>,
    /// How many rounds, each in another world.
    pub rounds: usize,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// All that came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// By number of access points, of sites, rule and run.
    pub rows: Vec<Row>,
    /// How soon each rule was there, in the same order.
    pub reached: Vec<Reached>,
    /// Whether the world changed in the course of the runs.
    pub changes: bool,
}

/// One round: its number, the scores of each policy, and how many sites there were.
type Played = (usize, Vec<Vec<Score>>, usize);

impl Experiment {
    /// How many times [`Self::run`] calls `finished`: rounds of a rule.
    pub fn task_count(&self) -> usize {
        self.worlds().len() * self.rounds * self.policies.len()
    }

    /// Numbers of access points and of sites.
    fn worlds(&self) -> Vec<(usize, usize)> {
        let sites = |access_points: &usize| self.sites.iter().map(|sites| (*access_points, *sites)).collect::<Vec<_>>();
        self.access_points.iter().flat_map(sites).collect()
    }

    /// Plays all. Equal arguments give an equal outcome, whatever the number of threads.
    pub fn run(&self, threads: NonZero<usize>, finished: &(dyn Fn() + Sync)) -> Outcome {
        let (worlds, rounds) = (self.worlds(), self.rounds.max(1));
        let done: Mutex<Vec<Played>> = Mutex::new(Vec::new());
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let job = next.fetch_add(1, Ordering::Relaxed);
                let Some((access_points, sites)) = worlds.get(job / rounds) else { return };
                let (scores, sites) = self.round(*access_points, *sites, (job % rounds) as u64, finished);
                done.lock().unwrap_or_else(|broken| broken.into_inner()).push((job, scores, sites));
            }
        };
        thread::scope(|scope| {
            let others: Vec<_> = (1..threads.get().min(rounds * worlds.len())).map(|_| scope.spawn(work)).collect();
            work();
            for other in others {
                if let Err(panic) = other.join() {
                    std::panic::resume_unwind(panic);
                }
            }
        });
        let mut done = done.into_inner().unwrap_or_else(|broken| broken.into_inner());
        done.sort_by_key(|(job, ..)| *job);
        let changes = self.slices.is_some() || self.shape.change_every.is_some_and(|every| every <= self.runs);
        let mut outcome = Outcome { rows: Vec::new(), reached: Vec::new(), changes };
        for (rounds, (access_points, _)) in done.chunks(rounds).zip(&worlds) {
            for (place, policy) in self.policies.iter().enumerate() {
                let (policy, sites) = (policy.to_string(), rounds[0].2);
                let by_round: Vec<&[Score]> = rounds.iter().map(|(_, scores, _)| scores[place].as_slice()).collect();
                outcome.reached.push(Reached::of(&policy, *access_points, sites, &by_round));
                for run in 0..=self.runs {
                    let scores: Vec<Score> = by_round.iter().map(|scores| scores[run]).collect();
                    outcome.rows.push(Row::of(&policy, *access_points, sites, run, &scores));
                }
            }
        }
        outcome
    }

    /// All rules in one world; and how many sites it has.
    fn round(&self, access_points: usize, sites: usize, round: u64, finished: &(dyn Fn() + Sync)) -> (Vec<Vec<Score>>, usize) {
        let seed = seed_of(self.seed, round);
        let shape = Shape { access_points, sites, ..self.shape.clone() };
        let world = match &self.slices {
            Some(slices) => World::measured(slices, &shape, seed),
            None => World::new(&shape, seed),
        };
        let knowledge = Knowledge::of(&world, self.prior_error, seed_of(seed, 1));
        let yardsticks = self.yardsticks(world.clone());
        let scores = self.policies.iter().map(|policy| {
            let scores = self.run_rule(*policy, world.clone(), &knowledge, &yardsticks, seed);
            finished();
            scores
        });
        (scores.collect(), world.sites())
    }

    /// What could nobody do better, from each run on at which something changes.
    fn yardsticks(&self, mut world: World) -> Vec<(usize, Yardstick)> {
        let limited = self.shape.capacity == Capacity::Unequal;
        if self.slices.is_some() {
            return yardstick::in_hindsight(world, self.runs);
        }
        let mut yardsticks = vec![(0, Yardstick::of(&world, limited))];
        for run in 1..=self.runs {
            if world.advance(run) {
                yardsticks.push((run, Yardstick::of(&world, limited)));
            }
        }
        yardsticks
    }

    /// A rule before the first run.
    fn rule<'k>(&self, policy: Policy, world: &World, knowledge: &'k Knowledge, yardstick: &Yardstick, seed: u64) -> RuleState<'k> {
        let start = match self.start {
            Start::Uniform => uniform(world, seed_of(seed, 2)),
            Start::IpMicra => knowledge.placement(world),
        };
        let limited = self.shape.capacity == Capacity::Unequal;
        match policy {
            Policy::Oma => {
                let arms = start.iter().map(|place| *place as usize).collect();
                RuleState::Oma(Partition::new(arms, self.states), StdRng::seed_from_u64(seed_of(seed, 3)))
            }
            Policy::Twoma => RuleState::Twoma(Twoma::new(start, self.states, seed_of(seed, 3))),
            Policy::Nearcrawl => {
                RuleState::Nearcrawl(Box::new(Nearcrawl::new(world, knowledge, start, self.states, limited, seed_of(seed, 3))))
            }
            Policy::Uniform => RuleState::Uniform(start),
            Policy::Oracle => RuleState::Oracle(yardstick.places.clone()),
        }
    }

    fn run_rule(
        &self,
        policy: Policy,
        mut world: World,
        knowledge: &Knowledge,
        yardsticks: &[(usize, Yardstick)],
        seed: u64,
    ) -> Vec<Score> {
        let mut rule = self.rule(policy, &world, knowledge, &yardsticks[0].1, seed);
        // The same noise for every rule: it belongs to the site and the run.
        let mut noise_rng = StdRng::seed_from_u64(seed_of(seed, 4));
        let sigma = (1.0 + self.shape.noise * self.shape.noise).ln().sqrt();
        let mut scores = Vec::with_capacity(self.runs + 1);
        let mut standard = yardsticks.iter().peekable();
        let mut yardstick = &yardsticks[0].1;
        for run in 0..=self.runs {
            world.advance(run);
            while let Some((_, now)) = standard.next_if(|(from, _)| *from <= run) {
                yardstick = now;
            }
            if let RuleState::Oracle(places) = &mut rule {
                places.copy_from_slice(&yardstick.places);
            }
            let places = rule.places();
            let durations: Vec<f64> = places
                .iter()
                .enumerate()
                .map(|(site, place)| {
                    let factor = if sigma > 0.0 { (sigma * normal(&mut noise_rng) - sigma * sigma / 2.0).exp() } else { 1.0 };
                    world.seconds(site, *place as usize) * factor
                })
                .collect();
            let busiest = loads(&world, &places).into_iter().fold(0.0, f64::max);
            let right = places.iter().zip(&yardstick.places).filter(|(place, best)| place == best).count();
            let moves = if run < self.runs { rule.learn(&world, &durations, &yardstick.places) } else { 0 };
            let share = |count: usize| count as f64 / world.sites().max(1) as f64;
            scores.push(Score {
                total: total(&world, &places),
                best: yardstick.total,
                makespan: busiest / yardstick.bound,
                right: share(right),
                moves: share(moves),
            });
        }
        scores
    }
}
