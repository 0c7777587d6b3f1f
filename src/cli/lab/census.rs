//! `nearcrawl lab census`: tests reports with real daemons and a made-up web, every report against what was made up.

use crate::{
    cli::{
        error::{CommandError, Exit},
        print,
    },
    io::client::client,
};
use clap::Args;
use nearcrawl_lab::census::{self, CensusError, CensusPlan, HOSTS, MAX_DAEMONS, MAX_RUNS};

/// Shown under `lab census --help`.
pub const EXAMPLES: &str = "\
Daemons of this program crawl a web that is made up from the seed and served on loopback addresses of its own: hosts with known countries, \
registries and organisations, languages, scripts, software, generators, certificates, HTTP versions, robots.txt, failures, accessibility \
failures, links, and portals that name more hosts than may be led to in a day. One daemon joins late, subnets are moved by order, some daemons are killed (kill -9) and come back \
or do not, all are stopped and started between runs and in the middle of them. From the second run on pages are evaluated; some have \
changed, some are gone, some are new, servers have other software or are down.

After each run every report is asked for (results with all splits and cross-tables, of surveys and of runs, of members and by a stranger, as \
text, JSON and CSV; the five reports; export of servers, pages, links and history, as Parquet, too; survey show; trend; why) and compared with a \
reference that the web's generator computes. Measured times are not compared, nor are export placement and events, and reports as HTML and \
SVG. Totals are asked for five times a second: as JSON at four members, and as text, as CSV and by the page's way at one of them, in turn. They \
may fall by what completed runs explain; when after the last run a host is denied, one opted out and a survey ended, what is on record stays, and they may not fall at all. The servers' logs say what was asked for: \
each page once a run, robots.txt once a run (where it answers 500 each owner tries three times), and nothing but probes besides; what was asked for within \
10 s of the end of a daemon may be asked for again.

The exit status is 0 if nothing is wrong, and 1 if a cell, a request or a page is, or a total fell. Progress goes to standard error. \
400 hosts take some 4 minutes on two cores.

Examples:
  nearcrawl lab census
  nearcrawl lab census --seed 7 --json | jq '.reports[] | select(.wrong > 0)'
  nearcrawl lab census --hosts 20 --daemons 2 --runs 1 --kill 0
  nearcrawl lab census --hosts 100 --daemons 6 --runs 3 --kill 2";

/// Arguments of `lab census`.
#[derive(Args, Debug)]
pub struct CensusArgs {
    /// Seed of everything that is made up
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// How many hosts the web has
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(*HOSTS.start() as i64..=*HOSTS.end() as i64))]
    hosts: u32,
    /// How many daemons crawl it
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=MAX_DAEMONS as i64))]
    daemons: u32,
    /// How often each server is visited
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RUNS)))]
    runs: u32,
    /// How many daemons are killed, each once; three are left
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=MAX_DAEMONS as i64))]
    kill: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Carries the census out. What came of it is printed, too, if something is wrong.
pub async fn census(args: &CensusArgs) -> Result<String, CommandError> {
    let CensusArgs { seed, hosts, daemons, runs, kill, json } = *args;
    let plan = CensusPlan { seed, hosts: hosts as usize, daemons: daemons as usize, runs, kills: kill as usize };
    let exit = |why: &CensusError| match why {
        CensusError::Kills { .. } => Exit::Usage,
        CensusError::NoRange(_) | CensusError::Web(_) | CensusError::Dns(_) => Exit::InUse,
        CensusError::Directory { .. } => Exit::Storage,
        _ => Exit::Internal,
    };
    let outcome = census::run(plan, client).await.map_err(|why| CommandError::new(exit(&why), why.to_string()))?;
    let Some(outcome) = outcome else { return Err(CommandError::new(Exit::Broken, "it was interrupted")) };
    let text = if json { outcome.json() } else { outcome.text() };
    if outcome.holds() {
        return Ok(text);
    }
    print(&text);
    Err(CommandError::new(Exit::Broken, "something is not as it must be"))
}
