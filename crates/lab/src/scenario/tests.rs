//! Tests that a scenario's file says what happens, or what is wrong in which line.

mod judging;
mod lying;
mod members;
mod network;
mod shipped;

use super::{
    Matrix,
    file::{Action, Clock, ClockChange, DiskFault, Latency, Lie, Rule, Scenario},
    play::Play,
};
use crate::swarm::Latencies;
use nearcrawl_model::time::Millis;
use std::collections::BTreeSet;

const HEAD: &str = "members = 7\nsubnets = 60\nhosts = 90\nminutes = 60\n";

fn actions(steps: &str) -> Vec<(u64, Action)> {
    let scenario = Scenario::read(&format!("{HEAD}{steps}")).unwrap();
    scenario.steps.into_iter().map(|step| (step.at, step.action)).collect()
}

fn refusal(text: &str) -> String {
    Scenario::read(text).unwrap_err().to_string()
}

#[test]
fn a_file_has_a_swarm_and_steps_in_the_order_of_time() {
    let scenario = Scenario::read(&format!(
        "{HEAD}latency = \"equal\"\nrule = \"no-lease\"\n\
         [[at]]\nt = \"15m10s\"\ndo = \"heal\"\n[[at]]\nt = \"10m\"\ndo = \"join\"\nwho = 3\nlives = \"3s\"\nreturns = \"2s\"\n"
    ))
    .unwrap();
    assert_eq!((scenario.members, scenario.subnets, scenario.hosts, scenario.minutes), (7, 60, 90, 60));
    assert_eq!((&scenario.latency, scenario.rule), (&Latency::Equal, Rule::NoLease));
    let steps: Vec<_> = scenario.steps.iter().map(|step| (step.at, step.line, &step.action)).collect();
    let join = Action::Join { count: 3, lives: Some(3_000), returns: Some(2_000) };
    assert_eq!(steps, [(600_000, 10, &join), (910_000, 7, &Action::Heal)]);
    let plain = Scenario::read(HEAD).unwrap();
    assert_eq!((plain.latency, plain.rule, plain.steps.len()), (Latency::Spread, Rule::Default, 0));
}

