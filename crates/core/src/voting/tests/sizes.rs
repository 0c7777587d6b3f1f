//! Tests of lists that become smaller or larger while voters die or are cut off from each other.

use super::{faults, world::World};
use crate::membership::RosterConfig;
use nearcrawl_model::time::Millis;

const MINUTE: Millis = 60_000;

/// A world of so many that all vote, with some subnets.
fn of_voters(seed: u64, members: usize, subnets: usize) -> World {
    let config = RosterConfig { replace_voter_after: 100_000, ..RosterConfig::default() };
    let mut world = World::new(seed, config, subnets);
    world.trace = super::asked("NEARCRAWL_SEED").is_some();
    world.network.delay = 50;
    for number in 0..members {
        world.add(None);
        world.start(number, number == 0);
    }
    while last(&world).1 < members {
        world.run(world.now + 1_000);
        assert!(world.now < 20 * MINUTE, "they never become {members} voters");
    }
    world.run(world.now + 3 * MINUTE);
    world
}

/// The number of the last list, and how many voters it has.
fn last(world: &World) -> (u64, usize) {
    world.seen.lists.last_key_value().map_or((0, 0), |(number, list)| (*number, list.voters.len()))
}

/// Runs until so many have accepted the list after this one. Returns them, the one that proposed it first.
fn accepted_by(world: &mut World, number: u64, many: usize) -> Vec<usize> {
    let until = world.now + 30 * MINUTE;
    loop {
        world.run(world.now + 5);
        assert!(world.now < until && world.seen.wrong.is_none(), "no list is chosen: {:?}", world.seen.wrong);
        let state = |one: usize| world.machines[one].process.as_ref().map(|process| process.voting.ballots.state());
        let accepted = |one: usize| state(one).filter(|state| state.number == number).and_then(|state| state.accepted.as_ref());
        let mut by: Vec<_> = (0..world.machines.len()).filter(|one| accepted(*one).is_some()).collect();
        if by.len() >= many {
            by.sort_by_key(|one| accepted(*one).is_none_or(|(ballot, _)| ballot.proposer != world.machines[*one].who));
            return by;
        }
    }
}

fn kill(world: &mut World, number: usize) {
    world.stop(number);
    world.machines[number].gone = true;
}

/// Two of five die, and one of the three others does right when all of these have accepted the list of three.
#[test]
fn of_three_that_chose_a_smaller_list_one_that_dies_at_once_keeps_the_others_from_nothing() {
    for seed in 1..5 {
        let mut world = of_voters(seed, 5, 0);
        let (number, _) = last(&world);
        [0, 1].iter().for_each(|one| kill(&mut world, *one));
        let by = accepted_by(&mut world, number, 3);
        kill(&mut world, by[2]);
        let (dead, died) = (world.machines[by[2]].who, world.now);
        world.run(died + 10_000);
        assert_eq!(last(&world), (number + 1, 3), "seed {seed}");
        let stay = [by[0], by[1]].map(|one| world.machines[one].process.as_ref().unwrap());
        assert!(stay.iter().all(|process| process.holds_lease()), "they go on, seed {seed}");
        world.run(died + 50_000);
        for one in [by[0], by[1]] {
            let process = world.machines[one].process.as_ref().unwrap();
            let silent = process.voting.voter.silent_for(process.cx.now.moment, &dead);
            assert!(silent >= 45_000, "it may be taken over from after {silent} ms, seed {seed}");
        }
        assert_eq!(world.seen.wrong, None);
    }
}

/// One of three voters dies, and is replaced; one of the two others dies when both have chosen the list: the newcomer is needed.
#[test]
fn a_newcomer_that_is_needed_when_a_voter_dies_at_once_costs_the_dead_no_time() {
    for seed in 1..5 {
        let mut world = of_voters(seed, 3, 0);
        let (number, _) = last(&world);
        world.add(None);
        world.start(3, false);
        world.run(world.now + 5 * MINUTE);
        kill(&mut world, 2);
        let by = accepted_by(&mut world, number, 2);
        assert!(by.iter().all(|one| *one < 2), "{by:?}");
        kill(&mut world, by[1]);
        let (dead, died) = (world.machines[by[1]].who, world.now);
        world.run(died + 60_000);
        assert_eq!(last(&world), (number + 1, 3), "seed {seed}");
        for one in [by[0], 3] {
            let process = world.machines[one].process.as_ref().unwrap();
            let silent = process.voting.voter.silent_for(process.cx.now.moment, &dead);
            assert!(process.holds_lease() && silent >= 45_000, "{one}: {silent} ms, seed {seed}");
        }
        assert_eq!(world.seen.wrong, None);
    }
}

/// At instants around the one at which the next list is accepted these are cut off from the others, for so long. In the end all is well.
fn is_cut(mut world: World, number: u64, after: Millis, side: &[usize], lasts: Millis) {
    accepted_by(&mut world, number, 1);
    world.run(world.now + after);
    world.network.sides = side.iter().map(|one| (*one, 1)).collect();
    world.run(world.now + lasts);
    faults::recover(&mut world);
    assert_eq!(world.seen.wrong, None, "cut {side:?} after {after} ms for {lasts} ms");
    assert!(last(&world).0 > number);
}

#[test]
fn a_cut_when_a_list_of_five_becomes_one_of_three_makes_no_two_owners() {
    for (after, side, lasts) in [(0, 1, 70_000), (40, 2, 40_000), (80, 1, 200_000), (120, 1, 100_000), (200, 2, 100_000), (400, 1, 100_000)]
    {
        let mut world = of_voters(after, 5, 3);
        let (number, _) = last(&world);
        [0, 4].iter().for_each(|one| kill(&mut world, *one));
        is_cut(world, number, after, &[1, 2, 3][..side], lasts);
    }
}

#[test]
fn a_cut_when_a_list_of_three_becomes_one_of_five_makes_no_two_owners() {
    for (after, side) in [(0, [0, 3, 4]), (50, [1, 3, 4]), (100, [2, 3, 4]), (150, [0, 3, 4]), (250, [1, 3, 4]), (400, [2, 3, 4])] {
        let mut world = of_voters(after, 3, 3);
        let (number, _) = last(&world);
        for new in 3..5 {
            world.add(None);
            world.start(new, false);
        }
        is_cut(world, number, after, &side, 150_000);
    }
}
