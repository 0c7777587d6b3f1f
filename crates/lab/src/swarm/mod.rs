//! A simulated swarm: many crawlers on one virtual clock, with simulated network, disks, name servers and web.
//!
//! Everything is seeded and ordered: equal worlds run equally, event by event. Commands are carried out in the order and by the rules of
//! the daemon's executor, without its machine: a kill loses what was not yet durable, a partition swallows questions, a copy goes out in
//! pieces. What the web servers see is written down and can be judged: [`ledger`].
//!
//! `world`, `network`, `executor`, `sim_event` and `faults` use each other: they are one machine, the world, in which each event has
//! something carried out that schedules further events, and faults keep back some of both.

mod clocks;
mod disk;
mod executor;
mod faults;
pub mod ledger;
mod network;
mod played;
pub(crate) mod records;
#[cfg(test)]
mod reference;
mod sim_event;
pub mod trial;
mod world;

#[cfg(test)]
mod tests;

pub(crate) use disk::Disk;
pub(crate) use faults::Liars;
pub(crate) use played::Played;
pub(crate) use world::own_address;
pub use world::{Latencies, World, WorldConfig};
