//! Tests that each part of a large registered subnet has an owner of its own, on which all agree, whatever their policies.

use super::{
    versions::{around, assert_agreed_on_owners},
    *,
};
use nearcrawl_core::report::Outside;
use std::net::IpAddr;

const SHAPE: TableShape = TableShape { hosts: 24, hosts_per_subnet: 1, pages: 6, shared: 7 };
const PLACES: [u8; 5] = [5, 25, 50, 75, 95];
const PAPER: Policy = Policy::Ipmicra { threshold_us: 15_000 };

/// The whole web is registered to one holder, and so are all access points to another.
fn large() -> Arc<Hierarchy> {
    let mut builder = Builder::new();
    for (prefix, organisation) in [("20.0.0.0/16", "hoster"), ("30.0.0.0/16", "provider")] {
        let (country, registry) = ("KE".to_owned(), "lab".to_owned());
        let prefix = prefix.parse().unwrap();
        builder.add_prefix(&FurtherPrefix { prefix, country, organisation: organisation.to_owned(), registry }).unwrap();
    }
    Arc::new(builder.finish().unwrap())
}

/// A swarm in that world; `policy` is asked for each member's.
fn start(seed: u64, policy: impl Fn(usize) -> Policy) -> (World, Truth) {
    let web = TableWeb::random(&SHAPE, seed);
    let settings = settings(4);
    let truth = walk(&web, &urls(&["http://s0.test/"]), &settings.scope, settings.rules.depth, "nearcrawl");
    let config = WorldConfig { seed, settings, hierarchy: large(), places: PLACES.to_vec() };
    let mut world = World::new(config, web);
    for number in 0..PLACES.len() {
        world.config.settings.policy = policy(number);
        world.start(number);
        world.run(300);
    }
    world.run(2 * MINUTE);
    (world, truth)
}

/// Probes are cheap: the parts of these subnets lie where chance put them, and so say little about each other.
fn ours(_: usize) -> Policy {
    Policy::Nearcrawl { price_us: 1_000 }
}

/// Every other member goes by the paper.
fn mixed(number: usize) -> Policy {
    if number.is_multiple_of(2) { PAPER } else { ours(number) }
}

/// The claim around an address, on which all agree.
#[track_caller]
fn claim(world: &World, address: IpAddr) -> (Subnet, usize) {
    let claims = around(world, address);
    assert_eq!(claims.len(), 1, "{address}: {claims:?}");
    let (subnet, owner, released) = claims.first().cloned().flatten().unwrap_or_else(|| panic!("{address} has no owner"));
    assert!(!released, "{address} was given back");
    (subnet, (0..PLACES.len()).find(|number| world.member(*number) == owner).unwrap())
}

fn addresses(world: &World) -> BTreeSet<IpAddr> {
    world.web.addresses.values().copied().collect()
}

#[test]
fn each_part_of_a_large_subnet_goes_to_who_is_near_it_and_stays_registered_where_it_is() {
    let (mut world, truth) = start(1, ours);
    world.seed(0, urls(&["http://s0.test/"]));
    let results = finish(&mut world, &truth, 20 * MINUTE);
    assert_totals(&results, &truth);
    assert_fetched(&world, &truth, &BTreeSet::new());
    assert_polite(&world);
    let (mut owners, mut extra) = (BTreeSet::new(), Vec::new());
    for address in addresses(&world) {
        let (subnet, owner) = claim(&world, address);
        assert_eq!(subnet, Subnet::around(address, 24));
        let least = (0..PLACES.len()).map(|number| world.round_trip_us(world.member(number), address)).min().unwrap();
        extra.push(world.round_trip_us(world.member(owner), address) - least);
        owners.insert(owner);
    }
    assert!(owners.len() >= 4, "members all over the line, parts all over the line, but only {owners:?} got any");
    let mean = extra.iter().sum::<u32>() / extra.len() as u32;
    assert!(mean < 15_000, "{mean} µs farther than need be");
    for number in 0..PLACES.len() {
        assert_eq!(
            claim(&world, [30, 0, number as u8, 1].into()),
            (Subnet::around([30, 0, number as u8, 1].into(), 24), number),
            "its home"
        );
    }
    let countries = &results.summary.by[&nearcrawl_model::summary::Dimension::Country];
    assert_eq!(countries.keys().collect::<Vec<_>>(), ["KE"], "parts are where the registered subnet is");
    let why = world.crawler(0).unwrap().view().why(&"20.0.3.1".parse().unwrap(), &Default::default());
    assert_eq!(why.path_text[2..], ["organisation hoster", "block 20.0.0.0/16 ← its subnet", "part 20.0.3.0/24"].map(String::from));
    let why = world.crawler(0).unwrap().view().why(&"20.0.3.0/24".parse().unwrap(), &Default::default());
    assert_eq!(
        (why.subnet, why.ownership.map(|claim| claim.subnet)),
        Some("20.0.3.0/24".parse().unwrap()).map(|s| (Some(s), Some(s))).unwrap()
    );
    let why = world.crawler(0).unwrap().view().why(&"20.0.0.0/16".parse().unwrap(), &Default::default());
    let parts = addresses(&world).len();
    assert!(why.answer_text.contains(&format!("In 20.0.0.0/16, {parts} smaller subnets belong to ")), "{}", why.answer_text);
}

