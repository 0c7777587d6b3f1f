//! What should come out? The same web, walked by the book: shortest levels to a fixed point, without queues, owners or time.

use super::web::{Answer, Web};
use crate::{
    logic::{scope::Scope, site::robots::Robots},
    model::url::{Host, PageUrl},
};
use std::collections::{BTreeMap, BTreeSet};

/// What a crawl must have asked for in the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// Every URL that is asked for (robots.txt not among them), with its level.
    pub asked: BTreeMap<PageUrl, u8>,
    /// Those of them that are HTML pages.
    pub pages: u64,
    /// Distinct URLs beyond the depth that stay beyond it.
    pub cut: u64,
    /// Hosts with a record.
    pub hosts: BTreeSet<Host>,
}

/// Walks the web from these starting points. Hosts are crawled in trees of their own: for webs in which no host is another's subdomain.
pub fn walk(web: &Web, seeds: &[PageUrl], scope: &Scope, depth: u8, product_token: &str) -> Truth {
    let mut levels: BTreeMap<PageUrl, u8> = BTreeMap::new();
    let mut work: Vec<(PageUrl, u8)> = Vec::new();
    for seed in seeds {
        work.push((seed.root(), 0));
        work.push((seed.clone(), 0));
    }
    let robots: BTreeMap<&Host, Robots> =
        web.robots.iter().map(|(host, text)| (host, Robots::parse(text.as_bytes(), product_token))).collect();
    let may = |url: &PageUrl| robots.get(&url.host()).is_none_or(|rules| rules.allows(url.path_and_query()));
    while let Some((url, level)) = work.pop() {
        if !web.addresses.contains_key(&url.host()) || levels.get(&url).is_some_and(|known| *known <= level) {
            continue;
        }
        levels.insert(url.clone(), level);
        if level > depth || !may(&url) {
            continue;
        }
        let (links, next) = match web.answer(&url) {
            Answer::Page(links) => (links, level + 1),
            Answer::Redirect(to) => (vec![to], level),
            Answer::Status(_) | Answer::NotHtml | Answer::Broken => continue,
        };
        for link in links {
            if link.host() == url.host() {
                work.push((link, next));
            } else if scope.admits(&link.host()) {
                work.push((link.root(), 0));
                work.push((link, 0));
            }
        }
    }
    let hosts = levels.keys().map(PageUrl::host).collect();
    let cut = levels.values().filter(|level| **level > depth).count() as u64;
    levels.retain(|url, level| *level <= depth && may(url));
    let pages = levels.keys().filter(|url| matches!(web.answer(url), Answer::Page(_))).count() as u64;
    Truth { asked: levels, pages, cut, hosts }
}
