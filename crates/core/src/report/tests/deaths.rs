//! Tests that everything is done once for each death of a member, also if several die at once.

use super::*;
use crate::{
    event::DiskRoom,
    ownership::claims::JournalsAt,
    replication::{AwaitedReplicas, MAX_LOADS},
    signal::Signal,
};
use nearcrawl_model::{
    journal::{Arrival, JournalEntry, JournalKey, VisitOutcome},
    replica::{NamedReplica, StoreId},
    subnet::Subnet,
};

/// A journal of a.ke with a page that names a URL of another host.
fn journal(subnet: Subnet) -> (JournalKey, Vec<JournalEntry>) {
    let at = WallTime(1);
    let opened = JournalEntry::Opened { address: "9.0.1.1".parse().unwrap(), tree: host("a.ke"), at };
    let visited = JournalEntry::Visited {
        url: url("http://a.ke/"),
        level: 0,
        at,
        outcome: VisitOutcome::Page(200),
        took: 10,
        first_byte_us: None,
        bytes: 100,
        software: None,
        children: Vec::new(),
        found: Vec::new(),
        outgoing: vec![Arrival { url: url("http://c.ke/"), place: None, run: 1 }],
        beyond_scope: Vec::new(),
        rest: None,
    };
    (JournalKey { subnet, host: host("a.ke"), run: 1 }, vec![opened, visited])
}

#[test]
fn two_deaths_in_one_tick_have_replicas_asked_once() {
    let mut played = Played::alone();
    (2..=5).for_each(|number| played.meet(number));
    let crawler = &mut played.crawler;
    let subnets: [Subnet; 2] = ["9.0.1.0/24", "9.0.2.0/24"].map(|subnet| subnet.parse().unwrap());
    for subnet in subnets {
        let (owner, reason) = (crawler.me(), ClaimReason::Awarded);
        let claim =
            Claim { subnet, epoch: 1, owner, rtt_us: None, runner_up: None, probes: 0, reason, released: false, answers: Vec::new() };
        assert!(crawler.hold(claim.clone(), SignedClaim::sign(&claim, &key(1))));
        crawler.replication.load(&mut crawler.context, &crawler.membership, subnet, JournalsAt::Replicas, AwaitedReplicas::default());
    }
    let asked = |crawler: &mut Crawler, of: Subnet| {
        let commands = std::iter::from_fn(|| crawler.next_command());
        let asked = commands.filter_map(|command| match command {
            Command::Peers(PeerCommand::Ask { to, request: Request::Holds(subnets), .. }) if subnets.contains(&of) => Some(to),
            _ => None,
        });
        asked.collect::<Vec<_>>()
    };
    crawler.tick_recovery();
    let replicas = asked(crawler, subnets[0]);
    // Of the first subnet one replica answers, of the second none: when their time is over, the first one begins and others are asked
    // for the second.
    assert_eq!(replicas.len(), 4, "whoever lives");
    crawler.recovered(subnets[0], replicas[0], Some(Vec::new()), 0);
    replicas.iter().for_each(|member| crawler.told_what_is_there(*member, &subnets[1..], None));
    crawler.loaded(subnets[0], vec![journal(subnets[0])]);
    crawler.loaded(subnets[1], Vec::new());
    let located = LocatedHost { host: host("c.ke"), address: "9.0.2.1".parse().unwrap(), valid_for: 86_400_000 };
    crawler.located(&host("c.ke"), Ok(located));
    crawler.context.now.moment = crawler.context.now.moment.after(20_000);
    crawler.context.signal(Signal::MemberDied(member(4)));
    crawler.context.signal(Signal::MemberDied(member(5)));
    crawler.settle_signals();
    assert!(crawler.crawl.site(&host("a.ke")).is_some(), "the first one has begun, and its URLs are on their way");
    let again = asked(crawler, subnets[1]);
    assert_eq!(again.len(), again.iter().collect::<BTreeSet<_>>().len(), "{again:?}");
    assert!(!again.is_empty());
}

/// A claim of ours to what a dead member left.
fn inherited(number: u32) -> Claim {
    let subnet = Subnet::around(std::net::Ipv4Addr::from(0x1400_0000 + (number << 8)).into(), 24);
    let (owner, reason) = (member(1), ClaimReason::OwnerDead);
    Claim { subnet, epoch: 2, owner, rtt_us: None, runner_up: None, probes: 0, reason, released: false, answers: Vec::new() }
}

