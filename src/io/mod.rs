//! The hands: each touches the world through one library, none decides anything.

pub mod client;
pub mod fetcher;
pub mod image;
pub mod memory;
pub mod prober;
pub mod registry;
pub mod resolver;
pub mod snapshot;
pub mod store;
pub mod swarm;
pub mod tasks;
pub mod text;
