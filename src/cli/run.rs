//! How does a daemon begin? `init` makes its key, `check` reads its configuration aloud, `run` runs it.

use super::{
    failure::{Exit, Failure},
    json, logging,
};
use crate::{
    model::summary::SwarmResults,
    node::{
        self, NodeFailure,
        config::{Config, SERVICE_CONFIG},
        doors::{self, NoResults},
    },
};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Which configuration.
#[derive(Args, Clone, Debug, Default)]
pub struct ConfigArgs {
    /// The configuration file. Default: /etc/nearcrawl/nearcrawl.toml if there is one, else the built-in values
    #[arg(long, value_name = "FILE", env = "NEARCRAWL_CONFIG")]
    pub config: Option<PathBuf>,
}

impl ConfigArgs {
    /// Which file is meant, if any.
    pub fn path(&self) -> Option<&Path> {
        let service = Path::new(SERVICE_CONFIG);
        self.config.as_deref().or_else(|| service.exists().then_some(service))
    }

    /// What it says.
    pub fn load(&self) -> Result<Config, Failure> {
        Config::load(self.path())
            .map_err(|why| Failure::new(Exit::Config, why.to_string()).hint("nearcrawl.example.toml lists every key with its default"))
    }
}

/// For `init`.
#[derive(Args, Clone, Debug)]
pub struct InitArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Print the peer id as JSON
    #[arg(long)]
    json: bool,
}

/// Shown under `init --help`.
pub const INIT_EXAMPLES: &str = "Examples:\n  \
    nearcrawl init                             make the key, print the peer id\n  \
    nearcrawl init --config node.toml --json   as {\"peer_id\": …}\n\n\
    Done twice it changes nothing: a key that is there is kept.";

/// What `init` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitView {
    /// Who the access point is.
    pub peer_id: String,
    /// Where its state is.
    pub state_dir: PathBuf,
    /// Whether the key was made just now.
    pub created: bool,
}

/// Makes the key and the state directory.
pub async fn init(args: &InitArgs) -> Result<String, Failure> {
    let view = node_init(&args.config.load()?).await?;
    if args.json {
        return json(&view);
    }
    let made = if view.created { "made" } else { "kept" };
    Ok(format!("{}\n  the key was {made} in {}\n", view.peer_id, view.state_dir.display()))
}

/// For `run`.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// A member to join by, beside the configured ones; may be given several times
    #[arg(long, value_name = "MULTIADDR")]
    bootstrap: Vec<String>,
}

/// Shown under `run --help`.
pub const RUN_EXAMPLES: &str = "Examples:\n  \
    nearcrawl run                             with the service's configuration\n  \
    nearcrawl run --config node.toml          with another\n  \
    nearcrawl run --bootstrap /ip4/192.0.2.7/tcp/4817/p2p/12D3KooW…\n\n\
    It goes on until SIGTERM or Ctrl-C. Back within 45 seconds, it keeps what it\n\
    owns; `nearcrawl leave` gives everything back.";

/// Runs the daemon until it is told to end.
pub async fn run(args: RunArgs) -> Result<(), Failure> {
    let mut config = args.config.load()?;
    for address in args.bootstrap {
        address.parse::<libp2p::Multiaddr>().map_err(|why| {
            Failure::new(Exit::Usage, format!("--bootstrap {address}: {why}")).hint("write it like /ip4/192.0.2.7/tcp/4817/p2p/12D3KooW…")
        })?;
        config.swarm.bootstrap.push(address);
    }
    config.ready_to_run().map_err(|why| Failure::new(Exit::Config, why.to_string()))?;
    logging::begin(&config.log)?;
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    node_run(config).await
}

/// For `check`.
#[derive(Args, Clone, Debug)]
pub struct CheckArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
}

/// Shown under `check --help`.
pub const CHECK_EXAMPLES: &str = "Examples:\n  \
    nearcrawl check                           the service's configuration\n  \
    nearcrawl check --config node.toml        another\n\n\
    All mistakes are listed at once, with their lines; then the exit code is 78.";

/// What `check --json` says of a configuration that can be used.
#[derive(Clone, Debug, Serialize)]
struct CheckView {
    config: Option<PathBuf>,
    ready_to_run: bool,
    warnings: Vec<String>,
}

/// Reads the configuration and says what it thinks of it.
pub fn check(args: &CheckArgs) -> Result<String, Failure> {
    let config = args.config.load()?;
    let view = CheckView {
        config: args.config.path().map(Path::to_owned),
        ready_to_run: config.ready_to_run().is_ok(),
        warnings: config.warnings(),
    };
    if args.json {
        return json(&view);
    }
    let what = view.config.as_ref().map_or("the built-in values".to_owned(), |path| path.display().to_string());
    let mut text = format!("{what}: no mistakes\n");
    for warning in &view.warnings {
        text += &format!("warning: {warning}\n");
    }
    Ok(text)
}

// The doors into the node.

async fn node_init(config: &Config) -> Result<InitView, Failure> {
    let born = node::init(config).map_err(of_node)?;
    Ok(InitView { peer_id: born.access_point.to_string(), state_dir: config.state_dir.clone(), created: born.created })
}

async fn node_run(config: Config) -> Result<(), Failure> {
    node::run::run(config).await.map_err(of_node)
}

/// A node's failure with its exit code.
pub(super) fn of_node(why: NodeFailure) -> Failure {
    Failure::new(Exit::of(why.exit_status()), why.to_string())
}

/// Reads the results of a swarm from one of its members, without being one.
pub(super) async fn results_of_peer(address: &str) -> Result<SwarmResults, Failure> {
    doors::results_of_peer(address, doors::PATIENCE).await.map_err(|why| {
        let (exit, hint) = match why {
            NoResults::BadAddress { .. } => {
                (Exit::Usage, "write it like /ip4/192.0.2.7/tcp/4817/p2p/12D3KooW…; `nearcrawl status --json` there lists its addresses")
            }
            NoResults::NoAnswer { .. } => {
                (Exit::Unavailable, "is the daemon there running, and reachable from here? Any other member answers just as well")
            }
            NoResults::Refused { .. } => (Exit::Unavailable, "ask another member, or ask this one's operator to let readers in"),
        };
        Failure::new(exit, why.to_string()).hint(hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_peer_that_is_not_there_is_unavailable_and_a_mistyped_one_a_usage_error() {
        for (address, exit) in [("/ip4/127.0.78.9/tcp/9", Exit::Unavailable), ("127.0.78.9:9", Exit::Usage)] {
            let failure = results_of_peer(address).await.unwrap_err();
            assert_eq!(failure.exit, exit, "{failure}");
            assert!(failure.message.contains(address) && failure.hint.is_some(), "{failure}");
        }
    }
}
