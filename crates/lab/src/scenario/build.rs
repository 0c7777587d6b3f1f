//! The swarm and the web of a scenario, made from its seed.

use super::{
    file::{Action, Latency, Rule, Scenario},
    latency::{Equal, Matrix},
};
use crate::{
    rng::KeyedRng,
    swarm::{Played, World, WorldConfig, own_address},
    web::table::TableWeb,
};
use nearcrawl_core::{
    crawl::{politeness::Politeness, scope::Scope, site::SiteRules},
    crawler::Settings,
    delegation::Policy,
    membership::{LeftOut, RosterConfig, SwimConfig},
    migration::judge::MigrationSettings,
    routing::locator::MAX_LOOKUPS,
};
use nearcrawl_hierarchy::{Builder, FurtherPrefix, Hierarchy};
use nearcrawl_model::{fetch::ProbeKind, time::Millis, url::PageUrl};
use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

/// The quiet time at the end, in minutes.
pub(super) const QUIET: Millis = 20;

/// How long the servers ask to be left alone between two requests, in seconds: so that a few pages last for the whole scenario. In long
/// ones they ask for more, at most for what a crawler accepts.
const CRAWL_DELAY: Millis = 10;
const MAX_CRAWL_DELAY: Millis = 240;

/// The daemon's pauses.
pub(super) const MIN_DELAY: Millis = 2_000;
pub(super) const DELAY_FACTOR: u64 = 10;

/// Pages of all hosts together, at most, and of one host.
const MAX_PAGES: u64 = 4_000_000;
const MAX_HOST_PAGES: u64 = 360;

/// The address of the first subnet, and of the first one that only fills the ownership map.
const SUBNETS: u32 = 0x1400_0000;
pub(super) const FILLERS: u32 = 0x2800_0000;

/// The purposes of random numbers.
pub(super) const PLACE: u64 = 1;
const HOLDER: u64 = 2;
const COUNTRY: u64 = 3;
const LINK: u64 = 4;

const COUNTRIES: [&str; 6] = ["KE", "JP", "DE", "BR", "US", "IN"];

/// The address of a host in a subnet.
pub(super) fn address_in(subnet: u32, place: u32) -> IpAddr {
    IpAddr::from(Ipv4Addr::from(SUBNETS + (subnet << 8) + 1 + place % 250))
}

/// How many members there will ever be.
fn members_ever(scenario: &Scenario) -> u32 {
    let joined = |action: &Action| if let Action::Join { count, .. } = action { *count } else { 0 };
    scenario.members + scenario.steps.iter().map(|step| joined(&step.action)).sum::<u32>()
}

/// Where a member stands.
pub(super) fn place_of(seed: u64, number: u32) -> u8 {
    KeyedRng::new(seed).of(PLACE).of(number.into()).below(101) as u8
}

/// The starting points.
pub(super) fn seeds(scenario: &Scenario) -> Vec<PageUrl> {
    let count = (scenario.hosts / 8).max(3).min(scenario.hosts);
    let host = |number: u32| u64::from(number) * u64::from(scenario.hosts) / u64::from(count);
    (0..count).filter_map(|number| PageUrl::parse(&format!("http://s{}.test/", host(number))).ok()).collect()
}

/// A world in which nobody runs yet.
pub(super) fn world(scenario: &Scenario, seed: u64, matrix: Option<Matrix>) -> Played {
    let config = WorldConfig {
        seed,
        settings: settings(scenario),
        hierarchy: hierarchy(scenario, seed),
        places: (0..scenario.members).map(|number| place_of(seed, number)).collect(),
    };
    let mut world = World::new(config, web(scenario, seed));
    world.reading = 20;
    world.latencies = match (&scenario.latency, matrix) {
        (Latency::Spread, _) | (Latency::Matrix { .. }, None) => None,
        (Latency::Equal, _) => Some(Box::new(Equal)),
        (Latency::Matrix { .. }, Some(matrix)) => Some(Box::new(matrix)),
    };
    world.records = Some(Box::default());
    let mut played = Played::new(world);
    played.keep_no_copies(scenario.rule == Rule::NoReplicas);
    played
}

/// How long a run takes at least until the next one begins: two runs fit into a scenario with its quiet time.
fn revisit(scenario: &Scenario) -> Millis {
    (Millis::from(scenario.minutes) + QUIET) * 30_000 + 60_000
}

fn settings(scenario: &Scenario) -> Settings {
    Settings {
        rules: SiteRules { depth: 8, price: Default::default(), pages_per_run: 0, product_token: "nearcrawl".to_owned() },
        scope: Scope { tlds: ["test".to_owned()].into(), ..Scope::default() },
        politeness: Politeness { min_delay: MIN_DELAY, factor: DELAY_FACTOR, parallel: 64, per_block: 4 },
        policy: Policy::Nearcrawl { price_us: 5_000 },
        migration: MigrationSettings::default(),
        probe: ProbeKind::Tcp,
        home_port: None,
        max_parallel_rounds: 8,
        contacts_per_subnet: 15,
        ignore_orders_of: Default::default(),
        admission: Default::default(),
        max_lookups: MAX_LOOKUPS,
        revisit: revisit(scenario),
        new_hosts: Default::default(),
        max_waiting: 1_000_000,
        max_in_memory: 1_000,
        max_kept_per_owner: 1 << 30,
        cache_entries: 6_400,
        own_addresses: Vec::new(),
        joins: false,
        founds: false,
        member: true,
        membership: SwimConfig { believes_names: scenario.rule == Rule::NoHello, ..SwimConfig::default() },
        roster: RosterConfig { without: left_out(scenario.rule), ..RosterConfig::default() },
    }
}

