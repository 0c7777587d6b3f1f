//! Tests of what verbs do to the network: which messages arrive, how often and when.

use super::{arrived, at, play_until, small};
use crate::{scenario::play::Play, swarm::Latencies};

/// Questions and answers; gossip.
const DIRECT: std::ops::Range<u8> = 0..128;
const GOSSIP: std::ops::Range<u8> = 128..255;

/// Direct messages that arrive between two members until then, each way.
fn passing(play: &mut Play<'_>, until: u64, pairs: &[(u32, u32)]) -> Vec<u64> {
    let count = |play: &Play<'_>| pairs.iter().map(|(from, to)| arrived(play, *from, *to, DIRECT)).collect::<Vec<_>>();
    let before = count(play);
    play.run(until * 1_000, &|| ());
    count(play).iter().zip(before).map(|(after, before)| after - before).collect()
}

#[test]
fn nothing_passes_a_cut_and_one_way_passes_one_way() {
    let steps = at("40s", "\"cut\"\nwho = [[0, 1]]\nfor = \"30s\"") + &at("70s", "\"oneway\"\nwho = [[1, 2]]\nfor = \"30s\"");
    let scenario = small(&steps);
    let mut play = play_until(&scenario, 40);
    assert!(arrived(&play, 0, 1, DIRECT) > 0 && arrived(&play, 1, 0, DIRECT) > 0);
    let cut = passing(&mut play, 69, &[(0, 1), (1, 0), (0, 2), (2, 1)]);
    assert!(cut[..2] == [0, 0] && cut[2] > 0 && cut[3] > 0, "{cut:?}");
    play.run(70_000, &|| ());
    let oneway = passing(&mut play, 99, &[(1, 2), (2, 1), (0, 1)]);
    assert!(oneway[0] == 0 && oneway[1] > 0 && oneway[2] > 0, "{oneway:?}");
    let after = passing(&mut play, 130, &[(1, 2), (2, 1)]);
    assert!(after.iter().all(|count| *count > 0), "{after:?}");
}

#[test]
fn nothing_crosses_a_partition_and_the_next_one_replaces_it() {
    let steps = at("40s", "\"partition\"\nwho = [[0], [1, 2]]\nfor = \"30s\"")
        + &at("60s", "\"partition\"\nwho = [[0, 1]]")
        + &at("100s", "\"heal\"");
    let scenario = small(&steps);
    let mut play = play_until(&scenario, 40);
    let gossip = |play: &Play<'_>| [(0, 1), (0, 2), (2, 0)].map(|(from, to)| arrived(play, from, to, GOSSIP));
    let before = gossip(&play);
    let first = passing(&mut play, 59, &[(0, 1), (0, 2), (1, 0), (2, 0), (1, 2)]);
    assert!(first[..4] == [0; 4] && first[4] > 0, "{first:?}");
    assert_eq!(gossip(&play), before, "nobody forwards gossip either");
    play.run(60_000, &|| ());
    let second = passing(&mut play, 99, &[(1, 2), (2, 0), (0, 2), (0, 1)]);
    assert!(second[..3] == [0; 3] && second[3] > 0, "the end of the first one is not the end of this one: {second:?}");
    let healed = passing(&mut play, 130, &[(0, 2), (2, 1)]);
    assert!(healed.iter().all(|count| *count > 0), "{healed:?}");
}

#[test]
fn a_share_of_messages_is_lost_and_others_come_twice() {
    let steps = at("30s", "\"loss\"\nwho = 1") + &at("40s", "\"loss\"\nwho = 0.3\nfor = \"40s\"");
    let scenario = small(&steps);
    let mut play = play_until(&scenario, 31);
    let all = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)];
    assert_eq!(passing(&mut play, 39, &all), [0; 6], "everything is lost");
    play.run(45_000, &|| ());
    let sent = |play: &Play<'_>| play.world.questions.values().sum::<u64>();
    let before = sent(&play);
    let direct: u64 = passing(&mut play, 80, &all).iter().sum();
    let asked = sent(&play) - before;
    // Of ten questions seven arrive, three of these twice; most have an answer.
    let questions: u64 = direct / 2;
    assert!((asked / 2..asked * 2).contains(&questions), "{asked} were asked, {direct} questions and answers arrived");
    play.run(81_000, &|| ());
    assert_eq!(play.world.loss, 0.0);
}

