//! Tests without faults: everything is fetched once, politely, and counted right.

use super::*;

const SMALL: TableShape = TableShape { hosts: 3, hosts_per_subnet: 2, pages: 12, shared: 0 };
const MIDDLE: TableShape = TableShape { hosts: 40, hosts_per_subnet: 3, pages: 12, shared: 7 };

#[test]
fn one_alone_crawls_a_web_of_three_hosts_to_the_end() {
    for seed in 0..4 {
        let (mut world, truth) = swarm(seed, &[50], &SMALL, settings(3));
        world.seed(0, urls(&["http://s0.test/"]));
        let results = finish(&mut world, &truth, 10 * MINUTE);
        assert_fetched(&world, &truth, &BTreeSet::new());
        assert_totals(&results, &truth);
        assert_polite(&world);
        let robots = world.ledger.contacts.iter().filter(|contact| matches!(contact.purpose, Purpose::Robots(_))).count();
        assert_eq!(robots, 3, "one robots.txt for each host");
        assert_eq!(results.summary.total.requests, world.ledger.requests());
        assert_eq!(world.ledger.probes(), 0, "who is alone has no member to compare with");
    }
}

#[test]
fn five_fetch_forty_servers_once_and_politely_and_all_tell_the_same() {
    for seed in 0..3 {
        let (mut world, truth) = swarm(seed, &[5, 25, 50, 75, 95], &MIDDLE, settings(3));
        world.seed(3, urls(&["http://s0.test/"]));
        let results = finish(&mut world, &truth, 20 * MINUTE);
        assert_fetched(&world, &truth, &BTreeSet::new());
        assert_totals(&results, &truth);
        assert_polite(&world);
        assert_one_owner_each(&world);
        assert_eq!(results.summary.total.requests, world.ledger.requests());
        let all = subnets(&world);
        let near = all.iter().filter(|subnet| nearest_owns(&world, subnet)).count();
        let once: BTreeMap<_, u32> =
            world.ledger.contacts.iter().filter(|c| c.purpose == Purpose::Probe).fold(BTreeMap::new(), |mut counts, contact| {
                *counts.entry((contact.by, world.config.hierarchy.subnet_of(contact.address))).or_default() += 1;
                counts
            });
        assert!(once.values().all(|count| *count == 1), "no member probes a subnet twice: {once:?}");
        println!("seed {seed}: the nearest owns {near} of {} subnets, {} probes", all.len(), world.ledger.probes());
    }
}

/// Whether no member has a shorter way to the subnet than its owner.
fn nearest_owns(world: &World, subnet: &Subnet) -> bool {
    let distances: Vec<_> =
        world.running().into_iter().map(|n| (world.round_trip_us(world.member(n), subnet.first()), world.member(n))).collect();
    let owner = world.owners_of(subnet).into_iter().next().flatten();
    let least = distances.iter().map(|(rtt, _)| *rtt).min();
    distances.iter().any(|(rtt, who)| Some(*who) == owner && Some(*rtt) == least)
}
