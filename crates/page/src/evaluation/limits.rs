//! Limits on the cost of evaluating a page.

use std::time::Duration;

/// The steps of a page, usually: enough to visit 2 million nodes, or to compare 32 million classes.
pub(super) const MAX_STEPS: usize = 32_000_000;

/// What a page may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of its text.
    pub bytes: usize,
    /// Attributes of one tag.
    pub attributes: usize,
    /// Attributes of all elements in its tree. What is left open is opened anew in each paragraph, with all its attributes.
    pub all_attributes: usize,
    /// How deep its elements may lie in one another.
    pub depth: usize,
    /// Elements in its tree.
    pub elements: usize,
    /// For making the tree. Depth, number of elements and of attributes bound it; this is for what nobody thought of.
    pub time: Duration,
    /// Steps of comparing style sheets with its tree, and of looking for failures in that: comparisons of names, nodes that are visited (16
    /// steps each), and values that are read (a step for every 4 bytes).
    pub steps: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            bytes: 1 << 20,
            attributes: 200,
            // A page of 1 MiB in which nothing is opened anew has no room for more.
            all_attributes: 1 << 19,
            depth: 128,
            elements: 100_000,
            time: Duration::from_millis(500),
            steps: MAX_STEPS,
        }
    }
}
