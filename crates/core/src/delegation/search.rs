//! The procedures by which an owner is found: the swarm's own, the paper's, or chance; the steward runs each the same way.

use crate::delegation::{Delegated, Knowledge, Nearest, Step, Verdict, draw, ipmicra::IpMicra};
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{access_point::AccessPoint, subnet::Subnet};
use std::net::IpAddr;

/// The procedure, with its one parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Ours: a probe is made if it can be expected to bring the owner nearer by this many microseconds.
    Nearcrawl {
        /// What a probe costs, in microseconds.
        price_us: u32,
    },
    /// The paper's: probes at or under this many microseconds end the search.
    Ipmicra {
        /// The threshold.
        threshold_us: u32,
    },
    /// For comparison: a member is drawn, without a probe, and no subnet moves for nearness afterwards.
    Random,
}

impl Policy {
    /// Its name in configurations and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Nearcrawl { .. } => "nearcrawl",
            Policy::Ipmicra { .. } => "ipmicra",
            Policy::Random => "random",
        }
    }

    /// Whether a subnet goes to the nearest: if not, none may move for nearness, nor go to who measured it when its owner goes.
    pub(crate) fn seeks_the_nearest(self) -> bool {
        match self {
            Policy::Nearcrawl { .. } | Policy::Ipmicra { .. } => true,
            Policy::Random => false,
        }
    }

    /// What is delegated when an address turns up that has no owner. The paper gives away whole registered subnets; of a large one we
    /// give away the part around the address, and so does who draws, so that the two can be compared.
    pub(crate) fn delegates(self, hierarchy: &Hierarchy, address: IpAddr) -> Subnet {
        match self {
            Policy::Nearcrawl { .. } | Policy::Random => hierarchy.unit_of(address),
            Policy::Ipmicra { .. } => hierarchy.subnet_of(address),
        }
    }
}

/// What a search looks at.
pub(crate) struct Surroundings<'a> {
    pub hierarchy: &'a Hierarchy,
    pub delegated: &'a Delegated,
    pub knowledge: &'a Knowledge,
    /// Never empty.
    pub live: &'a [AccessPoint],
    /// An access point's share of the work, 1.0 the average.
    pub load: &'a dyn Fn(AccessPoint) -> f64,
}

/// One search for one subnet, with the answers that it got.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    procedure: Running,
    answers: Vec<(AccessPoint, Option<u32>)>,
}

#[derive(Clone, Debug)]
enum Running {
    Nearest(Nearest),
    IpMicra(IpMicra),
    Draw(Subnet),
}

impl Search {
    pub(crate) fn new(policy: Policy, subnet: Subnet) -> Search {
        let procedure = match policy {
            Policy::Nearcrawl { price_us } => Running::Nearest(Nearest::new(subnet, price_us)),
            Policy::Ipmicra { threshold_us } => Running::IpMicra(IpMicra::new(subnet, threshold_us)),
            Policy::Random => Running::Draw(subnet),
        };
        Search { procedure, answers: Vec::new() }
    }

    /// Notes what an access point's probe gave; only its first answer counts.
    pub(crate) fn answer(&mut self, from: AccessPoint, rtt_us: Option<u32>) {
        if self.answers.iter().any(|(who, _)| *who == from) {
            return;
        }
        self.answers.push((from, rtt_us));
        match &mut self.procedure {
            Running::Nearest(nearest) => nearest.answer(from, rtt_us),
            Running::IpMicra(paper) => paper.answer(from, rtt_us),
            Running::Draw(_) => {}
        }
    }

    /// The answers that came, the nearest first.
    pub(crate) fn measured(&self) -> Vec<(u32, AccessPoint)> {
        let mut measured: Vec<_> = self.answers.iter().filter_map(|(who, rtt)| Some(((*rtt)?, *who))).collect();
        measured.sort_unstable();
        measured
    }

    pub(crate) fn next(&mut self, around: &Surroundings<'_>) -> Step {
        match &mut self.procedure {
            Running::Nearest(nearest) => nearest.next(around.hierarchy, around.knowledge, around.live, around.load),
            Running::IpMicra(paper) => paper.next(around.hierarchy, around.delegated, around.live),
            Running::Draw(subnet) => draw::settle(subnet, around.live),
        }
    }

    /// The decision if no member may be asked any more: the best answer of the living.
    pub(crate) fn settle_now(&self, live: &[AccessPoint]) -> Option<Verdict> {
        let mut measured = self.measured().into_iter().filter(|(_, who)| live.contains(who));
        let (owner, rtt_us) = measured.next().map_or((*live.first()?, None), |(rtt, who)| (who, Some(rtt)));
        let runner_up = measured.next().map(|(_, who)| who);
        Some(Verdict { owner, rtt_us, runner_up, probes: self.answers.len() as u16, by_load: false })
    }
}
