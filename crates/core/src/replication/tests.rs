//! Tests that nothing counts before it is stored and copied, and that a new owner begins with the best copy any member kept.

use super::{AwaitedReplicas, Replication, loading::JournalCopy, placement::Placement};
use crate::{
    context::Context,
    event::{Command, CopyAnswer, PeerCommand, StoreCommand},
    membership::{Member, Membership, Roster, Swim},
    ownership::{Ownership, claims::JournalsAt},
    routing::outbox::Item,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, ClaimReason, SignedClaim},
    ids::{Ticket, WriteId},
    journal::{Arrival, JournalEntry, JournalKey, JournalRow, VisitOutcome},
    message::{Request, Response},
    replica::{NamedReplica, StoreId},
    subnet::Subnet,
    time::{Moment, Now, WallTime},
    url::PageUrl,
    vote::InheritedReplicas,
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

/// Replicas of an owner that are waited for, for so long.
fn waited_for(members: Vec<NamedReplica>, patience_s: u32) -> AwaitedReplicas {
    AwaitedReplicas::new(vec![InheritedReplicas { members, patience_s }])
}

const DAY: u32 = 86_400;

fn alone(cx: &Context) -> Membership {
    let swim = Swim::new(Member::new(cx.me, 1, Vec::new()), cx.settings.membership.clone(), 1);
    Membership::with_lease(swim, Roster::new(cx.me, cx.settings.roster.clone(), cx.now.moment, &BTreeSet::new()))
}

/// With so many other members that are alive.
fn with_others(cx: &Context, others: u8) -> Membership {
    with_these(cx, &(0..others).map(|number| AccessPoint([20 + number; 32])).collect::<Vec<_>>())
}

fn with_these(cx: &Context, others: &[AccessPoint]) -> Membership {
    let swim = Swim::new(Member::new(cx.me, 1, Vec::new()), cx.settings.membership.clone(), 1);
    let mut roster = Roster::new(cx.me, cx.settings.roster.clone(), cx.now.moment, &BTreeSet::new());
    others.iter().for_each(|other| roster.up(cx.now.moment, *other));
    Membership::with_lease(swim, roster)
}

/// The number of the write of the rows that are to be stored, and how many there are; nothing else is wanted.
fn append(cx: &mut Context) -> (WriteId, usize) {
    match &cx.take_commands()[..] {
        [Command::Store(StoreCommand::Append { write, rows })] => (*write, rows.len()),
        other => panic!("{other:?}"),
    }
}

type Says = fn(&AccessPoint) -> bool;

/// Nobody says anything of others.
fn unknown() -> super::Reputation<Says, Says> {
    super::Reputation { vouched: |_| false, leaves: |_| false }
}

#[test]
fn rows_are_stored_together_and_count_when_both_replicas_have_them_too() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    replication.placement = Placement::of(cx.me, &[A, B]);
    replication.voters_know(&cx, Some(replication.names().to_vec()));
    replication.assign(None, &journal());
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
    replication.copied(&mut cx, A, &[(journal(), 2)].into(), CopyAnswer::Kept(vec![(journal(), 2)]));
    assert!(!replication.is_recorded(&journal(), 1), "a successor may ask the other one only");
    replication.copied(&mut cx, B, &[(journal(), 2)].into(), CopyAnswer::Kept(vec![(journal(), 2)]));
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
    let mut at_once = Context::of_test(1);
    replication.copied(&mut at_once, A, &[(journal(), 3)].into(), CopyAnswer::Kept(vec![(journal(), 1)]));
    assert_eq!((copies(&mut replication, 999), copies(&mut replication, 1_000)), (0, 1));
}

#[test]
fn a_silent_replica_is_sent_one_row_at_a_time_and_ever_more_rarely_until_it_takes_one() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    let other = JournalKey { host: "b.ke".parse().unwrap(), ..journal() };
    for key in [journal(), other.clone()] {
        replication.replicas.assign(&key, &[A]);
        replication.replicas.stored(&key, 7);
    }
    let (mut sent_at, mut rows) = (Vec::new(), Vec::new());
    let mut last = Vec::new();
    for at in (0..40_000).step_by(100) {
        cx.now.moment = Moment(at);
        replication.tick(&mut cx);
        for command in cx.take_commands() {
            let Command::Peers(PeerCommand::Copy(order)) = command else { panic!("{command:?}") };
            sent_at.push(at);
            rows.push(order.ranges.iter().map(|(_, from, upto)| upto - from).sum::<u64>());
            let sent = order.ranges.iter().map(|(key, _, upto)| (key.clone(), *upto)).collect();
            last.clone_from(&order.ranges);
            replication.copied(&mut cx, A, &sent, CopyAnswer::Failed);
        }
    }
    assert_eq!(sent_at, [0, 1_000, 3_000, 7_000, 15_000, 23_000, 31_000, 39_000]);
    assert_eq!(rows, [14, 1, 1, 1, 1, 1, 1, 1]);
    let (key, _, upto) = last.remove(0);
    replication.copied(&mut cx, A, &[(key.clone(), upto)].into(), CopyAnswer::Kept(vec![(key, upto)]));
    replication.send_copies(&mut cx);
    let Some(Command::Peers(PeerCommand::Copy(order))) = cx.take_commands().pop() else { panic!("nothing is sent") };
    assert_eq!(order.ranges.iter().map(|(_, from, upto)| upto - from).sum::<u64>(), 13, "all the rest as soon as it answers");
}

