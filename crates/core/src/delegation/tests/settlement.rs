//! Tests that a subnet without an owner gets exactly one, as patiently as its address needs.
//!
//! The machine runs by itself; the test plays its world by hand.

use super::{hierarchy, subnet};
use crate::{
    context::Context,
    delegation::{
        Delegation, DelegationReads, Policy,
        address_assignment::address_steward_of,
        prober::{ProbeOrder, Prober},
    },
    event::{Command, PeerCommand, WebCommand},
    membership::{Member, Membership, Roster, RosterConfig, Shutdown, Swim, SwimConfig},
    ownership::Ownership,
    signal::Signal,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    admission::NotAdmitted,
    claim::{Claim, ClaimReason, SignedClaim},
    fetch::{LocatedHost, ProbeReport, ProbeTarget},
    ids::Ticket,
    message::{Award, Request, Response},
    receipt::{Declined, Receipt, SignedReceipt},
    subnet::Subnet,
    time::{Millis, Moment},
    url::PageUrl,
};
use std::{collections::BTreeSet, sync::Arc};

/// What an answered probe takes here; afterwards the address rests for ten times as long.
const TOOK: Millis = 300;

/// One access point: the machine, and those that it reads.
struct Played {
    cx: Context,
    members: Membership,
    ownership: Ownership,
    shutdown: Shutdown,
    delegation: Delegation,
}

impl Played {
    fn new(number: u8) -> Played {
        let mut cx = Context::of_test(number);
        cx.settings.policy = Policy::Ipmicra { threshold_us: 1 };
        let swim = Swim::new(Member::new(cx.me, 1, Vec::new()), SwimConfig::default(), u64::from(number));
        let members = Membership::with_lease(swim, Roster::new(cx.me, RosterConfig::default(), cx.now.moment, &BTreeSet::new()));
        let ownership = Ownership::new(cx.now.moment, true);
        Played { cx, members, ownership, shutdown: Shutdown::default(), delegation: Delegation::default() }
    }

    /// Two who know each other, and have for longer than any member was probed before: the first one, and who the other is.
    fn with_another() -> (Played, AccessPoint) {
        let (mut one, mut other) = (Played::new(1), Played::new(2));
        one.members.connected(&mut one.cx, other.cx.me, 1, vec!["/sim/2".to_owned()]);
        for _ in 0..4 {
            one.datagrams_to(&mut other);
            other.datagrams_to(&mut one);
        }
        one.cx.take_commands();
        one.cx.signals.clear();
        assert_eq!(one.members.live().len(), 2);
        one.pass(60_000);
        (one, other.cx.me)
    }

    fn datagrams_to(&mut self, other: &mut Played) {
        for command in self.cx.take_commands() {
            if let Command::Peers(PeerCommand::Ask { request: Request::Swim(bytes), .. }) = command
                && let Some(answer) = other.members.receive(&mut other.cx, self.cx.me, &bytes)
            {
                assert_eq!(self.members.receive(&mut self.cx, other.cx.me, &answer), None);
            }
        }
    }

    fn pass(&mut self, millis: Millis) {
        self.cx.now.moment = Moment(self.cx.now.moment.0 + millis);
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut Delegation, &mut Context, DelegationReads<'_>) -> T) -> T {
        let others = DelegationReads { members: &self.members, ownership: &self.ownership, shutdown: &self.shutdown };
        act(&mut self.delegation, &mut self.cx, others)
    }

    fn settle(&mut self) {
        self.with(|delegation, cx, others| delegation.settle(cx, others, around(), target()));
    }

    /// Goes on with what is due. Returns whether anything was.
    fn go_on(&mut self) -> bool {
        let due = self.delegation.due(&self.cx);
        for subnet in &due {
            self.with(|delegation, cx, others| delegation.go_on(cx, others, *subnet));
        }
        !due.is_empty()
    }

    /// Our own prober answers the probe that it was just asked for.
    fn probed(&mut self, rtt_us: u32) {
        let [Command::Web(WebCommand::Probe { question, .. })] = self.wanted()[..] else { panic!("a probe of ours") };
        let report = ProbeReport { rtt_us: Ok(rtt_us), took: TOOK };
        self.with(|delegation, cx, others| delegation.probed(cx, others, question, report));
    }

