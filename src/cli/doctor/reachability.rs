//! Checks whether others reach a daemon here.
//!
//! It tells what its members found out by connecting to it; or, where none runs, what a member finds that is asked to.

use super::finding::{Finding, State};
use crate::{
    io::{
        machine,
        swarm::{OutsideError, ReaderConfig, SeenFrom, listen_address, seen_from},
    },
    node::{StartChecks, config::Config},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    view::{ReachState, ReachabilityView, counted},
};
use std::{collections::BTreeSet, net::IpAddr, time::Duration};

const CHECK: &str = "reachability";

/// How long a member may take to connect to here, being asked included.
const DIAL_BACK_TIMEOUT: Duration = Duration::from_secs(20);

/// Members that are asked, one after another, until one has tried.
const MAX_ASKED: usize = 3;

/// What helps who is not reached.
fn forward(config: &Config) -> String {
    let port = config.swarm.listen.iter().find_map(|listen| listen_address(listen).ok()).map_or(4817, |(address, _)| address.port());
    format!(
        "let TCP and UDP port {port} in: in the firewall of this machine, and in the router, which must forward it here; if the router uses another \
         port outside, name that as swarm.advertise, like /ip4/ADDRESS/tcp/PORT"
    )
}

/// How members are asked: as the daemon connects.
pub(super) fn reader(config: &Config, pre_shared_key: Option<[u8; 32]>) -> ReaderConfig {
    ReaderConfig { source_address: config.crawl.source_address, pre_shared_key, name_servers: config.dns.servers.clone() }
}

/// Members, by the ends of their ids.
fn names<'a>(members: impl IntoIterator<Item = &'a AccessPoint>) -> String {
    let names: Vec<_> = members.into_iter().map(|member| format!("…{}", member.short())).collect();
    names.join(", ")
}

/// What the members of a daemon that runs have found out.
pub(super) fn told(config: &Config, how: &ReachabilityView) -> Vec<Finding> {
    if !config.swarm.advertise.is_empty() {
        return vec![advertised(config)];
    }
    let mut findings = Vec::new();
    match how.state {
        ReachState::Public => {
            findings.extend(how.confirmed.iter().map(|at| {
                let by = match at.confirmed_by.as_slice() {
                    [] => "members".to_owned(),
                    members => names(members),
                };
                Finding::good(CHECK, format!("reached from outside at {}: {by} connected to it", at.address)).by("swarm.listen")
            }));
            if findings.is_empty() {
                findings.push(Finding::good(CHECK, &how.state_text).by("swarm.listen"));
            }
        }
        ReachState::BehindNat => {
            let seen = if how.own_addresses.is_empty() {
                String::new()
            } else {
                let seen: Vec<_> = how.own_addresses.iter().map(ToString::to_string).collect();
                format!("members see it at {} and do not reach it there; ", seen.join(" and "))
            };
            let relayed = if how.relays.is_empty() {
                "no member relays to it: it can only connect to others".to_owned()
            } else {
                format!("others reach it through {}", names(&how.relays))
            };
            findings.push(Finding::new(CHECK, State::Warning, format!("{seen}{relayed}")).by("swarm.listen").remedy(forward(config)));
            findings.push(nat(how));
        }
        ReachState::Unknown => findings.push(
            Finding::new(CHECK, State::NotChecked, "no member has tried yet whether it reaches the daemon from outside")
                .by("swarm.bootstrap")
                .remedy("wait a minute; nearcrawl members says who is connected"),
        ),
    }
    findings
}

/// Which kind of router is in between, as far as looking for direct ways has shown.
fn nat(how: &ReachabilityView) -> Finding {
    let found = |count: u64| counted(count, "direct way");
    let relayed = counted(how.members_relayed.len(), "member");
    match (how.holes_found, how.holes_not_found) {
        (0, 0) => Finding::new("NAT", State::NotChecked, "no direct way to another member behind a router was looked for yet"),
        (0, failed) => Finding::new(
            "NAT",
            State::Warning,
            format!("the router uses another port for each connection, or lets no UDP out: {failed} attempts at a direct way failed"),
        )
        .remedy(
            "let UDP out, and have the router keep the port (endpoint-independent mapping, \"full cone\"); forwarding a port spares both",
        ),
        (some, failed) => Finding::good(
            "NAT",
            format!("the router keeps the port of a connection: {} found, {failed} not; {relayed} only through others", found(some)),
        ),
    }
    .by("nat.relay")
}

