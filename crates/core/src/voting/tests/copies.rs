//! Tests of processes with copies of a voter's key that stand still together, for longer than leases last: there is one vote.

use super::{faults, random::Random, world::World};
use crate::membership::RosterConfig;

/// Starts a process with a copy of a voter's key, unless it has one.
pub(super) fn start(world: &mut World, draw: &mut Random) -> Option<usize> {
    let voters = world.seen.lists.last_key_value().map(|(_, list)| list.voters.clone()).filter(|voters| voters.len() > 1)?;
    let has_copy = |key: u8| world.machines.iter().any(|machine| machine.key == key && machine.copy && machine.process.is_some());
    let runs = world.machines.iter().enumerate().filter(|(_, one)| one.process.is_some() && !one.frozen && !one.copy && !one.spent);
    let voting = runs.filter(|(_, one)| voters.contains(&one.who) && !has_copy(one.key)).map(|(number, _)| number);
    let voting: Vec<_> = voting.filter(|number| faults::is_spared(world, *number)).collect();
    if voting.is_empty() {
        return None;
    }
    Some(start_of(world, draw.of(&voting)))
}

/// Starts a process with a copy of a member's key and disk. A voter of whose key there are two processes may come to be without its vote.
pub(super) fn start_of(world: &mut World, original: usize) -> usize {
    world.machines[original].spent = true;
    let copy = world.add(Some(original));
    world.log(|| format!("{copy} is a copy of {original}"));
    world.start(copy, false);
    copy
}

/// A member and its copy, both of which run, stand still.
pub(super) fn stand_still(world: &mut World, draw: &mut Random, until: u64) -> Vec<usize> {
    let running = || world.machines.iter().enumerate().filter(|(_, machine)| machine.process.is_some() && !machine.frozen);
    let original = |key: u8| running().find(|(_, machine)| machine.key == key && !machine.copy).map(|(number, _)| number);
    let pairs: Vec<_> =
        running().filter(|(_, machine)| machine.copy).filter_map(|(copy, machine)| Some((original(machine.key)?, copy))).collect();
    if pairs.is_empty() {
        return Vec::new();
    }
    let (original, copy) = draw.of(&pairs);
    world.log(|| format!("{original} and its copy {copy} stand still until {until}"));
    world.machines[original].frozen = true;
    world.machines[copy].frozen = true;
    vec![original, copy]
}

fn play(seed: u64, trace: bool) -> Option<String> {
    let mut draw = Random::new(seed ^ 0x636f);
    let mut world = World::new(seed, RosterConfig::default(), 3);
    world.trace = trace;
    world.network.delay = draw.of(&[5, 50, 300]);
    for number in 0..draw.of(&[3, 3, 4, 5, 5, 6, 7, 9]) {
        world.add(None);
        world.start(number, number == 0);
    }
    world.run(draw.between(120_000, 400_000));
    let copies: Vec<_> = (0..draw.between(1, 2)).filter_map(|_| start(&mut world, &mut draw)).collect();
    for _ in 0..3 {
        world.run(world.now + draw.between(1_000, 150_000));
        let until = world.now + draw.between(50_000, 240_000);
        let stopped = stand_still(&mut world, &mut draw, until);
        world.run(until);
        world.network.lost = draw.of(&[0, 0, 100, 400]);
        for number in stopped {
            world.run(world.now + draw.of(&[0, 0, 10, 1_000]));
            world.thaw(number);
        }
    }
    world.run(world.now + 100_000);
    for copy in copies {
        world.stop(copy);
        world.machines[copy].gone = true;
    }
    faults::recover(&mut world);
    world.seen.wrong
}

#[test]
fn processes_with_one_key_that_stood_still_together_have_one_vote() {
    if let Some(seed) = super::asked("NEARCRAWL_SEED") {
        assert_eq!(play(seed, true), None);
        return;
    }
    let seeds = super::asked("NEARCRAWL_SEEDS").unwrap_or(super::SEEDS);
    let wrong: Vec<_> = (0..seeds).filter_map(|seed| Some((seed, play(seed, false)?))).collect();
    assert_eq!(wrong, []);
}
