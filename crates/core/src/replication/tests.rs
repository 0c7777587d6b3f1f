//! Does nothing count before it is stored and copied, and does a new owner begin with the best that any member kept?

use super::Replication;
use crate::{
    context::Context,
    event::{Command, PeerCommand, StoreCommand},
    membership::{Member, Membership, Roster, Swim},
    ownership::Ownership,
    routing::outbox::Item,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, ClaimReason, SignedClaim},
    ids::{Ticket, WriteId},
    journal::{Arrival, JournalEntry, JournalKey, JournalRow, VisitOutcome},
    message::Response,
    subnet::Subnet,
    time::{Moment, WallTime},
    url::PageUrl,
};
use std::collections::BTreeSet;

const A: AccessPoint = AccessPoint([8; 32]);
const B: AccessPoint = AccessPoint([9; 32]);

fn subnet() -> Subnet {
    "9.0.0.0/24".parse().unwrap()
}

fn journal() -> JournalKey {
    JournalKey { subnet: subnet(), host: "a.ke".parse().unwrap(), run: 1 }
}

fn opened() -> JournalEntry {
    JournalEntry::Opened { address: "9.0.0.1".parse().unwrap(), tree: "a.ke".parse().unwrap(), at: WallTime(1) }
}

fn resumed() -> JournalEntry {
    JournalEntry::Resumed { at: WallTime(2) }
}

fn arrival(url: &str) -> Arrival {
    Arrival { url: PageUrl::parse(url).unwrap(), place: None, run: 1 }
}

/// A visit that named this URL for another owner.
fn visited(outgoing: &str) -> JournalEntry {
    JournalEntry::Visited {
        url: PageUrl::parse("http://a.ke/").unwrap(),
        level: 0,
        at: WallTime(2),
        outcome: VisitOutcome::Page(200),
        took: 10,
        first_byte_us: None,
        bytes: 100,
        software: None,
        children: Vec::new(),
        found: Vec::new(),
        outgoing: vec![arrival(outgoing)],
        beyond_scope: Vec::new(),
        rest: None,
    }
}

fn alone(cx: &Context) -> Membership {
    let swim = Swim::new(Member::new(cx.me, 1, Vec::new()), cx.settings.membership.clone(), 1);
    Membership::new(swim, Roster::new(cx.me, cx.settings.roster.clone(), cx.now.moment, &BTreeSet::new()))
}

/// The number of the write of the rows that are to be stored, and how many there are; nothing else is wanted.
fn append(cx: &mut Context) -> (WriteId, usize) {
    match &cx.take_commands()[..] {
        [Command::Store(StoreCommand::Append { write, rows })] => (*write, rows.len()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rows_are_stored_together_and_count_when_a_replica_has_them_too() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    replication.replicas.assign(&journal(), &[A]);
    replication.push(&cx, journal(), 0, &opened());
    replication.push(&cx, journal(), 1, &visited("http://b.ke/"));
    cx.now.moment = Moment(199);
    replication.tick(&mut cx);
    assert!(cx.take_commands().is_empty(), "more may come");
    cx.now.moment = Moment(200);
    replication.tick(&mut cx);
    let (write, rows) = append(&mut cx);
    assert_eq!((rows, replication.all_is_stored(&subnet())), (2, false));
    assert_eq!(replication.stored(WriteId(write.0 + 1)), None);
    let origin = Some((journal(), 1));
    assert_eq!(replication.stored(write), Some(vec![Item { arrival: arrival("http://b.ke/"), origin }]));
    assert!(replication.all_is_stored(&subnet()) && !replication.is_recorded(&journal(), 1));
    replication.copied(&cx, A, &[(journal(), 2)].into(), Some(vec![(journal(), 2)]));
    assert!(replication.is_recorded(&journal(), 2) && !replication.is_recording());
}

#[test]
fn many_rows_are_stored_at_once_but_a_visit_not_without_what_is_kept_of_it() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    for sequence in 0..super::MAX_GATHERED as u64 {
        replication.flush_if_full(&mut cx, &resumed());
        replication.push(&cx, journal(), sequence, &resumed());
    }
    replication.flush_if_full(&mut cx, &visited("http://b.ke/"));
    assert!(cx.take_commands().is_empty());
    replication.flush_if_full(&mut cx, &resumed());
    assert_eq!(append(&mut cx).1, super::MAX_GATHERED);
}

#[test]
fn a_replica_that_took_nothing_is_tried_again_after_a_second() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    replication.replicas.assign(&journal(), &[A]);
    replication.replicas.stored(&journal(), 3);
    let mut copies = |replication: &mut Replication, at: u64| {
        cx.now.moment = Moment(at);
        replication.tick(&mut cx);
        cx.take_commands().len()
    };
    assert_eq!((copies(&mut replication, 0), copies(&mut replication, 1)), (1, 0), "one message at a time");
    let at_once = Context::of_test(1);
    replication.copied(&at_once, A, &[(journal(), 3)].into(), Some(vec![(journal(), 1)]));
    assert_eq!((copies(&mut replication, 999), copies(&mut replication, 1_000)), (0, 1));
}

#[test]
fn what_has_arrived_is_noted_up_to_the_first_row_with_a_url_still_under_way() {
    let mut replication = Replication::default();
    let item = |sequence| Item { arrival: arrival("http://b.ke/"), origin: Some((journal(), sequence)) };
    replication.forward(&[item(4), item(4), item(7)]);
    assert_eq!(replication.newly_forwarded(), [(journal(), 4)]);
    replication.delivered(&[item(7), item(4)]);
    assert!(replication.newly_forwarded().is_empty(), "one URL of row 4 is under way still");
    replication.delivered(&[item(4)]);
    assert_eq!(replication.newly_forwarded(), [(journal(), 8)]);
}

