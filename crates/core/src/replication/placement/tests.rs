//! Tests that no member is named that lacks something, and none dropped of whom voters may still tell.

use super::*;
use crate::membership::{Member, Roster, Swim};

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
    /// Whether the voters answer: then only the last set is in force.
    voters_answer: bool,
    sets: Vec<Vec<NamedReplica>>,
    /// Replicas that lack what was stored when they were chosen, and those that lack what is recorded.
    lacking: BTreeSet<AccessPoint>,
    behind: BTreeSet<AccessPoint>,
    /// Those of whom others say that they have been here for long.
    vouched: BTreeSet<AccessPoint>,
    /// Those that have said that they leave.
    leaving: BTreeSet<AccessPoint>,
}

impl Played {
    fn among(others: u8) -> Played {
        let cx = Context::of_test(1);
        let mut roster = Roster::new(cx.me, cx.settings.roster.clone(), cx.now.moment, &BTreeSet::new());
        (0..others).for_each(|number| roster.up(cx.now.moment, member(number)));
        let (placement, sets, lacking, behind, vouched, leaving) = Default::default();
        Played { cx, roster, placement, leased: true, voters_answer: true, sets, lacking, behind, vouched, leaving }
    }

    /// Looks at the replicas after so long, once a second.
    fn pass(&mut self, millis: Millis) -> Vec<AccessPoint> {
        let mut chosen = Vec::new();
        for _ in 0..(millis / 1_000).max(1) {
            self.cx.now.moment = self.cx.now.moment.after(1_000);
            let swim = Swim::new(Member::new(self.cx.me, 1, Vec::new()), self.cx.settings.membership.clone(), 1);
            let members = if self.leased { Membership::with_lease } else { Membership::new }(swim, self.roster.clone());
            let (lacking, behind) = (&self.lacking, &self.behind);
            let (whole, recorded) = (|replica: &_| !lacking.contains(replica), |replica: &_| !behind.contains(replica));
            let others = Reputation {
                vouched: |member: &AccessPoint| self.vouched.contains(member),
                leaves: |member: &AccessPoint| self.leaving.contains(member),
            };
            let changed = self.placement.review(&self.cx, &members, others, whole, recorded);
            for replica in &changed.chosen {
                self.placement.uses(replica, StoreId(7));
            }
            self.tell_voters();
            chosen.extend(changed.chosen);
        }
        chosen
    }

    fn tell_voters(&mut self) {
        if self.leased {
            self.sets.push(self.placement.names().to_vec());
        }
        if self.voters_answer && self.leased {
            self.sets.drain(..self.sets.len() - 1);
        }
        let told: BTreeSet<_> = self.sets.iter().flatten().copied().collect();
        let told = (self.leased && !told.is_empty()).then(|| told.into_iter().collect());
        self.placement.told(told);
    }

    fn needed(&self) -> Option<BTreeSet<AccessPoint>> {
        self.placement.needed(self.cx.me)
    }

    /// Who is told to the voters, but for ourselves.
    fn named(&self) -> BTreeSet<AccessPoint> {
        self.placement.named().into_iter().flatten().collect()
    }
}

#[test]
fn nobody_is_chosen_and_nobody_given_up_without_a_lease() {
    let mut played = Played::among(6);
    let replicas: BTreeSet<_> = played.pass(2_000).into_iter().collect();
    played.leased = false;
    for replica in &replicas {
        played.roster.down(played.cx.now.moment, *replica);
    }
    assert_eq!(played.pass(5 * LEASE), [], "on the smaller side of a cut nothing is copied that a successor cannot find");
    assert_eq!((played.needed(), played.named()), (None, replicas.clone()));
    played.leased = true;
    assert_eq!(played.pass(LEASE - 1_000), [], "it may be us whom nobody heard");
    assert_eq!(played.needed(), Some(replicas));
    assert_eq!(played.pass(3_000).len(), 2);
}

#[test]
fn two_are_chosen_and_stay_whoever_joins() {
    let mut played = Played::among(3);
    let chosen: BTreeSet<_> = played.pass(1_000).into_iter().collect();
    assert_eq!(chosen.len(), 2);
    played.pass(1_000);
    assert_eq!((played.needed(), played.named()), (Some(chosen.clone()), chosen.clone()));
    (3..30).for_each(|number| played.roster.up(played.cx.now.moment, member(number)));
    assert_eq!(played.pass(100_000), []);
    assert_eq!(played.named(), chosen);
}

