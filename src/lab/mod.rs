//! The wind tunnel: the same logic in simulated worlds.

pub mod cache;
pub mod delegation;
pub mod depth;
pub mod migration;
pub mod reading;
pub mod swarm;
pub mod web;
