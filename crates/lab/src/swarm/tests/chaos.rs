//! Tests with faults of all kinds at random, for a while, after which all must be right in the end.

use super::*;
use rand::{RngExt, SeedableRng, rngs::StdRng};

const SHAPE: TableShape = TableShape { hosts: 16, hosts_per_subnet: 2, pages: 12, shared: 5 };
const PLACES: [u8; 5] = [5, 25, 50, 75, 95];

/// Subnets move whenever they seem better off elsewhere, and judge that often.
fn restless() -> Settings {
    Settings { migration: MigrationSettings { rule: Rule::Nearcrawl, requests_per_access: 4, states: 1 }, ..settings(4) }
}

/// Visits that stand on two disks: pages that must not be asked for again.
fn recorded_by_two(world: &World) -> BTreeSet<PageUrl> {
    let mut disks: BTreeMap<PageUrl, BTreeSet<usize>> = BTreeMap::new();
    for number in 0..PLACES.len() {
        for url in visited(world, number).into_iter().map(|(url, _)| url) {
            disks.entry(url).or_default().insert(number);
        }
    }
    disks.into_iter().filter(|(_, on)| on.len() >= 2).map(|(url, _)| url).collect()
}

fn kills_and_returns(seed: u64) {
    let (mut world, truth) = swarm(seed, &PLACES, &SHAPE, restless());
    let mut random = StdRng::seed_from_u64(seed);
    world.run(2 * MINUTE);
    world.seed(0, urls(&["http://s0.test/"]));
    let mut told: Vec<(nearcrawl_model::time::Moment, BTreeSet<PageUrl>)> = Vec::new();
    for _ in 0..4 {
        let wait = random.random_range(3_000..30_000);
        world.run(wait);
        let victim = random.random_range(0..PLACES.len());
        match random.random_range(0..4) {
            0 => {
                world.leave(victim);
                world.run(30_000);
            }
            1 => {
                world.drain(victim);
                world.run(20_000);
            }
            _ => world.kill(victim),
        }
        assert!(world.crawler(victim).is_none(), "{victim} is gone");
        told.push((world.now(), recorded_by_two(&world)));
        let away = random.random_range(1_000..100_000);
        world.run(away);
        world.start(victim);
        let back = random.random_range(10_000..60_000);
        world.run(back);
    }
    let results = finish(&mut world, &truth, 20 * MINUTE);
    assert_totals(&results, &truth);
    assert_polite(&world);
    assert_one_owner_each(&world);
    for (when, recorded) in told {
        for contact in &world.ledger.contacts {
            if let Purpose::Page(url) = &contact.purpose {
                assert!(contact.begin <= when || !recorded.contains(url), "seed {seed}: {url} was recorded before {when:?}, {contact:?}");
            }
        }
    }
}

fn anything(seed: u64) {
    let (mut world, truth) = swarm(seed, &PLACES, &SHAPE, restless());
    let mut random = StdRng::seed_from_u64(seed);
    world.run(2 * MINUTE);
    world.seed(0, urls(&["http://s0.test/"]));
    let mut gone = BTreeSet::new();
    for _ in 0..6 {
        let wait = random.random_range(3_000..60_000);
        world.run(wait);
        let victim = random.random_range(0..PLACES.len());
        match random.random_range(0..5) {
            0 if gone.len() < 2 && gone.insert(victim) => world.kill(victim),
            1 => {
                if let Some(back) = gone.pop_first() {
                    world.start(back);
                }
            }
            2 => {
                let (one, other): (Vec<usize>, Vec<usize>) = (0..PLACES.len()).partition(|_| random.random_bool(0.5));
                world.split(&[&one, &other]);
            }
            3 => world.loss = 0.05,
            _ => world.heal(),
        }
    }
    world.heal();
    world.loss = 0.0;
    for back in gone {
        world.start(back);
    }
    let results = finish(&mut world, &truth, 30 * MINUTE);
    assert_totals(&results, &truth);
    // Until SWIM notices a partition both sides may probe for owners of the same subnet; no member fetches from it before that.
    world.ledger.contacts.retain(|contact| contact.purpose != Purpose::Probe);
    assert_polite(&world);
    assert_one_owner_each(&world);
}

#[test]
fn whatever_is_killed_stopped_or_sent_away_nothing_recorded_is_fetched_again() {
    seeds(3).for_each(|seed| named(seed, kills_and_returns));
}

#[test]
fn whatever_happens_all_is_fetched_politely_and_counted_once() {
    seeds(3).for_each(|seed| named(seed, anything));
}

/// Says which seed failed.
fn named(seed: u64, run: fn(u64)) {
    println!("seed {seed}");
    run(seed);
}
