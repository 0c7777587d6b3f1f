//! Why can this access point not start, or not go on? Each with what to do, and an exit status that tells systemd whether to try again.

use crate::io::{
    fetcher::BadFetcher,
    resolver::BadResolver,
    store::{OpenError, StoreError},
    swarm::StartError,
};
use std::path::PathBuf;

/// A failure of the whole daemon.
#[derive(Debug, thiserror::Error)]
pub enum NodeFailure {
    /// The state directory cannot be used.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The store failed while the daemon ran.
    #[error("the store failed: {0}")]
    Storing(#[from] StoreError),
    /// The key cannot be used.
    #[error("{path}: {why}")]
    Key {
        /// Which file.
        path: PathBuf,
        /// What is wrong and what to do.
        why: String,
        /// Whether it is a matter of permissions.
        forbidden: bool,
    },
    /// The hierarchy cannot be loaded.
    #[error("hierarchy: {0}")]
    Hierarchy(String),
    /// The pre-shared key cannot be read.
    #[error("{path}: {why}")]
    PreSharedKey {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The fetcher cannot be made.
    #[error(transparent)]
    Fetcher(#[from] BadFetcher),
    /// The resolver cannot be made.
    #[error(transparent)]
    Resolver(#[from] BadResolver),
    /// The swarm cannot be started.
    #[error(transparent)]
    Swarm(#[from] StartError),
    /// The API cannot be served.
    #[error(transparent)]
    Api(#[from] super::api::ApiFailure),
    /// A part of the daemon ended that must not.
    #[error("{0} ended unexpectedly; the journal of this service says more")]
    Ended(&'static str),
}

impl NodeFailure {
    /// The exit status, as in sysexits(3).
    pub fn exit_status(&self) -> u8 {
        match self {
            NodeFailure::Store(error) => error.exit_status(),
            NodeFailure::Key { forbidden: true, .. } => 77,
            NodeFailure::Key { .. } | NodeFailure::Hierarchy(_) | NodeFailure::PreSharedKey { .. } => 66,
            NodeFailure::Fetcher(_) | NodeFailure::Resolver(_) => 78,
            NodeFailure::Swarm(_) | NodeFailure::Api(_) => 73,
            // To be started again: the next start repairs what can be repaired.
            NodeFailure::Storing(_) | NodeFailure::Ended(_) => 70,
        }
    }
}
