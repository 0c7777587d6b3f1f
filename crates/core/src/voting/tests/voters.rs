//! Tests of who votes when members come for a while, leave, or lose their disks, one after the other.

use super::{process::Disk, world::World};
use crate::membership::RosterConfig;
use nearcrawl_model::{
    time::Millis,
    vote::{MAX_VOTERS, VoterList},
};

const MINUTE: Millis = 60_000;

fn swarm(members: usize) -> World {
    let mut world = World::new(1, RosterConfig::default(), 0);
    world.network.delay = 50;
    for number in 0..members {
        world.add(None);
        world.start(number, number == 0);
    }
    world
}

fn last_list(world: &World) -> VoterList {
    world.seen.lists.last_key_value().unwrap().1.clone()
}

fn without_lease(world: &World, among: &[usize]) -> Vec<usize> {
    among.iter().copied().filter(|number| !world.machines[*number].process.as_ref().is_some_and(|one| one.holds_lease())).collect()
}

/// These leave at once or one after the other, and end when they may: the others go on.
fn others_go_on_when(leavers: &[usize], apart: Millis, members: usize) {
    let mut world = swarm(members);
    world.run(20 * MINUTE);
    for leaver in leavers {
        world.machines[*leaver].gone = true;
        world.machines[*leaver].process.as_mut().unwrap().leave();
        world.run(world.now + apart);
    }
    world.run(world.now + 5 * MINUTE);
    let others: Vec<_> = (0..members).filter(|number| !leavers.contains(number)).collect();
    let list = last_list(&world);
    assert_eq!(without_lease(&world, &others), [0; 0], "{leavers:?} of {members} left {apart} ms apart: {list:?}");
    assert_eq!(world.seen.wrong, None);
}

#[test]
fn members_that_leave_one_after_the_other_or_at_once_stop_nobody() {
    others_go_on_when(&[0, 1], 2 * MINUTE, 3);
    others_go_on_when(&[2, 1], 90_000, 3);
    others_go_on_when(&[0, 1], 0, 3);
    others_go_on_when(&[0, 1, 2], 0, 5);
    others_go_on_when(&[4, 3, 2, 1], 2 * MINUTE, 5);
    others_go_on_when(&[1, 3, 5], 0, 7);
}

#[test]
fn a_founder_that_leaves_at_once_leaves_the_swarm_to_who_is_there() {
    let mut world = swarm(1);
    world.run(30 * MINUTE);
    for number in 1..3 {
        world.add(None);
        world.start(number, false);
    }
    world.run(world.now + 20_000);
    world.machines[0].gone = true;
    world.machines[0].process.as_mut().unwrap().leave();
    world.run(world.now + 5 * MINUTE);
    assert_eq!(without_lease(&world, &[1, 2]), [0; 0], "{:?}", last_list(&world));
    assert_eq!(world.seen.wrong, None);
}

#[test]
fn of_three_one_loses_its_disk_and_later_another_and_all_go_on() {
    let mut world = swarm(3);
    world.run(10 * MINUTE);
    for wiped in 0..3 {
        world.stop(wiped);
        world.machines[wiped].disk = Disk::default();
        world.start(wiped, false);
        world.run(world.now + 10 * MINUTE);
        assert_eq!(without_lease(&world, &[0, 1, 2]), [0; 0], "after {wiped}: {:?}", last_list(&world));
        world.run(world.now + 60 * MINUTE);
    }
    assert!(world.seen.lists.len() < 12, "a list is not renewed again and again: {}", world.seen.lists.len());
    assert_eq!(world.seen.wrong, None);
}

#[test]
fn of_seven_voters_three_that_die_together_or_one_after_the_other_stop_nobody_for_long() {
    for apart in [0, 3 * MINUTE] {
        let mut world = swarm(7);
        world.run(20 * MINUTE);
        assert_eq!(last_list(&world).voters.len(), 7);
        for gone in 0..3 {
            world.stop(gone);
            world.machines[gone].gone = true;
            world.run(world.now + apart);
        }
        world.run(world.now + 13 * MINUTE);
        assert_eq!(without_lease(&world, &[3, 4, 5, 6]), [0; 0], "{apart} ms apart: {:?}", last_list(&world));
        assert_eq!(world.seen.wrong, None);
    }
}

#[test]
fn three_of_seven_that_are_cut_off_choose_no_list() {
    let mut world = swarm(7);
    world.run(20 * MINUTE);
    for gone in 3..7 {
        world.stop(gone);
    }
    let before = last_list(&world);
    world.run(world.now + 40 * MINUTE);
    assert_eq!((without_lease(&world, &[0, 1, 2]), last_list(&world)), (vec![0, 1, 2], before));
}

