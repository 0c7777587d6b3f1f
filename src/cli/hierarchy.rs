//! `hierarchy`: fetches registry files, builds the hierarchy of subnets from them, shows and compares hierarchies.

mod build;
mod error;
mod fetch;
pub(super) mod look;
mod print;
mod renew;
#[cfg(test)]
mod tests;

pub use build::BuildArgs;
pub use error::HierarchyError;
pub use fetch::FetchArgs;
pub use look::{DiffArgs, ShowArgs, StatsArgs};
pub use renew::RenewArgs;

use clap::Subcommand;
use std::io::Write;

/// What can be done with hierarchies.
#[derive(Debug, Subcommand)]
pub enum HierarchyCommand {
    /// Download the registries' newest files
    #[command(after_help = fetch::EXAMPLES)]
    Fetch(FetchArgs),
    /// Build a snapshot from the registries' files
    #[command(after_help = build::EXAMPLES)]
    Build(BuildArgs),
    /// Fetch, build and check, and put the result where the daemon reads it
    #[command(after_help = renew::EXAMPLES)]
    Renew(RenewArgs),
    /// Show an address's registry, country, organisation and subnet
    #[command(after_help = look::SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Count the subnets, organisations and levels of a hierarchy
    #[command(after_help = look::STATS_EXAMPLES)]
    Stats(StatsArgs),
    /// Compare two hierarchies
    #[command(after_help = look::DIFF_EXAMPLES)]
    Diff(DiffArgs),
}

/// Shown under `hierarchy --help`.
pub const EXAMPLES: &str = "Examples:
  nearcrawl hierarchy show 196.200.16.1
  nearcrawl hierarchy stats
  nearcrawl hierarchy fetch --dir registries
  nearcrawl hierarchy build registries --out world.snapshot.zst
  nearcrawl hierarchy renew
  nearcrawl hierarchy diff built-in world.snapshot.zst";

/// Runs the command and prints to `out`; progress goes to the terminal, if there is one.
pub async fn run(command: HierarchyCommand, out: &mut (dyn Write + Send)) -> Result<(), HierarchyError> {
    match command {
        HierarchyCommand::Fetch(args) => fetch::fetch(&args, out).await,
        HierarchyCommand::Build(args) => build::build(&args, out),
        HierarchyCommand::Renew(args) => renew::renew(&args, out).await,
        HierarchyCommand::Show(args) => look::show(&args, out),
        HierarchyCommand::Stats(args) => look::stats(&args, out),
        HierarchyCommand::Diff(args) => look::diff(&args, out),
    }
}
