//! Servers for tests: each listens on loopback, does what its script says, and tells what it was asked.

pub mod dns;
pub mod web;
