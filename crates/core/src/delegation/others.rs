//! Read-only references to the other machines that delegation depends on.

use crate::{
    membership::{Membership, Shutdown},
    ownership::Ownership,
};
use nearcrawl_model::access_point::AccessPoint;

/// The machines that delegation reads and does not change.
#[derive(Clone, Copy)]
pub(crate) struct Others<'a> {
    /// Who is alive.
    pub(crate) members: &'a Membership,
    /// Which subnets are claimed.
    pub(crate) ownership: &'a Ownership,
    /// Whether this access point is about to go.
    pub(crate) shutdown: &'a Shutdown,
}

impl Others<'_> {
    /// The living who would take a subnet but for these, as far as is known; all of them if none would.
    pub(crate) fn willing(&self, me: AccessPoint, unwilling: impl Fn(&AccessPoint) -> bool) -> Vec<AccessPoint> {
        let goes = |who: &AccessPoint| self.shutdown.is_leaving() && *who == me || unwilling(who);
        let live = self.members.live();
        let stay: Vec<_> = live.iter().copied().filter(|who| !goes(who)).collect();
        if stay.is_empty() { live.to_vec() } else { stay }
    }
}
