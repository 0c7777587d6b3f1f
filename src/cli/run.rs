//! `check` and `run`: check a configuration, and run the daemon.

use super::{
    error::{CommandError, Exit},
    json, logging,
};
use crate::io::memory;
use crate::node::{
    self, NodeError, Reloads, StartChecks,
    allowance::memory_limit,
    config::{Config, SERVICE_CONFIG, check_dial_address},
    remote_results::{self, NoResults},
};
use clap::Args;
use nearcrawl_model::summary::SwarmResults;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// With less memory a daemon is likely to be ended for lack of it.
const ENOUGH_MEMORY: u64 = 256 << 20;

/// About what a daemon that crawls uses, without its store.
const WITHOUT_STORE: u64 = 64 << 20;

/// The environment variable that names the configuration file.
const CONFIG_VARIABLE: &str = "NEARCRAWL_CONFIG";

/// The option that names the configuration file.
#[derive(Args, Clone, Debug, Default)]
pub struct ConfigArgs {
    /// The configuration file [default: /etc/nearcrawl/nearcrawl.toml if it exists, else built-in values]
    #[arg(long, value_name = "FILE", env = CONFIG_VARIABLE)]
    pub config: Option<PathBuf>,
}

impl ConfigArgs {
    /// What the environment names, for commands without this option.
    pub fn of_environment() -> ConfigArgs {
        let named = std::env::var_os(CONFIG_VARIABLE).filter(|file| !file.is_empty());
        ConfigArgs { config: named.map(PathBuf::from) }
    }

    /// The file given, or that of the service if it exists.
    pub fn path(&self) -> Option<&Path> {
        let service = Path::new(SERVICE_CONFIG);
        self.config.as_deref().or_else(|| service.exists().then_some(service))
    }

    /// Reads the file; the defaults if there is none.
    pub fn load(&self) -> Result<Config, CommandError> {
        Config::load(self.path()).map_err(|why| {
            CommandError::new(Exit::Config, why.to_string())
                .hint("`man nearcrawl.toml` (or `nearcrawl man --section 5`) explains every key")
        })
    }
}

/// The arguments of `run`.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// A member to join through, besides the configured ones (repeatable)
    #[arg(long, value_name = "MULTIADDR")]
    bootstrap: Vec<String>,
}

/// Shown under `run --help`.
pub const RUN_EXAMPLES: &str = "Examples:\n  \
    nearcrawl run                             with the service's configuration\n  \
    nearcrawl run --config node.toml          with another\n  \
    nearcrawl run --bootstrap /ip4/192.0.2.7/tcp/4817/p2p/12D3KooW…\n\n\
    It runs until SIGTERM or Ctrl-C. Started again within 45 s, it keeps its subnets; `nearcrawl leave` releases them.";

/// Runs the daemon until it is told to end.
pub async fn run(args: RunArgs) -> Result<(), CommandError> {
    let reloads = Reloads::listen(args.config.path()).map_err(of_node)?;
    let mut config = args.config.load()?;
    for address in args.bootstrap {
        check_dial_address(&address).map_err(|wanted| CommandError::new(Exit::Usage, format!("--bootstrap {address}: {wanted}")))?;
        config.swarm.bootstrap.push(address);
    }
    let checks = startable(&config)?;
    logging::begin(&config.log)?;
    for warning in checks.warnings(&config).into_iter().chain(little_memory(&config)) {
        tracing::warn!("{warning}");
    }
    node::run::run(config, checks, reloads).await.map_err(of_node)
}

/// The arguments of `check`.
#[derive(Args, Clone, Debug)]
pub struct CheckArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

/// Shown under `check --help`.
pub const CHECK_EXAMPLES: &str = "Examples:\n  \
    nearcrawl check                           the service's configuration\n  \
    nearcrawl check --config node.toml        another\n\n\
    All mistakes of the file are listed at once, with their lines; the exit code is then 78. If it has none, all that would keep `nearcrawl run` \
    from starting here is listed at once; the exit code is then that of the first.";

/// What `check --json` says of a configuration that can be used.
#[derive(Clone, Debug, Serialize)]
struct CheckView {
    config: Option<PathBuf>,
    ready_to_run: bool,
    warnings_text: Vec<String>,
}

