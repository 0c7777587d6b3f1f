//! The next owner's side of a hand-over: subnets that it accepted, and those that it was handed.

use super::{
    Stage, Surroundings,
    stage::{COPY_TIMEOUT, STOP_TIMEOUT},
};
use crate::{context::Context, ownership::register::claimable};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::SignedClaim,
    ids::Ticket,
    message::{Response, Unwilling},
    subnet::Subnet,
    time::Moment,
};
use std::collections::BTreeMap;

/// Subnets on their way in at a time.
pub(crate) const MAX_INCOMING: usize = 4;

/// Subnets that were handed over with all their journals and that nobody has claimed yet. One more is treated like any that was released:
/// its journals are fetched from its replicas, of which we are one.
pub(crate) const MAX_HANDED: usize = 1_024;

/// Subnets on their way to this access point.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    accepted: BTreeMap<Subnet, Accepted>,
    /// Subnets that were handed to us with everything, and the epoch of the release.
    handed: BTreeMap<Subnet, u64>,
}

/// A subnet that we accepted.
#[derive(Debug)]
struct Accepted {
    /// Of the present owner's claim.
    epoch: u64,
    /// Until when we wait for it.
    until: Moment,
}

/// An owner wants us to have a subnet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    pub(crate) from: AccessPoint,
    pub(crate) subnet: Subnet,
    /// Of its claim.
    pub(crate) epoch: u64,
}

impl Incoming {
    /// How many subnets were accepted and have not been handed over yet.
    pub(crate) fn len(&self) -> usize {
        self.accepted.len()
    }

    /// Whether a subnet was handed to us with all its journals by the owner who released it at this epoch.
    pub(crate) fn was_handed(&self, subnet: &Subnet, released_at: u64) -> bool {
        self.handed.get(subnet) == Some(&released_at)
    }

    /// How far each of them is.
    pub(crate) fn stages(&self) -> impl Iterator<Item = Stage> {
        self.accepted.keys().map(|_| Stage::Coming).chain(self.handed.keys().map(|_| Stage::Handed))
    }

    /// How far a subnet is on its way to us.
    pub(crate) fn stage_of(&self, subnet: &Subnet) -> Option<Stage> {
        let accepted = self.accepted.contains_key(subnet).then_some(Stage::Coming);
        accepted.or_else(|| self.handed.contains_key(subnet).then_some(Stage::Handed))
    }

    /// Subnets that were accepted long ago are not waited for any more: their owners called it off, or are gone.
    pub(crate) fn expire(&mut self, now: Moment) {
        self.accepted.retain(|_, accepted| accepted.until > now);
    }

    /// An owner offers us a subnet: answers whether we would have it.
    pub(crate) fn offered(&mut self, cx: &mut Context, around: &Surroundings<'_>, ticket: Ticket, offer: Offer) {
        let Offer { from, subnet, epoch } = offer;
        self.expire(cx.now.moment);
        let theirs = around.ownership.register().claim(&subnet).is_some_and(|claim| (claim.owner, claim.epoch) == (from, epoch));
        let unwilling = if !theirs || !claimable(&subnet) {
            Some(Unwilling::NotYours)
        } else if !around.may_take_part(cx) || !cx.takes_subnets() {
            Some(Unwilling::HeldBack)
        } else if around.crawl.sites().waiting() >= cx.settings.max_waiting {
            Some(Unwilling::Full)
        } else if self.accepted.len() >= MAX_INCOMING && !self.accepted.contains_key(&subnet) {
            Some(Unwilling::Busy)
        } else {
            None
        };
        if unwilling.is_none() {
            self.accepted.insert(subnet, Accepted { epoch, until: cx.now.moment.after(COPY_TIMEOUT + STOP_TIMEOUT) });
        }
        cx.answer(ticket, Response::Offered(unwilling));
    }

    /// An owner released a subnet for us and says that we have all its journals. Whether that is so; otherwise it is refused.
    #[must_use]
    pub(crate) fn handed_over(&mut self, cx: &mut Context, from: AccessPoint, ticket: Ticket, release: &SignedClaim) -> bool {
        let opened = release.open().ok();
        let Some(claim) = opened.filter(|claim| claim.owner == from && claim.released && claim.runner_up == Some(cx.me)) else {
            cx.refuse("invalid hand-overs");
            cx.answer(ticket, Response::Refused("this is not the sender's release, or it does not name this access point".to_owned()));
            return false;
        };
        if self.accepted.remove(&claim.subnet).is_some_and(|accepted| accepted.epoch == claim.epoch) {
            self.note_handed(cx, claim.subnet, claim.epoch);
        }
        true
    }

    fn note_handed(&mut self, cx: &mut Context, subnet: Subnet, epoch: u64) {
        if self.handed.len() < MAX_HANDED || self.handed.contains_key(&subnet) {
            self.handed.insert(subnet, epoch);
        } else {
            cx.refuse("subnets handed over beyond the limit");
        }
    }

    /// How many subnets were handed over and are not claimed yet.
    pub(crate) fn handed(&self) -> usize {
        self.handed.len()
    }

    /// A subnet has an owner since `epoch`: what was handed to us before is of no use any more.
    pub(crate) fn claimed(&mut self, subnet: &Subnet, epoch: u64) {
        if self.handed.get(subnet).is_some_and(|released_at| *released_at < epoch) {
            self.handed.remove(subnet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subnets_handed_over_beyond_the_limit_are_not_noted() {
        let (mut cx, mut incoming) = (Context::of_test(1), Incoming::default());
        let subnet = |number: usize| Subnet::around(std::net::Ipv4Addr::from(((9 << 16) + number as u32) << 8).into(), 24);
        (0..=MAX_HANDED).for_each(|number| incoming.note_handed(&mut cx, subnet(number), 3));
        assert_eq!((incoming.handed(), incoming.was_handed(&subnet(MAX_HANDED), 3)), (MAX_HANDED, false));
        assert_eq!(cx.counters.refused["subnets handed over beyond the limit"], 1);
        incoming.note_handed(&mut cx, subnet(0), 5);
        assert!(incoming.was_handed(&subnet(0), 5), "it was noted already");
        incoming.claimed(&subnet(1), 4);
        incoming.note_handed(&mut cx, subnet(MAX_HANDED), 3);
        assert!(incoming.was_handed(&subnet(MAX_HANDED), 3), "another was claimed");
    }
}
