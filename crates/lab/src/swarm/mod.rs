//! A simulated swarm: many crawlers on one virtual clock, with simulated network, disks, name servers and web.
//!
//! Everything is seeded and ordered: equal worlds run equally, event by event. Commands are carried out in the order and by the rules of the
//! daemon's executor, without its machine: a kill loses what was not yet durable, a partition swallows questions, a copy
//! goes out in pieces. What the web servers see is written down and can be judged: [`ledger`].

mod disk;
mod executor;
pub mod ledger;
mod network;
#[cfg(test)]
mod reference;
mod sim_event;
pub mod trial;
mod world;

#[cfg(test)]
mod tests;

pub use world::{Latencies, World, WorldConfig};
