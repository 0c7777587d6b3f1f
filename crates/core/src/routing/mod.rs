//! A URL was named: whose is it, and how does it get there?
//!
//! * [`arrival`]: from the URL to its host, address, subnet and owner
//! * [`locator`]: which address has a host?
//! * [`outbox`]: URLs that wait for their owners to take them in
//! * [`new_host_quota`]: does a domain name hosts without end?

pub(crate) mod arrival;
pub mod locator;
pub mod new_host_quota;
pub mod outbox;

use crate::{clock_cache::ClockCache, crawler::Acknowledgement};
use locator::Locator;
use new_host_quota::NewHostQuota;
use outbox::Outbox;

/// URLs on their way to their owners, and those that came from others.
pub(crate) struct Routing {
    pub(crate) locator: Locator,
    pub(crate) new_hosts: NewHostQuota,
    pub(crate) outbox: Outbox,
    pub(crate) recent: ClockCache,
    pub(crate) scope: u64,
    pub(crate) acknowledgements: Vec<Acknowledgement>,
}
