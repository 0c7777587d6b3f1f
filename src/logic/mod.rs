//! (room being built)
pub mod clock_cache;
