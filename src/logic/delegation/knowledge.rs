//! What does the swarm know of distances? Access points with their places and RTTs, and every answer that a subnet ever gave.

use crate::{
    logic::hierarchy::Hierarchy,
    model::{access_point::AccessPoint, subnet::Subnet},
};
use std::{collections::BTreeMap, net::IpAddr};

/// How many subnets' answers are kept at most; the ones measured longest ago go first.
pub const MOST_SUBNETS: usize = 65_536;

#[derive(Clone, Debug, Default)]
struct Introduced {
    country: Option<[u8; 2]>,
}

/// Distances, as far as they are known. Equal calls in equal order give equal knowledge.
#[derive(Clone, Debug, Default)]
pub struct Knowledge {
    members: BTreeMap<AccessPoint, Introduced>,
    between: BTreeMap<(AccessPoint, AccessPoint), u32>,
    subnets: BTreeMap<Subnet, BTreeMap<AccessPoint, u32>>,
    observations: usize,
}

impl Knowledge {
    /// Knows nothing.
    pub fn new() -> Knowledge {
        Knowledge::default()
    }

    /// Notes where an access point is: its address, and its country if it says so (else that of its address).
    pub fn introduce(&mut self, who: AccessPoint, hierarchy: &Hierarchy, address: Option<IpAddr>, country: Option<[u8; 2]>) {
        let of_address = || hierarchy.country(hierarchy.locate(address?)?).as_bytes().try_into().ok();
        self.members.insert(who, Introduced { country: country.or_else(of_address) });
    }

    /// Forgets an access point that left.
    pub fn forget(&mut self, who: AccessPoint) {
        self.members.remove(&who);
        self.between.retain(|(a, b), _| *a != who && *b != who);
    }

    /// Notes the round-trip time between two access points, in microseconds; the least of several counts.
    pub fn between(&mut self, a: AccessPoint, b: AccessPoint, rtt_us: u32) {
        let least = self.between.entry((a.min(b), a.max(b))).or_insert(rtt_us);
        *least = rtt_us.min(*least);
    }

    /// Notes that an access point measured a subnet, in microseconds: the answer to a probe, or the timing of a download. To be
    /// told at each answer; the least of several counts.
    pub fn measured(&mut self, _hierarchy: &Hierarchy, subnet: Subnet, by: AccessPoint, rtt_us: u32) {
        self.observations += 1;
        let least = self.subnets.entry(subnet).or_default().entry(by).or_insert(rtt_us);
        *least = rtt_us.min(*least);
    }

    /// What is known of a subnet without asking anybody: who measured it, in microseconds.
    pub fn measurements(&self, subnet: &Subnet) -> impl Iterator<Item = (AccessPoint, u32)> + '_ {
        self.subnets.get(subnet).into_iter().flatten().map(|(who, rtt)| (*who, *rtt))
    }

    /// Whether the subnet, or its organisation, answers faster from several places than light allows.
    pub fn anycast(&self, _hierarchy: &Hierarchy, _subnet: &Subnet) -> bool {
        false
    }

    /// How many answers were noted.
    pub fn observations(&self) -> usize {
        self.observations
    }

    pub(super) fn country(&self, who: AccessPoint) -> Option<[u8; 2]> {
        self.members.get(&who)?.country
    }

    pub(super) fn rtt(&self, a: AccessPoint, b: AccessPoint) -> Option<u32> {
        self.between.get(&(a.min(b), a.max(b))).copied()
    }
}
