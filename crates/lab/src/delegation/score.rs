//! Score of the decisions: probes against nearness, of one round and averaged over rounds.

use super::{
    policies::{Decision, Policy},
    round::Round,
};
use serde::Serialize;

/// As near as the nearest for most purposes: this much slower, or so many milliseconds.
const NEARLY: f32 = 1.1;
const NEARLY_MS: f32 = 2.0;

/// The paper reports the last fifty and the first three hundred of its evaluated sites.
const LAST: usize = 50;
const FIRST: usize = 300;

/// The measures of one round.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Score {
    /// All sites of the round.
    pub sites: usize,
    /// Those after initialising, of which everything below tells unless said otherwise.
    pub evaluated: usize,
    /// Pairs of crawlers that do not know how far they are from each other.
    pub unknown_pairs: usize,
    /// Mean number of probes a site.
    pub probes: f64,
    /// The same while initialising.
    pub probes_training: f64,
    /// Mean number of probes a site over the last fifty sites.
    pub probes_last: f64,
    /// Mean number of probes a site over the first three hundred sites.
    pub probes_first: f64,
    /// The same over each fifty sites, from the first that initialises.
    pub probes_over_time: Vec<f64>,
    /// Share of sites that got a nearest crawler.
    pub optimal: f64,
    /// Share of sites whose crawler is at most 10 % or 2 ms slower than the nearest.
    pub within: f64,
    /// Mean milliseconds more than the nearest's.
    pub extra_ms: f64,
    /// The same over the sites that did not get a nearest one; none if all did.
    pub extra_wrong_ms: Option<f64>,
    /// Ninth decile of the milliseconds more.
    pub extra_p90_ms: f64,
    /// Round-trip times to the sites' crawlers, as a share of those that random delegation has on average.
    pub time_vs_random: f64,
    /// Processor seconds of the whole round.
    pub seconds: f64,
}

impl Score {
    /// Judges the decisions about all sites of a round, in their order.
    pub(crate) fn of(round: &Round, decisions: &[Decision]) -> Score {
        let (training, evaluated) = decisions.split_at(round.initialising.min(decisions.len()));
        let probes = |decisions: &[Decision]| mean(decisions.iter().map(|decision| f64::from(decision.probes)));
        let (mut optimal, mut within, mut chosen, mut at_random) = (0, 0, 0.0, 0.0);
        let mut extra = Vec::with_capacity(evaluated.len());
        for (site, decision) in (training.len()..).zip(evaluated) {
            let row = round.row(site);
            let (best, got) = (row.iter().copied().fold(f32::INFINITY, f32::min), row[decision.crawler]);
            optimal += usize::from(got <= best);
            within += usize::from(got <= best * NEARLY || got <= best + NEARLY_MS);
            chosen += f64::from(got);
            at_random += mean(row.iter().map(|ms| f64::from(*ms)));
            extra.push(f64::from(got - best));
        }
        extra.sort_by(f64::total_cmp);
        let share = |count: usize| count as f64 / evaluated.len().max(1) as f64;
        let wrong = evaluated.len() - optimal;
        Score {
            sites: decisions.len(),
            evaluated: evaluated.len(),
            unknown_pairs: round.unknown_pairs(),
            probes: probes(evaluated),
            probes_training: probes(training),
            probes_last: probes(&evaluated[evaluated.len().saturating_sub(LAST)..]),
            probes_first: probes(&evaluated[..evaluated.len().min(FIRST)]),
            probes_over_time: decisions.chunks_exact(LAST).map(probes).collect(),
            optimal: share(optimal),
            within: share(within),
            extra_ms: mean(extra.iter().copied()),
            extra_wrong_ms: (wrong > 0).then(|| extra.iter().sum::<f64>() / wrong as f64),
            extra_p90_ms: extra.get((extra.len() * 9).div_ceil(10).saturating_sub(1)).copied().unwrap_or(0.0),
            time_vs_random: if at_random > 0.0 { chosen / at_random } else { 1.0 },
            seconds: 0.0,
        }
    }
}

