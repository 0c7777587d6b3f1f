//! Tests of totals while subnets change hands: those of before answer until all concerned have told theirs.

use crate::report::{consistent::KEPT, tally::RollUps};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, ClaimReason},
    summary::{Counts, RollUp, Summary, SwarmResults},
    time::Moment,
};
use std::collections::BTreeMap;

const A: AccessPoint = AccessPoint([1; 32]);
const B: AccessPoint = AccessPoint([2; 32]);

/// Two members' totals and a map; what a member holds is told by a number.
struct Told {
    rolls: RollUps,
    live: Vec<AccessPoint>,
    owners: BTreeMap<AccessPoint, u64>,
    version: u64,
    now: Moment,
}

impl Told {
    /// A holds two subnets with 30 pages together, B one with 5.
    fn new() -> Told {
        let mut told = Told { rolls: RollUps::default(), live: vec![A, B], owners: BTreeMap::new(), version: 0, now: Moment(1_000) };
        told.claim(1, A, None, (A, 10), false);
        told.claim(2, B, None, (B, 20), false);
        told.tell(A, 10, 2, 30);
        told.tell(B, 20, 1, 5);
        assert_eq!(told.pages(), (true, 35, None));
        told
    }

    fn made(subnet: u8, owner: AccessPoint, released: bool) -> Claim {
        Claim {
            subnet: format!("20.0.{subnet}.0/24").parse().unwrap(),
            epoch: 1,
            owner,
            reason: ClaimReason::Awarded,
            rtt_us: None,
            runner_up: None,
            probes: 0,
            released,
            answers: Vec::new(),
        }
    }

    /// A claim holds, after which what a member holds has this digest.
    fn claim(&mut self, subnet: u8, owner: AccessPoint, before: Option<(AccessPoint, bool)>, holds: (AccessPoint, u64), released: bool) {
        self.owners.insert(holds.0, holds.1);
        let (claim, owners) = (Told::made(subnet, owner, released), &self.owners);
        let before = before.map(|(owner, released)| Told::made(subnet, owner, released));
        let is_gone = |member: &AccessPoint| !owners.contains_key(member) && !self.live.contains(member);
        self.rolls.claim_holds(&claim, before.as_ref(), None, |member| owners.get(member).copied().unwrap_or(0), is_gone, self.now);
    }

    fn tell(&mut self, owner: AccessPoint, claims_digest: u64, servers: u64, pages: u64) {
        self.tell_all(owner, claims_digest, Counts { servers, pages, ..Counts::default() });
    }

    fn tell_all(&mut self, owner: AccessPoint, claims_digest: u64, total: Counts) {
        self.version += 1;
        let summary = Summary { total, ..Summary::default() };
        let roll_up = RollUp {
            owner,
            version: self.version,
            claims_digest,
            subnets: 1,
            sure_of: 2,
            busy_permille: 0,
            price_permille: 1_000,
            summary,
        };
        let is_gone = |member: &AccessPoint| !self.owners.contains_key(member) && !self.live.contains(member);
        assert!(self.rolls.hear(roll_up, is_gone, self.now));
    }

    fn results(&self) -> SwarmResults {
        self.rolls.results(A, &self.owners, &self.live, self.now)
    }

    fn pages(&self) -> (bool, u64, Option<u64>) {
        let results = self.results();
        (results.exact, results.summary.total.pages, results.consistent_age_ms)
    }

    fn after(&mut self, time: u64) {
        self.now = self.now.after(time);
    }
}

#[test]
fn in_a_move_totals_neither_fall_nor_count_anything_twice_whichever_owner_tells_first() {
    for giver_first in [true, false] {
        let mut told = Told::new();
        if giver_first {
            told.tell(A, 11, 1, 10);
            assert_eq!(told.pages(), (false, 35, Some(0)), "it speaks of a release that we have not heard of");
        }
        told.after(200);
        told.claim(3, A, Some((A, false)), (A, 11), true);
        told.after(200);
        told.claim(3, B, Some((A, true)), (B, 21), false);
        told.tell(B, 21, 2, 26);
        if !giver_first {
            assert_eq!(told.pages(), (false, 35, Some(200)), "A counts it, too");
            told.tell(A, 11, 1, 10);
        }
        assert_eq!(told.pages(), (true, 36, None));
    }
}

#[test]
fn when_a_move_follows_on_one_that_is_over_what_answered_in_between_goes_on_to() {
    let mut told = Told::new();
    told.claim(3, A, Some((A, false)), (A, 11), true);
    told.claim(3, B, Some((A, true)), (B, 21), false);
    told.tell(A, 11, 1, 10);
    told.tell(B, 21, 2, 26);
    told.tell(B, 21, 2, 90);
    assert_eq!(told.pages(), (true, 100, None));
    told.claim(2, B, Some((B, false)), (B, 22), true);
    assert_eq!(told.pages(), (false, 100, Some(0)), "not back to before the first move");
}

#[test]
fn when_a_move_follows_on_a_take_over_what_answered_in_between_goes_on_to() {
    const C: AccessPoint = AccessPoint([3; 32]);
    let mut told = Told::new();
    told.live.push(C);
    told.claim(6, C, None, (C, 30), false);
    told.tell(C, 30, 1, 7);
    // C dies, B takes over what it had, and tells it.
    told.live.pop();
    told.owners.remove(&C);
    told.claim(6, B, Some((C, false)), (B, 21), false);
    told.tell(B, 21, 2, 12);
    assert_eq!(told.pages(), (true, 42, None));
    told.tell(B, 21, 2, 90);
    assert_eq!(told.pages(), (true, 120, None));
    told.claim(2, B, Some((B, false)), (B, 22), true);
    assert_eq!(told.pages(), (false, 120, Some(0)), "not back to before the take-over");
}

