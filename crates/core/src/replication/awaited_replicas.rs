//! The members that have all that was recorded of a subnet that became ours, and for how long it waits for one of them.
//!
//! As long as a member is away that has what nobody else has, its pages would be asked for again. But members that come, take subnets over
//! and vanish must not hold up those that stay: those who were here for a minute are waited for a minute. A set is waited for as long as
//! the one of its members deserves that was here longest: each of them has all, and an owner that is new, or was away for a while and is
//! back, has replicas that were here all the time.

use nearcrawl_model::{
    access_point::AccessPoint,
    replica::{NamedReplica, StoreId},
    time::{Millis, Moment},
    vote::{InheritedReplicas, ReplicaSet},
};
use std::collections::{BTreeMap, BTreeSet};

/// A subnet whose journals are at one that was here for long begins with what was found after so long: a day.
const MAX_WAIT: Millis = 86_400_000;

/// One of those that were hardly here, after so long: what happened to them may be over by then.
const SHORTEST_WAIT: Millis = 60_000;

/// One that was here for less than this part of the time for which we had been running when it was heard last is waited for as long as it
/// was here.
const SHARE: u64 = 2;

/// If we have been running for less than this, one of which nothing was heard died before our time, however long it was here.
const OUR_TIME: Millis = 600_000;

/// A member that is alive and does not answer for so long is not waited for: it could else keep subnets without rows from beginning.
const MAX_MUTE: Millis = 60_000;

/// For how long a member was here, as far as we know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lived {
    /// For so long it told its totals.
    pub(crate) told: Millis,
    /// For so long we had been running when it told them last: what it would have told if it had been here all the time.
    pub(crate) of: Millis,
}

/// For how long a member is waited for that lived so long, if it told its totals, while we have been running for `running`.
fn patience(lived: Option<Lived>, running: Millis) -> Millis {
    match lived {
        None if running < OUR_TIME => MAX_WAIT,
        None => SHORTEST_WAIT,
        Some(lived) if lived.told.saturating_mul(SHARE) < lived.of => lived.told.clamp(SHORTEST_WAIT, MAX_WAIT),
        Some(_) => MAX_WAIT,
    }
}

/// The replicas of an owner that we take over from, as a successor of ours would have to hear of them: its own, and those that it
/// inherited. `lived` is for how long a member told its totals, if it did.
fn handed_on(set: ReplicaSet, lived: impl Fn(&AccessPoint) -> Option<Lived>, running: Millis) -> Vec<InheritedReplicas> {
    let seconds = |lived| (patience(lived, running) / 1_000) as u32;
    let longest = |members: &[NamedReplica]| members.iter().map(|replica| seconds(lived(&replica.member))).max();
    let mut sets = set.inherited;
    for set in &mut sets {
        // Of those that died before our time others knew for how long they had been here.
        let is_known = set.members.iter().any(|replica| lived(&replica.member).is_some());
        set.patience_s = longest(&set.members).filter(|_| is_known).map_or(set.patience_s, |longest| set.patience_s.min(longest));
    }
    let patience_s = longest(&set.members).unwrap_or(0);
    sets.push(InheritedReplicas { members: set.members, patience_s });
    sets.retain(|set| !set.members.is_empty());
    sets
}

/// What we take over with a claim: the sets of replicas as a successor of ours would have to hear of them, and who is waited for here. `before`
/// is the last set of each owner before, `own` our database, `running` for how long we have been running; `lived` is as in [`handed_on`].
pub(crate) fn taken_over(
    before: impl IntoIterator<Item = ReplicaSet>,
    own: NamedReplica,
    lived: impl Fn(&AccessPoint) -> Option<Lived>,
    running: Millis,
) -> (Vec<InheritedReplicas>, AwaitedReplicas) {
    // What we recorded in a database that is lost does not come back.
    let lived = |member: &AccessPoint| if *member == own.member { Some(Lived { told: 0, of: running }) } else { lived(member) };
    let (mut sets, mut is_here) = (Vec::new(), false);
    for mut set in before {
        // What we recorded ourselves is here, if our disk was not lost.
        if set.owner == own.member && set.members.contains(&own) {
            set.members.clear();
            is_here = true;
        }
        sets.extend(handed_on(set, lived, running));
    }
    let awaited = AwaitedReplicas::new(sets.clone());
    (sets, if is_here { awaited.and_of(own) } else { awaited })
}

