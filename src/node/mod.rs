//! THIRD FLOOR: how do decisions and hands become one process?
//!
//! * [`run`]: the loop of a daemon: facts to the mind, wishes to the hands;
//! * `birth`: from a configuration and a state directory to a mind and hands;
//! * `perform`, `clerk`, `errands`, `revisit`: wishes carried out: at once, in order on the store, or as a task of their own;
//! * [`images`]: the hierarchy, mapped from a file instead of unpacked at each start;
//! * `library`, `exchange`: editions of the hierarchy, on disk and between members;
//! * [`alone`]: the same loop without a swarm, until everything is done;
//! * `fault`: where a daemon under test is to die;
//! * [`api`], [`desk`], [`metrics`]: where people ask.

pub mod alone;
pub mod api;
mod birth;
mod clerk;
mod clock;
pub mod config;
mod counter;
pub mod desk;
pub mod doors;
mod errands;
mod exchange;
mod failure;
mod fault;
pub mod images;
mod keyfile;
mod library;
pub mod metrics;
mod perform;
mod revisit;
pub mod run;
mod souvenirs;
mod wondering;

pub use failure::NodeFailure;
pub use keyfile::{Born, init};