#[test]
fn a_journal_that_a_replica_does_not_take_holds_up_no_other() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    let other = JournalKey { host: "b.ke".parse().unwrap(), ..journal() };
    replication.replicas.need(Some([A].into()));
    for key in [journal(), other.clone()] {
        replication.replicas.assign(&key, &[A]);
        replication.replicas.stored(&key, 3);
    }
    replication.send_copies(&mut cx);
    assert_eq!(cx.take_commands().len(), 1);
    let sent = [(journal(), 3), (other.clone(), 3)].into();
    replication.copied(&mut cx, A, &sent, CopyAnswer::Kept(vec![(other.clone(), 3)]));
    assert_eq!(replication.replicas.recorded(&other), 3);
    replication.send_copies(&mut cx);
    assert!(cx.take_commands().is_empty(), "the other one again at once would go round in circles");
    // Refused whole: each journal's turn comes.
    let mut tried = BTreeSet::new();
    replication.replicas.stored(&other, 4);
    for at in (1_000..40_000).step_by(500) {
        cx.now.moment = Moment(at);
        replication.tick(&mut cx);
        for command in cx.take_commands() {
            let Command::Peers(PeerCommand::Copy(order)) = command else { panic!("{command:?}") };
            tried.extend(order.ranges.iter().map(|(key, ..)| key.host.clone()));
            replication.copied(&mut cx, A, &[].into(), CopyAnswer::Failed);
        }
    }
    assert_eq!(tried.len(), 2);
}

#[test]
fn of_a_site_that_is_not_ours_any_more_no_run_is_copied() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    let next_run = JournalKey { run: 2, ..journal() };
    let other = JournalKey { host: "b.ke".parse().unwrap(), ..journal() };
    for key in [journal(), next_run.clone(), other.clone()] {
        replication.replicas.assign(&key, &[A]);
        replication.replicas.stored(&key, 3);
    }
    replication.forget_site(&next_run);
    replication.send_copies(&mut cx);
    let Some(Command::Peers(PeerCommand::Copy(order))) = cx.take_commands().pop() else { panic!("nothing is sent") };
    assert_eq!(order.ranges, [(other, 0, 3)]);
}

#[test]
fn of_a_message_those_rows_are_kept_that_the_sender_owns() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    let mut ownership = Ownership::new(cx.now.moment, true);
    let (owner, claim, proof) = claim_of(2, None);
    assert!(ownership.merge(claim, proof).is_some());
    let unknown = JournalRow { key: JournalKey { subnet: "9.0.1.0/24".parse().unwrap(), ..journal() }, sequence: 0, entry: vec![7] };
    replication.keep(&mut cx, &ownership, owner, Ticket(1), vec![unknown, row(1, 0, 1)]);
    let commands = cx.take_commands();
    let [Command::Store(StoreCommand::KeepRows { rows, .. })] = &commands[..] else { panic!("{commands:?}") };
    assert_eq!(rows, &[row(1, 0, 1)]);
    assert_eq!(cx.counters.refused["journal rows of subnets that the sender does not own"], 1);
}

#[test]
fn what_is_here_is_told_of_those_journals_that_the_asking_member_may_copy_here() {
    let (mut cx, replication) = (Context::of_test(1), Replication::default());
    let mut ownership = Ownership::new(cx.now.moment, true);
    let (owner, claim, proof) = claim_of(2, None);
    assert!(ownership.merge(claim, proof).is_some());
    let unknown = JournalKey { subnet: "9.0.1.0/24".parse().unwrap(), ..journal() };
    replication.compare_rows(&mut cx, &ownership, owner, Ticket(1), vec![(unknown, 9), (journal(), 9)]);
    replication.compare_rows(&mut cx, &ownership, A, Ticket(2), vec![(journal(), 9)]);
    let told: Vec<_> = cx
        .take_commands()
        .into_iter()
        .map(|command| match command {
            Command::Store(StoreCommand::DigestRows { ticket, journals }) => (ticket, journals),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told, [(Ticket(1), vec![(journal(), 9)]), (Ticket(2), Vec::new())]);
}

#[test]
fn a_replica_that_tells_of_none_of_its_copies_is_as_one_that_takes_nothing() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    replication.replicas.assign(&journal(), &[A]);
    replication.replicas.stored(&journal(), 300);
    let mut orders = |replication: &mut Replication, at: u64, answer: Option<CopyAnswer>| {
        cx.now.moment = Moment(at);
        if let Some(answer) = answer {
            replication.copied(&mut cx, A, &[(journal(), 200)].into(), answer);
        }
        replication.tick(&mut cx);
        let copies = cx.take_commands().into_iter();
        copies
            .map(|command| if let Command::Peers(PeerCommand::Copy(order)) = command { order } else { panic!("{command:?}") })
            .collect::<Vec<_>>()
    };
    let [asks] = &orders(&mut replication, 0, None)[..] else { panic!("one order") };
    assert!(asks.compares);
    assert_eq!(orders(&mut replication, 10, Some(CopyAnswer::Compared(Vec::new()))), []);
    let [tries] = &orders(&mut replication, 1_010, None)[..] else { panic!("one order") };
    assert_eq!((tries.compares, &tries.ranges), (false, &vec![(journal(), 0, 1)]));
    let [rest] = &orders(&mut replication, 1_020, Some(CopyAnswer::Kept(vec![(journal(), 200)])))[..] else { panic!("one order") };
    assert_eq!((rest.compares, &rest.ranges), (false, &vec![(journal(), 200, 300)]));
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
    replication.review_replicas(&mut cx, &members, unknown(), |_| None);
    replication.voters_know(&cx, Some(replication.names().to_vec()));
    replication.assign(Some(A), &journal());
    assert_eq!(replication.lacking(A, &subnet()), Some(0));
    replication.replicas.stored(&journal(), 2);
    replication.tick(&mut cx);
    assert_eq!((replication.lacking(A, &subnet()), replication.is_recorded(&journal(), 2)), (Some(2), true), "nothing waits for it");
    assert!(matches!(&cx.take_commands()[..], [Command::Peers(PeerCommand::Copy(order))] if order.to == A));
    replication.assign_subnet(None, &subnet());
    assert_eq!(replication.lacking(A, &subnet()), None);
}

