//! Weights of rows.
//!
//! At an address with many hosts of which not all were visited those visited are a random sample, and each stands for as many of those
//! that the report is of as these are for each one in the sample (docs/ALGORITHMS.md, "Addresses with many hosts").

use super::{document::Cell, interval::wilson};
use crate::cli::chart::Bar;

/// Servers: how many there are, and how many they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Weighed {
    /// How many were counted.
    pub count: u64,
    sum: f64,
    squares: f64,
}

impl Weighed {
    /// One more, which stands for so many.
    pub fn add(&mut self, weight: f64) {
        self.count += 1;
        self.sum += weight;
        self.squares += weight * weight;
    }

    /// So many that stand for themselves.
    pub fn of(count: u64) -> Weighed {
        Weighed { count, sum: count as f64, squares: count as f64 }
    }

    /// How many servers of equal weight say as much (Kish): the variance of a weighted mean is that of so many.
    pub fn effective(&self) -> f64 {
        if self.squares > 0.0 { self.sum * self.sum / self.squares } else { 0.0 }
    }
}

/// The share that some servers make of all.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    these: u64,
    all: u64,
    /// The share with its 95 % interval; none of nothing.
    value: Option<[f64; 3]>,
}

impl Share {
    /// Each with its weight.
    pub fn of(these: &Weighed, all: &Weighed) -> Share {
        let value = (all.sum > 0.0).then(|| {
            let share = (these.sum / all.sum).min(1.0);
            let (low, high) = wilson(share, all.effective());
            [share, low, high]
        });
        Share { these: these.count, all: all.count, value }
    }

    /// The share and its interval in a table.
    pub fn cells(&self) -> [Cell; 3] {
        self.value.map_or([Cell::Nothing, Cell::Nothing, Cell::Nothing], |value| value.map(Cell::Share))
    }

    /// The same in a figure.
    pub fn bar(&self, name: &str) -> Bar {
        let [value, low, high] = self.value.unwrap_or([0.0, 0.0, 1.0]);
        let note = format!("{} of {}", self.these, self.all);
        Bar { name: name.to_owned(), value, interval: (low, high), middle: None, note }
    }
}