#[test]
fn totals_grow_while_subnets_are_awarded_one_after_the_other() {
    let mut told = Told::new();
    told.claim(4, B, None, (B, 22), false);
    told.claim(5, B, None, (B, 23), false);
    told.tell(B, 22, 2, 9);
    assert_eq!(told.pages(), (false, 39, None), "what B held a moment ago nobody else had before");
    told.tell(B, !23, 2, 7);
    assert_eq!(told.pages(), (false, 39, Some(0)), "B says itself that it does not know all of it");
    told.after(5_000);
    told.tell(A, 10, 2, 33);
    assert_eq!(told.pages(), (false, 42, Some(5_000)), "A goes on");
    told.tell(B, 23, 2, 12);
    assert_eq!(told.pages(), (true, 45, None));
}

#[test]
fn what_a_member_no_longer_counts_is_not_counted_for_longer() {
    let mut told = Told::new();
    told.tell(A, 10, 1, 12);
    assert_eq!(told.pages(), (true, 17, None), "a run with fewer pages, or a host that is denied");
}

/// We were started a moment ago, and others hand subnets over of which our map says nothing new yet.
#[test]
fn before_a_member_told_what_fits_the_map_its_totals_grow_and_do_not_fall() {
    let mut told = Told { rolls: RollUps::default(), live: vec![A, B], owners: BTreeMap::new(), version: 0, now: Moment(1_000) };
    told.claim(1, A, None, (A, 10), false);
    let pages = |told: &Told| told.results().summary.total.pages;
    told.tell(A, 11, 1, 20);
    assert_eq!(pages(&told), 20, "it reads its journals");
    told.tell(A, 11, 2, 30);
    assert_eq!(pages(&told), 30);
    told.tell(A, 12, 1, 22);
    assert_eq!(pages(&told), 30, "a subnet went from it to somebody");
    told.tell(A, 10, 1, 23);
    assert_eq!(pages(&told), 23, "what fits our map is so");
    // Of one that never fits the newest are the truth after a while.
    told.tell(B, 21, 2, 40);
    told.tell(B, 22, 1, 5);
    assert_eq!(pages(&told), 23 + 40);
    told.now = told.now.after(KEPT + 1);
    assert_eq!(pages(&told), 23 + 5);
}

#[test]
fn before_they_fit_the_map_none_of_the_figures_that_only_a_run_may_lower_falls() {
    let counts =
        |requests: u64, bytes: u64, evaluated: u64| Counts { servers: 2, pages: 20, requests, bytes, evaluated, ..Counts::default() };
    for fewer in [counts(21, 900, 20), counts(22, 800, 20), counts(22, 900, 19)] {
        let mut told = Told { rolls: RollUps::default(), live: vec![A, B], owners: BTreeMap::new(), version: 0, now: Moment(1_000) };
        told.claim(1, A, None, (A, 10), false);
        told.tell_all(A, 11, counts(22, 900, 20));
        told.tell_all(A, 11, fewer);
        assert_eq!(told.results().summary.total, counts(22, 900, 20), "servers and pages are the same, {fewer:?}");
        told.tell_all(A, 10, fewer);
        assert_eq!(told.results().summary.total, fewer, "what fits our map is so");
    }
}

#[test]
fn after_ten_minutes_the_newest_totals_answer() {
    let mut told = Told::new();
    told.claim(3, A, Some((A, false)), (A, 11), true);
    told.tell(A, 99, 1, 10);
    told.after(KEPT);
    assert_eq!(told.pages().1, 35);
    assert!(told.results().freshness().starts_with("in transition: last consistent totals, as they were 10 min 0 s ago: "));
    told.after(1);
    assert_eq!((told.pages().1, told.pages().2), (15, None));
    told.rolls.retain(|_| true, told.now);
    told.tell(A, 98, 1, 11);
    told.tell(B, 97, 1, 6);
    assert_eq!(told.pages().1, 16, "those of B have not been others for long");
}

#[test]
fn of_a_member_that_is_gone_nothing_is_waited_for_once_others_have_what_it_had() {
    let mut told = Told::new();
    told.rolls.members_changed(vec![A, B], |_| true, told.now);
    told.rolls.members_changed(vec![B], |_| true, told.now);
    told.owners.remove(&A);
    told.claim(1, B, Some((A, false)), (B, 25), false);
    told.tell(B, !25, 1, 5);
    assert_eq!(told.pages().1, 35, "B reads what A had recorded");
    let alone = |told: &Told| told.rolls.results(B, &told.owners, &[B], told.now);
    assert_eq!(alone(&told).summary.total.pages, 35);
    told.tell(B, 25, 3, 34);
    let results = alone(&told);
    assert_eq!((results.exact, results.summary.total.pages), (true, 34));
    // It comes back with nothing, and has told no totals yet.
    told.rolls.members_changed(vec![A, B], |member| *member == B, told.now);
    assert_eq!(told.pages(), (false, 34, None), "what has answered is not taken back");
}
