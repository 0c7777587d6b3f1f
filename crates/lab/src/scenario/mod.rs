//! Scenarios: a swarm, what happens to it when, and whether it kept its promises.

mod build;
mod error;
pub mod file;
mod judge;
mod keys;
mod lies;
mod play;

pub use build::Matrix;
pub use error::{Number, ScenarioError};
pub use judge::{Sample, Verdict, Violation};

#[cfg(test)]
mod tests;
