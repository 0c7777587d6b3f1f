//! `nearcrawl lab swarm`: runs a simulated swarm.
//!
//! It shows whether a change of the program changes what swarms do, and whether a swarm keeps its promises in a scenario.

use super::{
    course, files, json,
    output::{bar, svg_file, write_plot},
};
use crate::cli::{
    error::{CommandError, Exit},
    print,
};
use clap::{Args, ValueEnum};
use nearcrawl_lab::{
    scenario::{
        Verdict,
        file::{Latency, Scenario},
    },
    swarm::trial::{Faults, MAX_MEMBERS, MAX_SUBNETS, Outcome, Trial},
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Shown under `lab swarm --help`.
pub const EXAMPLES: &str = "\
Members, network, disks, name servers and web are simulated; the decisions are those of the daemon. Equal arguments give equal digests, \
on every machine; two builds that behave alike have equal digests.

A scenario is a TOML file: members, subnets, hosts and minutes of a swarm, and [[at]] tables with t, do and who that say what happens to \
it when; crates/lab/scenarios has some. Its latency is \"spread\", \"equal\", or a file of source,target,ms records or a square matrix in \
milliseconds, beside the scenario or relative to the working directory. Twenty quiet minutes follow. The exit status is 0 if all promises \
were kept (nothing fetched by two or twice, no pause broken, nothing lost or wrongly called exact, one owner for each subnet and equal maps \
and totals at the end), 1 if not, 65 if the file is wrong. Its rule is \"default\", or leaves something out: \"no-lease\" (an owner that too \
few voters hear goes on), \"no-council\" (one vote is enough for a claim), \"no-replicas\" (copies are not kept), \"no-hello\" (names count as \
members that nobody has heard of but by others). What members \"lie\" about: claim, epoch, double-accept, address, hosts, runs, journal, \
roll-up, flood, dial, probe; forward (they pass nothing on), hand-over (they tell the next voters that nothing was decided), silence (they \
do not answer who asks for journals), deny (they say that they have none).

Examples:
  nearcrawl lab swarm --members 5 --subnets 20 --minutes 60 --faults kills
  nearcrawl lab swarm --members 5 --subnets 20 --minutes 60 --faults moves \\
    --seed 7 --digest
  nearcrawl lab swarm --scenario crates/lab/scenarios/kills.toml --seed 3 --json
  nearcrawl lab swarm --scenario kills.toml --plot kills.svg";

/// What happens to the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FaultsArg {
    /// Nothing
    None,
    /// Members are killed, leave, stop and come back
    Kills,
    /// The network falls into parts; messages get lost
    Partitions,
    /// Subnets move to other owners; the hierarchy changes
    Moves,
}

/// Arguments of `lab swarm`.
#[derive(Args, Debug)]
pub struct SwarmArgs {
    /// How many members there are
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_MEMBERS)))]
    members: u32,
    /// In how many subnets servers live, two hosts in each
    #[arg(long, value_name = "K", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SUBNETS)))]
    subnets: u32,
    /// How long it lasts, in simulated minutes
    #[arg(long, value_name = "M", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    minutes: u32,
    /// What happens to the members meanwhile
    #[arg(long, value_enum, default_value_t = FaultsArg::None)]
    faults: FaultsArg,
    /// Seed of all random numbers: equal seeds give equal runs
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Print nothing but the digest
    #[arg(long, conflicts_with = "json")]
    digest: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Play this scenario instead, and judge what came of it
    #[arg(long, value_name = "FILE.toml", conflicts_with_all = ["members", "subnets", "minutes", "faults"])]
    scenario: Option<PathBuf>,
    /// Draw owners, members and requests of a scenario over time
    #[arg(long, value_name = "FILE.svg", requires = "scenario", value_parser = svg_file)]
    plot: Option<PathBuf>,
}

/// Runs the swarm, and shows what came out.
pub fn swarm(args: &SwarmArgs) -> Result<String, CommandError> {
    if let Some(path) = &args.scenario {
        return scenario(args, path);
    }
    let faults = match args.faults {
        FaultsArg::None => Faults::None,
        FaultsArg::Kills => Faults::Kills,
        FaultsArg::Partitions => Faults::Partitions,
        FaultsArg::Moves => Faults::Moves,
    };
    let SwarmArgs { members, subnets, minutes, seed, .. } = *args;
    let bar = bar(u64::from(minutes), "simulated minutes");
    let outcome = Trial { members, subnets, minutes, faults, seed }.run(&|| bar.inc(1));
    bar.finish_and_clear();
    if args.json {
        return json(&outcome);
    }
    Ok(if args.digest { format!("{}\n", outcome.digest) } else { text(&outcome) })
}

