//! Tests with names that lead to other addresses: each host has one owner and one record, and nothing is requested twice or lost.

use super::runs::{changes, finish_run, records};
use super::*;
use nearcrawl_model::{record::ServerRecord, time::Moment, url::Host};
use std::net::{IpAddr, Ipv4Addr};

const SHAPE: TableShape = TableShape { hosts: 9, hosts_per_subnet: 2, pages: 10, shared: 0 };
const PLACES: [u8; 3] = [10, 50, 90];

/// The subnets that have servers before any moves.
const SETTLED: u32 = 5;

/// When the second run is due after the first one began.
const REVISIT: Millis = 15 * MINUTE;

/// An address that no host has at first.
fn address_in(subnet: u32, place: u32) -> IpAddr {
    Ipv4Addr::from(0x1400_0000 + subnet * 256 + 100 + place).into()
}

fn host(number: u32) -> Host {
    format!("s{number}.test").parse().unwrap()
}

/// A swarm whose first run is over, and when its seed was named.
#[track_caller]
fn first_run(seed: u64, places: &[u8]) -> (World, Truth) {
    let web = TableWeb::random(&SHAPE, seed);
    let settings = Settings { revisit: REVISIT, ..settings(3) };
    let truth = walk(&web, &urls(&["http://s0.test/"]), &settings.scope, 3, "nearcrawl");
    let config = WorldConfig { seed, settings, hierarchy: hierarchy(12), places: places.to_vec() };
    let mut world = World::new(config, web);
    for number in 0..places.len() {
        world.start(number);
        world.run(300);
    }
    world.seed(0, urls(&["http://s0.test/"]));
    finish(&mut world, &truth, 10 * MINUTE);
    (world, truth)
}

/// The hosts that were crawled.
fn known(world: &World) -> Vec<u32> {
    let records = records(world);
    (0..SHAPE.hosts as u32).filter(|number| records.iter().any(|record| record.host == host(*number))).collect()
}

/// A host's name leads elsewhere. Returns where it was.
fn lead(world: &mut World, number: u32, to: IpAddr) -> IpAddr {
    world.web.addresses.insert(host(number), to).unwrap()
}

/// Requests at an address since then.
fn asked(world: &World, address: IpAddr, since: Moment) -> usize {
    let contacts = world.ledger.contacts.iter().filter(|contact| contact.purpose != Purpose::Probe && contact.begin >= since);
    contacts.filter(|contact| contact.address == address).count()
}

/// Each host has one record, at the address that its name has, and every page was asked for so many times.
#[track_caller]
fn assert_one_record_each(world: &World, truth: &Truth, runs: u32) {
    assert_one_record_each_but_for(world, truth, runs, 0);
}

/// At most so many pages were asked for once more.
#[track_caller]
fn assert_one_record_each_but_for(world: &World, truth: &Truth, runs: u32, again: usize) {
    let mut found: BTreeMap<Host, Vec<ServerRecord>> = BTreeMap::new();
    records(world).into_iter().for_each(|record| found.entry(record.host.clone()).or_default().push(record));
    for (host, records) in &found {
        assert_eq!(records.len(), 1, "records of {host}");
        assert_eq!(records[0].address, Some(world.web.addresses[host]), "{host}");
        let claim = world.crawler(world.running()[0]).unwrap().view().claim_around(world.web.addresses[host]).unwrap();
        let owner = world.crawler(world.running().into_iter().find(|number| world.member(*number) == claim.owner).unwrap()).unwrap();
        assert!(owner.view().run_of(host).is_some(), "{host} is with the owner of its address");
    }
    assert_eq!(found.len(), truth.hosts.len());
    let fetched = world.ledger.fetches();
    let odd = truth.asked.keys().filter(|url| fetched.get(url) != Some(&runs)).map(|url| (url.as_str(), fetched.get(url).copied()));
    let (more, odd): (Vec<_>, Vec<_>) = odd.partition(|(_, count)| *count == Some(runs + 1));
    assert!(odd.is_empty() && more.len() <= again, "each page once in each of {runs} runs: {more:?} {odd:?}");
    assert_polite(world);
    assert_totals(&agreed(world).unwrap(), truth);
}

/// Nothing had to be downloaded a second time whose server says what version it is.
#[track_caller]
fn assert_revisited(world: &World, truth: &Truth) {
    let sum = changes(&records(world));
    assert_eq!((sum.unchanged, sum.changed, sum.new, sum.gone, sum.missed), (truth.pages, 0, 0, 0, 0));
    assert!(sum.not_modified > truth.pages / 2, "{sum:?}");
}