/// A claim of access point `number` to the subnet, and its owner.
fn claim_of(number: u8, released_to: Option<AccessPoint>) -> (AccessPoint, Claim, SignedClaim) {
    let Context { me: owner, key, .. } = Context::of_test(number);
    let (reason, released, runner_up, answers) = (ClaimReason::Awarded, released_to.is_some(), released_to, Vec::new());
    let claim = Claim { subnet: subnet(), epoch: 1, owner, rtt_us: None, runner_up, probes: 0, reason, released, answers };
    let proof = SignedClaim::sign(&claim, &key);
    (owner, claim, proof)
}

fn row(run: u32, sequence: u64, bytes: usize) -> JournalRow {
    JournalRow { key: JournalKey { run, ..journal() }, sequence, entry: vec![7; bytes] }
}

/// What a member is answered that has a row kept; none if it is stored first.
fn kept(cx: &mut Context, replication: &mut Replication, ownership: &Ownership, from: AccessPoint, row: JournalRow) -> Option<Response> {
    replication.keep(cx, ownership, from, Ticket(1), vec![row]);
    match cx.take_commands().pop() {
        Some(Command::Peers(PeerCommand::Answer { ticket: Ticket(1), response })) => Some(response),
        Some(Command::Store(StoreCommand::KeepRows { ticket: Ticket(1), .. })) => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rows_are_kept_for_the_owner_of_a_subnet_and_the_next_that_a_release_names_and_for_nobody_else() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    let mut ownership = Ownership::new(cx.now.moment, true);
    let refused = |answer| matches!(answer, Some(Response::Refused(_)));
    let (owner, claim, proof) = claim_of(2, None);
    assert!(refused(kept(&mut cx, &mut replication, &ownership, owner, row(1, 0, 1))), "nobody's by our map");
    assert!(ownership.merge(claim, proof).is_some());
    assert!(refused(kept(&mut cx, &mut replication, &ownership, A, row(1, 0, 1))));
    assert_eq!(kept(&mut cx, &mut replication, &ownership, owner, row(1, 0, 1)), None);
    let (_, released, proof) = claim_of(2, Some(B));
    assert!(ownership.merge(released, proof).is_some());
    assert!(refused(kept(&mut cx, &mut replication, &ownership, A, row(1, 0, 1))));
    assert_eq!(kept(&mut cx, &mut replication, &ownership, owner, row(1, 0, 1)), None, "its last rows");
    assert_eq!(kept(&mut cx, &mut replication, &ownership, B, row(1, 0, 1)), None);
    assert_eq!(cx.counters.refused["journal rows of subnets that the sender does not own"], 3);
}

#[test]
fn with_a_new_run_the_one_before_the_last_goes() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    let mut ownership = Ownership::new(cx.now.moment, true);
    let (owner, claim, proof) = claim_of(2, None);
    assert!(ownership.merge(claim, proof).is_some());
    replication.keep(&mut cx, &ownership, owner, Ticket(2), vec![row(3, 0, 0)]);
    let commands = cx.take_commands();
    let [
        Command::Store(StoreCommand::DropRuns { before: begun, but_newest: true }),
        Command::Store(StoreCommand::KeepRows { ticket: Ticket(2), .. }),
    ] = &commands[..]
    else {
        panic!("{commands:?}")
    };
    assert_eq!(begun.run, 3, "the newest run before it is needed until it is complete");
}

