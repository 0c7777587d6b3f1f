//! Is everything done once for each death, also if several members die at once?

use super::*;
use crate::{ownership::claims::JournalsAt, replication::MAX_LOADS, signal::Signal};
use nearcrawl_model::{
    journal::{Arrival, JournalEntry, JournalKey, VisitOutcome},
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
        crawler.replication.load(&mut crawler.context, &crawler.membership, subnet, JournalsAt::Replicas);
    }
    let asked = |crawler: &mut Crawler, of: Subnet| {
        let commands = std::iter::from_fn(|| crawler.next_command());
        let asked = commands.filter_map(|command| match command {
            Command::Peers(PeerCommand::Recover { subnet, from }) if subnet == of => Some(from),
            _ => None,
        });
        asked.collect::<Vec<_>>()
    };
    let replicas = asked(crawler, subnets[0]);
    // Of the first subnet one replica answers, of the second none: when their time is over, the first one begins and others are asked
    // for the second.
    crawler.recovered(subnets[0], replicas[0], Some(Vec::new()), 0);
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
    loop {
        let mut loads = Vec::new();
        while let Some(command) = crawler.next_command() {
            match command {
                Command::Store(StoreCommand::Load(subnet)) => loads.push(subnet),
                Command::Peers(PeerCommand::Recover { subnet, from }) => asked.push((subnet, from)),
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
        for (subnet, from) in asked.drain(..) {
            crawler.handle(now, Event::Recovered { subnet, from, journals: Some(Vec::new()), bytes: 0 });
        }
        for subnet in loads {
            assert!(loaded.insert(subnet), "{subnet} is loaded twice");
            crawler.handle(now, Event::Loaded { subnet, journals: Vec::new() });
        }
    }
    assert_eq!((loaded.len(), most), (SUBNETS as usize, MAX_LOADS));
    assert_eq!(crawler.replication.subnets_loading(), 0, "each begins");
}

#[test]
fn a_subnet_that_is_lost_while_it_waits_for_its_turn_is_not_loaded() {
    let mut played = Played::alone();
    let crawler = &mut played.crawler;
    for number in 0..MAX_LOADS as u32 + 2 {
        crawler.replication.load(&mut crawler.context, &crawler.membership, inherited(number).subnet, JournalsAt::Here);
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
