//! Limits on what evaluating one page may cost.
//!
//! Whatever can be repeated more often than the page has bytes counts its steps here, and what is kept of style
//! sheets its parts. A page that uses them up is refused: what was found in it until then proves nothing.

use std::cell::Cell;

/// The steps of visiting a node: it is asked for several attributes.
pub(super) const VISIT: usize = 16;

/// A step is one comparison of a name, or so many bytes of a value that is read.
const BYTES_A_STEP: usize = 4;

/// To find one of fewer attributes is part of the visit. Of more attributes, so many are a step.
const ATTRIBUTES_A_STEP: usize = 4;

/// So many compounds and tests of those selectors are kept whose rules hide; each takes up to 600 bytes of memory with its place in the
/// tables.
pub(super) const MAX_SELECTOR_PARTS: usize = 50_000;

/// What a page has left.
#[derive(Debug)]
pub(super) struct Work {
    steps: Cell<usize>,
    selector_parts: Cell<usize>,
}

impl Work {
    /// For a page that may take so many steps.
    pub(super) fn new(steps: usize) -> Work {
        Work { steps: Cell::new(steps), selector_parts: Cell::new(MAX_SELECTOR_PARTS) }
    }

    /// Takes so many steps; false when the limit is reached.
    pub(super) fn spend(&self, steps: usize) -> bool {
        self.steps.set(self.steps.get().saturating_sub(steps));
        !self.is_spent()
    }

    /// Takes the steps of reading a text; false when the limit is reached.
    pub(super) fn read(&self, text: &str) -> bool {
        text.len() < BYTES_A_STEP || self.spend(text.len() / BYTES_A_STEP)
    }

    /// Takes the steps of finding one of so many attributes; false when the limit is reached.
    pub(super) fn look_up(&self, attributes: usize) -> bool {
        attributes < ATTRIBUTES_A_STEP || self.spend(attributes / ATTRIBUTES_A_STEP)
    }

    /// Counts one more part of a selector; false, and nothing is left of anything, when the limit is passed.
    pub(super) fn keep_part(&self) -> bool {
        match self.selector_parts.get().checked_sub(1) {
            Some(left) => self.selector_parts.set(left),
            None => self.steps.set(0),
        }
        !self.is_spent()
    }

    /// Whether more was to be looked at than is.
    pub(super) fn is_spent(&self) -> bool {
        self.steps.get() == 0
    }
}

#[cfg(test)]
impl Default for Work {
    fn default() -> Self {
        Work::new(super::limits::MAX_STEPS)
    }
}