/// Plays a scenario. What came of it is printed, too, if promises were broken.
fn scenario(args: &SwarmArgs, path: &Path) -> Result<String, CommandError> {
    let name = path.display();
    let text = fs::read(path).map_err(|why| CommandError::of_file(path, &why))?;
    let refused = |why: String| CommandError::new(Exit::Data, format!("{name}: {why}"));
    let text = String::from_utf8(text).map_err(|_| refused("this is not a text file".to_owned()))?;
    let scenario = Scenario::read(&text).map_err(|why| refused(why.to_string()))?;
    let matrix = match &scenario.latency {
        Latency::Spread | Latency::Equal => None,
        Latency::Matrix { file, line } => {
            let beside = path.parent().unwrap_or(Path::new(".")).join(file);
            let matrix = files::read_matrix(if beside.exists() { &beside } else { Path::new(file) });
            // Whatever is neither spread nor equal is a name: also what was meant to be one of them.
            Some(matrix.map_err(|why| refused(format!("line {line}: latency: \"spread\", \"equal\", or a matrix: {}", why.message)))?)
        }
    };
    let bar = bar(u64::from(scenario.minutes) + 20, "simulated minutes");
    let verdict = scenario.play(args.seed, matrix, &|| bar.inc(1)).map_err(|why| refused(why.to_string()))?;
    bar.finish_and_clear();
    write_plot(args.plot.as_deref(), || course::svg(&verdict))?;
    let told = match (args.json, args.digest) {
        (true, _) => json(&verdict)?,
        (false, true) => format!("{}\n", verdict.digest),
        (false, false) => figures(&verdict),
    };
    if verdict.holds {
        return Ok(told);
    }
    // The figures are the answer; why the status is not 0 goes where failures go.
    print(&told);
    let first = verdict.first_violation.map(|first| format!("; the first after {:.1} s: {}", first.at_ms as f64 / 1e3, first.what));
    Err(CommandError::new(Exit::Broken, format!("promises were broken{}", first.unwrap_or_default())))
}

fn figures(verdict: &Verdict) -> String {
    let (failover, decidable) = (&verdict.failover_ms, &verdict.failover_with_quorum_ms);
    format!(
        "requests to servers     {}\n\
         fetched by two at once  {}, for {:.1} s at most\n\
         pauses broken           {}\n\
         recorded, asked again   {}\n\
         lost                    {}\n\
         exact but wrong         {}\n\
         without an owner        {:.1} s at most\n\
         fail-over               {} subnets, median {:.1} s, p99 {:.1} s, at most {:.1} s\n\
         with voters in reach    median {:.1} s, p99 {:.1} s, at most {:.1} s\n\
         bytes a member and day  {}\n\
         longest step            {:.1} ms\n\
         digest                  {}\n",
        verdict.fetches,
        verdict.overlaps,
        verdict.overlap_ms_max as f64 / 1e3,
        verdict.pauses_broken,
        verdict.fetched_twice,
        verdict.lost,
        verdict.exact_but_wrong,
        verdict.ownerless_ms_max as f64 / 1e3,
        failover.n,
        failover.p50 as f64 / 1e3,
        failover.p99 as f64 / 1e3,
        failover.max as f64 / 1e3,
        decidable.p50 as f64 / 1e3,
        decidable.p99 as f64 / 1e3,
        decidable.max as f64 / 1e3,
        verdict.bytes_member_day,
        verdict.longest_step_ms,
        verdict.digest,
    )
}

fn text(outcome: &Outcome) -> String {
    let Outcome { digest, contacts, probes, pages, too_close, claims, rows, running, exact, .. } = outcome;
    format!(
        "contacts with servers  {contacts}, of these {probes} probes\n\
         pages asked for        {pages}\n\
         contacts too close     {too_close}\n\
         on all disks           {claims} claims, {rows} journal rows\n\
         members in the end     {running}, of these {exact} with exact totals\n\
         digest                 {digest}\n"
    )
}