    /// The other member answers a probe, by a receipt that says `receipt_us`.
    fn other_probed(&mut self, rtt_us: u32, receipt_us: u32) {
        let other = Played::new(2).cx;
        let [Command::Peers(PeerCommand::Ask { to, request: Request::Probe(subnet, target, before), .. })] = &self.wanted()[..] else {
            panic!("a probe of the other's")
        };
        assert_eq!(*to, other.me);
        let receipt = Receipt {
            subnet: *subnet,
            address: target.address,
            prober: other.me,
            steward: self.cx.me,
            sequence: before.len() as u16,
            before: before.last().map(SignedReceipt::id).unwrap_or_default(),
            rtt_us: Some(receipt_us),
            at: self.cx.now.wall,
        };
        let report = ProbeReport { rtt_us: Ok(rtt_us), took: TOOK };
        let answer = Response::Probed(report, SignedReceipt::sign(&receipt, &other.key));
        self.with(|delegation, cx, others| delegation.prober_answered(cx, others, around(), other.me, Some(answer)));
    }

    /// What it wants done, but for its record of contacts.
    fn wanted(&mut self) -> Vec<Command> {
        self.cx.take_commands().into_iter().filter(|command| !matches!(command, Command::Store(_))).collect()
    }

    /// A claim of a member holds.
    fn claimed(&mut self, number: u8, claimed: Subnet) {
        let key = Context::of_test(number).key;
        let owner = AccessPoint(key.verifying_key().to_bytes());
        let (reason, answers) = (ClaimReason::Awarded, Vec::new());
        let claim = Claim { subnet: claimed, epoch: 1, owner, rtt_us: None, runner_up: None, probes: 0, reason, released: false, answers };
        assert!(self.ownership.merge(claim.clone(), SignedClaim::sign(&claim, &key)).is_some());
        self.with(|delegation, cx, others| delegation.claim_holds(cx, others, &claim, None));
    }

    /// Both members have probed and the other is nearer: the award that it is told.
    fn awarded_to_the_other() -> (Played, Award) {
        let (mut played, _) = Played::with_another();
        played.settle();
        let first = played.members.live()[0] == played.cx.me;
        for ours in [first, !first] {
            if ours {
                played.probed(9_000)
            } else {
                played.other_probed(2_000, 2_000)
            }
            played.pass(10 * TOOK);
            if ours == first {
                assert!(played.go_on());
            }
        }
        let award = played.award();
        (played, award)
    }

    fn award(&mut self) -> Award {
        match self.wanted().pop() {
            Some(Command::Peers(PeerCommand::Ask { request: Request::Award { award, .. }, .. })) => award,
            another => panic!("no award but {another:?}"),
        }
    }
}

/// Whose a host at this address is; `crawled` is whether anything of a smaller subnet is crawled here.
fn owner_at(played: &mut Played, address: &str, crawled: bool) -> Option<AccessPoint> {
    let located = LocatedHost { host: "a.ke".parse().unwrap(), address: address.parse().unwrap(), valid_for: 1 };
    let first = PageUrl::parse("http://a.ke/").unwrap();
    let (changing, crawls) = (|_: &Subnet| false, |_: &Subnet, _: &Subnet| crawled);
    played.with(|delegation, cx, others| delegation.owner_for(cx, others, &located, Some(&first), changing, crawls))
}

fn around() -> Subnet {
    subnet("192.0.2.0/24")
}

fn target() -> ProbeTarget {
    ProbeTarget { address: "192.0.2.7:80".parse().unwrap(), host: "a.ke".parse().unwrap(), secure: false }
}

#[test]
fn who_leaves_or_knows_no_whole_map_or_is_nearly_full_refuses_awards_and_says_why() {
    let refuses = |change: fn(&mut Played)| {
        let mut played = Played::new(1);
        change(&mut played);
        let Played { cx, members, ownership, shutdown, .. } = &played;
        DelegationReads { members, ownership, shutdown }.refuses_award(cx)
    };
    assert_eq!(refuses(|_| {}), None);
    assert_eq!(refuses(|played| played.shutdown.drain(Moment(0))), None, "it comes back");
    assert_eq!(refuses(|played| played.shutdown.leave(Moment(0))), Some("it is leaving the swarm"));
    assert_eq!(refuses(|played| played.ownership = Ownership::new(Moment(0), false)), Some("its ownership map is not whole yet"));
    assert_eq!(refuses(|played| played.cx.outlook.memory_nearly_full = true), Some("it uses nearly as much memory as it may"));
    assert_eq!(refuses(|played| played.cx.outlook.disk_nearly_full = true), Some("its files take nearly as much of the disk as they may"));
}