/// Whether `run` would start: all that can be known of it while nothing is started. `run` asks it before it begins its log, so that both
/// commands fail with the same words and the same exit code.
fn startable(config: &Config) -> Result<StartChecks, CommandError> {
    let checked = StartChecks::of(config).map_err(of_node);
    match (logging::check(&config.log), checked) {
        (Ok(()), checked) => checked,
        (Err(of_log), Ok(_)) => Err(of_log),
        (Err(of_log), Err(others)) => Err(CommandError { message: format!("{}\n{}", of_log.message, others.message), ..of_log }),
    }
}

/// Reads the configuration and lists its mistakes and warnings.
pub fn check(args: &CheckArgs) -> Result<String, CommandError> {
    let config = args.config.load()?;
    let what = args.config.path().map_or("the built-in values".to_owned(), |path| path.display().to_string());
    let warnings_text = startable(&config)?.warnings(&config).into_iter().chain(little_memory(&config)).collect();
    let view = CheckView { config: args.config.path().map(Path::to_owned), ready_to_run: true, warnings_text };
    if args.json {
        return json(&view);
    }
    let mut text = format!("{what}: no mistakes\n");
    for warning in &view.warnings_text {
        text += &format!("warning: {warning}\n");
    }
    Ok(text)
}

/// A warning if a daemon needs more memory than the system or the configuration allows it.
pub(super) fn little_memory(config: &Config) -> Option<String> {
    little(memory::limit(), memory_limit::effective(config.allowance.memory), config.store.memory)
}

/// The same of the system's limit, that of the daemon, and what its store may use.
fn little(of_system: Option<u64>, limit: Option<u64>, store: u64) -> Option<String> {
    let of_system = of_system.filter(|limit| *limit < ENOUGH_MEMORY).map(|limit| {
        format!(
            "the system lets this process use {} MiB of memory, and a daemon needs {}: it may be slowed down or ended at any time; raise the \
             limit of its container, control group or service (MemoryHigh, MemoryMax), or its address space (ulimit -v)",
            limit >> 20,
            ENOUGH_MEMORY >> 20
        )
    });
    of_system.or_else(|| {
        let limit = limit.filter(|limit| *limit < WITHOUT_STORE + store)?;
        Some(format!(
            "{} MiB of memory, which the daemon may use by allowance.memory or as seven eighths of what the system allows, may be too little to \
             crawl with: it rests when it uses more; its store may use {} (store.memory), and the rest of it about {}",
            limit >> 20,
            store >> 20,
            WITHOUT_STORE >> 20
        ))
    })
}

/// An error of the node with its exit code.
pub(super) fn of_node(why: NodeError) -> CommandError {
    CommandError::new(Exit::of(why.exit_status()), why.to_string())
}

/// Reads the totals of a swarm from one of its members, without joining it.
pub(super) async fn results_of_member(address: &str) -> Result<SwarmResults, CommandError> {
    remote_results::results_of_member(address, remote_results::MEMBER_TIMEOUT).await.map_err(|why| {
        let (exit, hint) = match why {
            NoResults::BadAddress { .. } => {
                (Exit::Usage, "write it like /ip4/192.0.2.7/tcp/4817/p2p/12D3KooW…; `nearcrawl status --json` there lists its addresses")
            }
            NoResults::NoAnswer { .. } => {
                (Exit::Unavailable, "is the daemon there running, and reachable from here? Any other member can answer as well")
            }
            NoResults::Refused { .. } => {
                (Exit::Unavailable, "ask another member, or ask this one's operator to set `readers` in section [swarm]")
            }
        };
        CommandError::new(exit, why.to_string()).hint(hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_memory_is_warned_of() {
        let mib = |count: u64| Some(count << 20);
        assert_eq!(little(None, None, 64 << 20).or(little(mib(256), mib(224), 64 << 20)), None);
        assert!(little(mib(200), mib(175), 64 << 20).unwrap().contains("200 MiB"));
        assert!(little(None, mib(127), 64 << 20).unwrap().contains("127 MiB"), "configured too low");
        assert!(little(mib(512), mib(448), 512 << 20).unwrap().contains("store.memory"), "the store may use more than all");
    }

    #[tokio::test]
    async fn a_peer_that_is_not_there_is_unavailable_and_a_mistyped_one_a_usage_error() {
        for (address, exit) in [("/ip4/127.0.78.9/tcp/9", Exit::Unavailable), ("127.0.78.9:9", Exit::Usage)] {
            let failure = results_of_member(address).await.unwrap_err();
            assert_eq!(failure.exit, exit, "{failure}");
            assert!(failure.message.contains(address) && failure.hint.is_some(), "{failure}");
        }
    }
}
