//! `nearcrawl lab swarm`: does a change of the program change what a simulated swarm does?

use super::{json, output::bar};
use crate::cli::error::CommandError;
use clap::{Args, ValueEnum};
use nearcrawl_lab::swarm::trial::{Faults, MAX_MEMBERS, MAX_SUBNETS, Outcome, Trial};

/// Shown under `lab swarm --help`.
pub const EXAMPLES: &str = "\
Members, network, disks, name servers and web are simulated; the decisions are those of the daemon. Equal arguments give equal digests, \
on every machine; two builds that behave alike have equal digests.

Examples:
  nearcrawl lab swarm --members 5 --subnets 20 --minutes 60 --faults kills
  nearcrawl lab swarm --members 5 --subnets 20 --minutes 60 --faults moves \\
    --seed 7 --digest";

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
}

/// Runs the swarm, and shows what came out.
pub fn swarm(args: &SwarmArgs) -> Result<String, CommandError> {
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
