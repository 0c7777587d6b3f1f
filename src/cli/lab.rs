//! `nearcrawl lab`: how good is what the daemons do, measured in a laboratory before it meets the world?

mod cache;
mod choice;
mod depth;
mod files;
mod migration;
mod plot;
mod report;
mod serve;
mod swarm;

use super::{
    failure::{Exit, Failure},
    hierarchy, json,
    table::Style,
};
use crate::{
    io::snapshot,
    lab::delegation::{
        Experiment, Surroundings,
        arena::{self, ArenaRefusal, Placement, Setup},
    },
};
use clap::{Args, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use std::{
    num::NonZero,
    path::{Path, PathBuf},
    thread,
};

/// Shown under `lab --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl lab delegation --nodes nodes.csv --rtt rtt_min_ms.csv\n  \
    nearcrawl lab delegation --nodes nodes.csv --rtt rtt_min_ms.csv --plot probes.svg\n  \
    nearcrawl lab cache --synthetic\n  \
    nearcrawl lab cache --trace links.tsv.zst --threads 100 --plot misses.svg\n  \
    nearcrawl lab depth --plot depth.svg\n  \
    nearcrawl lab migration --sizes lognormal --noise 0.2 --prior-error 0.2\n  \
    nearcrawl lab swarm --faults kills\n\n\
    `nearcrawl lab delegation --help` and so on say what is measured, and how.";

/// Shown under `lab delegation --help`.
const DELEGATION_EXAMPLES: &str = "\
What is simulated: some of the nodes act as crawlers, the others are web sites. In a random order each site's subnet is delegated to a \
crawler by the very procedures that the daemons run; a probe is answered by the round-trip time in the file. The first share (--train) \
initialises, the rest is evaluated, and learning goes on. A second site in a subnet costs no probe and goes where the first went; \
`nearcrawl` does so only up to a /24 (IPv6: /48), of larger subnets it gives away parts (see --whole-subnets). Crawlers \
know the hierarchy, their own addresses and countries, the round-trip times among themselves, and the answers to their probes: nothing else.

What is not: lost probes, probe budgets, politeness, members that die or lie, round-trip times that change.

Policies:
    ipmicra            the paper's procedure; ipmicra@30 with a threshold of its own
    nearcrawl          the daemon's, at several prices of a probe; nearcrawl@0.5 at one price in ms
    random-order       everybody in random order, up to the first at or under the threshold
    popular-first      the same, who holds most subnets first
    brute-force        everybody probes every site
    random-delegation  anybody, without a probe (UCYMicra)
    oracle             nearcrawl, told afterwards what everybody would have measured
    brute-force-subnet everybody probes the first site of each subnet, who then has it whole

NODES names its columns in the first line: id (or probe_id), ipv4; country, is_target and is_source may be missing; with --coordinates \
also x_ms and y_ms. RTT has source,target,ms. Both may be packed with zstd or gzip. A node that has round-trip times to less than half of \
the targets is no crawler; a target without one from every crawler is no site.

Where crawlers stand moves the result more than anything else: compare only runs with the same --placement.

Examples:
  nearcrawl lab delegation --nodes nodes.csv --rtt rtt_min_ms.csv
  nearcrawl lab delegation --nodes nodes.csv --rtt rtt_min_ms.csv.zst --crawlers 50 --placement random
  nearcrawl lab delegation --nodes nodes.csv --rtt rtt.csv --policy ipmicra,ipmicra@20,nearcrawl --prices 0.5,1,2 --plot probes.svg
  nearcrawl lab delegation --nodes places.csv --coordinates --crawlers 200 --sites 5000 --rounds 3 --json";

/// What can be tried.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Measure how many probes delegation takes, and how near the chosen crawlers are
    #[command(after_long_help = DELEGATION_EXAMPLES, after_help = DELEGATION_EXAMPLES)]
    Delegation(Box<DelegationArgs>),
    /// Measure how many URLs caches of all sizes miss, by several rules
    #[command(after_long_help = cache::EXAMPLES, after_help = cache::EXAMPLES)]
    Cache(Box<cache::CacheArgs>),
    /// Measure how little of sites must be asked to learn whom they name, by depth and by yield
    #[command(after_long_help = depth::EXAMPLES, after_help = depth::EXAMPLES)]
    Depth(depth::DepthArgs),
    /// Measure how soon sites move to where they are crawled soonest, by several rules
    #[command(after_long_help = migration::EXAMPLES, after_help = migration::EXAMPLES)]
    Migration(Box<migration::MigrationArgs>),
    /// Run a made-up swarm with faults, and print one digest of everything that it did
    #[command(after_long_help = swarm::EXAMPLES, after_help = swarm::EXAMPLES)]
    Swarm(swarm::SwarmArgs),
    /// Offer the made-up web of `lab depth` to real crawlers, over HTTP
    #[command(after_long_help = serve::EXAMPLES, after_help = serve::EXAMPLES)]
    Serve(serve::ServeArgs),
}

/// How crawlers are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PlacementArg {
    /// Far apart from each other, beginning with a random one
    Spread,
    /// At random
    Random,
}

