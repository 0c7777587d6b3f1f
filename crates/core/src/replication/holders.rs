//! Finds the members that have rows of subnets that became ours.
//!
//! All living members are asked, but one question is about as many subnets as are being loaded and is answered from memory; rows are sent
//! by those that have some.

use nearcrawl_model::{
    access_point::AccessPoint,
    replica::{MAX_SUBNETS_ASKED, StoreId},
    subnet::Subnet,
};
use std::collections::{BTreeMap, BTreeSet};

/// Questions that are to be asked and those under way, one a member. There are no more than members asked times
/// [`MAX_LOADS`](super::MAX_LOADS).
#[derive(Debug, Default)]
pub(super) struct Holders {
    wanted: BTreeMap<AccessPoint, BTreeSet<Subnet>>,
    busy: BTreeSet<AccessPoint>,
    /// Which database those use that answered last, as long as subnets are being loaded.
    stores: BTreeMap<AccessPoint, StoreId>,
}

impl Holders {
    /// A member is to be asked about a subnet.
    pub(super) fn want(&mut self, member: AccessPoint, subnet: Subnet) {
        self.wanted.entry(member).or_default().insert(subnet);
    }

    /// The questions that are asked now; not about subnets that are `over`.
    pub(super) fn next(&mut self, over: impl Fn(&Subnet) -> bool) -> Vec<(AccessPoint, Vec<Subnet>)> {
        let mut questions = Vec::new();
        for (member, wanted) in self.wanted.iter_mut().filter(|(member, _)| !self.busy.contains(member)) {
            wanted.retain(|subnet| !over(subnet));
            let mut subnets = Vec::new();
            while subnets.len() < MAX_SUBNETS_ASKED
                && let Some(subnet) = wanted.pop_first()
            {
                subnets.push(subnet);
            }
            if !subnets.is_empty() {
                questions.push((*member, subnets));
            }
        }
        self.wanted.retain(|_, wanted| !wanted.is_empty());
        self.busy.extend(questions.iter().map(|(member, _)| *member));
        questions
    }

    /// A member answered, or did not.
    pub(super) fn answered(&mut self, member: AccessPoint, store: Option<StoreId>) {
        self.busy.remove(&member);
        if let Some(store) = store {
            self.stores.insert(member, store);
        }
    }

    /// Which database a member uses, as it said last.
    pub(super) fn store_of(&self, member: &AccessPoint) -> Option<StoreId> {
        self.stores.get(member).copied()
    }

    /// Nothing is being loaded any more.
    pub(super) fn end(&mut self) {
        self.wanted.clear();
        self.stores.clear();
    }
}
