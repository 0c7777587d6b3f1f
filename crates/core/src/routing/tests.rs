//! Tests that every URL gets to its owner, and that the sender hears when one was taken in.

use super::{
    Routing,
    acknowledgements::{Acknowledgement, MAX_ACKNOWLEDGEMENTS, Reply},
    arrival::{Bound, Place},
    locator::{MAX_LOOKUP_QUESTIONS, MAX_LOOKUPS},
    outbox::{Item, MAX_UNRESOLVED},
};
use crate::{
    context::Context,
    event::{Command, PeerCommand, WebCommand},
    membership::{Member, Membership, Roster, Swim},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    admission::NotAdmitted,
    fetch::{LocatedHost, ResolveError},
    ids::{QuestionId, Ticket},
    journal::{Arrival, JournalKey},
    message::{Request, Response},
    time::Moment,
    url::{Host, PageUrl},
};
use std::collections::BTreeSet;

const OWNER: AccessPoint = AccessPoint([9; 32]);

fn host(text: &str) -> Host {
    text.parse().unwrap()
}

fn url(text: &str) -> PageUrl {
    PageUrl::parse(text).unwrap()
}

fn at(text: &str) -> LocatedHost {
    LocatedHost { host: host(text), address: "9.0.0.1".parse().unwrap(), valid_for: 60_000 }
}

fn item(text: &str) -> Item {
    Item { arrival: Arrival { url: url(text), place: None, run: 1 }, origin: None }
}

fn journal(name: &str) -> JournalKey {
    JournalKey { subnet: "9.0.0.0/24".parse().unwrap(), host: host(name), run: 1 }
}

/// An access point that is alone, and so every host's steward.
fn alone() -> (Context, Membership, Routing) {
    let cx = Context::of_test(1);
    let swim = Swim::new(Member::new(cx.me, 1, Vec::new()), cx.settings.membership.clone(), 1);
    let roster = Roster::new(cx.me, cx.settings.roster.clone(), cx.now.moment, &BTreeSet::new());
    (cx, Membership::with_lease(swim, roster), Routing::default())
}

#[test]
fn a_seed_is_looked_up_and_sent_to_the_owner_of_its_address() {
    let (mut cx, members, mut routing) = alone();
    routing.seeds(&mut cx, vec![url("http://a.ke/x")]);
    assert_eq!(routing.due(&cx), [host("a.ke")]);
    assert_eq!(routing.place(&mut cx, &members, &host("a.ke")), Place::Unknown);
    assert!(matches!(&cx.take_commands()[..], [Command::Web(WebCommand::Resolve { host: asked, .. })] if *asked == host("a.ke")));
    assert_eq!(routing.due(&cx), [], "it waits for the answer");
    routing.resolved(&mut cx, &host("a.ke"), Ok(at("a.ke")), |_| None);
    assert_eq!(routing.due(&cx), [host("a.ke")], "the answer wakes it");
    let Place::At(located) = routing.place(&mut cx, &members, &host("a.ke")) else { panic!("it was looked up") };
    let mut bound = Bound::new();
    assert_eq!(routing.bind(&cx, &mut bound, located, Some(OWNER)), None);
    routing.send(&mut cx, bound);
    let [Command::Peers(PeerCommand::Ask { to: OWNER, question, request: Request::HandOff(hand_offs) })] = &cx.take_commands()[..] else {
        panic!("one message to the owner")
    };
    assert_eq!(hand_offs[0].arrivals[0].url, url("http://a.ke/x"));
    assert_eq!(routing.handed_off(&cx, *question, Some(Response::HandedOff { not_mine: Vec::new() })), [item("http://a.ke/x")]);
    assert!(routing.outbox().is_empty());
}

#[test]
fn what_is_ours_is_returned_and_what_leads_nowhere_is_counted() {
    let (mut cx, members, mut routing) = alone();
    routing.put([item("http://a.ke/"), item("http://b.ke/")]);
    let own = routing.bind(&cx, &mut Bound::new(), at("a.ke"), Some(cx.me));
    assert_eq!(own, Some((at("a.ke"), vec![item("http://a.ke/")])));
    routing.resolved(&mut cx, &host("b.ke"), Err(ResolveError::NoSuchName), |_| None);
    assert_eq!(routing.place(&mut cx, &members, &host("b.ke")), Place::Nowhere(vec![item("http://b.ke/")]));
    assert_eq!(cx.counters.nowhere, 1);
}

