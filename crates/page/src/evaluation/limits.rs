//! Limits on the cost of evaluating a page.

use std::time::Duration;

/// What a page may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of its text.
    pub bytes: usize,
    /// Attributes of one tag.
    pub attributes: usize,
    /// How deep its elements may lie in one another.
    pub depth: usize,
    /// Elements in its tree.
    pub elements: usize,
    /// For making the tree. Depth and number of elements bound it; this is for what nobody thought of.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { bytes: 1 << 20, attributes: 200, depth: 128, elements: 100_000, time: Duration::from_millis(500) }
    }
}
