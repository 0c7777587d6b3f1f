//! Routing of named URLs to their owners.
//!
//! * [`arrival`]: from the URL to its host, address, subnet and owner
//! * [`locator`]: the address of a host
//! * [`outbox`]: URLs that wait for their owners to take them in
//! * [`acknowledgements`]: who waits until what they handed over is recorded

pub(crate) mod acknowledgements;
pub(crate) mod arrival;
pub mod locator;
pub(crate) mod outbox;
#[cfg(test)]
mod tests;

use acknowledgements::Acknowledgements;
use locator::Locator;
use nearcrawl_model::time::Moment;
use outbox::Outbox;

/// URLs on their way to their owners, and those that came from others and are being recorded.
#[derive(Debug, Default)]
pub(crate) struct Routing {
    locator: Locator,
    outbox: Outbox,
    acknowledgements: Acknowledgements,
    /// When URLs for sites of ours may be taken in again.
    own_due: Moment,
}
