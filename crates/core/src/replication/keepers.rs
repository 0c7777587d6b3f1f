//! Which members have all that was recorded of a subnet that became ours, and for how long does it wait for one of them?
//!
//! As long as a member is away that has what nobody else has, its pages would be asked for again. But members that come, take subnets over
//! and vanish must not hold up those that stay: who was here for a minute is waited for a minute.

use nearcrawl_model::{
    access_point::AccessPoint,
    replica::{NamedReplica, StoreId},
    time::Millis,
    vote::{InheritedKeepers, KeeperSet},
};

/// A subnet of an owner that was here for long begins with what was found after so long: a day.
const LONGEST_WAIT: Millis = 86_400_000;

/// One of an owner that was hardly here, after so long: what happened to it may be over by then.
const SHORTEST_WAIT: Millis = 60_000;

/// An owner that was here for less than this part of the time for which we have been running is waited for as long as it was here.
const SHARE: u64 = 2;

/// If we have been running for less than this, an owner of which nothing was heard died before our time, however long it was here.
const OUR_TIME: Millis = 600_000;

/// For how long an owner's keepers are waited for that told its totals for `lived`, if it did, while we have been running for `running`.
fn patience(lived: Option<Millis>, running: Millis) -> Millis {
    match lived {
        None if running < OUR_TIME => LONGEST_WAIT,
        None => SHORTEST_WAIT,
        Some(lived) if lived.saturating_mul(SHARE) < running => lived.clamp(SHORTEST_WAIT, LONGEST_WAIT),
        Some(_) => LONGEST_WAIT,
    }
}

/// The keepers of an owner that we take over from, as an heir of ours would have to hear of them: its own, and those that it inherited.
/// `lived` is for how long an owner told its totals, if it did; of a set that was inherited the owner is the first.
pub(crate) fn handed_on(set: KeeperSet, lived: impl Fn(&AccessPoint) -> Option<Millis>, running: Millis) -> Vec<InheritedKeepers> {
    let seconds = |lived| (patience(lived, running) / 1_000) as u32;
    let mut sets = set.inherited;
    for set in &mut sets {
        let known = set.members.first().and_then(|owner| lived(&owner.member));
        set.patience_s = known.map_or(set.patience_s, |lived| set.patience_s.min(seconds(Some(lived))));
    }
    sets.push(InheritedKeepers { members: set.members, patience_s: seconds(lived(&set.owner)) });
    sets.retain(|set| !set.members.is_empty());
    sets
}

/// The former owners of a subnet and their replicas, as voters told. One of each set is waited for; without any of them the subnet waits for
/// nobody.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keepers {
    sets: Vec<InheritedKeepers>,
    /// Whether the voters have not told yet who they are.
    unknown: bool,
}

impl Keepers {
    /// One of each of these sets is waited for.
    pub(crate) fn new(mut sets: Vec<InheritedKeepers>) -> Keepers {
        sets.retain(|set| !set.members.is_empty());
        Keepers { sets, unknown: false }
    }

    /// It is waited for what the voters tell.
    pub(crate) fn unknown() -> Keepers {
        Keepers { sets: Vec::new(), unknown: true }
    }

    /// Voters told, if that is what it was waited for.
    pub(super) fn learn(&mut self, sets: &[InheritedKeepers]) {
        if std::mem::take(&mut self.unknown) {
            self.join(Keepers::new(sets.to_vec()));
        }
    }

    /// Whether the voters have not told yet who they are.
    pub(super) fn is_unknown(&self) -> bool {
        self.unknown
    }

    /// One of each of these as well.
    pub(super) fn join(&mut self, other: Keepers) {
        self.unknown |= other.unknown;
        self.sets.extend(other.sets);
    }

    /// Whether nobody is waited for.
    pub(super) fn is_empty(&self) -> bool {
        self.sets.is_empty() && !self.unknown
    }

    /// Nobody is waited for any more.
    pub(super) fn clear(&mut self) {
        *self = Keepers::default();
    }

    /// This member answered, from this database.
    pub(super) fn heard(&mut self, member: AccessPoint, store: StoreId) {
        self.sets.retain(|set| !set.members.contains(&NamedReplica { member, store }));
    }

    /// Of the first set that nobody has answered of who they are.
    pub(super) fn members(&self) -> impl Iterator<Item = AccessPoint> {
        self.sets.first().into_iter().flat_map(|set| set.members.iter().map(|keeper| keeper.member))
    }

    /// These will not come back.
    pub(super) fn declare_lost(&mut self, lost: &[AccessPoint]) {
        self.sets.iter_mut().for_each(|set| set.members.retain(|keeper| !lost.contains(&keeper.member)));
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

    const MINUTE: Millis = 60_000;

    fn waits(lived: Millis, running: Millis) -> Millis {
        patience(Some(lived), running)
    }

    #[test]
    fn who_was_here_for_a_minute_is_waited_for_a_minute_and_who_was_here_as_long_as_we_for_a_day() {
        assert_eq!(waits(MINUTE, 10 * MINUTE), MINUTE);
        assert_eq!(waits(0, 10 * MINUTE), SHORTEST_WAIT);
        assert_eq!(waits(30 * MINUTE, 1_000 * MINUTE), 30 * MINUTE);
        assert_eq!(waits(9 * MINUTE, 10 * MINUTE), LONGEST_WAIT, "a swarm that began with it");
        assert_eq!(waits(50 * LONGEST_WAIT, 300 * LONGEST_WAIT), LONGEST_WAIT);
        assert_eq!(patience(None, MINUTE), LONGEST_WAIT, "it died before our time");
        assert_eq!(patience(None, 100 * MINUTE), SHORTEST_WAIT);
    }

    #[test]
    fn one_of_each_set_is_waited_for_and_for_each_as_long_as_its_owner_was_here() {
        let set = |number: u8, patience_s| {
            let members = vec![NamedReplica { member: AccessPoint([number; 32]), store: StoreId(1) }];
            InheritedKeepers { members, patience_s }
        };
        let mut keepers = Keepers::new(vec![set(1, 60), set(2, 600), set(3, 86_400)]);
        keepers.heard(AccessPoint([3; 32]), StoreId(2));
        keepers.have_waited(59_999);
        assert_eq!(keepers.sets.len(), 3);
        keepers.heard(AccessPoint([3; 32]), StoreId(1));
        keepers.have_waited(60_000);
        assert_eq!(keepers.members().collect::<Vec<_>>(), [AccessPoint([2; 32])]);
        keepers.have_waited(600_000);
        assert!(keepers.is_empty());
    }
}
