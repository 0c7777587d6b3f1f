//! Tests with members that have different hierarchies, and change over while they crawl.
//!
//! None disagrees about an owner, and nothing is fetched twice.

use super::*;
use nearcrawl_model::{access_point::AccessPoint, claim::Claim};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::net::IpAddr;

const SHAPE: TableShape = TableShape { hosts: 24, hosts_per_subnet: 4, pages: 10, shared: 7 };
const PLACES: [u8; 5] = [5, 25, 50, 75, 95];

/// Some version of the world: blocks of many lengths within and around each other, a few of them missing.
fn version(seed: u64) -> Arc<Hierarchy> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut builder = Builder::new();
    let mut add = |prefix: String, organisation: usize| {
        let prefix: Subnet = prefix.parse().unwrap();
        let (country, registry) = (if organisation.is_multiple_of(2) { "KE" } else { "JP" }, "lab".to_owned());
        let organisation = format!("holder {organisation}");
        builder.add_prefix(&FurtherPrefix { prefix, country: country.to_owned(), organisation, registry }).unwrap();
    };
    for (length, step, share) in [(21, 8, 0.5), (22, 4, 0.4), (23, 2, 0.4), (24, 1, 0.6)] {
        for third in (0..8).step_by(step) {
            if random.random_bool(share) {
                add(format!("20.0.{third}.0/{length}"), random.random_range(0..7));
            }
        }
    }
    for third in 0..8 {
        // Hosts live at 1 to 4 of each: a /30 has three of them and leaves one outside, a /31 two.
        for (within, share) in [("0/30", 0.3), ("2/31", 0.3), ("4/32", 0.2)] {
            if random.random_bool(share) {
                add(format!("20.0.{third}.{within}"), random.random_range(0..7));
            }
        }
    }
    for ap in 0..8 {
        add(format!("30.0.{ap}.0/24"), ap);
    }
    Arc::new(builder.finish().unwrap())
}

/// A swarm whose members with odd numbers have another version than the others; seeded when it is old enough to be sure of itself.
fn mixed(seed: u64) -> (World, Truth, [Arc<Hierarchy>; 2]) {
    let versions = [version(2 * seed), version(2 * seed + 1)];
    let (mut world, truth) = swarm(seed, &PLACES, &SHAPE, settings(4));
    for number in 0..PLACES.len() {
        world.change_hierarchy(number, versions[number % 2].clone());
    }
    world.run(2 * MINUTE);
    world.seed(0, urls(&["http://s0.test/"]));
    (world, truth, versions)
}

/// The claim that decides about an address, as each one who runs sees it.
pub(super) fn around(world: &World, address: IpAddr) -> BTreeSet<Option<(Subnet, AccessPoint, bool)>> {
    let told = |claim: &Claim| (claim.subnet, claim.owner, claim.released);
    world.running().into_iter().map(|number| world.crawler(number).unwrap().view().claim_around(address).map(told)).collect()
}

/// Everybody names the same living owner for every server.
#[track_caller]
pub(super) fn assert_agreed_on_owners(world: &World) {
    let running: BTreeSet<_> = world.running().into_iter().map(|number| world.member(number)).collect();
    for address in world.web.addresses.values() {
        let owners = around(world, *address);
        assert_eq!(owners.len(), 1, "{address}: {owners:?}");
        let owner = owners.first().cloned().flatten();
        assert!(owner.is_some_and(|(_, owner, released)| running.contains(&owner) && !released), "{address}: {owner:?}");
    }
}

/// The crawl ends, and everything was fetched once, politely, by owners on whom all agree.
fn assert_crawled_to_the_end(world: &mut World, truth: &Truth) {
    let results = finish(world, truth, 20 * MINUTE);
    assert_fetched(world, truth, &BTreeSet::new());
    assert_totals(&results, truth);
    assert_polite(world);
    assert_agreed_on_owners(world);
}

