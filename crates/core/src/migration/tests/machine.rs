//! Tests of the state machine of migration alone, with its surroundings set up by hand.

use crate::{
    context::Context,
    crawl::Crawl,
    delegation::Delegation,
    event::{Command, PeerCommand},
    membership::{Member, Membership, Roster, Swim, machine::HeldBack},
    migration::{
        Migration,
        handover::{Immovable, MAX_INCOMING, MAX_OUTGOING, Offer, Proposal, Stage, Surroundings},
        judge::Rule,
    },
    ownership::Ownership,
    replication::Replication,
    report::Report,
    signal::Signal,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    allowance::Rest,
    claim::{Claim, ClaimReason, SignedClaim},
    fetch::{FetchError, FetchOutcome, FetchReport},
    ids::Ticket,
    message::{Request, Response, Unwilling},
    subnet::Subnet,
    time::{Millis, WallTime},
    url::PageUrl,
};
use std::collections::BTreeSet;

/// An access point with one other member, and what its migration reads.
struct Played {
    cx: Context,
    other: Context,
    membership: Membership,
    ownership: Ownership,
    delegation: Delegation,
    crawl: Crawl,
    replication: Replication,
    report: Report,
    held_back: Option<HeldBack>,
    migration: Migration,
}

fn subnet(number: u8) -> Subnet {
    format!("9.0.{number}.0/24").parse().unwrap()
}

fn claim(owner: &Context, subnet: Subnet, epoch: u64) -> Claim {
    let reason = ClaimReason::Awarded;
    Claim { subnet, epoch, owner: owner.me, rtt_us: Some(8_000), runner_up: None, probes: 1, reason, released: false, answers: Vec::new() }
}

impl Played {
    fn new() -> Played {
        let (cx, other) = (Context::of_test(1), Context::of_test(2));
        let now = cx.now.moment;
        let mut roster = Roster::new(cx.me, cx.settings.roster.clone(), now, &BTreeSet::new());
        roster.up(now, other.me);
        let swim = Swim::new(Member::new(cx.me, 1, Vec::new()), cx.settings.membership.clone(), 1);
        Played {
            membership: Membership::with_lease(swim, roster),
            ownership: Ownership::new(now, true),
            delegation: Delegation::default(),
            crawl: Crawl::new(&cx.settings, 0),
            replication: Replication::default(),
            report: Report::new(now),
            held_back: None,
            migration: Migration::default(),
            cx,
            other,
        }
    }

    /// A member's claim holds.
    fn holds(&mut self, claim: Claim, ours: bool) {
        let proof = SignedClaim::sign(&claim, if ours { &self.cx.key } else { &self.other.key });
        assert!(self.ownership.merge(claim.clone(), proof).is_some());
        self.migration.claim_holds(&self.cx, &claim);
    }

    /// Subnets of ours with these numbers.
    fn owning(numbers: impl IntoIterator<Item = u8>) -> Played {
        let mut played = Played::new();
        for number in numbers {
            played.holds(claim(&played.cx, subnet(number), 1), true);
        }
        played
    }