#[test]
fn every_verb_is_read() {
    let one = |step: &str| actions(&format!("[[at]]\nt = \"1m\"\n{step}\n")).remove(0).1;
    let minute = Some(60_000);
    let clock = |clock, jump, rate, lasts| Action::Clock { who: vec![1], change: ClockChange { clock, jump, rate }, lasts };
    for (step, action) in [
        ("do = \"ghost\"\nwho = 20\nfrom = 1", Action::Ghost { count: 20, from: 1 }),
        ("do = \"kill\"\nwho = [0, 2]\nfor = \"1m\"", Action::Kill(vec![0, 2], minute)),
        ("do = \"leave\"\nwho = 6", Action::Leave(vec![6], None)),
        ("do = \"wipe\"\nwho = [1]", Action::Wipe(vec![1], None)),
        ("do = \"declare-lost\"\nwho = [1, 2]", Action::DeclareLost(vec![1, 2])),
        ("do = \"freeze\"\nwho = [1]\nfor = \"1m\"", Action::Freeze(vec![1], minute)),
        ("do = \"clone\"\nwho = [1]", Action::Clone(vec![1])),
        ("do = \"cut\"\nwho = [[0, 1], [2, 3]]", Action::Cut { pairs: vec![(0, 1), (2, 3)], oneway: false, lasts: None }),
        ("do = \"oneway\"\nwho = [[0, 1]]\nfor = \"1m\"", Action::Cut { pairs: vec![(0, 1)], oneway: true, lasts: minute }),
        ("do = \"partition\"\nwho = [[0, 1], [2]]", Action::Partition(vec![vec![0, 1], vec![2]], None)),
        ("do = \"loss\"\nwho = 0.25\nfor = \"1m\"", Action::Loss(0.25, minute)),
        ("do = \"limit\"\nwho = 3", Action::Limit(3, None)),
        ("do = \"clock\"\nwho = [1]\njump = \"-900d\"", clock(Clock::Wall, Some(-900 * 86_400_000), None, None)),
        ("do = \"clock\"\nwho = [1]\njump = \"400d\"\nfor = \"1m\"", clock(Clock::Wall, Some(400 * 86_400_000), None, minute)),
        ("do = \"clock\"\nwho = [1]\nrate = 1.01", clock(Clock::Wall, None, Some(1.01), None)),
        ("do = \"clock\"\nwho = 1\nrate = 2\nclock = \"boot\"", clock(Clock::Boot, None, Some(2.0), None)),
        ("do = \"clock\"\nwho = [1]\nclock = \"boot\"\nfor = \"1m\"", clock(Clock::Boot, None, Some(0.0), minute)),
        ("do = \"ghost\"\nwho = 3", Action::Ghost { count: 3, from: 0 }),
        ("do = \"disk\"\nwho = [1]\nwhat = \"full\"\nfor = \"1m\"", Action::Disk { who: vec![1], fault: DiskFault::Full, lasts: minute }),
        ("do = \"move-host\"\nwho = 5", Action::MoveHost(5)),
        ("do = \"claims\"\nwho = 20000", Action::Claims(20_000)),
        ("do = \"seed\"\nwho = [0]", Action::Seed(vec![0])),
        ("do = \"lie\"\nwho = [1]\nlie = \"roll-up\"", Action::Lie { who: vec![1], lie: Lie::RollUp, lasts: None }),
        ("do = \"lie\"\nwho = [1]\nlie = \"hand-over\"", Action::Lie { who: vec![1], lie: Lie::HandOver, lasts: None }),
        ("do = \"lie\"\nwho = [1]\nlie = \"silence\"", Action::Lie { who: vec![1], lie: Lie::Silence, lasts: None }),
        ("do = \"lie\"\nwho = [1]\nlie = \"deny\"", Action::Lie { who: vec![1], lie: Lie::Deny, lasts: None }),
    ] {
        assert_eq!(one(step), action, "{step}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let at = |step: &str| format!("{HEAD}[[at]]\nt = \"1m\"\n{step}\n");
    for (text, line, says) in [
        ("members = 7\nsubnets = 60\nhosts = 90\n".to_owned(), 1, "minutes"),
        ("members = 0\nsubnets = 60\nhosts = 90\nminutes = 1\n".to_owned(), 1, "1 to 1000"),
        (format!("{HEAD}colour = 1\n"), 5, "colour"),
        (format!("{HEAD}rule = \"no-fun\"\n"), 5, "no-council"),
        (format!("{HEAD}minutes = 5\n"), 5, "duplicate key"),
        (format!("{HEAD}[[at]]\ndo = \"heal\"\n"), 5, "say when"),
        (format!("{HEAD}[[at]]\nt = \"61m\"\ndo = \"heal\"\n"), 5, "after the end"),
        (format!("{HEAD}[[at]]\nt = \"10x\"\ndo = \"heal\"\n"), 6, "write a duration"),
        (at("do = \"explode\""), 7, "there are join"),
        (at("do = \"heal\"\nwho = [1]"), 8, "there is no key \"who\" here"),
        (at("do = \"kill\"\nwho = [7]"), 5, "no member 7 by then"),
        (at("do = \"kill\"\nwho = \"all\""), 8, "list of members"),
        (at("do = \"cut\"\nwho = [[0]]"), 8, "pairs"),
        (at("do = \"partition\"\nwho = [[0, 1], [1]]"), 5, "one group"),
        (at("do = \"loss\"\nwho = 1.5"), 8, "share"),
        (at("do = \"lie\"\nwho = [1]"), 5, "say about what: claim, epoch"),
        (at("do = \"clock\"\nwho = [1]"), 5, "say one of"),
        (at("do = \"clock\"\nwho = [1]\nclock = \"wall\"\nfor = \"1m\""), 9, "say one of"),
        (at("do = \"clock\"\nwho = [1]\njump = \"1m\"\nclock = \"boot\""), 9, "never jumps"),
        (at("do = \"join\"\nwho = 1\nfor = \"1m\""), 9, "there is no key \"for\" here"),
        (at("do = \"join\"\nwho = 1\nreturns = \"1m\""), 9, "who never goes does not return"),
        (at("do = \"join\"\nwho = 1\nlives = \"0s\"\nreturns = \"0s\""), 9, "at least \"1s\""),
        (at("do = \"join\"\nwho = 1000\nlives = \"1s\"\nreturns = \"0s\""), 5, "return 100000 times"),
        (at("do = \"loss\"\nwho = 1\nfor = \"1m2m\""), 9, "write a duration"),
        (at("do = \"loss\"\nwho = 1\nfor = \"-1m\""), 9, "write a duration"),
        (format!("{HEAD}latency = 3\n"), 5, "text in quotes"),
        (at("do = \"move-host\"\nwho = 91"), 5, "only 90 hosts"),
    ] {
        let refusal = refusal(&text);
        assert!(refusal.starts_with(&format!("line {line}: ")) && refusal.contains(says), "{text}\n{refusal}");
    }
}

#[test]
fn who_joined_can_be_named_afterwards() {
    let steps = "[[at]]\nt = \"1m\"\ndo = \"join\"\nwho = 2\n[[at]]\nt = \"2m\"\ndo = \"kill\"\nwho = [8]\n";
    assert_eq!(actions(steps).len(), 2);
    let before = "[[at]]\nt = \"1m\"\ndo = \"kill\"\nwho = [8]\n[[at]]\nt = \"2m\"\ndo = \"join\"\nwho = 2\n";
    assert!(refusal(&format!("{HEAD}{before}")).contains("no member 8 by then"));
}

#[test]
fn equal_seeds_give_equal_verdicts() {
    let steps = [
        at("10s", "\"claims\"\nwho = 20"),
        at("12s", "\"join\"\nwho = 1\nlives = \"15s\"\nreturns = \"5s\""),
        at("15s", "\"clock\"\nwho = 1\nclock = \"boot\"\nrate = 1.01"),
        at("20s", "\"loss\"\nwho = 0.1\nfor = \"20s\""),
        at("25s", "\"ghost\"\nwho = 2"),
        at("30s", "\"kill\"\nwho = [1]\nfor = \"20s\""),
        at("35s", "\"clone\"\nwho = [2]"),
        at("40s", "\"disk\"\nwho = [0]\nwhat = \"damaged\""),
        at("42s", "\"freeze\"\nwho = [0]\nfor = \"5s\""),
        at("45s", "\"move-host\"\nwho = 1"),
        at("50s", "\"lie\"\nwho = [2]\nlie = \"hosts\"\nfor = \"3s\""),
        at("55s", "\"limit\"\nwho = 1"),
    ];
    let text = format!("members = 3\nsubnets = 3\nhosts = 4\nminutes = 1\n{}", steps.concat());
    let digest = |seed| {
        let scenario = Scenario::read(&text).unwrap();
        let mut play = Play::begin(&scenario, seed, None).unwrap();
        play.run(120_000, &|| ());
        let now = play.now();
        let verdict = play.judge.verdict(&play.world, seed, now);
        (verdict.digest, verdict.fetches, verdict.first_violation)
    };
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1).0, digest(2).0);
}

