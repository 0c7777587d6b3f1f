//! Experiment on rules of delegation: which finds the nearest crawler with the fewest probes.
//!
//! The daemon's own procedures are run against known round-trip times.
//!
//! The experiment is the one of the IPMicra paper (§5): of the nodes some are chosen as crawlers ([`round`]), the others are sites that
//! are delegated one after another by a rule ([`policies`]). The first share of them initialises; over the rest it is counted how many
//! probes were made and how near the chosen crawler is ([`score`]). What a rule may know is what a daemon knows: the hierarchy, the
//! crawlers' own addresses and countries, round-trip times among the crawlers, and the answers to its probes.
//!
//! Left out is what the daemon adds: failing probes, budgets, politeness, deaths and liars.

pub mod distances;
pub mod nodes;
pub mod policies;
pub mod round;
pub mod score;

#[cfg(test)]
mod tests;

use crate::rng::seed_of;
use distances::Distances;
use nearcrawl_hierarchy::Hierarchy;
use nodes::Nodes;
use policies::{Delegator, Policy};
use round::{ExperimentError, Round, Setup};
use score::{Row, Score};
use std::{
    num::NonZero,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// What is compared, and how often.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// How each round is set up.
    pub setup: Setup,
    /// The rules, in the order of the rows.
    pub policies: Vec<Policy>,
    /// How many rounds, each with other crawlers and another order of sites.
    pub rounds: usize,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// What the experiment needs of its surroundings.
pub struct Surroundings<'a> {
    /// Processor seconds that the calling thread has used, for the cost of a policy.
    pub processor_seconds: &'a (dyn Fn() -> f64 + Sync),
    /// Called whenever one policy has finished one round.
    pub finished: &'a (dyn Fn() + Sync),
    /// How many policies run at once.
    pub threads: NonZero<usize>,
}

impl Experiment {
    /// Plays all rounds; a row for each policy. Equal arguments give equal rows, but for their seconds.
    pub fn run(
        &self,
        nodes: &Nodes,
        distances: &Distances,
        hierarchy: &Hierarchy,
        surroundings: &Surroundings,
    ) -> Result<Vec<Row>, ExperimentError> {
        let mut scores: Vec<Vec<Score>> = vec![Vec::with_capacity(self.rounds); self.policies.len()];
        for round in 0..self.rounds {
            let seed = seed_of(self.seed, round as u64);
            let round = Round::new(&self.setup, nodes, distances, hierarchy, seed)?;
            for (policy, score) in scores.iter_mut().zip(self.round(&round, hierarchy, seed, surroundings)) {
                policy.push(score);
            }
        }
        let row = |(policy, scores): (&Policy, &Vec<Score>)| Row::of(policy, self.setup.placement.to_string(), self.setup.crawlers, scores);
        Ok(self.policies.iter().zip(&scores).map(row).collect())
    }

    /// All policies in the same round, several at once.
    fn round(&self, round: &Round, hierarchy: &Hierarchy, seed: u64, surroundings: &Surroundings) -> Vec<Score> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(policy) = self.policies.get(index) else { return done };
                let before = (surroundings.processor_seconds)();
                let score = run_policy(*policy, round, hierarchy, seed);
                let seconds = (surroundings.processor_seconds)() - before;
                done.push((index, Score { seconds, ..score }));
                (surroundings.finished)();
            }
        };
        let mut scores: Vec<(usize, Score)> = thread::scope(|scope| {
            let threads = surroundings.threads.get().min(self.policies.len());
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut all = work();
            for other in others {
                match other.join() {
                    Ok(done) => all.extend(done),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            all
        });
        scores.sort_by_key(|(index, _)| *index);
        scores.into_iter().map(|(_, score)| score).collect()
    }
}

/// One policy in one round.
fn run_policy(policy: Policy, round: &Round, hierarchy: &Hierarchy, seed: u64) -> Score {
    let mut delegator = Delegator::new(policy, round, hierarchy, seed_of(seed, 0));
    let decisions: Vec<_> = (0..round.sites.len()).map(|site| delegator.delegate(site)).collect();
    Score::of(round, &decisions)
}
