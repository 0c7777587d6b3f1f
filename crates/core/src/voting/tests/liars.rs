//! Tests with voters that accept two claims at one epoch.

use super::world::World;
use crate::membership::RosterConfig;
use nearcrawl_model::{claim::ClaimReason, subnet::Subnet};
use std::collections::BTreeMap;

/// A world of so many, of whom those in `liars` accept whatever is proposed, once `voters` of them vote.
fn with_liars(seed: u64, members: usize, voters: usize, lies: usize) -> (World, Vec<usize>) {
    let (mut world, liars) = with_voters(seed, members, voters, lies);
    for liar in &liars {
        world.machines[*liar].lies = true;
        world.stop(*liar);
        world.start(*liar, false);
    }
    world.run(world.now + 60_000);
    (world, liars)
}

/// The same before any of them lies.
fn with_voters(seed: u64, members: usize, voters: usize, lies: usize) -> (World, Vec<usize>) {
    let config = RosterConfig { vote_after: 30_000, replace_voter_after: 100_000, ..RosterConfig::default() };
    let mut world = World::new(seed, config, 0);
    world.trace = super::asked("NEARCRAWL_SEED").is_some();
    for number in 0..members {
        world.add(None);
        world.start(number, number == 0);
    }
    world.network.delay = 50;
    while world.seen.lists.last_key_value().is_none_or(|(_, list)| list.voters.len() < voters) {
        world.run(world.now + 1_000);
        assert!(world.now < 600_000, "they never become {voters} voters");
    }
    world.run(world.now + 60_000);
    let list = world.seen.lists.last_key_value().unwrap().1.clone();
    let liars: Vec<_> = (0..members).filter(|number| list.contains(&world.machines[*number].who)).take(lies).collect();
    (world, liars)
}

/// Two honest voters claim one subnet at one instant: with the liars' votes both have enough. The overlap ends within ten seconds, the liars
/// lose their votes, and claims are accepted again.
fn two_claims_are_accepted(seed: u64, members: usize, voters: usize, lies: usize) {
    let (mut world, liars) = with_liars(seed, members, voters, lies);
    assert_eq!(world.seen.lists.last_key_value().unwrap().1.voters.len(), voters);
    let list = world.seen.lists.last_key_value().unwrap().1.clone();
    world.seen.twice = Some(BTreeMap::new());
    let subnet: Subnet = "9.0.0.0/24".parse().unwrap();
    world.subnets = vec![subnet];
    let honest: Vec<_> =
        (0..members).filter(|number| list.contains(&world.machines[*number].who) && !liars.contains(number)).take(2).collect();
    for owner in &honest {
        world.machines[*owner].process.as_mut().unwrap().propose(subnet, 1, ClaimReason::Awarded);
        world.after(*owner);
    }
    world.run(world.now + 20_000);
    assert_eq!(world.seen.wrong, None);
    assert_eq!(world.seen.overlaps, 1, "both claims were accepted");
    // Claims hold on: the swarm goes on without the liars' votes.
    world.run(world.now + 100_000);
    let list = world.seen.lists.last_key_value().unwrap().1.clone();
    let listed: Vec<_> = liars.iter().filter(|liar| list.contains(&world.machines[**liar].who)).collect();
    assert_eq!(listed, [&0; 0], "{list:?}");
    let claims = world.seen.claims;
    world.subnets.push("9.0.1.0/24".parse().unwrap());
    world.run(world.now + 120_000);
    assert_eq!(world.seen.wrong, None);
    assert!(world.seen.claims > claims, "nothing is accepted any more");
}

#[test]
fn one_voter_of_three_that_accepts_two_claims_loses_its_vote() {
    two_claims_are_accepted(2, 4, 3, 1);
}

#[test]
fn two_voters_of_five_that_accept_two_claims_lose_their_votes() {
    two_claims_are_accepted(1, 6, 5, 2);
}

/// Two voters of seven tell the next list's voters that everything was accepted for them and that the leases of all others have ended, and
/// have it voted on. The next list begins because an honest voter dies. Nobody loses a lease by that.
fn rows_are_invented(seed: u64) {
    let (mut world, liars) = with_voters(seed, 9, 7, 2);
    world.subnets = (0..6).map(|number| format!("9.0.{number}.0/24").parse().unwrap()).collect();
    world.run(world.now + 120_000);
    let list = world.seen.lists.last_key_value().unwrap().1.clone();
    let terms = |world: &World| {
        let processes = world.machines.iter().enumerate().filter_map(|(number, machine)| Some((number, machine.process.as_ref()?)));
        processes.map(|(number, process)| (number, process.voting.term())).collect::<BTreeMap<_, _>>()
    };
    liars.iter().for_each(|liar| world.machines[*liar].invents = true);
    let dies = (0..9).rev().find(|number| list.contains(&world.machines[*number].who) && !liars.contains(number)).unwrap();
    world.stop(dies);
    world.machines[dies].gone = true;
    let terms_before = terms(&world);
    for _ in 0..100 {
        world.run(world.now + 5_000);
        for liar in &liars {
            for subnet in world.subnets.clone() {
                let Some(process) = world.machines[*liar].process.as_mut() else { continue };
                let epoch = process.last_epoch(&subnet) + 1;
                process.propose(subnet, epoch, ClaimReason::Released);
                world.after(*liar);
            }
        }
    }
    assert_eq!(world.seen.wrong, None, "seed {seed}");
    assert!(world.seen.lists.last_key_value().unwrap().0 > &list.number, "no other list began");
    assert_eq!(terms(&world), terms_before, "a lease ended, seed {seed}");
    liars.iter().for_each(|liar| world.machines[*liar].invents = false);
    let claims = world.seen.claims;
    world.subnets.push("9.0.9.0/24".parse().unwrap());
    world.run(world.now + 240_000);
    assert!(world.seen.claims > claims, "nothing is accepted any more, seed {seed}");
}

#[test]
fn two_voters_of_seven_that_invent_what_was_accepted_make_no_second_owner() {
    let seeds = super::asked("NEARCRAWL_SEEDS").map_or(3, |seeds| seeds / 10);
    (1..=seeds).for_each(rows_are_invented);
}