    /// Migration does something; returns what it wants of the other member and of other machines.
    fn does(&mut self, act: impl FnOnce(&mut Migration, &mut Context, &Surroundings<'_>)) -> (Vec<Request>, Vec<Response>, Vec<Signal>) {
        let around = Surroundings {
            membership: &self.membership,
            ownership: &self.ownership,
            crawl: &self.crawl,
            replication: &self.replication,
            delegation: &self.delegation,
            report: &self.report,
            held_back: self.held_back.as_ref(),
        };
        act(&mut self.migration, &mut self.cx, &around);
        let (mut asked, mut answered) = (Vec::new(), Vec::new());
        for command in self.cx.take_commands() {
            match command {
                Command::Peers(PeerCommand::Ask { request, .. }) => asked.push(request),
                Command::Peers(PeerCommand::Answer { response, .. }) => answered.push(response),
                other => panic!("{other:?}"),
            }
        }
        (asked, answered, self.cx.signals.drain(..).collect())
    }

    fn propose(&mut self, number: u8, to: AccessPoint) -> Vec<Request> {
        let proposal = Proposal { subnet: subnet(number), to, why: "nearer".to_owned() };
        self.does(|migration, cx, around| migration.propose(cx, around, [proposal])).0
    }

    fn step(&mut self, after: Millis) -> Vec<Signal> {
        self.cx.now.moment = self.cx.now.moment.after(after);
        self.does(|migration, cx, around| migration.step(cx, around, subnet(1))).2
    }

    fn may_move(&mut self, number: u8, to: AccessPoint) -> Result<u64, Immovable> {
        let mut result = Err(Immovable::Busy);
        self.does(|migration, cx, around| result = migration.may_move(cx, around, &subnet(number), &to));
        result
    }

    fn accepted(&mut self, answer: Option<Response>) -> Vec<Signal> {
        let from = self.other.me;
        self.does(|migration, cx, _| migration.offer_answered(cx, subnet(1), from, answer)).2
    }

    fn offered(&mut self, number: u8, epoch: u64) -> Option<Unwilling> {
        let offer = Offer { from: self.other.me, subnet: subnet(number), epoch };
        let answers = self.does(|migration, cx, around| migration.offered(cx, around, Ticket(7), offer)).1;
        let [Response::Offered(unwilling)] = answers.as_slice() else { panic!("{answers:?}") };
        *unwilling
    }
}

#[test]
fn only_what_is_ours_and_settled_is_offered_and_only_so_much_at_a_time() {
    let mut played = Played::owning(1..=4);
    let (me, to) = (played.cx.me, played.other.me);
    assert_eq!(played.may_move(9, to), Err(Immovable::NotOurs));
    assert_eq!(played.may_move(1, me), Err(Immovable::ReceiverNotAlive));
    assert_eq!(played.may_move(1, Context::of_test(3).me), Err(Immovable::ReceiverNotAlive));
    played.holds(Claim { reason: ClaimReason::OwnSubnet, ..claim(&played.cx, subnet(5), 1) }, true);
    assert_eq!(played.may_move(5, to), Err(Immovable::OwnNetwork));
    played.held_back = Some(HeldBack::OutboxFull);
    assert_eq!(played.may_move(1, to), Err(Immovable::Unsettled));
    assert!(played.propose(1, to).is_empty());
    let metered = Some(HeldBack::Resting(Rest::Metered { interface: "wwan0".to_owned() }));
    for (held_back, may) in [(Some(HeldBack::Resting(Rest::MemoryFull { limit: 1 })), Ok(1)), (metered.clone(), Err(Immovable::Unsettled))]
    {
        played.held_back = held_back;
        assert_eq!(played.may_move(1, to), may, "{:?}", played.held_back);
    }
    (played.held_back, played.cx.outlook.back_at) = (metered, Some(WallTime(1)));
    assert_eq!(played.may_move(1, to), Ok(1), "it will be so for long");
    (played.held_back, played.cx.outlook.back_at) = (None, None);
    for number in 1..=2 {
        let asked = played.propose(number, to);
        assert!(matches!(asked.as_slice(), [Request::Offer { subnet: offered, epoch: 1 }] if *offered == subnet(number)), "{asked:?}");
    }
    assert_eq!((played.may_move(1, to), played.may_move(3, to)), (Err(Immovable::Busy), Err(Immovable::Busy)));
    assert_eq!((played.migration.under_way(), played.cx.counters.moves_offered), ((MAX_OUTGOING, 0), 2));
}

#[test]
fn a_hand_over_goes_from_the_offer_to_the_release_and_ends_with_the_next_owners_claim() {
    let mut played = Played::owning([1]);
    let to = played.other.me;
    played.propose(1, to);
    assert!(played.step(0).is_empty(), "it was offered and not accepted yet");
    let signals = played.accepted(Some(Response::Offered(None)));
    assert!(matches!(signals.as_slice(), [Signal::NextOwnerChanged(_)]), "{signals:?}");
    assert_eq!((played.migration.next_owner(&subnet(1)), played.migration.has_stopped(&subnet(1))), (Some(to), false));
    assert!(played.step(0).is_empty());
    assert!(played.migration.has_stopped(&subnet(1)), "no row is lacking");
    let signals = played.step(0);
    assert!(matches!(signals.as_slice(), [Signal::HandOverCloses(None)]), "there is no journal: {signals:?}");
    let signals = played.step(0);
    let [Signal::Claim(claims)] = signals.as_slice() else { panic!("{signals:?}") };
    let release = claims[0].clone();
    assert_eq!((release.released, release.runner_up, release.epoch), (true, Some(to), 1));
    assert!(played.step(3_600_000).is_empty(), "what is being released is not called off");
    let proof = SignedClaim::sign(&release, &played.cx.key);
    let asked = played.does(|migration, cx, _| assert!(migration.release_stored(cx, subnet(1), proof))).0;
    assert!(matches!(asked.as_slice(), [Request::TakeOver(_)]), "{asked:?}");
    assert_eq!(played.migration.stage_of(&subnet(1)), Some(Stage::Given));
    let taken = Claim { reason: ClaimReason::Moved, ..claim(&played.other, subnet(1), 2) };
    played.holds(taken, false);
    assert_eq!(played.migration.stage_of(&subnet(1)), None);
    let owners: Vec<_> = played.migration.history_of(&subnet(1)).unwrap().iter().map(|holding| holding.owner).collect();
    assert_eq!(owners, [played.cx.me, to]);
}

#[test]
fn a_release_that_another_claim_beats_ends_its_hand_over() {
    let mut played = Played::owning([1, 2, 3]);
    let to = played.other.me;
    played.propose(1, to);
    played.accepted(Some(Response::Offered(None)));
    let released = (0..3).flat_map(|_| played.step(0)).any(|signal| matches!(signal, Signal::Claim(_)));
    assert!(released && played.migration.stage_of(&subnet(1)) == Some(Stage::Releasing));
    let stronger = Claim { reason: ClaimReason::OwnerDead, ..claim(&played.other, subnet(1), 2) };
    played.holds(stronger, false);
    let signals = played.step(100);
    assert!(matches!(signals.as_slice(), [Signal::HandOverCalledOff(_)]), "{signals:?}");
    assert_eq!((played.migration.stage_of(&subnet(1)), played.migration.under_way()), (None, (0, 0)));
    assert_eq!((2..=3).map(|number| played.propose(number, to).len()).sum::<usize>(), MAX_OUTGOING, "it stands in no one's way");
}

#[test]
fn an_accepted_offer_is_forgotten_in_time_even_if_no_other_comes() {
    let mut played = Played::new();
    played.holds(claim(&played.other, subnet(1), 3), false);
    assert_eq!(played.offered(1, 3), None);
    for (after, stage) in [(314_999, Some(Stage::Coming)), (1, None)] {
        played.cx.now.moment = played.cx.now.moment.after(after);
        played.migration.expire_incoming(&played.cx);
        assert_eq!(played.migration.stage_of(&subnet(1)), stage);
    }
}

#[test]
fn a_hand_over_that_is_refused_or_takes_too_long_is_called_off() {
    let refused = Some(Response::Offered(Some(Unwilling::Full)));
    for (answer, late) in [(refused, 0), (None, 0), (Some(Response::Offered(None)), 300_000)] {
        let mut played = Played::owning([1]);
        let to = played.other.me;
        played.propose(1, to);
        played.holds(claim(&played.cx, subnet(2), 1), true);
        let mut signals = played.accepted(answer.clone());
        if late > 0 {
            signals = played.step(late);
        }
        assert!(matches!(signals.as_slice(), [Signal::HandOverCalledOff(_)]), "{answer:?}: {signals:?}");
        assert_eq!((played.migration.stage_of(&subnet(1)), played.cx.counters.moves_called_off), (None, 1));
        assert_eq!(played.may_move(1, to), Ok(1), "it may be offered again");
    }
}

#[test]
fn an_offer_is_taken_if_it_is_the_senders_and_there_is_room_and_only_a_release_for_us_ends_it() {
    let mut played = Played::new();
    for number in 1..=5 {
        played.holds(claim(&played.other, subnet(number), 3), false);
    }
    assert_eq!((played.offered(9, 3), played.offered(1, 2)), (Some(Unwilling::NotYours), Some(Unwilling::NotYours)));
    played.held_back = Some(HeldBack::OutboxFull);
    assert_eq!(played.offered(1, 3), Some(Unwilling::HeldBack));
    played.held_back = None;
    assert!((1..=MAX_INCOMING as u8).all(|number| played.offered(number, 3).is_none()));
    assert_eq!((played.offered(5, 3), played.offered(1, 3)), (Some(Unwilling::Busy), None), "one that was accepted may be offered again");
    let release = |to| Claim { released: true, runner_up: Some(to), ..claim(&played.other, subnet(1), 3) };
    let (to_us, to_another) = (release(played.cx.me), release(Context::of_test(3).me));
    for (release, taken) in [(to_another, false), (to_us, true)] {
        let (proof, from) = (SignedClaim::sign(&release, &played.other.key), played.other.me);
        let mut is_taken = false;
        let answers = played.does(|migration, cx, _| is_taken = migration.handed_over(cx, from, Ticket(8), &proof)).1;
        assert_eq!((is_taken, answers.is_empty(), played.migration.was_handed(&subnet(1), 3)), (taken, taken, taken));
    }
    assert_eq!(played.migration.stage_of(&subnet(1)), Some(Stage::Handed));
}

#[test]
fn an_access_is_judged_when_it_is_complete_and_says_nothing_of_servers_that_are_not_there() {
    let mut played = Played::owning([1]);
    let report = |outcome| FetchReport {
        url: PageUrl::parse("http://a.ke/").unwrap(),
        outcome,
        took: 200,
        connect_us: Some(40_000),
        first_byte_us: Some(90_000),
        wire_bytes: 1_000,
        software: None,
        retry_after: None,
        facts: Vec::new(),
    };
    let fetch = |played: &mut Played, outcome| {
        played.does(|migration, cx, around| migration.time_access(cx, around, subnet(1), &report(outcome))).2
    };
    for _ in 0..20 {
        fetch(&mut played, FetchOutcome::Failed(FetchError::ConnectionRefused));
    }
    assert_eq!(played.cx.counters.accesses_judged, 0, "a closed port says nothing of the way");
    let told: Vec<_> = (0..16).flat_map(|_| fetch(&mut played, FetchOutcome::Status(404))).collect();
    assert_eq!(played.cx.counters.accesses_judged, 1);
    assert!(matches!(told.as_slice(), [Signal::WayMeasured { rtt_us: 40_000, .. }]), "{told:?}");
    assert!(played.migration.last_judgement(&played.cx, &subnet(1)).unwrap().contains("nothing to compare it with"));
    played.cx.settings.migration.rule = Rule::None;
    for _ in 0..16 {
        fetch(&mut played, FetchOutcome::Status(404));
    }
    assert_eq!(played.cx.counters.accesses_judged, 1, "nothing moves by this rule");
}

#[test]
fn a_pinned_subnet_is_neither_offered_nor_handed_over_until_it_is_unpinned() {
    let mut played = Played::owning([1, 2]);
    let to = played.other.me;
    played.migration.pin([subnet(2)].into());
    assert!(played.propose(2, to).is_empty());
    assert_eq!(played.propose(1, to).len(), 1, "the others go");
    played.migration.pin([subnet(1), subnet(2)].into());
    played.step(1_000);
    assert_eq!(played.migration.stage_of(&subnet(1)), None, "what was on its way stays, too");
    played.migration.pin(BTreeSet::new());
    assert_eq!(played.propose(2, to).len(), 1);
}
