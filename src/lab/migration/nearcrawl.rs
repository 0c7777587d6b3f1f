//! How does the daemon's rule play? Every access point judges the subnets that it has, by what it measured itself and what others gossip.
//!
//! What the player sees is what a daemon sees: how long its accesses took and how much work they were, what was foretold before
//! the first run, and the load prices that the others told after the last run. Never the world.

use super::{knowledge::Knowledge, world::World};
use crate::logic::migration::{Candidate, Case, Families, LoadPrice, Verdict};
use rand::{SeedableRng, rngs::StdRng};

/// What moves: a subnet, or a site that turned out not to be of its subnet's kind.
#[derive(Clone, Debug)]
struct Unit {
    place: u32,
    subnet: u32,
    sites: Vec<u32>,
    case: Case<u32>,
}

/// All subnets with their cases, wherever they are.
#[derive(Debug)]
pub struct Nearcrawl<'a> {
    knowledge: &'a Knowledge,
    places: Vec<u32>,
    units: Vec<Unit>,
    /// What each access point knows of its own subnets in general.
    families: Vec<Families<()>>,
    /// The prices that were gossiped last, if access points can be full.
    prices: Option<Vec<LoadPrice>>,
    dice: StdRng,
    candidates: Vec<Candidate<u32>>,
}

impl<'a> Nearcrawl<'a> {
    /// The sites at their places; `limited` if access points can be full.
    pub fn new(world: &World, knowledge: &'a Knowledge, places: Vec<u32>, states: u8, limited: bool, seed: u64) -> Nearcrawl<'a> {
        let mut units: Vec<Unit> = Vec::with_capacity(world.subnets());
        for (site, place) in places.iter().enumerate() {
            let subnet = world.subnet(site) as u32;
            if units.last().is_none_or(|unit| unit.subnet != subnet) {
                units.push(Unit { place: *place, subnet, sites: Vec::new(), case: Case::new(states) });
            }
            if let Some(unit) = units.last_mut() {
                unit.sites.push(site as u32);
            }
        }
        Nearcrawl {
            knowledge,
            places,
            units,
            families: vec![Families::default(); world.access_points()],
            prices: limited.then(|| vec![LoadPrice::default(); world.access_points()]),
            dice: StdRng::seed_from_u64(seed),
            candidates: Vec::new(),
        }
    }

    /// Where each site is.
    pub fn places(&self) -> &[u32] {
        &self.places
    }

    /// All sites were accessed, and took so long. Returns how many moved.
    pub fn learn(&mut self, world: &World, durations: &[f64]) -> usize {
        self.gossip(durations);
        let mut moved = 0;
        for at in 0..self.units.len() {
            let unit = &mut self.units[at];
            let (mut seconds, mut work) = (0.0, 0.0);
            for site in &unit.sites {
                seconds += durations[*site as usize];
                work += f64::from(world.sizes()[*site as usize]);
            }
            self.candidates.clear();
            self.candidates.extend_from_slice(self.knowledge.few(unit.subnet as usize));
            let family = &mut self.families[unit.place as usize];
            let scale = family.expect(&[()]);
            if !self.candidates.iter().any(|candidate| candidate.arm == unit.place) {
                self.candidates.push(Candidate { arm: unit.place, prior: None, price: LoadPrice::default() });
            }
            if let Some(prices) = &self.prices {
                self.candidates.iter_mut().for_each(|candidate| candidate.price = prices[candidate.arm as usize]);
            }
            unit.case.accessed(unit.place, seconds / work, work, &scale);
            let judgement = unit.case.judge(unit.place, &self.candidates, &scale, &mut self.dice);
            if let Some((level, noise)) = unit.case.level_and_noise(&self.candidates, &scale) {
                family.tell(&[()], level, noise);
            }
            if let Verdict::Move(to) = judgement.verdict {
                unit.place = to;
                unit.case.moved();
                moved += unit.sites.len();
                unit.sites.iter().for_each(|site| self.places[*site as usize] = to);
            }
        }
        moved
    }

    /// Each access point tells how long it was busy, and corrects its price by what it heard of the others.
    fn gossip(&mut self, durations: &[f64]) {
        let Some(prices) = &mut self.prices else { return };
        let mut busy = vec![0.0; prices.len()];
        for (place, duration) in self.places.iter().zip(durations) {
            busy[*place as usize] += duration;
        }
        let mean = busy.iter().sum::<f64>() / busy.len() as f64;
        for (price, busy) in prices.iter_mut().zip(&busy) {
            *price = price.after(*busy, mean);
        }
    }
}
