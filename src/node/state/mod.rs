//! What a daemon keeps across its starts.

pub(super) mod acquaintances;
pub mod admission_files;
pub(super) mod keyfile;
pub(super) mod persisted_state;
pub(super) mod pins;
pub(super) mod store_queue;
pub(super) mod told_totals;
pub(super) mod write_behind;
