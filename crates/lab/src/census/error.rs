//! Reasons why a census could not be carried out to its end.

use super::certificates::CertificateError;
use crate::{
    demo::{asking::AskError, daemons::DaemonError},
    web::server::ListenError,
};
use std::{io, path::PathBuf};

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub enum CensusError {
    /// More daemons are to be killed than can be.
    #[error("{kills} of {daemons} daemons cannot be killed: three must be left to decide who takes over; use --kill {most} at most")]
    Kills {
        /// How many are to be killed.
        kills: usize,
        /// How many there are.
        daemons: usize,
        /// How many may be.
        most: usize,
    },
    /// All ranges are in use.
    #[error("all ranges of loopback addresses are in use: {0} censuses run on this machine already; wait until one has ended")]
    NoRange(usize),
    /// The made-up web could not be served.
    #[error(transparent)]
    Web(#[from] ListenError),
    /// There are no certificates for it.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
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
    /// There is no client to ask with.
    #[error("there is no HTTP client: {0}")]
    Client(String),
    /// A daemon could not be run, or a command failed.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// A daemon does not answer.
    #[error("a daemon does not answer: {0}")]
    Ask(#[from] AskError),
    /// The daemons did not find each other.
    #[error("after {seconds} s only {alive} of {wanted} daemons know each other; what they say is in {logs}")]
    NotTogether {
        /// How long they were given.
        seconds: u64,
        /// The fewest that one of them knows.
        alive: u64,
        /// How many run.
        wanted: usize,
        /// Where their logs are.
        logs: PathBuf,
    },
}
