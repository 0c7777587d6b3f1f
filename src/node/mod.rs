//! THIRD FLOOR: how do decisions and hands become one process?

pub mod api;
pub mod config;
pub mod desk;
pub mod doors;
pub mod metrics;
