//! Is nobody named that lacks something, and nobody dropped that others may still believe?

use super::*;
use crate::membership::{Member, Roster, Swim};
use std::collections::BTreeSet;

const LEASE: Millis = 30_000;

fn member(number: u8) -> AccessPoint {
    AccessPoint([20 + number; 32])
}

/// A member among so many others, which sees who of them is silent and whether it holds a lease.
struct Played {
    cx: Context,
    roster: Roster,
    placement: Placement,
    leased: bool,
    /// Replicas that lack what was stored when they were chosen.
    lacking: BTreeSet<AccessPoint>,
}

impl Played {
    fn among(others: u8) -> Played {
        let cx = Context::of_test(1);
        let mut roster = Roster::new(cx.me, cx.settings.roster.clone(), cx.now.moment, &BTreeSet::new());
        (0..others).for_each(|number| roster.up(cx.now.moment, member(number)));
        Played { cx, roster, placement: Placement::default(), leased: true, lacking: BTreeSet::new() }
    }

    /// Looks at the replicas after so long, once a second.
    fn pass(&mut self, millis: Millis) -> Vec<AccessPoint> {
        let mut chosen = Vec::new();
        for _ in 0..(millis / 1_000).max(1) {
            self.cx.now.moment = self.cx.now.moment.after(1_000);
            let swim = Swim::new(Member::new(self.cx.me, 1, Vec::new()), self.cx.settings.membership.clone(), 1);
            let members = if self.leased { Membership::with_lease } else { Membership::new }(swim, self.roster.clone());
            let changed = self.placement.review(&self.cx, &members, |replica| !self.lacking.contains(replica));
            for replica in &changed.chosen {
                self.placement.uses(replica, StoreId(7));
            }
            chosen.extend(changed.chosen);
        }
        chosen
    }

    fn counting(&self) -> BTreeSet<AccessPoint> {
        self.placement.counting().into_iter().flatten().collect()
    }

    /// Who is told to others, but for ourselves.
    fn named(&self) -> BTreeSet<AccessPoint> {
        self.placement.names(&self.cx).into_iter().skip(1).map(|name| name.member).collect()
    }
}

#[test]
fn nobody_is_chosen_without_a_lease() {
    let mut played = Played::among(6);
    let replicas: BTreeSet<_> = played.pass(1_000).into_iter().collect();
    played.leased = false;
    for replica in &replicas {
        played.roster.down(played.cx.now.moment, *replica);
    }
    assert_eq!(played.pass(5 * LEASE), [], "on the smaller side of a cut nothing is copied that an heir cannot find");
    played.leased = true;
    assert_eq!(played.pass(1_000).len(), 2);
}

#[test]
fn two_are_chosen_and_stay_whoever_joins() {
    let mut played = Played::among(3);
    let chosen: BTreeSet<_> = played.pass(1_000).into_iter().collect();
    assert_eq!(chosen.len(), 2);
    played.pass(1_000);
    assert_eq!((played.counting(), played.named()), (chosen.clone(), chosen.clone()));
    (3..30).for_each(|number| played.roster.up(played.cx.now.moment, member(number)));
    assert_eq!(played.pass(100_000), []);
    assert_eq!(played.named(), chosen);
}

#[test]
fn a_replica_counts_when_it_is_whole_and_nothing_is_recorded_before() {
    let mut played = Played::among(2);
    played.lacking = [member(0), member(1)].into();
    played.pass(10_000);
    assert!(played.placement.counting().is_some_and(|mut counting| counting.next().is_none()), "nobody counts yet");
    assert_eq!(played.placement.names(&played.cx), []);
    played.lacking.remove(&member(1));
    played.pass(1_000);
    assert_eq!((played.counting(), played.named()), ([member(1)].into(), [member(1)].into()));
}

#[test]
fn alone_nobody_is_waited_for() {
    let mut played = Played::among(0);
    played.pass(1_000);
    assert!(played.placement.counting().is_none());
    assert_eq!(played.placement.names(&played.cx).len(), 1, "we have it");
}

#[test]
fn a_silent_replica_is_replaced_but_counts_until_all_have_heard_of_it() {
    let mut played = Played::among(4);
    let chosen = played.pass(2_000);
    let (gone, stays) = (chosen[0], chosen[1]);
    played.roster.down(played.cx.now.moment, gone);
    assert_eq!(played.pass(LEASE), [], "it may be back soon");
    let next = played.pass(2_000);
    played.pass(1_000);
    assert_eq!(next.len(), 1);
    assert_eq!(played.named(), [stays, next[0]].into());
    assert_eq!(played.counting(), [gone, stays, next[0]].into(), "some may not have heard of it");
    played.pass(LEASE);
    assert_eq!(played.counting(), [stays, next[0]].into());
}

#[test]
fn an_owner_without_a_lease_drops_nobody() {
    let mut played = Played::among(2);
    played.pass(2_000);
    for number in [0, 1] {
        played.roster.down(played.cx.now.moment, member(number));
    }
    played.leased = false;
    played.pass(20 * LEASE);
    assert_eq!(played.counting().len(), 2, "they may be with most others");
    played.leased = true;
    played.pass(2 * LEASE - 2_000);
    assert_eq!(played.counting().len(), 2, "it has its lease for a moment only");
    played.pass(4_000);
    assert!(played.placement.counting().is_none());
}

#[test]
fn one_that_comes_back_makes_another_one_too_many_which_goes_later() {
    let mut played = Played::among(3);
    let chosen = played.pass(2_000);
    played.roster.down(played.cx.now.moment, chosen[1]);
    let next = played.pass(LEASE + 2_000);
    played.roster.up(played.cx.now.moment, chosen[1]);
    played.pass(2_000);
    assert_eq!(played.named(), chosen.iter().copied().collect(), "those that were there first");
    assert_eq!(played.counting().len(), 3);
    played.pass(LEASE + 1_000);
    assert_eq!(played.counting(), chosen.iter().copied().collect(), "not {next:?}");
}

#[test]
fn one_that_lost_its_disk_has_nothing() {
    let mut played = Played::among(2);
    played.pass(2_000);
    assert!(!played.placement.uses(&member(0), StoreId(7)), "it is the same");
    played.lacking.insert(member(0));
    assert!(played.placement.uses(&member(0), StoreId(8)));
    played.pass(5_000);
    assert_eq!((played.counting(), played.named()), ([member(1)].into(), [member(1)].into()));
    played.lacking.clear();
    played.pass(1_000);
    let stores: Vec<_> = played.placement.names(&played.cx).into_iter().map(|name| name.store.0).collect();
    assert_eq!(stores[1..].iter().collect::<BTreeSet<_>>(), [&7, &8].into());
}

#[test]
fn one_that_stores_nothing_is_replaced_and_then_dropped() {
    let mut played = Played::among(3);
    let chosen = played.pass(2_000);
    assert!(played.placement.is_full(played.cx.now.moment, chosen[0]));
    assert!(!played.placement.is_full(played.cx.now.moment, chosen[0]), "that is known");
    let next = played.pass(1_000);
    assert_eq!(next.len(), 1, "at once");
    played.pass(2 * LEASE + 1_000);
    assert_eq!(played.counting(), [chosen[1], next[0]].into());
}