#[test]
fn most_voters_or_the_only_one_lose_their_disks_at_once_and_all_go_on() {
    for (members, wiped) in [(1, vec![0]), (2, vec![0]), (3, vec![0, 2]), (3, vec![0, 1, 2]), (5, vec![0, 1, 2]), (7, vec![1, 2, 3])] {
        let mut world = swarm(members);
        world.run(20 * MINUTE);
        for wiped in &wiped {
            world.stop(*wiped);
            world.machines[*wiped].disk = Disk::default();
        }
        // They find the others again, and with them the list: of one alone nobody else knows it.
        wiped.iter().for_each(|wiped| world.start(*wiped, members == 1));
        world.run(world.now + 8 * MINUTE);
        let all: Vec<_> = (0..members).collect();
        let knows = wiped.len() < members || members == 1;
        assert!(!knows || without_lease(&world, &all).is_empty(), "{wiped:?} of {members}: {:?}", last_list(&world));
        assert_eq!(world.seen.wrong, None, "{wiped:?} of {members}");
    }
}

#[test]
fn newcomers_that_vanish_together_after_a_quarter_of_an_hour_stop_nobody() {
    for old in 3..=5 {
        let mut world = swarm(old);
        world.run(60 * MINUTE);
        for new in old..old + 4 {
            world.add(None);
            world.start(new, false);
        }
        world.run(world.now + 15 * MINUTE);
        for new in old..old + 4 {
            world.stop(new);
            world.machines[new].gone = true;
        }
        world.run(world.now + 3 * MINUTE);
        let stay: Vec<_> = (0..old).collect();
        assert_eq!(without_lease(&world, &stay), [0; 0], "of {old}: {:?}", last_list(&world));
        assert_eq!(world.seen.wrong, None);
    }
}

/// Of three one leaves, and three others that came after three minutes go together when they have held leases for half of the swarm's age.
#[test]
fn newcomers_that_take_the_place_of_one_that_leaves_and_vanish_together_stop_nobody() {
    let mut world = swarm(3);
    world.run(3 * MINUTE);
    for new in 3..6 {
        world.add(None);
        world.start(new, false);
    }
    world.run(world.now + 30_000);
    world.machines[0].gone = true;
    world.machines[0].process.as_mut().unwrap().leave();
    world.run(world.now + 4 * MINUTE);
    let list = last_list(&world);
    for new in 3..6 {
        world.stop(new);
        world.machines[new].gone = true;
    }
    world.run(world.now + 3 * MINUTE);
    assert_eq!(without_lease(&world, &[1, 2]), [0; 0], "{list:?}");
    assert_eq!(world.seen.wrong, None);
}

/// Voters that start again do not know how old the swarm is: they took everybody for one of those who began it.
#[test]
fn newcomers_that_came_before_the_voters_started_again_and_vanish_together_stop_nobody() {
    let mut world = swarm(3);
    world.run(10 * MINUTE);
    for new in 3..7 {
        world.add(None);
        world.start(new, false);
    }
    (0..3).for_each(|old| world.stop(old));
    world.run(world.now + MINUTE);
    (0..3).for_each(|old| world.start(old, false));
    world.run(world.now + 4 * MINUTE);
    let list = last_list(&world);
    for new in 3..7 {
        world.stop(new);
        world.machines[new].gone = true;
    }
    world.run(world.now + 3 * MINUTE);
    assert_eq!(without_lease(&world, &[0, 1, 2]), [0; 0], "{list:?}");
    assert_eq!(world.seen.wrong, None);
}

#[test]
fn a_voter_that_was_away_when_its_list_came_into_force_votes_when_it_is_back() {
    let mut world = swarm(6);
    world.run(20 * MINUTE);
    let voters =
        |world: &World, list: &VoterList| -> Vec<usize> { (0..6).filter(|number| list.contains(&world.machines[*number].who)).collect() };
    let list = last_list(&world);
    let (away, leaver) = match voters(&world, &list)[..] {
        [away, leaver, _, _, _] => (away, leaver),
        _ => panic!("one of six is left to take the place of one that leaves: {list:?}"),
    };
    world.stop(away);
    world.machines[leaver].gone = true;
    world.machines[leaver].process.as_mut().unwrap().leave();
    world.run(world.now + 3 * MINUTE);
    let next = last_list(&world);
    assert!(next.number > list.number && next.contains(&world.machines[away].who), "{next:?}");
    // Of five voters two are left when it is back: as they are no quorum, no list can follow.
    for gone in voters(&world, &next).into_iter().filter(|number| *number != away).take(2) {
        world.stop(gone);
        world.machines[gone].gone = true;
    }
    world.run(world.now + MINUTE);
    world.start(away, false);
    world.run(world.now + 2 * MINUTE);
    let left: Vec<_> = (0..6).filter(|number| world.machines[*number].process.is_some()).collect();
    assert_eq!(without_lease(&world, &left), [0; 0], "{:?}", last_list(&world));
    assert_eq!(world.seen.wrong, None);
}

