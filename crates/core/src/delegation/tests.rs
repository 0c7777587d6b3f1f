//! Tests that the nearest is found, with few probes, and by what was learnt, in small made-up worlds whose truth is known.

mod charts;
mod ipmicra;
mod settlement;

use super::*;
use nearcrawl_hierarchy::{Builder, Hierarchy};
use nearcrawl_model::{access_point::AccessPoint, subnet::Subnet};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::net::IpAddr;

/// The n-th access point.
fn member(n: u8) -> AccessPoint {
    AccessPoint([n; 32])
}

fn subnet(text: &str) -> Subnet {
    text.parse().unwrap()
}

/// A hierarchy of blocks: registry, country, first address, how many, holder.
fn hierarchy(blocks: &[(&str, &str, &str, u32, &str)]) -> Hierarchy {
    let mut builder = Builder::new();
    for registry in ["apnic", "arin", "ripencc"] {
        let lines: Vec<String> = (blocks.iter().filter(|block| block.0 == registry))
            .map(|(registry, country, first, count, holder)| {
                format!("{registry}|{country}|ipv4|{first}|{count}|20200101|allocated|{holder}\n")
            })
            .collect();
        if !lines.is_empty() {
            builder.read_delegated(registry, lines.concat().as_bytes()).unwrap();
        }
    }
    builder.finish().unwrap()
}

/// Two providers in two countries, and a company that is in both.
fn two_countries() -> Hierarchy {
    hierarchy(&[
        ("ripencc", "DE", "10.1.0.0", 65_536, "german"),
        ("ripencc", "DE", "10.2.0.0", 256, "company"),
        ("ripencc", "DE", "10.2.1.0", 256, "company"),
        ("ripencc", "DE", "10.2.2.0", 256, "company"),
        ("apnic", "JP", "10.3.0.0", 65_536, "japanese"),
    ])
}

/// Germany, France, Brazil, Japan, with round-trip times between them as they are, in milliseconds.
fn four_members(hierarchy: &Hierarchy) -> Knowledge {
    let mut knowledge = Knowledge::new();
    for (n, country) in [b"DE", b"FR", b"BR", b"JP"].iter().enumerate() {
        knowledge.introduce(member(n as u8), hierarchy, None, Some(**country));
    }
    for (a, b, ms) in [(0, 1, 15), (0, 2, 210), (0, 3, 240), (1, 2, 200), (1, 3, 235), (2, 3, 290)] {
        knowledge.between(member(a), member(b), ms * 1000);
    }
    knowledge
}

/// Plays a search against true round-trip times in milliseconds, by member; none answer where there is none.
fn search(hierarchy: &Hierarchy, knowledge: &Knowledge, subnet: Subnet, price_us: u32, truth: &[f32]) -> (Verdict, Nearest) {
    let live: Vec<AccessPoint> = (0..truth.len()).map(|n| member(n as u8)).collect();
    let mut search = Nearest::new(subnet, price_us);
    for _ in 0..=truth.len() {
        match search.next(hierarchy, knowledge, &live, &|who| f64::from(who.0[0])) {
            Step::Settle(verdict) => return (verdict, search),
            Step::Ask(who) => {
                assert!(search.answers().iter().all(|(asked, _)| *asked != who), "no member is asked twice");
                let ms = truth[usize::from(who.0[0])];
                search.answer(who, (!ms.is_nan()).then_some((ms * 1000.0) as u32));
            }
        }
    }
    panic!("more probes than access points");
}

fn learn(hierarchy: &Hierarchy, knowledge: &mut Knowledge, subnet: Subnet, search: &Nearest) {
    for (who, rtt_us) in search.answers() {
        knowledge.measured(hierarchy, subnet, *who, rtt_us.unwrap());
    }
}

#[test]
fn a_subnet_goes_to_the_nearest_and_hardly_anybody_is_asked() {
    let hierarchy = two_countries();
    let knowledge = four_members(&hierarchy);
    let (verdict, _) = search(&hierarchy, &knowledge, subnet("10.1.7.0/24"), 300, &[9.0, 18.0, 205.0, 245.0]);
    assert_eq!((verdict.owner, verdict.rtt_us, verdict.by_load), (member(0), Some(9_000), false));
    assert!(verdict.probes <= 2, "{} of four were asked", verdict.probes);
    // Registered in Japan, but in Brazil: the first answer says that it is not in Japan.
    let (verdict, _) = search(&hierarchy, &knowledge, subnet("10.3.1.0/24"), 300, &[208.0, 199.0, 6.0, 285.0]);
    assert_eq!(verdict.owner, member(2));
}