#[test]
fn urls_for_sites_of_ours_are_taken_in_together_after_a_moment() {
    let (mut cx, _, mut routing) = alone();
    routing.put([item("http://a.ke/"), item("http://b.ke/"), item("http://c.ke/")]);
    let bind = |cx: &Context, routing: &mut Routing, name: &str| routing.bind(cx, &mut Bound::new(), at(name), Some(cx.me)).is_some();
    assert!(bind(&cx, &mut routing, "a.ke"), "the first at once");
    routing.takes_own(&cx);
    assert!(!bind(&cx, &mut routing, "b.ke") && !bind(&cx, &mut routing, "c.ke") && routing.due(&cx).is_empty());
    cx.now.moment = cx.now.moment.after(20);
    assert_eq!(routing.due(&cx), [host("b.ke"), host("c.ke")]);
    assert!(bind(&cx, &mut routing, "b.ke") && bind(&cx, &mut routing, "c.ke"), "together");
}

#[test]
fn an_owner_that_did_not_know_a_host_is_sent_it_again_soon_and_after_that_later() {
    let (mut cx, members, mut routing) = alone();
    routing.resolved(&mut cx, &host("a.ke"), Ok(at("a.ke")), |_| None);
    routing.put([item("http://a.ke/")]);
    for pause in [300, 2_000] {
        let mut bound = Bound::new();
        assert_eq!(routing.bind(&cx, &mut bound, at("a.ke"), Some(OWNER)), None);
        routing.send(&mut cx, bound);
        let Some(Command::Peers(PeerCommand::Ask { question, .. })) = cx.commands.pop_back() else { panic!("nothing was sent") };
        routing.handed_off(&cx, question, Some(Response::HandedOff { not_mine: vec![host("a.ke")] }));
        cx.now.moment = cx.now.moment.after(pause - 1);
        assert_eq!(routing.due(&cx), [], "{pause}");
        cx.now.moment = cx.now.moment.after(1);
        assert_eq!(routing.due(&cx), [host("a.ke")], "{pause}");
    }
    assert_eq!(routing.place(&mut cx, &members, &host("a.ke")), Place::Unknown, "its steward is asked anew");
}

/// What is looked up by these commands.
fn looked_up(commands: &[Command]) -> Vec<&Host> {
    commands
        .iter()
        .filter_map(|command| if let Command::Web(WebCommand::Resolve { host, .. }) = command { Some(host) } else { None })
        .collect()
}

#[test]
fn urls_wait_while_name_servers_fail_and_go_on_their_way_when_they_answer() {
    for failure in [ResolveError::TimedOut, ResolveError::ServerFailed, ResolveError::Crashed] {
        let (mut cx, members, mut routing) = alone();
        let a = host("a.ke");
        routing.seeds(&mut cx, vec![url("http://a.ke/x")]);
        for number in 1..MAX_LOOKUPS {
            assert_eq!(routing.place(&mut cx, &members, &a), Place::Unknown);
            assert_eq!(looked_up(&cx.take_commands()), [&a], "look-up {number}");
            routing.resolved(&mut cx, &a, Err(failure), |_| None);
            assert_eq!(routing.place(&mut cx, &members, &a), Place::Unknown, "{failure}: its URLs wait");
            routing.find(&mut cx, &members, &a);
            assert!(cx.take_commands().is_empty() && routing.due(&cx).is_empty(), "not again at once");
            assert_eq!((routing.outbox().unresolved(), cx.counters.lookups_repeated), (1, u64::from(number)));
            cx.now.moment = cx.now.moment.after(300_000);
            assert_eq!(routing.due(&cx), std::slice::from_ref(&a));
        }
        routing.place(&mut cx, &members, &a);
        routing.resolved(&mut cx, &a, Ok(at("a.ke")), |_| None);
        assert!(matches!(routing.place(&mut cx, &members, &a), Place::At(_)));
        assert_eq!((routing.outbox().len(), routing.outbox().unresolved(), cx.counters.unresolved.len()), (1, 0, 0));
    }
}

#[test]
fn a_host_whose_name_servers_never_answer_is_given_up_and_counted_once() {
    let (mut cx, members, mut routing) = alone();
    let a = host("a.ke");
    routing.seeds(&mut cx, vec![url("http://a.ke/x")]);
    for _ in 0..MAX_LOOKUPS {
        cx.now.moment = cx.now.moment.after(300_000);
        assert_eq!(routing.place(&mut cx, &members, &a), Place::Unknown);
        routing.resolved(&mut cx, &a, Err(ResolveError::TimedOut), |_| None);
    }
    assert_eq!(routing.place(&mut cx, &members, &a), Place::Nowhere(vec![item("http://a.ke/x")]));
    let counters = &cx.counters;
    assert_eq!((counters.lookups, counters.lookups_repeated, counters.nowhere), (8, 7, 1));
    assert_eq!(counters.unresolved, [(ResolveError::TimedOut, 1)].into());
}

