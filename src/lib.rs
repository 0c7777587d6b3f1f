//! nearcrawl: a peer-to-peer, self-organising web crawler.
//!
//! The house has floors, and a floor may only use the ones below it:
//!
//! * [`model`]: the nouns, plain values;
//! * [`logic`]: the decisions, pure, seeded and clockless;
//! * [`io`]: the hands, one library each;
//! * [`node`]: the process, one loop that joins decisions and hands.
//!
//! [`lab`] runs the same logic in simulated worlds; [`demo`] and [`cli`] are doors for people.
//! docs/ARCHITECTURE.md walks a URL through all of it.

pub mod cli;
pub mod demo;
pub mod io;
pub mod lab;
pub mod logic;
pub mod model;
pub mod node;
