//! How does a whole swarm behave? Many minds on one virtual clock, with a network, disks, name servers and a web that are made up.
//!
//! Everything is seeded and ordered: equal worlds run equally, event by event. What the real hands do is done here in the same order
//! and with the same rules, only without the machine: a kill loses what was not yet durable, a partition swallows questions, a copy
//! goes out in pieces. What the web servers see is written down and can be judged: [`ledger`].

pub mod disk;
mod hands;
mod happening;
pub mod ledger;
mod network;
pub mod reference;
pub mod trial;
pub mod web;
mod world;

#[cfg(test)]
mod tests;

pub use world::{Ways, World, WorldConfig};
