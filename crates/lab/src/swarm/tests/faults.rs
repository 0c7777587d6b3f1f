//! Tests with members that die, return, leave and lose sight of each other: nothing is lost, and nothing recorded fetched again.

use super::*;
use crate::swarm::ledger::Contact;
use nearcrawl_core::membership::HeldBack;
use nearcrawl_model::access_point::AccessPoint;

const SHAPE: TableShape = TableShape { hosts: 20, hosts_per_subnet: 2, pages: 14, shared: 0 };
const PLACES: [u8; 5] = [5, 25, 50, 75, 95];

/// A seeded swarm that has been crawling for so long.
#[track_caller]
fn crawling(seed: u64, places: &[u8], after: Millis) -> (World, Truth) {
    // Old enough that everybody counts, so that silence is judged as in normal operation.
    let (mut world, truth) = swarm(seed, places, &SHAPE, settings(4));
    world.run(2 * MINUTE);
    world.seed(0, urls(&["http://s0.test/"]));
    world.run(after);
    (world, truth)
}

/// What each access point holds, as the first one that runs sees it.
fn holdings(world: &World) -> BTreeMap<Subnet, Option<AccessPoint>> {
    let first = world.running()[0];
    let owner = |subnet: &Subnet| world.crawler(first).unwrap().view().claim_of(subnet).map(|claim| claim.owner);
    subnets(world).into_iter().map(|subnet| (subnet, owner(&subnet))).collect()
}

/// How many pages had been asked for by then.
fn fetched_so_far(world: &World) -> BTreeSet<PageUrl> {
    world.ledger.fetches().into_keys().collect()
}

#[test]
fn killed_its_subnets_find_new_owners_and_nothing_recorded_is_fetched_again() {
    for (seed, after) in [(1, 12_500), (2, 16_000), (3, 20_000), (4, 27_000), (5, 40_700)] {
        let (mut world, truth) = crawling(seed, &PLACES, after);
        let victim = 1 + seed as usize % 4;
        let kept = recorded(&world, victim);
        let before = fetched_so_far(&world);
        world.kill(victim);
        world.run(70_000);
        let results = finish(&mut world, &truth, 20 * MINUTE);
        let twice = before.difference(&kept).cloned().collect();
        assert_fetched(&world, &truth, &twice);
        assert_totals(&results, &truth);
        assert_polite(&world);
        assert_one_owner_each(&world);
    }
}

#[test]
fn two_killed_one_after_the_other_lose_nothing_either() {
    for seed in 1..4 {
        let (mut world, truth) = crawling(seed, &PLACES, 18_000);
        let mut twice = BTreeSet::new();
        for victim in [4, 2] {
            let kept = recorded(&world, victim);
            twice.extend(fetched_so_far(&world).difference(&kept).cloned());
            world.kill(victim);
            world.run(70_000);
        }
        let results = finish(&mut world, &truth, 20 * MINUTE);
        assert_fetched(&world, &truth, &twice);
        assert_totals(&results, &truth);
        assert_polite(&world);
        assert_one_owner_each(&world);
    }
}

#[test]
fn a_member_that_is_back_in_time_moves_nothing() {
    for (seed, away) in [(1, 500), (2, 10_000), (3, 30_000)] {
        let (mut world, truth) = crawling(seed, &PLACES, 20_000);
        let victim = 2;
        let kept = recorded(&world, victim);
        let before = fetched_so_far(&world);
        let mine = holdings(&world);
        world.kill(victim);
        world.run(away);
        world.start(victim);
        let results = finish(&mut world, &truth, 20 * MINUTE);
        for (subnet, owner) in mine {
            let who = world.member(victim);
            assert!(owner != Some(who) || world.owners_of(&subnet) == [Some(who)].into(), "{subnet} moved");
        }
        assert_fetched(&world, &truth, &before.difference(&kept).cloned().collect());
        assert_totals(&results, &truth);
        assert_polite(&world);
        assert_one_owner_each(&world);
    }
}

#[test]
fn a_member_that_is_back_too_late_gives_way_to_its_successors() {
    for (seed, away) in [(1, 50_000), (2, 60_000), (3, 70_000), (4, 200_000)] {
        let (mut world, truth) = crawling(seed, &PLACES, 15_000 + seed * 2_000);
        let victim = 3;
        let kept = recorded(&world, victim);
        let before = fetched_so_far(&world);
        world.kill(victim);
        world.run(away);
        world.start(victim);
        let results = finish(&mut world, &truth, 20 * MINUTE);
        assert_fetched(&world, &truth, &before.difference(&kept).cloned().collect());
        assert_totals(&results, &truth);
        assert_polite(&world);
        assert_one_owner_each(&world);
        // Back for good: it keeps copies for others again, and a second successor finds the true history.
        let kept: BTreeSet<_> = world.ledger.fetches().into_keys().collect();
        world.kill(2);
        world.run(80_000);
        let results = finish(&mut world, &truth, MINUTE);
        assert_totals(&results, &truth);
        assert_eq!(fetched_so_far(&world), kept);
        assert_one_owner_each(&world);
    }
}