#[test]
fn an_owner_whose_journals_take_their_part_of_the_disk_is_told_so_and_the_others_are_not() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    cx.settings.max_kept_per_owner = 10_000;
    let mut ownership = Ownership::new(cx.now.moment, true);
    let (owner, claim, proof) = claim_of(2, None);
    assert!(ownership.merge(claim, proof).is_some());
    // What is on its way to the disk counts, and no more than once when it is there.
    assert_eq!(kept(&mut cx, &mut replication, &ownership, owner, row(1, 0, 6_000)), None);
    assert_eq!(kept(&mut cx, &mut replication, &ownership, owner, row(1, 1, 6_000)), Some(Response::NoRoom));
    replication.resized(&cx, &ownership, Some(Ticket(1)), [(subnet(), 6_100)].into());
    assert_eq!(replication.most_kept(&cx), 6_100);
    assert_eq!(kept(&mut cx, &mut replication, &ownership, owner, row(1, 1, 6_000)), Some(Response::NoRoom));
    assert_eq!(cx.counters.refused["journal rows beyond what is kept for one owner"], 2);
    assert_eq!(kept(&mut cx, &mut replication, &ownership, owner, row(1, 1, 3_000)), None);
    replication.resized(&cx, &ownership, Some(Ticket(1)), [(subnet(), 3_100)].into());
    // With another owner it is another's part that they take.
    let (successor, mut claim, _) = claim_of(3, None);
    claim.epoch = 2;
    let proof = SignedClaim::sign(&claim, &Context::of_test(3).key);
    assert!(ownership.merge(claim.clone(), proof).is_some());
    replication.claim_holds(&claim);
    assert_eq!(kept(&mut cx, &mut replication, &ownership, successor, row(1, 2, 2_000)), Some(Response::NoRoom));
    replication.resized(&cx, &ownership, None, [(subnet(), -9_000)].into());
    assert_eq!(kept(&mut cx, &mut replication, &ownership, successor, row(1, 2, 2_000)), None, "some was deleted");
}

#[test]
fn a_replica_without_room_is_replaced_by_another_one() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    let members = with_others(&cx, 5);
    replication.assign(None, &journal());
    replication.replicas.stored(&journal(), 2);
    replication.review_replicas(&mut cx, &members, unknown(), |_| None);
    let asked = |replication: &mut Replication, cx: &mut Context| -> BTreeSet<AccessPoint> {
        replication.tick(cx);
        let commands = cx.take_commands().into_iter();
        commands.filter_map(|command| if let Command::Peers(PeerCommand::Copy(order)) = command { Some(order.to) } else { None }).collect()
    };
    let first = asked(&mut replication, &mut cx);
    let full = *first.first().unwrap();
    assert_eq!(first.len(), 2);
    let sent = [(journal(), 2)].into();
    assert!(replication.copied(&mut cx, full, &sent, CopyAnswer::NoRoom), "that is new");
    assert!(!replication.copied(&mut cx, full, &sent, CopyAnswer::NoRoom));
    assert_eq!(cx.counters.refused["rows of ours that a replica has no room for"], 2);
    replication.review_replicas(&mut cx, &members, unknown(), |_| None);
    let second = asked(&mut replication, &mut cx);
    assert_eq!((second.len(), second.is_disjoint(&first)), (1, true), "another one");
}

/// Whom a command asks of which subnets it has rows.
fn asked_what_is_there(cx: &mut Context, replication: &mut Replication) -> BTreeSet<AccessPoint> {
    replication.ask_what_is_there(cx);
    let asked = cx.take_commands().into_iter().map(|command| match command {
        Command::Peers(PeerCommand::Ask { to, request: Request::Holds(subnets), .. }) if subnets == [subnet()] => to,
        other => panic!("{other:?}"),
    });
    asked.collect()
}

/// A member says in which database it looked and that it has rows of our subnet, or has none.
fn held(store: u64, rows: bool) -> Option<Response> {
    Some(Response::Held { store: StoreId(store), subnets: if rows { vec![subnet()] } else { Vec::new() } })
}

#[test]
fn a_new_owner_begins_with_the_journal_of_the_latest_owner_even_if_it_is_shorter() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    replication.begin_load(&mut cx, subnet(), [A, B].into(), AwaitedReplicas::default());
    assert!(matches!(&cx.take_commands()[..], [Command::Store(StoreCommand::Load(_))]));
    assert_eq!(asked_what_is_there(&mut cx, &mut replication), [A, B].into());
    assert!(replication.told_what_is_there(&mut cx, A, &[subnet()], held(1, true)).is_empty());
    assert!(replication.told_what_is_there(&mut cx, B, &[subnet()], held(1, true)).is_empty());
    assert_eq!(cx.take_commands().len(), 2, "both send what they have");
    let long = vec![opened(), resumed(), resumed(), resumed()];
    let late = vec![opened(), resumed(), JournalEntry::TakenOver { epoch: 2 }];
    replication.loaded(cx.now.moment, subnet(), vec![(journal(), long)]);
    replication.recovered(&cx, subnet(), A, Some(vec![(journal(), late.clone())]), 300);
    replication.recovered(&cx, subnet(), B, None, 0);
    assert_eq!(replication.recovered_bytes(), 300);
    assert!(replication.take_found(&subnet(), 9).is_none(), "the other replica is asked again");
    cx.now.moment = Moment(2_000);
    assert_eq!(replication.ask_again(&cx, &alone(&cx)), (vec![], vec![]));
    assert_eq!(asked_what_is_there(&mut cx, &mut replication), [B].into());
    cx.now.moment = Moment(20_000);
    assert_eq!(replication.ask_again(&cx, &alone(&cx)), (vec![subnet()], vec![]), "one answered: no other member is waited for");
    let (copy, previous) = replication.take_found(&subnet(), 9).unwrap().into_journals().next().unwrap();
    assert_eq!((copy.entries, previous.is_none()), (late, true));
    assert!(!replication.is_loading(&subnet()));
    assert_eq!(replication.recovered_bytes(), 0);
}

