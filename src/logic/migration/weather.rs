//! Does what surprised today last until tomorrow? On real paths delays come and go like weather; a subnet learns how long it holds.
//!
//! Surprises that tend to be followed by their like tell little of a change, but much of the next access: it pays to go elsewhere until it is over.

use serde::{Deserialize, Serialize};

/// So many accesses without persistence are believed before any was seen.
const BEFOREHAND: f64 = 5.0;

/// A calm access counts like a surprise of so much (squared) that was not followed by another: otherwise the first change after a calm would
/// pass for weather.
const CALM: f64 = 0.3;

/// What lies further back than the latest hundred accesses or so counts less and less.
const KEPT: f64 = 0.99;

/// More persistence is not believed: it would be a change.
const MOST: f64 = 0.9;

/// How far surprises are believed, in standard deviations.
const LARGEST: f64 = 4.0;

/// How surprises of one subnet follow each other, in standard deviations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Weather {
    products: f32,
    squares: f32,
}

impl Weather {
    /// Takes in two surprises of one arm, one right after the other.
    pub fn add(&mut self, before: f64, after: f64) {
        let (before, after) = (before.clamp(-LARGEST, LARGEST), after.clamp(-LARGEST, LARGEST));
        self.products = (KEPT * f64::from(self.products) + before * after) as f32;
        self.squares = (KEPT * f64::from(self.squares) + ((before * before + after * after) / 2.0).max(CALM)) as f32;
    }

    /// Which share of a surprise is expected again at the next access.
    pub fn persistence(&self) -> f64 {
        (f64::from(self.products) / (f64::from(self.squares) + BEFOREHAND)).clamp(0.0, MOST)
    }

    /// What is left of a surprise at the next access, that many accesses after it was met.
    pub fn left_of(&self, gust: f64, accesses: u32) -> f64 {
        gust.clamp(-LARGEST, LARGEST) * self.persistence().powf(f64::from(accesses) + 1.0)
    }

    /// How many accesses count for one: those of the same weather tell the same.
    pub fn repetition(&self) -> f64 {
        let persistence = self.persistence();
        (1.0 + persistence) / (1.0 - persistence)
    }

    /// What is saved by being there while the weather lasts, in accesses of the present arm's usual length: here it blows by `here`, there by
    /// `there` (natural logarithms), and it usually takes `longer` there (logarithm).
    pub fn saves(&self, here: f64, there: f64, longer: f64) -> f64 {
        (here.exp_m1() - longer.exp() * there.exp_m1()) / (1.0 - self.persistence())
    }
}