#[test]
fn a_dearer_probe_is_made_more_rarely_and_a_priceless_one_never() {
    let hierarchy = two_countries();
    let knowledge = four_members(&hierarchy);
    let truth = [22.0, 14.0, 201.0, 236.0];
    let probes = |price_us| search(&hierarchy, &knowledge, subnet("10.1.9.0/24"), price_us, &truth).0.probes;
    let counts: Vec<u16> = [10, 1_000, 10_000, 1_000_000].into_iter().map(probes).collect();
    assert!(counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
    assert!(counts[0] >= 2 && counts[3] == 0, "{counts:?}");
}

#[test]
fn what_one_subnet_of_a_company_taught_saves_probes_of_the_next_but_is_no_verdict() {
    let hierarchy = two_countries();
    let mut knowledge = four_members(&hierarchy);
    // The company says it is German, but is at the Brazilian access point's.
    let truth = [209.0, 201.0, 2.0, 288.0];
    let (first, answers) = search(&hierarchy, &knowledge, subnet("10.2.0.0/24"), 300, &truth);
    assert_eq!(first.owner, member(2));
    learn(&hierarchy, &mut knowledge, subnet("10.2.0.0/24"), &answers);
    let (second, answers) = search(&hierarchy, &knowledge, subnet("10.2.1.0/24"), 300, &truth);
    assert_eq!(second.owner, member(2));
    assert!(second.probes < first.probes, "{} after {}", second.probes, first.probes);
    learn(&hierarchy, &mut knowledge, subnet("10.2.1.0/24"), &answers);
    // A third part really is in Germany.
    let (third, _) = search(&hierarchy, &knowledge, subnet("10.2.2.0/24"), 300, &[8.0, 19.0, 211.0, 240.0]);
    assert_eq!(third.owner, member(0));
}

#[test]
fn who_does_not_answer_gets_nothing_while_others_do() {
    let hierarchy = two_countries();
    let knowledge = four_members(&hierarchy);
    let (verdict, _) = search(&hierarchy, &knowledge, subnet("10.1.7.0/24"), 10, &[f32::NAN, 18.0, 205.0, 245.0]);
    assert_eq!((verdict.owner, verdict.rtt_us), (member(1), Some(18_000)));
    let (unprobed, _) = search(&hierarchy, &knowledge, subnet("10.1.7.0/24"), 10, &[f32::NAN; 4]);
    assert_eq!((unprobed.rtt_us, unprobed.runner_up), (None, None), "a member gets it all the same");
}

#[test]
fn what_is_near_everywhere_goes_to_whom_has_least_to_do() {
    let hierarchy = two_countries();
    let mut knowledge = four_members(&hierarchy);
    let everywhere = [3.0, 3.0, 3.0, 3.0];
    for part in 0..3 {
        let part = subnet(&format!("10.2.{part}.0/24"));
        for n in 0..4 {
            knowledge.measured(&hierarchy, part, member(n), 3_000);
        }
        assert!(knowledge.anycast(&hierarchy, &part));
    }
    let (verdict, _) = search(&hierarchy, &knowledge, subnet("10.2.0.0/24"), 300, &everywhere);
    assert_eq!((verdict.owner, verdict.by_load, verdict.probes), (member(0), true, 0), "the load of this test rises with the number");
    // By now the company is known for it, in parts that were never asked; others are not.
    assert!(knowledge.anycast(&hierarchy, &subnet("10.2.2.128/25")));
    assert!(!knowledge.anycast(&hierarchy, &subnet("10.1.0.0/24")));
    // Fast from neighbours is no wonder.
    knowledge.measured(&hierarchy, subnet("10.1.1.0/24"), member(0), 6_000);
    knowledge.measured(&hierarchy, subnet("10.1.1.0/24"), member(1), 9_000);
    assert!(!knowledge.anycast(&hierarchy, &subnet("10.1.1.0/24")));
}

#[test]
fn a_member_alone_takes_all_unasked_and_strangers_are_not_asked() {
    let hierarchy = two_countries();
    let knowledge = four_members(&hierarchy);
    let mut alone = Nearest::new(subnet("10.3.1.0/24"), 10);
    let Step::Settle(verdict) = alone.next(&hierarchy, &knowledge, &[member(2)], &|_| 1.0) else { panic!("no other member is there") };
    assert_eq!((verdict.owner, verdict.probes), (member(2), 0));
    // Nothing is known of any member: a member gets it, and it ends.
    let live = [member(7), member(8)];
    let mut strangers = Nearest::new(subnet("10.3.1.0/24"), 10);
    let Step::Settle(verdict) = strangers.next(&hierarchy, &Knowledge::new(), &live, &|_| 1.0) else { panic!("no member is known") };
    assert!(live.contains(&verdict.owner));
}

#[test]
fn measurements_outlive_members_who_come_and_go_and_another_hierarchy() {
    let old = two_countries();
    let mut knowledge = four_members(&old);
    let part = subnet("10.2.0.0/24");
    knowledge.measured(&old, part, member(0), 9_000);
    knowledge.measured(&old, part, member(0), 7_000);
    knowledge.measured(&old, part, member(0), 8_000);
    knowledge.measured(&old, part, member(3), 240_000);
    for n in 10..250 {
        knowledge.introduce(member(n), &old, None, Some(*b"SE"));
        knowledge.measured(&old, subnet("10.1.1.0/24"), member(n), 30_000);
        knowledge.forget(&old, member(n));
    }
    knowledge.forget(&old, member(3));
    assert!(knowledge.introduced.len() < 80, "{} are remembered of four", knowledge.introduced.len());
    let known: Vec<_> = knowledge.measurements(&part).filter(|(who, _)| *who == member(0)).collect();
    assert_eq!(known, [(member(0), 7_000)], "the least counts");
    let new = hierarchy(&[("ripencc", "DE", "10.2.0.0", 512, "merged")]);
    knowledge.relocate(&new);
    assert_eq!(knowledge.measurements(&part).find(|(who, _)| *who == member(0)), Some((member(0), 7_000)));
    let (verdict, _) = search(&new, &knowledge, subnet("10.2.1.0/24"), 300, &[8.0, 19.0, 211.0]);
    assert_eq!(verdict.owner, member(0));
}

#[test]
fn the_oldest_answers_go_when_there_are_too_many() {
    let hierarchy = two_countries();
    let mut knowledge = four_members(&hierarchy);
    knowledge.most_subnets = 3;
    let part = |n: u8| subnet(&format!("10.1.{n}.0/24"));
    for n in [0, 1, 2, 0, 3, 4] {
        knowledge.measured(&hierarchy, part(n), member(1), 20_000 - 5_000 * u32::from(n == 0 && knowledge.observations() > 1));
    }
    let kept: Vec<u8> = (0..5).filter(|n| knowledge.measurements(&part(*n)).next().is_some()).collect();
    assert_eq!(kept, [0, 3, 4], "the first one was measured again meanwhile");
    assert_eq!(knowledge.observations(), 6);
}

#[test]
fn in_a_flat_world_three_answers_are_enough() {
    let hierarchy = Builder::new().finish().unwrap();
    let mut chance = StdRng::seed_from_u64(5);
    let mut point = || (chance.random_range(0.0..150.0f32), chance.random_range(0.0..150.0f32));
    let members: Vec<(f32, f32)> = (0..24).map(|_| point()).collect();
    let rtt = |a: (f32, f32), b: (f32, f32)| (a.0 - b.0).hypot(a.1 - b.1);
    let mut knowledge = Knowledge::new();
    for (n, at) in members.iter().enumerate() {
        knowledge.introduce(member(n as u8), &hierarchy, None, None);
        for (other, place) in members[..n].iter().enumerate() {
            knowledge.between(member(n as u8), member(other as u8), (rtt(*at, *place) * 1000.0) as u32);
        }
    }
    let (mut probes, mut best) = (0, 0);
    for site in 0..60u32 {
        let at = point();
        let truth: Vec<f32> = members.iter().map(|place| rtt(*place, at)).collect();
        let place = Subnet::around(IpAddr::from((0x0a00_0000 + site * 256).to_be_bytes()), 24);
        let (verdict, answers) = search(&hierarchy, &knowledge, place, 100, &truth);
        learn(&hierarchy, &mut knowledge, place, &answers);
        probes += u32::from(verdict.probes);
        best += u32::from(truth.iter().all(|ms| truth[usize::from(verdict.owner.0[0])] <= *ms));
    }
    assert!(best >= 57 && probes <= 180, "{best} of 60 at their nearest of 24 after {probes} probes");
}
