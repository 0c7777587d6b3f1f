//! Scenarios: a swarm, what happens to it when, and whether it kept its promises.

pub mod file;
mod keys;

#[cfg(test)]
mod tests;
