//! Who is nearest to this subnet, with the fewest probes?

use super::{Knowledge, Step, Verdict};
use crate::{
    logic::hierarchy::Hierarchy,
    model::{access_point::AccessPoint, subnet::Subnet},
};

/// One search for one subnet.
#[derive(Clone, Debug)]
pub struct Nearest {
    subnet: Subnet,
    price_us: u32,
    answers: Vec<(AccessPoint, Option<u32>)>,
}

impl Nearest {
    /// Begins for a subnet that nobody holds. A probe is worth its while if it can be expected to bring the owner nearer by
    /// `price_us` microseconds.
    pub fn new(subnet: Subnet, price_us: u32) -> Nearest {
        Nearest { subnet, price_us, answers: Vec::new() }
    }

    /// Notes what an access point's probe gave, in microseconds; none if it failed or was declined.
    pub fn answer(&mut self, from: AccessPoint, rtt_us: Option<u32>) {
        self.answers.push((from, rtt_us));
    }

    /// How many probes were answered so far.
    pub fn probes(&self) -> u16 {
        self.answers.len().min(usize::from(u16::MAX)) as u16
    }

    /// The answers so far.
    pub fn answers(&self) -> &[(AccessPoint, Option<u32>)] {
        &self.answers
    }

    /// What to do next. `live` are the access points that can be asked, never empty; `load` is an access point's share of the
    /// work, 1.0 the average.
    pub fn next(&mut self, hierarchy: &Hierarchy, knowledge: &Knowledge, live: &[AccessPoint], load: &dyn Fn(AccessPoint) -> f64) -> Step {
        let country = hierarchy.position(self.subnet).and_then(|p| hierarchy.country(p).as_bytes().try_into().ok());
        let known: Vec<(AccessPoint, u32)> = (self.answers.iter().filter_map(|(who, rtt)| Some((*who, (*rtt)?))))
            .chain(knowledge.measurements(&self.subnet))
            .filter(|(who, _)| live.contains(who))
            .collect();
        let best = known.iter().min_by_key(|(who, rtt)| (*rtt, *who)).copied();
        let unasked = live.iter().filter(|who| known.iter().all(|(k, _)| k != *who) && self.answers.iter().all(|(a, _)| a != *who));
        let promise = |who: &AccessPoint| {
            let least = known.iter().filter_map(|(k, rtt)| Some(knowledge.rtt(*k, *who)?.abs_diff(*rtt))).max().unwrap_or(0);
            (least, country.is_none() || knowledge.country(*who) != country, (load(*who) * 1000.0) as u64, *who)
        };
        let next = unasked.min_by_key(|who| promise(who));
        match (best, next) {
            (best, Some(next)) if best.is_none_or(|(_, rtt)| promise(next).0 + self.price_us < rtt) && live.len() > 1 => Step::Ask(*next),
            (Some((owner, rtt)), _) => self.settle(owner, Some(rtt), &known),
            (None, _) => self.settle(live[0], None, &known),
        }
    }

    fn settle(&self, owner: AccessPoint, rtt_us: Option<u32>, known: &[(AccessPoint, u32)]) -> Step {
        let runner_up = known.iter().filter(|(who, _)| *who != owner).min_by_key(|(who, rtt)| (*rtt, *who)).map(|(who, _)| *who);
        Step::Settle(Verdict { owner, rtt_us, runner_up, probes: self.probes(), by_load: false })
    }
}