/// Crawls, has hosts move, and crawls again.
#[track_caller]
fn moves_between_runs(seed: u64, places: &[u8], to: impl Fn(u32) -> Option<IpAddr>) {
    let (mut world, truth) = first_run(seed, places);
    let moved: Vec<_> = known(&world).into_iter().filter_map(|number| Some((number, to(number)?))).collect();
    let since = world.now();
    let old: Vec<_> = moved.iter().map(|(number, to)| lead(&mut world, *number, *to)).collect();
    finish_run(&mut world, 2, truth.hosts.len());
    assert_one_record_each(&world, &truth, 2);
    assert_revisited(&world, &truth);
    for address in old.iter().filter(|old| !world.web.addresses.values().any(|address| address == *old)) {
        assert_eq!(asked(&world, *address, since), 0, "seed {seed}: nobody is asked at {address} any more");
    }
    // Where journals are filed now they are found, too: who owns the most hosts dies.
    let most = (0..places.len()).max_by_key(|number| world.crawler(*number).unwrap().view().servers(None, 100).servers.len()).unwrap();
    if places.len() > 1 {
        world.kill(most);
        let back = |world: &World| records(world).len() == truth.hosts.len() && agreed(world).is_some();
        assert!(world.run_until(10 * MINUTE, back), "seed {seed}: {} of {} records", records(&world).len(), truth.hosts.len());
        assert_one_record_each(&world, &truth, 2);
    }
}

#[test]
fn a_host_that_moved_between_runs_is_visited_again_at_its_new_address_by_the_owner_of_that() {
    for seed in seeds(3) {
        moves_between_runs(seed, &PLACES, |number| (number == 1).then(|| address_in(4, 1)));
    }
}

#[test]
fn a_host_moves_within_its_subnet_and_to_another_one_of_its_owner() {
    for seed in seeds(2) {
        moves_between_runs(seed, &[10], |number| (number < 4).then(|| address_in(number, number)));
    }
}

#[test]
fn a_host_moves_to_a_subnet_that_nobody_owns_yet() {
    for seed in seeds(3) {
        moves_between_runs(seed, &PLACES, |number| (number % 4 == 1).then(|| address_in(SETTLED + number % 3, number)));
    }
}

#[test]
fn all_hosts_move_at_once() {
    for seed in seeds(3) {
        moves_between_runs(seed, &PLACES, |number| Some(address_in((number / 2 + 1 + number % 2) % (SETTLED + 2), number)));
    }
}

#[test]
fn hosts_move_back_and_on_again() {
    for seed in seeds(2) {
        let (mut world, truth) = first_run(seed, &PLACES);
        let numbers = known(&world);
        let homes: Vec<_> = numbers.iter().map(|number| world.web.addresses[&host(*number)]).collect();
        for number in &numbers {
            lead(&mut world, *number, address_in((number / 2 + 1) % SETTLED, *number));
        }
        finish_run(&mut world, 2, truth.hosts.len());
        assert_one_record_each(&world, &truth, 2);
        for (number, home) in numbers.iter().zip(&homes) {
            lead(&mut world, *number, *home);
        }
        finish_run(&mut world, 3, truth.hosts.len());
        assert_one_record_each(&world, &truth, 3);
        for number in &numbers {
            lead(&mut world, *number, address_in((number / 2 + 2) % SETTLED, *number));
        }
        finish_run(&mut world, 4, truth.hosts.len());
        assert_one_record_each(&world, &truth, 4);
    }
}

#[test]
fn a_host_that_moves_in_the_middle_of_its_run_goes_on_elsewhere_and_no_page_is_asked_for_twice() {
    for seed in seeds(4) {
        let web = TableWeb::random(&TableShape { pages: 40, ..SHAPE }, seed);
        let truth = walk(&web, &urls(&["http://s0.test/"]), &scope(), 8, "nearcrawl");
        let config = WorldConfig { seed, settings: settings(8), hierarchy: hierarchy(12), places: PLACES.to_vec() };
        let mut world = World::new(config, web);
        // Stewards look names up again while links still come.
        world.names_hold = 60_000;
        for number in 0..PLACES.len() {
            world.start(number);
            world.run(300);
        }
        world.seed(0, urls(&["http://s0.test/"]));
        assert!(world.run_until(5 * MINUTE, |world| records(world).iter().filter(|record| record.pages > 5).count() > 3));
        let numbers = known(&world);
        for number in numbers.iter().filter(|number| *number % 2 == 0) {
            lead(&mut world, *number, address_in((number / 2 + 1) % SETTLED, *number));
        }
        let results = finish(&mut world, &truth, 20 * MINUTE);
        assert_fetched(&world, &truth, &BTreeSet::new());
        assert_totals(&results, &truth);
        assert_polite(&world);
        let mut hosts: Vec<_> = records(&world).into_iter().map(|record| record.host).collect();
        hosts.dedup();
        assert_eq!(hosts.len(), truth.hosts.len());
    }
}

