//! `lab`: measures the daemon's decisions in simulations, on public data or generated worlds.

mod cache;
mod census;
mod choice;
mod course;
mod depth;
mod figures;
mod files;
mod map;
mod migration;
mod nat;
mod output;
mod plot;
mod report;
mod serve;
mod stranger;
mod swarm;

use super::{
    error::{CommandError, Exit},
    hierarchy, json,
    table::Style,
};
use clap::{Args, Subcommand, ValueEnum};
use nearcrawl_lab::delegation::{
    Experiment, Surroundings,
    round::{self, ExperimentError, Placement, Setup},
};
use output::{bar, svg_file, write_plot};
use std::{num::NonZero, path::PathBuf, thread};

/// Shown under `lab --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl lab delegation --nodes nodes.csv --rtt rtt.csv\n  \
    nearcrawl lab delegation --nodes nodes.csv --rtt rtt.csv --plot probes.svg\n  \
    nearcrawl lab cache --synthetic\n  \
    nearcrawl lab cache --trace links.tsv.zst --threads 100 --plot misses.svg\n  \
    nearcrawl lab depth --plot depth.svg\n  \
    nearcrawl lab migration --sizes lognormal --noise 0.2 --prior-error 0.2\n\n\
    The help of each says what is simulated, and how it is measured.";

/// Shown under `lab delegation --help`.
const DELEGATION_EXAMPLES: &str = "\
What is simulated: some of the nodes act as crawlers, the others are web sites. In a random order each site's subnet is delegated to a \
crawler by the procedures of the daemon; a probe is answered by the round-trip time in the file. The first share (--train) \
initialises, the rest is evaluated, and learning goes on. A second site in a subnet costs no probe and goes where the first went; \
`nearcrawl` and `random` do so only up to a /24 (IPv6: /48), of larger subnets they delegate parts (see --whole-subnets). Crawlers \
know the hierarchy, their own addresses and countries, the round-trip times among themselves, and the answers to their probes: nothing else.

What is not: lost probes, probe budgets, politeness, members that die or lie, round-trip times that change.

Policies:
    ipmicra             the paper's procedure; ipmicra@30 with its own threshold
    nearcrawl           the daemon's, at several prices of a probe;
                        nearcrawl@0.5 at one price in ms
    random-order        crawlers in random order, up to the first at or under
                        the threshold
    popular-first       the same, those with most subnets first
    brute-force         every crawler probes every site
    random-delegation   a random crawler for each site, without a probe
                        (UCYMicra)
    random              the daemon's draw: a crawler for each subnet, without
                        a probe
    oracle              nearcrawl, told afterwards what every crawler measures
    brute-force-subnet  every crawler probes the first site of each subnet;
                        the nearest gets all of it

NODES names its columns in the first line: id (or probe_id), ipv4; country, is_target and is_source may be missing; with --coordinates \
also x_ms and y_ms. RTT has source,target,ms. Both may be packed with zstd or gzip. A node that has round-trip times to less than half of \
the targets is no crawler; a target without one from every crawler is no site.

The placement of crawlers has the largest influence on the result: compare only runs with the same --placement.

Examples:
  nearcrawl lab delegation --nodes nodes.csv --rtt rtt.csv
  nearcrawl lab delegation --nodes nodes.csv --rtt rtt.csv.zst --crawlers 50 \\
    --placement random
  nearcrawl lab delegation --nodes nodes.csv --rtt rtt.csv --prices 0.5,1,2 \\
    --policy ipmicra,ipmicra@20,nearcrawl --plot probes.svg
  nearcrawl lab delegation --nodes places.csv --coordinates --crawlers 200 \\
    --sites 5000 --rounds 3 --json";