#[test]
fn a_member_that_leaves_hands_everything_over_with_its_history() {
    for (seed, after) in [(1, 3_000), (2, 15_000), (3, 25_000), (4, 120_000)] {
        let (mut world, truth) = crawling(seed, &PLACES, after);
        let leaver = 2;
        let mine = holdings(&world);
        world.leave(leaver);
        let who = world.member(leaver);
        assert!(world.run_until(20_000, |world| world.ended.contains(&who)), "it goes within 20 s");
        let all_taken = |world: &World| {
            holdings(world).iter().all(|(subnet, owner)| mine[subnet] != Some(who) || owner.is_some_and(|owner| owner != who))
        };
        assert!(world.run_until(10_000, all_taken), "taken over within 10 s");
        let results = finish(&mut world, &truth, 20 * MINUTE);
        assert_fetched(&world, &truth, &BTreeSet::new());
        assert_totals(&results, &truth);
        assert_polite(&world);
        assert_one_owner_each(&world);
    }
}

#[test]
fn a_member_that_does_not_vote_may_leave_together_with_all_that_have_its_journals() {
    for seed in 1..4 {
        let places: Vec<u8> = (0..12).map(|number| 4 + 8 * number).collect();
        let (mut world, truth) = crawling(seed, &places, 40_000);
        let voters = world.crawler(0).unwrap().view().voters().voters;
        let owns = |number: &usize| holdings(&world).values().any(|owner| *owner == Some(world.member(*number)));
        let leaver = (0..12).find(|number| !voters.contains(&world.member(*number)) && owns(number)).unwrap();
        let replicas = world.crawler(leaver).unwrap().view().replicas();
        let replicas: Vec<_> = (0..12).filter(|number| replicas.contains(&world.member(*number))).collect();
        assert_eq!(replicas.len(), 2);
        world.leave(leaver);
        replicas.into_iter().for_each(|number| world.leave(number));
        let results = finish(&mut world, &truth, 20 * MINUTE);
        assert_fetched(&world, &truth, &BTreeSet::new());
        assert_totals(&results, &truth);
        assert_one_owner_each(&world);
    }
}

#[test]
fn a_member_that_stops_for_a_while_finishes_what_is_under_way_and_comes_back_to_it() {
    for seed in 1..4 {
        let (mut world, truth) = crawling(seed, &PLACES, 18_000);
        let who = world.member(1);
        let mine = holdings(&world);
        world.drain(1);
        assert!(world.run_until(20_000, |world| world.ended.contains(&who)), "it stops within 20 s");
        world.run(10_000);
        world.start(1);
        let results = finish(&mut world, &truth, 20 * MINUTE);
        for (subnet, owner) in mine {
            assert!(owner != Some(who) || world.owners_of(&subnet) == [Some(who)].into(), "{subnet} moved");
        }
        assert_fetched(&world, &truth, &BTreeSet::new());
        assert_totals(&results, &truth);
        assert_polite(&world);
    }
}

#[test]
fn the_smaller_part_fences_itself_before_the_greater_takes_over_and_one_owner_remains() {
    let splits: [(&[usize], &[usize]); 3] = [(&[0, 1], &[2, 3, 4]), (&[3], &[0, 1, 2, 4]), (&[1, 4], &[0, 2, 3])];
    for (seed, (smaller, greater)) in (1..).zip(splits) {
        let (mut world, truth) = crawling(seed, &PLACES, 20_000);
        let before = fetched_so_far(&world);
        world.split(&[smaller, greater]);
        let cut_off = world.now();
        world.run(40_000);
        for number in smaller {
            assert!(matches!(world.crawler(*number).unwrap().view().held_back(), Some(HeldBack::NoLease(_))), "{number} goes on");
        }
        world.run(80_000);
        let who: BTreeSet<_> = smaller.iter().map(|number| world.member(*number)).collect();
        let late = |contact: &&Contact| who.contains(&contact.by) && contact.begin > cut_off.after(45_000);
        assert_eq!(world.ledger.contacts.iter().filter(late).count(), 0, "asked while others may have taken over");
        for subnet in subnets(&world) {
            let seen_by_greater = world.crawler(greater[0]).unwrap().view().claim_of(&subnet).map(|claim| claim.owner);
            assert!(seen_by_greater.is_none_or(|owner| !who.contains(&owner)), "{subnet} was not taken over");
        }
        let unrecorded: BTreeSet<_> = world
            .ledger
            .contacts
            .iter()
            .filter(|contact| who.contains(&contact.by))
            .filter_map(|contact| if let Purpose::Page(url) = &contact.purpose { Some(url.clone()) } else { None })
            .collect();
        world.heal();
        let results = finish(&mut world, &truth, 20 * MINUTE);
        let _ = before;
        assert_fetched(&world, &truth, &unrecorded);
        assert_totals(&results, &truth);
        assert_polite(&world);
        assert_one_owner_each(&world);
    }
}

