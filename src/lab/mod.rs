//! The wind tunnel: the same logic in simulated worlds.

pub mod delegation;
pub mod swarm;
