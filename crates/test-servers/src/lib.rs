//! Servers for tests: each listens on loopback, does what its script says, and tells what it was asked.

#![expect(clippy::unwrap_used, reason = "only tests use these servers, and a panic is how they fail")]

pub mod dns;
pub mod web;
