//! The hierarchy's snapshots: on disk, mapped from a file, and how old their data are.

pub(super) mod data_age;
pub mod images;
pub(super) mod snapshot_store;
