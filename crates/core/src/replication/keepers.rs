//! Which members have all that was recorded of a subnet that became ours, and for how long does it wait for one of them?
//!
//! As long as a member is away that has what nobody else has, its pages would be asked for again. But members that come, take subnets over
//! and vanish must not hold up those that stay: who was here for a minute is waited for a minute.

use nearcrawl_model::{
    access_point::AccessPoint,
    replica::{NamedReplica, StoreId},
    time::Millis,
};

/// A subnet of an owner that was here for long begins with what was found after so long: a day.
const LONGEST_WAIT: Millis = 86_400_000;

/// One of an owner that was hardly here, after so long: what happened to it may be over by then.
const SHORTEST_WAIT: Millis = 60_000;

/// An owner that was here for less than this part of the time for which we have been running is waited for as long as it was here.
const SHARE: u64 = 2;

/// The former owner of a subnet and its replicas, as it told. Without any of them the subnet waits for nobody.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keepers {
    members: Vec<NamedReplica>,
    patience: Millis,
}

impl Keepers {
    /// Those that an owner told which was here for `lived`, while we have been running for `running`.
    pub(crate) fn new(members: Vec<NamedReplica>, lived: Millis, running: Millis) -> Keepers {
        let is_newcomer = lived.saturating_mul(SHARE) < running;
        let patience = if is_newcomer { lived.clamp(SHORTEST_WAIT, LONGEST_WAIT) } else { LONGEST_WAIT };
        Keepers { members, patience }
    }

    /// Whether nobody is waited for.
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Nobody is waited for any more.
    pub(super) fn clear(&mut self) {
        self.members.clear();
    }

    /// Whether this member is one, with this database.
    pub(super) fn contains(&self, member: AccessPoint, store: StoreId) -> bool {
        self.members.contains(&NamedReplica { member, store })
    }

    /// Who they are.
    pub(super) fn members(&self) -> impl Iterator<Item = AccessPoint> {
        self.members.iter().map(|keeper| keeper.member)
    }

    /// These will not come back.
    pub(super) fn declare_lost(&mut self, lost: &[AccessPoint]) {
        self.members.retain(|keeper| !lost.contains(&keeper.member));
    }

    /// Whether they have been waited for, for so long, long enough.
    pub(super) fn is_over(&self, waited: Millis) -> bool {
        waited >= self.patience
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Millis = 60_000;

    fn waits(lived: Millis, running: Millis) -> Millis {
        let keepers = Keepers::new(Vec::new(), lived, running);
        assert!(keepers.is_over(keepers.patience) && !keepers.is_over(keepers.patience - 1));
        keepers.patience
    }

    #[test]
    fn who_was_here_for_a_minute_is_waited_for_a_minute_and_who_was_here_as_long_as_we_for_a_day() {
        assert_eq!(waits(MINUTE, 10 * MINUTE), MINUTE);
        assert_eq!(waits(0, 10 * MINUTE), SHORTEST_WAIT);
        assert_eq!(waits(30 * MINUTE, 1_000 * MINUTE), 30 * MINUTE);
        assert_eq!(waits(9 * MINUTE, 10 * MINUTE), LONGEST_WAIT, "a swarm that began with it");
        assert_eq!(waits(50 * LONGEST_WAIT, 300 * LONGEST_WAIT), LONGEST_WAIT);
    }
}