#[test]
fn durations_have_units_the_larger_first() {
    let at = |text: &str| actions(&format!("[[at]]\nt = \"{text}\"\ndo = \"heal\"\n"))[0].0;
    let known = [("0s", 0), ("90s", 90_000), ("15m10s", 910_000), ("1h", 3_600_000), ("1500ms", 1_500), ("1m2s3ms", 62_003)];
    for (text, millis) in known {
        assert_eq!(at(text), millis, "{text}");
    }
    let long = "members = 1\nsubnets = 1\nhosts = 1\nminutes = 600000\n[[at]]\nt = \"400d2h\"\ndo = \"heal\"\n";
    assert_eq!(Scenario::read(long).unwrap().steps[0].at, 400 * 86_400_000 + 7_200_000);
}

#[test]
fn each_rule_is_read() {
    let rules =
        [("default", Rule::Default), ("no-lease", Rule::NoLease), ("no-council", Rule::NoCouncil), ("no-replicas", Rule::NoReplicas)];
    for (name, rule) in rules.into_iter().chain([("no-hello", Rule::NoHello)]) {
        assert_eq!(Scenario::read(&format!("{HEAD}rule = \"{name}\"\n")).unwrap().rule, rule);
    }
}

#[test]
fn a_matrix_says_how_far_it_is() {
    let read = |text: &str| Matrix::read("rtt.csv", text.as_bytes());
    let matrix = read("source,target,ms\na,b,9.5\na,c,20\nb,a,9\n").unwrap();
    assert_eq!((matrix.between(0, 1), matrix.between(0, 2)), (9_500, 200), "members stand at a and b in turn");
    for table in ["0,10,20\n10,0,30\n20,30,0\n", ",a,b,c\na,0,10,20\nb,10,0,30\nc,20,30,0\n"] {
        let matrix = read(table).unwrap();
        assert_eq!([matrix.between(0, 1), matrix.between(0, 2), matrix.between(1, 2)], [10_000, 20_000, 30_000], "{table}");
    }
    for wrong in ["a,b,1\na,b\n", "a,b,1\na,b,x\n", "0,1\n1,5\n", ""] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

/// A scenario of three members that begins, played until this many seconds after its start.
fn play_until<'a>(scenario: &'a Scenario, seconds: Millis) -> Play<'a> {
    let mut play = Play::begin(scenario, 1, None).unwrap();
    play.world.arrivals = Some(Default::default());
    play.run(seconds * 1_000, &|| ());
    play
}