#[test]
fn members_without_rows_are_not_asked_for_any() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    replication.begin_load(&mut cx, subnet(), [A, B].into(), AwaitedReplicas::default());
    replication.loaded(cx.now.moment, subnet(), Vec::new());
    cx.take_commands();
    asked_what_is_there(&mut cx, &mut replication);
    for member in [A, B] {
        assert!(replication.take_found(&subnet(), 9).is_none());
        assert_eq!(replication.told_what_is_there(&mut cx, member, &[subnet()], held(1, false)), [subnet()]);
    }
    assert!(cx.take_commands().is_empty() && replication.take_found(&subnet(), 9).is_some());
}

#[test]
fn what_is_here_is_told_with_the_database_in_which_it_is() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    let ownership = Ownership::new(cx.now.moment, true);
    replication.resized(&cx, &ownership, None, [(subnet(), 100)].into());
    replication.asked_what_is_here(&mut cx, Ticket(3), vec!["9.0.1.0/24".parse().unwrap(), subnet()]);
    let commands = cx.take_commands();
    let [Command::Peers(PeerCommand::Answer { ticket: Ticket(3), response })] = &commands[..] else { panic!("{commands:?}") };
    assert_eq!(*response, Response::Held { store: cx.store, subnets: vec![subnet()] });
}

#[test]
fn a_subnet_does_not_begin_before_one_answered_that_has_all_in_the_database_that_was_named() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    let named = |member| NamedReplica { member, store: StoreId(1) };
    let members = with_others(&cx, 1);
    let newcomer = AccessPoint([20; 32]);
    replication.begin_load(&mut cx, subnet(), [A, newcomer].into(), waited_for(vec![named(A), named(B)], DAY));
    replication.loaded(cx.now.moment, subnet(), Vec::new());
    cx.take_commands();
    asked_what_is_there(&mut cx, &mut replication);
    replication.told_what_is_there(&mut cx, newcomer, &[subnet()], held(1, false));
    // It lost its disk since.
    replication.told_what_is_there(&mut cx, A, &[subnet()], held(2, false));
    assert!(replication.take_found(&subnet(), 9).is_none());
    for seconds in [20, 26, 3_600, 80_000] {
        cx.now.moment = Moment(seconds * 1_000);
        assert_eq!(replication.ask_again(&cx, &members), (vec![], vec![subnet()]));
        replication.ask_others(&cx, &members, subnet());
        assert!(replication.take_found(&subnet(), 9).is_none());
    }
    assert_eq!(replication.ask_again(&cx, &members), (vec![], vec![]));
    assert_eq!(replication.awaited(&subnet()), Some(vec![A, B]));
    assert_eq!((replication.loads_under_way(), replication.loads_parked()), (0, 1), "others have their turn");
    let mut declared = Replication::default();
    std::mem::swap(&mut declared.loading, &mut replication.loading);
    declared.declare_lost(&[A]);
    assert!(declared.take_found(&subnet(), 9).is_none());
    declared.declare_lost(&[B]);
    assert!(declared.take_found(&subnet(), 9).is_some(), "an operator knows better");
}

#[test]
fn a_subnet_begins_when_one_is_back_that_has_all() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    let members = with_others(&cx, 1);
    let back = AccessPoint([20; 32]);
    replication.begin_load(&mut cx, subnet(), [A].into(), waited_for(vec![NamedReplica { member: back, store: StoreId(4) }], DAY));
    replication.loaded(cx.now.moment, subnet(), Vec::new());
    cx.take_commands();
    asked_what_is_there(&mut cx, &mut replication);
    replication.told_what_is_there(&mut cx, A, &[subnet()], held(1, false));
    cx.now.moment = Moment(20_000);
    assert_eq!(replication.ask_again(&cx, &members), (vec![], vec![subnet()]));
    replication.ask_others(&cx, &members, subnet());
    assert_eq!(asked_what_is_there(&mut cx, &mut replication), [back].into(), "the other one has said all");
    replication.told_what_is_there(&mut cx, back, &[subnet()], held(4, true));
    replication.recovered(&cx, subnet(), back, Some(vec![(journal(), vec![opened()])]), 10);
    assert!(replication.take_found(&subnet(), 9).is_some());
}

#[test]
fn a_subnet_of_an_owner_that_was_here_for_a_minute_waits_a_minute_for_who_went_with_it() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    let members = with_others(&cx, 1);
    let gone = NamedReplica { member: B, store: StoreId(4) };
    replication.begin_load(&mut cx, subnet(), [A].into(), waited_for(vec![gone], 60));
    replication.loaded(cx.now.moment, subnet(), Vec::new());
    cx.take_commands();
    asked_what_is_there(&mut cx, &mut replication);
    replication.told_what_is_there(&mut cx, A, &[subnet()], held(1, false));
    cx.now.moment = Moment(59_999);
    assert_eq!(replication.ask_again(&cx, &members), (vec![], vec![subnet()]));
    assert!(replication.take_found(&subnet(), 9).is_none());
    replication.ask_others(&cx, &members, subnet());
    cx.now.moment = Moment(90_000);
    assert_eq!(replication.ask_again(&cx, &members), (vec![subnet()], vec![]));
    assert!(replication.take_found(&subnet(), 9).is_some(), "those that stay go on");
}

