//! Tests of what verbs do to members: who runs, with which key and disk, and what its clocks and its disk do.

use super::{at, play_until, requests, rows, running, small};

#[test]
fn who_joins_has_the_next_number_lives_and_comes_back_with_a_new_key() {
    let steps = at("30s", "\"join\"\nwho = 2\nlives = \"60s\"\nreturns = \"10s\"") + &at("35s", "\"join\"\nwho = 1");
    let scenario = small(&steps);
    let mut play = play_until(&scenario, 31);
    assert_eq!(running(&play), [0, 1, 2, 3, 4]);
    let key = play.world.member(3);
    play.run(80_000, &|| ());
    assert_eq!(running(&play), [0, 1, 2, 3, 4, 5], "numbers go on counting");
    let known = play.world.disk(3).unwrap().contacts.len() + play.world.disk(3).unwrap().members.len();
    assert!(known > 0, "something is on its disk that can be missing afterwards");
    play.run(95_000, &|| ());
    assert_eq!(running(&play), [0, 1, 2, 5]);
    play.run(100_000, &|| ());
    assert_eq!(running(&play), [0, 1, 2, 3, 4, 5]);
    assert_ne!(play.world.member(3), key);
    assert_eq!(rows(&play, 3), 0);
    play.run(165_000, &|| ());
    assert_eq!(running(&play), [0, 1, 2, 5], "the next time it lives as long");
}

#[test]
fn who_is_killed_stays_away_for_so_long_or_for_good() {
    let steps = at("60s", "\"kill\"\nwho = [1]\nfor = \"30s\"") + &at("70s", "\"kill\"\nwho = 2");
    let again = steps.clone() + &at("80s", "\"kill\"\nwho = [1]");
    for (steps, back) in [(steps, vec![0, 1]), (again, vec![0])] {
        let scenario = small(&steps);
        let mut play = play_until(&scenario, 65);
        assert_eq!(running(&play), [0, 2]);
        let kept = rows(&play, 1);
        assert!(kept > 0);
        play.run(91_000, &|| ());
        assert_eq!(running(&play), back, "the newest order holds");
        assert!(rows(&play, 1) >= kept, "with its disk");
        play.quieten();
        play.run(92_000, &|| ());
        assert_eq!(running(&play), back, "also when everything ends");
    }
}

#[test]
fn who_leaves_gives_everything_back_first() {
    let scenario = small(&at("90s", "\"leave\"\nwho = [1]\nfor = \"2m\""));
    let mut play = play_until(&scenario, 89);
    let owned = |play: &crate::scenario::play::Play<'_>| {
        let leaver = play.world.member(1);
        let claims = play.world.crawler(0).unwrap().view().ownership(None, 100);
        claims.iter().filter(|claim| claim.owner == leaver && !claim.released).count()
    };
    assert!(owned(&play) > 0);
    play.run(150_000, &|| ());
    assert_eq!((running(&play), owned(&play)), (vec![0, 2], 0));
    play.run(212_000, &|| ());
    assert_eq!(running(&play), [0, 1, 2]);
}

#[test]
fn who_is_wiped_is_back_at_once_with_its_key_and_nothing_else() {
    let scenario = small(&at("90s", "\"wipe\"\nwho = [1]"));
    let mut play = play_until(&scenario, 89);
    let key = play.world.member(1);
    assert!(rows(&play, 1) > 0 && !play.world.disk(1).unwrap().claims.is_empty());
    play.run(90_000, &|| ());
    assert_eq!((running(&play), play.world.member(1)), (vec![0, 1, 2], key));
    let disk = play.world.disk(1).unwrap();
    assert!(disk.journals.is_empty() && disk.claims.is_empty() && disk.members.is_empty() && disk.contacts.is_empty());
}

