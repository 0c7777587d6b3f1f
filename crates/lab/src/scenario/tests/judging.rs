//! Tests that no violation hides from the judge, and that it accuses none without one.

use super::{Play, at, play_until, small};
use crate::{
    scenario::judge::{
        fetches::{Pauses, broken_pauses, overlaps},
        lost::lost,
    },
    swarm::ledger::{Contact, Purpose},
};
use nearcrawl_model::{journal::JournalKey, url::PageUrl};

/// A finished crawl of one host by three members, with what servers saw of it forgotten.
fn blank(scenario: &super::Scenario) -> Play<'_> {
    Play::begin(scenario, 1, None).unwrap()
}

/// Fetches one page after the other: by whom, where (host and subnet), when and for how long in milliseconds.
fn fetch(play: &mut Play<'_>, by: usize, host: u32, at: u64, took: u64) {
    let address = crate::scenario::build::address_in(host % 4, host / 4);
    let purpose = Purpose::Page(PageUrl::parse(&format!("http://s{host}.test/")).unwrap());
    let begin = play.world.now().after(at);
    let contact = Contact { address, by: play.world.member(by), begin, end: begin.after(took), purpose };
    play.world.ledger.contacts.push(contact);
}

const PAUSES: Pauses = Pauses { crawl_delay: 10_000, slack: 1.0 };

#[test]
fn fetches_of_one_subnet_by_two_members_are_seen_also_one_after_the_other() {
    let scenario = small("");
    // At one time; before the pause of the daemon; before the pause of robots.txt; after it.
    for (second, pairs, broken) in [(50, 1, 1), (1_500, 1, 1), (9_900, 1, 1), (10_200, 0, 0)] {
        let mut play = blank(&scenario);
        fetch(&mut play, 0, 0, 0, 100);
        fetch(&mut play, 1, 0, second, 100);
        let (found, pauses) = (overlaps(&play.world, &PAUSES), broken_pauses(&play.world, &PAUSES));
        assert_eq!((found.count, pauses.count), (pairs, broken), "after {second} ms");
    }
    // Another host of the subnet at one time; not afterwards, and not if the same member fetches both.
    for (by, second, pairs) in [(1, 50, 1), (1, 150, 0), (0, 50, 0)] {
        let mut play = blank(&scenario);
        fetch(&mut play, 0, 0, 0, 100);
        fetch(&mut play, by, 4, second, 100);
        assert_eq!(overlaps(&play.world, &PAUSES).count, pairs, "member {by} after {second} ms");
        assert_eq!(broken_pauses(&play.world, &PAUSES).count, 0);
    }
}

#[test]
fn an_answer_that_took_long_is_followed_by_a_longer_pause_and_quick_clocks_may_shorten_it() {
    let scenario = small("");
    let mut play = blank(&scenario);
    fetch(&mut play, 0, 0, 0, 3_000);
    fetch(&mut play, 0, 0, 28_000, 100);
    assert_eq!(broken_pauses(&play.world, &PAUSES).count, 1);
    assert_eq!(broken_pauses(&play.world, &Pauses { crawl_delay: 10_000, slack: 0.8 }).count, 0);
}

#[test]
fn the_longest_overlap_ends_with_a_minute_without_any() {
    let scenario = small("");
    let mut play = blank(&scenario);
    for at in [0, 20_000, 40_000, 200_000] {
        fetch(&mut play, 0, 0, at, 100);
        fetch(&mut play, 1, 0, at + 50, 100);
    }
    assert_eq!(overlaps(&play.world, &PAUSES).longest, 40_150);
}

#[test]
fn what_was_recorded_is_missed_wherever_it_should_be() {
    let scenario = small("");
    let mut play = play_until(&scenario, 240);
    assert_eq!(lost(&play.world), (0, None));
    let (host, run, page) = {
        let records = play.world.records.as_ref().unwrap();
        let (host, run, page, _) = records.all_recorded().last().unwrap();
        (host.clone(), run, page.clone())
    };
    let address = play.world.hosts()[&host];
    let owner = play.world.crawler(0).unwrap().view().claim_around(address).unwrap().owner;
    let number = (0..3).find(|number| play.world.member(*number) == owner).unwrap();
    // Without the last row one page is missing, with the replicas as they were.
    let key = JournalKey { subnet: nearcrawl_model::subnet::Subnet::around(address, 24), host, run };
    let journal = play.world.disk(number).unwrap().journals[&key].clone();
    let holds = |entry: &Vec<u8>| entry.windows(page.as_str().len()).any(|part| part == page.as_str().as_bytes());
    let sequence = *journal.iter().rfind(|(_, entry)| holds(entry)).unwrap().0;
    play.world.change_disk(number, |disk| drop(disk.journals.get_mut(&key).unwrap().split_off(&sequence)));
    let (missing, what) = lost(&play.world);
    assert!(missing >= 1 && what.unwrap().contains(&key.host.to_string()), "{missing}");
    // Without its owner everything is missing, whatever is on the disk of a member that is dead.
    play.world.change_disk(number, |disk| drop(disk.journals.insert(key.clone(), journal)));
    assert_eq!(lost(&play.world).0, 0);
    play.world.kill_all(number);
    assert!(lost(&play.world).0 > missing);
}