#[test]
fn a_steward_that_could_not_look_a_name_up_is_asked_again_later() {
    let (mut cx, members, mut routing) = alone();
    let a = host("a.ke");
    routing.put([item("http://a.ke/")]);
    assert!(routing.located(&mut cx, &a, Err(ResolveError::ServerFailed)));
    assert_eq!(routing.place(&mut cx, &members, &a), Place::Unknown);
    assert_eq!((routing.outbox().len(), cx.counters.lookups_repeated), (1, 0), "only the steward counts");
    // As steward: a member is told at once, and nothing is looked up for it before the pause is over.
    routing.locate_for(&mut cx, Ticket(3), a.clone());
    let answers = cx.take_commands();
    let [Command::Peers(PeerCommand::Answer { ticket: Ticket(3), response: Response::Located(Err(ResolveError::ServerFailed)) })] =
        &answers[..]
    else {
        panic!("{answers:?}")
    };
    cx.now.moment = cx.now.moment.after(5_000);
    routing.locate_for(&mut cx, Ticket(4), a.clone());
    assert_eq!(looked_up(&cx.take_commands()), [&a]);
}

#[test]
fn broken_name_servers_hold_only_so_many_urls_back() {
    let (mut cx, members, mut routing) = alone();
    let (a, b) = (host("a.ke"), host("b.ke"));
    routing.put((0..MAX_UNRESOLVED).map(|number| item(&format!("http://a.ke/{number}"))));
    routing.put([item("http://b.ke/")]);
    for name in [&a, &b] {
        routing.place(&mut cx, &members, name);
        routing.resolved(&mut cx, name, Err(ResolveError::TimedOut), |_| None);
    }
    assert_eq!(routing.place(&mut cx, &members, &a), Place::Unknown);
    assert_eq!(routing.place(&mut cx, &members, &b), Place::Nowhere(vec![item("http://b.ke/")]));
    assert_eq!((routing.outbox().unresolved(), cx.counters.nowhere, cx.counters.refused.values().sum::<u64>()), (MAX_UNRESOLVED, 1, 1));
}

#[test]
fn an_answer_about_another_host_is_refused() {
    let (mut cx, members, mut routing) = alone();
    assert!(!routing.located(&mut cx, &host("a.ke"), Ok(at("b.ke"))));
    assert_eq!(cx.counters.refused.get("answers that do not match the request"), Some(&1));
    assert_eq!(routing.place(&mut cx, &members, &host("b.ke")), Place::Unknown, "nothing was learnt");
}

#[test]
fn a_hand_off_that_was_refused_is_tried_again_after_the_pause_it_asked_for() {
    let (mut cx, _, mut routing) = alone();
    routing.put([item("http://a.ke/")]);
    let send = |routing: &mut Routing, cx: &mut Context| {
        let mut bound = Bound::new();
        routing.bind(cx, &mut bound, at("a.ke"), Some(OWNER));
        routing.send(cx, bound);
        cx.take_commands().len()
    };
    assert_eq!(send(&mut routing, &mut cx), 1);
    let question = QuestionId(cx.next_number);
    assert_eq!(routing.handed_off(&cx, question, Some(Response::Busy(5_000))), []);
    cx.now.moment = Moment(4_999);
    assert_eq!(send(&mut routing, &mut cx), 0, "the owner is left alone");
    cx.now.moment = Moment(5_000);
    assert_eq!(send(&mut routing, &mut cx), 1);
}

#[test]
fn a_member_is_answered_when_all_is_recorded_and_hears_what_was_lost_meanwhile() {
    let (mut cx, _, mut routing) = alone();
    let needs = vec![(journal("a.ke"), 3), (journal("b.ke"), 1)];
    routing.await_recording(Acknowledgement { reply: Reply::Member { ticket: Ticket(7), not_mine: Vec::new() }, needs });
    assert_eq!(routing.acknowledge(&mut cx, |_, upto| upto <= 2, |_| true), []);
    assert!(cx.take_commands().is_empty() && !routing.all_acknowledged(), "one journal is not recorded yet");
    routing.acknowledge(&mut cx, |_, upto| upto <= 2, |key| key.host != host("a.ke"));
    let answers = cx.take_commands();
    let [Command::Peers(PeerCommand::Answer { ticket: Ticket(7), response: Response::HandedOff { not_mine } })] = &answers[..] else {
        panic!("one answer")
    };
    assert_eq!(not_mine, &[host("a.ke")]);
    assert!(routing.all_acknowledged());
}

