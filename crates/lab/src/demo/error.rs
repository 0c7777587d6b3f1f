//! Reasons why the demonstration could not be run to its end.

use super::{asking::AskError, daemons::DaemonError};
use crate::web::server::ListenError;
use std::{io, path::PathBuf};

/// Why the demonstration could not be run to its end.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The made-up web could not be served.
    #[error(transparent)]
    Web(#[from] ListenError),
    /// The made-up zone could not be served.
    #[error("the made-up name server cannot listen: {0}")]
    Dns(io::Error),
    /// The working directory could not be created.
    #[error("cannot use {path}: {source}")]
    Directory {
        /// The directory's path.
        path: PathBuf,
        /// The error that the system reports.
        source: io::Error,
    },
    /// A daemon could not be run.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// A daemon does not answer.
    #[error("a daemon does not answer: {0}")]
    Ask(#[from] AskError),
    /// The five did not find each other.
    #[error("after {seconds} s only {alive} of {wanted} daemons know each other; what they say is in {logs}")]
    NotTogether {
        /// How long they were given.
        seconds: u64,
        /// The fewest that one of them knows.
        alive: u64,
        /// How many there are.
        wanted: usize,
        /// Where their logs are.
        logs: PathBuf,
    },
}
