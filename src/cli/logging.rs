//! Where do the daemon's messages go? To the journal if systemd started it, else to standard error.

use super::failure::{Exit, Failure};
use crate::node::config::{Journald, LogConfig};
use std::io::{self, IsTerminal};
use tracing_subscriber::{EnvFilter, Layer, layer::SubscriberExt, util::SubscriberInitExt};

/// Begins to log. RUST_LOG, if set, wins over the configured level.
pub fn begin(config: &LogConfig) -> Result<(), Failure> {
    let filter = match std::env::var("RUST_LOG") {
        Ok(filter) if !filter.is_empty() => EnvFilter::try_new(filter),
        _ => EnvFilter::try_new(&config.level),
    };
    let filter = filter.map_err(|why| {
        Failure::new(Exit::Config, format!("log.level: {why}"))
            .hint("write a level like \"info\" or a filter like \"info,nearcrawl::io=debug\"")
    })?;
    let to_journal = match config.journald {
        Journald::Auto => std::env::var_os("JOURNAL_STREAM").is_some(),
        Journald::Always => true,
        Journald::Never => false,
    };
    let layer = if to_journal {
        let layer = tracing_journald::layer();
        layer.map_err(|why| Failure::new(Exit::Unavailable, format!("the journal cannot be reached: {why}")))?.boxed()
    } else {
        tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(io::stderr().is_terminal()).boxed()
    };
    let begun = tracing_subscriber::registry().with(filter).with(layer).try_init();
    begun.map_err(|why| Failure::new(Exit::Internal, format!("logging cannot begin: {why}")))
}
