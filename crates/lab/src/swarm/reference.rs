//! What a simulated crawl must come to: the oracle's walk of a web that is given as a table.

use crate::{
    oracle,
    web::{Answer, Web, table::TableWeb},
};
use nearcrawl_core::crawl::{scope::Scope, site::robots::Robots};
use nearcrawl_model::url::{Host, PageUrl};
use std::collections::{BTreeMap, BTreeSet};

/// What a crawl must have asked for in the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Truth {
    /// Every URL that is asked for (robots.txt not among them), with its level.
    pub asked: BTreeMap<PageUrl, u8>,
    /// Those of them that are HTML pages.
    pub pages: u64,
    /// Distinct URLs beyond the depth that stay beyond it.
    pub cut: u64,
    /// Hosts with a record.
    pub hosts: BTreeSet<Host>,
}

/// A table with the rules of one crawl.
struct Crawled<'a> {
    web: &'a TableWeb,
    scope: &'a Scope,
    robots: BTreeMap<&'a Host, Robots>,
}

impl Web for Crawled<'_> {
    fn answer(&self, url: &PageUrl) -> Answer {
        self.web.answer(url)
    }

    fn allowed(&self, url: &PageUrl) -> bool {
        self.robots.get(&url.host()).is_none_or(|rules| rules.allows(url.path_and_query()))
    }

    /// A host that does not resolve has no record.
    fn in_scope(&self, host: &Host) -> bool {
        self.scope.admits(host) && self.web.addresses.contains_key(host)
    }
}

/// Walks the web from these starting points.
pub(crate) fn walk(web: &TableWeb, seeds: &[PageUrl], scope: &Scope, depth: u8, product_token: &str) -> Truth {
    let robots = web.robots.iter().map(|(host, text)| (host, Robots::parse(text.as_bytes(), product_token))).collect();
    let expected = oracle::traverse(&Crawled { web, scope, robots }, seeds, depth);
    Truth {
        pages: expected.pages() as u64,
        cut: expected.cut_by_depth.len() as u64,
        hosts: expected.trees.into_keys().collect(),
        asked: expected.fetched.into_iter().map(|(url, visit)| (url, visit.level)).collect(),
    }
}
