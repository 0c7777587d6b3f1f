//! The options of the demonstration.

use super::world::{SERVERS, WorldPlan};
use std::time::Duration;

/// Shown under `demo --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl demo            about 3 minutes; exit code 0 if every check passes\n  \
    nearcrawl demo --seed 7   another generated world\n  \
    nearcrawl demo --keep     leave the swarm running, print its page's address";

/// The arguments of `demo`.
#[derive(Clone, Debug, clap::Args)]
pub struct DemoArgs {
    /// The seed of everything that is random in the generated world
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The number of web servers, 60 to 120
    #[arg(long, default_value_t = 66, value_parser = servers)]
    pub servers: usize,
    /// When one daemon is killed at the latest, in seconds from the start
    #[arg(long, value_name = "SECONDS", default_value_t = 45, value_parser = clap::value_parser!(u64).range(5..=90))]
    pub seconds_to_kill: u64,
    /// Leave the swarm running at the end, until interrupted
    #[arg(long)]
    pub keep: bool,
    /// Print the table as JSON
    #[arg(long)]
    pub json: bool,
}

impl DemoArgs {
    /// The world to generate.
    pub fn plan(&self) -> WorldPlan {
        WorldPlan { seed: self.seed, servers: self.servers, ..WorldPlan::default() }
    }

    /// When the daemon is killed at the latest.
    pub(crate) fn latest_kill(&self) -> Duration {
        Duration::from_secs(self.seconds_to_kill)
    }
}

/// A number of servers that a world may have.
fn servers(text: &str) -> Result<usize, String> {
    let wanted = || format!("a number from {} to {} is wanted", SERVERS.start(), SERVERS.end());
    text.parse().ok().filter(|number| SERVERS.contains(number)).ok_or_else(wanted)
}