#[test]
fn what_was_taken_over_in_a_life_before_waits_for_what_the_voters_tell_and_then_for_one_of_each_set() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    let members = with_others(&cx, 2);
    let [one, other] = [20, 21].map(|number| AccessPoint([number; 32]));
    replication.load(&mut cx, &members, subnet(), JournalsAt::Replicas, AwaitedReplicas::unknown());
    replication.loaded(cx.now.moment, subnet(), Vec::new());
    cx.take_commands();
    asked_what_is_there(&mut cx, &mut replication);
    for member in [one, other] {
        replication.told_what_is_there(&mut cx, member, &[subnet()], held(1, false));
    }
    assert!(replication.take_found(&subnet(), 9).is_none() && replication.lacks_replicas());
    let set = |member, store| InheritedReplicas { members: vec![NamedReplica { member, store: StoreId(store) }], patience_s: DAY };
    let own = InheritedReplicas { members: vec![NamedReplica { member: cx.me, store: cx.store }], patience_s: DAY };
    replication.learn_replicas(&cx, &[own, set(one, 1), set(A, 1)]);
    assert!(replication.take_found(&subnet(), 9).is_none() && !replication.lacks_replicas());
    cx.now.moment = Moment(20_000);
    replication.ask_again(&cx, &members);
    replication.ask_others(&cx, &members, subnet());
    replication.ask_again(&cx, &members);
    assert_eq!(replication.awaited(&subnet()), Some(vec![A]), "the others have answered");
    // It is claimed once more: whom it waited for is not forgotten.
    replication.load(&mut cx, &members, subnet(), JournalsAt::Replicas, AwaitedReplicas::default());
    replication.loaded(cx.now.moment, subnet(), Vec::new());
    assert!(!replication.has_copied_all());
    replication.declare_lost(&[A]);
    for member in [one, other] {
        replication.told_what_is_there(&mut cx, member, &[subnet()], held(1, false));
    }
    assert!(replication.take_found(&subnet(), 9).is_some());
}

#[test]
fn a_subnet_begins_when_all_have_answered_and_the_voters_tell_last_that_one_of_them_has_all() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    let members = with_others(&cx, 1);
    let replica = NamedReplica { member: AccessPoint([20; 32]), store: StoreId(1) };
    replication.load(&mut cx, &members, subnet(), JournalsAt::Replicas, AwaitedReplicas::unknown());
    replication.loaded(cx.now.moment, subnet(), Vec::new());
    cx.take_commands();
    asked_what_is_there(&mut cx, &mut replication);
    replication.told_what_is_there(&mut cx, replica.member, &[subnet()], held(1, true));
    replication.recovered(&cx, subnet(), replica.member, Some(vec![(journal(), vec![opened()])]), 10);
    assert_eq!(replication.ask_again(&cx, &members), (vec![], vec![]));
    replication.learn_replicas(&cx, &[InheritedReplicas { members: vec![replica], patience_s: DAY }]);
    assert_eq!(replication.ask_again(&cx, &members), (vec![subnet()], vec![]), "nobody is waited for, and nobody has anything more to say");
    assert!(replication.take_found(&subnet(), 9).is_some());
}

#[test]
fn if_no_replica_answers_others_are_asked_instead_of_beginning_from_nothing() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    let members = alone(&cx);
    replication.begin_load(&mut cx, subnet(), [A].into(), AwaitedReplicas::default());
    replication.loaded(cx.now.moment, subnet(), Vec::new());
    cx.now.moment = Moment(20_000);
    assert_eq!(replication.ask_again(&cx, &members), (vec![], vec![subnet()]));
    assert!(replication.take_found(&subnet(), 9).is_none());
    replication.ask_others(&cx, &members, subnet());
    let found = replication.take_found(&subnet(), 9).expect("there is no other member");
    assert_eq!(found.rest_after(ClaimReason::Awarded), None);
    assert_eq!(found.rest_after(ClaimReason::OwnerDead), Some(30_000), "the owner before may have asked a moment ago");
}

/// A subnet that is ours since epoch 4 is loaded: its former owners named A. Two members that nobody named offer journals that were never
/// written, and `there` is whether A answers.
fn loads_with_inventions(there: bool) -> (u64, u32, usize) {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    let members = with_others(&cx, 1);
    let [liar, other] = [20, 21].map(|number| AccessPoint([number; 32]));
    let awaited = waited_for(vec![NamedReplica { member: A, store: StoreId(1) }], 60);
    replication.begin_load(&mut cx, subnet(), [A, liar, other].into(), awaited);
    replication.loaded(cx.now.moment, subnet(), Vec::new());
    cx.take_commands();
    asked_what_is_there(&mut cx, &mut replication);
    let taken_over = |epoch| vec![opened(), JournalEntry::TakenOver { epoch }, resumed()];
    let of_run = |run| JournalKey { run, ..journal() };
    let answers = [(A, 1, 3, there), (liar, 9, 3, true), (other, 8, 5, true)];
    for (member, run, epoch, _) in answers.into_iter().filter(|(.., there)| *there) {
        replication.told_what_is_there(&mut cx, member, &[subnet()], held(1, true));
        replication.recovered(&cx, subnet(), member, Some(vec![(of_run(run), taken_over(epoch))]), 10);
    }
    cx.now.moment = Moment(61_000);
    replication.ask_again(&cx, &members);
    replication.ask_others(&cx, &members, subnet());
    replication.ask_again(&cx, &members);
    let found = replication.take_found(&subnet(), 4).expect("nobody is waited for any more");
    let refused = found.refused();
    let (copy, previous) = found.into_journals().next().unwrap();
    assert!(previous.is_none());
    (copy.taken_over, copy.key.run, refused)
}

