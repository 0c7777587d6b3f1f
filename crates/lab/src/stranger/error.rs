//! Errors of the network, of the machine, and of a step.

use crate::{demo::daemons::DaemonError, web::server::ListenError};
use nearcrawl_netlab::NetlabError;
use std::path::PathBuf;

/// Why something could not be tried, or did not hold.
#[derive(Debug, thiserror::Error)]
pub enum StrangerError {
    /// There is no virtual network here.
    #[error(transparent)]
    Network(#[from] NetlabError),
    /// One of the three members could not be run.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// The web could not be served.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// There is no room for files.
    #[error("cannot write to {path}: {source}")]
    Files {
        /// Where.
        path: PathBuf,
        /// The error that the system reports.
        source: std::io::Error,
    },
    /// A program of this machine is missing, or was stopped.
    #[error("{program}: {source}")]
    Program {
        /// Which.
        program: &'static str,
        /// The error that the system reports.
        source: std::io::Error,
    },
    /// There is no machine.
    #[error("no machine of its own can be made from the tree {tree}: {said}")]
    Machine {
        /// The tree.
        tree: PathBuf,
        /// What was said then.
        said: String,
    },
    /// What was typed failed.
    #[error("`{typed}` ended with exit status {code}: {said}")]
    Typed {
        /// What was typed.
        typed: String,
        /// The exit status; of a signal 128 and its number.
        code: i32,
        /// What it said.
        said: String,
    },
    /// Something is not as it must be.
    #[error("{0}")]
    NotSo(String),
}
