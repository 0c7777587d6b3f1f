//! The compared rules of delegation: the daemon's procedures as they are, and the baselines that they must beat.

use super::round::{Round, microseconds};
use nearcrawl_core::delegation::{Delegated, Knowledge, Nearest, Step, drawn, ipmicra::IpMicra};
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{access_point::AccessPoint, subnet::Subnet};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};
use std::{collections::BTreeMap, fmt};

/// A procedure of delegation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// The paper's procedure with a threshold in milliseconds.
    IpMicra(f64),
    /// One after another in random order until one is at or under the threshold in milliseconds; else the fastest.
    RandomOrder(f64),
    /// The same, but crawlers with the most subnets are asked first.
    PopularFirst(f64),
    /// The daemon's procedure with a price of a probe in milliseconds.
    Nearcrawl(f64),
    /// The same, but after each decision it learns what every crawler would have measured: a bound on what can be learnt.
    Oracle(f64),
    /// All probe every site; the fastest gets it.
    BruteForce,
    /// All probe the first site of each subnet; the fastest gets the subnet. A bound for all procedures that delegate whole subnets.
    BruteForceSubnet,
    /// A random crawler gets each site, without probes: as in UCYMicra.
    RandomDelegation,
    /// The daemon's draw: a crawler is drawn for each subnet, without probes.
    Random,
}

impl Policy {
    /// The rule's name, without its number.
    pub fn name(&self) -> &'static str {
        match self {
            Policy::IpMicra(_) => "ipmicra",
            Policy::RandomOrder(_) => "random-order",
            Policy::PopularFirst(_) => "popular-first",
            Policy::Nearcrawl(_) => "nearcrawl",
            Policy::Oracle(_) => "oracle",
            Policy::BruteForce => "brute-force",
            Policy::BruteForceSubnet => "brute-force-subnet",
            Policy::RandomDelegation => "random-delegation",
            Policy::Random => "random",
        }
    }

    /// The price of a probe in milliseconds, where there is one.
    pub(crate) fn price_ms(&self) -> Option<f64> {
        match self {
            Policy::Nearcrawl(ms) | Policy::Oracle(ms) => Some(*ms),
            _ => None,
        }
    }

    /// The threshold in milliseconds, where there is one.
    pub fn threshold_ms(&self) -> Option<f64> {
        match self {
            Policy::IpMicra(ms) | Policy::RandomOrder(ms) | Policy::PopularFirst(ms) => Some(*ms),
            _ => None,
        }
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

/// The crawler that got a site, and the cost of the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The crawler, by index.
    pub crawler: usize,
    /// How many probes were made for it.
    pub probes: u32,
}

/// A rule at work in one round: what it has given away and learned so far.
pub(crate) struct Delegator<'a> {
    policy: Policy,
    round: &'a Round,
    hierarchy: &'a Hierarchy,
    live: Vec<AccessPoint>,
    delegated: Delegated,
    owners: BTreeMap<Subnet, usize>,
    /// How many subnets each crawler holds.
    held: Vec<usize>,
    knowledge: Knowledge,
    random: StdRng,
}

