//! The hands: each room drives one library and decides nothing.

pub mod swarm;
