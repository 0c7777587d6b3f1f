//! Tests that a swarm fetches everything once, politely, by one owner each, whatever happens to its members.

mod admissions;
mod chaos;
mod crowd;
mod delegation;
mod departures;
mod faults;
mod hosts;
mod limits;
mod moves;
mod opt_outs;
mod order;
mod parts;
mod peace;
mod runs;
mod surveys;
mod totals;
mod versions;

use crate::swarm::ledger::Purpose;
use crate::swarm::reference::{Truth, walk};
use crate::swarm::{World, WorldConfig};
use crate::web::table::{TableShape, TableWeb};
use nearcrawl_core::{
    crawl::{politeness::Politeness, scope::Scope, site::SiteRules},
    crawler::Settings,
    delegation::Policy,
    membership::{RosterConfig, SwimConfig},
    migration::judge::{MigrationSettings, Rule},
    routing::locator::MAX_LOOKUPS,
};
use nearcrawl_hierarchy::{Builder, FurtherPrefix, Hierarchy};
use nearcrawl_model::{
    fetch::ProbeKind,
    journal::JournalEntry,
    subnet::Subnet,
    summary::SwarmResults,
    time::{Millis, WallTime},
    url::PageUrl,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

const MIN_DELAY: Millis = 500;
const MINUTE: Millis = 60_000;

fn scope() -> Scope {
    Scope { tlds: ["test".to_owned()].into(), ..Scope::default() }
}

fn settings(depth: u8) -> Settings {
    Settings {
        rules: SiteRules { depth, price: Default::default(), pages_per_run: 0, product_token: "nearcrawl".to_owned() },
        scope: scope(),
        politeness: Politeness { min_delay: MIN_DELAY, factor: 10, parallel: 32, per_block: 4 },
        policy: Policy::Nearcrawl { price_us: 5_000 },
        // Where nothing else is said subnets stay where they are.
        migration: MigrationSettings { rule: Rule::None, ..MigrationSettings::default() },
        probe: ProbeKind::Tcp,
        home_port: None,
        max_parallel_rounds: 8,
        contacts_per_subnet: 15,
        ignore_orders_of: Default::default(),
        admission: Default::default(),
        max_lookups: MAX_LOOKUPS,
        revisit: 7 * 86_400_000,
        new_hosts: Default::default(),
        max_waiting: 1_000_000,
        // So few that every test has URLs waiting far back.
        max_in_memory: 8,
        max_kept_per_owner: 1 << 30,
        cache_entries: 4_096,
        own_addresses: Vec::new(),
        joins: false,
        founds: false,
        member: true,
        membership: SwimConfig::default(),
        roster: RosterConfig::default(),
    }
}

/// Two countries, a few organisations, a subnet for every /24 of the web and of the access points.
fn hierarchy(subnets: usize) -> Arc<Hierarchy> {
    let mut builder = Builder::new();
    let mut add = |prefix: String, organisation: String, country: &str| {
        let prefix: Subnet = prefix.parse().unwrap();
        builder.add_prefix(&FurtherPrefix { prefix, country: country.to_owned(), organisation, registry: "lab".to_owned() }).unwrap();
    };
    for subnet in 0..subnets {
        let country = if subnet % 2 == 0 { "KE" } else { "JP" };
        add(format!("20.0.{subnet}.0/24"), format!("holder {}", subnet % 7), country);
    }
    for ap in 0..8 {
        add(format!("30.0.{ap}.0/24"), format!("site {ap}"), if ap % 2 == 0 { "KE" } else { "JP" });
    }
    Arc::new(builder.finish().unwrap())
}

fn urls(texts: &[&str]) -> Vec<PageUrl> {
    texts.iter().map(|text| PageUrl::parse(text).unwrap()).collect()
}

/// A swarm of so many on a random web; all of them run and know each other.
fn swarm(seed: u64, places: &[u8], shape: &TableShape, settings: Settings) -> (World, Truth) {
    let web = TableWeb::random(shape, seed);
    let truth = walk(&web, &urls(&["http://s0.test/"]), &settings.scope, settings.rules.depth, "nearcrawl");
    let subnets = shape.hosts.div_ceil(shape.hosts_per_subnet);
    let config = WorldConfig { seed, settings, hierarchy: hierarchy(subnets), places: places.to_vec() };
    let mut world = World::new(config, web);
    for number in 0..places.len() {
        world.start(number);
        world.run(300);
    }
    (world, truth)
}

/// Everybody answers the same, nothing is unfinished, and the answer is exact.
fn agreed(world: &World) -> Option<SwarmResults> {
    let all: Vec<_> = world.running().into_iter().filter_map(|number| world.results(number)).collect();
    let first = all.first()?.clone();
    let same = all.iter().all(|results| results.exact && results.summary == first.summary);
    (same && first.summary.total.unfinished == 0 && first.summary.total.servers > 0).then_some(first)
}

/// Runs until everybody agrees that so many pages were fetched and nothing is left to do.
#[track_caller]
fn finish(world: &mut World, truth: &Truth, limit: Millis) -> SwarmResults {
    let whole = |world: &World| agreed(world).is_some_and(|results| results.summary.total.pages == truth.pages);
    if !world.run_until(limit, whole) {
        let fetched = world.ledger.fetches();
        let missing: Vec<_> = truth.asked.keys().filter(|url| !fetched.contains_key(url)).map(PageUrl::as_str).collect();
        for number in world.running() {
            let results = world.results(number).unwrap();
            let held = world.crawler(number).unwrap().view().held_back();
            eprintln!("{number}: {:?} {:?} {held:?}", results.summary.total, results.in_transition_text);
        }
        panic!("not done after {limit} ms: {} of {} missing: {missing:?}", missing.len(), truth.asked.len());
    }
    world.run(5_000);
    // A subnet may be on its way to another owner.
    assert!(world.run_until(MINUTE, whole), "still agreed a little later");
    agreed(world).expect("it has just been")
}

/// No two contacts with one address overlapped or came too soon, whichever member made them.
#[track_caller]
fn assert_polite(world: &World) {
    let close = world.ledger.too_close(MIN_DELAY, 10);
    assert!(close.is_empty(), "{} times too close, first: {:?}", close.len(), close[0]);
}

/// Exactly the pages of the truth were asked for, each once, but for those in `twice`, which may have been asked for twice.
#[track_caller]
fn assert_fetched(world: &World, truth: &Truth, twice: &BTreeSet<PageUrl>) {
    let fetched = world.ledger.fetches();
    let asked: BTreeSet<_> = fetched.keys().collect();
    let expected: BTreeSet<_> = truth.asked.keys().collect();
    assert_eq!(asked.difference(&expected).collect::<Vec<_>>(), Vec::<&&PageUrl>::new(), "asked for though it should not be");
    assert_eq!(expected.difference(&asked).collect::<Vec<_>>(), Vec::<&&PageUrl>::new(), "never asked for");
    let often: BTreeMap<_, _> = fetched.iter().filter(|(url, count)| **count > if twice.contains(url) { 2 } else { 1 }).collect();
    assert!(often.is_empty(), "asked for too often: {often:?}");
}

/// The totals are those of the truth, without the requests, which may be more after a crash.
#[track_caller]
fn assert_totals(results: &SwarmResults, truth: &Truth) {
    let total = &results.summary.total;
    assert_eq!(
        (total.servers, total.pages, total.cut_by_depth, total.unfinished),
        (truth.hosts.len() as u64, truth.pages, truth.cut, 0),
        "servers, pages, cut by depth, unfinished"
    );
}

/// The subnets in which anything is.
fn subnets(world: &World) -> BTreeSet<Subnet> {
    world.web.addresses.values().map(|address| world.config.hierarchy.subnet_of(*address)).collect()
}

/// All who run agree on one owner of each subnet, and that owner runs.
#[track_caller]
fn assert_one_owner_each(world: &World) {
    let running: BTreeSet<_> = world.running().into_iter().map(|number| Some(world.member(number))).collect();
    for subnet in subnets(world) {
        let owners = world.owners_of(&subnet);
        assert_eq!(owners.len(), 1, "{subnet} by whom one asks: {owners:?}");
        assert!(owners.is_subset(&running), "{subnet} is held by a member that does not run, or by none: {owners:?}");
    }
}

/// The visits that this access point has on disk, with their times.
fn visited(world: &World, number: usize) -> BTreeSet<(PageUrl, WallTime)> {
    let disk = world.disk(number).unwrap();
    let filed: BTreeSet<_> = disk.journals.keys().map(|key| key.subnet).collect();
    let entries = filed.into_iter().flat_map(|subnet| disk.load(&subnet)).flat_map(|(_, entries)| entries);
    let visits = entries.filter_map(|entry| match entry {
        JournalEntry::Visited { url, at, outcome, .. } if !matches!(outcome, nearcrawl_model::journal::VisitOutcome::Failed(_)) => {
            Some((url, at))
        }
        _ => None,
    });
    visits.collect()
}

/// Pages whose visit stands in this access point's journal and in another's too: recorded.
fn recorded(world: &World, number: usize) -> BTreeSet<PageUrl> {
    let others: BTreeSet<_> =
        world.running().into_iter().filter(|other| *other != number).flat_map(|other| visited(world, other)).collect();
    visited(world, number).into_iter().filter(|visit| others.contains(visit)).map(|(url, _)| url).collect()
}

/// A few seeds, or those that are asked for: `NEARCRAWL_SEEDS=10..200`.
fn seeds(few: u64) -> std::ops::Range<u64> {
    let asked = std::env::var("NEARCRAWL_SEEDS").ok();
    let range = asked.as_deref().and_then(|text| text.split_once("..")).and_then(|(a, b)| Some(a.parse().ok()?..b.parse().ok()?));
    range.unwrap_or(1..1 + few)
}