#[test]
fn a_member_that_is_alone_gets_the_subnet_without_a_probe() {
    let mut played = Played::new(1);
    let standing = played.with(|delegation, cx, others| delegation.find_owner_for(cx, others, target()));
    assert_eq!((standing, played.wanted().len()), (None, 0));
    let Some(Signal::Awarded(award)) = played.cx.signals.pop_front() else { panic!("no award") };
    assert_eq!((award.subnet, award.epoch, award.probes, award.rtt_us), (around(), 1, 0, None));
    played.settle();
    assert!(played.cx.signals.is_empty(), "it is awarded only once");
}

#[test]
fn the_address_rests_after_each_probe_and_the_nearest_gets_the_subnet() {
    let (mut played, other) = Played::with_another();
    played.settle();
    let first = played.members.live()[0] == played.cx.me;
    if first {
        played.probed(9_000)
    } else {
        played.other_probed(2_000, 2_000)
    }
    played.pass(10 * TOOK - 1);
    assert!(!played.go_on() && played.wanted().is_empty(), "it rests");
    played.pass(1);
    assert!(played.go_on());
    if first {
        played.other_probed(2_000, 2_000)
    } else {
        played.probed(9_000)
    }
    let asked = played.wanted();
    let [Command::Peers(PeerCommand::Ask { to, request: Request::Award { award, rest }, .. })] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((*to, award.rtt_us, award.probes, award.answers.len()), (other, Some(2_000), 2, 1));
    assert_eq!(*rest, 10 * TOOK, "the rest that is left over is for the new owner to keep");
}

#[test]
fn a_new_steward_lets_the_address_rest_first() {
    let (mut played, _) = Played::with_another();
    played.members.farewell(&mut played.cx, AccessPoint([9; 32]), false);
    played.settle();
    assert!(!played.go_on() && played.wanted().is_empty(), "the steward before may have had it probed a moment ago");
    played.pass(1_000);
    assert!(played.go_on() && played.wanted().len() == 1);
}

#[test]
fn a_receipt_that_says_something_else_than_its_prober_is_not_believed() {
    let (mut played, other) = Played::with_another();
    played.settle();
    if played.members.live()[0] == played.cx.me {
        played.probed(9_000);
        played.pass(10 * TOOK);
        played.go_on();
        played.other_probed(2_000, 20_000);
        let Some(Signal::Awarded(award)) = played.cx.signals.pop_front() else { panic!("no award") };
        assert_eq!((award.probes, award.runner_up), (1, None));
    } else {
        played.other_probed(2_000, 20_000);
        played.pass(10 * TOOK);
        played.go_on();
        let asked = played.wanted();
        let [Command::Web(WebCommand::Probe { .. })] = &asked[..] else { panic!("{asked:?}, and {other} is not asked again") };
    }
    assert_eq!(played.cx.counters.refused.values().sum::<u64>(), 1);
}

#[test]
fn an_award_without_a_claim_is_repeated_and_then_the_search_begins_anew() {
    let (mut played, first) = Played::awarded_to_the_other();
    for _ in 1..4 {
        played.pass(10_000);
        assert!(played.go_on() && played.wanted().is_empty(), "it may be claiming at this moment");
        played.pass(1_000);
        assert!(played.go_on());
        let again = played.award();
        assert_eq!((again.subnet, again.rtt_us), (first.subnet, first.rtt_us));
    }
    played.pass(10_000);
    assert!(played.go_on() && played.wanted().is_empty());
    assert_eq!((played.delegation.rounds().running(), played.delegation.next_queued(&played.cx)), (0, Some((around(), target()))));
}

#[test]
fn a_claim_ends_the_search_that_it_decides() {
    let (mut played, _) = Played::awarded_to_the_other();
    played.claimed(2, subnet("192.0.3.0/24"));
    assert!(played.delegation.rounds().is_running(&around()), "it is another subnet's");
    played.claimed(2, around());
    assert_eq!((played.delegation.rounds().running(), played.cx.counters.settled.get(&2)), (0, Some(&1)));
    played.settle();
    assert!(!played.delegation.rounds().is_running(&around()), "it has an owner");
}

