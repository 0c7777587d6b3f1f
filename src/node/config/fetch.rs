//! How long and how much may one request take, and who is trusted to say which server it is?

use super::{reader::Section, values};
use std::{path::PathBuf, time::Duration};

/// `[fetch]`: the limits of one request, and more authorities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchConfig {
    /// For connecting.
    pub connect: Duration,
    /// For the TLS handshake.
    pub tls: Duration,
    /// From sending the request to the end of the answer's head.
    pub head: Duration,
    /// Without a byte of the body.
    pub idle: Duration,
    /// For the whole request.
    pub total: Duration,
    /// Bytes of a body over the wire.
    pub most_bytes: u64,
    /// Bytes of a body after unpacking.
    pub most_decoded: u64,
    /// How long a connection is kept for the next request to the same server.
    pub keep_alive: Duration,
    /// Files of certificates (PEM) whose authorities are trusted beside those that browsers trust: for the servers of an intranet, or of a
    /// country with an authority of its own.
    pub authorities: Vec<PathBuf>,
}

impl Default for FetchConfig {
    fn default() -> Self {
        FetchConfig {
            connect: Duration::from_secs(10),
            tls: Duration::from_secs(10),
            head: Duration::from_secs(15),
            idle: Duration::from_secs(10),
            total: Duration::from_secs(60),
            most_bytes: 8 << 20,
            most_decoded: 8 << 20,
            keep_alive: Duration::from_secs(60),
            authorities: Vec::new(),
        }
    }
}

impl FetchConfig {
    pub(super) fn read(mut section: Section<'_, '_>) -> FetchConfig {
        let default = FetchConfig::default();
        let patience = || values::duration(Duration::from_millis(10)..=Duration::from_secs(600));
        let size = || values::size((1 << 10)..=(1 << 30));
        FetchConfig {
            connect: section.take("connect", default.connect, patience()),
            tls: section.take("tls", default.tls, patience()),
            head: section.take("head", default.head, patience()),
            idle: section.take("idle", default.idle, patience()),
            total: section.take("total", default.total, patience()),
            most_bytes: section.take("most_bytes", default.most_bytes, size()),
            most_decoded: section.take("most_decoded", default.most_decoded, size()),
            keep_alive: section.take("keep_alive", default.keep_alive, values::duration(Duration::ZERO..=Duration::from_secs(3600))),
            authorities: section.paths("authorities"),
        }
    }
}