/// A policy's measures, averaged over the rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The name of the procedure.
    pub policy: &'static str,
    /// The price of a probe in milliseconds, for the rule that has one.
    pub price: Option<f64>,
    /// The threshold in milliseconds, for rules that have one.
    pub threshold_ms: Option<f64>,
    /// How the crawlers were placed.
    pub placement: String,
    /// How many crawlers.
    pub crawlers: usize,
    /// How many sites a round had on average, initialising ones included.
    pub sites: usize,
    /// How many of them were evaluated.
    pub evaluated: usize,
    /// How many rounds were averaged.
    pub rounds: usize,
    /// How many pairs of crawlers did not know how far they are from each other, on average.
    pub unknown_pairs: f64,
    /// Mean number of probes a site.
    pub probes_per_site: f64,
    /// Standard error of that over the rounds.
    pub probes_per_site_se: f64,
    /// The same over the sites that initialised.
    pub probes_per_site_training: f64,
    /// The same over the last fifty sites.
    pub probes_last_50: f64,
    /// The same over the first three hundred evaluated sites.
    pub probes_first_300: f64,
    /// The same over each fifty sites in their order, from the first that initialises, and its standard error over the rounds.
    pub probes_over_time: Vec<(f64, f64)>,
    /// Share of sites that got a nearest crawler, 0 to 1.
    pub optimal: f64,
    /// Standard error of that over the rounds.
    pub optimal_se: f64,
    /// Share of sites whose crawler is at most 10 % or 2 ms slower than the nearest, 0 to 1.
    pub within_10pct_or_2ms: f64,
    /// Mean milliseconds more than the nearest's.
    pub mean_extra_ms: f64,
    /// The same over the sites that did not get a nearest one; 0 if all did.
    pub mean_extra_when_wrong_ms: f64,
    /// Ninth decile of the milliseconds more.
    pub p90_extra_ms: f64,
    /// Time for one page of each site where round trips bound it, as a share of random delegation's.
    pub download_time_vs_random: f64,
    /// Processor seconds of one round.
    pub seconds: f64,
}

impl Row {
    /// The average of the rounds' scores.
    pub(crate) fn of(policy: &Policy, placement: String, crawlers: usize, rounds: &[Score]) -> Row {
        let average = |of: &dyn Fn(&Score) -> f64| mean(rounds.iter().map(of));
        Row {
            policy: policy.name(),
            price: policy.price_ms(),
            threshold_ms: policy.threshold_ms(),
            placement,
            crawlers,
            sites: average(&|score| score.sites as f64).round() as usize,
            evaluated: average(&|score| score.evaluated as f64).round() as usize,
            rounds: rounds.len(),
            unknown_pairs: average(&|score| score.unknown_pairs as f64),
            probes_per_site: average(&|score| score.probes),
            probes_per_site_se: standard_error(rounds.iter().map(|score| score.probes)),
            probes_per_site_training: average(&|score| score.probes_training),
            probes_last_50: average(&|score| score.probes_last),
            probes_first_300: average(&|score| score.probes_first),
            probes_over_time: over_time(rounds),
            optimal: average(&|score| score.optimal),
            optimal_se: standard_error(rounds.iter().map(|score| score.optimal)),
            within_10pct_or_2ms: average(&|score| score.within),
            mean_extra_ms: average(&|score| score.extra_ms),
            mean_extra_when_wrong_ms: mean(rounds.iter().filter_map(|score| score.extra_wrong_ms)),
            p90_extra_ms: average(&|score| score.extra_p90_ms),
            download_time_vs_random: average(&|score| score.time_vs_random),
            seconds: average(&|score| score.seconds),
        }
    }

    /// The rule with its number, as it is typed.
    pub fn label(&self) -> String {
        match self.price.or(self.threshold_ms) {
            Some(number) => format!("{}@{number}", self.policy),
            None => self.policy.to_owned(),
        }
    }
}

/// Probes a site over each fifty sites, as far as all rounds go: the mean of the rounds, and its standard error.
fn over_time(rounds: &[Score]) -> Vec<(f64, f64)> {
    let length = rounds.iter().map(|score| score.probes_over_time.len()).min().unwrap_or(0);
    let at = |block: usize| {
        let values = rounds.iter().map(|score| score.probes_over_time[block]);
        (mean(values.clone()), standard_error(values))
    };
    (0..length).map(at).collect()
}

/// The mean; 0 of nothing.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    sum / f64::from(count.max(1))
}

/// The standard error of the mean; 0 of fewer than two.
fn standard_error(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count();
    if count < 2 {
        return 0.0;
    }
    let middle = mean(values.clone());
    let squares: f64 = values.map(|value| (value - middle).powi(2)).sum();
    (squares / (count - 1) as f64 / count as f64).sqrt()
}
