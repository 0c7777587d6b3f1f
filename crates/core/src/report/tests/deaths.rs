//! Is everything done once for each death, also if several members die at once?

use super::*;
use crate::signal::Signal;
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
        crawler.replication.load_from_replicas(&mut crawler.context, &crawler.membership, subnet);
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
