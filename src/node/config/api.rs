//! `[api]`: the HTTP interface for people on this machine.

use super::{reader::Section, values::Parsed};
use std::net::{Ipv4Addr, SocketAddr};
use toml::de::DeValue;

/// `[api]`: the HTTP interface and its page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiConfig {
    /// Where it listens; none = it is off.
    pub listen: Option<SocketAddr>,
}

impl Default for ApiConfig {
    fn default() -> Self {
        ApiConfig { listen: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 4880))) }
    }
}

impl ApiConfig {
    pub(super) fn read(mut section: Section<'_, '_>) -> ApiConfig {
        let default = ApiConfig::default();
        ApiConfig { listen: section.take("listen", default.listen, socket_or_off) }
    }
}

fn socket_or_off(value: &DeValue<'_>) -> Parsed<Option<SocketAddr>> {
    let wanted = "write an IP address and a port in quotes, like \"127.0.0.1:4880\", or \"\" to switch it off";
    match value.as_str() {
        Some("") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| wanted.to_owned()),
        None => Err(wanted.to_owned()),
    }
}
