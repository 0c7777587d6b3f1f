//! Which subnets without an owner are being settled here, and which ones wait for it?

use crate::delegation::procedure::Procedure;
use nearcrawl_model::{fetch::ProbeTarget, subnet::Subnet, time::Moment, url::Host};
use std::collections::{BTreeMap, VecDeque};

/// How many subnets may wait for a procedure.
pub(crate) const MAX_QUEUED: usize = 100_000;

/// The procedures that run, and those that wait for one of them to end.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    running: BTreeMap<Subnet, Procedure>,
    queue: VecDeque<(Subnet, ProbeTarget)>,
}

impl Rounds {
    /// Begins a procedure.
    pub(super) fn begin(&mut self, subnet: Subnet, procedure: Procedure) {
        self.running.insert(subnet, procedure);
    }

    /// A subnet has to wait for a procedure, unless it waits already or too many do.
    pub(super) fn enqueue(&mut self, subnet: Subnet, target: ProbeTarget) {
        if self.queue.len() < MAX_QUEUED && !self.is_queued(&subnet) {
            self.queue.push_back((subnet, target));
        }
    }

    /// The subnet that has waited longest, if fewer than `most` procedures run.
    pub(super) fn next_queued(&mut self, most: usize) -> Option<(Subnet, ProbeTarget)> {
        if self.running.len() < most { self.queue.pop_front() } else { None }
    }

    /// Ends a procedure without an owner. The subnet begins anew when its turn comes, if that is wanted.
    pub(super) fn fail(&mut self, subnet: &Subnet, anew: bool) {
        if let Some(procedure) = self.running.remove(subnet).filter(|_| anew) {
            self.queue.push_back((*subnet, procedure.into_target()));
        }
    }

    /// Ends the procedures that a claim decides: those begun for an address of its subnet.
    pub(super) fn decided(&mut self, claimed: &Subnet) {
        self.running.retain(|_, procedure| !claimed.contains(procedure.target().address.ip()));
    }

    pub(super) fn get(&self, subnet: &Subnet) -> Option<&Procedure> {
        self.running.get(subnet)
    }

    pub(super) fn get_mut(&mut self, subnet: &Subnet) -> Option<&mut Procedure> {
        self.running.get_mut(subnet)
    }

    /// The subnets whose procedures are to go on now.
    pub(super) fn due(&self, now: Moment) -> Vec<Subnet> {
        self.running.iter().filter(|(_, procedure)| procedure.is_due(now)).map(|(subnet, _)| *subnet).collect()
    }

    /// Whether a procedure runs for exactly this subnet.
    pub(crate) fn is_running(&self, subnet: &Subnet) -> bool {
        self.running.contains_key(subnet)
    }

    /// Whether exactly this subnet waits for a procedure.
    pub(crate) fn is_queued(&self, subnet: &Subnet) -> bool {
        self.queue.iter().any(|(queued, _)| queued == subnet)
    }

    /// How many procedures run.
    pub(crate) fn running(&self) -> usize {
        self.running.len()
    }

    /// How many subnets wait for a procedure.
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// The hosts on whose behalf procedures run or are waited for.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &Host> {
        let running = self.running.values().map(|procedure| &procedure.target().host);
        running.chain(self.queue.iter().map(|(_, target)| &target.host))
    }
}
