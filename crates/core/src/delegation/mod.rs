//! Who should hold this subnet? IPMicra's question, asked by the subnet's steward instead of a coordinator.
//!
//! [`ipmicra`] is the paper's procedure; [`Nearest`] decides by what [`Knowledge`] the swarm has gathered of distances.

pub(crate) mod address_assignment;
mod chart;
pub mod contacts;
pub(crate) mod distances;
pub(crate) mod probes;
pub(crate) mod rounds;
pub(crate) mod search;

mod foretelling;
mod globe;
mod hypotheses;
pub mod ipmicra;
mod knowledge;
mod nearest;
mod places;
mod plane;
mod relatives;
#[cfg(test)]
mod tests;

pub use knowledge::{Knowledge, MAX_SUBNETS};
pub use nearest::Nearest;

use contacts::Contacts;
use nearcrawl_model::{access_point::AccessPoint, fetch::ProbeTarget, subnet::Subnet, time::Moment};
pub use search::Policy;
use std::{
    collections::{BTreeMap, VecDeque},
    net::IpAddr,
    ops::Range,
};

/// Which positions of the hierarchy are delegated, and to whom: the hierarchy "populated" with crawlers (IPMicra §4.1).
///
/// Positions number the subnets depth first, so all that lies beneath any node is one range.
#[derive(Clone, Debug, Default)]
pub struct Delegated {
    by_position: BTreeMap<u32, AccessPoint>,
}

impl Delegated {
    /// Notes who holds the subnet at this position from now on; none if nobody does.
    pub fn set(&mut self, position: u32, owner: Option<AccessPoint>) {
        match owner {
            Some(owner) => self.by_position.insert(position, owner),
            None => self.by_position.remove(&position),
        };
    }

    /// Who holds the subnet at this position.
    pub fn at(&self, position: u32) -> Option<AccessPoint> {
        self.by_position.get(&position).copied()
    }

    /// Who holds what lies in this range, in address order, with repetitions.
    pub fn beneath(&self, range: Range<u32>) -> impl Iterator<Item = AccessPoint> + '_ {
        self.by_position.range(range).map(|(_, owner)| *owner)
    }
}

/// What the procedure wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ask this access point to probe the subnet once, then tell the answer.
    Ask(AccessPoint),
    /// It is decided.
    Settle(Verdict),
}

/// Who gets the subnet, and what it took to find out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The new owner.
    pub owner: AccessPoint,
    /// What its probe measured, in microseconds; none if it was not asked to probe or got no answer.
    pub rtt_us: Option<u32>,
    /// The next best answer: takes over without probes if the owner dies.
    pub runner_up: Option<AccessPoint>,
    /// How many probes were asked for.
    pub probes: u16,
    /// Whether the subnet is near everywhere (anycast), so that it was given to whom has least to do rather than to the nearest.
    pub by_load: bool,
}

/// Rounds of delegation, and what is known for them.
pub(crate) struct Delegation {
    pub(crate) delegated: Delegated,
    pub(crate) rounds: BTreeMap<Subnet, crate::crawler::Procedure>,
    pub(crate) queue: VecDeque<(Subnet, ProbeTarget)>,
    pub(crate) knowledge: Knowledge,
    pub(crate) distances: distances::Distancing,
    pub(crate) contacts: Contacts,
    pub(crate) asked: BTreeMap<Subnet, Moment>,
    /// Addresses without an owner whose guardian we are.
    pub(crate) reserved: BTreeMap<IpAddr, address_assignment::Loan>,
    /// Probes that run here, by question.
    pub(crate) probing: BTreeMap<u64, probes::Probing>,
    /// Subnets that were probed a moment ago: their addresses rest.
    pub(crate) rests: BTreeMap<Subnet, Moment>,
}
