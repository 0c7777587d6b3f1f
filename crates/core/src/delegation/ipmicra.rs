//! IPMicra's delegation procedure, exactly as published (Papapetrou and Samaras, WWW 2004, §4.2).
//!
//! 1. Another subnet of the same organisation is delegated: to one crawler → that crawler, without a probe; to several → those
//!    probe one after another, the first at or under the threshold wins, else the fastest.
//! 2. Else bottom-up: at the parent, the crawlers of all delegated siblings and of their child subnets are asked one after
//!    another, and the first at or under the threshold wins; then the same one level up, to the root.
//! 3. No member under the threshold: the lowest answer wins.
//!
//! Silent points: siblings are asked in address order; no member is asked twice; crawlers that are not alive are passed over; those
//! who hold nothing yet come last; if no member gets an answer, the first in the list of the living takes the subnet unprobed.

use super::{Delegated, Step, Verdict};
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{access_point::AccessPoint, subnet::Subnet};
use std::collections::VecDeque;

/// How far the procedure has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Start,
    Organisation,
    /// The next step of the climb to look at.
    Climb(usize),
    Everybody,
    Lowest,
}

/// One run of the procedure for one subnet.
#[derive(Clone, Debug)]
pub struct IpMicra {
    subnet: Subnet,
    threshold_us: u32,
    stage: Stage,
    candidates: VecDeque<AccessPoint>,
    /// Who holds other subnets of the same organisation.
    company: Vec<AccessPoint>,
    answers: Vec<(AccessPoint, Option<u32>)>,
}

impl IpMicra {
    /// Begins for a subnet without an owner; probes at or under `threshold_us` microseconds end the search.
    pub fn new(subnet: Subnet, threshold_us: u32) -> IpMicra {
        IpMicra { subnet, threshold_us, stage: Stage::Start, candidates: VecDeque::new(), company: Vec::new(), answers: Vec::new() }
    }

    /// Notes what an access point's probe gave, in microseconds; none if it failed or was declined.
    pub fn answer(&mut self, from: AccessPoint, rtt_us: Option<u32>) {
        self.answers.push((from, rtt_us));
    }

    /// How many probes were answered so far.
    pub fn probes(&self) -> u16 {
        self.answers.len().min(usize::from(u16::MAX)) as u16
    }

    /// What to do next. `live` are the access points that can be asked, never empty; `delegated` may change between calls.
    pub fn next(&mut self, hierarchy: &Hierarchy, delegated: &Delegated, live: &[AccessPoint]) -> Step {
        let near = self.measured(live).find(|(_, rtt)| *rtt <= self.threshold_us);
        if let Some((owner, rtt)) = near {
            return self.settle(owner, Some(rtt), live);
        }
        if let [only] = live {
            return self.settle(*only, None, live);
        }
        loop {
            while let Some(candidate) = self.candidates.pop_front() {
                if live.contains(&candidate) && !self.asked(candidate) {
                    return Step::Ask(candidate);
                }
            }
            if let Some(decided) = self.next_stage(hierarchy, delegated, live) {
                return decided;
            }
        }
    }

    /// What the living answered. Answers outlive those who gave them: an award to the dead fails, and
    /// would be made again for ever.
    fn measured(&self, live: &[AccessPoint]) -> impl Iterator<Item = (AccessPoint, u32)> {
        self.answers.iter().filter_map(|(who, rtt)| rtt.map(|rtt| (*who, rtt))).filter(|(who, _)| live.contains(who))
    }

    fn asked(&self, candidate: AccessPoint) -> bool {
        self.answers.iter().any(|(asked, _)| *asked == candidate)
    }

    /// Moves on to the next source of candidates; decides if there is none or none is needed.
    fn next_stage(&mut self, hierarchy: &Hierarchy, delegated: &Delegated, live: &[AccessPoint]) -> Option<Step> {
        let position = hierarchy.position(self.subnet);
        match self.stage {
            Stage::Start => {
                self.stage = Stage::Organisation;
                let position = position?;
                let organisation = hierarchy.organisation(position);
                let holders = hierarchy.organisation_members(organisation).filter_map(|member| delegated.at(member.0));
                let holders = distinct(holders.filter(|holder| live.contains(holder)));
                if let [only] = holders[..] {
                    return Some(self.settle(only, None, live));
                }
                self.candidates.extend(&holders);
                self.company = holders;
                None
            }
            Stage::Organisation => {
                self.stage = Stage::Climb(0);
                // Several crawlers of this organisation were asked and none is under the threshold: the fastest of them.
                let company: Vec<_> = self.company.iter().copied().filter(|who| live.contains(who)).collect();
                self.fastest(&company).map(|(owner, rtt)| self.settle(owner, Some(rtt), live))
            }
            Stage::Climb(level) => {
                let step = position.and_then(|position| hierarchy.climb(position).into_iter().nth(level));
                self.stage = if step.is_some() { Stage::Climb(level + 1) } else { Stage::Everybody };
                if let Some(step) = step {
                    self.candidates.extend(distinct(delegated.beneath(step.range)));
                }
                None
            }
            Stage::Everybody => {
                self.stage = Stage::Lowest;
                self.candidates.extend(live);
                None
            }
            Stage::Lowest => match self.fastest(live) {
                Some((owner, rtt)) => Some(self.settle(owner, Some(rtt), live)),
                None => Some(self.settle(live.first().copied()?, None, live)),
            },
        }
    }

    fn fastest(&self, of: &[AccessPoint]) -> Option<(AccessPoint, u32)> {
        self.measured(of).min_by_key(|(who, rtt)| (*rtt, *who))
    }

    fn settle(&self, owner: AccessPoint, rtt_us: Option<u32>, live: &[AccessPoint]) -> Step {
        let others = self.measured(live).filter(|(who, _)| *who != owner);
        let runner_up = others.min_by_key(|(who, rtt)| (*rtt, *who)).map(|(who, _)| who);
        Step::Settle(Verdict { owner, rtt_us, runner_up, probes: self.probes(), by_load: false })
    }
}

fn distinct(items: impl Iterator<Item = AccessPoint>) -> Vec<AccessPoint> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}
