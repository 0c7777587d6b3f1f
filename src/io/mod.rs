<<<<<<< HEAD
<<<<<<< HEAD
<<<<<<< HEAD
//! (room being built)
<<<<<<< HEAD

pub mod snapshot;
=======
//! The hands: one library each; they act and report, and decide nothing.

pub mod page;
>>>>>>> page
=======
//! The hands: each touches the world through one library, none decides anything.

pub mod fetcher;
pub mod page;
pub mod prober;
pub mod resolver;
>>>>>>> fetch
=======
pub mod store;
>>>>>>> store
=======
//! The hands: each room drives one library and decides nothing.

pub mod swarm;
>>>>>>> swarm
