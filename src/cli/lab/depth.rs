//! `nearcrawl lab depth`: measures how few requests to a site are enough to find the hosts that it links to.

pub(super) mod choice;
pub(super) mod plot;
mod report;

use super::{
    json,
    output::{bar, svg_file, write_plot},
};
use crate::cli::{error::CommandError, table::Style};
use clap::Args;
use nearcrawl_lab::depth::{Experiment, sensitivity};
use nearcrawl_lab::web::endless::EndlessWeb;
use std::{num::NonZero, path::PathBuf, thread};

/// Shown under `lab depth --help`.
pub const EXAMPLES: &str = "\
What is simulated: a made-up web is crawled from the front pages of its first sites, each tree by the daemon's own rules (order of levels, \
one URL of a script, subdomains inside, other sites outside); external links are counted, not followed. `depth` is the rule of Nakahira, \
Hoshino and Mikami, \"Low Load Server Crawler\" (WWW 2008): the same depth for all trees; its rows are their figures 1 to 3. `yield` is \
`crawl.rule = \"yield\"`: a page is asked for only if it can be expected to name `price` new external hosts or more.

What is not: time, politeness, servers that are slow or refuse, pages that change, links of other sites to pages below the front.

Load is requests, robots.txt included, as a share of the crawl to --max-depth; coverage is the share of the different external hosts (URLs) \
of that crawl. JSON has bytes and seconds of servers beside it. `trees`: by depth those whose deepest page lies just there, by yield those of which something was \
left out.

The web's numbers were chosen so that the rule of depth gives the paper's figures, before the rule of yield was written. --change multiplies one of them by a \
factor; --sensitivity halves and doubles each in turn, and says what load the coverage then costs.

Examples:
  nearcrawl lab depth
  nearcrawl lab depth --seed 7 --plot depth.svg
  nearcrawl lab depth --sites 1000 --prices 0.2,0.05,0.004 --json
  nearcrawl lab depth --change uneven=0.5 --change fade=2
  nearcrawl lab depth --sites 1000 --sensitivity";

/// Arguments of `lab depth`.
#[derive(Args, Debug)]
pub struct DepthArgs {
    /// How many sites are started from; the paper had about 3,400
    #[arg(long, value_name = "N", default_value_t = 3_400, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    sites: u64,
    /// The deepest level
    #[arg(long, value_name = "LEVELS", default_value_t = 20, value_parser = clap::value_parser!(u8).range(1..=63))]
    max_depth: u8,
    /// New external hosts that a request must be expected to name, separated by commas [default: 24 from 0.3 to 0.003]
    #[arg(long, value_name = "LIST", default_value = choice::PRICES, hide_default_value = true, value_parser = choice::prices)]
    prices: choice::Prices,
    /// Multiply a number of the web by a factor, like uneven=0.5
    #[arg(long, value_name = "NAME=FACTOR")]
    change: Vec<String>,
    /// Halve and double each number of the web in turn
    #[arg(long, conflicts_with_all = ["change", "plot"])]
    sensitivity: bool,
    /// Seed of all random numbers: equal seeds give equal figures
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Draw figures 1 to 3
    #[arg(long, value_name = "FILE.svg", value_parser = svg_file)]
    plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the experiment, and formats its results.
pub fn depth(args: &DepthArgs, style: Style) -> Result<String, CommandError> {
    let shape = choice::shape(&args.change)?;
    let experiment = Experiment {
        web: EndlessWeb::new(args.seed, shape, 80),
        sites: args.sites,
        max_depth: args.max_depth,
        prices: args.prices.0.clone(),
    };
    let processors = thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    if args.sensitivity {
        let bar = bar(sensitivity::variants().len() as u64, "webs");
        let rows = sensitivity::run(&experiment, processors, &|| bar.inc(1));
        bar.finish_and_clear();
        return if args.json { json(&rows) } else { Ok(report::sensitivity(&rows, style)) };
    }
    let bar = bar(experiment.trees(), "trees");
    let rows = experiment.run(processors, &|| bar.inc(1));
    bar.finish_and_clear();
    write_plot(args.plot.as_deref(), || plot::svg(&rows))?;
    if args.json { json(&rows) } else { Ok(report::text(&rows, args.sites, args.plot.as_deref(), style)) }
}

#[cfg(test)]
mod tests;
