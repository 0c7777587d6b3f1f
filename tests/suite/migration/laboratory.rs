//! Expectations of the laboratory for the same crawl.
//!
//! It makes the same decisions in a simulated swarm, with the same servers, round-trip times and changes of them.

use super::{ACCESS_REQUESTS, PAGES, REST_MS, Shifting};
use nearcrawl_core::{
    crawl::{politeness::Politeness, scope::Scope, site::SiteRules},
    crawler::Settings,
    delegation::Policy,
    membership::{RosterConfig, SwimConfig},
    migration::judge::{MigrationSettings, Rule},
    routing::locator::MAX_LOOKUPS,
};
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_lab::swarm::ledger::Purpose;
use nearcrawl_lab::swarm::{Latencies, World, WorldConfig};
use nearcrawl_lab::web::Answer;
use nearcrawl_lab::web::table::TableWeb;
use nearcrawl_model::{
    fetch::ProbeKind,
    time::{Millis, Moment},
    url::PageUrl,
};
use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// What a page takes on average, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// When all servers had found their first owners.
    pub settled: f64,
    /// In the end.
    pub recovered: f64,
}

struct TheirLatencies {
    world: Arc<Shifting>,
    shifted: Arc<AtomicBool>,
}

impl Latencies for TheirLatencies {
    fn to_server(&self, from: usize, address: IpAddr) -> u32 {
        let IpAddr::V4(server) = address else { return 0 };
        let ms = self.world.ms(server, self.world.places.points[from].address, self.shifted.load(Ordering::Relaxed));
        (ms.unwrap_or(0.0) * 1000.0) as u32
    }

    fn between(&self, one: usize, other: usize) -> u32 {
        let points = &self.world.places.points;
        (self.world.places.ms(points[one].address, points[other].address).unwrap_or(0.0) * 1000.0) as u32
    }
}

fn settings(rule: Rule) -> Settings {
    Settings {
        rules: SiteRules { depth: 8, price: Default::default(), pages_per_run: 0, product_token: "nearcrawl".to_owned() },
        scope: Scope { tlds: ["test".to_owned()].into(), ..Scope::default() },
        politeness: Politeness { min_delay: REST_MS, factor: 0, parallel: 64, per_block: 4 },
        policy: Policy::Nearcrawl { price_us: 300 },
        migration: MigrationSettings { rule, requests_per_access: ACCESS_REQUESTS, ..MigrationSettings::default() },
        probe: ProbeKind::HttpHead,
        home_port: None,
        max_parallel_rounds: 8,
        contacts_per_subnet: 15,
        ignore_orders_of: Default::default(),
        admission: Default::default(),
        max_lookups: MAX_LOOKUPS,
        revisit: 3_600_000,
        new_hosts: Default::default(),
        max_waiting: 1_000_000,
        max_in_memory: 100_000,
        cache_entries: 4_096,
        max_kept_per_owner: 1 << 30,
        own_addresses: Vec::new(),
        joins: false,
        founds: false,
        member: true,
        membership: SwimConfig::default(),
        roster: RosterConfig::default(),
    }
}

/// Plays the crawl: so long until everybody is settled, and so long after the ways changed.
pub fn play(
    shifting: &Arc<Shifting>,
    hierarchy: Arc<Hierarchy>,
    rule: Rule,
    before: Duration,
    after: Duration,
    last: Duration,
) -> Expected {
    let last = last.as_millis() as Millis;
    let shifted = Arc::new(AtomicBool::new(false));
    let places = &shifting.places;
    let mut web = TableWeb::default();
    for site in &places.sites {
        let at = |path: String| PageUrl::parse(&format!("http://{}:8080{path}", site.host)).expect("a URL");
        let pages: Vec<PageUrl> = (0..PAGES).map(|page| at(format!("/page/{page}"))).collect();
        web.answers.extend(pages.iter().map(|page| (page.clone(), Answer::Page(Vec::new()))));
        web.answers.insert(at("/".to_owned()), Answer::Page(pages));
        web.addresses.insert(site.host.clone(), site.address.into());
    }
    let config = WorldConfig { seed: 1, settings: settings(rule), hierarchy, places: vec![0; places.points.len()] };
    let mut world = World::new(config, web);
    world.latencies = Some(Box::new(TheirLatencies { world: shifting.clone(), shifted: shifted.clone() }));
    for number in 0..places.points.len() {
        world.start(number);
        world.run(300);
    }
    world.run(60_000);
    for (number, site) in places.sites.iter().enumerate() {
        let root = PageUrl::parse(&format!("http://{}:8080/", site.host)).expect("a URL");
        world.seed(number % places.points.len(), vec![root]);
    }
    let asked = |world: &World, since: Moment| -> Vec<(Ipv4Addr, Millis)> {
        let contacts = world.ledger.contacts.iter().filter(|contact| contact.begin >= since && contact.end <= world.now());
        let pages = contacts.filter(|contact| matches!(&contact.purpose, Purpose::Page(_)));
        pages
            .filter_map(|contact| {
                Some((if let IpAddr::V4(at) = contact.address { at } else { return None }, contact.end.since(contact.begin)))
            })
            .collect()
    };
    let mean = |asked: Vec<(Ipv4Addr, Millis)>| asked.iter().map(|(_, took)| *took as f64).sum::<f64>() / asked.len() as f64;
    let all = places.sites.len();
    let crawled =
        |world: &World| asked(world, Moment(0)).iter().map(|(server, _)| *server).collect::<std::collections::BTreeSet<_>>().len();
    assert!(world.run_until(300_000, |world| crawled(world) == all), "{} of {all} servers are crawled", crawled(&world));
    world.run(before.as_millis() as Millis);
    let settled = mean(asked(&world, Moment(world.now().0 - last)));
    shifted.store(true, Ordering::Relaxed);
    world.run(after.as_millis() as Millis);
    let recovered = mean(asked(&world, Moment(world.now().0 - last)));
    Expected { settled, recovered }
}
