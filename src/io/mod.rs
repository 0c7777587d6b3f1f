//! (room being built)
pub mod store;
