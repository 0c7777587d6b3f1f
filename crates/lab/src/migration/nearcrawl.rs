//! The daemon's rule of migration.
//!
//! Every access point judges the subnets that it has, by what it measured itself and what others gossip.
//!
//! What it sees is what a daemon sees: how long its accesses took and how much work they were, what was predicted before
//! the first run, and the load prices that the others published after the last run. It never reads the true times of the world.

use super::{knowledge::Knowledge, world::World};
use nearcrawl_core::migration::{
    ANY_GAIN, Candidate, Case, Change, ChangeDetector, Families, LoadPrice, ShedCandidate, Verdict, shed_load,
};
use rand::{SeedableRng, rngs::StdRng};

/// What moves: a subnet, or a site that turned out not to be of its subnet's kind.
#[derive(Clone, Debug)]
struct Unit {
    place: u32,
    subnet: u32,
    /// Each with a detector of its deviation from the subnet as a whole.
    sites: Vec<(u32, ChangeDetector)>,
    case: Case<u32>,
    /// What would become of it at the best other place that was thought of when it was judged last.
    shed_candidate: Option<ShedCandidate<usize, u32>>,
}

/// All subnets with their cases, wherever they are.
#[derive(Debug)]
pub(crate) struct Nearcrawl<'a> {
    knowledge: &'a Knowledge,
    places: Vec<u32>,
    units: Vec<Unit>,
    /// What each access point knows of its own subnets in general.
    families: Vec<Families<()>>,
    /// By access point: the variance of single sites' accesses around their subnet's.
    scatter: Vec<f64>,
    /// What is gossiped of loads, if access points can be full.
    loads: Option<Loads>,
    rng: StdRng,
    candidates: Vec<Candidate<u32>>,
}

