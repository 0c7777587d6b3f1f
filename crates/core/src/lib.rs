//! The crawler's decisions as pure state machines, seeded and without a clock.
//!
//! Facts come in as [`event::Event`]s, what is to be done goes out as [`event::Command`]s.
//!
//! Each machine answers one question and has a directory of its own; [`crawler`] joins them. Two files use each other: `timers` is a table
//! of methods of the crawler, and the crawler goes through it.

#![warn(unreachable_pub)]

pub mod admission;
pub mod allowance;
pub mod clock_cache;
pub(crate) mod context;
pub mod crawl;
pub mod crawler;
pub mod delegation;
mod effects;
pub mod event;
pub mod hierarchy_version;
pub mod membership;
pub mod migration;
pub(crate) mod named_trees;
pub mod opt_out;
pub mod ownership;
mod pending;
pub mod planning;
pub mod record_deliveries;
pub(crate) mod relay;
pub mod replication;
pub mod report;
pub mod request_record;
pub(crate) mod requests;
pub mod routing;
mod settings;
pub(crate) mod signal;
pub(crate) mod statements;
pub(crate) mod survey;
pub mod timers;
pub(crate) mod turns;
pub mod voting;
pub(crate) mod wishes;
