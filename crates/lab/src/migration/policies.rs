//! The rules of migration that are compared, with their state.

use super::{nearcrawl::Nearcrawl, oma::Partition, world::World};
use nearcrawl_core::migration::{Automaton, twoma};
use rand::{SeedableRng, rngs::StdRng, seq::SliceRandom};
use std::fmt;

/// A rule of migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The automaton before the paper's: it ignores times and considers only which objects are accessed together (TW-1).
    Oma,
    /// The paper's TWOMA (TW-10 to TW-22).
    Twoma,
    /// The daemon's rule.
    Nearcrawl,
    /// The baseline: every site stays where it is.
    Uniform,
    /// The optimum: it knows all times, and moves every site at once.
    Oracle,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 5] = [Policy::Oma, Policy::Twoma, Policy::Nearcrawl, Policy::Uniform, Policy::Oracle];
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Policy::Oma => "oma",
            Policy::Twoma => "twoma",
            Policy::Nearcrawl => "nearcrawl",
            Policy::Uniform => "uniform",
            Policy::Oracle => "oracle",
        })
    }
}

/// One rule at work in one world.
#[derive(Debug)]
pub(crate) enum RuleState<'a> {
    /// Objects that are accessed together, drawn in pairs: it ignores times.
    Oma(Partition, StdRng),
    /// Each site with its automaton.
    Twoma(Twoma),
    /// Each subnet with its case.
    Nearcrawl(Box<Nearcrawl<'a>>),
    /// Each site's place, which never changes.
    Uniform(Vec<u32>),
    /// Each site's best place.
    Oracle(Vec<u32>),
}

impl RuleState<'_> {
    /// Where each site is.
    pub(crate) fn places(&self) -> Vec<u32> {
        match self {
            RuleState::Oma(partition, _) => partition.arms().iter().map(|arm| *arm as u32).collect(),
            RuleState::Twoma(twoma) => twoma.places.clone(),
            RuleState::Nearcrawl(nearcrawl) => nearcrawl.places().to_vec(),
            RuleState::Uniform(places) | RuleState::Oracle(places) => places.clone(),
        }
    }

    /// All sites were accessed, and took so long from where they are. Returns how many moved.
    pub(crate) fn learn(&mut self, world: &World, durations: &[f64], best: &[u32]) -> usize {
        match self {
            RuleState::Oma(partition, rng) => {
                let mut order: Vec<usize> = (0..world.sites()).collect();
                order.shuffle(rng);
                order.chunks_exact(2).map(|pair| partition.pair(pair[0], pair[1])).sum()
            }
            RuleState::Twoma(twoma) => twoma.learn(world.access_points(), durations),
            RuleState::Nearcrawl(nearcrawl) => nearcrawl.learn(world, durations),
            RuleState::Uniform(_) => 0,
            RuleState::Oracle(places) => {
                let moved = places.iter().zip(best).filter(|(place, best)| place != best).count();
                places.copy_from_slice(best);
                moved
            }
        }
    }
}

/// The paper's rule: all sites of a run are accessed and measured, then all are answered (TW-11, TW-21).
#[derive(Debug)]
pub(crate) struct Twoma {
    places: Vec<u32>,
    automata: Vec<Automaton>,
    rng: StdRng,
}

impl Twoma {
    /// All at the boundary of where they are.
    pub(crate) fn new(places: Vec<u32>, states: u8, seed: u64) -> Twoma {
        Twoma { automata: vec![Automaton::new(states); places.len()], places, rng: StdRng::seed_from_u64(seed) }
    }

    fn learn(&mut self, access_points: usize, durations: &[f64]) -> usize {
        let mut sums = vec![(0.0, 0_u32); access_points];
        for (place, duration) in self.places.iter().zip(durations) {
            let (sum, count) = &mut sums[*place as usize];
            *sum += duration;
            *count += 1;
        }
        let averages: Vec<f64> = sums.iter().map(|(sum, count)| sum / f64::from(*count)).collect();
        let arms: Vec<u32> = (0..access_points as u32).collect();
        let mut moves = 0;
        for (site, duration) in durations.iter().enumerate() {
            let place = &mut self.places[site];
            if self.automata[site].answer(twoma::answer(*duration, averages[*place as usize]))
                && let Some(other) = twoma::elsewhere(*place, &arms, &mut self.rng)
            {
                *place = other;
                self.automata[site].to_boundary();
                moves += 1;
            }
        }
        moves
    }
}

/// Where sites are at first: the subnets evenly over the access points, drawn.
pub(crate) fn uniform(world: &World, seed: u64) -> Vec<u32> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut of_subnet: Vec<u32> = (0..world.subnets()).map(|subnet| (subnet % world.access_points()) as u32).collect();
    of_subnet.shuffle(&mut rng);
    (0..world.sites()).map(|site| of_subnet[world.subnet(site)]).collect()
}