#[test]
fn a_hundred_thousand_subnets_of_a_dead_member_are_loaded_in_portions_and_all_of_them() {
    const SUBNETS: u32 = 100_000;
    let mut played = Played::alone();
    (2..=5).for_each(|number| played.meet(number));
    let now = played.now;
    let crawler = &mut played.crawler;
    let accepted = (0..SUBNETS).map(|number| SignedClaim::sign(&inherited(number), &key(1))).collect();
    crawler.ownership.store_own(&mut crawler.context, accepted);
    let stored = std::iter::from_fn(|| crawler.next_command()).find_map(|command| match command {
        Command::Store(StoreCommand::StoreClaims { write: Some(write), .. }) => Some(write),
        _ => None,
    });
    crawler.claims_stored(stored.expect("the claims are stored first"));
    let (mut loaded, mut asked, mut most) = (BTreeSet::new(), Vec::new(), 0);
    let mut questions = 0;
    loop {
        let mut loads = Vec::new();
        crawler.tick_recovery();
        while let Some(command) = crawler.next_command() {
            match command {
                Command::Store(StoreCommand::Load(subnet)) => loads.push(subnet),
                Command::Peers(PeerCommand::Ask { to, question, request: Request::Holds(subnets) }) => {
                    questions += usize::from(!subnets.is_empty());
                    asked.push((question, to));
                }
                _ => {}
            }
        }
        most = most.max(loads.len());
        if loads.is_empty() && asked.is_empty() {
            break;
        }
        let under_way = crawler.view().status(Default::default()).limits;
        let under_way = under_way.iter().find(|limit| limit.name == "subnets whose journals are being loaded").unwrap();
        assert!(under_way.used <= under_way.max && under_way.max == MAX_LOADS as u64, "{under_way:?}");
        for (question, from) in asked.drain(..) {
            let held = Response::Held { store: Default::default(), subnets: Vec::new() };
            crawler.handle(now, Event::Answered { question, from, answer: Some(held) });
        }
        for subnet in loads {
            assert!(loaded.insert(subnet), "{subnet} is loaded twice");
            crawler.handle(now, Event::Loaded { subnet, journals: Vec::new() });
        }
    }
    assert_eq!((loaded.len(), most), (SUBNETS as usize, MAX_LOADS));
    assert!(questions <= 4 * (SUBNETS as usize / MAX_LOADS + 2), "one to each member for all that are loaded at a time: {questions}");
    assert_eq!(crawler.replication.subnets_loading(), 0, "each begins");
}

#[test]
fn a_subnet_that_is_lost_while_it_waits_for_its_turn_is_not_loaded() {
    let mut played = Played::alone();
    let crawler = &mut played.crawler;
    for number in 0..MAX_LOADS as u32 + 2 {
        crawler.replication.load(
            &mut crawler.context,
            &crawler.membership,
            inherited(number).subnet,
            JournalsAt::Here,
            AwaitedReplicas::default(),
        );
    }
    let [lost, last] = [MAX_LOADS as u32, MAX_LOADS as u32 + 1].map(|number| inherited(number).subnet);
    assert!(crawler.replication.is_loading(&lost) && crawler.replication.is_loading(&last));
    crawler.give_up(lost);
    assert!(!crawler.replication.is_loading(&lost));
    let ordered = |crawler: &mut Crawler| {
        let commands = std::iter::from_fn(|| crawler.next_command());
        commands.filter_map(|command| if let Command::Store(StoreCommand::Load(subnet)) = command { Some(subnet) } else { None }).collect()
    };
    let at_once: Vec<_> = ordered(crawler);
    assert_eq!(at_once.len(), MAX_LOADS);
    crawler.loaded(at_once[0], Vec::new());
    assert_eq!(ordered(crawler), [last], "one ends, the next begins");
}

/// Who is asked whether it has rows of this subnet.
fn asked_for_rows(played: &Played, of: Subnet) -> BTreeSet<AccessPoint> {
    let asks = |request: &Request| matches!(request, Request::Holds(subnets) if subnets.contains(&of));
    played.questions.iter().filter(|(.., request)| asks(request)).map(|(member, ..)| *member).collect()
}

