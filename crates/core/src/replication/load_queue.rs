//! Queue of subnets that became ours and whose journals are not asked for yet.
//!
//! A member that dies may leave a hundred thousand subnets to one successor, and at a start all of ours are read. Each load is an order to
//! the store and a transfer from each member that has rows, so only so many are under way at once and the others wait here, in order.

use super::awaited_replicas::AwaitedReplicas;
use crate::ownership::claims::JournalsAt;
use nearcrawl_model::{access_point::AccessPoint, replica::NamedReplica, subnet::Subnet, vote::InheritedReplicas};
use std::collections::BTreeMap;

/// Subnets whose journals are fetched or read at a time. At the store they fill its queue and no more; of the transfers most wait for their
/// turn. There are more of them than transfers so that replicas which do not answer (20 s each) do not hold up the others.
pub(crate) const MAX_LOADS: usize = 1_024;

/// What waits, each subnet once. Every entry is a claim of ours, so the limit of claims limits this as well.
#[derive(Debug, Default)]
pub(super) struct LoadQueue {
    turns: BTreeMap<u64, Subnet>,
    waiting: BTreeMap<Subnet, (u64, JournalsAt, AwaitedReplicas)>,
    next_turn: u64,
}

impl LoadQueue {
    /// A subnet waits behind all others; one that waits already keeps its turn.
    pub(super) fn push(&mut self, subnet: Subnet, from: JournalsAt, awaited: AwaitedReplicas) {
        let turn = self.waiting.get(&subnet).map_or(self.next_turn, |(turn, ..)| *turn);
        self.next_turn = self.next_turn.max(turn.saturating_add(1));
        self.turns.insert(turn, subnet);
        self.waiting.insert(subnet, (turn, from, awaited));
    }

    /// Takes the subnet that has waited longest.
    pub(super) fn pop(&mut self) -> Option<(Subnet, JournalsAt, AwaitedReplicas)> {
        let (_, subnet) = self.turns.pop_first()?;
        self.waiting.remove(&subnet).map(|(_, from, awaited)| (subnet, from, awaited))
    }

    /// A subnet is not ours any more. Returns whom it waits for.
    pub(super) fn remove(&mut self, subnet: &Subnet) -> Option<AwaitedReplicas> {
        let (turn, _, awaited) = self.waiting.remove(subnet)?;
        self.turns.remove(&turn);
        Some(awaited)
    }

    /// Voters told who has all.
    pub(super) fn learn(&mut self, own: NamedReplica, sets: &[InheritedReplicas]) {
        for (_, _, awaited) in self.waiting.values_mut() {
            awaited.learn(sets);
            awaited.heard(own.member, own.store);
        }
    }

    /// These members will not come back.
    pub(super) fn declare_lost(&mut self, lost: &[AccessPoint]) {
        for (_, _, awaited) in self.waiting.values_mut() {
            awaited.declare_lost(lost);
        }
    }

    /// Whether a subnet waits.
    pub(super) fn contains(&self, subnet: &Subnet) -> bool {
        self.waiting.contains_key(subnet)
    }

    /// How many subnets wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}
