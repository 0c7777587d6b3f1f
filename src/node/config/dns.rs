//! `[dns]`: the name servers that the daemon uses.

use super::{
    reader::Section,
    values::{self, Parsed},
};
use std::{net::SocketAddr, time::Duration};
use toml::de::DeValue;

/// `[dns]`: how names are resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsConfig {
    /// The name servers; empty = those of the system.
    pub servers: Vec<SocketAddr>,
    /// How long to wait for one answer.
    pub timeout: Duration,
    /// How many times to ask.
    pub attempts: u32,
    /// An answer is kept at least this long, whatever it says itself.
    pub min_ttl: Duration,
    /// The most questions in a second, repeated ones included; 0 without a limit.
    pub max_per_second: u32,
}

impl Default for DnsConfig {
    fn default() -> Self {
        DnsConfig {
            servers: Vec::new(),
            timeout: Duration::from_secs(3),
            attempts: 2,
            min_ttl: Duration::from_secs(60),
            max_per_second: 100,
        }
    }
}

/// A name server: an address of one machine.
fn name_server(value: &DeValue<'_>) -> Parsed<SocketAddr> {
    let server = values::socket_or_port(53)(value)?;
    if server.ip().is_unspecified() || server.ip().is_multicast() || server.port() == 0 {
        return Err("nobody can be asked there; write the address of a name server, like \"192.0.2.53\"".to_owned());
    }
    Ok(server)
}

impl DnsConfig {
    pub(super) fn read(mut section: Section<'_, '_>) -> DnsConfig {
        let default = DnsConfig::default();
        DnsConfig {
            servers: section.list("servers", default.servers, name_server),
            timeout: section.take("timeout", default.timeout, values::duration(Duration::from_millis(100)..=Duration::from_secs(30))),
            attempts: section.take("attempts", default.attempts, values::whole(1..=10)),
            max_per_second: section.take("max_per_second", default.max_per_second, values::whole(0..=10_000)),
            min_ttl: section.take("min_ttl", default.min_ttl, values::duration(Duration::from_secs(10)..=Duration::from_secs(7 * 86_400))),
        }
    }
}