/// Arguments of `lab delegation`.
#[derive(Args, Debug)]
pub struct DelegationArgs {
    /// The nodes, as CSV
    #[arg(long, value_name = "NODES.csv")]
    nodes: PathBuf,
    /// Round-trip times between them, as CSV: source,target,ms
    #[arg(long, value_name = "RTT.csv", required_unless_present = "coordinates", conflicts_with = "coordinates")]
    rtt: Option<PathBuf>,
    /// Take twice the distance between the nodes' coordinates for round-trip times
    #[arg(long)]
    coordinates: bool,
    /// Ask this snapshot instead of the hierarchy in the program
    #[arg(long, value_name = "SNAPSHOT")]
    hierarchy: Option<PathBuf>,
    /// How many nodes act as crawlers
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    crawlers: u32,
    /// How they are chosen
    #[arg(long, value_enum, default_value_t = PlacementArg::Spread)]
    placement: PlacementArg,
    /// The most sites, drawn at random [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    sites: Option<u32>,
    /// Let `nearcrawl`, too, give away registered subnets whole, however large
    #[arg(long)]
    whole_subnets: bool,
    /// Let `nearcrawl` learn from the owners' downloads, too, which cost no probes
    #[arg(long)]
    downloads_teach: bool,
    /// The share of the sites that initialises
    #[arg(long, value_name = "SHARE", default_value_t = 0.65, value_parser = choice::share)]
    train: f64,
    /// The answer that ends a search, in ms, for the policies that have a threshold
    #[arg(long, value_name = "MS", default_value_t = 50.0, value_parser = choice::milliseconds)]
    threshold_ms: f64,
    /// What is compared, separated by commas
    #[arg(long, value_name = "LIST", default_value = choice::ALL)]
    policy: String,
    /// Prices of a probe in ms, separated by commas, for `nearcrawl`
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = choice::milliseconds)]
    prices: Vec<f64>,
    /// How many rounds are averaged, each with other crawlers and another order of sites
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Where all chance comes from: equal seeds give equal figures
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Draw probes against share of optimal delegations
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Tries it, and shows what came out.
pub async fn lab(command: LabCommand, style: Style) -> Result<String, Failure> {
    if let LabCommand::Serve(args) = &command {
        return serve::serve(args).await;
    }
    let measure = move || match command {
        LabCommand::Delegation(args) => delegation(&args, style),
        LabCommand::Cache(args) => cache::cache(&args, style),
        LabCommand::Depth(args) => depth::depth(&args, style),
        LabCommand::Migration(args) => migration::migration(&args, style),
        LabCommand::Swarm(args) => swarm::swarm(&args),
        LabCommand::Serve(_) => Ok(String::new()),
    };
    let measured = tokio::task::spawn_blocking(measure).await;
    measured.map_err(|why| Failure::new(Exit::Internal, format!("the experiment broke off: {why}")))?
}

fn delegation(args: &DelegationArgs, style: Style) -> Result<String, Failure> {
    let policies = choice::policies(&args.policy, args.threshold_ms, &args.prices)?;
    let (nodes, distances) = files::read(&args.nodes, args.rtt.as_deref())?;
    let hierarchy =
        hierarchy::look::load(args.hierarchy.as_deref()).map_err(|why| Failure::new(Exit::of(why.exit_code()), why.to_string()))?;
    let placement = match args.placement {
        PlacementArg::Spread => Placement::Spread,
        PlacementArg::Random => Placement::Random,
    };
    let sites = args.sites.map(|sites| sites as usize);
    let setup = Setup {
        crawlers: args.crawlers as usize,
        placement,
        sites,
        train: args.train,
        whole_subnets: args.whole_subnets,
        downloads_teach: args.downloads_teach,
    };
    let experiment = Experiment { setup, policies, rounds: args.rounds as usize, seed: args.seed };

    let bar = bar((experiment.policies.len() * experiment.rounds) as u64, "rounds of a policy");
    let surroundings = Surroundings {
        processor_seconds: &files::processor_seconds,
        played: &|| bar.inc(1),
        threads: thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN),
    };
    let rows = experiment.run(&nodes, &distances, &hierarchy, &surroundings);
    bar.finish_and_clear();
    let rows = rows.map_err(|why| refused(&why))?;
    write_plot(args.plot.as_deref(), || plot::svg(&rows))?;
    if args.json {
        return json(&rows);
    }
    let (_, lacking) = arena::able(&nodes, &distances);
    Ok(report::text(&rows, &report::Remarks { lacking, strangers: distances.strangers(), plot: args.plot.as_deref() }, style))
}

/// Nothing is wrong with the files; more is asked for than they have.
fn refused(why: &ArenaRefusal) -> Failure {
    Failure::new(Exit::Usage, why.to_string())
}

/// A bar for so many of something.
fn bar(length: u64, what: &str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    // A template that does not parse would be a pity, not a failure.
    if let Ok(style) = ProgressStyle::with_template(&format!("{{bar:30}} {{pos}}/{{len}} {what}, {{eta}} left")) {
        bar.set_style(style);
    }
    bar
}

/// Draws the figures into a file, if one was named.
fn write_plot(path: Option<&Path>, svg: impl FnOnce() -> String) -> Result<(), Failure> {
    match path {
        Some(path) => snapshot::write(path, svg().as_bytes()).map_err(|why| Failure::new(Exit::InUse, why.to_string())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
