//! Histories of ownership: who had which subnet and why it let it go, as claims and the journals of previous owners tell.

use nearcrawl_model::{
    ownership_history::{Holding, OwnershipHistory},
    subnet::Subnet,
};
use std::collections::BTreeMap;

/// Subnets whose owners are remembered; beyond them those with the smallest addresses are forgotten.
pub(crate) const MAX_HISTORIES: usize = 65_536;

/// The owners that subnets had, in order.
#[derive(Debug, Default)]
pub(crate) struct OwnershipHistories {
    by_subnet: BTreeMap<Subnet, OwnershipHistory>,
}

impl OwnershipHistories {
    /// Of how many subnets something is known.
    pub(crate) fn len(&self) -> usize {
        self.by_subnet.len()
    }

    /// Who had a subnet, and why each let it go; none if that is not known here.
    pub(crate) fn of(&self, subnet: &Subnet) -> Option<&OwnershipHistory> {
        self.by_subnet.get(subnet)
    }

    /// A subnet has another owner.
    pub(crate) fn enter(&mut self, subnet: Subnet, holding: Holding) {
        self.change(subnet, |known| known.enter(holding));
    }

    /// A previous owner wrote down what it knew.
    pub(crate) fn merge(&mut self, subnet: Subnet, told: OwnershipHistory) {
        self.change(subnet, |known| known.merge(told));
    }

    /// We let a subnet go, and pass on what was learnt of it. Returns all that is known.
    pub(crate) fn leave(&mut self, subnet: Subnet, why: &str, learnt: Vec<u8>) -> OwnershipHistory {
        let known = self.by_subnet.entry(subnet).or_default();
        known.leave(why);
        known.learnt = learnt;
        known.clone()
    }

    fn change(&mut self, subnet: Subnet, change: impl FnOnce(&mut OwnershipHistory)) {
        change(self.by_subnet.entry(subnet).or_default());
        if self.by_subnet.len() > MAX_HISTORIES {
            self.by_subnet.pop_first();
        }
    }
}