#[test]
fn who_stands_still_asks_nothing_and_takes_orders_when_it_goes_on() {
    let busy = {
        let scenario = small("");
        let play = play_until(&scenario, 59);
        (0..3).max_by_key(|number| requests(&play, *number)).unwrap()
    };
    let steps = at("60s", &format!("\"freeze\"\nwho = {busy}\nfor = \"60s\""))
        + &at("70s", &format!("\"freeze\"\nwho = {busy}\nfor = \"90s\""))
        + &at("80s", &format!("\"leave\"\nwho = {busy}"));
    let scenario = small(&steps);
    let mut play = play_until(&scenario, 61);
    let before = (requests(&play, busy), rows(&play, busy));
    assert!(before.0 > 0);
    play.run(159_000, &|| ());
    assert_eq!((requests(&play, busy), rows(&play, busy)), before, "the newest order holds");
    assert_eq!(running(&play), [0, 1, 2]);
    let clock = play.world.clocks_of(busy).moment;
    play.run(220_000, &|| ());
    assert_eq!(running(&play).len(), 2, "then it leaves");
    assert_eq!(play.world.clocks_of(busy).moment.since(clock), 61_000, "its clocks went on");
}

#[test]
fn a_clone_has_the_same_name_and_a_copy_of_the_disk() {
    let scenario = small(&at("60s", "\"clone\"\nwho = [1]"));
    let play = play_until(&scenario, 60);
    assert_eq!(running(&play), [0, 1, 2, 1]);
    let processes = play.world.processes_of(1);
    assert_eq!(processes.iter().map(|process| play.world.name_of(*process)).collect::<Vec<_>>(), [play.world.member(1); 2]);
    let disks: Vec<_> = processes.iter().map(|process| play.world.disk_of(process).unwrap()).collect();
    assert!(!disks[0].journals.is_empty());
    assert_eq!(disks[0].journals, disks[1].journals);
}

#[test]
fn clocks_jump_run_at_another_rate_and_stand_still_each_by_itself() {
    let steps = at("60s", "\"clock\"\nwho = [0]\njump = \"-900d\"")
        + &at("60s", "\"clock\"\nwho = [1]\nrate = 1.5\nclock = \"boot\"\nfor = \"20s\"")
        + &at("60s", "\"clock\"\nwho = [2]\nclock = \"boot\"\nfor = \"30s\"");
    let scenario = small(&steps);
    let mut play = play_until(&scenario, 59);
    let read = |play: &crate::scenario::play::Play<'_>| [0, 1, 2].map(|number| play.world.clocks_of(number));
    let before = read(&play);
    play.run(160_000, &|| ());
    let after = read(&play);
    let passed = |number: usize| {
        let wall = i128::from(after[number].wall.0) - i128::from(before[number].wall.0);
        (after[number].moment.since(before[number].moment), wall)
    };
    assert_eq!(passed(0), (101_000, 101_000 - 900 * 86_400_000), "the boot clock goes on");
    assert_eq!(passed(1), (111_000, 101_000), "half as quick again for 20 s");
    assert_eq!(passed(2), (71_000, 101_000), "it stood still for 30 s");
}

#[test]
fn a_jump_can_be_corrected() {
    let scenario = small(&at("20s", "\"clock\"\nwho = [1]\njump = \"400d\"\nfor = \"20s\""));
    let mut play = play_until(&scenario, 30);
    assert_eq!(play.world.clocks_of(1).wall.0 - play.world.clocks_of(0).wall.0, 400 * 86_400_000);
    play.run(41_000, &|| ());
    assert_eq!(play.world.clocks_of(1).wall, play.world.clocks_of(0).wall);
}

