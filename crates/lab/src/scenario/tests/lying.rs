//! Tests of what liars send, and that names of members that never existed arrive.

use super::{Play, arrived, at, play_until, small};

/// Messages of these classes that a liar's victims got while it lied, and in as long a time afterwards.
fn told(lie: &str, classes: std::ops::Range<u8>) -> (u64, u64) {
    let scenario = small(&at("100s", &format!("\"lie\"\nwho = [2]\nlie = \"{lie}\"\nfor = \"10s\"")));
    let mut play = play_until(&scenario, 100);
    let count = |play: &Play<'_>| [0, 1].map(|to| arrived(play, 2, to, classes.clone())).iter().sum::<u64>();
    let before = count(&play);
    play.run(111_000, &|| ());
    let during = count(&play) - before;
    play.run(122_000, &|| ());
    (during, count(&play) - before - during)
}

#[test]
fn each_lie_is_told_for_as_long_as_it_is_ordered() {
    // The numbers of messages: swarm/network.rs. Hand-offs are answered, and so may be sent by others, too.
    let lies = [
        ("claim", 128, 8),
        ("epoch", 128, 8),
        ("address", 5, 7),
        ("hosts", 5, 15),
        ("runs", 5, 7),
        ("journal", 6, 35),
        ("roll-up", 129, 15),
        ("flood", 129, 1_500),
        ("dial", 0, 8),
        ("probe", 2, 15),
    ];
    for (lie, class, least) in lies {
        let (during, after) = told(lie, class..class + 1);
        assert!(during >= after + least, "{lie}: {during} messages while it lied, {after} afterwards");
    }
    // There are no voters yet whose acceptances could contradict each other: this one is taken, and changes nothing.
    let (during, after) = told("double-accept", 0..255);
    assert!(during < after * 2, "{during}, {after}");
}

#[test]
fn ghosts_are_told_to_one_member_in_one_message() {
    let told = |steps: &str| {
        let scenario = small(steps);
        let mut play = play_until(&scenario, 60);
        play.run(60_050, &|| ());
        let bytes = play.world.records.as_ref().unwrap().bytes;
        ([0, 2].map(|to| arrived(&play, 1, to, 0..1)), bytes)
    };
    let (without, bytes_without) = told("");
    let (with, bytes_with) = told(&at("60s", "\"ghost\"\nwho = 100\nfrom = 1"));
    assert_eq!(with, [without[0], without[1] + 1], "one message more, to the next member");
    // Each name is a key of 32 bytes.
    assert!(bytes_with >= bytes_without + 100 * 32, "{bytes_with}, {bytes_without}");
}

/// How often a member was asked which journals it has, and answered, when another one took over what a third one owned.
fn asked_for_journals(lie: &str) -> (u64, u64) {
    let lies = if lie.is_empty() { String::new() } else { at("100s", &format!("\"lie\"\nwho = [2]\nlie = \"{lie}\"")) };
    let scenario = small(&(lies + &at("110s", "\"kill\"\nwho = [1]")));
    let play = play_until(&scenario, 240);
    // The numbers of the messages: swarm/network.rs.
    (arrived(&play, 0, 2, 23..24), arrived(&play, 2, 0, 23 + 64..24 + 64))
}

#[test]
fn a_member_that_is_silent_about_the_journals_that_it_keeps_is_told_from_one_that_denies_them() {
    let (asked, answered) = asked_for_journals("");
    assert!(asked > 0 && answered > 0, "{asked}, {answered}");
    // It was asked which database it uses before it lied.
    let silent = asked_for_journals("silence");
    assert!(silent.1 < answered, "what it leaves aside does not count as arrived: {silent:?}, {answered}");
    assert_eq!(asked_for_journals("deny"), (asked, answered));
}