/// Whether one that was named and has not answered may answer yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chance {
    /// It is silent, and in less than a minute it is back or dead; or nobody has looked yet.
    Soon,
    /// It is alive, and should have answered.
    Alive,
    /// It has not been dead for long.
    Perhaps,
    /// It is no member any more, or does not answer although it is alive.
    Never,
}

/// The former owners of a subnet and their replicas, as voters told. One of each set is waited for; without any of them the subnet waits
/// for nobody.
#[derive(Clone, Debug, Default)]
pub(crate) struct AwaitedReplicas {
    sets: Vec<InheritedReplicas>,
    /// Whether the voters have not told yet who they are.
    unknown: bool,
    /// The members of all sets, also of those of which one has answered or that are given up.
    named: BTreeSet<Vec<NamedReplica>>,
    /// Those that have answered since these sets were put together.
    answered: BTreeSet<NamedReplica>,
    /// For how long the set that deserves most is waited for, in seconds.
    longest_s: u32,
    /// Whether those that have not answered may yet, as of the last look, and since when it is so.
    chances: BTreeMap<AccessPoint, (Chance, Moment)>,
    looked_at: Moment,
}

impl AwaitedReplicas {
    /// One of each of these sets is waited for.
    pub(crate) fn new(mut sets: Vec<InheritedReplicas>) -> AwaitedReplicas {
        sets.retain(|set| !set.members.is_empty());
        let named = sets.iter().map(|set| set.members.clone()).collect();
        let longest_s = sets.iter().map(|set| set.patience_s).max().unwrap_or(0);
        AwaitedReplicas { sets, named, longest_s, ..AwaitedReplicas::default() }
    }

    /// This one has all that was recorded by one of the owners as well, and need not be waited for.
    pub(crate) fn and_of(mut self, here: NamedReplica) -> AwaitedReplicas {
        self.named.insert(vec![here]);
        self
    }

    /// It is waited for what the voters tell.
    pub(crate) fn unknown() -> AwaitedReplicas {
        AwaitedReplicas { unknown: true, ..AwaitedReplicas::default() }
    }

    /// Voters told, if that is what it was waited for.
    pub(super) fn learn(&mut self, sets: &[InheritedReplicas]) {
        if std::mem::take(&mut self.unknown) {
            self.join(AwaitedReplicas::new(sets.to_vec()));
        }
    }

    /// Whether the voters have not told yet who they are.
    pub(super) fn is_unknown(&self) -> bool {
        self.unknown
    }

    /// One of each of these as well.
    pub(super) fn join(&mut self, other: AwaitedReplicas) {
        self.unknown |= other.unknown;
        self.sets.extend(other.sets);
        self.named.extend(other.named);
        self.longest_s = self.longest_s.max(other.longest_s);
    }

    /// For how long the set that deserves most is waited for.
    pub(super) fn longest(&self) -> Millis {
        Millis::from(self.longest_s) * 1_000
    }

    /// Those that were named and have not answered.
    pub(super) fn unheard(&self) -> impl Iterator<Item = AccessPoint> {
        let unheard: BTreeSet<_> = self.named.iter().flatten().filter(|replica| !self.answered.contains(replica)).collect();
        unheard.into_iter().map(|replica| replica.member)
    }