#[test]
fn the_paper_s_procedure_gives_a_large_subnet_away_as_a_whole() {
    let (mut world, truth) = start(1, |_| PAPER);
    world.seed(0, urls(&["http://s0.test/"]));
    finish(&mut world, &truth, 20 * MINUTE);
    let claims: BTreeSet<_> = addresses(&world).into_iter().map(|address| claim(&world, address)).collect();
    assert_eq!(claims.len(), 1, "{claims:?}");
    assert_eq!(claims.first().unwrap().0.length(), 16);
}

#[test]
fn members_with_different_policies_agree_on_every_owner_and_obey_each_other() {
    seeds(4).for_each(|seed| {
        println!("seed {seed}");
        let (mut world, truth) = start(seed, mixed);
        world.seed(0, urls(&["http://s0.test/"]));
        let results = finish(&mut world, &truth, 20 * MINUTE);
        assert_fetched(&world, &truth, &BTreeSet::new());
        assert_totals(&results, &truth);
        assert_polite(&world);
        assert_agreed_on_owners(&world);
        for number in 0..PLACES.len() {
            let declined = world.crawler(number).unwrap().view().status(Outside::default()).delegation.declined;
            assert_eq!(declined.get("the receipts contradict others of the same subnet"), None, "{number}: {declined:?}");
            assert_eq!(declined.get("the receipts leave out probes that were made"), None, "{number}: {declined:?}");
        }
    });
}

#[test]
fn who_owns_a_large_subnet_as_a_whole_keeps_it_when_the_policy_changes() {
    let (mut world, _) = start(3, |_| PAPER);
    // One page that links nowhere, so that the rest of the web is still to be named.
    world.web.live("first.test", "20.0.77.1");
    world.web.page("http://first.test/", &[]);
    world.web.live("later.test", "20.0.99.1");
    world.web.page("http://later.test/", &[]);
    world.seed(0, urls(&["http://first.test/"]));
    let fetched = |url: &'static str| move |world: &World| world.ledger.fetches().contains_key(&PageUrl::parse(url).unwrap());
    assert!(world.run_until(5 * MINUTE, fetched("http://first.test/")), "the first page");
    world.run(MINUTE);
    let before = claim(&world, "20.0.77.1".parse().unwrap());
    assert_eq!(before.0.length(), 16);
    let probes = world.ledger.probes();
    world.config.settings.policy = ours(0);
    for number in 0..PLACES.len() {
        world.kill(number);
        world.start(number);
        world.run(20_000);
    }
    world.run(2 * MINUTE);
    world.seed(1, urls(&["http://later.test/"]));
    assert!(world.run_until(5 * MINUTE, fetched("http://later.test/")), "the later page");
    world.run(MINUTE);
    assert_eq!(claim(&world, "20.0.99.1".parse().unwrap()), before, "no part is given away just for being one");
    assert_eq!(world.ledger.probes(), probes, "and no server is probed for it");
    for number in 0..PLACES.len() {
        assert_eq!(claim(&world, [30, 0, number as u8, 1].into()).0.length(), 16, "homes that were claimed as a whole stay so");
    }
}