#[test]
fn our_own_urls_of_a_site_that_was_lost_go_on_their_way_again() {
    let (mut cx, _, mut routing) = alone();
    for name in ["a.ke", "b.ke"] {
        let reply = Reply::Own(vec![item(&format!("http://{name}/"))]);
        routing.await_recording(Acknowledgement { reply, needs: vec![(journal(name), 1)] });
    }
    let delivered = routing.acknowledge(&mut cx, |_, _| true, |key| key.host == host("a.ke"));
    assert_eq!(delivered, [item("http://a.ke/")]);
    assert_eq!(routing.due(&cx), [host("b.ke")]);
}

#[test]
fn a_steward_for_whose_look_ups_too_many_wait_says_so_and_counts_it() {
    let (mut cx, _, mut routing) = alone();
    for number in 0..MAX_LOOKUP_QUESTIONS {
        routing.locate_for(&mut cx, Ticket(number as u64), host(&format!("a{number}.ke")));
    }
    cx.take_commands();
    routing.locate_for(&mut cx, Ticket(u64::MAX), host("b.ke"));
    let answers = cx.take_commands();
    let [Command::Peers(PeerCommand::Answer { ticket: Ticket(u64::MAX), response: Response::Busy(_) })] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(cx.counters.refused["DNS look-ups for members beyond the limit of those that wait"], 1);
}

#[test]
fn who_may_be_no_member_looks_nothing_up_until_it_may() {
    let (mut cx, members, mut routing) = alone();
    cx.excluded.insert(cx.me, NotAdmitted::NoCertificate);
    routing.find(&mut cx, &members, &host("a.ke"));
    routing.locate_for(&mut cx, Ticket(1), host("b.ke"));
    routing.confirm_for(&mut cx, Some(Ticket(2)), &host("c.ke"), "9.0.0.1".parse().unwrap());
    routing.look_up(&mut cx);
    assert!(cx.take_commands().is_empty());
    cx.excluded.clear();
    routing.look_up(&mut cx);
    assert_eq!(cx.take_commands().len(), 3);
}

#[test]
fn hand_offs_beyond_the_limit_have_no_room_until_some_are_recorded() {
    let (mut cx, _, mut routing) = alone();
    for number in 0..MAX_ACKNOWLEDGEMENTS as u64 {
        assert!(routing.has_room_for_hand_offs());
        let reply = Reply::Member { ticket: Ticket(number), not_mine: Vec::new() };
        routing.await_recording(Acknowledgement { reply, needs: vec![(journal("a.ke"), number)] });
    }
    routing.await_recording(Acknowledgement { reply: Reply::Own(Vec::new()), needs: vec![(journal("a.ke"), 9)] });
    assert_eq!((routing.has_room_for_hand_offs(), routing.hand_offs()), (false, MAX_ACKNOWLEDGEMENTS), "our own do not count");
    routing.acknowledge(&mut cx, |_, upto| upto <= 1, |_| true);
    assert_eq!((routing.has_room_for_hand_offs(), routing.hand_offs()), (true, MAX_ACKNOWLEDGEMENTS - 2));
}

#[test]
fn a_host_that_a_member_hands_over_is_taken_in_only_where_its_steward_says_it_is() {
    let (mut cx, members, mut routing) = alone();
    let handed = |address: &str| LocatedHost { address: address.parse().unwrap(), ..at("bank.example") };
    assert!(!routing.confirms(&mut cx, &members, OWNER, &handed("9.0.0.1")), "it is not known yet");
    assert!(
        matches!(cx.commands.pop_front(), Some(Command::Web(WebCommand::Resolve { host: asked, .. })) if asked == host("bank.example"))
    );
    routing.resolved(&mut cx, &host("bank.example"), Ok(at("bank.example")), |_| None);
    assert!(routing.confirms(&mut cx, &members, OWNER, &handed("9.0.0.1")));
    assert!(!routing.confirms(&mut cx, &members, OWNER, &handed("9.0.0.77")));
    assert!(!routing.confirms(&mut cx, &members, OWNER, &at("x1.invalid")));
    routing.resolved(&mut cx, &host("x1.invalid"), Err(ResolveError::NoSuchName), |_| None);
    assert!(!routing.confirms(&mut cx, &members, OWNER, &at("x1.invalid")));
    assert_eq!(cx.counters.refused["hosts handed over at an address that is not theirs"], 2);
    assert!(routing.confirms(&mut cx, &members, OWNER, &at("9.0.0.1")), "an address is where it is");
}

