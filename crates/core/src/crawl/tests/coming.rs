//! Tests that a host of another owner is taken from nobody else, only at an address of our own, and its journals are fetched once.

use super::*;
use crate::{crawl::moved_hosts::Coming, event::PeerCommand};
use nearcrawl_model::{access_point::AccessPoint, journal::JournalKey, message::Response};

/// The owner of the address that b.ke had.
const OWNER: AccessPoint = AccessPoint([2; 32]);

/// It hands b.ke over, which has an address of ours now.
fn handed_over() -> (Played, Coming) {
    let mut played = Played::new();
    let subnet: Subnet = "9.0.2.0/24".parse().unwrap();
    let (reason, answers) = (ClaimReason::Awarded, Vec::new());
    let (epoch, owner, rtt_us) = (1, OWNER, Some(1_000));
    let claim = Claim { subnet, epoch, owner, rtt_us, runner_up: None, probes: 1, reason, released: false, answers };
    let proof = SignedClaim::sign(&claim, &played.cx.key);
    assert!(played.ownership.merge(claim, proof).is_some());
    let located = LocatedHost { host: host("b.ke"), address: address(), valid_for: 60_000 };
    let journal = JournalKey { subnet, host: host("b.ke"), run: 1 };
    (played, Coming { from: OWNER, located, journal, rows: 2, since: Moment(0) })
}

fn may_come(change: fn(&mut Coming), is_resting: bool) -> Result<Subnet, Response> {
    let (mut played, mut coming) = handed_over();
    change(&mut coming);
    let (crawl, cx, replication, others) = played.others();
    crawl.may_come(cx, replication, others, &coming, is_resting)
}

#[test]
fn a_host_is_taken_from_its_owner_alone_and_at_an_address_of_ours() {
    assert_eq!(may_come(|_| {}, false), Ok(subnet()));
    assert_eq!(may_come(|_| {}, true), Err(Response::Busy(1_000)));
    assert_eq!(may_come(|coming| coming.journal.run = u32::MAX, false), Err(Response::Busy(1_000)));
    let refused = |change| matches!(may_come(change, false), Err(Response::Refused(_)));
    assert!(refused(|coming| coming.from = AccessPoint([3; 32])), "another member's");
    assert!(refused(|coming| coming.journal.host = host("c.ke")), "another host's journal");
    assert!(refused(|coming| coming.journal.subnet = "9.0.3.0/24".parse().unwrap()), "nobody's subnet");
    assert!(refused(|coming| coming.located.address = "9.0.2.7".parse().unwrap()), "its own address");
}

#[test]
fn its_journals_are_fetched_once_and_not_before_its_steward_says_that_it_is_there() {
    let (mut played, _) = handed_over();
    let mut comes = |is_there| {
        let (_, coming) = handed_over();
        let answer = played.crawl.comes(&mut played.cx, &played.replication, subnet(), coming, is_there);
        (answer, played.cx.take_commands())
    };
    let (answer, commands) = comes(None);
    assert!(answer == Response::Busy(1_000) && commands.is_empty(), "{commands:?}");
    let (answer, commands) = comes(Some(false));
    assert!(matches!(answer, Response::Refused(_)) && commands.is_empty(), "{answer:?}");
    let (answer, commands) = comes(Some(true));
    assert_eq!(answer, Response::Busy(1_000), "not before they are here");
    let [Command::Peers(PeerCommand::Recover { subnet, host: Some(of), from: OWNER })] = &commands[..] else { panic!("{commands:?}") };
    assert_eq!((*subnet, of), ("9.0.2.0/24".parse().unwrap(), &host("b.ke")));
    let (answer, commands) = comes(Some(true));
    assert!(answer == Response::Busy(1_000) && commands.is_empty(), "they are on their way: {commands:?}");
    assert!(played.cx.signals.iter().any(|signal| matches!(signal, Signal::RollUpChanged)), "its sums are not told as whole");
    assert!(played.crawl.holds_back(&played.cx, &host("b.ke"), 1), "no URL begins it anew meanwhile");
}