#[test]
fn what_has_arrived_is_noted_for_the_run_that_named_it_and_for_no_other() {
    let mut replication = Replication::default();
    let next_run = JournalKey { run: 2, ..journal() };
    let item = |key: &JournalKey| Item { arrival: arrival("http://b.ke/"), origin: Some((key.clone(), 7)) };
    replication.forward(&[item(&journal()), item(&next_run)]);
    replication.delivered(&[item(&journal())]);
    let marks: Vec<_> = replication.newly_forwarded().into_iter().filter(|(_, before)| *before > 7).collect();
    assert_eq!(marks, [(journal(), 8)], "the URL of the second run is still under way");
}

#[test]
fn the_next_owner_of_a_subnet_is_a_replica_until_the_hand_over_is_called_off() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    let members = alone(&cx);
    replication.assign(&cx, &members, Some(A), &journal());
    assert_eq!(replication.lacking(A, &subnet()), Some(0));
    replication.replicas.stored(&journal(), 2);
    replication.tick(&mut cx);
    assert_eq!((replication.lacking(A, &subnet()), replication.is_recorded(&journal(), 1)), (Some(2), false));
    assert!(matches!(&cx.take_commands()[..], [Command::Peers(PeerCommand::Copy(order))] if order.to == A));
    replication.assign_subnet(&cx, &members, None, &subnet());
    assert_eq!((replication.lacking(A, &subnet()), replication.is_recorded(&journal(), 2)), (None, true), "alone again");
}

#[test]
fn only_the_owner_of_a_subnet_has_its_rows_kept() {
    let (mut cx, replication) = (Context::of_test(1), Replication::default());
    let mut ownership = Ownership::new(cx.now.moment, true);
    let (reason, released, answers) = (ClaimReason::Awarded, false, Vec::new());
    let claim = Claim { subnet: subnet(), epoch: 1, owner: cx.me, rtt_us: None, runner_up: None, probes: 0, reason, released, answers };
    let proof = SignedClaim::sign(&claim, &cx.key);
    assert!(ownership.merge(claim, proof).is_some());
    let rows = vec![JournalRow { key: JournalKey { run: 3, ..journal() }, sequence: 0, entry: Vec::new() }];
    replication.keep(&mut cx, &ownership, A, Ticket(1), rows.clone());
    assert!(matches!(cx.take_commands()[..], [Command::Peers(PeerCommand::Answer { ticket: Ticket(1), response: Response::Refused(_) })]));
    let me = cx.me;
    replication.keep(&mut cx, &ownership, me, Ticket(2), rows);
    let commands = cx.take_commands();
    let [Command::Store(StoreCommand::DropJournal(dropped)), Command::Store(StoreCommand::KeepRows { ticket: Ticket(2), .. })] =
        &commands[..]
    else {
        panic!("{commands:?}")
    };
    assert_eq!(dropped.run, 1, "the run before is needed until this one is complete");
}

#[test]
fn a_new_owner_begins_with_the_journal_of_the_latest_owner_even_if_it_is_shorter() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    replication.begin_load(&mut cx, subnet(), [A, B].into());
    assert_eq!(cx.take_commands().len(), 3, "two replicas and our own store");
    let long = vec![opened(), resumed(), resumed(), resumed()];
    let late = vec![opened(), resumed(), JournalEntry::TakenOver { epoch: 2 }];
    replication.loaded(subnet(), vec![(journal(), long)]);
    replication.recovered(&cx, subnet(), A, Some(vec![(journal(), late.clone())]), 300);
    replication.recovered(&cx, subnet(), B, None, 0);
    assert_eq!(replication.recovered_bytes(), 300);
    assert!(replication.take_found(&subnet()).is_none(), "the other replica is asked again");
    cx.now.moment = Moment(2_000);
    assert_eq!(replication.ask_again(&mut cx), (vec![], vec![]));
    assert!(matches!(&cx.take_commands()[..], [Command::Peers(PeerCommand::Recover { from, .. })] if *from == B));
    cx.now.moment = Moment(20_000);
    assert_eq!(replication.ask_again(&mut cx), (vec![subnet()], vec![]), "one answered: no other member is waited for");
    let (copy, previous) = replication.take_found(&subnet()).unwrap().into_journals().next().unwrap();
    assert_eq!((copy.entries, previous.is_none()), (late, true));
    assert!(!replication.is_loading(&subnet()));
    assert_eq!(replication.recovered_bytes(), 0);
}

#[test]
fn if_no_replica_answers_others_are_asked_instead_of_beginning_from_nothing() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    let members = alone(&cx);
    replication.begin_load(&mut cx, subnet(), [A].into());
    replication.loaded(subnet(), Vec::new());
    cx.now.moment = Moment(20_000);
    assert_eq!(replication.ask_again(&mut cx), (vec![], vec![subnet()]));
    assert!(replication.take_found(&subnet()).is_none());
    replication.ask_others(&mut cx, &members, subnet());
    let found = replication.take_found(&subnet()).expect("there is no other member");
    assert_eq!(found.rest_after(ClaimReason::Awarded), None);
    assert_eq!(found.rest_after(ClaimReason::OwnerDead), Some(30_000), "the owner before may have asked a moment ago");
}