/// Three members, a few subnets, ten minutes, and these steps.
fn small(steps: &str) -> Scenario {
    let text = format!("members = 3\nsubnets = 4\nhosts = 4\nminutes = 10\n{steps}");
    Scenario::read(&text).unwrap_or_else(|why| panic!("{text}\n{why}"))
}

/// One step of a scenario.
fn at(t: &str, rest: &str) -> String {
    format!("[[at]]\nt = \"{t}\"\ndo = {rest}\n")
}

/// The numbers of the members that run.
fn running(play: &Play<'_>) -> Vec<usize> {
    play.world.running_processes().into_iter().map(|(number, _)| number).collect()
}

/// Messages of these classes that arrived from one member at another, so far.
fn arrived(play: &Play<'_>, from: u32, to: u32, classes: std::ops::Range<u8>) -> u64 {
    let arrivals = play.world.arrivals.as_ref().unwrap();
    arrivals.iter().filter(|((a, b, class), _)| (*a, *b) == (from, to) && classes.contains(class)).map(|(_, count)| count).sum()
}

/// Rows on a member's disk.
fn rows(play: &Play<'_>, number: usize) -> usize {
    play.world.disk(number).unwrap().journals.values().map(std::collections::BTreeMap::len).sum()
}

/// Requests that servers saw of a member.
fn requests(play: &Play<'_>, number: usize) -> usize {
    let by = play.world.member(number);
    play.world.ledger.contacts.iter().filter(|contact| contact.by == by).count()
}

#[test]
fn a_course_drawn_from_a_seed_is_the_same_again_and_another_one_for_another_seed() {
    let drawn = |seed| Scenario::chaos(seed, 12, 30);
    assert_eq!(drawn(7), drawn(7));
    assert_ne!(drawn(7), drawn(8));
    let all: Vec<Scenario> = (0..200).map(drawn).collect();
    let steps = || all.iter().flat_map(|scenario| &scenario.steps);
    let verbs: BTreeSet<_> = steps().map(|step| step.action.verb()).collect();
    let known = ["clock", "cut", "disk", "freeze", "join", "kill", "leave", "loss", "oneway", "partition", "seed", "wipe"];
    assert!(verbs.iter().eq(known.iter()), "{verbs:?}");
    assert!(steps().all(|step| step.action.named().iter().all(|number| *number < 12) && step.at < 30 * 60_000));
    let wipes = |scenario: &Scenario| scenario.steps.iter().filter(|step| step.action.verb() == "wipe").count();
    assert_eq!(all.iter().map(wipes).max(), Some(1), "one disk may be lost");
}