#[test]
fn members_with_two_hierarchies_fetch_everything_once_and_agree_on_every_owner() {
    seeds(5).for_each(|seed| {
        println!("seed {seed}");
        let (mut world, truth, _) = mixed(seed);
        assert_crawled_to_the_end(&mut world, &truth);
    });
}

#[test]
fn members_that_change_over_in_the_middle_of_a_crawl_lose_nothing_and_fetch_nothing_twice() {
    seeds(5).for_each(|seed| {
        println!("seed {seed}");
        let (mut world, truth, versions) = mixed(seed);
        let mut random = StdRng::seed_from_u64(seed);
        for step in 0..12 {
            let wait = random.random_range(500..8_000);
            world.run(wait);
            let number = random.random_range(0..PLACES.len());
            world.change_hierarchy(number, versions[step % 2].clone());
        }
        for number in 0..PLACES.len() {
            world.change_hierarchy(number, versions[1].clone());
        }
        assert_crawled_to_the_end(&mut world, &truth);
    });
}

#[test]
fn members_that_die_between_two_hierarchies_are_succeeded_like_others() {
    seeds(4).for_each(|seed| {
        println!("seed {seed}");
        let (mut world, truth, versions) = mixed(seed);
        let mut random = StdRng::seed_from_u64(seed);
        let mut twice = BTreeSet::new();
        for step in 0..3 {
            let wait = random.random_range(8_000..30_000);
            world.run(wait);
            let victim = random.random_range(0..PLACES.len());
            let kept = recorded(&world, victim);
            twice.extend(world.ledger.fetches().into_keys().filter(|url| !kept.contains(url)));
            world.kill(victim);
            let away = random.random_range(1_000..90_000);
            world.run(away);
            world.change_hierarchy(victim, versions[step % 2].clone());
            world.start(victim);
            let back = random.random_range(10_000..60_000);
            world.run(back);
        }
        let results = finish(&mut world, &truth, 20 * MINUTE);
        assert_totals(&results, &truth);
        assert_polite(&world);
        assert_agreed_on_owners(&world);
        let often: Vec<_> = world.ledger.fetches().into_iter().filter(|(url, times)| *times > 1 && !twice.contains(url)).collect();
        assert!(often.is_empty(), "fetched again though it was recorded: {often:?}");
    });
}

#[test]
fn lost_gossip_between_two_hierarchies_only_delays() {
    seeds(4).for_each(|seed| {
        println!("seed {seed}");
        let (mut world, truth, _) = mixed(seed);
        world.gossip_loss = 0.5;
        world.loss = 0.05;
        let results = finish(&mut world, &truth, 30 * MINUTE);
        assert_fetched(&world, &truth, &BTreeSet::new());
        assert_totals(&results, &truth);
        assert_polite(&world);
        assert_agreed_on_owners(&world);
    });
}

#[test]
fn delegations_survive_a_new_hierarchy_without_a_probe_or_a_message() {
    for seed in 1..4 {
        let (mut world, truth, versions) = mixed(seed);
        finish(&mut world, &truth, 20 * MINUTE);
        // The last rows reach their replicas.
        world.run(MINUTE);
        let before: Vec<_> = world.web.addresses.values().map(|address| around(&world, *address)).collect();
        let (probes, requests, asked) = (world.ledger.probes(), world.ledger.requests(), world.questions.clone());
        for number in 0..PLACES.len() {
            world.change_hierarchy(number, versions[1].clone());
            world.run(1_000);
        }
        world.run(MINUTE);
        let after: Vec<_> = world.web.addresses.values().map(|address| around(&world, *address)).collect();
        assert_eq!((before, probes, requests), (after, world.ledger.probes(), world.ledger.requests()));
        for kind in ["delegation", "hand-off", "copies", "location"] {
            assert_eq!(asked.get(kind), world.questions.get(kind), "{kind}");
        }
        let results = agreed(&world).expect("all tell the same, exactly");
        assert_totals(&results, &truth);
    }
}

