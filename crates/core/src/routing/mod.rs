//! Routing of named URLs to their owners.
//!
//! * [`arrival`]: from the URL to its host, address, subnet and owner
//! * [`locator`]: the address of a host
//! * [`outbox`]: URLs that wait for their owners to take them in
//! * [`stewardship`]: what another member may know of a host that was its steward before
//! * [`acknowledgements`]: who waits until what they handed over is recorded

pub(crate) mod acknowledgements;
pub(crate) mod arrival;
pub mod locator;
pub(crate) mod outbox;
pub(crate) mod stewardship;
#[cfg(test)]
mod tests;

use acknowledgements::Acknowledgements;
use locator::Locator;
use nearcrawl_model::time::Moment;
use outbox::Outbox;
use stewardship::Stewardship;

/// URLs on their way to their owners, and those that came from others and are being recorded.
#[derive(Debug, Default)]
pub(crate) struct Routing {
    locator: Locator,
    stewardship: Stewardship,
    outbox: Outbox,
    acknowledgements: Acknowledgements,
    /// When URLs for sites of ours may be taken in again.
    own_due: Moment,
}