/// They have nothing.
fn nothing_held(request: &Request) -> Option<Response> {
    matches!(request, Request::Holds(_)).then(|| Response::Held { store: StoreId(1), subnets: Vec::new() })
}

#[test]
fn an_owner_that_hears_of_a_claim_of_its_own_asks_the_others_for_its_journals() {
    let mut played = Played::alone();
    (2..=3).for_each(|number| played.meet(number));
    let claim = Claim { epoch: 1, reason: ClaimReason::Awarded, ..inherited(1) };
    played.handle(Event::Gossiped { author: member(1), gossip: Gossip::Claims(vec![voted(&claim, 1)]) });
    played.pass(1_000);
    assert_eq!(asked_for_rows(&played, claim.subnet), [member(2), member(3)].into());
    played.crawler.loaded(claim.subnet, Vec::new());
    assert!(played.crawler.replication.is_loading(&claim.subnet), "our store was empty");
    played.answer(nothing_held);
    assert!(!played.crawler.replication.is_loading(&claim.subnet));
}

#[test]
fn a_subnet_whose_journals_nobody_here_has_says_who_keeps_them_and_waits() {
    let mut played = Played::alone();
    played.meet(2);
    let claim = inherited(1);
    let awaited = [7, 8].map(|number| NamedReplica { member: member(number), store: StoreId(1) });
    let awaited = AwaitedReplicas::new(vec![nearcrawl_model::vote::InheritedReplicas { members: awaited.to_vec(), patience_s: 86_400 }]);
    assert!(played.crawler.hold(claim.clone(), SignedClaim::sign(&claim, &key(1))));
    let crawler = &mut played.crawler;
    crawler.replication.load(&mut crawler.context, &crawler.membership, claim.subnet, JournalsAt::Replicas, awaited);
    crawler.loaded(claim.subnet, Vec::new());
    played.pass(1_000);
    played.answer(nothing_held);
    played.pass(60_000);
    let text = played.why("20.0.1.1").answer_text + &played.why("20.0.1.0/24").answer_text;
    let sentence = format!("which {} and {} keep", member(7).short(), member(8).short());
    assert!(text.contains(&sentence), "{text}");
    assert!(played.sentence().contains("wait until a member is back"), "{}", played.sentence());
    played.handle(Event::DeclareLost(vec![member(7)]));
    assert!(played.crawler.replication.is_loading(&claim.subnet), "the other one may come back");
    played.handle(Event::DeclareLost(vec![member(8)]));
    assert!(!played.crawler.replication.is_loading(&claim.subnet));
}

#[test]
fn what_was_taken_over_and_not_begun_before_a_restart_is_asked_for_again() {
    let mut played = Played::alone();
    played.meet(2);
    let [begun, not_begun] = [1, 2].map(inherited);
    for claim in [&begun, &not_begun] {
        assert!(played.crawler.hold(claim.clone(), SignedClaim::sign(claim, &key(1))));
        let (crawler, at) = (&mut played.crawler, JournalsAt::HereIfBegun(claim.epoch));
        crawler.replication.load(&mut crawler.context, &crawler.membership, claim.subnet, at, AwaitedReplicas::default());
    }
    let (journal, mut entries) = journal(begun.subnet);
    entries.push(JournalEntry::TakenOver { epoch: begun.epoch });
    played.crawler.loaded(begun.subnet, vec![(journal, entries)]);
    played.crawler.loaded(not_begun.subnet, Vec::new());
    assert!(!played.crawler.replication.is_loading(&begun.subnet) && played.crawler.replication.is_loading(&not_begun.subnet));
    played.pass(300);
    assert_eq!(asked_for_rows(&played, not_begun.subnet), [member(2)].into());
    played.answer(nothing_held);
    assert!(!played.crawler.replication.is_loading(&not_begun.subnet));
}

#[test]
fn a_member_whose_disk_is_full_leaves_to_others_what_it_could_not_store_a_claim_to() {
    let mut played = Played::alone();
    played.pass(2_000);
    played.handle(Event::Room(DiskRoom::LittleFree));
    played.claimed_by(2, "9.0.1.0/24", true);
    played.pass(60_000);
    assert_eq!(played.crawler.view().subnets_held(), 0);
    played.handle(Event::Room(DiskRoom::Enough));
    played.pass(15_000);
    assert_eq!(played.crawler.view().subnets_held(), 1);
}
