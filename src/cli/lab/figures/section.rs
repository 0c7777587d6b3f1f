//! Sections of the page of figures, and how much is computed for each.

use crate::cli::chart::Chart;
use std::num::NonZero;

/// How much is computed.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Whether it is to be quick.
    pub is_quick: bool,
    /// The first seed.
    pub seed: u64,
    /// At once.
    pub processors: NonZero<usize>,
}

impl Effort {
    /// The first number, or the second one if it is to be quick.
    pub fn of(self, whole: usize, quick: usize) -> usize {
        if self.is_quick { quick } else { whole }
    }

    /// The seeds of so many runs, or of fewer.
    pub fn seeds(self, whole: usize, quick: usize) -> Vec<u64> {
        (0..self.of(whole, quick) as u64).map(|number| self.seed + number).collect()
    }
}

/// What stands together on the page.
#[derive(Debug, Default)]
pub struct Section {
    /// What it is about.
    pub title: String,
    /// What the paper says, in its words.
    pub paper: &'static str,
    /// What was measured here, and how it differs.
    pub here: String,
    /// Headings, then rows.
    pub table: Vec<Vec<String>>,
    /// The figures.
    pub charts: Vec<Chart>,
}