    /// Looks whether those that have not answered may yet.
    pub(super) fn look(&mut self, now: Moment, chance: impl Fn(&AccessPoint) -> Chance) {
        let since = |member: &AccessPoint, chance: Chance| {
            let known = self.chances.get(member).filter(|(known, _)| *known == chance);
            known.map_or(now, |(_, since)| *since)
        };
        let looked: BTreeMap<_, _> = self.unheard().map(|member| (member, chance(&member))).collect();
        self.chances = looked.into_iter().map(|(member, chance)| (member, (chance, since(&member, chance)))).collect();
        self.looked_at = now;
    }

    /// Whether this one, which has not answered, may yet.
    pub(super) fn chance_of(&self, member: &AccessPoint) -> Chance {
        match self.chances.get(member) {
            None => Chance::Soon,
            Some((Chance::Alive, since)) if self.looked_at.since(*since) >= MAX_MUTE => Chance::Never,
            Some((chance, _)) => *chance,
        }
    }

    /// Whether nobody is waited for.
    pub(super) fn is_empty(&self) -> bool {
        self.sets.is_empty() && !self.unknown
    }

    /// Nobody is waited for any more.
    pub(super) fn clear(&mut self) {
        self.sets.clear();
        self.unknown = false;
    }

    /// This member answered, from this database.
    pub(super) fn heard(&mut self, member: AccessPoint, store: StoreId) {
        let replica = NamedReplica { member, store };
        self.sets.retain(|set| !set.members.contains(&replica));
        self.answered.insert(replica);
    }

    /// Whether one of each set has answered: all that was recorded is among what they and those like them sent.
    pub(super) fn all_answered(&self) -> bool {
        !self.named.is_empty() && self.named.iter().all(|set| set.iter().any(|replica| self.answered.contains(replica)))
    }

    /// The sets, each parted into those that have answered and the others.
    pub(super) fn parted(&self) -> impl Iterator<Item = (Vec<AccessPoint>, Vec<AccessPoint>)> {
        let member = |replica: &NamedReplica| (self.answered.contains(replica), replica.member);
        self.named.iter().map(move |set| {
            let (answered, others): (Vec<_>, Vec<_>) = set.iter().map(member).partition(|(answered, _)| *answered);
            let members = |of: Vec<(bool, AccessPoint)>| of.into_iter().map(|(_, member)| member).collect();
            (members(answered), members(others))
        })
    }

    /// Whether this member has all that was recorded by one of the owners, in this database, as that one said.
    pub(super) fn has_named(&self, member: AccessPoint, store: StoreId) -> bool {
        self.named.iter().any(|set| set.contains(&NamedReplica { member, store }))
    }

    /// Of the first set that nobody has answered of who they are.
    pub(super) fn members(&self) -> impl Iterator<Item = AccessPoint> {
        self.sets.first().into_iter().flat_map(|set| set.members.iter().map(|replica| replica.member))
    }

    /// These will not come back.
    pub(super) fn declare_lost(&mut self, lost: &[AccessPoint]) {
        self.sets.iter_mut().for_each(|set| set.members.retain(|replica| !lost.contains(&replica.member)));
        self.sets.retain(|set| !set.members.is_empty());
    }