#[test]
fn an_early_run_is_no_excuse_for_fetching_again() {
    use crate::swarm::records::Records;
    use nearcrawl_model::time::Moment;
    let url = PageUrl::parse("http://s0.test/").unwrap();
    let due = 1_000_000;
    let ask = |run: u32, at: u64| {
        let mut records = Records::default();
        let first = records.run(&url.host(), 1, Moment(0), due);
        records.asked(Moment(0), 0, &url, first, true);
        records.record(&url, first);
        let run = records.run(&url.host(), run, Moment(at), due);
        records.asked(Moment(at), 1, &url, run, true);
        records.repeated.0
    };
    assert_eq!((ask(1, 500_000), ask(2, 500_000), ask(1_007, 999_999)), (1, 1, 1));
    assert_eq!(ask(2, 1_000_000), 0, "it was due");
}

#[test]
fn the_end_needs_equal_maps_and_an_owner_for_each_subnet() {
    let scenario = small("");
    let mut play = play_until(&scenario, 900);
    assert!(play.settles(60_000), "{:?}", play.judge.unsettled(&play.world));
    // One member hears of a claim that the others do not know.
    let (owner, key, _) = play.world.signer(0).unwrap();
    play.world.part(&[vec![0], vec![1], vec![2]]);
    let (list, voters) = play.voters();
    let claim = crate::scenario::orders::accepted(crate::scenario::orders::filler(owner, &key, 7), list, &voters);
    let process = play.world.member(1);
    play.world.tell_process(
        process,
        nearcrawl_core::event::Event::Gossiped { author: process, gossip: nearcrawl_model::message::Gossip::Claims(vec![claim]) },
    );
    play.run(902_000, &|| ());
    assert!(play.judge.unsettled(&play.world).unwrap().contains("differ"));
}

#[test]
fn a_subnet_that_never_had_an_owner_is_missed_if_a_recorded_page_leads_there() {
    let scenario = small("");
    let mut play = play_until(&scenario, 300);
    let owned = play.judge.unsettled(&play.world);
    // As if nobody had ever claimed anything.
    play.judge.forget_owners();
    play.judge.learn_places(&play.world);
    for number in 0..3 {
        play.world.kill_all(number);
    }
    assert_eq!(owned.filter(|what| what.contains("living owners")), None);
    assert_eq!(play.judge.unsettled_owners(&play.world), None, "nothing is known yet");
    play.judge.learn_named(&play.world);
    assert!(play.judge.unsettled_owners(&play.world).unwrap().contains("0 living owners"));
}

#[test]
fn nobody_is_accused_because_hosts_move_or_what_was_not_recorded_is_fetched_again() {
    let steps = at("60s", "\"move-host\"\nwho = 1") + &at("123s", "\"kill\"\nwho = [1]\nfor = \"10s\"");
    let text = format!("members = 3\nsubnets = 4\nhosts = 4\nminutes = 3\n{steps}");
    let verdict = super::Scenario::read(&text).unwrap().play(1, None, &|| ()).unwrap();
    assert!(verdict.holds, "{:?}", verdict.first_violation);
    assert!(verdict.fetches > 50, "{}", verdict.fetches);
}

#[test]
fn figures_are_printed_by_the_names_and_in_the_order_of_the_format() {
    let verdict = super::Scenario::read("members = 1\nsubnets = 1\nhosts = 1\nminutes = 1\n").unwrap().play(3, None, &|| ()).unwrap();
    let text = serde_json::to_string(&verdict).unwrap();
    let names = [
        "seed",
        "digest",
        "fetches",
        "overlaps",
        "overlap_ms_max",
        "pauses_broken",
        "fetched_twice",
        "lost",
        "exact_but_wrong",
        "ownerless_ms_max",
        "failover_ms",
        "n",
        "p50",
        "p99",
        "max",
        "failover_with_quorum_ms",
        "n",
        "p50",
        "p99",
        "max",
        "bytes_member_day",
        "longest_step_ms",
        "first_violation",
    ];
    let keys: Vec<_> = text.split('"').enumerate().filter(|(place, _)| place % 2 == 1).map(|(_, key)| key).collect();
    let keys: Vec<_> = keys.into_iter().filter(|key| *key != verdict.digest).collect();
    assert_eq!(keys, names, "{text}");
}