#[test]
fn a_subnet_that_only_the_new_hierarchy_knows_is_settled_by_the_owner_of_the_one_around_it() {
    let only = |prefixes: &[&str]| {
        let mut builder = Builder::new();
        for prefix in prefixes.iter().copied().chain(["30.0.0.0/24", "30.0.1.0/24", "30.0.2.0/24"]) {
            let prefix = prefix.parse().unwrap();
            let (country, organisation, registry) = ("KE".to_owned(), "Museum".to_owned(), "lab".to_owned());
            builder.add_prefix(&FurtherPrefix { prefix, country, organisation, registry }).unwrap();
        }
        Arc::new(builder.finish().unwrap())
    };
    let mut web = TableWeb::default();
    for (host, address) in [("a.test", "20.0.0.1"), ("b.test", "20.0.0.9"), ("c.test", "20.0.0.130")] {
        web.live(host, address);
        web.page(&format!("http://{host}/"), &[]);
    }
    let (old, new) = (only(&["20.0.0.0/24"]), only(&["20.0.0.0/24", "20.0.0.0/25", "20.0.0.128/25"]));
    let config = WorldConfig { seed: 1, settings: settings(3), hierarchy: new.clone(), places: vec![10, 50, 90] };
    let mut world = World::new(config, web);
    for number in 0..3 {
        world.change_hierarchy(number, old.clone());
        world.start(number);
        world.run(1_000);
    }
    world.run(MINUTE);
    world.seed(0, urls(&["http://a.test/"]));
    world.run(MINUTE);
    for number in 0..3 {
        world.change_hierarchy(number, new.clone());
    }
    world.seed(1, urls(&["http://b.test/", "http://c.test/"]));
    world.run(MINUTE);
    let subnets: Vec<_> = ["20.0.0.1", "20.0.0.9", "20.0.0.130"]
        .map(|address| around(&world, address.parse().unwrap()).first().cloned().flatten().unwrap().0.to_string())
        .into();
    assert_eq!(subnets, ["20.0.0.0/24", "20.0.0.0/24", "20.0.0.128/25"], "what is crawled stays where it is, what is new is settled");
    let truth = walk(&world.web, &urls(&["http://a.test/", "http://b.test/", "http://c.test/"]), &scope(), 3, "nearcrawl");
    let results = finish(&mut world, &truth, MINUTE);
    assert_fetched(&world, &truth, &BTreeSet::new());
    assert_totals(&results, &truth);
    assert_polite(&world);
    assert_agreed_on_owners(&world);
}

/// The same world at another date, with some blocks changed.
fn dated(date: u32, blocks: &[&str]) -> Arc<Hierarchy> {
    let mut text = format!("2|lab|{date}|{}|19700101|{date}|+0000\n", blocks.len() + 8);
    let mut record = |start: &str, count: u32, holder: &str| {
        text += &format!("lab|KE|ipv4|{start}|{count}|20200101|allocated|{holder}\n");
    };
    for (number, block) in blocks.iter().enumerate() {
        record(block, 256, &format!("holder-{}", number % 5));
    }
    for ap in 0..8 {
        record(&format!("30.0.{ap}.0"), 256, &format!("site-{ap}"));
    }
    let mut builder = Builder::new();
    builder.read_delegated("lab", text.as_bytes()).unwrap();
    Arc::new(builder.finish().unwrap())
}