#[test]
fn a_host_that_its_owner_refuses_twice_is_looked_up_anew() {
    let (mut cx, members, mut routing) = alone();
    routing.resolved(&mut cx, &host("a.ke"), Ok(at("a.ke")), |_| None);
    for refusals in 0..2 {
        assert_eq!(routing.place(&mut cx, &members, &host("a.ke")), Place::At(at("a.ke")), "after {refusals} refusals");
        routing.put([item("http://a.ke/")]);
        let (mut bound, located) = (Bound::new(), at("a.ke"));
        assert_eq!(routing.bind(&cx, &mut bound, located, Some(OWNER)), None);
        routing.send(&mut cx, bound);
        let Some(Command::Peers(PeerCommand::Ask { question, .. })) = cx.commands.pop_back() else { panic!("nothing was sent") };
        routing.handed_off(&cx, question, Some(Response::HandedOff { not_mine: vec![host("a.ke")] }));
    }
    assert_eq!(routing.place(&mut cx, &members, &host("a.ke")), Place::Unknown);
}

#[test]
fn a_steward_tells_the_owner_of_the_address_before_and_looks_up_once_for_whoever_asks() {
    let (mut cx, members, mut routing) = alone();
    let (a, moved) = (host("a.ke"), LocatedHost { address: "9.0.7.1".parse().unwrap(), ..at("a.ke") });
    let is_at = |routing: &mut Routing, cx: &mut Context, at: &LocatedHost| match routing.place(cx, &members, &host("a.ke")) {
        Place::At(located) => located.address == at.address,
        _ => false,
    };
    routing.resolved(&mut cx, &a, Ok(LocatedHost { valid_for: 1_000, ..at("a.ke") }), |_| Some(OWNER));
    cx.now.moment = cx.now.moment.after(100_000);
    routing.locate_for(&mut cx, Ticket(3), a.clone());
    assert_eq!(looked_up(&cx.take_commands()), [&a]);
    assert_eq!(routing.resolved(&mut cx, &a, Ok(moved.clone()), |_| Some(OWNER)).to_tell, Some((OWNER, moved.clone())));
    assert!(is_at(&mut routing, &mut cx, &at("a.ke")), "until its owner has handed it over");
    cx.take_commands();
    // Now its owner asks, and the owner of the new address a moment later.
    assert_eq!(routing.confirm_for(&mut cx, Some(Ticket(4)), &a, at("a.ke").address), None);
    assert_eq!(looked_up(&cx.take_commands()), [&a]);
    let found = routing.resolved(&mut cx, &a, Ok(moved.clone()), |_| Some(OWNER));
    assert_eq!((found.answer, found.to_tell), (Ok(moved.clone()), None));
    routing.confirm_for(&mut cx, Some(Ticket(5)), &a, moved.address);
    let answers = cx.take_commands();
    assert!(looked_up(&answers).is_empty(), "once for both");
    let told = |command: &Command| match command {
        Command::Peers(PeerCommand::Answer { response: Response::Located(Ok(located)), .. }) => located.address == moved.address,
        _ => false,
    };
    assert!(answers.len() == 2 && answers.iter().all(told), "{answers:?}");
    assert!(is_at(&mut routing, &mut cx, &at("a.ke")));
    assert_eq!(routing.pinned(&mut cx, vec![(a.clone(), moved.address)]), [], "its new owner has it");
    assert!(is_at(&mut routing, &mut cx, &moved));
    routing.has_moved(&mut cx, at("a.ke"));
    assert!(is_at(&mut routing, &mut cx, &at("a.ke")), "nobody has it");
}

#[test]
fn a_host_that_its_owner_hands_over_is_taken_only_where_our_steward_says_that_it_is() {
    let (mut cx, members, mut routing) = alone();
    let a = at("a.ke");
    assert_eq!(routing.confirms_move(&mut cx, &members, &a), None, "it is being looked up");
    routing.resolved(&mut cx, &a.host, Ok(a.clone()), |_| None);
    assert_eq!(routing.confirms_move(&mut cx, &members, &a), Some(true));
    let elsewhere = LocatedHost { address: "9.0.0.77".parse().unwrap(), ..a.clone() };
    assert_eq!(routing.confirms_move(&mut cx, &members, &elsewhere), Some(false));
    assert_eq!(cx.counters.refused["hosts handed over at an address that is not theirs"], 1);
}
