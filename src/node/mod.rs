//! (room being built)

pub mod api;
pub mod desk;
pub mod metrics;
