//! By which rule does a site find its crawler? The daemon's procedures as they are, and the baselines that they must beat.

use super::arena::{Arena, microseconds};
use crate::{
    logic::{
        delegation::{Delegated, Step, ipmicra::IpMicra},
        hierarchy::Hierarchy,
    },
    model::{access_point::AccessPoint, subnet::Subnet},
};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};
use std::{collections::BTreeMap, fmt};

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// The paper's procedure with a threshold in milliseconds.
    IpMicra(f64),
    /// One after another in random order until one is at or under the threshold in milliseconds; else the fastest.
    RandomOrder(f64),
    /// The same, those first who hold the most subnets.
    PopularFirst(f64),
    /// All probe every site; the fastest gets it.
    BruteForce,
    /// Somebody gets it, nobody probes: UCYMicra's way.
    RandomDelegation,
}

impl Policy {
    /// The rule's name, without its number.
    pub fn name(&self) -> &'static str {
        match self {
            Policy::IpMicra(_) => "ipmicra",
            Policy::RandomOrder(_) => "random-order",
            Policy::PopularFirst(_) => "popular-first",
            Policy::BruteForce => "brute-force",
            Policy::RandomDelegation => "random-delegation",
        }
    }

    /// The price of a probe in milliseconds, where there is one.
    pub fn price_ms(&self) -> Option<f64> {
        None
    }

    /// The threshold in milliseconds, where there is one.
    pub fn threshold_ms(&self) -> Option<f64> {
        match self {
            Policy::IpMicra(ms) | Policy::RandomOrder(ms) | Policy::PopularFirst(ms) => Some(*ms),
            _ => None,
        }
    }

    /// Whether the second site of a subnet goes where the first went, without a probe (IPMicra §4.2, step 1).
    fn keeps_subnets(&self) -> bool {
        !matches!(self, Policy::BruteForce | Policy::RandomDelegation)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.price_ms(), self.threshold_ms()) {
            (Some(number), _) | (None, Some(number)) => write!(f, "{}@{number}", self.name()),
            (None, None) => f.write_str(self.name()),
        }
    }
}

/// Who got a site, and what it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The crawler, by index.
    pub crawler: usize,
    /// How many probes were made for it.
    pub probes: u32,
}

/// A rule at work in one round: what it has given away and learned so far.
pub struct Player<'a> {
    policy: Policy,
    arena: &'a Arena,
    hierarchy: &'a Hierarchy,
    live: Vec<AccessPoint>,
    delegated: Delegated,
    owners: BTreeMap<Subnet, usize>,
    /// How many subnets each crawler holds.
    held: Vec<usize>,
    random: StdRng,
}

impl<'a> Player<'a> {
    /// At the beginning of a round: each crawler holds its own subnet, and nothing is known but what crawlers know of each other.
    pub fn new(policy: Policy, arena: &'a Arena, hierarchy: &'a Hierarchy, seed: u64) -> Player<'a> {
        let mut player = Player {
            policy,
            arena,
            hierarchy,
            live: arena.crawlers.iter().map(|crawler| crawler.who).collect(),
            delegated: Delegated::default(),
            owners: BTreeMap::new(),
            held: vec![0; arena.crawlers.len()],
            random: StdRng::seed_from_u64(seed),
        };
        for (index, crawler) in arena.crawlers.iter().enumerate() {
            if let Some(subnet) = crawler.subnet
                && !player.owners.contains_key(&subnet)
            {
                player.give(subnet, hierarchy.position(subnet).map(|position| position.0), index);
            }
        }
        player
    }

    /// Delegates the next site.
    pub fn delegate(&mut self, site: usize) -> Decision {
        let place = self.arena.sites[site];
        if self.policy.keeps_subnets()
            && let Some(owner) = self.owners.get(&place.subnet)
        {
            return Decision { crawler: *owner, probes: 0 };
        }
        let everybody = 0..self.arena.crawlers.len();
        let decision = match self.policy {
            Policy::IpMicra(threshold) => self.ipmicra(site, threshold),
            Policy::RandomOrder(threshold) => {
                let mut order: Vec<usize> = everybody.collect();
                order.shuffle(&mut self.random);
                self.until(site, &order, threshold)
            }
            Policy::PopularFirst(threshold) => {
                let mut order: Vec<usize> = everybody.collect();
                order.sort_by_key(|crawler| std::cmp::Reverse(self.held[*crawler]));
                self.until(site, &order, threshold)
            }
            Policy::BruteForce => {
                let order: Vec<usize> = everybody.collect();
                self.until(site, &order, f64::NEG_INFINITY)
            }
            Policy::RandomDelegation => Decision { crawler: self.random.random_range(everybody), probes: 0 },
        };
        self.give(place.subnet, place.position, decision.crawler);
        decision
    }

    fn give(&mut self, subnet: Subnet, position: Option<u32>, crawler: usize) {
        self.owners.insert(subnet, crawler);
        self.held[crawler] += 1;
        if let Some(position) = position {
            self.delegated.set(position, Some(self.live[crawler]));
        }
    }

    /// Asks in this order until somebody is at or under the threshold; else takes the fastest, the first of equals.
    fn until(&self, site: usize, order: &[usize], threshold_ms: f64) -> Decision {
        let row = self.arena.row(site);
        let mut best = order[0];
        for (asked, crawler) in order.iter().enumerate() {
            if row[*crawler] < row[best] {
                best = *crawler;
            }
            if f64::from(row[*crawler]) <= threshold_ms {
                return Decision { crawler: *crawler, probes: asked as u32 + 1 };
            }
        }
        Decision { crawler: best, probes: order.len() as u32 }
    }

    fn ipmicra(&self, site: usize, threshold_ms: f64) -> Decision {
        let mut search = IpMicra::new(self.arena.sites[site].subnet, microseconds(threshold_ms as f32));
        let mut probes = 0;
        loop {
            match search.next(self.hierarchy, &self.delegated, &self.live) {
                Step::Ask(who) => {
                    probes += 1;
                    search.answer(who, self.probe(site, who));
                }
                Step::Settle(verdict) => return Decision { crawler: self.arena.find(verdict.owner).unwrap_or(0), probes },
            }
        }
    }

    /// What this access point's probe of the site gives, in microseconds.
    fn probe(&self, site: usize, who: AccessPoint) -> Option<u32> {
        self.arena.find(who).map(|crawler| microseconds(self.arena.probe_ms(site, crawler)))
    }
}
