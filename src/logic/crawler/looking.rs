//! What does the process look up in the mind? Plain readings, for remembering and for showing how far a crawl is.

use super::{Counters, Crawler};
use crate::model::{access_point::AccessPoint, summary::Summary, view::ProgressView};
use std::collections::BTreeSet;

impl Crawler {
    /// The members that count, to be remembered for the next life.
    pub fn settled_members(&self) -> BTreeSet<AccessPoint> {
        self.roster.settled(self.now.moment)
    }

    /// Where other members can be reached, as complete multiaddrs.
    pub fn member_addresses(&self) -> Vec<String> {
        self.incarnations.values().flat_map(|(_, addresses)| addresses.iter().cloned()).collect()
    }

    /// How many subnets this access point holds.
    pub fn subnets_held(&self) -> usize {
        self.ownership.count(&self.me)
    }

    /// What it did and refused since it started.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How far it is.
    pub fn progress(&self) -> ProgressView {
        ProgressView {
            pages: self.counters.pages,
            waiting: self.sites.values().map(|site| site.frontier.len() as u64).sum(),
            busy: self.in_flight.len() as u64,
            servers: self.sites.len() as u64,
            bytes: self.counters.bytes,
        }
    }

    /// The sums over its own sites as they are now.
    pub fn own_summary(&mut self) -> Summary {
        self.enter_dirty();
        self.tally.summary().clone()
    }
}
