//! Tests that the reference says of made-up webs what they were made for.

use super::*;
use crate::census::{
    plan::CensusPlan,
    world::{World, host::Nature},
};
use std::collections::BTreeSet;

fn plan(seed: u64, hosts: usize, runs: u32) -> CensusPlan {
    CensusPlan { seed, hosts, daemons: 4, runs, kills: 0 }
}

#[test]
fn every_host_is_found_in_its_time_and_those_beyond_the_limit_never() {
    let sizes = [(1, 20, 1), (2, 20, 2), (3, 60, 2), (4, 150, 3), (5, 400, 2)];
    for (seed, hosts, runs) in sizes.into_iter().chain((10..40).map(|seed| (seed, 19 + seed as usize, 2))) {
        let world = World::new(plan(seed, hosts, runs), 90);
        assert_eq!(world.hosts.len(), hosts);
        let reference = Reference::of(&world);
        for host in &world.hosts {
            for run in 1..=runs {
                let expected = reference.run(run).servers.get(&host.name);
                let is_there = host.nature != Nature::Hidden && host.born <= run;
                assert_eq!(expected.is_some(), is_there, "seed {seed}, run {run}: {host:?}");
            }
        }
        let first = &reference.run(1).servers;
        let over = first.values().filter(|server| server.held_hosts > 0).map(|server| world.host(&server.host).unwrap().nature);
        assert!(over.into_iter().all(|nature| nature == Nature::Portal), "seed {seed}: no other one names too many hosts");
        let words: BTreeSet<String> = first.values().map(|server| server.value("status")).collect();
        let wanted = ["up", "no-pages", "robots", "robots-unavailable", "down: certificate-expired", "down: head-timeout"];
        assert!(wanted.iter().all(|word| words.contains(*word)), "seed {seed}: {words:?}");
        let portal = world.hosts.iter().find(|host| host.nature == Nature::Portal).unwrap();
        assert!(first[&portal.name].held_hosts > 0 && first[&portal.name].state == "held-back", "seed {seed}");
    }
}

#[test]
fn equal_seeds_make_equal_webs_and_what_changes_does() {
    let make = |seed| format!("{:?}", World::new(plan(seed, 60, 2), 90));
    assert!(make(7) == make(7) && make(7) != make(8));
    let world = World::new(plan(5, 400, 2), 90);
    let reference = Reference::of(&world);
    let changes = reference.run(2).servers.values().filter_map(|server| server.compared);
    let sums = changes.fold([0; 5], |sums, changes| std::array::from_fn(|at| sums[at] + changes[at]));
    assert!(sums.iter().all(|sum| *sum > 0), "before, new, changed, unchanged and gone: {sums:?}");
    let trend = trend(&reference, 2, 1, 2, "software");
    assert!(trend["total"]["servers_elsewhere"].as_u64() > Some(0), "{trend}");
    assert!(trend["left_out"]["not_measured_in_to"].as_u64() > Some(0) && trend["left_out"]["only_in_from"].as_u64() > Some(0), "{trend}");
}