#[test]
fn what_a_member_offers_that_no_former_owner_named_does_not_count_beside_one_that_was_named() {
    assert_eq!(loads_with_inventions(true), (3, 1, 0), "a later run that A would have");
    // Where nobody that was named is left, the others may have something: not of an epoch that has not come.
    assert_eq!(loads_with_inventions(false), (3, 9, 1));
}

#[test]
fn a_later_epoch_in_the_copy_of_one_that_was_named_puts_it_before_no_other() {
    let (mut cx, mut replication) = (Context::of_test(1), Replication::default());
    let named = [A, B].map(|member| NamedReplica { member, store: StoreId(1) });
    replication.begin_load(&mut cx, subnet(), [A, B].into(), waited_for(named.to_vec(), DAY));
    replication.loaded(cx.now.moment, subnet(), Vec::new());
    cx.take_commands();
    asked_what_is_there(&mut cx, &mut replication);
    let rows = |epochs: &[u64]| {
        let taken_over = epochs.iter().map(|epoch| JournalEntry::TakenOver { epoch: *epoch });
        [opened()].into_iter().chain(taken_over).collect::<Vec<_>>()
    };
    for (member, epochs) in [(A, vec![3, 3]), (B, vec![2, 99])] {
        replication.told_what_is_there(&mut cx, member, &[subnet()], held(1, true));
        replication.recovered(&cx, subnet(), member, Some(vec![(journal(), rows(&epochs))]), 10);
    }
    let (copy, _) = replication.take_found(&subnet(), 4).unwrap().into_journals().next().unwrap();
    assert_eq!(copy.entries, rows(&[3, 3]));
}

const OWNER: AccessPoint = AccessPoint([7; 32]);
const OTHER: AccessPoint = AccessPoint([20; 32]);

/// A subnet that is loaded five minutes after the start of the swarm. Its owner, which died a minute ago, had named itself, A and B.
struct Doubtful {
    cx: Context,
    replication: Replication,
    /// The others, and since when those are silent that are.
    others: Vec<(AccessPoint, Option<u64>)>,
}

impl Doubtful {
    /// OTHER is alive, and B is silent since then, or alive. A answers that it has these runs, or nothing, and what a member that nobody named
    /// has is told by OTHER.
    fn after(b: Option<u64>, of_a: &[JournalKey], of_other: &[JournalKey]) -> Doubtful {
        let cx = Context { now: Now { moment: Moment(300_000), wall: WallTime(1) }, ..Context::of_test(1) };
        let others = vec![(A, None), (OTHER, None), (B, b), (OWNER, Some(240_000))];
        let mut doubtful = Doubtful { cx, replication: Replication::default(), others };
        let named = [OWNER, A, B].map(|member| NamedReplica { member, store: StoreId(1) });
        doubtful.replication.begin_load(&mut doubtful.cx, subnet(), [A, OTHER].into(), waited_for(named.to_vec(), DAY));
        doubtful.replication.loaded(doubtful.cx.now.moment, subnet(), Vec::new());
        doubtful.cx.take_commands();
        asked_what_is_there(&mut doubtful.cx, &mut doubtful.replication);
        doubtful.hears(A, 1, of_a);
        doubtful.hears(OTHER, 1, of_other);
        doubtful
    }

    /// A member says in which database it looked, and sends these journals.
    fn hears(&mut self, from: AccessPoint, store: u64, journals: &[JournalKey]) {
        self.replication.told_what_is_there(&mut self.cx, from, &[subnet()], held(store, !journals.is_empty()));
        self.cx.take_commands();
        if !journals.is_empty() {
            let journals = journals.iter().map(|key| (key.clone(), vec![opened()])).collect();
            self.replication.recovered(&self.cx, subnet(), from, Some(journals), 10);
        }
    }

    /// The hosts and runs with which it begins, so many seconds after it was ours; none if it does not.
    fn begins(&mut self, after: u64) -> Option<Vec<String>> {
        self.cx.now.moment = Moment(300_000 + after * 1_000);
        let swim = Swim::new(Member::new(self.cx.me, 1, Vec::new()), self.cx.settings.membership.clone(), 1);
        let mut roster = Roster::new(self.cx.me, self.cx.settings.roster.clone(), Moment(0), &BTreeSet::new());
        for (member, silent_since) in &self.others {
            roster.up(Moment(1), *member);
            silent_since.iter().for_each(|since| roster.down(Moment(*since), *member));
        }
        roster.tick(self.cx.now.moment);
        let members = Membership::with_lease(swim, roster);
        for subnet in self.replication.ask_again(&self.cx, &members).1 {
            self.replication.ask_others(&self.cx, &members, subnet);
        }
        let found = self.replication.take_found(&subnet(), 9)?;
        let text = |copy: JournalCopy| format!("{} {}{}", copy.key.host, copy.key.run, if copy.left_over { ", left over" } else { "" });
        Some(found.into_journals().map(|(copy, _)| text(copy)).collect())
    }
}