impl<'a> Delegator<'a> {
    /// At the beginning of a round: each crawler holds its own subnet, and nothing is known but what crawlers know of each other.
    pub(crate) fn new(policy: Policy, round: &'a Round, hierarchy: &'a Hierarchy, seed: u64) -> Delegator<'a> {
        let mut delegator = Delegator {
            policy,
            round,
            hierarchy,
            live: round.crawlers.iter().map(|crawler| crawler.who).collect(),
            delegated: Delegated::default(),
            owners: BTreeMap::new(),
            held: vec![0; round.crawlers.len()],
            knowledge: Knowledge::new(),
            random: StdRng::seed_from_u64(seed),
        };
        for (index, crawler) in round.crawlers.iter().enumerate() {
            let position = crawler.address.and_then(|address| hierarchy.locate(address)).map(|position| position.0);
            let subnet = if delegator.parts() { crawler.unit } else { crawler.subnet };
            if let Some(subnet) = subnet.filter(|subnet| !delegator.owners.contains_key(subnet)) {
                delegator.give(subnet, position, index);
            }
        }
        if policy.price_ms().is_some() {
            delegator.introduce();
        }
        delegator
    }

    /// What crawlers publish when they connect: their positions, and the round-trip times between them.
    fn introduce(&mut self) {
        for (index, crawler) in self.round.crawlers.iter().enumerate() {
            self.knowledge.introduce(crawler.who, self.hierarchy, crawler.address, crawler.country);
            for (before, other) in self.round.crawlers[..index].iter().enumerate() {
                if let Some(ms) = self.round.between_ms(index, before) {
                    self.knowledge.between(crawler.who, other.who, microseconds(ms));
                }
            }
        }
    }

    /// Delegates the next site.
    pub(crate) fn delegate(&mut self, site: usize) -> Decision {
        let place = self.round.sites[site];
        let subnet = self.asked_for(site);
        // What is delegated costs no probe (IPMicra §4.2, step 1).
        let asks_always = matches!(self.policy, Policy::BruteForce | Policy::RandomDelegation);
        if let Some(owner) = self.owners.get(&subnet).filter(|_| !asks_always) {
            return Decision { crawler: *owner, probes: 0 };
        }
        let everybody = 0..self.round.crawlers.len();
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
            Policy::Nearcrawl(price) | Policy::Oracle(price) => self.nearcrawl(site, price),
            Policy::BruteForce | Policy::BruteForceSubnet => {
                let order: Vec<usize> = everybody.collect();
                self.until(site, &order, f64::NEG_INFINITY)
            }
            Policy::RandomDelegation => Decision { crawler: self.random.random_range(everybody), probes: 0 },
            Policy::Random => {
                let owner = drawn(&subnet, &self.live).and_then(|owner| self.round.find(owner));
                Decision { crawler: owner.unwrap_or(0), probes: 0 }
            }
        };
        self.give(subnet, place.position, decision.crawler);
        self.learn_afterwards(site, decision.crawler);
        decision
    }

    /// What is learned of a site without probing it.
    fn learn_afterwards(&mut self, site: usize, owner: usize) {
        let told = match self.policy {
            Policy::Oracle(_) => 0..self.round.crawlers.len(),
            Policy::Nearcrawl(_) if self.round.downloads_teach => owner..owner + 1,
            _ => return,
        };
        for crawler in told {
            let rtt_us = microseconds(self.round.probe_ms(site, crawler));
            self.knowledge.measured(self.hierarchy, self.asked_for(site), self.live[crawler], rtt_us);
        }
    }

    /// Whether large subnets are delegated in parts.
    fn parts(&self) -> bool {
        (self.policy.price_ms().is_some() || self.policy == Policy::Random) && !self.round.whole_subnets
    }

    /// What is delegated when this site turns up.
    fn asked_for(&self, site: usize) -> Subnet {
        let place = self.round.sites[site];
        if self.parts() { place.unit } else { place.subnet }
    }

    fn give(&mut self, subnet: Subnet, position: Option<u32>, crawler: usize) {
        self.owners.insert(subnet, crawler);
        self.held[crawler] += 1;
        if let Some(position) = position {
            self.delegated.set(position, Some(self.live[crawler]));
        }
    }

    /// Asks in this order until a crawler is at or under the threshold; else takes the fastest, the first of equals.
    fn until(&self, site: usize, order: &[usize], threshold_ms: f64) -> Decision {
        let row = self.round.row(site);
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
        let mut search = IpMicra::new(self.round.sites[site].subnet, microseconds(threshold_ms as f32));
        let mut probes = 0;
        loop {
            match search.next(self.hierarchy, &self.delegated, &self.live) {
                Step::Ask(who) => {
                    probes += 1;
                    search.answer(who, self.probe(site, who));
                }
                Step::Settle(verdict) => return Decision { crawler: self.round.find(verdict.owner).unwrap_or(0), probes },
            }
        }
    }

    fn nearcrawl(&mut self, site: usize, price_ms: f64) -> Decision {
        let subnet = self.asked_for(site);
        let mut search = Nearest::new(subnet, (price_ms * 1000.0).round() as u32);
        let total: usize = self.held.iter().sum();
        let (held, round) = (&self.held, self.round);
        let average = total.max(1) as f64 / held.len() as f64;
        let load = |who: AccessPoint| round.find(who).map_or(0.0, |crawler| held[crawler] as f64 / average);
        let mut probes = 0;
        loop {
            match search.next(self.hierarchy, &self.knowledge, &self.live, &load) {
                Step::Ask(who) => {
                    probes += 1;
                    let answer = self.probe(site, who);
                    search.answer(who, answer);
                }
                Step::Settle(verdict) => {
                    // Only at the end: during the search, the search itself keeps the answers.
                    for (who, rtt_us) in search.answers().iter().filter_map(|(who, rtt_us)| Some((*who, (*rtt_us)?))) {
                        self.knowledge.measured(self.hierarchy, subnet, who, rtt_us);
                    }
                    return Decision { crawler: round.find(verdict.owner).unwrap_or(0), probes };
                }
            }
        }
    }

    /// What this access point's probe of the site gives, in microseconds.
    fn probe(&self, site: usize, who: AccessPoint) -> Option<u32> {
        self.round.find(who).map(|crawler| microseconds(self.round.probe_ms(site, crawler)))
    }
}
