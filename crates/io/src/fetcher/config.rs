//! Configuration of the fetcher: how it introduces itself, and the reasons why none can be made.

use super::limits::FetchLimits;
use nearcrawl_model::fingerprint::FingerprintKey;
use std::{net::IpAddr, path::PathBuf};

/// How the fetcher introduces itself, from where, and what it tolerates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetcherConfig {
    /// The `User-Agent`. Its first word, up to a `/`, is what robots rules call us.
    pub user_agent: String,
    /// The `From` header, an e-mail address; none sends none.
    pub from: Option<String>,
    /// The local address that connections are made from.
    pub source_address: Option<IpAddr>,
    /// The time and size limits of a request.
    pub limits: FetchLimits,
    /// The key of the fingerprints of links.
    pub key: FingerprintKey,
    /// Whether failures are looked for in pages.
    pub evaluate: bool,
    /// Bytes a second over all its connections; none as fast as they come.
    pub rate: Option<u64>,
    /// How many bytes may have come at each connection that are not read; none as many as the system chooses, which may be megabytes.
    pub unread: Option<u32>,
}

/// Why a fetcher or prober cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetcherConfigError {
    /// The user agent cannot be sent.
    #[error("the user agent {0:?} cannot stand in a header: use visible ASCII characters")]
    UserAgent(String),
    /// The address to write to cannot be sent.
    #[error("the contact {0:?} cannot stand in a header: use visible ASCII characters")]
    From(String),
    /// A file of authorities cannot be used.
    #[error("fetch.ca_files: {path}: {why}; name files of certificates of authorities, in PEM")]
    Authority {
        /// The file's path.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}
