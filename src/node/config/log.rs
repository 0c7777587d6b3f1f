//! What does the daemon log, and where?

use super::{
    reader::Section,
    values::{self, Parsed},
};
use toml::de::DeValue;

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
}

impl Default for LogConfig {
    fn default() -> Self {
        LogConfig { level: "info".to_owned(), journald: Journald::Auto }
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
