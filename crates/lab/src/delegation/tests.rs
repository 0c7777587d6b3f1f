//! Tests that the laboratory measures what it says: small worlds whose outcome is known beforehand, and an excerpt of a real one.

use super::{
    Experiment, Surroundings,
    distances::Distances,
    nodes::Nodes,
    policies::{Decision, Delegator, Policy},
    round::{self, ExperimentError, Placement, Round, Setup},
    score::{Row, Score},
};
use nearcrawl_hierarchy::{Builder, FurtherPrefix, Hierarchy};
use std::{
    num::NonZero,
    sync::atomic::{AtomicUsize, Ordering},
};

const ATLAS_NODES: &[u8] = include_bytes!("../../../../tests/data/latency/atlas-excerpt/nodes.csv");
const ATLAS_RTT: &[u8] = include_bytes!("../../../../tests/data/latency/atlas-excerpt/rtt.csv");

/// `count` nodes at random-looking places on a plane of 100 x 100 ms, each in a /24 of its own.
fn plane(count: usize) -> (Nodes, Distances) {
    let mut text = "id,ipv4,x_ms,y_ms\n".to_owned();
    for node in 0..count {
        text += &format!("{node},10.{}.{}.1,{},{}\n", node / 256, node % 256, node * 37 % 101, node * 61 % 103);
    }
    let nodes = Nodes::read("nodes", text.as_bytes(), true).unwrap();
    let distances = Distances::of_places(&nodes);
    (nodes, distances)
}

fn measured(nodes: &str, rtt: &str) -> (Nodes, Distances) {
    let nodes = Nodes::read("nodes", nodes.as_bytes(), false).unwrap();
    let distances = Distances::read("rtt", rtt.as_bytes(), "nodes", &nodes).unwrap();
    (nodes, distances)
}

/// A hierarchy without a single subnet.
fn empty() -> Hierarchy {
    Builder::new().finish().unwrap()
}

fn setup(crawlers: usize) -> Setup {
    Setup { crawlers, placement: Placement::Random, sites: None, train: 0.5, whole_subnets: false, downloads_teach: false }
}

fn run(experiment: &Experiment, (nodes, distances): &(Nodes, Distances), hierarchy: &Hierarchy, threads: usize) -> Vec<Row> {
    let surroundings = Surroundings { processor_seconds: &|| 0.0, finished: &|| (), threads: NonZero::new(threads).unwrap() };
    experiment.run(nodes, distances, hierarchy, &surroundings).unwrap()
}

/// One row of each policy.
fn rows(policies: &[Policy], crawlers: usize) -> Vec<Row> {
    let experiment = Experiment { setup: setup(crawlers), policies: policies.to_vec(), rounds: 3, seed: 1 };
    run(&experiment, &plane(200), &empty(), 1)
}

#[test]
fn brute_force_asks_everybody_and_is_always_right() {
    let [row] = &rows(&[Policy::BruteForce], 7)[..] else { panic!() };
    assert_eq!((row.probes_per_site, row.optimal, row.within_10pct_or_2ms, row.mean_extra_ms), (7.0, 1.0, 1.0, 0.0));
    assert_eq!((row.probes_last_50, row.probes_first_300, row.probes_per_site_training), (7.0, 7.0, 7.0));
    assert_eq!((row.mean_extra_when_wrong_ms, row.optimal_se, row.crawlers), (0.0, 0.0, 7));
    // 200 nodes but the crawlers; half of them initialise.
    assert_eq!((row.sites, row.evaluated), (193, 96));
}

#[test]
fn delegation_at_random_asks_nobody_and_is_as_good_as_random() {
    let [row] = &rows(&[Policy::RandomDelegation], 10)[..] else { panic!() };
    assert_eq!(row.probes_per_site, 0.0);
    assert!((0.02..0.25).contains(&row.optimal), "{row:?}");
    assert!((0.9..1.1).contains(&row.download_time_vs_random), "{row:?}");
}

#[test]
fn the_daemons_draw_asks_nobody_and_is_as_good_as_random() {
    let [row] = &rows(&[Policy::Random], 10)[..] else { panic!() };
    assert_eq!((row.policy, row.probes_per_site, row.price, row.threshold_ms), ("random", 0.0, None, None));
    assert!((0.02..0.25).contains(&row.optimal), "{row:?}");
    assert!((0.9..1.1).contains(&row.download_time_vs_random), "{row:?}");
}

