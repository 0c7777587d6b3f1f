//! The checks of `doctor`, one function each.

use super::{
    admission::admission,
    finding::{Finding, State},
    reachability, service,
};
use crate::{
    cli::{
        client::{ApiArgs, ApiClient},
        run::little_memory,
    },
    io::{
        machine, sockets,
        swarm::{Carrier, Reader, listen_address},
    },
    node::{NodeError, StartChecks, allowance::memory_limit, allowance::metered_line, clock, config::Config},
};
use nearcrawl_model::{
    url::Host,
    view::{StatusView, counted},
};
use serde::de::DeserializeOwned;
use std::{path::Path, time::Duration};

/// Less free disk than this is soon full.
const ENOUGH_DISK: u64 = 2 << 30;

/// Files and connections that a daemon has open besides those of its limits.
const OTHER_FILES: u64 = 512;

/// How long a member may take to answer, connecting included.
const MEMBER_TIMEOUT: Duration = Duration::from_secs(15);

/// What the daemon will do, in sentences.
pub(super) fn intent(config: &Config) -> Vec<String> {
    let (crawl, scope) = (&config.crawl, &config.scope);
    let hosts = match (scope.open, scope.tlds.is_empty(), scope.hosts.is_empty()) {
        (true, ..) => "every host that links lead to".to_owned(),
        (false, true, true) => "only the hosts of starting URLs and of surveys".to_owned(),
        _ => {
            let tlds = scope.tlds.iter().map(|tld| format!(".{tld}"));
            let all: Vec<_> = tlds.chain(scope.hosts.iter().map(ToString::to_string)).collect();
            format!("starting URLs, and hosts in {}", all.join(", "))
        }
    };
    let swarm = if config.swarm.bootstrap.is_empty() {
        "begin a swarm of its own, or go on in the one that it was in".to_owned()
    } else {
        format!("join through {}", config.swarm.bootstrap.join(" or "))
    };
    vec![
        format!("It will crawl {hosts}, {} levels deep.", crawl.depth),
        format!(
            "It asks at most {} at once, each for one page at a time, and lets it rest for {} s or {} times as long as its answer took.",
            counted(u64::from(config.max_parallel()), "server"),
            config.pace().min_delay_ms as f64 / 1000.0,
            crawl.delay_factor
        ),
        format!("Servers see it as: {}", config.user_agent()),
        format!("It will {swarm}, and wait for others at {}.", config.swarm.listen.join(", ")),
        format!("All that it keeps is in {}.", config.state_dir.display()),
    ]
}

/// Everything that is looked at.
pub(super) async fn all(config: &Config) -> Vec<Finding> {
    let (status, checked) = (told_by_daemon::<StatusView>(config, "/api/status").await, StartChecks::of(config));
    let mut findings = started(config, &checked);
    findings.push(contact(config));
    let checked = checked.ok();
    let known = if status.is_some() { told_by_daemon(config, "/api/admission").await } else { None };
    findings.push(admission(config, checked.as_ref(), known.as_ref(), clock::now().wall));
    findings.push(status.as_ref().map_or_else(
        || {
            Finding::new("daemon", State::NotChecked, "no daemon answers on this machine")
                .remedy("nearcrawl run starts one")
                .by("api.listen")
        },
        running,
    ));
    let mut is_free = true;
    if status.is_none() {
        let ports = ports(config);
        is_free = ports.iter().all(|port| port.state == State::Good);
        findings.extend(ports);
    }
    findings.push(disk(&config.state_dir));
    findings.push(dns(config).await);
    findings.extend(service::name_servers(config));
    findings.push(wall_clock(checked.as_ref()));
    for member in &config.swarm.bootstrap {
        findings.push(asked(config, checked.as_ref(), status.as_ref(), member).await);
    }
    findings.extend(match &status {
        Some(status) => reachability::told(config, &status.reachability),
        None => reachability::tried(config, checked.as_ref(), is_free).await,
    });
    findings.extend([files(config), memory(config), line(config), hierarchy(checked.as_ref())]);
    findings
}

/// Whether `run` would start, with a finding for each reason if not; and what `check` warns of.
fn started(config: &Config, checked: &Result<StartChecks, NodeError>) -> Vec<Finding> {
    let warnings = match checked {
        Ok(checked) => checked.warnings(config),
        Err(why) => {
            let failed = |why: &NodeError| {
                Finding::new("configuration", State::Failed, why.to_string()).remedy("nearcrawl check lists all mistakes")
            };
            return why.each().iter().map(failed).collect();
        }
    };
    vec![match warnings.first() {
        None => Finding::good("configuration", "no mistakes"),
        Some(warning) => Finding::new("configuration", State::Warning, warning).remedy("nearcrawl check lists all warnings"),
    }]
}

/// Whether site owners can reach the operator.
fn contact(config: &Config) -> Finding {
    match &config.contact {
        Some(contact) => Finding::good("contact", format!("site owners can reach you at {contact}")).by("contact"),
        None => Finding::new("contact", State::Warning, "there is none: only private addresses can be crawled")
            .by("contact")
            .remedy("set it to your email address or web page"),
    }
}

