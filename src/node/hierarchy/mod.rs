//! The hierarchy's snapshots: read as the configuration says, mapped from a file, kept on disk.
//!
//! How old their data are is told as well.

pub(super) mod data_age;
pub mod images;
pub(super) mod reading;
pub(super) mod snapshot_store;