#[test]
fn replicas_that_say_that_they_leave_are_replaced_before_they_are_gone() {
    let mut played = Played::among(4);
    let before: BTreeSet<_> = played.pass(700_000).into_iter().collect();
    let others: BTreeSet<_> = (0..4).map(member).filter(|member| !before.contains(member)).collect();
    played.leaving = before.clone();
    played.lacking = others.clone();
    assert_eq!(played.pass(1_000).into_iter().collect::<BTreeSet<_>>(), others);
    assert_eq!(played.named(), before, "nobody else has what is recorded yet");
    played.lacking.clear();
    played.pass(1_000);
    assert!(!played.placement.is_to_be_told());
    assert_eq!((played.needed(), played.named()), (Some(others.clone()), others));

    // If all but one leave, that one has copies, too, and one that leaves as long as it is here.
    let mut played = Played::among(4);
    played.pass(700_000);
    played.leaving = (0..3).map(member).collect();
    played.pass(2_000);
    assert!(played.named().contains(&member(3)) && played.named().len() == 2, "{:?}", played.named());
}

#[test]
fn a_replica_is_needed_when_it_is_whole_and_named_when_it_has_all_that_is_recorded() {
    let mut played = Played::among(2);
    played.lacking = [member(0), member(1)].into();
    played.pass(10_000);
    assert_eq!((played.needed(), played.named()), (None, [].into()), "nothing is recorded yet");
    played.lacking.remove(&member(1));
    played.pass(1_000);
    assert_eq!((played.needed(), played.named()), (Some([member(1)].into()), [member(1)].into()));
    played.behind = [member(0)].into();
    played.lacking.clear();
    played.pass(5_000);
    assert_eq!((played.needed(), played.named()), (Some([member(0), member(1)].into()), [member(1)].into()));
    played.behind.clear();
    played.pass(1_000);
    assert_eq!(played.named(), [member(0), member(1)].into());
}

#[test]
fn alone_nobody_is_waited_for_and_from_when_others_are_there_one_of_them() {
    let mut played = Played::among(0);
    played.pass(1_000);
    assert_eq!(played.needed(), Some([].into()));
    assert_eq!(played.placement.names().len(), 1, "we have it");
    played.roster.up(played.cx.now.moment, member(0));
    played.lacking = [member(0)].into();
    played.pass(5_000);
    assert_eq!(played.needed(), None, "it could have it, and has not yet");
    played.lacking.clear();
    played.pass(2_000);
    assert_eq!(played.needed(), Some([member(0)].into()));
}

#[test]
fn a_silent_replica_is_replaced_but_needed_until_the_voters_know_it() {
    let mut played = Played::among(4);
    let chosen = played.pass(2_000);
    let (gone, stays) = (chosen[0], chosen[1]);
    played.roster.down(played.cx.now.moment, gone);
    assert_eq!(played.pass(LEASE), [], "it may be back soon");
    played.voters_answer = false;
    let next = played.pass(2_000);
    played.pass(1_000);
    assert_eq!(next.len(), 1);
    assert_eq!(played.named(), [stays, next[0]].into());
    played.pass(20 * LEASE);
    assert_eq!(played.needed(), Some([gone, stays, next[0]].into()), "one of them may tell the set before");
    played.voters_answer = true;
    played.pass(1_000);
    assert_eq!(played.needed(), Some([stays, next[0]].into()));
}

#[test]
fn one_that_comes_back_before_the_voters_know_that_it_was_gone_keeps_its_place() {
    let mut played = Played::among(3);
    let chosen: BTreeSet<_> = played.pass(2_000).into_iter().collect();
    played.voters_answer = false;
    let silent = *chosen.last().unwrap();
    played.roster.down(played.cx.now.moment, silent);
    played.lacking = (0..3).map(member).collect();
    let next = played.pass(LEASE + 2_000);
    assert_eq!(next.len(), 1);
    played.roster.up(played.cx.now.moment, silent);
    played.pass(2_000);
    assert_eq!(played.named(), chosen);
    assert_eq!(played.placement.all().collect::<BTreeSet<_>>(), chosen, "not {next:?}");
}

#[test]
fn one_that_lost_its_disk_has_nothing() {
    let mut played = Played::among(2);
    played.pass(2_000);
    assert!(!played.placement.uses(&member(0), StoreId(7)), "it is the same");
    played.lacking.insert(member(0));
    assert!(played.placement.uses(&member(0), StoreId(8)));
    assert_eq!(played.needed(), Some([member(1)].into()), "nobody takes it for one that has all");
    played.pass(5_000);
    assert_eq!((played.needed(), played.named()), (Some([member(1)].into()), [member(1)].into()));
    played.lacking.clear();
    played.pass(1_000);
    let stores: BTreeSet<_> = played.placement.names()[1..].iter().map(|name| name.store.0).collect();
    assert_eq!(stores, [7, 8].into());
}