fn advertised(config: &Config) -> Finding {
    let found = format!("others are told {}, which is believed without a test", config.swarm.advertise.join(", "));
    Finding::new(CHECK, State::NotChecked, found).by("swarm.advertise").remedy("without swarm.advertise members find out by themselves")
}

/// Where no daemon runs: a member is asked to connect to here, where this program listens for that moment.
pub(super) async fn tried(config: &Config, checked: Option<&StartChecks>, is_free: bool) -> Vec<Finding> {
    if config.swarm.listen.is_empty() {
        return vec![Finding::new(CHECK, State::Warning, "it listens nowhere: it can only connect to others").by("swarm.listen")];
    }
    if !config.swarm.advertise.is_empty() {
        return vec![advertised(config)];
    }
    if config.swarm.bootstrap.is_empty() || checked.is_none() || !is_free {
        let found = match (is_free, checked) {
            (false, _) => "its ports are not free here, so that no member can try",
            (true, None) => "a member is asked when the configuration has no mistakes",
            (true, Some(_)) => "there is no member to ask",
        };
        let finding = Finding::new(CHECK, State::NotChecked, format!("{found}; {}", guess())).by("swarm.bootstrap");
        return vec![finding.remedy("name a member to ask: --bootstrap, or swarm.bootstrap")];
    }
    let reader = reader(config, checked.and_then(StartChecks::pre_shared_key));
    let mut last = None;
    for member in config.swarm.bootstrap.iter().take(MAX_ASKED) {
        match seen_from(&reader, member, &config.swarm.listen, DIAL_BACK_TIMEOUT).await {
            Ok(found) if found.seen.is_some() => return outcome(config, &found),
            Ok(_) => last = Some(format!("{member} does not try for programs that are no members, or tries for too many at the moment")),
            Err(OutsideError::Listen(why)) => last = Some(why.to_string()),
            Err(OutsideError::Ask(why)) => last = Some(format!("{member}: {why}")),
        }
    }
    let found = format!("{}; {}", last.unwrap_or_default(), guess());
    vec![
        Finding::new(CHECK, State::NotChecked, found)
            .by("swarm.bootstrap")
            .remedy("ask again later, or start the daemon: its members try, too"),
    ]
}

/// What a member that tried has found.
fn outcome(config: &Config, found: &SeenFrom) -> Vec<Finding> {
    let member = found.member.map_or_else(|| "the member".to_owned(), |member| format!("…{}", member.short()));
    let seen = found.seen.map_or_else(String::new, |seen| seen.to_string());
    let reached: BTreeSet<bool> = found.tried.iter().map(|(_, reached)| *reached).collect();
    let one = |(address, is_reached): &(String, bool)| {
        if *is_reached {
            return Finding::good(CHECK, format!("{member} reached {address} from outside")).by("swarm.listen");
        }
        let found = format!("{member} sees this machine at {seen} and did not reach {address}");
        // One way in is enough; both are better.
        let remedy = if reached.contains(&true) {
            "TCP and UDP are let in apart: let the other one in, too".to_owned()
        } else if is_here(&seen) {
            format!(
                "{member} is in the same network and may connect to none of its addresses: ask a member outside; else {}",
                forward(config)
            )
        } else {
            forward(config)
        };
        Finding::new(CHECK, State::Warning, found).by("swarm.listen").remedy(remedy)
    };
    found.tried.iter().map(one).collect()
}

/// Whether an address is one of a network inside.
fn is_here(seen: &str) -> bool {
    let seen = seen.parse::<IpAddr>();
    matches!(seen, Ok(IpAddr::V4(seen)) if seen.is_private() || seen.is_loopback() || seen.is_link_local())
}

/// What this machine's own address says about it.
fn guess() -> String {
    match machine::own_address() {
        Some(IpAddr::V4(own)) if own.is_private() || own.is_link_local() => format!(
            "this machine's address {own} is a private one: unless a router forwards a port, others reach it through members that relay"
        ),
        Some(own) => format!("this machine's address is {own}"),
        None => "this machine has no way to the Internet by IPv4".to_owned(),
    }
}
