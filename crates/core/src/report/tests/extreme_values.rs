//! Tests with numbers at the end of their range, in messages of members and in the own store: refused, and nothing overflows.

use super::*;
use nearcrawl_model::journal::{JournalEntry, JournalKey, VisitOutcome};

const SUBNET: &str = "9.0.1.0/24";

fn last_epoch(owner: u8, released: bool) -> SignedClaim {
    let claim = Claim {
        subnet: SUBNET.parse().unwrap(),
        epoch: u64::MAX,
        owner: member(owner),
        rtt_us: None,
        runner_up: None,
        probes: 0,
        reason: ClaimReason::Awarded,
        released,
        answers: Vec::new(),
    };
    SignedClaim::sign(&claim, &key(owner))
}

#[test]
fn a_claim_with_the_last_epoch_is_refused() {
    for (owner, released) in [(2, true), (3, false)] {
        let mut played = Played::alone();
        played.meet(2);
        played.pass(60_000);
        played.handle(Event::Gossiped { author: member(owner), gossip: Gossip::Claims(vec![last_epoch(owner, released)]) });
        played.pass(200_000);
        assert_eq!(played.crawler.ownership.register().claim(&SUBNET.parse().unwrap()), None);
        let refusals = played.crawler.view().status(Default::default()).refusals;
        assert_eq!(refusals.get("claims with an epoch that no subnet reaches"), Some(&1), "{refusals:?}");
    }
}

#[test]
fn a_claim_with_the_last_epoch_in_the_store_is_left_out() {
    let identity = Identity {
        key: key(1),
        incarnation: 2,
        addresses: Vec::new(),
        fingerprints: FINGERPRINTS,
        claims: vec![last_epoch(3, false)],
        members: BTreeSet::new(),
        voting: Vec::new(),
        sole: true,
        store: Default::default(),
        contacts: Vec::new(),
        surveys: Vec::new(),
        survey_probes: Vec::new(),
        opt_outs: Vec::new(),
        admissions: Vec::new(),
        certificate: None,
    };
    let mut now = Now { moment: Moment(1_000_000), wall: WallTime(1_700_000_000_000) };
    let mut crawler = Crawler::new(identity, settings(), hierarchy(), now);
    for _ in 0..3_000 {
        now.moment = now.moment.after(100);
        crawler.handle(now, Event::Tick);
        while crawler.next_command().is_some() {}
    }
    assert_eq!(crawler.ownership.register().claim(&SUBNET.parse().unwrap()), None);
}

fn journal(run: u32, further: Vec<JournalEntry>) -> (JournalKey, Vec<JournalEntry>) {
    let key = JournalKey { subnet: SUBNET.parse().unwrap(), host: host("a.ke"), run };
    let opened = JournalEntry::Opened { address: "9.0.1.1".parse().unwrap(), tree: host("a.ke"), at: WallTime(1) };
    (key, [vec![opened], further].concat())
}

fn visited(page: &str, took: u64, bytes: u64) -> JournalEntry {
    JournalEntry::Visited {
        url: url(page),
        level: 0,
        at: WallTime(3),
        outcome: VisitOutcome::Page(200),
        took,
        first_byte_us: None,
        bytes,
        software: None,
        children: Vec::new(),
        found: Vec::new(),
        outgoing: Vec::new(),
        beyond_scope: Vec::new(),
        rest: None,
    }
}

/// Member 2 owned the subnet and releases it; we take it over, and member 2 sends these journals of it.
fn taken_over(journals: Vec<(JournalKey, Vec<JournalEntry>)>) -> Played {
    let mut played = Played::alone();
    played.meet(2);
    played.pass(60_000);
    played.claimed_by(2, SUBNET, false);
    played.claimed_by(2, SUBNET, true);
    played.pass(60_000);
    let subnet = SUBNET.parse().unwrap();
    assert_eq!(played.crawler.ownership.register().claim(&subnet).map(|claim| claim.owner), Some(member(1)));
    played.handle(Event::Recovered { subnet, host: None, from: member(2), journals: Some(journals), bytes: 0 });
    played.pass(1_000);
    played
}

fn pages(played: &Played) -> u64 {
    played.crawler.view().servers(None, 10).servers.iter().map(|server| server.pages).sum()
}

#[test]
fn a_copy_counts_up_to_the_first_row_with_an_impossible_number() {
    let (first, last) = (visited("http://a.ke/", 1, 1), visited("http://a.ke/z", 1, 1));
    assert_eq!(pages(&taken_over(vec![journal(1, vec![first.clone(), last.clone()])])), 2);
    for impossible in [
        visited("http://a.ke/b", u64::MAX, 1),
        visited("http://a.ke/b", 1, u64::MAX),
        JournalEntry::Admitted { urls: vec![(url("http://a.ke/b"), 0, 255)] },
        JournalEntry::Admitted { urls: vec![(url("http://a.ke/b"), 255, 0)] },
        JournalEntry::TakenOver { epoch: u64::MAX },
        JournalEntry::Follows { run: u32::MAX, pages: u64::MAX },
    ] {
        let played = taken_over(vec![journal(1, vec![first.clone(), impossible.clone(), last.clone()])]);
        assert_eq!(pages(&played), 1, "{impossible:?}");
    }
}

#[test]
fn a_journal_of_the_last_run_number_is_left_out() {
    let beaten = vec![journal(1, vec![JournalEntry::TakenOver { epoch: 1 }, visited("http://a.ke/", 1, 1)]), journal(u32::MAX, Vec::new())];
    assert_eq!(pages(&taken_over(beaten)), 1);
}
