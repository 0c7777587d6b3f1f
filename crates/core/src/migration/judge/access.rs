//! Durations of requests to a subnet; some of them make an access.

use nearcrawl_model::{
    fetch::{FetchError, FetchOutcome, FetchReport},
    time::{Now, WallTime},
};

/// An access that is not complete yet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Access {
    pub(super) requests: u32,
    pub(super) took_us: f64,
    least_first_byte_us: Option<f64>,
    /// When the first request that counts was sent.
    begun: Option<Now>,
}

impl Access {
    /// Counts a request, if it says something of how quick the subnet is: a closed port does not, a missing answer does.
    /// Returns for how many microseconds it counts.
    pub(super) fn add(&mut self, now: Now, report: &FetchReport) -> f64 {
        if let FetchOutcome::Failed(failure) = &report.outcome
            && !is_slowness(*failure)
        {
            return 0.0;
        }
        let first_byte = report.first_byte_us.map(f64::from);
        let took = (report.access() as f64 * 1000.0).max(first_byte.unwrap_or(0.0));
        self.begun.get_or_insert_with(|| before(now, took));
        self.requests += 1;
        self.took_us += took;
        if let Some(first_byte) = first_byte {
            self.least_first_byte_us = Some(self.least_first_byte_us.map_or(first_byte, |least| least.min(first_byte)));
        }
        took
    }

    /// When the first request that counts was sent; none if there was none.
    pub(super) fn begun(&self) -> Option<Now> {
        self.begun
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

#[cfg(test)]
impl Access {
    /// So many requests that took so long together.
    pub(super) fn of(requests: u32, took_us: f64) -> Access {
        Access { requests, took_us, ..Access::default() }
    }
}

/// So many microseconds ago.
fn before(now: Now, us: f64) -> Now {
    let ms = (us / 1_000.0) as u64;
    Now { moment: now.moment.before(ms), wall: WallTime(now.wall.0.saturating_sub(ms)) }
}

/// Whether a failure says that the way, or the server, is slow.
fn is_slowness(failure: FetchError) -> bool {
    use FetchError::{BodyTimeout, ConnectTimeout, HeadTimeout, TlsTimeout};
    matches!(failure, ConnectTimeout | TlsTimeout | HeadTimeout | BodyTimeout)
}
