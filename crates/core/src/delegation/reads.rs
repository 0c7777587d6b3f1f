//! Read-only references to the other machines that delegation depends on.

use crate::{
    context::Context,
    membership::{Membership, Shutdown},
    ownership::Ownership,
};
use nearcrawl_model::access_point::AccessPoint;

/// The machines that delegation reads and does not change.
#[derive(Clone, Copy)]
pub(crate) struct DelegationReads<'a> {
    /// Who is alive.
    pub(crate) members: &'a Membership,
    /// Which subnets are claimed.
    pub(crate) ownership: &'a Ownership,
    /// Whether this access point is about to go.
    pub(crate) shutdown: &'a Shutdown,
}

impl DelegationReads<'_> {
    /// Why we take no subnet that a steward awards us at the moment, as a sentence that goes behind a name; none if we do.
    pub(crate) fn refuses_award(&self, cx: &Context) -> Option<&'static str> {
        if self.shutdown.is_leaving() {
            return Some("it is leaving the swarm");
        }
        // It may be claimed already, or lie in what is: we have not heard of it yet.
        if !self.ownership.is_synced() {
            return Some("its ownership map is not whole yet");
        }
        // Who is asked whether it is near says so, too; some are chosen without being asked.
        if cx.outlook.memory_nearly_full {
            return Some("it uses nearly as much memory as it may");
        }
        cx.outlook.disk_nearly_full.then_some("its files take nearly as much of the disk as they may")
    }

    /// The living who would take a subnet but for these, as far as is known; all of them if none would.
    pub(crate) fn willing(&self, me: AccessPoint, unwilling: impl Fn(&AccessPoint) -> bool) -> Vec<AccessPoint> {
        let goes = |who: &AccessPoint| self.shutdown.is_leaving() && *who == me || unwilling(who);
        let live = self.members.live();
        let stay: Vec<_> = live.iter().copied().filter(|who| !goes(who)).collect();
        if stay.is_empty() { live.to_vec() } else { stay }
    }
}
