//! Delegation procedures that run here, and the subnets without an owner that wait for one.

use crate::delegation::procedure::Procedure;
use nearcrawl_model::{fetch::ProbeTarget, subnet::Subnet, time::Moment, url::Host};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How many subnets may wait for a procedure.
pub(crate) const MAX_QUEUED: usize = 100_000;

/// The procedures that run, and those that wait for one of them to end.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    running: BTreeMap<Subnet, Procedure>,
    queue: VecDeque<(Subnet, ProbeTarget)>,
    /// What is in the queue.
    queued: BTreeSet<Subnet>,
}

impl Rounds {
    /// Begins a procedure.
    pub(super) fn begin(&mut self, subnet: Subnet, procedure: Procedure) {
        self.running.insert(subnet, procedure);
    }

    /// A subnet has to wait for a procedure, unless it waits already. Whether it does now; not if too many do.
    #[must_use]
    pub(super) fn enqueue(&mut self, subnet: Subnet, target: ProbeTarget) -> bool {
        if self.is_queued(&subnet) {
            return true;
        }
        let room = self.queue.len() < MAX_QUEUED;
        if room {
            self.queue.push_back((subnet, target));
            self.queued.insert(subnet);
        }
        room
    }

    /// The subnet that has waited longest, if fewer than `most` procedures run.
    pub(super) fn next_queued(&mut self, most: usize) -> Option<(Subnet, ProbeTarget)> {
        let next = if self.running.len() < most { self.queue.pop_front() } else { None };
        if let Some((subnet, _)) = &next {
            self.queued.remove(subnet);
        }
        next
    }

    /// Ends a procedure without an owner. The subnet begins anew when its turn comes, if that is wanted. Whether there was room for it to
    /// wait.
    #[must_use]
    pub(super) fn fail(&mut self, subnet: &Subnet, anew: bool) -> bool {
        let failed = self.running.remove(subnet).filter(|_| anew);
        failed.is_none_or(|procedure| self.enqueue(*subnet, procedure.into_target()))
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
        self.queued.contains(subnet)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delegation::Policy;
    use nearcrawl_model::time::Now;

    fn procedure(number: u32) -> (Subnet, ProbeTarget) {
        let [_, a, b, c] = number.to_be_bytes();
        let address = std::net::Ipv4Addr::new(10 + a, b, c, 0);
        let subnet = format!("{address}/24").parse().unwrap();
        (subnet, ProbeTarget { address: (address, 80).into(), host: "a.ke".parse().unwrap(), secure: false })
    }

    fn begin(rounds: &mut Rounds, number: u32) -> Subnet {
        let (subnet, target) = procedure(number);
        rounds.begin(subnet, Procedure::new(Policy::Ipmicra { threshold_us: 1 }, subnet, target, Now::default(), Moment(0)));
        subnet
    }

    #[test]
    fn a_search_that_fails_waits_once_for_its_next_turn() {
        let mut rounds = Rounds::default();
        let subnet = begin(&mut rounds, 1);
        let (_, target) = procedure(1);
        assert!(rounds.enqueue(subnet, target) && rounds.fail(&subnet, true));
        assert_eq!((rounds.running(), rounds.queued()), (0, 1));
        assert_eq!(rounds.next_queued(1).map(|(next, _)| next), Some(subnet));
        assert_eq!((rounds.is_queued(&subnet), rounds.next_queued(1)), (false, None));
        let subnet = begin(&mut rounds, 1);
        assert!(rounds.fail(&subnet, false));
        assert_eq!(rounds.queued(), 0, "it has an owner");
    }

    #[test]
    fn searches_that_fail_do_not_lengthen_the_queue_beyond_its_limit() {
        let mut rounds = Rounds::default();
        for number in 0..MAX_QUEUED as u32 {
            let (subnet, target) = procedure(number);
            assert!(rounds.enqueue(subnet, target));
        }
        let failing = begin(&mut rounds, MAX_QUEUED as u32);
        assert!(!rounds.fail(&failing, true));
        assert_eq!((rounds.running(), rounds.queued()), (0, MAX_QUEUED));
    }
}
