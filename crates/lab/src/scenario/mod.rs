//! Scenarios: a swarm, what happens to it when, and whether it kept its promises.

mod agenda;
mod build;
mod chaos;
mod error;
pub mod file;
mod judge;
mod keys;
mod latency;
mod lies;
mod orders;
mod play;
mod read;
pub mod take_over;

pub use error::{Number, ScenarioError};
pub use judge::{Failover, Sample, Verdict, Violation};
pub use latency::Matrix;

#[cfg(test)]
mod tests;
