//! Tests of the paper's procedure, step by step (IPMicra §4.2; IP-20 to IP-25 in docs/ALGORITHMS.md).

use super::{hierarchy, member, subnet};
use crate::delegation::{Delegated, Step, Verdict, ipmicra::IpMicra};
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{access_point::AccessPoint, subnet::Subnet};
use std::collections::BTreeMap;

const THRESHOLD_US: u32 = 50_000;

/// Germany with two providers and a company that is in Japan, too.
fn world() -> Hierarchy {
    hierarchy(&[
        ("ripencc", "DE", "10.1.0.0", 256, "first"),
        ("ripencc", "DE", "10.1.1.0", 256, "first"),
        ("ripencc", "DE", "10.2.0.0", 256, "second"),
        ("ripencc", "DE", "10.3.0.0", 256, "company"),
        ("apnic", "JP", "10.4.0.0", 256, "japanese"),
        ("arin", "US", "10.5.0.0", 256, "american"),
    ])
}

struct Played {
    asked: Vec<u8>,
    verdict: Verdict,
}

/// Plays the procedure for a subnet: who holds what, and what each of `live` would measure in milliseconds.
fn play(hierarchy: &Hierarchy, holders: &[(&str, u8)], wanted: &str, live: &[(u8, Option<u32>)]) -> Played {
    let mut delegated = Delegated::default();
    for (held, holder) in holders {
        let position = hierarchy.position(subnet(held)).unwrap();
        delegated.set(position.0, Some(member(*holder)));
    }
    let answers: BTreeMap<AccessPoint, Option<u32>> = live.iter().map(|(n, ms)| (member(*n), ms.map(|ms| ms * 1000))).collect();
    let live: Vec<AccessPoint> = live.iter().map(|(n, _)| member(*n)).collect();
    let wanted: Subnet = subnet(wanted);
    let mut search = IpMicra::new(wanted, THRESHOLD_US);
    let mut asked = Vec::new();
    for _ in 0..=live.len() {
        match search.next(hierarchy, &delegated, &live) {
            Step::Settle(verdict) => return Played { asked, verdict },
            Step::Ask(who) => {
                asked.push(who.0[0]);
                search.answer(who, answers[&who]);
            }
        }
    }
    panic!("a member was asked twice: {asked:?}");
}

#[test]
fn a_company_that_one_crawler_holds_goes_to_it_unprobed() {
    let played = play(&world(), &[("10.1.0.0/24", 2), ("10.2.0.0/24", 1)], "10.1.1.0/24", &[(1, Some(5)), (2, Some(400))]);
    assert_eq!((played.asked.len(), played.verdict.owner, played.verdict.rtt_us), (0, member(2), None));
}

#[test]
fn of_several_that_hold_a_company_the_first_under_the_threshold_gets_it_or_else_the_fastest() {
    let world = hierarchy(&[
        ("ripencc", "DE", "10.1.0.0", 256, "first"),
        ("ripencc", "DE", "10.1.1.0", 256, "first"),
        ("ripencc", "DE", "10.1.2.0", 256, "first"),
        ("ripencc", "DE", "10.2.0.0", 256, "second"),
    ]);
    let holders = [("10.1.0.0/24", 1), ("10.1.1.0/24", 2), ("10.2.0.0/24", 3)];
    let first = play(&world, &holders, "10.1.2.0/24", &[(1, Some(50)), (2, Some(5)), (3, Some(1))]);
    assert_eq!((first.asked, first.verdict.owner), (vec![1], member(1)), "at the threshold is under it");
    let fastest = play(&world, &holders, "10.1.2.0/24", &[(1, Some(90)), (2, Some(80)), (3, Some(1))]);
    assert_eq!((fastest.asked, fastest.verdict.owner), (vec![1, 2], member(2)), "others are not asked");
    assert_eq!((fastest.verdict.runner_up, fastest.verdict.probes), (Some(member(1)), 2));
}

#[test]
fn candidates_come_from_the_country_then_from_the_world_then_those_who_hold_nothing() {
    let holders = [("10.4.0.0/24", 4), ("10.1.0.0/24", 2), ("10.2.0.0/24", 1), ("10.1.1.0/24", 2)];
    let live = [(1, Some(120)), (2, Some(110)), (4, Some(100)), (9, Some(90))];
    let played = play(&world(), &holders, "10.3.0.0/24", &live);
    assert_eq!(played.asked, [2, 1, 4, 9], "in the order of addresses, no member twice");
    assert_eq!((played.verdict.owner, played.verdict.rtt_us), (member(9), Some(90_000)), "no member is under the threshold: the lowest");
    // The first one under it ends the search.
    let live = [(1, Some(30)), (2, Some(110)), (4, Some(1)), (9, Some(1))];
    let played = play(&world(), &holders, "10.3.0.0/24", &live);
    assert_eq!((played.asked, played.verdict.owner), (vec![2, 1], member(1)));
}

#[test]
fn who_is_away_is_passed_over_and_who_does_not_answer_too() {
    let holders = [("10.1.0.0/24", 2), ("10.2.0.0/24", 1)];
    let played = play(&world(), &holders, "10.3.0.0/24", &[(1, None), (9, Some(70))]);
    assert_eq!((played.asked, played.verdict.owner), (vec![1, 9], member(9)));
    let silent = play(&world(), &holders, "10.3.0.0/24", &[(1, None), (2, None)]);
    assert_eq!((silent.verdict.owner, silent.verdict.rtt_us), (member(1), None), "it needs an owner all the same");
    let alone = play(&world(), &holders, "10.3.0.0/24", &[(2, Some(500))]);
    assert_eq!((alone.asked.len(), alone.verdict.owner), (0, member(2)));
}

#[test]
fn the_dead_get_nothing_whatever_they_answered() {
    let (world, delegated) = (world(), Delegated::default());
    let mut search = IpMicra::new(subnet("10.3.0.0/24"), THRESHOLD_US);
    // Answers of a search before this one: the nearest is dead by now, the next best, too, and no other member has been asked.
    search.answer(member(7), Some(1_000));
    search.answer(member(2), Some(90_000));
    search.answer(member(8), Some(60_000));
    let live = [member(1), member(2)];
    assert_eq!(search.next(&world, &delegated, &live), Step::Ask(member(1)));
    search.answer(member(1), Some(80_000));
    let Step::Settle(verdict) = search.next(&world, &delegated, &live) else { panic!("everybody answered") };
    assert_eq!((verdict.owner, verdict.rtt_us, verdict.runner_up), (member(1), Some(80_000), Some(member(2))));
}
