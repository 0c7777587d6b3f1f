//! `nearcrawl lab cache`: measures how many entries a URL cache needs, and by which rule it should forget.

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
use nearcrawl_lab::cache::{
    Experiment,
    stream::{self, Part},
    synthetic,
    trace::{Crawl, Order},
};
use nearcrawl_model::view::counted;
use std::{num::NonZero, path::PathBuf, thread};

/// Shown under `lab cache --help`.
pub const EXAMPLES: &str = "\
What is simulated: a known web is crawled by many threads at once, each with one site at a time, one page after another; the threads take \
turns, a page each. All links of a fetched page are looked up in a cache, in their order on the page; what is missing is put in. The share \
of look-ups that miss is what still goes to the disk (--stream full) or to another process (--stream cross). The experiment is that of \
Broder, Najork and Wiener, \"Efficient URL Caching for World Wide Web Crawling\"; `miss_rate` against size is its figures 2 and 4, `vs_min` \
its figures 3 and 5.

What is not: fetching takes no time, no page is refused or missing, no URL is seen in a redirection.

Policies:
    infinite   never evicts: the lower bound of all sizes
    min        knows the future (Belady): the lower bound of this size
    lru        replaces what was not asked for longest
    clock      the daemon's own cache
    random     replaces anything
    static     holds the most wanted from the start, without charge, as in the
               paper; static-charged, printed beside it, pays a miss each
    s3fifo     three queues (Yang et al. 2023)
    sieve      a queue and a hand (Zhang et al. 2024)

LINKS has a link on each line: number of the page, tab, number of the page it leads to; MAP has number of the page, tab, name of its host. \
`nearcrawl export links --trace LINKS --hosts MAP` writes both. Or LINKS has the JSON lines of `nearcrawl crawl --links` or `nearcrawl \
export links --by page`, which name the hosts themselves. All may be packed with zstd or gzip; lines with # are remarks. Without MAP a site is --block neighbouring numbers: in graphs whose pages \
are in the order of their URLs neighbours are mostly on one host.

The full stream is what one process finds that has all sites. For the cross stream the sites are hashed over --processes, each with \
--threads; it is what the first finds and another owns. `within` and `between` are the links of the full stream that stay on their site, and \
those that lead to another one: each kind is looked up in a cache of its own. With --per-thread each thread has a cache of its own; sizes are still of all together.

How many sites are in progress at once moves the curves more than anything else: compare only runs with the same --threads.

Examples:
  nearcrawl lab cache --synthetic
  nearcrawl lab cache --trace links.tsv.zst
  nearcrawl lab cache --trace links.jsonl --stream between --threads 10
  nearcrawl lab cache --trace links.tsv.zst --hosts hosts.tsv --threads 100 \\
    --order dfs --plot misses.svg
  nearcrawl lab cache --trace links.tsv.zst --stream cross --processes 4 \\
    --sizes 1..65536 --policies clock,lru --json
  nearcrawl lab cache --trace links.tsv.gz --block 32 --per-thread \\
    --sizes 8000,32000,128000";

/// Which pages and sites come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OrderArg {
    /// What is known longest
    Bfs,
    /// What was found last
    Dfs,
    /// Anything
    Random,
}

/// Which links are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StreamArg {
    /// All
    Full,
    /// What leaves one of the processes
    Cross,
    /// Links within a site, in a cache of their own
    Within,
    /// Links from one site to another, in a cache of their own
    Between,
}

