//! Values that are allowed one by one, and together cannot have the effect that is probably meant: a sentence for each.

use super::{
    allowance::AllowanceConfig,
    crawl::CrawlConfig,
    fetch::FetchConfig,
    log::LogConfig,
    scope::ScopeConfig,
    swarm::SwarmConfig,
    values::{write_duration, write_size},
};
use ipnetwork::IpNetwork;
use nearcrawl_core::crawl::scope::Scope;
use nearcrawl_model::url::Host;
use std::fmt::Display;

/// What is in scope, and denied.
pub(super) fn of_scope(scope: &ScopeConfig, crawl: &CrawlConfig) -> Vec<String> {
    let denied_tlds = crawl.deny_tlds.iter().filter_map(|tld| tld.parse::<Host>().ok());
    let names = Scope { denied: crawl.deny_hosts.iter().cloned().chain(denied_tlds).collect(), ..Scope::default() };
    let tlds = quoted(scope.tlds.iter().filter(|tld| tld.parse().is_ok_and(|tld| names.denies(&tld))));
    let is_at_denied = |address| crawl.deny_ranges.iter().any(|range| range.contains(address));
    let hosts = quoted(scope.hosts.iter().filter(|host| names.denies(host) || host.address().is_some_and(is_at_denied)));
    let ranges = quoted(scope.ranges.iter().filter(|range| is_covered(range, &crawl.deny_ranges)));
    let asns = quoted(scope.asns.iter().filter(|asn| crawl.deny_asns.contains(asn)));
    let sentences = [
        ("scope.tlds and crawl.deny_tlds (or deny_hosts) both have", tlds),
        ("crawl.deny_hosts, deny_tlds or deny_ranges has what is in scope.hosts:", hosts),
        ("crawl.deny_ranges has what is in scope.ranges:", ranges),
        ("scope.asns and crawl.deny_asns both have", asns),
    ];
    let denied = sentences.into_iter().filter(|(_, entries)| !entries.is_empty());
    denied.map(|(what, entries)| format!("{what} {}: what is denied is never contacted", entries.join(", "))).collect()
}

fn quoted<T: Display>(entries: impl Iterator<Item = T>) -> Vec<String> {
    entries.map(|entry| format!("\"{entry}\"")).collect()
}

/// Denied ranges that leave nothing to contact.
pub(super) fn of_denied(crawl: &CrawlConfig) -> Option<String> {
    let whole = |text: &str| text.parse().is_ok_and(|family: IpNetwork| is_covered(&family, &crawl.deny_ranges));
    let what = match (whole("0.0.0.0/0"), whole("::/0")) {
        (true, true) => "every address: nothing is ever contacted",
        (true, false) => "every IPv4 address: a server that has no other is never contacted",
        (false, true) => "every IPv6 address: a server that has no other is never contacted",
        (false, false) => return None,
    };
    Some(format!("crawl.deny_ranges denies {what}"))
}

/// Members to join through that are this access point.
pub(super) fn of_bootstrap(swarm: &SwarmConfig) -> Vec<String> {
    let told = |address| {
        format!(
            "swarm.bootstrap = \"{address}\" is an address of this access point itself (swarm.listen or swarm.advertise): nobody else is there"
        )
    };
    swarm.bootstrap_here().map(told).collect()
}

/// Limits of which one keeps another from having any effect.
pub(super) fn of_limits(fetch: &FetchConfig, log: &LogConfig, allowance: &AllowanceConfig) -> Vec<String> {
    let mut found = Vec::new();
    if fetch.total_timeout < fetch.connect_timeout {
        let (total, connect) = (write_duration(fetch.total_timeout), write_duration(fetch.connect_timeout));
        found.push(format!("fetch.total_timeout = \"{total}\" ends a request before fetch.connect_timeout (\"{connect}\") can"));
    }
    if fetch.max_decoded_size < fetch.max_body_size {
        let (decoded, body) = (write_size(fetch.max_decoded_size), write_size(fetch.max_body_size));
        found.push(format!("fetch.max_decoded_size = \"{decoded}\" ends a body before fetch.max_body_size (\"{body}\") can"));
    }
    if let Some(disk) = allowance.disk.filter(|disk| log.requests && log.max_requests_bytes > *disk) {
        let (log, disk) = (write_size(log.max_requests_bytes), write_size(disk));
        found.push(format!(
            "log.max_requests_bytes = \"{log}\" is more than the whole state directory may have by allowance.disk (\"{disk}\")"
        ));
    }
    found
}

/// Whether each address of a range is in one of the others.
fn is_covered(range: &IpNetwork, others: &[IpNetwork]) -> bool {
    let (mut next, last) = bounds(range);
    let mut spans: Vec<_> = others.iter().filter(|other| other.is_ipv4() == range.is_ipv4()).map(bounds).collect();
    spans.sort_unstable();
    for (first, end) in spans {
        if first > next {
            return false;
        }
        if end >= last {
            return true;
        }
        next = next.max(end + 1);
    }
    false
}

/// The first and the last address of a range, as numbers.
fn bounds(range: &IpNetwork) -> (u128, u128) {
    match range {
        IpNetwork::V4(range) => (u32::from(range.network()).into(), u32::from(range.broadcast()).into()),
        IpNetwork::V6(range) => (range.network().into(), range.broadcast().into()),
    }
}

