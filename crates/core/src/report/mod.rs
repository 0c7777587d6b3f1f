//! What are people told? The state of an access point as plain values: what it is doing, whom it knows, what is whose, and why.
//!
//! [`Report`] is the machine: the sums over our sites, and the roll-ups of others. [`View`] answers questions and changes nothing:
//!
//! * `activity`: what is it doing, and why is it not doing more? Is anything left to do?
//! * `status`: the numbers; `counters`: what was done since the start
//! * `lists`: members, claims, servers; how far a crawl is
//! * `why`: why is this crawled by whom, and when?
//! * [`tally`]: the sums over our sites, and those that others tell

mod activity;
pub(crate) mod counters;
mod lists;
mod machine;
mod questions;
mod reason;
mod status;
pub mod tally;
#[cfg(test)]
mod tests;
mod why;

pub use counters::Counters;
pub(crate) use machine::Report;
pub use status::Outside;

use crate::{
    context::Context,
    crawl::Crawl,
    delegation::Delegation,
    membership::{Membership, Shutdown},
    migration::Migration,
    ownership::Ownership,
    replication::Replication,
    routing::Routing,
};

/// Reads all machines to answer a question; changes none.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) context: &'a Context,
    pub(crate) membership: &'a Membership,
    pub(crate) shutdown: &'a Shutdown,
    pub(crate) ownership: &'a Ownership,
    pub(crate) delegation: &'a Delegation,
    pub(crate) routing: &'a Routing,
    pub(crate) crawl: &'a Crawl,
    pub(crate) replication: &'a Replication,
    pub(crate) migration: &'a Migration,
    pub(crate) report: &'a Report,
}