fn of(host: &str, run: u32) -> JournalKey {
    JournalKey { host: host.parse().unwrap(), run, ..journal() }
}

/// Since when a member is silent that died together with the owner.
const TOGETHER: Option<u64> = Some(240_000);

#[test]
fn of_two_that_died_together_one_may_come_back_and_have_what_the_third_one_hides() {
    for of_other in [&[][..], &[of("a.ke", 1)]] {
        let mut doubtful = Doubtful::after(TOGETHER, &[], of_other);
        for seconds in [0, 20, 60, 200] {
            assert_eq!(doubtful.begins(seconds), None, "the other one that was named may come, {seconds} s");
        }
        assert_eq!(doubtful.replication.awaited(&subnet()), Some(vec![OWNER, B]));
        assert_eq!(doubtful.replication.loads_under_way(), 0, "others have their turn");
        doubtful.others.retain(|(member, _)| *member != B);
        doubtful.others.push((B, None));
        assert_eq!(doubtful.begins(201), None);
        assert_eq!(doubtful.begins(206), None);
        assert_eq!(asked_what_is_there(&mut doubtful.cx, &mut doubtful.replication), [B].into());
        doubtful.hears(B, 1, &[of("a.ke", 2)]);
        assert_eq!(doubtful.begins(207), Some(vec!["a.ke 2".to_owned()]), "it is newer, and has all");
    }
}

#[test]
fn if_none_of_those_comes_that_were_named_what_others_have_counts() {
    let mut doubtful = Doubtful::after(TOGETHER, &[], &[of("a.ke", 1)]);
    assert_eq!(doubtful.begins(235), None);
    assert_eq!(doubtful.begins(245), Some(vec!["a.ke 1, left over".to_owned()]), "five minutes after they died");
}

#[test]
fn a_subnet_without_rows_does_not_wait_for_a_replica_that_is_gone_for_good() {
    let mut dead_for_long = Doubtful::after(None, &[], &[]);
    dead_for_long.others.retain(|(member, _)| *member != B);
    assert_eq!(dead_for_long.begins(1), Some(vec![]), "it left, or died long ago");
    let mut wiped = Doubtful::after(None, &[], &[]);
    assert_eq!(wiped.begins(19), None, "it is alive, and has not answered");
    wiped.begins(20);
    assert_eq!(asked_what_is_there(&mut wiped.cx, &mut wiped.replication), [B].into());
    wiped.hears(B, 2, &[]);
    assert_eq!(wiped.begins(21), Some(vec![]), "it has lost its disk");
    let mut mute = Doubtful::after(None, &[], &[]);
    assert_eq!([0, 20, 40, 59].map(|after| mute.begins(after)), [const { None }; 4]);
    assert_eq!(mute.begins(61), Some(vec![]), "it does not answer");
}

#[test]
fn what_one_alone_sends_is_not_believed_to_be_all_as_long_as_the_other_is_silent() {
    // It sends one row of a host that it invented.
    let stub = [of("b.ke", 1)];
    let mut doubtful = Doubtful::after(Some(290_000), &stub, &[]);
    assert_eq!((doubtful.begins(1), doubtful.begins(30)), (None, None));
    assert_eq!(doubtful.begins(35), Some(vec!["b.ke 1".to_owned()]), "it is dead");
    let mut doubtful = Doubtful::after(TOGETHER, &stub, &[]);
    assert_eq!(doubtful.begins(1), Some(vec!["b.ke 1".to_owned()]), "nothing says that there is more");
}

#[test]
fn one_row_of_an_invented_host_hides_no_copy_that_others_have() {
    let stub = [of("b.ke", 1)];
    let mut doubtful = Doubtful::after(TOGETHER, &stub, &[of("a.ke", 1), of("b.ke", 2)]);
    assert_eq!((doubtful.begins(1), doubtful.begins(235)), (None, None), "one that was named may come and have all");
    let found = doubtful.begins(245);
    assert_eq!(found, Some(vec!["a.ke 1, left over".to_owned(), "b.ke 1".to_owned()]), "of what one that was named has that counts");
}

#[test]
fn two_named_members_are_believed_and_others_are_not() {
    for (of_a, found) in [(vec![], vec![]), (vec![of("a.ke", 1)], vec!["a.ke 1".to_owned()])] {
        let mut doubtful = Doubtful::after(None, &of_a, &[of("a.ke", 2), of("c.ke", 1)]);
        assert_eq!(doubtful.begins(20), None);
        asked_what_is_there(&mut doubtful.cx, &mut doubtful.replication);
        doubtful.hears(B, 1, &of_a);
        assert_eq!(doubtful.begins(21), Some(found), "what others have may be invented");
    }
}
