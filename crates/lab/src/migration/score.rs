//! Results of the experiment.
//!
//! For each rule and run: the time of all accesses, the time of the busiest access point, and the share of sites moved.

use serde::Serialize;

/// One rule after one run, averaged over the rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The name of the rule.
    pub policy: String,
    /// How many access points.
    pub access_points: usize,
    /// How many sites.
    pub sites: usize,
    /// After how many runs; 0 is the start.
    pub run: usize,
    /// What all sites take from where they are, over what they take from where the oracle has them.
    pub total_vs_oracle: f64,
    /// How long the busiest access point is busy, over the bound of the linear program.
    pub makespan_vs_bound: f64,
    /// The share of the sites that are where the oracle has them.
    pub right_place: f64,
    /// The share of the sites that moved after this run.
    pub moves: f64,
}

/// One rule after one run of one round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Score {
    /// Seconds of all sites' accesses.
    pub total: f64,
    /// Seconds of all accesses where the oracle places the sites.
    pub best: f64,
    /// The busiest access point's seconds over the bound of the linear program.
    pub makespan: f64,
    /// Share of the sites that are where the oracle has them.
    pub right: f64,
    /// Share of the sites that moved after the run.
    pub moves: f64,
}

impl Row {
    /// The mean over rounds.
    pub(crate) fn of(policy: &str, access_points: usize, sites: usize, run: usize, rounds: &[Score]) -> Row {
        let sum = |of: &dyn Fn(&Score) -> f64| rounds.iter().map(of).sum::<f64>();
        let mean = |of: &dyn Fn(&Score) -> f64| sum(of) / rounds.len().max(1) as f64;
        Row {
            policy: policy.to_owned(),
            access_points,
            sites,
            run,
            total_vs_oracle: sum(&|score| score.total) / sum(&|score| score.best),
            makespan_vs_bound: mean(&|score| score.makespan),
            right_place: mean(&|score| score.right),
            moves: mean(&|score| score.moves),
        }
    }
}

/// How many runs a rule needed.
#[derive(Clone, Debug, PartialEq)]
pub struct Reached {
    /// The name of the rule.
    pub policy: String,
    /// How many access points.
    pub access_points: usize,
    /// How many sites.
    pub sites: usize,
    /// The first run after which all sites take at most a twentieth more than where the oracle has them; the mean of the rounds, if it came in all.
    pub within_a_twentieth: Option<f64>,
    /// The first run after which each site is where the oracle has it; the mean of the rounds, if it came in all.
    pub all_right: Option<f64>,
}

impl Reached {
    /// Of the runs of each round.
    pub(crate) fn of(policy: &str, access_points: usize, sites: usize, rounds: &[&[Score]]) -> Reached {
        let first = |holds: &dyn Fn(&Score) -> bool| {
            let runs: Option<Vec<usize>> = rounds.iter().map(|round| round.iter().position(holds)).collect();
            runs.map(|runs| runs.iter().sum::<usize>() as f64 / runs.len().max(1) as f64)
        };
        Reached {
            policy: policy.to_owned(),
            access_points,
            sites,
            within_a_twentieth: first(&|score| score.total <= 1.05 * score.best),
            all_right: first(&|score| score.right >= 1.0),
        }
    }
}
