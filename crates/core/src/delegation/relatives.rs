//! Priors for the location of a subnet from its relatives: what was settled of blocks, organisations and countries.
//!
//! Shrinkage up the tree, as a chain of Dirichlet priors: what is expected of a subnet is what is known of it, as far as
//! anything is, and else what is expected of the next larger group. The chain is: the world, country, organisation, delegated
//! block, nested networks, the subnet itself.

use super::chart::{Chart, Whereabouts};
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::subnet::Subnet;
use std::collections::BTreeMap;

/// How many settled subnets of a group weigh as much as what is expected of the larger group: the world, a country, and below.
const WORLD_INERTIA: f32 = 10.0;
const COUNTRY_INERTIA: f32 = 3.0;
const INERTIA: f32 = 1.0;

/// How much of what is registered in a country is thought to be anywhere in the world. Registries name the holder's country, and
/// large holders are everywhere.
const SHARE_ABROAD: f32 = 0.1;

/// A group of subnets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    World,
    Country([u8; 2]),
    /// Its number in the hierarchy at hand.
    Organisation(u32),
    Block(Subnet),
}

/// How often each group's subnets were found near each landmark.
#[derive(Clone, Debug, Default)]
pub(super) struct Relatives {
    found: BTreeMap<Group, BTreeMap<u32, f32>>,
}

/// The groups that a subnet belongs to, the largest first.
fn groups(hierarchy: &Hierarchy, subnet: Subnet) -> Vec<Group> {
    let mut groups = vec![Group::Block(subnet)];
    // A part of a registered subnet belongs to all that the registered one belongs to.
    let position = hierarchy.position(subnet).or_else(|| hierarchy.locate(subnet.first()));
    if let Some(position) = position {
        let around = std::iter::successors(Some(position), |position| hierarchy.parent(*position)).map(|p| hierarchy.subnet(p));
        groups.extend(around.filter(|block| *block != subnet).map(Group::Block));
        groups.push(Group::Organisation(hierarchy.organisation(position).0));
        if let Ok(country) = hierarchy.country(position).as_bytes().try_into() {
            groups.push(Group::Country(country));
        }
    }
    groups.push(Group::World);
    groups.reverse();
    groups
}

impl Relatives {
    /// Notes where a subnet was found.
    pub(super) fn add(&mut self, hierarchy: &Hierarchy, subnet: Subnet, here: &Whereabouts) {
        for group in groups(hierarchy, subnet) {
            let found = self.found.entry(group).or_default();
            for (landmark, weight) in here {
                *found.entry(*landmark).or_default() += weight;
            }
        }
    }

    /// Takes back what [`Relatives::add`] noted.
    pub(super) fn remove(&mut self, hierarchy: &Hierarchy, subnet: Subnet, here: &Whereabouts) {
        for group in groups(hierarchy, subnet) {
            let Some(found) = self.found.get_mut(&group) else { continue };
            for (landmark, weight) in here {
                if let Some(sum) = found.get_mut(landmark) {
                    *sum -= weight;
                }
            }
            found.retain(|_, sum| *sum > 1e-4);
            if found.is_empty() {
                self.found.remove(&group);
            }
        }
    }

    /// How likely a subnet is near each landmark, before it was ever asked.
    pub(super) fn expected_nearness(&self, chart: &Chart, hierarchy: &Hierarchy, subnet: Subnet) -> Vec<f32> {
        let mut expected = chart.anywhere().to_vec();
        for group in groups(hierarchy, subnet) {
            let inertia = match group {
                Group::World => WORLD_INERTIA,
                Group::Country(country) => {
                    if let Some(country) = chart.country(country) {
                        for (expected, within) in expected.iter_mut().zip(country) {
                            *expected = SHARE_ABROAD * *expected + (1.0 - SHARE_ABROAD) * within;
                        }
                    }
                    COUNTRY_INERTIA
                }
                Group::Organisation(_) | Group::Block(_) => INERTIA,
            };
            let Some(found) = self.found.get(&group) else { continue };
            let whole: f32 = found.values().sum::<f32>() + inertia;
            expected.iter_mut().for_each(|weight| *weight *= inertia / whole);
            for (landmark, weight) in found {
                if let Some(expected) = expected.get_mut(*landmark as usize) {
                    *expected += weight / whole;
                }
            }
        }
        expected
    }
}
