//! Chooses the page to request while the last one is still being read: the next in line, if that page can change nothing about it.
//!
//! What a page names waits behind everything of its own level, so the one that is next on that level or above stays next. What else is
//! decided by what came before (the budget, the yield, the scripts that were met) must allow it whatever the page turns out to say. So
//! a site is crawled in the same order, and to the same end, whether its pages are read before the next is asked for or meanwhile.

use super::{Site, SiteRules, frontier::Waiting};
use nearcrawl_model::{
    fetch::{FetchOrder, FetchPurpose},
    fingerprint::FingerprintKey,
    time::WallTime,
};

/// The next page of a site after `read`, which is being read; none if that has to be waited for.
pub(super) fn ahead_of(site: &Site, read: &Waiting, now: WallTime, rules: &SiteRules, key: &FingerprintKey) -> Option<FetchOrder> {
    let within_budget = rules.pages_per_run == 0 || site.budget_used.saturating_add(1) < rules.pages_per_run;
    if site.asking.is_some() || site.digesting > 0 || !within_budget {
        return None;
    }
    let next = site.frontier.near().find(|waiting| waiting.fingerprint != read.fingerprint)?;
    let url = &next.url;
    if next.level > read.level || url.script().is_some() || url.origin_str() != read.url.origin_str() {
        return None;
    }
    if next.level > 0 && site.yields.may_be_too_little(url, &read.url, rules.price, key) {
        return None;
    }
    let standing = site.robots.get(&url.origin())?;
    let allowed = standing.to_ask(now).is_none() && standing.forbids(url).is_none();
    allowed.then(|| site.order(url.clone(), FetchPurpose::Page))
}
