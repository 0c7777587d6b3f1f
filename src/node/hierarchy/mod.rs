//! The hierarchy's snapshots: read as the configuration says, mapped from a file, kept on disk, and how old
//! their data are.

pub(super) mod data_age;
pub mod images;
pub(super) mod reading;
pub(super) mod snapshot_store;
