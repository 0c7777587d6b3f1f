//! Tests that a plan agrees with the records it is made from.

use super::*;
use crate::crawl::site::Site;
use nearcrawl_model::{ids::SiteNumber, journal::JournalKey, time::WallTime};

const PACE: Pace = Pace { min_delay_ms: 2_000, delay_factor: 10, max_parallel: 4 };

/// A record with these requests and new external hosts at each level; each answer took 100 ms and 1,000 bytes.
fn record(host: &str, levels: &[(u64, u64)]) -> ServerRecord {
    let key = JournalKey { subnet: "9.0.0.0/24".parse().unwrap(), host: host.parse().unwrap(), run: 1 };
    let mut record = Site::open(key, "9.0.0.1".parse().unwrap(), host.parse().unwrap(), SiteNumber(1), WallTime(0)).record;
    let level = |(requests, external_hosts): &(u64, u64)| LevelCounts {
        pages: *requests,
        requests: *requests,
        bytes: requests * 1_000,
        busy_ms: requests * 100,
        external_hosts: *external_hosts,
    };
    record.levels = levels.iter().map(level).collect();
    record.requests = levels.iter().map(|(requests, _)| requests).sum();
    record.state = RunState::Complete;
    record
}

fn basis() -> Basis {
    let deep = RunState::CutByDepth;
    let records = vec![
        record("a.ke", &[(2, 5), (8, 10), (30, 4), (60, 1)]),
        ServerRecord { state: deep, ..record("b.ke", &[(2, 0), (18, 0), (80, 0)]) },
        record("c.ke", &[(1, 0)]),
    ];
    Basis::of_records(records).unwrap()
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

#[test]
fn the_least_depth_that_finds_enough_is_chosen_and_what_it_costs_is_told() {
    let plan = plan(&basis(), 0.75, PACE, &Targets::Any);
    assert_eq!(plan.grounds, Grounds::Measured { servers: 3, cut_short: 1 });
    let curve: Vec<_> =
        plan.depths.iter().map(|at| (at.depth, (at.load_ratio * 201.0).round(), (at.coverage_ratio * 20.0).round())).collect();
    assert_eq!(curve, [(0, 5.0, 5.0), (1, 31.0, 15.0), (2, 141.0, 19.0), (3, 201.0, 20.0)]);
    assert_eq!(plan.chosen.depth, 1, "15 of 20 hosts are three quarters");
    assert_eq!(super::plan(&basis(), 0.25, PACE, &Targets::Any).chosen.depth, 0, "the starting pages find a quarter");
    assert_eq!(super::plan(&basis(), 0.76, PACE, &Targets::Any).chosen.depth, 2);
    assert_eq!(super::plan(&basis(), 1.0, PACE, &Targets::Any).chosen.depth, 3);
    let requests = plan.server.requests;
    assert!(near(requests.mean, 31.0 / 3.0), "{requests:?}");
    assert_eq!((requests.median, requests.p90, requests.max), (Some(10.0), Some(20.0), Some(20.0)));
    assert!(near(plan.server.bytes.mean, 31_000.0 / 3.0));
    // 100 ms to answer, then a rest of 2 s: ten times the answer is less.
    assert_eq!(plan.server.duration_ms.max, Some(20.0 * 2_100.0));
    assert_eq!(plan.total, None);
}

#[test]
fn known_hosts_cost_what_their_records_say_and_others_the_average() {
    let hosts = ["a.ke", "b.ke", "new.ke"].map(|host| host.parse().unwrap()).into();
    let plan = plan(&basis(), 0.75, PACE, &Targets::Hosts(hosts));
    let total = plan.total.unwrap();
    assert_eq!((total.servers, total.known, total.requests, total.bytes), (3, 2, 10 + 20 + 10, 30_000 + 10_333));
    assert_eq!(total.busy_ms, 3_000 + 1_033);
    assert_eq!(total.duration_ms, 42_000, "as long as the slowest, for four at once are more than enough");
    let many = super::plan(&basis(), 0.75, PACE, &Targets::Count(4_000)).total.unwrap();
    assert_eq!((many.requests, many.duration_ms), (41_333, (4_000.0 * 31.0 / 3.0 * 2_100.0 / 4.0_f64).round() as u64));
}

#[test]
fn a_crawl_delay_makes_a_server_slower() {
    let slow = ServerRecord { crawl_delay_ms: Some(10_000), ..record("a.ke", &[(2, 1), (8, 1)]) };
    let plan = plan(&Basis::of_records(vec![slow]).unwrap(), 1.0, PACE, &Targets::Any);
    assert_eq!(plan.server.duration_ms.max, Some(10.0 * 10_100.0));
}

#[test]
fn records_without_a_find_are_no_ground() {
    assert!(Basis::of_records(vec![record("b.ke", &[(2, 0), (18, 0)])]).is_none());
    assert!(Basis::of_records(Vec::new()).is_none());
}

#[test]
fn the_papers_curve_has_the_papers_anchors() {
    let basis = Basis::of_paper();
    let at = |wanted| plan(&basis, wanted, PACE, &Targets::Any).chosen;
    let eight = plan(&basis, 1.0, PACE, &Targets::Any).depths[8];
    assert!(eight.depth == 8 && (eight.load_ratio - 0.8).abs() < 0.005 && eight.coverage_ratio >= 0.99, "{eight:?}");
    assert!((0.5..=0.55).contains(&at(0.8).load_ratio), "{:?}", at(0.8));
    assert_eq!((at(0.99).depth, at(1.0).depth), (8, 9));
    let last = plan(&basis, 1.0, PACE, &Targets::Any).depths.last().copied().unwrap();
    assert!(last.depth == 20 && near(last.load_ratio, 1.0) && near(last.coverage_ratio, 1.0) && near(last.requests, 100.0), "{last:?}");
}
