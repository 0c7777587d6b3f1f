//! Parents and children of a subnet, and the way up from it.
//!
//! Everything beneath a level is one range of positions, so that nothing needs to be collected.

use super::{
    layout::Section,
    lookup::NOBODY,
    tree::{Hierarchy, Position, Step, StepKind},
};
use std::ops::Range;

impl Hierarchy {
    /// The smallest subnet that covers this one, if there is one.
    pub fn parent(&self, position: Position) -> Option<Position> {
        let parent = self.parent_of(position.0);
        (parent != NOBODY).then_some(Position(parent))
    }

    /// The subnet itself and everything nested in it.
    pub fn beneath(&self, position: Position) -> Range<u32> {
        let covering = self.prefix(position.0);
        let (mut low, mut high) = (position.0 + 1, group(self.numbers(Section::OrganisationStarts), position.0, self.len()).end);
        while low < high {
            let middle = low + (high - low) / 2;
            if covering.covers(&self.prefix(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        position.0..low
    }

    /// The way up from a subnet (IPMicra §4.2, steps 3 to 5), from its parent to the root. Each range contains the one before and
    /// the subnet itself; the last is everything.
    pub fn climb(&self, position: Position) -> Vec<Step> {
        let mut steps = Vec::with_capacity(8);
        let mut at = position;
        while let Some(parent) = self.parent(at) {
            steps.push(Step { kind: StepKind::Nested, range: self.beneath(parent) });
            at = parent;
        }
        let levels = [
            (StepKind::Organisation, Section::OrganisationStarts),
            (StepKind::Country, Section::CountryStarts),
            (StepKind::Registry, Section::RegistryStarts),
        ];
        steps.extend(levels.map(|(kind, starts)| Step { kind, range: group(self.numbers(starts), at.0, self.len()) }));
        steps.push(Step { kind: StepKind::Root, range: 0..self.len() });
        steps
    }

    /// The subnets directly within this one, in address order.
    pub fn children(&self, position: Position) -> impl Iterator<Item = Position> + '_ {
        let beneath = self.beneath(position);
        self.outermost(beneath.start + 1..beneath.end)
    }

    /// Of a range of positions that ends where something ends, the subnets that lie in no other of the range.
    fn outermost(&self, range: Range<u32>) -> impl Iterator<Item = Position> + '_ {
        let mut next = range.start;
        std::iter::from_fn(move || {
            let here = (next < range.end).then_some(Position(next))?;
            next = self.beneath(here).end;
            Some(here)
        })
    }
}

/// The group around `position`, of groups that begin at `starts` and fill 0 to `len`.
fn group(starts: &[u32], position: u32, len: u32) -> Range<u32> {
    let after = starts.partition_point(|s| *s <= position);
    starts[after - 1]..starts.get(after).copied().unwrap_or(len)
}