/// Arguments of `lab cache`.
#[derive(Args, Debug)]
pub struct CacheArgs {
    /// The links of a known web: page, tab, page; or JSON lines of `crawl --links`
    #[arg(long, value_name = "LINKS", required_unless_present = "synthetic", conflicts_with = "synthetic")]
    trace: Option<PathBuf>,
    /// Crawl a small made-up web of 1,000 sites instead
    #[arg(long)]
    synthetic: bool,
    /// The hosts of the pages: page, tab, name
    #[arg(long, value_name = "MAP.tsv", conflicts_with_all = ["synthetic", "block"])]
    hosts: Option<PathBuf>,
    /// Without hosts: how many neighbouring pages are a site [default: 64]
    #[arg(long, value_name = "N", conflicts_with = "synthetic", value_parser = clap::value_parser!(u32).range(1..))]
    block: Option<u32>,
    /// Which pages and sites come first
    #[arg(long, value_enum, default_value_t = OrderArg::Bfs)]
    order: OrderArg,
    /// How many sites are in progress at once, in each process
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    threads: u32,
    /// For the cross stream: over how many processes the sites are hashed
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=100))]
    processes: u32,
    /// Give each thread a cache of its own, of its share of the entries
    #[arg(long)]
    per_thread: bool,
    /// Entries: numbers, or powers of two from one to another, separated by commas
    #[arg(long, value_name = "LIST", default_value = "1..33554432", value_parser = choice::sizes)]
    sizes: choice::Sizes,
    /// What is compared, separated by commas
    #[arg(long, value_name = "LIST", default_value = choice::ALL)]
    policies: String,
    /// Which links are looked up
    #[arg(long, value_enum, default_value_t = StreamArg::Full)]
    stream: StreamArg,
    /// Look up a link that a page has twice only once
    #[arg(long)]
    dedupe_page: bool,
    /// Seed of all random numbers: equal seeds give equal figures
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Draw the miss rates, and how many times MIN's they are, against the size
    #[arg(long, value_name = "FILE.svg", value_parser = svg_file)]
    plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the experiment, and formats its results.
pub fn cache(args: &CacheArgs, style: Style) -> Result<String, CommandError> {
    let policies = choice::policies(&args.policies)?;
    let (threads, processes) = (args.threads as usize, args.processes as usize);
    let least = if args.per_thread { threads } else { 1 };
    let sizes: Vec<usize> = args.sizes.0.iter().copied().filter(|size| *size >= least).collect();
    if sizes.is_empty() {
        let message = format!("no size is left: {}, one for each thread, need {threads} entries or more", counted(threads, "cache"));
        return Err(CommandError::new(Exit::Usage, message).hint("name greater --sizes, or fewer --threads"));
    }
    let graph = match &args.trace {
        Some(path) => files::read_graph(path, args.hosts.as_deref(), args.block.unwrap_or(64))?,
        None => synthetic::web(args.seed),
    };
    let order = match args.order {
        OrderArg::Bfs => Order::Bfs,
        OrderArg::Dfs => Order::Dfs,
        OrderArg::Random => Order::Random,
    };
    let part = match args.stream {
        StreamArg::Full => Part::Full,
        StreamArg::Cross => Part::Cross,
        StreamArg::Within => Part::Within,
        StreamArg::Between => Part::Between,
    };
    let crawl = Crawl { order, threads, processes, seed: args.seed };
    let streams = stream::streams(&graph, &crawl, part, args.dedupe_page, args.per_thread);
    if streams.iter().all(|stream| stream.items().is_empty()) {
        let message = "no link is of the kind that --stream names, so there is nothing to look up";
        return Err(CommandError::new(Exit::Usage, message).hint("take a web with more sites, a smaller --block, or --stream full"));
    }

    let experiment = Experiment { policies, sizes, seed: args.seed };
    let bar = bar(experiment.task_count() as u64, "caches");
    let processors = thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    let rows = experiment.run(&streams, processors, &|| bar.inc(1));
    bar.finish_and_clear();
    write_plot(args.plot.as_deref(), || plot::svg(&rows))?;
    if args.json {
        return json(&rows);
    }
    let remarks = report::Remarks { graph: &graph, crawl: &crawl, part, streams: &streams, plot: args.plot.as_deref() };
    Ok(report::text(&rows, &remarks, style))
}

#[cfg(test)]
mod tests;
