//! `nearcrawl lab migration`: compares rules by which sites find the access point from which they are crawled soonest.

pub(super) mod choice;
pub(super) mod plot;
mod report;

use super::{
    files, json,
    output::{bar, svg_file, write_plot},
};
use crate::cli::{
    error::{CommandError, Exit},
    table::Style,
};
use clap::{Args, ValueEnum};
use nearcrawl_lab::migration::{
    Experiment, Start,
    world::{Capacity, Shape, Sizes},
};
use std::{num::NonZero, path::PathBuf, thread};

/// Shown under `lab migration --help`.
pub const EXAMPLES: &str = "\
What is simulated: in every run each site is accessed once, from the access point where it is, which takes a time; then the rule may move \
sites, which are accessed from there in the next run. The experiment is that of Chen, Wang and Olsen, \"Towards Distribution of Web Sites in a \
Crawler\" (TWOMA), whose figures 2 to 4 --plot draws; the other rules are compared with the paper's.

The worlds, which the paper leaves open: a unit of a site's work takes 1 s at its perfect access point, drawn evenly, and 1.5 to 4.05 s, \
drawn evenly, at every other one. A site is one unit, or log-normal of mean 1 (sigma 1). Noise multiplies each access by a \
log-normal factor of mean 1 and that standard deviation. With --capacity equal all access points are alike and never full. With unequal the slowest \
takes 8 times as long for everything as the fastest, the others lie between in proportion, and each has only so much time: \
the oracle is the linear program's placement, and rules may heed the load. unequal-unlimited: as slow, but never full. Sites of a subnet \
take the same from everywhere, but for those that are not of its kind (1 - purity); all start, and `nearcrawl` moves, by subnets. With \
--change-every the perfect access point of each site becomes another one, and all times are drawn anew.

--prior-error is the standard deviation of the logarithm of what is known of each site's time at each access point before the first run, told \
by a probe of its subnet; half of its variance is the server's own and the same from everywhere. Known once: changes make it wrong. Without it nothing is known. \
--start ipmicra: access points are asked in any order, the first at or under 1.5 s for a unit gets the subnet, else the least.

Figures: run 0 is the start, run n comes after n runs. total_vs_oracle: what all sites take on average, over what they take where the oracle has them (best place of \
each; with --capacity unequal the linear program's). makespan_vs_bound: how long the busiest access point is busy, over the bound of the linear program (no \
placement is busy for less, whether capacity is limited or not). right_place: share of sites that are where the oracle has them. moves: share of sites that moved after \
the run. All are means of the rounds, each of another world.

--availability FILE: lines `access point,hours`, access points from 1, hours a day above 0 up to 24; what is available for 12 hours \
takes twice as long for everything. Those not named are always available.

--rtt-slices DIR: a file for each run, in the order of the numbers in their names; each a square matrix of seconds of round trip, tabs between, 0 where nothing was \
measured (what was measured before holds, else what comes next). --access-points of the nodes are drawn, the others are sites; a unit of work takes a round trip. \
The oracle is the best fixed placement in hindsight, and the total is over its mean, so that the mean over all runs is its share of the whole.

Policies:
    oma        the automaton before the paper's, told at random which sites
               belong together; it knows nothing of time
    twoma      the paper's rule
    nearcrawl  the daemon's: it sees its own times, what is known beforehand,
               and with limited capacity the others' reported load
    uniform    nothing moves
    oracle     knows everything

Examples:
  nearcrawl lab migration --policy twoma,uniform,oracle --plot figure-2.svg
  nearcrawl lab migration --policy twoma,uniform --change-every 100 \\
    --plot figure-3.svg
  nearcrawl lab migration --policy twoma --access-points 2,4,8,16,32,64 \\
    --sites 100,1000,10000 --runs 900 --rounds 3 --plot figure-4.svg
  nearcrawl lab migration --sizes lognormal --noise 0.2 --prior-error 0.2 \\
    --runs 100 --json
  nearcrawl lab migration --policy nearcrawl --sizes lognormal --noise 0.5 \\
    --prior-error 0.2 --sites-per-subnet 16 --purity 0.95 --capacity unequal \\
    --runs 60
  nearcrawl lab migration --rtt-slices Seattle --access-points 12";

/// How large sites are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SizesArg {
    /// One unit of work each
    Equal,
    /// Log-normal, mean 1, sigma 1
    Lognormal,
}

/// What access points can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CapacityArg {
    /// All alike, never full
    Equal,
    /// Some slower, and all limited
    Unequal,
    /// Some slower, never full
    UnequalUnlimited,
}

/// Where sites begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StartArg {
    /// Evenly over the access points
    Uniform,
    /// By what is known beforehand
    Ipmicra,
}

