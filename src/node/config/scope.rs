//! `[scope]`: which external hosts, found by links, become starting hosts of their own.

use super::{
    reader::Section,
    values::{self, Parsed},
};
use ipnetwork::IpNetwork;
use nearcrawl_model::url::Host;
use toml::de::DeValue;

/// `[scope]`: which external hosts are crawled. With everything empty, only the hosts of the seeds are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeConfig {
    /// Whether every host is in scope.
    pub open: bool,
    /// Every host under these top-level domains (lower case, without a dot).
    pub tlds: Vec<String>,
    /// These hosts with their subdomains.
    pub hosts: Vec<Host>,
    /// Hosts whose address is in these ranges.
    pub ranges: Vec<IpNetwork>,
    /// Hosts whose address belongs to these autonomous systems, by the hierarchy.
    pub asns: Vec<u32>,
}

impl ScopeConfig {
    pub(super) fn read(mut section: Section<'_, '_>) -> ScopeConfig {
        let default = ScopeConfig::default();
        ScopeConfig {
            open: section.take("open", default.open, values::truth),
            tlds: section.list("tlds", default.tlds, values::top_level_domain),
            hosts: section.list("hosts", default.hosts, scope_host),
            ranges: section.list("ranges", default.ranges, values::range),
            asns: section.list("asns", default.asns, values::as_number),
        }
    }
}

/// A host that can have subdomains of its own: a public suffix has none in this sense, so it would silently cover nothing.
fn scope_host(value: &DeValue<'_>) -> Parsed<Host> {
    let host = values::host(value)?;
    match host.tld() {
        Some(tld) if tld == host.as_str() && tld != "localhost" => {
            Err(format!("this is a top-level domain; write it under scope.tlds: [\"{tld}\"]"))
        }
        Some(_) if host.as_str().contains('.') && host.registrable().is_none() => {
            Err("the names under this public suffix have different owners; name the registered domains, like \"example.co.ke\"".to_owned())
        }
        _ => Ok(host),
    }
}