#[test]
fn nobody_keeps_more_connections_than_allowed() {
    let text = format!("members = 6\nsubnets = 2\nhosts = 2\nminutes = 10\n{}", at("20s", "\"limit\"\nwho = 2\nfor = \"30s\""));
    let scenario = super::Scenario::read(&text).unwrap();
    let mut play = play_until(&scenario, 19);
    let links = |play: &Play<'_>| (0..6).map(|number| play.world.connections(number)).collect::<Vec<_>>();
    assert_eq!(links(&play), [5; 6]);
    for second in 21..50 {
        play.run(second * 1_000, &|| ());
        assert!(links(&play).iter().all(|count| *count <= 2), "after {second} s: {:?}", links(&play));
    }
    play.run(120_000, &|| ());
    assert!(links(&play).iter().sum::<usize>() > 12, "{:?}", links(&play));
}

#[test]
fn everything_heals_at_the_end() {
    let steps = at("20s", "\"partition\"\nwho = [[0], [1, 2]]")
        + &at("20s", "\"cut\"\nwho = [[1, 2]]")
        + &at("20s", "\"loss\"\nwho = 0.5")
        + &at("20s", "\"limit\"\nwho = 1")
        + &at("20s", "\"freeze\"\nwho = [1]")
        + &at("20s", "\"kill\"\nwho = [2]\nfor = \"9m\"");
    let scenario = small(&steps);
    let mut play = play_until(&scenario, 60);
    play.quieten();
    play.run(60_000, &|| ());
    let passed = passing(&mut play, 120, &[(0, 1), (1, 0), (1, 2), (2, 1)]);
    assert!(passed.iter().all(|count| *count > 0), "{passed:?}");
    assert_eq!((super::running(&play), play.world.loss), (vec![0, 1, 2], 0.0));
}

#[test]
fn it_is_as_far_as_the_scenario_says() {
    let text = |latency: &str| format!("members = 4\nsubnets = 4\nhosts = 4\nminutes = 10\nlatency = \"{latency}\"\n");
    let ways = |latency: &str, matrix| {
        let scenario = super::Scenario::read(&text(latency)).unwrap();
        let play = Play::begin(&scenario, 1, matrix).unwrap();
        let (one, other) = (play.world.member(0), play.world.member(1));
        let address = *play.world.hosts().values().next().unwrap();
        (play.world.distance_us(one, other), play.world.round_trip_us(one, address))
    };
    assert_eq!(ways("equal", None), (1_000, 1_000));
    let matrix = || super::Matrix::read("rtt.csv", "a,b,40\nb,a,40\n".as_bytes()).unwrap();
    assert_eq!(ways("rtt.csv", Some(matrix())).0, 40_000);
    assert_eq!(matrix().between(0, 1), 40_000);
    assert_ne!(ways("spread", None).0, ways("equal", None).0);
}

#[test]
fn messages_take_as_long_as_their_way() {
    for (latency, most) in [("equal", 1), ("spread", 1_000)] {
        let text = format!("members = 4\nsubnets = 4\nhosts = 4\nminutes = 10\nlatency = \"{latency}\"\n");
        let scenario = super::Scenario::read(&text).unwrap();
        let mut play = Play::begin(&scenario, 1, None).unwrap();
        let (one, other) = (play.world.member(0), play.world.member(1));
        let half = u64::from(play.world.distance_us(one, other)) / 2_000;
        let delays: Vec<_> = (0..50).map(|_| play.world.delay_of(one, other)).collect();
        assert!(
            delays.iter().all(|delay| (half.max(1)..=(half + half / 4).max(1)).contains(delay) && *delay <= most),
            "{half}: {delays:?}"
        );
    }
}
