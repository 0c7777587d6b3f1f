//! Tests that a successor hears who has what was recorded from the one voter that knows.

use super::world::World;
use crate::membership::RosterConfig;
use nearcrawl_model::{claim::ClaimReason, subnet::Subnet};

/// Four of whom three vote; the fourth owns a subnet. Returns the world, the owner and the voters.
fn with_owner(seed: u64) -> (World, Subnet, usize, Vec<usize>) {
    let mut world = World::new(seed, RosterConfig { vote_after: 30_000, ..RosterConfig::default() }, 0);
    world.trace = super::asked("NEARCRAWL_SEED").is_some();
    for number in 0..4 {
        world.add(None);
        world.start(number, number == 0);
    }
    world.network.delay = 50;
    while world.seen.lists.last_key_value().is_none_or(|(_, list)| list.voters.len() < 3) {
        world.run(world.now + 1_000);
        assert!(world.now < 600_000, "they never become three voters");
    }
    world.run(world.now + 60_000);
    let list = world.seen.lists.last_key_value().unwrap().1.clone();
    let (voters, others): (Vec<_>, Vec<_>) = (0..4).partition(|number| list.contains(&world.machines[*number].who));
    let subnet: Subnet = "9.0.0.0/24".parse().unwrap();
    claim(&mut world, others[0], subnet, 1, ClaimReason::Awarded);
    world.run(world.now + 60_000);
    assert!(number(&world, voters[2], others[0]) > Default::default(), "its replicas are named");
    (world, subnet, others[0], voters)
}

/// Has a machine claim a subnet until that is accepted.
fn claim(world: &mut World, owner: usize, subnet: Subnet, epoch: u64, reason: ClaimReason) {
    let (before, until) = (world.seen.claims, world.now + 300_000);
    while world.seen.claims == before && world.seen.wrong.is_none() {
        assert!(world.now < until, "it is not accepted");
        world.machines[owner].process.as_mut().unwrap().propose(subnet, epoch, reason);
        world.after(owner);
        world.run(world.now + 1_000);
    }
}

/// Which of an owner's sets a voter knows.
fn number(world: &World, voter: usize, owner: usize) -> nearcrawl_model::vote::SetNumber {
    let voter = &world.machines[voter].process.as_ref().unwrap().voting.voter;
    voter.replicas_of(&world.machines[owner].who).map(|set| set.number()).unwrap_or_default()
}

#[test]
fn an_owner_that_changed_its_replicas_while_one_voter_did_not_hear_it_leaves_a_successor_that_does() {
    for seed in 1..6 {
        let (mut world, subnet, owner, voters) = with_owner(seed);
        let [knows, dies, cut] = voters[..] else { panic!("{voters:?}") };
        world.network.cuts.extend([(owner, cut), (cut, owner)]);
        world.run(world.now + 90_000);
        assert!(number(&world, cut, owner) < number(&world, knows, owner), "replicas have changed");
        // Of the quorum that is left one knows, and only from its disk.
        for number in [owner, dies, knows] {
            world.stop(number);
        }
        world.run(world.now + 5_000);
        world.start(knows, false);
        world.run(world.now + 50_000);
        claim(&mut world, cut, subnet, 2, ClaimReason::OwnerDead);
        assert_eq!(world.seen.wrong, None);
        // The successor dies before anything came: the next one hears of the same.
        world.stop(cut);
        world.start(dies, false);
        world.run(world.now + 60_000);
        claim(&mut world, knows, subnet, 3, ClaimReason::OwnerDead);
        assert_eq!(world.seen.wrong, None);
    }
}