#[test]
fn only_stewards_are_obeyed_and_only_once() {
    let (mut played, other) = Played::with_another();
    let mut answer = |from, held_back| {
        let order = ProbeOrder { subnet: around(), target: target(), before: Vec::new() };
        played.with(|delegation, cx, others| delegation.probe_for(cx, others, (from, Ticket(7)), order, held_back));
        match played.wanted().pop() {
            Some(Command::Web(WebCommand::Probe { .. })) => Ok(()),
            Some(Command::Peers(PeerCommand::Answer { ticket: Ticket(7), response: Response::ProbeDeclined(why, _) })) => Err(why),
            another => panic!("{another:?}"),
        }
    };
    assert_eq!(answer(AccessPoint([9; 32]), false), Err(Declined::NoSteward));
    assert_eq!(answer(other, true), Err(Declined::HeldBack));
    assert_eq!(answer(other, false), Ok(()));
    assert_eq!(answer(other, false), Err(Declined::ProbedAlready));
}

#[test]
fn who_may_be_no_member_probes_nothing_as_its_own_steward() {
    let mut played = Played::new(1);
    let order = || ProbeOrder { subnet: around(), target: target(), before: Vec::new() };
    played.cx.excluded.insert(played.cx.me, NotAdmitted::NoCertificate);
    let mut probed = || played.with(|_, cx, others| Prober::default().probe_myself(cx, others.members, order()));
    assert_eq!(probed(), Err(Declined::HeldBack));
    assert!(!played.wanted().iter().any(|command| matches!(command, Command::Web(_))));
    played.cx.excluded.clear();
    let mut probed = || played.with(|_, cx, others| Prober::default().probe_myself(cx, others.members, order()));
    assert_eq!(probed(), Ok(()));
}

#[test]
fn within_our_subnet_a_smaller_one_is_settled_first_unless_it_is_crawled_already() {
    let mut played = Played::new(1);
    let blocks = [("ripencc", "DE", "10.1.0.0", 65_536, "all"), ("ripencc", "DE", "10.1.5.0", 256, "part")];
    played.cx.hierarchy = Arc::new(hierarchy(&blocks));
    played.claimed(1, subnet("10.1.0.0/16"));
    let me = played.cx.me;
    assert_eq!(owner_at(&mut played, "10.1.9.1", false), Some(me), "that is in no smaller subnet");
    assert_eq!(owner_at(&mut played, "10.1.5.1", true), Some(me));
    assert!(played.cx.signals.is_empty());
    assert_eq!(owner_at(&mut played, "10.1.5.1", false), None);
    assert!(matches!(played.cx.signals.pop_front(), Some(Signal::Awarded(award)) if award.subnet == subnet("10.1.5.0/24")));
}

#[test]
fn the_steward_of_an_address_without_an_owner_is_asked_now_and_then() {
    let (mut played, other) = Played::with_another();
    let is_steward_of = |address: &u8| address_steward_of(played.cx.me, &played.members, [192, 0, 2, *address].into()) == other;
    let address = format!("192.0.2.{}", (1..).find(is_steward_of).unwrap());
    let mut asked = |after| {
        played.pass(after);
        assert_eq!(owner_at(&mut played, &address, false), None);
        played.wanted().len()
    };
    assert_eq!([asked(0), asked(4_999), asked(1)], [1, 0, 1]);
    played.claimed(2, around());
    assert_eq!(owner_at(&mut played, &address, false), Some(other));
}

#[test]
fn a_rest_is_never_shortened_and_there_are_not_endlessly_many() {
    let mut one = Played::new(1);
    one.delegation.rest_subnet(&one.cx, subnet("9.0.0.0/24"), 20_000);
    let until = one.delegation.rests_until(&subnet("9.0.0.0/24"));
    one.delegation.rest_subnet(&one.cx, subnet("9.0.0.0/24"), 0);
    assert_eq!(one.delegation.rests_until(&subnet("9.0.0.0/24")), until, "an award without a rest does not end one");
    let other = |number: u32| format!("{}/24", std::net::Ipv4Addr::from(0x0a00_0000 + number * 256));
    for number in 0..200_000 {
        one.delegation.rest_subnet_as_told(&mut one.cx, subnet(&other(number)), 10_000);
    }
    assert_eq!(one.delegation.resting(), 100_000);
    assert_eq!(one.cx.counters.refused["rests of awarded subnets beyond the limit"], 100_001);
    one.delegation.rest_subnet(&one.cx, subnet("9.0.1.0/24"), 10_000);
    assert!(one.delegation.rests_until(&subnet("9.0.1.0/24")).is_some(), "what we have to leave alone ourselves is noted all the same");
}