impl<'a> Nearcrawl<'a> {
    /// The sites at their places; `limited` if access points can be full.
    pub(crate) fn new(world: &World, knowledge: &'a Knowledge, places: Vec<u32>, states: u8, limited: bool, seed: u64) -> Nearcrawl<'a> {
        let mut units: Vec<Unit> = Vec::with_capacity(world.subnets());
        for (site, place) in places.iter().enumerate() {
            let subnet = world.subnet(site) as u32;
            if units.last().is_none_or(|unit| unit.subnet != subnet) {
                units.push(Unit { place: *place, subnet, sites: Vec::new(), case: Case::new(states), shed_candidate: None });
            }
            if let Some(unit) = units.last_mut() {
                unit.sites.push((site as u32, ChangeDetector::default()));
            }
        }
        Nearcrawl {
            knowledge,
            places,
            units,
            families: vec![Families::default(); world.access_points()],
            scatter: vec![0.1; world.access_points()],
            loads: limited.then(|| Loads::new(world.access_points())),
            rng: StdRng::seed_from_u64(seed),
            candidates: Vec::new(),
        }
    }

    /// Where each site is.
    pub(crate) fn places(&self) -> &[u32] {
        &self.places
    }

    /// All sites were accessed, and took so long. Returns how many moved.
    pub(crate) fn learn(&mut self, world: &World, durations: &[f64]) -> usize {
        if let Some(loads) = &mut self.loads {
            loads.gossip(&self.places, durations);
        }
        let mut moved = 0;
        for at in 0..self.units.len() {
            self.part_from_strays(at, world, durations);
            moved += self.judge(at, world, durations);
        }
        moved + self.shed_excess_load()
    }

    /// An overloaded access point hands some sites over.
    fn shed_excess_load(&mut self) -> usize {
        let Some(mut loads) = self.loads.take() else { return 0 };
        let mut moved = 0;
        for place in 0..loads.busy.len() {
            let own = self.units.iter().filter(|unit| unit.place as usize == place);
            let candidates = own.filter_map(|unit| unit.shed_candidate).collect();
            let (busy, mean) = (loads.busy[place], loads.mean);
            for (at, to) in shed_load(busy, mean, candidates, |to, there| loads.accept(*to as usize, there, NOT_BUSY)) {
                loads.busy[place] -= self.units[at].shed_candidate.map_or(0.0, |shed_candidate| shed_candidate.here);
                moved += self.send(at, to);
            }
        }
        self.loads = Some(loads);
        moved
    }

    /// A unit goes to another place; how many sites moved.
    fn send(&mut self, at: usize, to: u32) -> usize {
        let unit = &mut self.units[at];
        (unit.place, unit.shed_candidate) = (to, None);
        unit.case.moved();
        for (site, detector) in &mut unit.sites {
            detector.restart();
            self.places[*site as usize] = to;
        }
        unit.sites.len()
    }

    /// Sites that are not of their subnet's kind are judged for themselves from now on.
    fn part_from_strays(&mut self, at: usize, world: &World, durations: &[f64]) {
        let unit = &mut self.units[at];
        let Some(usual) = unit.case.seconds(unit.place).filter(|_| unit.sites.len() > 1) else { return };
        let scatter = &mut self.scatter[unit.place as usize];
        let mut strays = Vec::new();
        unit.sites.retain_mut(|(site, detector)| {
            let off = (durations[*site as usize] / f64::from(world.sizes()[*site as usize]) / usual).ln();
            let stays = detector.add(off / scatter.sqrt(), 1.0) != Change::Slower;
            *scatter += SCATTER_SHARE * ((off * off).min(9.0 * *scatter) - *scatter);
            if !stays {
                strays.push(*site);
            }
            stays
        });
        let (place, subnet, states) = (unit.place, unit.subnet, unit.case.automaton().states());
        let stray = |site| Unit {
            place,
            subnet,
            sites: vec![(site, ChangeDetector::default())],
            case: Case::of_stray(states),
            shed_candidate: None,
        };
        self.units.extend(strays.into_iter().map(stray));
    }

    /// The owner of a unit takes in how long it took, and judges; how many sites moved.
    fn judge(&mut self, at: usize, world: &World, durations: &[f64]) -> usize {
        let unit = &mut self.units[at];
        let (mut seconds, mut work) = (0.0, 0.0);
        for (site, _) in &unit.sites {
            seconds += durations[*site as usize];
            work += f64::from(world.sizes()[*site as usize]);
        }
        self.candidates.clear();
        self.candidates.extend_from_slice(self.knowledge.few(unit.subnet as usize));
        if !self.candidates.iter().any(|candidate| candidate.arm == unit.place) {
            self.candidates.push(Candidate { arm: unit.place, prior: None, price: LoadPrice::default() });
        }
        if let Some(loads) = &self.loads {
            self.candidates.iter_mut().for_each(|candidate| candidate.price = loads.prices[candidate.arm as usize]);
        }
        let family = &mut self.families[unit.place as usize];
        let scale = family.expected_scale(&[()]);
        unit.case.accessed(unit.place, seconds / work, work, &scale);
        let judgement = unit.case.judge(unit.place, &self.candidates, ANY_GAIN, &scale, &mut self.rng);
        if let Some((level, noise)) = unit.case.level_and_noise(&self.candidates, &scale) {
            family.tell(&[()], level, noise);
        }
        let Some(there) = judgement.rival else { return 0 };
        let shed_candidate =
            ShedCandidate { unit: at, arm: there.arm, here: judgement.seconds * work, there: there.seconds * work, worth: there.worth };
        unit.shed_candidate = Some(shed_candidate);
        if judgement.verdict != Verdict::Move(there.arm) {
            return 0;
        }
        if let Some(loads) = &mut self.loads {
            if !loads.accept(shed_candidate.arm as usize, shed_candidate.there, FULL) {
                unit.case.refused(shed_candidate.arm);
                return 0;
            }
            loads.busy[unit.place as usize] -= shed_candidate.here;
        }
        self.send(at, shed_candidate.arm)
    }
}

/// What is known of how far single sites' accesses scatter around their subnet's gives way so fast.
const SCATTER_SHARE: f64 = 0.003;

/// An access point takes no more in when it is busier than the average by this share.
const FULL: f64 = 1.3;

/// Nor anything from whoever is too busy itself, when it is as busy as the average.
const NOT_BUSY: f64 = 1.0;

/// How long each access point is busy, and its price.
#[derive(Debug)]
struct Loads {
    prices: Vec<LoadPrice>,
    busy: Vec<f64>,
    mean: f64,
}

impl Loads {
    fn new(access_points: usize) -> Loads {
        Loads { prices: vec![LoadPrice::default(); access_points], busy: vec![0.0; access_points], mean: 0.0 }
    }

    /// Each access point publishes how long it was busy, and corrects its price by the others' values.
    fn gossip(&mut self, places: &[u32], durations: &[f64]) {
        self.busy.fill(0.0);
        for (place, duration) in places.iter().zip(durations) {
            self.busy[*place as usize] += duration;
        }
        self.mean = self.busy.iter().sum::<f64>() / self.busy.len() as f64;
        for (price, busy) in self.prices.iter_mut().zip(&self.busy) {
            *price = price.after(*busy, self.mean);
        }
    }

    /// Whether the access point takes in what should keep it busy for so long, if it may be so busy in all, as a share of the average.
    fn accept(&mut self, to: usize, seconds: f64, most: f64) -> bool {
        let room = self.busy[to] + seconds <= self.mean * most;
        if room {
            self.busy[to] += seconds;
        }
        room
    }
}