#[cfg(test)]
mod tests {
    use crate::node::config::Config;
    use std::path::Path;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(&format!("contact = \"a@b.org\"\n{text}"), Path::new("node.toml")).map_err(|why| why.to_string())
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let cases = [
            ("[crawl]\nsource_address = \"224.0.0.1\"", "crawl.source_address"),
            ("[crawl]\nsource_address = \"255.255.255.255\"", "crawl.source_address"),
            ("[crawl]\nsource_address = \"0.0.0.0\"", "leave the key out"),
            ("[crawl]\nsource_address = \"::\"", "leave the key out"),
            ("[crawl]\nsource_address = \"ff02::1\"", "crawl.source_address"),
            ("[swarm]\nlisten = [\"/ip4/224.0.0.1/tcp/4817\"]", "multicast or broadcast"),
            ("[swarm]\nlisten = [\"/ip4/255.255.255.255/udp/4817/quic-v1\"]", "multicast or broadcast"),
            ("[swarm]\nlisten = [\"/ip6/ff02::1/tcp/4817\"]", "multicast or broadcast"),
            ("[swarm]\nbootstrap = [\"/ip4/0.0.0.0/tcp/4817\"]", "no member can be reached there"),
            ("[swarm]\nbootstrap = [\"/ip6/::/udp/4817/quic-v1\"]", "no member can be reached there"),
            ("[swarm]\nadvertise = [\"/ip4/224.0.0.1/tcp/4817\"]", "no member can be reached there"),
            ("[timers]\nping_interval = \"45s\"", "ping_interval must be shorter than dead_after (45s)"),
        ];
        for (text, part) in cases {
            let why = parse(text).expect_err(text);
            assert!(why.contains("has 1 problem:") && why.contains(part), "{text:?} should be told {part:?}, but was told:\n{why}");
        }
    }

    #[test]
    fn what_is_probably_not_meant_is_warned_of() {
        let cases = [
            ("[swarm]\nbootstrap = [\"/ip4/127.0.0.1/tcp/4817\"]", "an address of this access point itself"),
            (
                "[swarm]\nlisten = [\"/ip6/2001:db8::1/udp/4817/quic-v1\"]\nbootstrap = [\"/ip6/2001:db8::1/udp/4817/quic-v1\"]",
                "an address of this access point itself",
            ),
            (
                "[swarm]\nadvertise = [\"/dns4/a.ke/tcp/4817\"]\nbootstrap = [\"/dns4/a.ke/tcp/4817\"]",
                "an address of this access point itself",
            ),
            ("[scope]\ntlds = [\"ke\", \"ug\"]\n[crawl]\ndeny_hosts = [\"ke\"]", "both have \"ke\":"),
            ("[scope]\nhosts = [\"a.museum.ke\"]\n[crawl]\ndeny_hosts = [\"museum.ke\"]", "scope.hosts: \"a.museum.ke\":"),
            ("[scope]\nhosts = [\"museum.ke\"]\n[crawl]\ndeny_tlds = [\"ke\"]", "scope.hosts: \"museum.ke\":"),
            ("[scope]\nhosts = [\"192.0.2.1\"]\n[crawl]\ndeny_ranges = [\"192.0.2.0/24\"]", "scope.hosts: \"192.0.2.1\":"),
            (
                "[scope]\nranges = [\"192.0.2.0/24\"]\n[crawl]\ndeny_ranges = [\"192.0.2.0/25\", \"192.0.2.128/25\"]",
                "scope.ranges: \"192.0.2.0/24\":",
            ),
            ("[scope]\nasns = [64500]\n[crawl]\ndeny_asns = [64500]", "both have \"64500\":"),
            ("[crawl]\ndeny_ranges = [\"::/0\", \"0.0.0.0/0\"]", "denies every address"),
            ("[crawl]\ndeny_ranges = [\"128.0.0.0/1\", \"0.0.0.0/1\", \"10.0.0.0/8\"]", "denies every IPv4 address"),
            ("[fetch]\ntotal_timeout = \"5s\"", "before fetch.connect_timeout (\"10s\") can"),
            ("[fetch]\nmax_decoded_size = \"1MiB\"", "before fetch.max_body_size (\"8MiB\") can"),
            ("[log]\nmax_requests_bytes = \"1GiB\"\n[allowance]\ndisk = \"512MiB\"", "by allowance.disk (\"512MiB\")"),
        ];
        for (text, part) in cases {
            let warnings = parse(text).unwrap_or_else(|why| panic!("{text}: {why}")).in_vain();
            assert!(warnings.len() == 1 && warnings[0].contains(part), "{text:?} should be told {part:?}, but was told {warnings:?}");
        }
    }

    #[test]
    fn what_may_well_be_meant_is_not_warned_of() {
        let cases = [
            "",
            "[swarm]\nbootstrap = [\"/ip4/192.0.2.7/tcp/4817\", \"/ip4/127.0.0.1/tcp/4818\", \"/ip6/::1/tcp/4817\"]",
            "[scope]\nhosts = [\"museum.ke\"]\n[crawl]\ndeny_hosts = [\"a.museum.ke\", \"um.ke\"]",
            "[scope]\nranges = [\"192.0.2.0/24\"]\n[crawl]\ndeny_ranges = [\"192.0.2.0/25\", \"192.0.2.192/26\"]",
            "[crawl]\ndeny_ranges = [\"0.0.0.0/1\", \"192.0.0.0/2\"]",
            "[log]\nrequests = false\nmax_requests_bytes = \"1GiB\"\n[allowance]\ndisk = \"512MiB\"",
        ];
        for text in cases {
            assert_eq!(parse(text).unwrap().in_vain(), [""; 0], "{text}");
        }
    }
}
