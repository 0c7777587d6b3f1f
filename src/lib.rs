//! nearcrawl: a peer-to-peer, self-organising web crawler.
//!
//! This package is the daemon and its command line.
//!
//! * [`io`]: everything that touches the machine, one library each, in a crate of its own;
//! * [`node`]: the process, one loop that joins the decisions of `nearcrawl-core` and [`io`];
//! * [`cli`]: the commands.
//!
//! Pure code is in crates beside it: `nearcrawl-model`, `-hierarchy`, `-page` and `-core`; `nearcrawl-lab` runs the same decisions in
//! simulated worlds. docs/ARCHITECTURE.md follows a URL through all of it.

pub mod cli;
pub mod node;

pub use nearcrawl_io as io;