#[test]
fn whoever_dies_while_a_host_is_on_its_way_nothing_is_lost_and_it_has_one_record() {
    // Steps of 300 ms from when hosts are looked up.
    for step in 0..16 {
        for dies in [0, 1, 2] {
            let (mut world, truth) = first_run(1 + step % 3, &PLACES);
            let numbers = known(&world);
            for number in &numbers {
                lead(&mut world, *number, address_in((number / 2 + 1) % SETTLED, *number));
            }
            let confirms = |world: &World| world.questions.get("confirmation").is_some_and(|count| *count > 0);
            assert!(world.run_until(20 * MINUTE, confirms), "hosts are looked up");
            world.run(300 * step);
            world.kill(dies);
            finish_run(&mut world, 2, truth.hosts.len());
            let found: BTreeSet<_> = records(&world).into_iter().map(|record| record.host).collect();
            assert_eq!((records(&world).len(), found.len()), (truth.hosts.len(), truth.hosts.len()), "step {step}, member {dies}");
            let fetched = world.ledger.fetches();
            // What was asked for just before a death and was not recorded is asked for again; and a host that is on its way when its owner,
            // its next owner or its steward dies may be visited once more.
            let often = fetched.iter().filter(|(_, count)| **count > 3).count();
            assert_eq!(often, 0, "step {step}, member {dies}: asked for too often");
            assert_polite(&world);
            assert_totals(&agreed(&world).unwrap(), &truth);
        }
    }
}

#[test]
fn hosts_move_while_the_swarm_is_cut_in_two_and_have_one_record_when_it_heals() {
    for seed in seeds(3) {
        let (mut world, truth) = first_run(seed, &PLACES);
        let numbers = known(&world);
        world.run(9 * MINUTE);
        for number in &numbers {
            lead(&mut world, *number, address_in((number / 2 + 1) % SETTLED, *number));
        }
        world.split(&[&[0, 1], &[2]]);
        world.run(8 * MINUTE);
        world.heal();
        finish_run(&mut world, 2, truth.hosts.len());
        // Who was cut off hands over the URLs that waited there, with the addresses that it knew. Whoever owns such an address now opens the
        // host there, and hears only seconds later that it has moved: a known fault, of a few pages.
        assert_one_record_each_but_for(&world, &truth, 2, 4);
    }
}

#[test]
fn a_steward_that_is_dead_holds_no_run_up() {
    for dies in 0..3 {
        let (mut world, truth) = first_run(2, &PLACES);
        let theirs: BTreeSet<_> = world.crawler(dies).unwrap().view().servers(None, 100).servers.into_iter().map(|r| r.host).collect();
        let begun: BTreeMap<_, _> = records(&world).into_iter().map(|record| (record.host, record.first_visit_at.unwrap())).collect();
        // The first host is looked up half a minute before its run: then one whom others may be about to ask is gone.
        let confirms = |world: &World| world.questions.get("confirmation").is_some_and(|count| *count > 0);
        assert!(world.run_until(20 * MINUTE, confirms), "hosts are looked up");
        world.kill(dies);
        for record in finish_run(&mut world, 2, truth.hosts.len()).into_iter().filter(|record| !theirs.contains(&record.host)) {
            let late = record.first_visit_at.unwrap().0.cast_signed() - (begun[&record.host].0 + REVISIT).cast_signed();
            // A run begins so long after the one before was opened, and its first page may come sooner after that.
            assert!((-2_000..10_000).contains(&late), "{} began {late} ms late", record.host);
        }
        assert_totals(&agreed(&world).unwrap(), &truth);
    }
}

#[test]
fn a_host_without_an_address_any_more_is_not_asked_in_its_next_run() {
    let (mut world, truth) = first_run(3, &PLACES);
    let number = known(&world)[1];
    let since = world.now();
    let old = world.web.addresses.remove(&host(number)).unwrap();
    let over = |world: &World| {
        let records = records(world);
        records.len() == truth.hosts.len() && records.iter().all(|record| record.run == 2 && record.waiting == 0)
    };
    assert!(world.run_until(20 * MINUTE, over), "{:?}", records(&world).iter().map(|r| (r.host.to_string(), r.run)).collect::<Vec<_>>());
    assert_eq!(asked(&world, old, since), 0);
    let record = records(&world).into_iter().find(|record| record.host == host(number)).unwrap();
    assert_eq!((record.pages, record.by_failure.keys().map(|failure| failure.word()).collect()), (0, vec!["no-address".to_owned()]));
}
