//! How long does a server rest between two requests? The rule and its bounds, all of them.
//!
//! Who keeps to it: [`Scheduler`](super::scheduler::Scheduler) for requests, the delegation rounds for probes. What robots.txt asks for is
//! read in `site/robots`.

use nearcrawl_model::time::Millis;

/// The longest crawl-delay that is waited out, in milliseconds; a host that asks for more is not crawled (RFC 9309 knows no crawl-delay).
pub(crate) const MAX_CRAWL_DELAY: Millis = 300_000;

/// How patient to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Politeness {
    /// Rest at least this long between two requests to an address.
    pub min_delay: Millis,
    /// Rest at least this many times what the last answer took.
    pub factor: u64,
    /// How many addresses may be asked at once.
    pub parallel: usize,
    /// How many addresses of one /24 (/48) may be asked at once.
    pub per_block: usize,
}

impl Politeness {
    /// How long an address rests after an answer that took `took`.
    pub(crate) fn rest_after(&self, took: Millis, crawl_delay: Option<Millis>) -> Millis {
        self.min_delay.max(took.saturating_mul(self.factor)).max(crawl_delay.unwrap_or(0))
    }
}
