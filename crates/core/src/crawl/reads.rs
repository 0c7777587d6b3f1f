//! Read-only references to the other machines that crawling depends on.

use crate::{delegation::Delegation, migration::Migration, ownership::Ownership, routing::Routing};

/// The machines that crawling reads and does not change.
#[derive(Clone, Copy)]
pub(crate) struct CrawlReads<'a> {
    /// Which subnets are claimed.
    pub(crate) ownership: &'a Ownership,
    /// Which subnets must rest.
    pub(crate) delegation: &'a Delegation,
    /// Which subnets are about to change hands, and whose they were.
    pub(crate) migration: &'a Migration,
    /// Which address a host has.
    pub(crate) routing: &'a Routing,
}
