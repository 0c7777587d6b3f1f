//! What may be asked of the demonstration?

use super::world::{SERVERS, WorldPlan};
use std::time::Duration;

/// Shows a whole swarm at work on this machine: five daemons, a made-up web, and a table of what came of it.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    nearcrawl demo                  about two and a half minutes; exit code 0 if every row of the table holds\n  \
    nearcrawl demo --seed 7         another made-up world\n  \
    nearcrawl demo --keep           leaves the swarm running and prints the address of its page")]
pub struct DemoArgs {
    /// Decides everything that is random in the made-up world
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How many web servers, 60 to 120
    #[arg(long, default_value_t = 66, value_parser = servers)]
    pub servers: usize,
    /// At the latest after how many seconds one daemon is killed
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
    /// The world to make up.
    pub fn plan(&self) -> WorldPlan {
        WorldPlan { seed: self.seed, servers: self.servers, ..WorldPlan::default() }
    }

    /// When the daemon is killed at the latest.
    pub fn latest_kill(&self) -> Duration {
        Duration::from_secs(self.seconds_to_kill)
    }
}

/// A number of servers that a world may have.
fn servers(text: &str) -> Result<usize, String> {
    let wanted = || format!("a number from {} to {} is wanted", SERVERS.start(), SERVERS.end());
    text.parse().ok().filter(|number| SERVERS.contains(number)).ok_or_else(wanted)
}