/// An owner that is no voter ends, and half a minute later so many voters leave. For how long each voter of the next list has counted the
/// owner's silence 20 s later, the least and the greatest, in seconds; and how many voters there are.
fn silence_after_a_change(members: usize, leavers: usize) -> (Millis, Millis, usize) {
    let mut world = swarm(members);
    world.run(20 * MINUTE);
    let list = last_list(&world);
    let listed = |world: &World, number: usize| list.contains(&world.machines[number].who);
    let (voters, others): (Vec<_>, Vec<_>) = (0..members).partition(|number| listed(&world, *number));
    let dead = others[0];
    world.stop(dead);
    world.machines[dead].gone = true;
    world.run(world.now + 30_000);
    for leaver in &voters[..leavers] {
        world.machines[*leaver].gone = true;
        world.machines[*leaver].process.as_mut().unwrap().leave();
    }
    world.run(world.now + 25_000);
    let next = last_list(&world);
    assert!(next.number > list.number, "{next:?}");
    let who = world.machines[dead].who;
    let processes = world.machines.iter().filter(|machine| next.contains(&machine.who)).filter_map(|machine| machine.process.as_ref());
    let silent: Vec<_> = processes.map(|process| process.voting.voter.silent_for(process.cx.now.moment, &who) / 1_000).collect();
    assert_eq!(world.seen.wrong, None);
    (*silent.iter().min().unwrap(), *silent.iter().max().unwrap(), next.voters.len())
}

#[test]
fn a_change_of_voters_gives_the_dead_their_time_again_only_if_a_quorum_of_those_that_stay_shares_no_voter_with_a_lease() {
    let (newcomer, stayed, voters) = silence_after_a_change(9, 1);
    assert!(voters == 7 && newcomer < 26 && stayed >= 50, "{newcomer} s, {stayed} s, {voters}");
    let (least, _, voters) = silence_after_a_change(8, 1);
    assert!(voters == 5 && least >= 50, "of any three one is among the five of seven that renewed it: {least} s");
    let (least, most, voters) = silence_after_a_change(6, 2);
    assert!(
        voters == 3 && least <= most && most < 26,
        "two of three may not be among the three of five that renewed it: {least} s, {most} s"
    );
}

#[test]
fn a_list_that_cannot_be_counted_on_is_none() {
    let list = last_list(&swarm(1));
    assert!(list.is_well_formed());
    assert!(!VoterList { age: u64::MAX, ..list.clone() }.is_well_formed(), "older than any swarm");
    assert!(!VoterList { voters: vec![list.voters[0]; MAX_VOTERS + 1], ..list.clone() }.is_well_formed());
    assert!(!VoterList { voters: Vec::new(), ..list }.is_well_formed());
}

/// Three of nine leave, half a minute apart. When a list of the first, second and third kind without them is in force, in seconds.
#[test]
fn one_list_at_most_follows_at_once_because_of_voters_that_leave() {
    let mut world = swarm(9);
    world.run(20 * MINUTE);
    let list = last_list(&world);
    let leavers: Vec<_> = (0..9).filter(|number| list.contains(&world.machines[*number].who)).take(3).collect();
    let began = world.now;
    let mut changed = Vec::new();
    let mut run = |world: &mut World, until: Millis| {
        while world.now < began + until {
            world.run(world.now + 1_000);
            if last_list(world).number > list.number + changed.len() as u64 {
                changed.push((world.now - began) / 1_000);
            }
        }
        changed.clone()
    };
    for leaver in leavers {
        world.machines[leaver].gone = true;
        world.machines[leaver].process.as_mut().unwrap().leave();
        let until = world.now - began + 30_000;
        run(&mut world, until);
    }
    let changed = run(&mut world, 5 * MINUTE);
    assert!(matches!(changed[..], [..30, 30..60, 120..150]), "{changed:?}");
    assert_eq!(world.seen.wrong, None);
}
