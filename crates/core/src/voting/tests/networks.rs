//! Tests that there is one vote for each network, however many keys somebody has there.

use super::world::World;
use crate::membership::RosterConfig;
use nearcrawl_model::{access_point::AccessPoint, time::Millis, vote::VoterList};
use std::net::IpAddr;

const MINUTE: Millis = 60_000;

/// A swarm of so many, of whom those from `crowd` on share a network.
fn of(members: usize, crowd: usize) -> World {
    let mut world = World::new(1, RosterConfig::default(), 0);
    world.network.delay = 50;
    for number in 0..members {
        world.add(None);
        if number >= crowd {
            world.machines[number].address = IpAddr::from([192, 0, 2, number as u8]);
        }
        world.start(number, number == 0);
    }
    world
}

fn last_list(world: &World) -> VoterList {
    world.seen.lists.last_key_value().unwrap().1.clone()
}

fn voters_among(world: &World, list: &VoterList, machines: std::ops::Range<usize>) -> usize {
    machines.filter(|number| list.contains(&world.machines[*number].who)).count()
}

#[test]
fn many_keys_in_one_network_gain_one_vote_and_honest_voters_go_on_when_all_of_them_go() {
    let mut world = of(24, 4);
    world.run(40 * MINUTE);
    assert_eq!(world.seen.wrong, None);
    for list in world.seen.lists.values() {
        assert!(voters_among(&world, list, 4..24) <= 1, "{list:?}");
    }
    assert_eq!(last_list(&world).voters.len(), 5);
    for number in 4..24 {
        world.stop(number);
        world.machines[number].gone = true;
    }
    world.run(world.now + 3 * MINUTE);
    for number in 0..4 {
        assert!(world.machines[number].process.as_ref().unwrap().holds_lease(), "{number} is fenced");
    }
    assert_eq!(world.seen.wrong, None);
}

#[test]
fn voters_that_move_into_one_network_make_room_for_another() {
    let mut world = of(4, 4);
    world.run(10 * MINUTE);
    let list = last_list(&world);
    assert_eq!(list.voters.len(), 3);
    let voters: Vec<usize> = (0..4).filter(|number| list.contains(&world.machines[*number].who)).collect();
    let other = (0..4).find(|number| !voters.contains(number)).unwrap();
    for voter in &voters[1..] {
        world.machines[*voter].address = IpAddr::from([192, 0, 2, *voter as u8]);
    }
    world.run(world.now + 2 * MINUTE);
    let next = last_list(&world);
    assert!(next.number > list.number && next.voters.len() == 3 && next.contains(&world.machines[other].who), "{next:?}");
    assert_eq!(world.seen.wrong, None);
}

#[test]
fn a_voter_accepts_no_list_with_two_newcomers_of_one_network_that_it_saw() {
    let mut world = of(8, 5);
    // Nobody proposes yet, and three quarters of the time are enough to agree.
    world.run(28_000);
    let members: Vec<AccessPoint> = world.machines.iter().map(|machine| machine.who).collect();
    let founder = world.machines[0].process.as_ref().unwrap();
    assert_eq!(founder.voting.list().unwrap().voters, [members[0]]);
    let agrees = |newcomers: [usize; 2]| {
        let mut voters = vec![members[0], members[newcomers[0]], members[newcomers[1]]];
        voters.sort_unstable();
        let next = VoterList { number: 2, voters, age: 28 };
        founder.voting.agrees(founder.cx.now.moment, members[0], members[0], &next)
    };
    assert!(agrees([1, 2]) && agrees([3, 5]) && agrees([6, 4]));
    assert!(!agrees([5, 6]) && !agrees([7, 5]));
}
