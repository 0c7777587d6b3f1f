//! `nearcrawl lab map`: measures how long a newcomer takes to get the ownership map, and what comparing maps costs.

use super::json;
use crate::{
    cli::error::{CommandError, Exit},
    io::store::{Store, StoreConfig, StoreError},
};
use clap::Args;
use nearcrawl_lab::map::{MAX_CLAIMS, MAX_VOTERS, MapCost, MapOutcome, MapTrial};
use nearcrawl_model::claim::SignedClaim;
use std::path::PathBuf;
use tokio::runtime::Handle;

/// Shown under `lab map --help`.
pub const EXAMPLES: &str = "\
What is simulated: a member has an ownership map of so many signed claims; another one that has none joins, and gets it. Messages are \
encoded and decoded, signatures checked and claims entered by the code of the daemon, and everything takes as long as it takes on one core of \
this machine; only the network's delay is simulated. Then nothing has changed, and then one claim has.

With --store the newcomer writes the claims into a database there, portion by portion, and waits for each; without, writing takes no time.

Memory is what the crawler of the other member holds, for each claim, everything that it has learnt from claims included.

Examples:
  nearcrawl lab map --claims 100000 --json
  nearcrawl lab map --claims 1000000 --rtt-ms 100 --store newcomer";

/// Arguments of `lab map`.
#[derive(Args, Debug)]
pub struct MapArgs {
    /// How many claims the map has
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CLAIMS)))]
    claims: u32,
    /// The round-trip time between the two members, in ms
    #[arg(long, value_name = "MS", default_value_t = 50, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    rtt_ms: u64,
    /// By how many voters the claims were decided: each carries the signatures of their quorum
    #[arg(long, value_name = "N", default_value_t = MAX_VOTERS, value_parser = clap::value_parser!(u8).range(1..=i64::from(MAX_VOTERS)))]
    voters: u8,
    /// Let the newcomer store its claims in a new database in this directory
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Plays the trial, and shows what came out.
pub fn map(args: &MapArgs) -> Result<String, CommandError> {
    let trial = MapTrial { claims: args.claims, rtt_ms: args.rtt_ms, voters: args.voters };
    let store = args.store.as_deref().map(|directory| Store::open(directory, &StoreConfig::default()));
    let store = store.transpose().map_err(|why| CommandError::new(Exit::InUse, why.to_string()))?.map(|(store, _)| store);
    let mut failed: Result<(), StoreError> = Ok(());
    let mut put = |claims: Vec<SignedClaim>| {
        if let Some(store) = &store
            && let Err(why) = Handle::current().block_on(store.claims_put(claims))
        {
            failed = Err(why);
        }
    };
    let outcome = trial.run(&mut put);
    failed.map_err(|why| CommandError::new(Exit::InUse, format!("the claims cannot be stored: {why}")))?;
    if args.json { json(&outcome) } else { Ok(text(&outcome)) }
}

fn text(outcome: &MapOutcome) -> String {
    let MapOutcome { claims, rtt_ms, voters, memory_bytes_per_claim, newcomer, equal, unchanged, one_claim } = outcome;
    let cost = |cost: &MapCost| {
        let MapCost { took_ms, newcomer_ms, answering_ms, questions, bytes, longest_step_ms, longest_answer_ms } = cost;
        format!(
            "{:.1} s: {questions} questions, {bytes} bytes, {newcomer_ms} ms of computing there (at most {longest_step_ms:.1} ms at a time), \
             {answering_ms} ms at the other member (at most {longest_answer_ms:.1} ms)",
            *took_ms as f64 / 1e3
        )
    };
    let equal = if *equal { "equal" } else { "NOT equal" };
    format!(
        "{claims} claims decided by {voters} voters, {memory_bytes_per_claim} bytes of memory each, {rtt_ms} ms between the members\n\
         newcomer   {}; maps {equal}\nunchanged  {}\none claim  {}\n",
        cost(newcomer),
        cost(unchanged),
        cost(one_claim)
    )
}
