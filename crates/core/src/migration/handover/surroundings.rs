//! Read-only references to the other machines that a hand-over depends on.

use crate::{
    context::Context,
    crawl::Crawl,
    delegation::Delegation,
    membership::{Membership, machine::HeldBack},
    ownership::Ownership,
    replication::Replication,
    report::Report,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    allowance::Rest,
    claim::{Claim, ClaimReason},
    subnet::Subnet,
};

/// The machines that migration reads; it changes none of them.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) membership: &'a Membership,
    pub(crate) ownership: &'a Ownership,
    pub(crate) crawl: &'a Crawl,
    pub(crate) replication: &'a Replication,
    pub(crate) delegation: &'a Delegation,
    pub(crate) report: &'a Report,
    /// Why nothing may be fetched now, if so.
    pub(crate) held_back: Option<&'a HeldBack>,
}

impl Surroundings<'_> {
    /// Our own claim to a subnet, if we have one.
    pub(super) fn own_claim(&self, cx: &Context, subnet: &Subnet) -> Option<&Claim> {
        self.ownership.register().claim(subnet).filter(|claim| claim.owner == cx.me)
    }

    /// The epoch of our claim to a subnet, if it may change hands now.
    pub(crate) fn movable_epoch(&self, cx: &Context, subnet: &Subnet) -> Option<u64> {
        let claim = self.own_claim(cx, subnet)?;
        let settled = !self.replication.is_loading(subnet) && !self.ownership.is_watched(subnet);
        // One's own network is one's own (IPMicra §4.1).
        let movable = claim.reason != ClaimReason::OwnSubnet && settled;
        (movable && self.may_take_part(cx)).then_some(claim.epoch)
    }

    /// Whether this access point may give and take subnets now: it fetches, or must give some away to fetch again, and a quorum answers.
    pub(super) fn may_take_part(&self, cx: &Context) -> bool {
        let goes_on = match self.held_back {
            None => true,
            // Otherwise it would never use less.
            Some(HeldBack::Resting(Rest::MemoryFull { .. })) => true,
            // Nobody foretells that a line becomes metered: after a while it is said that it lasts.
            Some(HeldBack::Resting(Rest::Metered { .. })) => cx.outlook.back_at.is_some(),
            Some(_) => false,
        };
        goes_on && self.membership.may_claim(cx.now.moment)
    }

    /// The living but for ourselves.
    pub(crate) fn others(&self, me: AccessPoint) -> impl Iterator<Item = AccessPoint> {
        self.membership.live().iter().copied().filter(move |who| *who != me)
    }
}