#[test]
fn thresholds_end_the_search() {
    let all = [50_000.0, 0.0]
        .map(|threshold| rows(&[Policy::RandomOrder(threshold), Policy::PopularFirst(threshold), Policy::IpMicra(threshold)], 6));
    for row in &all[0] {
        assert_eq!(row.probes_per_site, 1.0, "the first is good enough for {}", row.policy);
        assert!(row.optimal < 0.6, "{row:?}");
    }
    for row in &all[1] {
        assert_eq!((row.probes_per_site, row.optimal), (6.0, 1.0), "nobody is good enough for {}", row.policy);
    }
}

#[test]
fn the_daemons_procedure_asks_less_and_gets_nearer_than_asking_around() {
    let [near, random] = &rows(&[Policy::Nearcrawl(1.0), Policy::RandomOrder(50.0)], 8)[..] else { panic!() };
    assert!(near.probes_per_site < 8.0 && near.optimal > random.optimal, "{near:?}\n{random:?}");
    assert_eq!((near.price, near.threshold_ms, random.price, random.threshold_ms), (Some(1.0), None, None, Some(50.0)));
}

#[test]
fn equal_seeds_give_equal_figures_whoever_plays_beside_and_however_many_at_once() {
    let policies = vec![Policy::RandomOrder(30.0), Policy::RandomDelegation, Policy::Nearcrawl(2.0), Policy::IpMicra(30.0)];
    let experiment = |policies: &[Policy], seed| Experiment { setup: setup(5), policies: policies.to_vec(), rounds: 2, seed };
    let (world, nothing) = (plane(60), empty());
    let together = run(&experiment(&policies, 7), &world, &nothing, 1);
    assert_eq!(together, run(&experiment(&policies, 7), &world, &nothing, 3));
    for (policy, row) in policies.iter().zip(&together) {
        assert_eq!(&run(&experiment(&[*policy], 7), &world, &nothing, 1)[0], row);
    }
    assert_ne!(together, run(&experiment(&policies, 8), &world, &nothing, 1));
}