#[test]
fn a_new_edition_that_one_operator_gives_is_used_by_all_while_the_crawl_goes_on_and_in_later_lives() {
    let blocks: Vec<String> = (0..6).map(|third| format!("20.0.{third}.0")).collect();
    let blocks: Vec<&str> = blocks.iter().map(String::as_str).collect();
    let (old, new) = (dated(20_230_101, &blocks[..3]), dated(20_230_601, &blocks));
    let web = TableWeb::random(&SHAPE, 1);
    let truth = walk(&web, &urls(&["http://s0.test/"]), &scope(), 4, "nearcrawl");
    let config = WorldConfig { seed: 1, settings: settings(4), hierarchy: old.clone(), places: PLACES.to_vec() };
    let mut world = World::new(config, web);
    world.editions = [(old.hash(), old.clone()), (new.hash(), new.clone())].into();
    for number in 0..PLACES.len() {
        world.start(number);
        world.run(300);
    }
    world.run(2 * MINUTE);
    world.seed(0, urls(&["http://s0.test/"]));
    world.run(10_000);
    world.give(3, new.clone());
    let used = |world: &World, number: usize| world.crawler(number).unwrap().view().editions().unwrap().0.hash;
    let all_use = |world: &World| (0..PLACES.len()).all(|number| used(world, number) == new.hash());
    assert!(world.run_until(20_000, all_use), "all change over within 20 s");
    let kept = recorded(&world, 2);
    let twice = world.ledger.fetches().into_keys().filter(|url| !kept.contains(url)).collect();
    world.kill(2);
    world.run(2_000);
    world.start(2);
    world.run(1_000);
    assert_eq!(used(&world, 2), new.hash(), "in the next life, too");
    let results = finish(&mut world, &truth, 20 * MINUTE);
    assert_fetched(&world, &truth, &twice);
    assert_totals(&results, &truth);
    assert_polite(&world);
    assert_agreed_on_owners(&world);
    assert!((0..PLACES.len()).all(|number| used(&world, number) == new.hash()));
}

/// How often is looked whether members disagree.
const LOOK_EVERY: Millis = 500;

/// How long a new claim may take to all: a round of gossip and the way. Who made it fetches nothing before that.
const CLAIM_SPREADS_WITHIN: Millis = 2_000;

#[test]
fn members_between_two_hierarchies_never_disagree_on_an_address_longer_than_a_claim_takes_to_all() {
    let (mut looks, mut changes, mut longest) = (0, 0, 0);
    seeds(3).for_each(|seed| {
        let (mut world, truth, versions) = mixed(seed);
        let mut random = StdRng::seed_from_u64(!seed);
        let addresses: Vec<IpAddr> = (0..80)
            .map(|_| IpAddr::from([20, 0, random.random_range(0..8), random.random_range(0..=255)]))
            .chain(world.web.addresses.values().copied())
            .collect();
        let mut since: BTreeMap<IpAddr, Millis> = BTreeMap::new();
        let mut clock = 0;
        let done = |world: &World| agreed(world).is_some_and(|results| results.summary.total.pages == truth.pages);
        while !(clock > 90_000 && done(&world)) {
            assert!(clock < 20 * MINUTE, "seed {seed}: not done");
            world.run(LOOK_EVERY);
            clock += LOOK_EVERY;
            for address in &addresses {
                let owners = around(&world, *address);
                looks += owners.len().min(1);
                if owners.len() == 1 {
                    since.remove(address);
                } else {
                    let lasts = clock - *since.entry(*address).or_insert(clock);
                    longest = longest.max(lasts);
                    assert!(lasts <= CLAIM_SPREADS_WITHIN, "seed {seed}: {address} for {lasts} ms: {owners:?}");
                }
            }
            // One after another, there and back, all through the crawl.
            if clock < 90_000 && random.random_bool(0.1) {
                let number = random.random_range(0..PLACES.len());
                let version = &versions[random.random_range(0..2)];
                let known: Vec<_> = addresses.iter().map(|address| around(&world, *address)).collect();
                world.change_hierarchy(number, version.clone());
                let then: Vec<_> = addresses.iter().map(|address| around(&world, *address)).collect();
                assert_eq!(known, then, "seed {seed}: another hierarchy is no other owner");
                changes += 1;
            }
        }
        assert_fetched(&world, &truth, &BTreeSet::new());
        assert_polite(&world);
        assert_agreed_on_owners(&world);
    });
    println!("{looks} looks, {changes} changes of the hierarchy, the longest disagreement lasted {longest} ms");
    assert!(looks > 20_000 && changes > 30, "{looks} looks, {changes} changes");
}
