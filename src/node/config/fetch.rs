//! The time and size limits of one request, and the certificate authorities that are trusted.

use super::{reader::Section, values};
use std::{path::PathBuf, time::Duration};

/// `[fetch]`: the limits of one request, and more authorities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchConfig {
    /// The longest time for a TCP connect.
    pub connect_timeout: Duration,
    /// The longest time for the TLS handshake.
    pub tls_timeout: Duration,
    /// The longest time from sending the request to the end of the answer's head.
    pub head_timeout: Duration,
    /// The longest time without a byte of the body.
    pub idle_timeout: Duration,
    /// The longest time for the whole request.
    pub total_timeout: Duration,
    /// The most bytes of a body over the wire.
    pub max_body_size: u64,
    /// The most bytes of a body after unpacking.
    pub max_decoded_size: u64,
    /// How long a connection is kept for the next request to the same server.
    pub keep_alive: Duration,
    /// Files of certificates (PEM) whose authorities are trusted beside those that browsers trust: for the servers of an intranet, or of a
    /// country with an authority of its own.
    pub ca_files: Vec<PathBuf>,
}

impl Default for FetchConfig {
    fn default() -> Self {
        FetchConfig {
            connect_timeout: Duration::from_secs(10),
            tls_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_secs(15),
            idle_timeout: Duration::from_secs(10),
            total_timeout: Duration::from_secs(60),
            max_body_size: 8 << 20,
            max_decoded_size: 8 << 20,
            keep_alive: Duration::from_secs(60),
            ca_files: Vec::new(),
        }
    }
}

impl FetchConfig {
    pub(super) fn read(mut section: Section<'_, '_>) -> FetchConfig {
        let default = FetchConfig::default();
        let patience = || values::duration(Duration::from_millis(10)..=Duration::from_secs(600));
        let size = || values::size((1 << 10)..=(1 << 30));
        FetchConfig {
            connect_timeout: section.take("connect_timeout", default.connect_timeout, patience()),
            tls_timeout: section.take("tls_timeout", default.tls_timeout, patience()),
            head_timeout: section.take("head_timeout", default.head_timeout, patience()),
            idle_timeout: section.take("idle_timeout", default.idle_timeout, patience()),
            total_timeout: section.take("total_timeout", default.total_timeout, patience()),
            max_body_size: section.take("max_body_size", default.max_body_size, size()),
            max_decoded_size: section.take("max_decoded_size", default.max_decoded_size, size()),
            keep_alive: section.take("keep_alive", default.keep_alive, values::duration(Duration::ZERO..=Duration::from_secs(3600))),
            ca_files: section.paths("ca_files"),
        }
    }
}
