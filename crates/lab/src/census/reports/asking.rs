//! What a check of a report needs: the member to ask, the questions, and what the answers must be.

use crate::census::{reference::Reference, swarm::Swarm, world::World};

/// What is asked, and what must come.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub(crate) swarm: &'a Swarm,
    pub(crate) world: &'a World,
    pub(crate) reference: &'a Reference,
    /// The last run that is whole (from 1).
    pub(crate) run: u32,
}

impl Asking<'_> {
    /// One of the members that run; another one for each number.
    pub(super) fn member(&self, number: usize) -> usize {
        let running = self.swarm.running();
        running[number % running.len()]
    }

    pub(super) fn name(&self, member: usize) -> String {
        self.swarm.daemons[member].address.to_string()
    }
}
