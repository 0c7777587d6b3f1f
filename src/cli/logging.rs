//! Sets up the log: to the journal if systemd started the daemon, else to standard error, without colours if NO_COLOR is set.

use super::{
    error::{CommandError, Exit},
    table::may_colour,
};
use crate::node::{
    config::{Journald, LogConfig},
    recent_events::RecentEvents,
};
use std::io;
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    layer::{Layered, SubscriberExt},
    util::SubscriberInitExt,
};

/// What the log is made of: a filter, and where the messages go.
type Log = (EnvFilter, Box<dyn Layer<Layered<EnvFilter, Registry>> + Send + Sync>);

/// Sets up the log. RUST_LOG, if set, wins over the configured level.
pub fn begin(config: &LogConfig) -> Result<(), CommandError> {
    let (filter, layer) = made(config)?;
    let begun = tracing_subscriber::registry().with(filter).with(layer).with(RecentEvents).try_init();
    begun.map_err(|why| CommandError::new(Exit::Internal, format!("the log cannot be set up: {why}")))
}

/// Whether the log could be set up.
pub fn check(config: &LogConfig) -> Result<(), CommandError> {
    made(config).map(drop)
}

fn made(config: &LogConfig) -> Result<Log, CommandError> {
    let to_journal = match config.journald {
        Journald::Auto => std::env::var_os("JOURNAL_STREAM").is_some(),
        Journald::Always => true,
        Journald::Never => false,
    };
    let layer = if to_journal {
        let layer = tracing_journald::layer().map_err(|why| {
            CommandError::new(Exit::Unavailable, format!("log.journald: the journal of systemd cannot be reached: {why}"))
                .hint("write journald = \"never\" in section [log] to log to standard error")
        });
        layer?.boxed()
    } else {
        tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(may_colour(&io::stderr())).boxed()
    };
    Ok((filter(config)?, layer))
}

/// Libraries that say a line for each message of a member that sends too many. What the log is told to show of them stands behind, and wins.
const QUIET: &str = "libp2p_request_response=error,libp2p_gossipsub=error";

fn filter(config: &LogConfig) -> Result<EnvFilter, CommandError> {
    let environment = std::env::var("RUST_LOG").ok().filter(|filter| !filter.is_empty());
    let (named, text) =
        environment.as_deref().map_or(("log.level", config.level.as_str()), |text| ("the environment variable RUST_LOG", text));
    EnvFilter::try_new(format!("{QUIET},{text}")).map_err(|why| {
        CommandError::new(Exit::Config, format!("{named} = \"{text}\": {why}"))
            .hint("write a level like \"info\" or a filter like \"info,nearcrawl::io=debug\"")
    })
}
