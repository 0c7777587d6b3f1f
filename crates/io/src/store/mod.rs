//! The store: one state directory with two databases, for what must not be lost, and for what can be found out again.
//!
//! `state/` is small, and every change to it is on the disk before it is answered; changes that come together share one sync. `cache/` is
//! large and not synced: damaged, it is moved aside and filled again from the journals in `state/`. Each database has a plain thread of its
//! own, for RocksDB blocks; a [`Store`] is a handle by which async code asks those threads and awaits the answer; small queries of the seen
//! set run on the caller's thread, in memory, while the database's thread is idle. A caller that stops waiting does not undo its action.

mod action_timer;
mod cache;
mod columns;
mod config;
mod counters;
mod database;
mod disk;
mod error;
mod handle;
mod journal;
mod key;
mod log_files;
mod open;
mod previous_run;
mod queue;
mod room;
mod seen;
mod stall;
mod state;
#[cfg(test)]
mod tests;

pub use config::StoreConfig;
pub use counters::StoreCounters;
pub use disk::free_bytes;
pub use error::{OpenError, StoreError};
pub use handle::Store;
pub use journal::{Appended, Growth};
pub use open::{CacheRebuilt, FORMAT, OpenReport};
pub use seen::{LoneSeenSet, SeenSizes};