    /// They have been waited for, for so long: those are given up for whom that is long enough.
    pub(super) fn have_waited(&mut self, waited: Millis) {
        self.sets.retain(|set| waited < Millis::from(set.patience_s) * 1_000);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::vote::SetNumber;

    const MINUTE: Millis = 60_000;

    fn waits(told: Millis, of: Millis) -> Millis {
        patience(Some(Lived { told, of }), 1_000 * MINUTE)
    }

    #[test]
    fn who_was_here_for_a_minute_is_waited_for_a_minute_and_who_was_here_as_long_as_we_for_a_day() {
        assert_eq!(waits(MINUTE, 10 * MINUTE), MINUTE);
        assert_eq!(waits(0, 10 * MINUTE), SHORTEST_WAIT);
        assert_eq!(waits(30 * MINUTE, 1_000 * MINUTE), 30 * MINUTE);
        assert_eq!(waits(9 * MINUTE, 10 * MINUTE), MAX_WAIT, "a swarm that began with it");
        assert_eq!(waits(50 * MAX_WAIT, 300 * MAX_WAIT), MAX_WAIT);
        assert_eq!(patience(None, MINUTE), MAX_WAIT, "it died before our time");
        assert_eq!(patience(None, 100 * MINUTE), SHORTEST_WAIT);
    }

    #[test]
    fn a_set_is_waited_for_as_long_as_the_one_of_its_members_deserves_that_was_here_longest() {
        let named = |number: u8| NamedReplica { member: AccessPoint([number; 32]), store: StoreId(1) };
        let owner = named(1).member;
        let set = |members: &[u8], inherited: &[u8]| ReplicaSet {
            owner,
            number: SetNumber::default(),
            members: members.iter().copied().map(named).collect(),
            inherited: vec![InheritedReplicas { members: inherited.iter().copied().map(named).collect(), patience_s: 86_400 }],
        };
        // Members 1 to 3 have been here for two minutes of an hour, the others all the time; nobody has heard of member 9.
        let lived = |who: &AccessPoint| match who.0[0] {
            9 => None,
            new if new < 4 => Some(Lived { told: 2 * MINUTE, of: 60 * MINUTE }),
            _ => Some(Lived { told: 58 * MINUTE, of: 58 * MINUTE }),
        };
        let patience =
            |members, inherited| handed_on(set(members, inherited), lived, 60 * MINUTE).into_iter().map(|set| set.patience_s).collect();
        let cases: [Vec<u32>; 4] =
            [patience(&[1, 2, 3], &[2, 3]), patience(&[1, 2, 4], &[2, 5]), patience(&[9, 1], &[9]), patience(&[], &[2])];
        assert_eq!(cases, [vec![120, 120], vec![86_400, 86_400], vec![86_400, 120], vec![120]]);
    }

    #[test]
    fn what_we_recorded_ourselves_is_waited_for_only_if_our_database_was_lost() {
        let named = |number: u8, store: u64| NamedReplica { member: AccessPoint([number; 32]), store: StoreId(store) };
        let (own, other) = (named(1, 1), named(2, 7));
        let set = |owner: NamedReplica, members: &[NamedReplica]| ReplicaSet {
            owner: owner.member,
            number: SetNumber::default(),
            members: members.to_vec(),
            inherited: Vec::new(),
        };
        let running = 60 * MINUTE;
        let whole = |_: &AccessPoint| Some(Lived { told: running, of: running });
        let (sets, awaited) = taken_over([set(own, &[own, other])], own, whole, running);
        assert!(sets.is_empty() && awaited.is_empty() && awaited.has_named(own.member, own.store), "it is here");
        let lost = named(1, 2);
        let (sets, mut awaited) = taken_over([set(lost, &[lost]), set(other, &[other, own])], own, whole, running);
        assert_eq!(sets.iter().map(|set| set.patience_s).collect::<Vec<_>>(), [60, 86_400], "a lost database does not come back");
        awaited.have_waited(MINUTE);
        assert_eq!(awaited.members().collect::<Vec<_>>(), [other.member, own.member]);
    }

    #[test]
    fn one_of_each_set_is_waited_for_and_for_each_as_long_as_it_says() {
        let set = |number: u8, patience_s| {
            let members = vec![NamedReplica { member: AccessPoint([number; 32]), store: StoreId(1) }];
            InheritedReplicas { members, patience_s }
        };
        let mut awaited = AwaitedReplicas::new(vec![set(1, 60), set(2, 600), set(3, 86_400)]);
        awaited.heard(AccessPoint([3; 32]), StoreId(2));
        awaited.have_waited(59_999);
        assert_eq!(awaited.sets.len(), 3);
        awaited.heard(AccessPoint([3; 32]), StoreId(1));
        awaited.have_waited(60_000);
        assert_eq!(awaited.members().collect::<Vec<_>>(), [AccessPoint([2; 32])]);
        awaited.have_waited(600_000);
        assert!(awaited.is_empty());
    }
}
