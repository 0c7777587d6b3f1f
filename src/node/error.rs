//! Reasons why this access point cannot start, or not go on.
//!
//! Each has what to do, and an exit status that tells systemd whether to try again.

use crate::io::{
    fetcher::FetcherConfigError,
    resolver::ResolverConfigError,
    store::{OpenError, StoreError},
    swarm::StartError,
};
use nearcrawl_model::view::counted;
use std::{
    io,
    path::{Path, PathBuf},
    slice,
};

/// A failure of the whole daemon.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The configuration is not enough to crawl with.
    #[error(transparent)]
    NotReady(#[from] super::config::NotReady),
    /// Two addresses of the configuration cannot be listened on at once.
    #[error("{one} and {other} are the same port of the same address: change one of the two")]
    SamePort {
        /// The key and value that stand first.
        one: String,
        /// Those that stand second.
        other: String,
    },
    /// The state directory cannot be used.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The store failed while the daemon ran.
    #[error("the store failed: {0}")]
    Storing(#[from] StoreError),
    /// The key cannot be used.
    #[error("{path}: {why}")]
    Key {
        /// The file's path.
        path: PathBuf,
        /// What is wrong and what to do.
        why: String,
        /// Whether it is a matter of permissions.
        forbidden: bool,
    },
    /// The disk of the state directory is full, or the user's share of it.
    #[error("{path}: {why}; free at least 256 MiB and start again")]
    NoSpace {
        /// What cannot be written.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// A crawl without a swarm was to be kept in the state directory of a member of one.
    #[error("{0} is the state of a member of a swarm: name another directory for this crawl")]
    StateOfMember(PathBuf),
    /// What a crawl finds cannot be written where it was to be.
    #[error("{path}: {why}")]
    Output {
        /// The file, or what stands for it.
        path: String,
        /// What failed.
        why: String,
    },
    /// The hierarchy cannot be loaded.
    #[error("hierarchy: {0}")]
    Hierarchy(String),
    /// The pre-shared key cannot be read.
    #[error("{path}: {why}")]
    PreSharedKey {
        /// The file's path.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The fetcher cannot be made.
    #[error(transparent)]
    Fetcher(#[from] FetcherConfigError),
    /// The resolver cannot be made.
    #[error(transparent)]
    Resolver(#[from] ResolverConfigError),
    /// The swarm cannot be started.
    #[error(transparent)]
    Swarm(#[from] StartError),
    /// The API cannot be served.
    #[error(transparent)]
    Api(#[from] super::api::ApiError),
    /// The store takes less than the crawler gives it, for too long.
    #[error("the store stands still: {0} commands wait for the disk; the journal of this service says more")]
    StoreBehind(usize),
    /// A part of the daemon ended that must not.
    #[error("{0} ended unexpectedly; the journal of this service says more")]
    Ended(&'static str),
    /// Several of these at once, two at least: each is told in its line.
    #[error("{}", listed(.0))]
    Several(Vec<NodeError>),
}

/// All of them, a line for each.
fn listed(all: &[NodeError]) -> String {
    let head = format!("{} keep a daemon from starting:", counted(all.len(), "mistake"));
    all.iter().fold(head, |text, one| format!("{text}\n  {one}"))
}

impl NodeError {
    /// A file of the state directory cannot be used, for this reason of the system; `why` says it to people.
    pub(in crate::node) fn of_file(path: &Path, why: String, error: &io::Error) -> NodeError {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => NodeError::NoSpace { path, why },
            kind => NodeError::Key { path, why, forbidden: kind == io::ErrorKind::PermissionDenied },
        }
    }

    /// All of them, at least one, as one.
    pub(in crate::node) fn of_all(mut all: Vec<NodeError>) -> NodeError {
        if all.len() == 1 { all.remove(0) } else { NodeError::Several(all) }
    }

    /// Each of several; itself, if it is one.
    pub fn each(&self) -> &[NodeError] {
        match self {
            NodeError::Several(all) => all,
            one => slice::from_ref(one),
        }
    }

    /// The exit status, as in sysexits(3); of several, that of the first.
    pub fn exit_status(&self) -> u8 {
        match self {
            NodeError::Store(error) => error.exit_status(),
            NodeError::Storing(error) => error.exit_status(),
            NodeError::Output { .. } => 74,
            NodeError::NoSpace { .. } => 75,
            NodeError::Key { forbidden: true, .. } => 77,
            NodeError::Key { .. } | NodeError::Hierarchy(_) | NodeError::PreSharedKey { .. } => 66,
            NodeError::NotReady(_) | NodeError::SamePort { .. } | NodeError::Fetcher(_) | NodeError::Resolver(_) => 78,
            NodeError::StateOfMember(_) | NodeError::Swarm(_) | NodeError::Api(_) => 73,
            // To be started again: the next start repairs what can be repaired.
            NodeError::StoreBehind(_) | NodeError::Ended(_) => 70,
            NodeError::Several(all) => all.first().map_or(70, NodeError::exit_status),
        }
    }
}