#[test]
fn disks_are_slow_or_full_for_a_while() {
    let steps = at("90s", "\"disk\"\nwho = [0, 1, 2]\nwhat = \"full\"\nfor = \"60s\"")
        + &at("190s", "\"disk\"\nwho = [1]\nwhat = \"slow\"\nfor = \"5s\"");
    let scenario = small(&steps);
    let mut play = play_until(&scenario, 90);
    let before = rows(&play, 1);
    assert!(before > 0);
    play.run(149_000, &|| ());
    assert_eq!(rows(&play, 1), before, "nothing is written to a full disk");
    play.run(179_999, &|| ());
    assert!(rows(&play, 1) > before, "and then it goes on");
    assert_eq!(play.world.write_takes(1), None);
    play.run(191_000, &|| ());
    assert_eq!((play.world.write_takes(0), play.world.write_takes(1)), (None, Some(5_000)));
    play.run(196_000, &|| ());
    assert_eq!(play.world.write_takes(1), None);
}

#[test]
fn who_finds_its_disk_damaged_ends_and_comes_back_with_its_key_and_another_disk() {
    let restarted = at("120s", "\"disk\"\nwho = [1]\nwhat = \"damaged\"") + &at("130s", "\"kill\"\nwho = [1]\nfor = \"5s\"");
    let read = at("120s", "\"disk\"\nwho = [1]\nwhat = \"damaged\"\nfor = \"15s\"");
    for (steps, found) in [(restarted, 135), (read, 135)] {
        let scenario = small(&steps);
        let mut play = play_until(&scenario, 129);
        assert_eq!(running(&play), [0, 1, 2], "it has not read what is damaged");
        let (key, before) = (play.world.member(1), rows(&play, 1));
        assert!(before > 0);
        play.run(found * 1_000 + 55_000, &|| ());
        assert_eq!(running(&play), [0, 2], "it does not start on this disk");
        assert!(rows(&play, 1) >= before && play.world.is_damaged(1));
        play.run(found * 1_000 + 62_000, &|| ());
        assert_eq!((running(&play), play.world.member(1)), (vec![0, 1, 2], key));
        assert!(!play.world.is_damaged(1), "its operator moved the old one away");
    }
}

#[test]
fn hosts_move_to_other_subnets() {
    let scenario = small(&at("60s", "\"move-host\"\nwho = 2"));
    let mut play = play_until(&scenario, 59);
    let before = play.world.hosts().clone();
    play.run(60_000, &|| ());
    let moved: Vec<_> = play.world.hosts().iter().filter(|(host, address)| before[*host] != **address).collect();
    assert_eq!(moved.len(), 2);
    let subnet = |address: &std::net::IpAddr| nearcrawl_model::subnet::Subnet::around(*address, 24);
    assert!(moved.iter().all(|(host, address)| subnet(&before[*host]) != subnet(address)));
}

#[test]
fn the_map_is_filled_and_starting_points_are_named() {
    // Whom the starting points were meant for is gone before it had them.
    let steps = at("1s", "\"kill\"\nwho = [0]")
        + &at("2s", "\"declare-lost\"\nwho = [0]")
        + &at("40s", "\"claims\"\nwho = 300")
        + &at("60s", "\"seed\"\nwho = [1]");
    let scenario = small(&steps);
    let mut play = play_until(&scenario, 39);
    let claims = |play: &crate::scenario::play::Play<'_>, number| play.world.crawler(number).unwrap().view().ownership(None, 1_000).len();
    let before = [1, 2].map(|number| claims(&play, number));
    play.run(45_000, &|| ());
    assert_eq!([1, 2].map(|number| claims(&play, number)), before.map(|count| count + 300));
    play.run(59_000, &|| ());
    assert_eq!(play.world.ledger.requests(), 0);
    play.run(150_000, &|| ());
    assert!(play.world.ledger.requests() > 0);
}

#[test]
fn without_replicas_rows_are_at_their_owner_only() {
    for (rule, copies) in [("default", true), ("no-replicas", false)] {
        let text = format!("members = 2\nsubnets = 1\nhosts = 1\nminutes = 5\nrule = \"{rule}\"\n");
        let scenario = super::Scenario::read(&text).unwrap();
        let play = play_until(&scenario, 120);
        let kept = [0, 1].map(|number| rows(&play, number) > 0);
        assert_eq!((kept.contains(&true), kept == [true; 2]), (true, copies), "{rule}");
    }
}