/// What the daemon that runs says of itself; none if there is none.
async fn told_by_daemon<T: DeserializeOwned>(config: &Config, route: &str) -> Option<T> {
    let api = ApiClient::new(&ApiArgs { api: Some(format!("http://{}", config.api.listen?)), json: false }).ok()?;
    api.get(route, &[]).await.ok()
}

/// The same in a sentence.
fn running(status: &StatusView) -> Finding {
    let found = format!("running, version {}: {}", status.version, status.state_text);
    match &status.connection_errors_text {
        Some(why) => Finding::new("daemon", State::Warning, if found.contains(why) { found } else { format!("{found}; {why}") })
            .by("swarm.bootstrap")
            .remedy("nearcrawl members and nearcrawl status there say who is reached"),
        None => Finding::good("daemon", found),
    }
}

/// Whether the ports that it waits at are free.
fn ports(config: &Config) -> Vec<Finding> {
    let swarm = config.swarm.listen.iter().filter_map(|listen| Some((listen_address(listen).ok()?, "swarm.listen")));
    let api = config.api.listen.map(|listen| ((listen, Carrier::Tcp), "api.listen"));
    let is_free = |address, carrier| match carrier {
        Carrier::Tcp => sockets::is_free(address),
        Carrier::Udp => sockets::is_free_by_udp(address),
    };
    let look = |((address, carrier), key)| match is_free(address, carrier) {
        Ok(()) => Finding::good("port", format!("{address} ({}) is free", in_words(carrier))).by(key),
        Err(why) => {
            let remedy = match why.kind() {
                std::io::ErrorKind::AddrInUse => "end the program that holds it (ss -ltunp shows which), or choose another port",
                std::io::ErrorKind::AddrNotAvailable => {
                    "name an address of this machine, or 0.0.0.0; that of a router belongs into swarm.advertise"
                }
                _ => "choose a port from 1024 on",
            };
            Finding::new("port", State::Failed, format!("{address} ({}): {why}", in_words(carrier))).by(key).remedy(remedy)
        }
    };
    swarm.chain(api).map(look).collect()
}

fn in_words(carrier: Carrier) -> &'static str {
    match carrier {
        Carrier::Tcp => "TCP",
        Carrier::Udp => "UDP",
    }
}

/// How much room there is. Whether the directory can be written to is among the checks of a start.
fn disk(directory: &Path) -> Finding {
    // A relative path ends with an empty one, which means here.
    let places = directory.ancestors().map(|at| if at.as_os_str().is_empty() { Path::new(".") } else { at });
    let existing = places.into_iter().find(|at| at.is_dir()).unwrap_or(Path::new("/"));
    match machine::free_bytes(existing) {
        Err(why) => Finding::new("disk", State::NotChecked, format!("{}: {why}", existing.display())).by("state_dir"),
        Ok(free) => {
            let found = format!("{:.1} GiB free for {}", free as f64 / (1u64 << 30) as f64, directory.display());
            let state = if free < ENOUGH_DISK { State::Warning } else { State::Good };
            let finding = Finding::new("disk", state, found).by("state_dir");
            if state == State::Good { finding } else { finding.remedy("make room, or name a directory on another disk") }
        }
    }
}

/// Whether names can be looked up.
async fn dns(config: &Config) -> Finding {
    let of_member = |address: &String| {
        let mut parts = address.split('/').skip_while(|part| !part.starts_with("dns")).skip(1);
        parts.next().and_then(|name| name.parse::<Host>().ok())
    };
    let of_source = || config.hierarchy.sources.iter().find_map(|source| source.url.host_str()?.parse().ok());
    let Some(host) = config.swarm.bootstrap.iter().find_map(of_member).or_else(of_source) else {
        return Finding::new("DNS", State::NotChecked, "the configuration has no name that could be looked up").by("dns.servers");
    };
    let resolver = match StartChecks::resolver(config) {
        Ok(resolver) => resolver,
        Err(why) => return Finding::new("DNS", State::Failed, why.to_string()).by("dns.servers").remedy("name servers that answer here"),
    };
    match resolver.resolve(&host, None).await {
        Ok(located) => Finding::good("DNS", format!("{host} is at {}", located.address)).by("dns.servers"),
        Err(why) if why.is_transient() => Finding::new("DNS", State::Failed, format!("{host}: {why}"))
            .by("dns.servers")
            .remedy("name servers that answer here, or mend /etc/resolv.conf and the way to them"),
        Err(why) => Finding::good("DNS", format!("the name servers answer; of {host}: {why}")).by("dns.servers"),
    }
}