/// Arguments of `lab migration`.
#[derive(Args, Debug)]
pub struct MigrationArgs {
    /// How many sites, one experiment each [default: 10000]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1_000_000), conflicts_with = "rtt_slices")]
    sites: Vec<u32>,
    /// How many access points, one experiment each
    #[arg(long, value_name = "LIST", default_value = "8", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=10_000))]
    access_points: Vec<u32>,
    /// How many runs [default: 400, or what the slices last]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    runs: Option<u32>,
    /// States of an arm: the N of the automaton
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=100))]
    states: u8,
    /// What is compared, separated by commas
    #[arg(long, value_name = "LIST", default_value = choice::ALL)]
    policy: String,
    /// How large sites are
    #[arg(long, value_enum, default_value_t = SizesArg::Equal)]
    sizes: SizesArg,
    /// By how much accesses of one site differ: a standard deviation, as a share
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = choice::error)]
    noise: f64,
    /// What access points can do
    #[arg(long, value_enum, default_value_t = CapacityArg::Equal)]
    capacity: CapacityArg,
    /// Draw all times anew, with other perfect access points, after so many runs, again and again
    #[arg(long, value_name = "RUNS", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "rtt_slices")]
    change_every: Option<u32>,
    /// Where sites begin
    #[arg(long, value_enum, default_value_t = StartArg::Uniform)]
    start: StartArg,
    /// How much is off of what is known before the first run; nothing is known without
    #[arg(long, value_name = "SHARE", value_parser = choice::error)]
    prior_error: Option<f64>,
    /// How many sites stand together
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536), conflicts_with = "rtt_slices")]
    sites_per_subnet: u32,
    /// The share of a subnet's sites that are of its kind
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = choice::purity, conflicts_with = "rtt_slices")]
    purity: f64,
    /// Hours a day that access points are available, as CSV: access point (from 1), hours
    #[arg(long, value_name = "FILE")]
    availability: Option<PathBuf>,
    /// Take times from measured round trips: a folder of matrices, one for each run
    #[arg(long, value_name = "DIR")]
    rtt_slices: Option<PathBuf>,
    /// How many rounds are averaged, each of another world
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Seed of all random numbers: equal seeds give equal figures
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Draw the totals by run (figures 2 and 3), and how many runs it took (figure 4)
    #[arg(long, value_name = "FILE.svg", value_parser = svg_file)]
    plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the experiment, and formats its results.
pub fn migration(args: &MigrationArgs, style: Style) -> Result<String, CommandError> {
    let experiment = experiment(args)?;
    let bar = bar(experiment.task_count() as u64, "rounds of a policy");
    let processors = thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    let outcome = experiment.run(processors, &|| bar.inc(1));
    bar.finish_and_clear();
    write_plot(args.plot.as_deref(), || plot::svg(&outcome))?;
    if args.json { json(&outcome.rows) } else { Ok(report::text(&outcome, args.plot.as_deref(), style)) }
}

fn experiment(args: &MigrationArgs) -> Result<Experiment, CommandError> {
    let policies = choice::policies(&args.policy)?;
    let slices = args.rtt_slices.as_deref().map(files::read_slices).transpose()?;
    let hours = args.availability.as_deref().map(files::read_hours).transpose()?.unwrap_or_default();
    let most = args.access_points.iter().copied().max().unwrap_or(1) as usize;
    if hours.len() > most {
        let message = format!("hours are said of access point {}, but there are only {most}", hours.len());
        return Err(CommandError::new(Exit::Usage, message).hint("ask for more --access-points, or leave those lines out"));
    }
    if let Some(nodes) = slices.as_ref().map(|slices| slices.nodes()).filter(|nodes| most >= *nodes) {
        let message = format!("{most} access points are too many: of the slices' {nodes} nodes some must be sites");
        return Err(CommandError::new(Exit::Usage, message).hint("ask for fewer --access-points"));
    }
    if args.start == StartArg::Ipmicra && args.prior_error.is_none() {
        let message = "--start ipmicra places sites by what is known beforehand, and nothing is";
        return Err(CommandError::new(Exit::Usage, message).hint("say how well it is known: --prior-error 0.2"));
    }
    let lasts = slices.as_ref().map_or(400, |slices| slices.count().saturating_sub(1).max(1));
    let runs = args.runs.map_or(lasts, |runs| runs as usize);
    let sites: Vec<usize> = if args.sites.is_empty() { vec![10_000] } else { args.sites.iter().map(|sites| *sites as usize).collect() };
    let cells = most.saturating_mul(sites.iter().copied().max().unwrap_or(1));
    if cells > choice::MAX_CELLS {
        let message = format!("{most} access points and so many sites are more pairs than fit ({})", choice::MAX_CELLS);
        return Err(CommandError::new(Exit::Usage, message).hint("ask for fewer"));
    }
    let shape = Shape {
        sites: 0,
        access_points: 0,
        sizes: match args.sizes {
            SizesArg::Equal => Sizes::Equal,
            SizesArg::Lognormal => Sizes::LogNormal,
        },
        noise: args.noise,
        capacity: match args.capacity {
            CapacityArg::Equal => Capacity::Equal,
            CapacityArg::Unequal => Capacity::Unequal,
            CapacityArg::UnequalUnlimited => Capacity::UnequalUnlimited,
        },
        sites_per_subnet: args.sites_per_subnet as usize,
        purity: args.purity,
        change_every: args.change_every.map(|runs| runs as usize),
        hours,
    };
    Ok(Experiment {
        shape,
        access_points: args.access_points.iter().map(|count| *count as usize).collect(),
        sites,
        slices,
        runs,
        states: args.states,
        policies,
        start: match args.start {
            StartArg::Uniform => Start::Uniform,
            StartArg::Ipmicra => Start::IpMicra,
        },
        prior_error: args.prior_error,
        rounds: args.rounds as usize,
        seed: args.seed,
    })
}

#[cfg(test)]
mod tests;
