//! The laboratory: the same decisions in simulated worlds, the experiments of the papers, and the demonstration with real daemons.

#![warn(unreachable_pub)]

pub mod cache;
pub mod census;
pub mod delegation;
pub mod demo;
pub mod depth;
pub mod map;
pub mod migration;
pub mod nat;
pub mod oracle;
pub mod reading;
mod rng;
pub mod scenario;
pub mod stranger;
pub mod swarm;
pub mod web;
