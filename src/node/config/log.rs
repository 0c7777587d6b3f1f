//! `[log]`: what the daemon logs, and where.

use super::{
    reader::Section,
    values::{self, Parsed},
};
use std::time::Duration;
use toml::de::DeValue;

const DAY: Duration = Duration::from_secs(86_400);

/// Whether messages go to the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Journald {
    /// If the daemon was started by systemd.
    #[default]
    Auto,
    /// To the journal, however the daemon was started.
    Always,
    /// Never: standard error only.
    Never,
}

/// `[log]`: which messages the daemon writes, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// A level, or a filter like `info,nearcrawl::io=debug` (checked).
    pub level: String,
    /// Whether they go to journald or to standard error.
    pub journald: Journald,
    /// Whether every request to a server is written down in the state directory.
    pub requests: bool,
    /// For how long that is kept, in whole days.
    pub max_requests_age: Duration,
    /// How many bytes of it are kept.
    pub max_requests_bytes: u64,
}

impl Default for LogConfig {
    fn default() -> Self {
        LogConfig {
            level: "info".to_owned(),
            journald: Journald::Auto,
            requests: true,
            max_requests_age: DAY * 30,
            max_requests_bytes: 64 << 20,
        }
    }
}

const JOURNALD: &[(&str, Journald)] = &[("auto", Journald::Auto), ("always", Journald::Always), ("never", Journald::Never)];
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

impl LogConfig {
    pub(super) fn read(mut section: Section<'_, '_>) -> LogConfig {
        let default = LogConfig::default();
        LogConfig {
            level: section.take("level", default.level, filter),
            journald: section.take("journald", default.journald, values::choice(JOURNALD)),
            requests: section.take("requests", default.requests, values::truth),
            max_requests_age: section.take("max_requests_age", default.max_requests_age, values::duration(DAY..=DAY * 3_650)),
            max_requests_bytes: section.take("max_requests_bytes", default.max_requests_bytes, values::size((1 << 20)..=(1 << 40))),
        }
    }
}

/// A level, or levels by module, separated by commas.
fn filter(value: &DeValue<'_>) -> Parsed<String> {
    let wanted = "write off, error, warn, info, debug or trace in quotes, or levels by module, like \"info,nearcrawl::io=debug\"";
    let text = value.as_str().ok_or(wanted)?;
    let fits = text.split(',').all(|part| match part.split_once('=') {
        Some((module, level)) => !module.is_empty() && LEVELS.contains(&level),
        None => LEVELS.contains(&part),
    });
    if fits { Ok(text.to_owned()) } else { Err(wanted.to_owned()) }
}
