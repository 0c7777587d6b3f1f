//! THIRD FLOOR: how do decisions and hands become one process?

pub mod config;