#[test]
fn of_two_that_lose_sight_of_each_other_the_founder_goes_on_and_the_other_stops() {
    let (mut world, truth) = crawling(1, &[20, 80], 30_000);
    world.split(&[&[0], &[1]]);
    world.run(31_000);
    let held_back = |world: &World, number| world.crawler(number).unwrap().view().held_back();
    assert_eq!(held_back(&world, 0), None);
    assert!(matches!(held_back(&world, 1), Some(HeldBack::NoLease(_))), "{:?}", held_back(&world, 1));
    let stopped = fetched_so_far(&world).len();
    world.run(9 * MINUTE);
    let founder = world.member(0);
    assert!(holdings(&world).values().all(|owner| *owner == Some(founder)), "it takes over");
    assert!(fetched_so_far(&world).len() >= stopped);
    world.heal();
    let results = finish(&mut world, &truth, 20 * MINUTE);
    assert_totals(&results, &truth);
    assert_polite(&world);
    assert_one_owner_each(&world);
}

#[test]
fn of_two_the_other_stops_when_the_founder_is_gone_and_goes_on_when_it_is_back() {
    let (mut world, truth) = crawling(2, &[20, 80], 30_000);
    let kept = recorded(&world, 0);
    let twice = fetched_so_far(&world).difference(&kept).cloned().collect();
    let founder = world.member(0);
    world.kill(0);
    world.run(9 * MINUTE);
    assert!(holdings(&world).values().any(|owner| *owner == Some(founder)), "one of two must not take over");
    assert!(world.crawler(1).unwrap().view().held_back().is_some());
    world.start(0);
    let results = finish(&mut world, &truth, 20 * MINUTE);
    assert_fetched(&world, &truth, &twice);
    assert_totals(&results, &truth);
    assert_polite(&world);
}

#[test]
fn of_two_the_one_that_remains_takes_what_the_other_gave_back() {
    let (mut world, truth) = crawling(3, &[20, 80], 25_000);
    world.leave(1);
    let results = finish(&mut world, &truth, 20 * MINUTE);
    assert_fetched(&world, &truth, &BTreeSet::new());
    assert_totals(&results, &truth);
    assert_polite(&world);
    assert_one_owner_each(&world);
}

#[test]
fn one_alone_that_is_killed_goes_on_where_its_disk_ends() {
    for (seed, after) in [(1, 3_000), (2, 7_000), (3, 15_000)] {
        let (mut world, truth) = crawling(seed, &[50], after);
        let kept = visited(&world, 0).into_iter().map(|(url, _)| url).collect();
        let twice = fetched_so_far(&world).difference(&kept).cloned().collect();
        world.kill(0);
        world.run(3_000);
        world.start(0);
        let results = finish(&mut world, &truth, 20 * MINUTE);
        assert_fetched(&world, &truth, &twice);
        assert_totals(&results, &truth);
        assert_polite(&world);
    }
}

#[test]
fn lost_gossip_and_lost_questions_only_delay() {
    for seed in 1..4 {
        let (mut world, truth) = crawling(seed, &PLACES, 5_000);
        world.gossip_loss = 0.8;
        world.loss = 0.05;
        let results = finish(&mut world, &truth, 30 * MINUTE);
        assert_fetched(&world, &truth, &BTreeSet::new());
        assert_totals(&results, &truth);
        assert_polite(&world);
        assert_one_owner_each(&world);
    }
}

#[test]
fn what_people_named_to_a_member_that_leaves_at_once_is_not_forgotten() {
    for seed in 1..4 {
        let (mut world, truth) = swarm(seed, &PLACES, &SHAPE, settings(4));
        world.run(MINUTE);
        world.seed(2, urls(&["http://s0.test/"]));
        world.leave(2);
        let results = finish(&mut world, &truth, 20 * MINUTE);
        assert_fetched(&world, &truth, &BTreeSet::new());
        assert_totals(&results, &truth);
        assert_polite(&world);
    }
}
