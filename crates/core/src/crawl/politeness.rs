//! Politeness: how long a server rests between two requests, with all bounds of the rule.
//!
//! [`Scheduler`](super::scheduler::Scheduler) keeps to it for requests, the delegation rounds for probes. What robots.txt asks for is read
//! in `site/robots`.

use nearcrawl_model::time::Millis;

/// The longest crawl-delay that is waited out, in milliseconds; a host that asks for more is not crawled (RFC 9309 knows no crawl-delay).
pub const MAX_CRAWL_DELAY: Millis = 300_000;

/// For how long a server is left alone after its first 429 or 503 that names no time, in milliseconds; after each further one twice as long.
pub const FIRST_BACK_OFF: Millis = 30_000;

/// For how long at most it is left alone after a 429 or 503 that names no time, in milliseconds.
pub const MAX_BACK_OFF: Millis = 3_600_000;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawl::site::replay::replay;
    use nearcrawl_model::{
        fingerprint::FingerprintKey,
        ids::SiteNumber,
        journal::{JournalEntry, JournalKey},
        time::WallTime,
        url::PageUrl,
    };

    /// What site owners are told is what a site computes.
    #[test]
    fn what_site_owners_are_told_is_how_long_a_site_leaves_its_server_alone() {
        let url = PageUrl::parse("http://a.ke/").unwrap();
        let key = JournalKey { subnet: "9.0.0.0/24".parse().unwrap(), host: url.host().clone(), run: 1 };
        let mut rows = vec![JournalEntry::Opened { address: "9.0.0.1".parse().unwrap(), tree: url.host().clone(), at: WallTime(1) }];
        let rules = crate::crawl::site::SiteRules {
            depth: 2,
            price: crate::crawl::site::yields::Price::default(),
            pages_per_run: 0,
            product_token: "nearcrawl".to_owned(),
        };
        let back_off =
            |rows: &[JournalEntry]| replay(key.clone(), SiteNumber(1), rows, &rules, &FingerprintKey([7; 16])).unwrap().site.back_off();
        assert_eq!(back_off(&rows), FIRST_BACK_OFF);
        rows.extend((0..9).map(|at| JournalEntry::Robots {
            origin: url.origin(),
            at: WallTime(at),
            answer: Ok((503, Vec::new())),
            took: 5,
        }));
        assert_eq!(back_off(&rows), MAX_BACK_OFF);
    }
}
