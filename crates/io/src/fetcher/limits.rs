//! Limits on the time and size of an exchange with a web server.

use std::time::Duration;

/// What a server may cost us at most. The defaults are for a volunteer's small machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// The longest time for the TCP connect.
    pub connect: Duration,
    /// The longest time for the TLS handshake.
    pub tls: Duration,
    /// From sending the request to the whole head of the answer.
    pub head: Duration,
    /// The longest time between two pieces of the body.
    pub read_idle: Duration,
    /// The longest time for the whole request, connecting included.
    pub total: Duration,
    /// How long a server may be slow before `min_rate` counts.
    pub slow_start: Duration,
    /// Bytes a second that a body must come with after `slow_start`, on average; 0 asks for nothing.
    pub min_rate: u64,
    /// Bytes of a page's body as they come over the wire.
    pub wire_bytes: u64,
    /// The most bytes of a page after decoding.
    pub decoded_bytes: u64,
    /// Bytes of robots.txt that are read (RFC 9309 §2.5 asks for at least 500 KiB); the rest is cut off without an error.
    pub robots_bytes: u64,
    /// How many times its compressed size a body may unpack to, once it has unpacked to `ratio_from`.
    pub ratio: u64,
    /// Decoded bytes up to which `ratio` is not looked at.
    pub ratio_from: u64,
    /// The most headers of an answer.
    pub headers: usize,
    /// Bytes of an answer's head, at least 8 KiB.
    pub head_bytes: usize,
    /// Bytes of an unwanted body (redirect, error page, picture) that are read to keep the connection.
    pub drain_bytes: u64,
    /// How long an unwanted body is read to keep the connection.
    pub drain: Duration,
    /// How long a connection is kept without a request.
    pub idle: Duration,
    /// How many connections are kept without a request; beyond this they are closed after use.
    pub max_kept: usize,
}

impl FetchLimits {
    /// Bytes that are read before a head has come. Several may come before the one that counts (103 Early Hints).
    pub(super) fn raw_head(&self) -> u64 {
        4 * self.head_bytes as u64
    }

    /// Bytes that are read behind a head: a body with the lengths of its chunks, which are rarely as long as what they measure.
    pub(super) fn raw_body(&self) -> u64 {
        2 * self.wire_bytes.max(self.robots_bytes).max(self.drain_bytes)
    }
}

impl Default for FetchLimits {
    fn default() -> Self {
        FetchLimits {
            connect: Duration::from_secs(10),
            tls: Duration::from_secs(10),
            head: Duration::from_secs(15),
            read_idle: Duration::from_secs(10),
            total: Duration::from_secs(60),
            slow_start: Duration::from_secs(10),
            min_rate: 1024,
            wire_bytes: 8 << 20,
            decoded_bytes: 8 << 20,
            robots_bytes: 500 << 10,
            ratio: 200,
            ratio_from: 64 << 10,
            headers: 100,
            head_bytes: 64 << 10,
            drain_bytes: 64 << 10,
            drain: Duration::from_secs(1),
            idle: Duration::from_secs(60),
            max_kept: 512,
        }
    }
}
