//! Owners by position in the hierarchy.

use crate::ownership::register::Register;
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{access_point::AccessPoint, claim::Claim};
use std::{collections::BTreeMap, ops::Range};

/// Which positions of the hierarchy are delegated, and to whom: the hierarchy "populated" with crawlers (IPMicra §4.1).
///
/// Positions number the subnets depth first, so all that lies beneath any node is one range.
#[derive(Clone, Debug, Default)]
pub struct Delegated {
    by_position: BTreeMap<u32, AccessPoint>,
}

impl Delegated {
    /// Notes who holds the subnet at this position from now on; none if no member does.
    pub fn set(&mut self, position: u32, owner: Option<AccessPoint>) {
        match owner {
            Some(owner) => self.by_position.insert(position, owner),
            None => self.by_position.remove(&position),
        };
    }

    /// Who holds the subnet at this position.
    pub fn at(&self, position: u32) -> Option<AccessPoint> {
        self.by_position.get(&position).copied()
    }

    /// Who holds what lies in this range, in address order, with repetitions.
    pub fn beneath(&self, range: Range<u32>) -> impl Iterator<Item = AccessPoint> + '_ {
        self.by_position.range(range).map(|(_, owner)| *owner)
    }

    /// Notes a claim that holds. Who holds a part of a subnet stands for it until a member holds the whole: the paper's procedure asks
    /// there first.
    pub(crate) fn populate(&mut self, hierarchy: &Hierarchy, register: &Register, claim: &Claim) {
        let whole = hierarchy.position(claim.subnet);
        let Some(position) = whole.or_else(|| hierarchy.locate(claim.subnet.first())) else { return };
        let held = self.at(position.0);
        match whole {
            Some(_) => self.set(position.0, (!claim.released).then_some(claim.owner)),
            None if claim.released && held == Some(claim.owner) => self.set(position.0, None),
            None if claim.released => {}
            None => {
                let around = register.claim(&hierarchy.subnet(position));
                self.set(position.0, Some(around.map_or(claim.owner, |around| around.owner)));
            }
        }
    }
}