#[test]
fn one_that_stores_nothing_is_replaced_at_once() {
    let mut played = Played::among(3);
    let chosen = played.pass(2_000);
    assert!(played.placement.is_full(played.cx.now.moment, chosen[0]));
    assert!(!played.placement.is_full(played.cx.now.moment, chosen[0]), "that is known");
    let next = played.pass(1_000);
    assert_eq!(next.len(), 1);
    played.pass(2_000);
    assert_eq!(played.needed(), Some([chosen[1], next[0]].into()));
}

#[test]
fn one_that_left_is_replaced_at_once_and_needed_until_the_voters_know_it() {
    let mut played = Played::among(3);
    let chosen = played.pass(2_000);
    played.voters_answer = false;
    played.placement.left(played.cx.now.moment, &chosen[0]);
    played.roster.farewell(played.cx.now.moment, chosen[0], true);
    let next = played.pass(1_000);
    played.pass(1_000);
    assert_eq!(played.needed(), Some([chosen[0], chosen[1], next[0]].into()), "it may come back with what it had");
    played.voters_answer = true;
    played.pass(1_000);
    assert_eq!(played.needed(), Some([chosen[1], next[0]].into()));
}

#[test]
fn guests_keep_copies_only_as_long_as_there_are_too_few_others() {
    let mut played = Played::among(3);
    // We are new ourselves: who has been here for long we know of the voters only.
    played.vouched = [member(0)].into();
    let first: BTreeSet<_> = played.pass(2_000).into_iter().collect();
    assert!(first.len() == 2 && first.contains(&member(0)), "{first:?}");
    let guest = *first.iter().find(|member| !played.vouched.contains(member)).unwrap();
    // Another one that was here for long is back.
    played.vouched.insert(member(9));
    played.roster.up(played.cx.now.moment, member(9));
    assert_eq!(played.pass(2_000), [member(9)]);
    played.pass(2_000);
    assert_eq!(played.named(), [member(0), member(9)].into());
    assert!(!played.placement.contains(&guest));
    // Guests come: nobody is chosen but in place of one who is gone, and then a guest only if there is nobody else.
    (20..30).for_each(|number| played.roster.up(played.cx.now.moment, member(number)));
    assert_eq!(played.pass(60_000), []);
    played.roster.down(played.cx.now.moment, member(9));
    let chosen = played.pass(LEASE + 3_000);
    assert!(chosen.len() == 1 && !played.vouched.contains(&chosen[0]));
    // After ten minutes it is no guest any more, whoever comes.
    played.pass(GUEST);
    played.vouched.insert(member(40));
    played.roster.up(played.cx.now.moment, member(40));
    assert_eq!(played.pass(60_000), []);
}

#[test]
fn what_a_newcomer_records_is_at_two_that_are_none() {
    let mut played = Played::among(6);
    played.vouched = [member(0), member(1), member(2)].into();
    played.lacking = played.vouched.clone();
    let chosen = played.pass(2_000);
    played.lacking.remove(&chosen[0]);
    played.pass(10_000);
    assert_eq!((played.named(), played.needed()), ([].into(), None), "if we vanish, and the one that has it dies, nobody has it");
    played.lacking.remove(&chosen[1]);
    played.pass(2_000);
    assert_eq!(played.named(), [chosen[0], chosen[1]].into());
    // One that is there alone must do.
    let mut played = Played::among(6);
    played.vouched = [member(0)].into();
    played.lacking = (1..6).map(member).collect();
    played.pass(3_000);
    assert_eq!(played.named(), [member(0)].into());
}

#[test]
fn what_is_copied_to_a_newcomer_alone_is_not_recorded_as_long_as_there_are_others() {
    let mut played = Played::among(1);
    played.cx.now.moment = Moment(2 * GUEST);
    let newcomers: Vec<_> = (1..4).map(member).collect();
    newcomers.iter().for_each(|newcomer| played.roster.up(played.cx.now.moment, *newcomer));
    played.lacking = [member(0)].into();
    played.pass(60_000);
    assert_eq!(played.named(), [].into(), "one that has been here as long as we has no copy yet");
    played.lacking.clear();
    played.pass(2_000);
    assert!(played.named().contains(&member(0)));
    // It is gone.
    played.roster.down(played.cx.now.moment, member(0));
    played.pass(2 * LEASE);
    assert!(!played.named().contains(&member(0)) && played.named().len() == 2, "there are newcomers only");
}