#[test]
fn seconds_and_progress_are_those_of_the_surroundings() {
    let (ticks, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let surroundings = Surroundings {
        processor_seconds: &|| ticks.fetch_add(1, Ordering::Relaxed) as f64,
        finished: &|| {
            finished.fetch_add(1, Ordering::Relaxed);
        },
        threads: NonZero::<usize>::MIN,
    };
    let (nodes, distances) = plane(20);
    let experiment = Experiment { setup: setup(3), policies: vec![Policy::BruteForce, Policy::IpMicra(5.0)], rounds: 4, seed: 0 };
    let rows = experiment.run(&nodes, &distances, &empty(), &surroundings).unwrap();
    assert!(rows.iter().all(|row| row.seconds == 1.0), "{rows:?}");
    assert_eq!(finished.into_inner(), 8);
}

#[test]
fn crawlers_that_are_spread_stand_farther_apart() {
    let (nodes, distances) = plane(200);
    let closest = |placement| {
        let round = Round::new(&Setup { placement, ..setup(8) }, &nodes, &distances, &empty(), 3).unwrap();
        let pairs = (0..8).flat_map(|a| (0..a).map(move |b| (a, b)));
        pairs.filter_map(|(a, b)| round.between_ms(a, b)).fold(f32::INFINITY, f32::min)
    };
    let (spread, random) = (closest(Placement::Spread), closest(Placement::Random));
    assert!(spread > 2.0 * random && spread > 50.0, "{spread} ms apart, at random {random} ms");
}

/// Three crawlers; A and B stand in one subnet. Sites p and q share another, of which C is near to p and A to q.
fn neighbourhood() -> ((Nodes, Distances), Hierarchy) {
    let nodes = "id,ipv4,is_source,is_target\nA,127.1.0.1,1,0\nB,127.1.9.2,1,0\nC,127.3.0.1,1,0\n\
        p,127.2.1.1,0,1\nq,127.2.2.1,0,1\nr,127.1.9.9,0,1\n";
    let rtt = "A,p,90\nB,p,80\nC,p,10\nA,q,10\nB,q,80\nC,q,70\nA,r,50\nB,r,1\nC,r,50\nA,B,1\n";
    let mut builder = Builder::new();
    for prefix in ["127.1.0.0/16", "127.2.0.0/16"] {
        let further =
            FurtherPrefix { prefix: prefix.parse().unwrap(), registry: "lab".into(), country: "KE".into(), organisation: prefix.into() };
        builder.add_prefix(&further).unwrap();
    }
    (measured(nodes, rtt), builder.finish().unwrap())
}

fn decisions(policy: Policy, whole_subnets: bool) -> Vec<(String, String, u32)> {
    let ((nodes, distances), hierarchy) = neighbourhood();
    let setup = Setup { whole_subnets, ..setup(3) };
    let round = Round::new(&setup, &nodes, &distances, &hierarchy, 5).unwrap();
    let mut delegator = Delegator::new(policy, &round, &hierarchy, 5);
    let name = |address: Option<std::net::IpAddr>| nodes.list().iter().find(|node| node.address == address).unwrap().id.clone();
    let play = |site: usize| {
        let decision = delegator.delegate(site);
        // Sites are told apart by the first crawler's answer, which differs.
        let c = (0..3).find(|crawler| name(round.crawlers[*crawler].address) == "C").unwrap();
        let site = match round.probe_ms(site, c) as u32 {
            10 => "p",
            70 => "q",
            _ => "r",
        };
        (site.to_owned(), name(round.crawlers[decision.crawler].address), decision.probes)
    };
    (0..round.sites.len()).map(play).collect()
}

#[test]
fn what_is_delegated_costs_no_probe_and_a_crawlers_own_subnet_is_its_own() {
    let told = decisions(Policy::BruteForceSubnet, false);
    let of = |site: &str| told.iter().find(|decision| decision.0 == site).unwrap().clone();
    // Its subnet belongs to A or B from the start: who is first by name.
    assert!(of("r").2 == 0 && of("r").1 != "C", "{told:?}");
    // Whoever of p and q comes first decides for both.
    assert_eq!(of("p").2 + of("q").2, 3, "{told:?}");
    assert_eq!(of("p").1, of("q").1, "{told:?}");
    for policy in [Policy::IpMicra(20.0), Policy::RandomOrder(20.0), Policy::PopularFirst(20.0)] {
        let told = decisions(policy, false);
        assert_eq!(told.iter().filter(|decision| decision.2 == 0).count(), 2, "{policy}: {told:?}");
    }
}

#[test]
fn the_daemons_procedure_gives_large_subnets_away_in_parts() {
    let told = decisions(Policy::Nearcrawl(0.01), false);
    let of = |site: &str| told.iter().find(|decision| decision.0 == site).unwrap().clone();
    // B's own /24 is B's, not the whole /16.
    assert_eq!(of("r"), ("r".to_owned(), "B".to_owned(), 0));
    let whole = decisions(Policy::Nearcrawl(0.01), true);
    let owners: Vec<_> = whole.iter().filter(|decision| decision.0 != "r").map(|decision| &decision.1).collect();
    assert_eq!(owners[0], owners[1], "{whole:?}");
}

#[test]
fn downloads_and_oracles_teach_without_probes() {
    let (world, nothing) = (plane(120), empty());
    let play = |downloads_teach, policy| {
        let setup = Setup { downloads_teach, ..setup(8) };
        run(&Experiment { setup, policies: vec![policy], rounds: 2, seed: 4 }, &world, &nothing, 1).remove(0)
    };
    // Neither is counted as a probe, and rules that learn nothing are the same with and without.
    assert_eq!(play(true, Policy::RandomOrder(40.0)), play(false, Policy::RandomOrder(40.0)));
    let [taught, oracle] = [play(true, Policy::Nearcrawl(1.0)), play(false, Policy::Oracle(1.0))];
    assert!(taught.probes_per_site < 8.0 && oracle.probes_per_site < 8.0, "{taught:?}\n{oracle:?}");
    assert_eq!((oracle.policy, oracle.price), ("oracle", Some(1.0)));
}

#[test]
fn brute_force_probes_every_site_even_of_delegated_subnets() {
    let told = decisions(Policy::BruteForce, false);
    let mut told: Vec<_> = told.iter().map(|(site, owner, probes)| (site.as_str(), owner.as_str(), *probes)).collect();
    told.sort_unstable();
    assert_eq!(told, [("p", "C", 3), ("q", "A", 3), ("r", "B", 3)]);
}

#[test]
fn figures_are_those_of_the_decisions() {
    let ((nodes, distances), hierarchy) = neighbourhood();
    let round = Round::new(&Setup { train: 0.0, ..setup(3) }, &nodes, &distances, &hierarchy, 5).unwrap();
    let best = |site: usize| (0..3).min_by(|a, b| round.probe_ms(site, *a).total_cmp(&round.probe_ms(site, *b))).unwrap();
    let worst = |site: usize| (0..3).max_by(|a, b| round.probe_ms(site, *a).total_cmp(&round.probe_ms(site, *b))).unwrap();
    let q = (0..3).find(|site| round.row(*site).contains(&70.0)).unwrap();
    // q goes to the crawler at 80 ms instead of 10; the others to the nearest, at 10 and 1 ms.
    let decide = |site| Decision { crawler: if site == q { worst(site) } else { best(site) }, probes: 1 + site as u32 };
    let score = Score::of(&round, &[decide(0), decide(1), decide(2)]);
    let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
    assert!(near(score.optimal, 2.0 / 3.0) && near(score.within, 2.0 / 3.0) && near(score.probes, 2.0), "{score:?}");
    assert!(near(score.extra_ms, 70.0 / 3.0) && near(score.extra_wrong_ms.unwrap(), 70.0) && near(score.extra_p90_ms, 70.0), "{score:?}");
    // At random: means of (90, 80, 10), (10, 80, 70) and (50, 1, 50).
    assert!(near(score.time_vs_random, 91.0 / (180.0 / 3.0 + 160.0 / 3.0 + 101.0 / 3.0)), "{score:?}");
    assert_eq!(score.unknown_pairs, 2);
}

#[test]
fn who_measured_little_is_no_crawler_and_who_was_not_measured_by_all_no_site() {
    let nodes = "id,ipv4\na,192.0.2.1\nb,198.51.100.1\nc,203.0.113.1\nd,192.0.3.1\n";
    // d measured one of four; a and b measured everybody but a missed c.
    let (nodes, distances) = measured(nodes, "a,b,1\na,d,4\na,a,0\nb,a,1\nb,c,2\nb,d,3\nd,a,1\n");
    assert_eq!(round::able(&nodes, &distances), (vec![0, 1], 1));
    let round = Round::new(&setup(2), &nodes, &distances, &empty(), 1).err();
    assert_eq!(round, Some(ExperimentError::Sites { crawlers: 2, sites: 1 }));
    let round = Round::new(&Setup { train: 0.0, ..setup(2) }, &nodes, &distances, &empty(), 1).unwrap();
    assert_eq!((round.sites.len(), round.sites[0].subnet.to_string().as_str()), (1, "192.0.3.0/24"));
    let refused = Round::new(&setup(3), &nodes, &distances, &empty(), 1).unwrap_err();
    assert_eq!(refused, ExperimentError::Crawlers { asked: 3, there: 2 });
}

#[test]
fn those_who_know_their_distances_are_crawlers_first() {
    let nodes = "id,ipv4,is_source,is_target\na,192.0.2.1,1,0\nb,198.51.100.1,1,0\nc,203.0.113.1,1,1\nd,192.0.3.1,1,1\ne,192.0.4.1,0,1\n";
    let rtt: String = "abcd".chars().flat_map(|from| "cde".chars().map(move |to| format!("{from},{to},5\n"))).collect();
    let (nodes, distances) = measured(nodes, &rtt);
    for (crawlers, unknown) in [(2, 0), (4, 1)] {
        let round = Round::new(&Setup { train: 0.0, ..setup(crawlers) }, &nodes, &distances, &empty(), 9).unwrap();
        assert_eq!(round.unknown_pairs(), unknown, "{crawlers} crawlers");
    }
}

#[test]
fn real_round_trip_times_are_replayed() {
    let nodes = Nodes::read("nodes.csv", ATLAS_NODES, false).unwrap();
    let distances = Distances::read("rtt.csv", ATLAS_RTT, "nodes.csv", &nodes).unwrap();
    assert_eq!((nodes.list().len(), distances.strangers()), (65, 0));
    let policies = vec![
        Policy::IpMicra(50.0),
        Policy::Nearcrawl(0.5),
        Policy::RandomOrder(50.0),
        Policy::PopularFirst(50.0),
        Policy::BruteForce,
        Policy::RandomDelegation,
    ];
    let setup = Setup { placement: Placement::Spread, ..setup(8) };
    let hierarchy = nearcrawl_hierarchy::world().unwrap();
    let rows = run(&Experiment { setup, policies, rounds: 10, seed: 1 }, &(nodes, distances), &hierarchy, 2);
    let [ipmicra, near, random_order, _, brute, random] = &rows[..] else { panic!() };
    assert!(ipmicra.sites > 40 && ipmicra.probes_per_site < random_order.probes_per_site, "{rows:#?}");
    assert!(near.probes_per_site < random_order.probes_per_site && near.mean_extra_ms < random.mean_extra_ms / 3.0, "{rows:#?}");
    assert!(near.download_time_vs_random < 0.5 && brute.download_time_vs_random < near.download_time_vs_random + 1e-9, "{rows:#?}");
    assert!(rows.iter().all(|row| row.optimal <= row.within_10pct_or_2ms && row.within_10pct_or_2ms <= 1.0), "{rows:#?}");
}