/// The experiments of `nearcrawl lab`.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Measure probes per delegation, and how near the chosen crawlers are
    #[command(after_long_help = DELEGATION_EXAMPLES, after_help = DELEGATION_EXAMPLES)]
    Delegation(Box<DelegationArgs>),
    /// Measure the miss rates of URL caches by size and policy
    #[command(after_long_help = cache::EXAMPLES, after_help = cache::EXAMPLES)]
    Cache(Box<cache::CacheArgs>),
    /// Measure coverage of external hosts against load, by depth and by yield
    #[command(after_long_help = depth::EXAMPLES, after_help = depth::EXAMPLES)]
    Depth(depth::DepthArgs),
    /// Measure how fast sites move to their fastest crawlers, by several rules
    #[command(after_long_help = migration::EXAMPLES, after_help = migration::EXAMPLES)]
    Migration(Box<migration::MigrationArgs>),
    /// Draw the figures and tables of the papers and ours on one page
    #[command(after_long_help = figures::EXAMPLES, after_help = figures::EXAMPLES)]
    Figures(figures::FiguresArgs),
    /// Measure what a newcomer's ownership map and comparisons of maps cost
    #[command(after_long_help = map::EXAMPLES, after_help = map::EXAMPLES)]
    Map(map::MapArgs),
    /// Run a simulated swarm with faults and print a digest of its work
    #[command(after_long_help = swarm::EXAMPLES, after_help = swarm::EXAMPLES)]
    Swarm(swarm::SwarmArgs),
    /// Check every report of real daemons against a generated web with known facts
    #[command(after_long_help = census::EXAMPLES, after_help = census::EXAMPLES)]
    Census(census::CensusArgs),
    /// Check that real daemons behind routers of all kinds meet
    #[command(after_long_help = nat::EXAMPLES, after_help = nat::EXAMPLES)]
    Nat(nat::NatArgs),
    /// Check that a volunteer gets from the package to a member and back
    #[command(after_long_help = stranger::EXAMPLES, after_help = stranger::EXAMPLES)]
    Stranger(stranger::StrangerArgs),
    /// Serve the generated web of `lab depth` over HTTP
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
    /// Let `nearcrawl` and `random`, too, give away registered subnets whole, however large
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
    /// Policies to compare, separated by commas [default: the first six]
    #[arg(long, value_name = "LIST", default_value = choice::ALL, hide_default_value = true)]
    policy: String,
    /// Prices of a probe in ms, separated by commas, for `nearcrawl`
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = choice::milliseconds)]
    prices: Vec<f64>,
    /// How many rounds are averaged, each with other crawlers and another order of sites
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Seed of all random numbers: equal seeds give equal figures
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Draw probes against share of optimal delegations
    #[arg(long, value_name = "FILE.svg", value_parser = svg_file)]
    plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the experiment and formats the result.
pub async fn lab(command: LabCommand, style: Style) -> Result<String, CommandError> {
    if let LabCommand::Serve(args) = &command {
        return serve::serve(args).await;
    }
    if let LabCommand::Census(args) = &command {
        return census::census(args).await;
    }
    if let LabCommand::Nat(args) = &command {
        return nat::nat(args).await;
    }
    if let LabCommand::Stranger(args) = &command {
        return stranger::stranger(args).await;
    }
    let measure = move || match command {
        LabCommand::Delegation(args) => delegation(&args, style),
        LabCommand::Cache(args) => cache::cache(&args, style),
        LabCommand::Depth(args) => depth::depth(&args, style),
        LabCommand::Migration(args) => migration::migration(&args, style),
        LabCommand::Figures(args) => figures::figures(&args),
        LabCommand::Map(args) => map::map(&args),
        LabCommand::Swarm(args) => swarm::swarm(&args),
        LabCommand::Census(_) | LabCommand::Nat(_) | LabCommand::Stranger(_) | LabCommand::Serve(_) => Ok(String::new()),
    };
    let measured = tokio::task::spawn_blocking(measure).await;
    measured.map_err(|why| CommandError::new(Exit::Internal, format!("the experiment was aborted: {why}")))?
}

fn delegation(args: &DelegationArgs, style: Style) -> Result<String, CommandError> {
    let policies = choice::policies(&args.policy, args.threshold_ms, &args.prices)?;
    let (nodes, distances) = files::read(&args.nodes, args.rtt.as_deref())?;
    let hierarchy =
        hierarchy::look::load(args.hierarchy.as_deref()).map_err(|why| CommandError::new(Exit::of(why.exit_code()), why.to_string()))?;
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
        finished: &|| bar.inc(1),
        threads: thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN),
    };
    let rows = experiment.run(&nodes, &distances, &hierarchy, &surroundings);
    bar.finish_and_clear();
    let rows = rows.map_err(|why| refused(&why))?;
    write_plot(args.plot.as_deref(), || plot::svg(&rows))?;
    if args.json {
        return json(&rows);
    }
    let (_, lacking) = round::able(&nodes, &distances);
    Ok(report::text(&rows, &report::Remarks { lacking, strangers: distances.strangers(), plot: args.plot.as_deref() }, style))
}

/// Nothing is wrong with the files; more is asked for than they have.
fn refused(why: &ExperimentError) -> CommandError {
    CommandError::new(Exit::Usage, why.to_string())
}

#[cfg(test)]
mod tests;
