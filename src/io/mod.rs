//! (room being built)

pub mod snapshot;
