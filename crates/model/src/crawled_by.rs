//! Rules by which the pages of a site were chosen in a run: they say whether two runs compare.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The largest page budget that is told; larger ones limit nothing.
pub const MAX_BUDGET: u32 = (1 << 28) - 1;

/// What decided which pages of a site were asked for, as it was when the last of them was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CrawledBy {
    /// The deepest level that was fetched: that of the owner's configuration, or of the surveys that wanted the site.
    pub depth: u8,
    /// New external hosts that a request had to be expected to bring, in millionths; 0 if the depth alone decided.
    pub yield_price_millionths: u32,
    /// Pages of the site's tree in a day, then the run paused; 0 without a limit, at most [`MAX_BUDGET`].
    pub max_pages_per_run: u32,
}

impl CrawledBy {
    /// These rules, with a page budget of any size.
    pub fn new(depth: u8, yield_price_millionths: u32, max_pages_per_run: u64) -> CrawledBy {
        let max_pages_per_run = u32::try_from(max_pages_per_run).unwrap_or(MAX_BUDGET).min(MAX_BUDGET);
        CrawledBy { depth, yield_price_millionths, max_pages_per_run }
    }

    /// Whether a run by these rules asks for the same pages of an unchanged site as one by those. The page budget makes no difference to runs
    /// that are over: it only puts pages off.
    pub fn compares(&self, other: &CrawledBy) -> bool {
        (self.depth, self.yield_price_millionths) == (other.depth, other.yield_price_millionths)
    }

    /// Which rule it was, as `crawl.rule` names it.
    pub fn rule(&self) -> &'static str {
        if self.yield_price_millionths == 0 { "depth" } else { "yield" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_and_rule_tell_runs_apart_and_budgets_do_not() {
        let rules = CrawledBy::new(3, 0, 1_000);
        assert!(rules.compares(&CrawledBy::new(3, 0, 0)) && rules.rule() == "depth");
        assert!(!rules.compares(&CrawledBy::new(4, 0, 1_000)) && !rules.compares(&CrawledBy::new(3, 4_000, 1_000)));
        assert_eq!((CrawledBy::new(3, 4_000, u64::MAX).max_pages_per_run, CrawledBy::new(3, 4_000, 1).rule()), (MAX_BUDGET, "yield"));
    }
}
