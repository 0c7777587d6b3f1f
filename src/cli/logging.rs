//! Sets up the log: to the journal if systemd started the daemon, else to standard error, without colours if NO_COLOR is set.

use super::{
    error::{CommandError, Exit},
    table::may_colour,
};
use crate::node::config::{Journald, LogConfig};
use std::io;
use tracing_subscriber::{EnvFilter, Layer, layer::SubscriberExt, util::SubscriberInitExt};

/// Sets up the log. RUST_LOG, if set, wins over the configured level.
pub fn begin(config: &LogConfig) -> Result<(), CommandError> {
    let filter = match std::env::var("RUST_LOG") {
        Ok(filter) if !filter.is_empty() => EnvFilter::try_new(filter),
        _ => EnvFilter::try_new(&config.level),
    };
    let filter = filter.map_err(|why| {
        CommandError::new(Exit::Config, format!("log.level: {why}"))
            .hint("write a level like \"info\" or a filter like \"info,nearcrawl::io=debug\"")
    })?;
    let to_journal = match config.journald {
        Journald::Auto => std::env::var_os("JOURNAL_STREAM").is_some(),
        Journald::Always => true,
        Journald::Never => false,
    };
    let layer = if to_journal {
        let layer = tracing_journald::layer();
        layer.map_err(|why| CommandError::new(Exit::Unavailable, format!("log.journald: the journal cannot be reached: {why}")))?.boxed()
    } else {
        tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(may_colour(&io::stderr())).boxed()
    };
    let begun = tracing_subscriber::registry().with(filter).with(layer).try_init();
    begun.map_err(|why| CommandError::new(Exit::Internal, format!("the log cannot be set up: {why}")))
}
