//! What is known before the first run: of each subnet what probes and the tree foretell of every access point, with an error.
//!
//! Half of the error's variance is the server's, and the same from everywhere: how fast it answers is not known before it was crawled.
//! The other half is the path's.

use super::world::World;
use crate::rng::normal;
use nearcrawl_core::migration::{Candidate, LoadPrice, Prior};
use rand::{SeedableRng, rngs::StdRng, seq::SliceRandom};

/// How many access points are thought of for a subnet.
pub(crate) const FEW: usize = 16;

/// What IPMicra's procedure takes as near enough: seconds predicted for a unit of work.
pub(super) const THRESHOLD: f64 = 1.5;

/// Of each subnet what is predicted of a few access points, the nearest first.
#[derive(Clone, Debug)]
pub(crate) struct Knowledge {
    few: Vec<Vec<Candidate<u32>>>,
    ipmicra: Vec<u32>,
}

impl Knowledge {
    /// Of the world as it is now. `error` is the standard deviation of the logarithms of what is predicted; without one nothing is, and
    /// the few are any.
    pub(crate) fn of(world: &World, error: Option<f64>, seed: u64) -> Knowledge {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut order: Vec<u32> = (0..world.access_points() as u32).collect();
        let mut knowledge = Knowledge { few: Vec::with_capacity(world.subnets()), ipmicra: Vec::with_capacity(world.subnets()) };
        for subnet in 0..world.subnets() {
            order.shuffle(&mut rng);
            let candidate = |arm: u32, prior| Candidate { arm, prior, price: LoadPrice::default() };
            let Some(error) = error else {
                knowledge.few.push(order.iter().take(FEW).map(|arm| candidate(*arm, None)).collect());
                knowledge.ipmicra.push(order[0]);
                continue;
            };
            let part = error * 0.5_f64.sqrt();
            let (row, server) = (world.subnet_row(subnet), part * normal(&mut rng));
            let mut all: Vec<(f64, u32)> = Vec::with_capacity(row.len());
            all.extend(order.iter().map(|arm| (f64::from(row[*arm as usize]) * (server + part * normal(&mut rng)).exp(), *arm)));
            let near_enough = all.iter().find(|(seconds, _)| *seconds <= THRESHOLD).copied();
            if all.len() > FEW {
                all.select_nth_unstable_by(FEW, |a, b| a.0.total_cmp(&b.0));
                all.truncate(FEW);
            }
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
            knowledge.ipmicra.push(near_enough.unwrap_or(all[0]).1);
            knowledge.few.push(all.into_iter().map(|(seconds, arm)| candidate(arm, Some(Prior { seconds, error }))).collect());
        }
        knowledge
    }

    /// The few access points of a subnet.
    pub(crate) fn few(&self, subnet: usize) -> &[Candidate<u32>] {
        &self.few[subnet]
    }

    /// IPMicra's placement: access points are asked in any order, and the first that is near enough gets the subnet, else the nearest.
    pub(crate) fn placement(&self, world: &World) -> Vec<u32> {
        (0..world.sites()).map(|site| self.ipmicra[world.subnet(site)]).collect()
    }
}
