//! Subnets that go to others before the operator lets this access point request nothing for long.
//!
//! These are the subnets whose servers have something to do until it may ask again: a run that is under way, or one that begins meanwhile.
//! The others stay: a server that rests anyway is no worse off, and its journals do not travel. They go like any that moves, two at a time,
//! each to the nearest member that says yes; who is away for as long says no. If nobody says yes, they stay and wait.

use super::handover::{Proposal, Surroundings};
use crate::context::Context;
use nearcrawl_model::{
    access_point::AccessPoint,
    subnet::Subnet,
    time::{Millis, WallTime},
};
use std::collections::{BTreeMap, BTreeSet};

/// Members that are asked to have a subnet.
const MAX_ASKED: usize = 4;

/// Subnets that nobody would have are noted up to this many; beyond that the others stay.
const MAX_NOTED: usize = 10_000;

/// A departure, as long as one is near.
#[derive(Debug, Default)]
pub(crate) struct Departure {
    /// Who would not have which subnet, or did not get it in time.
    refused: BTreeMap<Subnet, BTreeSet<AccessPoint>>,
}

impl Departure {
    /// There is none.
    pub(super) fn forget(&mut self) {
        self.refused.clear();
    }

    /// What goes next before a rest until then: at most so many, and nothing that is pinned here.
    pub(super) fn next(
        &mut self,
        cx: &Context,
        around: &Surroundings<'_>,
        back_at: WallTime,
        most: usize,
        pinned: &BTreeSet<Subnet>,
    ) -> Vec<Proposal> {
        let mut found: Vec<Proposal> = Vec::new();
        if most == 0 || self.refused.len() >= MAX_NOTED {
            return found;
        }
        for subnet in around.crawl.with_work_until(cx, back_at) {
            if found.len() >= most {
                break;
            }
            let is_known = found.iter().any(|proposal| proposal.subnet == subnet);
            if is_known || pinned.contains(&subnet) || around.movable_epoch(cx, &subnet).is_none() {
                continue;
            }
            if let Some(to) = self.nearest(cx, around, &subnet) {
                let away = back_at.0.saturating_sub(cx.now.wall.0);
                found.push(Proposal { subnet, to, why: reason(cx.me, away) });
            }
        }
        found
    }

    /// The nearest member that has not declined.
    fn nearest(&self, cx: &Context, around: &Surroundings<'_>, subnet: &Subnet) -> Option<AccessPoint> {
        let refused = self.refused.get(subnet);
        if refused.is_some_and(|refused| refused.len() >= MAX_ASKED) {
            return None;
        }
        let foretold = around.delegation.knowledge().foretell(&cx.hierarchy, *subnet, around.membership.live());
        // Of whom nothing can be expected come last.
        let others = foretold.into_iter().map(|known| known.access_point).chain(around.membership.stewards_of(subnet));
        others.into_iter().find(|who| *who != cx.me && refused.is_none_or(|refused| !refused.contains(who)))
    }

    /// A member did not take a subnet.
    pub(super) fn refused(&mut self, cx: &Context, subnet: Subnet, by: AccessPoint) {
        if cx.outlook.back_at.is_some() && (self.refused.len() < MAX_NOTED || self.refused.contains_key(&subnet)) {
            self.refused.entry(subnet).or_default().insert(by);
        }
    }
}

fn reason(me: AccessPoint, away: Millis) -> String {
    format!("{} will ask nothing for {} min from soon on", me.short(), away / 60_000)
}