/// Whether the wall clock can be right: records are dated by it.
fn wall_clock(checked: Option<&StartChecks>) -> Finding {
    let today = today();
    let built = checked.and_then(StartChecks::hierarchy_day);
    if built.is_some_and(|built| today < built) {
        let behind = built.map_or(0, |built| built - today);
        return Finding::new("clock", State::Failed, format!("it is {behind} days behind the data that came with the program"))
            .remedy("set the clock, and have it kept (timedatectl set-ntp true)");
    }
    match machine::clock_is_kept() {
        Some(true) => Finding::good("clock", "kept right by the system"),
        Some(false) => Finding::new("clock", State::Warning, "nothing keeps it right: records may be dated wrongly")
            .remedy("have it kept (timedatectl set-ntp true)"),
        None => Finding::new("clock", State::NotChecked, "the system does not say whether it is kept right"),
    }
}

/// Days since 1970, by the wall clock.
fn today() -> i64 {
    i64::try_from(clock::now().wall.0 / 86_400_000).unwrap_or(i64::MAX)
}

/// Whether a member to join through answers, and if not, why.
async fn asked(config: &Config, checked: Option<&StartChecks>, status: Option<&StatusView>, member: &str) -> Finding {
    let key = checked.and_then(StartChecks::pre_shared_key);
    if checked.is_none() && config.swarm.pre_shared_key_file.is_some() {
        let found = format!("{member} is asked when the configuration has no mistakes: the pre-shared key is read with it");
        return Finding::new("member", State::NotChecked, found).by("swarm.bootstrap");
    }
    // The daemon that runs knows more than a program that is no member: whether it was let in.
    let refused = status.and_then(|status| status.connection_errors_text.as_ref()).filter(|why| why.contains("refuses this access point"));
    let reader = reachability::reader(config, key);
    match Reader::connect(&reader, member, MEMBER_TIMEOUT).await {
        Ok(_) if refused.is_some() => {
            let found = format!("{member} answers, but this access point is not let in: {}", refused.map_or("", String::as_str));
            Finding::new("member", State::Failed, found)
                .by("admission.mode")
                .remedy("ask its operator for an invitation (nearcrawl swarm join)")
        }
        Ok(_) if status.is_none() => {
            let found = format!("{member} answers; whether it lets this access point in is seen when the daemon runs");
            Finding::good("member", found).by("swarm.bootstrap")
        }
        Ok(_) => Finding::good("member", format!("{member} answers")).by("swarm.bootstrap"),
        Err(why) => Finding::new("member", State::Failed, format!("{member}: {why}"))
            .by("swarm.bootstrap")
            .remedy("ask its operator for an address of `nearcrawl status` there"),
    }
}

/// Whether enough files and connections may be open.
fn files(config: &Config) -> Finding {
    let needed = u64::from(config.crawl.max_parallel) * 2 + u64::from(config.swarm.max_connected) * 2 + OTHER_FILES;
    match machine::open_files() {
        Some(limit) if limit < needed => {
            let found = format!("{limit} files and connections may be open, and {needed} may be needed");
            Finding::new("open files", State::Warning, found).remedy("raise the limit (ulimit -n, or LimitNOFILE of the service)")
        }
        Some(limit) => Finding::good("open files", format!("{limit} may be open, {needed} may be needed")),
        None => Finding::new("open files", State::NotChecked, "the system does not tell its limit"),
    }
}

fn memory(config: &Config) -> Finding {
    match (little_memory(config), memory_limit::effective(config.allowance.memory)) {
        (Some(warning), _) => Finding::new("memory", State::Warning, warning),
        (None, Some(limit)) => Finding::good("memory", format!("the daemon may use {} MiB", limit >> 20)),
        (None, None) => Finding::good("memory", "neither the system nor allowance.memory sets a limit"),
    }
}

/// Whether the bytes of the line cost money.
fn line(config: &Config) -> Finding {
    const KEY: &str = "allowance.metered_interfaces";
    let (interfaces, metered) = metered_line::present(&config.allowance.metered_interfaces);
    match (metered, interfaces.is_empty()) {
        (Some(interface), _) => Finding::new("line", State::Warning, metered_line::sentence(&interface))
            .by(KEY)
            .remedy("connect by another interface, or take this one off the list"),
        (None, true) => Finding::new("line", State::NotChecked, "there is no default route").by(KEY),
        (None, false) => Finding::good("line", format!("not metered: the default route goes over {}", interfaces.join(" and "))).by(KEY),
    }
}

/// How old the registries' data is.
fn hierarchy(checked: Option<&StartChecks>) -> Finding {
    const KEY: &str = "hierarchy.snapshot";
    let Some(checked) = checked else {
        return Finding::new("hierarchy", State::NotChecked, "it is read when the configuration has no mistakes").by(KEY);
    };
    let Some(age) = checked.hierarchy_age(clock::now().wall) else {
        return Finding::new("hierarchy", State::NotChecked, "its sources have no date").by(KEY);
    };
    let found = age.to_string();
    if age.is_old() {
        Finding::new("hierarchy", State::Warning, found).by(KEY).remedy("nearcrawl hierarchy renew, or enable nearcrawl-hierarchy.timer")
    } else {
        Finding::good("hierarchy", found).by(KEY)
    }
}
