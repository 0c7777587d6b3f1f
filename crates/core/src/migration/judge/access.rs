//! How long do requests to a subnet take? Some of them make an access.

use nearcrawl_model::fetch::{FetchError, FetchOutcome, FetchReport};

/// An access that is not complete yet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Access {
    pub(super) requests: u32,
    pub(super) took_us: f64,
    least_first_byte_us: Option<f64>,
}

impl Access {
    /// Counts a request, if it says something of how quick the subnet is: a closed port does not, a missing answer does.
    /// Returns for how many microseconds it counts.
    pub(super) fn add(&mut self, report: &FetchReport) -> f64 {
        if let FetchOutcome::Failed(failure) = &report.outcome
            && !is_slowness(*failure)
        {
            return 0.0;
        }
        let first_byte = report.first_byte_us.map(f64::from);
        let took = (report.access() as f64 * 1000.0).max(first_byte.unwrap_or(0.0));
        self.requests += 1;
        self.took_us += took;
        if let Some(first_byte) = first_byte {
            self.least_first_byte_us = Some(self.least_first_byte_us.map_or(first_byte, |least| least.min(first_byte)));
        }
        took
    }

    /// Whether nothing was measured.
    pub(super) fn is_empty(&self) -> bool {
        self.requests == 0 || self.took_us <= 0.0
    }

    /// What a request took, in microseconds.
    pub(super) fn us_per_request(&self) -> f64 {
        self.took_us / f64::from(self.requests)
    }

    /// What the quickest first byte took, in microseconds; if there was none, what a request took.
    pub(super) fn least_us(&self) -> f64 {
        self.least_first_byte_us.unwrap_or(self.us_per_request())
    }
}

/// Whether a failure says that the way, or the server, is slow.
fn is_slowness(failure: FetchError) -> bool {
    use FetchError::{BodyTimeout, ConnectTimeout, HeadTimeout, TlsTimeout};
    matches!(failure, ConnectTimeout | TlsTimeout | HeadTimeout | BodyTimeout)
}
