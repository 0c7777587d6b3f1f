//! (room being built)

pub mod hierarchy;
