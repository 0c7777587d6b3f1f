//! What is known before the first run? Of each subnet the few access points that probes and the tree say are nearest, with an error.

use super::world::{World, normal};
use crate::logic::migration::{Candidate, LoadPrice, Prior};
use rand::{RngExt, SeedableRng, rngs::StdRng};

/// How many access points are thought of for a subnet.
pub const FEW: usize = 16;

/// Of each subnet what is foretold of a few access points, the nearest first.
#[derive(Clone, Debug)]
pub struct Knowledge {
    few: Vec<Vec<Candidate<u32>>>,
}

impl Knowledge {
    /// Of the world as it is now. `error` is the standard deviation of the logarithms of what is foretold; without one nothing is, and
    /// the few are any.
    pub fn of(world: &World, error: Option<f64>, seed: u64) -> Knowledge {
        let mut dice = StdRng::seed_from_u64(seed);
        let price = LoadPrice::default();
        let mut subnet = |subnet: usize| -> Vec<Candidate<u32>> {
            let row = world.subnet_row(subnet);
            let Some(error) = error else {
                let mut any: Vec<u32> = (0..row.len() as u32).collect();
                if any.len() > FEW {
                    for place in 0..FEW {
                        let other = dice.random_range(place..any.len());
                        any.swap(place, other);
                    }
                    any.truncate(FEW);
                }
                return any.into_iter().map(|arm| Candidate { arm, prior: None, price }).collect();
            };
            let foretold = |seconds: &f32, dice: &mut StdRng| f64::from(*seconds) * (error * normal(dice)).exp();
            let mut all: Vec<(f64, u32)> =
                row.iter().enumerate().map(|(arm, seconds)| (foretold(seconds, &mut dice), arm as u32)).collect();
            if all.len() > FEW {
                all.select_nth_unstable_by(FEW, |a, b| a.0.total_cmp(&b.0));
                all.truncate(FEW);
            }
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
            all.into_iter().map(|(seconds, arm)| Candidate { arm, prior: Some(Prior { seconds, error }), price }).collect()
        };
        Knowledge { few: (0..world.subnets()).map(&mut subnet).collect() }
    }

    /// The few access points of a subnet.
    pub fn few(&self, subnet: usize) -> &[Candidate<u32>] {
        &self.few[subnet]
    }

    /// Where each site is best by what is known: IPMicra's placement, subnet by subnet.
    pub fn placement(&self, world: &World) -> Vec<u32> {
        (0..world.sites()).map(|site| self.few[world.subnet(site)].first().map_or(0, |candidate| candidate.arm)).collect()
    }
}
