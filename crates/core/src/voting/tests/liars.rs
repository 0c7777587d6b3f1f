//! Voters that accept two claims at one epoch.

use super::world::World;
use crate::membership::RosterConfig;
use nearcrawl_model::{claim::ClaimReason, subnet::Subnet};
use std::collections::BTreeMap;

/// A world of so many, of whom those in `liars` accept whatever is proposed, once `voters` of them vote.
fn with_liars(members: usize, voters: usize, lies: usize) -> (World, Vec<usize>) {
    let mut world = World::new(1, RosterConfig { vote_after: 30_000, ..RosterConfig::default() }, 0);
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
    for liar in &liars {
        world.machines[*liar].lies = true;
        world.stop(*liar);
        world.start(*liar, false);
    }
    world.run(world.now + 60_000);
    (world, liars)
}

/// Two honest voters claim one subnet at one instant: with the liars' votes both have enough. The overlap ends within ten seconds, the liars
/// lose their votes, and claims are accepted again.
fn two_claims_are_accepted(members: usize, voters: usize, lies: usize) {
    let (mut world, liars) = with_liars(members, voters, lies);
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
    two_claims_are_accepted(4, 3, 1);
}

#[test]
fn two_voters_of_five_that_accept_two_claims_lose_their_votes() {
    two_claims_are_accepted(6, 5, 2);
}
