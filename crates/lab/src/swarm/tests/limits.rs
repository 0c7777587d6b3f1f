//! Tests that a swarm leads on to every host in scope that a portal names.
//!
//! Those within its limits come at once, and the others on the next days, whoever owns the portal by then.

use super::*;
use crate::swarm::played::Played;
use nearcrawl_core::crawler::NewHostLimits;
use nearcrawl_model::record::{RunState, ServerRecord};

const PLACES: [u8; 3] = [10, 50, 90];
const PORTAL: &str = "http://portal.test/";

/// A portal that names so many hosts out of scope before so many in scope. Each of those has one page.
fn portal(beyond: u32, hosts: u32) -> TableWeb {
    let mut web = TableWeb::default();
    web.live("portal.test", "20.0.0.1");
    let beyond = (0..beyond).map(|number| format!("http://far{number}.com/"));
    let hosts: Vec<_> = (0..hosts).map(|number| format!("h{number}.test")).collect();
    for (number, host) in (0_u32..).zip(&hosts) {
        web.live(host, &format!("20.0.{}.{}", 1 + number % 8, 10 + number / 8));
        web.page(&format!("http://{host}/"), &[]);
    }
    let links: Vec<_> = beyond.chain(hosts.iter().map(|host| format!("http://{host}/"))).collect();
    web.page(PORTAL, &links.iter().map(String::as_str).collect::<Vec<_>>());
    web
}

fn begin(web: TableWeb, limits: NewHostLimits) -> Played {
    let settings = Settings { new_hosts: limits, ..settings(3) };
    let mut world = Played::new(World::new(WorldConfig { seed: 3, settings, hierarchy: hierarchy(9), places: PLACES.to_vec() }, web));
    for number in 0..PLACES.len() {
        world.start(number);
        world.run(300);
    }
    world.seed(0, urls(&[PORTAL]));
    world
}

/// So many hours pass on all clocks that show the time of day, while nothing is fetched anyway.
fn pass(world: &mut Played, hours: i64) {
    (0..PLACES.len()).for_each(|number| world.jump_clock(number, hours * 3_600_000));
}

/// All agree that so many servers answered with a page and so many hosts wait.
fn is_at(world: &World, servers: u64, waiting: u64) -> bool {
    agreed(world).is_some_and(|results| {
        let total = results.summary.total;
        (total.up, total.hosts_held_by_site_limit) == (servers, waiting)
    })
}

/// The member that owns the portal, and its record there.
fn owner(world: &World) -> (usize, ServerRecord) {
    let of = |number: usize| {
        let servers = world.crawler(number)?.view().servers(None, 1_000).servers;
        servers.into_iter().find(|record| record.host.as_str() == "portal.test").map(|record| (number, record))
    };
    world.running().into_iter().find_map(of).unwrap()
}

#[test]
fn a_portal_with_many_hosts_out_of_scope_leads_to_all_that_are_in_scope() {
    let mut world = begin(portal(520, 180), NewHostLimits::default());
    assert!(world.run_until(30 * MINUTE, |world| is_at(world, 181, 0)), "{:?}", world.results(0));
    let (_, record) = owner(&world);
    assert_eq!((record.external_hosts, record.state), (700, RunState::Complete));
    assert_polite(&world);
}

#[test]
fn hosts_beyond_the_limit_of_a_portal_come_on_the_next_days_whoever_owns_it_by_then() {
    let mut world = begin(portal(0, 45), NewHostLimits { per_site: 20, per_domain: 50 });
    assert!(world.run_until(30 * MINUTE, |world| is_at(world, 21, 25)), "{:?}", world.results(0));
    world.run(5 * MINUTE);
    let (first, record) = owner(&world);
    assert_eq!((record.held_back.hosts_by_site_limit, record.state), (25, RunState::HeldBack));
    world.kill(first);
    let taken_over = |world: &World| world.owners_of(&"20.0.0.0/24".parse().unwrap()).iter().flatten().all(|by| *by != world.member(first));
    assert!(world.run_until(5 * MINUTE, |world| taken_over(world) && is_at(world, 21, 25)), "{:?}", agreed(&world));
    let (second, record) = owner(&world);
    assert_eq!((second != first, record.held_back.hosts_by_site_limit, record.state), (true, 25, RunState::HeldBack));
    pass(&mut world, 23);
    world.run(MINUTE);
    assert!(is_at(&world, 21, 25), "the day is not over");
    pass(&mut world, 1);
    assert!(world.run_until(20 * MINUTE, |world| is_at(world, 41, 5)), "{:?}", world.results(second));
    pass(&mut world, 24);
    assert!(world.run_until(20 * MINUTE, |world| is_at(world, 46, 0)), "{:?}", world.results(second));
    assert_eq!(owner(&world).1.state, RunState::Complete);
    let fetched = world.ledger.fetches();
    let often: Vec<_> = fetched.iter().filter(|(_, count)| **count > 1).collect();
    assert!(fetched.len() == 46 && often.is_empty(), "each page once: {often:?}");
    assert_polite(&world);
}