fn left_out(rule: Rule) -> Option<LeftOut> {
    match rule {
        Rule::NoLease => Some(LeftOut::Lease),
        Rule::NoCouncil => Some(LeftOut::Quorum),
        Rule::Default | Rule::NoReplicas | Rule::NoHello => None,
    }
}

/// How long a run takes, in seconds: as long as lets two of them end within the scenario and its quiet time.
fn run_takes(scenario: &Scenario) -> Millis {
    (Millis::from(scenario.minutes) + QUIET) * 30 - 7 * 60
}

/// How long the servers ask to be left alone, in seconds.
pub(super) fn crawl_delay(scenario: &Scenario) -> Millis {
    (run_takes(scenario) / MAX_HOST_PAGES).clamp(CRAWL_DELAY, MAX_CRAWL_DELAY)
}

/// Hosts spread evenly over the subnets. All their pages are reached from the root within a few links; each links to its neighbour and to
/// some others.
fn web(scenario: &Scenario, seed: u64) -> TableWeb {
    let (hosts, rng) = (scenario.hosts, KeyedRng::new(seed).of(LINK));
    let delay = crawl_delay(scenario);
    let pages = (run_takes(scenario) / delay).min(MAX_HOST_PAGES).min(MAX_PAGES / u64::from(hosts)).max(4);
    let url = |host: u64, page: u64| match page {
        0 => format!("http://s{host}.test/"),
        _ => format!("http://s{host}.test/p{page}"),
    };
    let mut web = TableWeb::default();
    for host in 0..hosts {
        let name = format!("s{host}.test");
        web.live(&name, &address_in(host % scenario.subnets, host / scenario.subnets).to_string());
        if let Ok(name) = name.parse() {
            web.robots.insert(name, format!("User-agent: *\nCrawl-delay: {delay}\n"));
        }
        for page in 0..pages {
            let draw = rng.of(host.into()).of(page);
            let mut links: Vec<_> =
                (6 * page + 1..6 * page + 7).filter(|child| *child < pages).map(|child| url(host.into(), child)).collect();
            links.push(url(host.into(), draw.of(0).below(pages)));
            if page == 0 {
                links.push(url(u64::from((host + 1) % hosts), 0));
            }
            if draw.of(1).chance(0.1) {
                links.push(url(draw.of(2).below(hosts.into()), draw.of(3).below(pages)));
            }
            let links: Vec<_> = links.iter().map(String::as_str).collect();
            web.page(&url(host.into(), page), &links);
        }
    }
    web
}

/// A /24 for each subnet and each member, within larger prefixes of organisations, within those of countries.
fn hierarchy(scenario: &Scenario, seed: u64) -> Arc<Hierarchy> {
    let rng = KeyedRng::new(seed);
    let mut builder = Builder::new();
    let mut add = |first: u32, length: u8, organisation: String, country: &str| {
        let Ok(prefix) = format!("{}/{length}", Ipv4Addr::from(first)).parse() else { return };
        let further = FurtherPrefix { prefix, country: country.to_owned(), organisation, registry: "lab".to_owned() };
        // Prefixes of this kind are never refused.
        let _ = builder.add_prefix(&further);
    };
    let country = |block: u32| COUNTRIES[rng.of(COUNTRY).of(block.into()).below(COUNTRIES.len() as u64) as usize];
    let holders = u64::from(scenario.subnets).div_ceil(4).max(1);
    // One more, to which hosts can move where there is only one.
    for subnet in 0..=scenario.subnets {
        let first = SUBNETS + (subnet << 8);
        if subnet.is_multiple_of(64) {
            add(first, 18, format!("registry of {}", country(subnet / 64)), country(subnet / 64));
        }
        if subnet.is_multiple_of(8) {
            add(first, 21, format!("provider {}", subnet / 8), country(subnet / 64));
        }
        let holder = rng.of(HOLDER).of(subnet.into()).below(holders);
        add(first, 24, format!("holder {holder}"), country(subnet / 64));
    }
    for member in 0..members_ever(scenario) {
        let IpAddr::V4(address) = own_address(member as usize) else { continue };
        add(u32::from(address) & !0xff, 24, format!("site {member}"), country(member));
    }
    match builder.finish() {
        Ok(hierarchy) => Arc::new(hierarchy),
        Err(why) => unreachable!("a hierarchy of distinct prefixes is whole: {why}"),
    }
}
