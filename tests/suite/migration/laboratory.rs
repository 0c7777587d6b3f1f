//! What does the laboratory say of the same crawl? The same minds in a simulated swarm, with the same servers, ways and change of ways.

use super::{ACCESS_REQUESTS, PAGES, REST_MS, Shifting};
use nearcrawl::{
    lab::swarm::{
        Ways, World, WorldConfig,
        ledger::Purpose,
        web::{Answer, Web},
    },
    logic::{
        crawler::{
            Policy, Settings,
            migrating::{Migration, Rule},
        },
        front::Politeness,
        hierarchy::Hierarchy,
        membership::{MembershipConfig, RosterConfig},
        scope::Scope,
        site::SiteRules,
    },
    model::{
        fetch::ProbeKind,
        time::{Millis, Moment},
        url::PageUrl,
    },
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

struct TheirWays {
    world: Arc<Shifting>,
    shifted: Arc<AtomicBool>,
}

impl Ways for TheirWays {
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
        politeness: Politeness { least_delay: REST_MS, factor: 0, parallel: 64, per_block: 4 },
        policy: Policy::Nearcrawl { price_us: 300 },
        migration: Migration { rule, access_requests: ACCESS_REQUESTS, ..Migration::default() },
        probe: ProbeKind::HttpHead,
        home_port: None,
        settle_at_once: 8,
        contacts_per_subnet: 15,
        revisit: 3_600_000,
        most_waiting: 1_000_000,
        most_near: 100_000,
        cache_entries: 4_096,
        own_addresses: Vec::new(),
        joins: false,
        member: true,
        membership: MembershipConfig::default(),
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
    let mut web = Web::default();
    for site in &places.sites {
        let at = |path: String| PageUrl::parse(&format!("http://{}:8080{path}", site.host)).expect("a URL");
        let pages: Vec<PageUrl> = (0..PAGES).map(|page| at(format!("/page/{page}"))).collect();
        web.answers.extend(pages.iter().map(|page| (page.clone(), Answer::Page(Vec::new()))));
        web.answers.insert(at("/".to_owned()), Answer::Page(pages));
        web.addresses.insert(site.host.clone(), site.address.into());
    }
    let config = WorldConfig { seed: 1, settings: settings(rule), hierarchy, places: vec![0; places.points.len()] };
    let mut world = World::new(config, web);
    world.ways = Some(Box::new(TheirWays { world: shifting.clone(), shifted: shifted.clone() }));
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
