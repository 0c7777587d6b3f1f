//! The decisions: pure, seeded, clockless. Each room answers one question; only [`crawler`] knows the others.

pub mod clock_cache;
pub mod contacts;
pub mod crawler;
pub mod delegation;
pub mod editions;
pub mod front;
pub mod hierarchy;
pub mod keeping;
pub mod locator;
pub mod membership;
pub mod migration;
pub mod newcomers;
pub mod outbox;
pub mod ownership;
pub mod planning;
pub mod scope;
pub mod site;
pub mod tally;
