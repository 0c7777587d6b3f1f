//! Load and coverage of a crawl, as shares of those of the deepest.

use super::crawl::Tree;
use crate::web::endless::links::{Elsewhere, OtherHost};
use nearcrawl_core::crawl::site::yields::Price;
use serde::Serialize;
use std::{collections::HashMap, hash::Hash}; // unordered: only counted

/// A point of the paper's figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// `depth`: the paper's one depth for all trees. `yield`: each branch of a tree as long as it is worth it.
    pub rule: &'static str,
    /// The deepest level that is fetched.
    pub depth: u8,
    /// External hosts that a request must be expected to bring; none for the rule of depth.
    pub price: Option<f64>,
    /// Pages fetched (figure 1).
    pub pages: u64,
    /// Requests, robots.txt included, as a share of the deepest crawl's (figure 3) …
    pub load: f64,
    /// … bytes …
    pub load_bytes: f64,
    /// … and seconds that servers were busy.
    pub load_seconds: f64,
    /// Different external hosts that were named, as a share of what the deepest crawl finds, …
    pub coverage_hosts: f64,
    /// … and different external URLs.
    pub coverage_urls: f64,
    /// External URLs themselves (figure 1).
    pub urls: u64,
    /// By depth: trees whose deepest page lies just there (figure 2). By yield: trees of which something was left out.
    pub trees: u64,
}

/// Requests, bytes, milliseconds: what servers feel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Load {
    requests: u64,
    bytes: u64,
    busy_ms: u64,
}

/// What trees come to, by level.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    /// Pages and their load, at each level.
    levels: Vec<Load>,
    /// Requests for robots.txt.
    robots: u64,
    /// Trees by their deepest level.
    trees: Vec<u64>,
    /// Trees of which the rule of yield left something out.
    stopped: u64,
    /// Each host with the least level at which a page names it.
    hosts: HashMap<OtherHost, u8>,
    /// The same of URLs.
    urls: HashMap<Elsewhere, u8>,
}

impl Sums {
    /// Adds a tree.
    pub(crate) fn add(&mut self, tree: &Tree) {
        self.robots += tree.robots;
        self.stopped += u64::from(tree.stopped);
        let mut deepest = 0;
        for page in &tree.pages {
            deepest = deepest.max(page.level);
            let level = at(&mut self.levels, page.level);
            level.requests += 1;
            level.bytes += page.bytes;
            level.busy_ms += page.busy_ms;
            for elsewhere in &page.named {
                least(&mut self.hosts, elsewhere.host, page.level);
                least(&mut self.urls, *elsewhere, page.level);
            }
        }
        *at(&mut self.trees, deepest) += 1;
    }

    /// Adds other trees' sums.
    pub(crate) fn merge(&mut self, other: Sums) {
        self.robots += other.robots;
        self.stopped += other.stopped;
        for (level, load) in (0..).zip(other.levels) {
            let mine = at(&mut self.levels, level);
            mine.requests += load.requests;
            mine.bytes += load.bytes;
            mine.busy_ms += load.busy_ms;
        }
        (0..).zip(other.trees).for_each(|(level, trees)| *at(&mut self.trees, level) += trees);
        other.hosts.into_iter().for_each(|(host, level)| least(&mut self.hosts, host, level));
        other.urls.into_iter().for_each(|(url, level)| least(&mut self.urls, url, level));
    }

    /// The load of all pages up to a level.
    fn load(&self, depth: u8) -> Load {
        let mut sum = Load { requests: self.robots, bytes: 0, busy_ms: 0 };
        for level in self.levels.iter().take(usize::from(depth) + 1) {
            sum.requests += level.requests;
            sum.bytes += level.bytes;
            sum.busy_ms += level.busy_ms;
        }
        sum
    }
}

impl Row {
    /// The part of a crawl that a smaller depth would have fetched: pages come level by level, so it is a beginning of it.
    pub(crate) fn of_depth(depth: u8, whole: &Sums) -> Row {
        let trees = whole.trees.get(usize::from(depth)).copied().unwrap_or(0);
        Row { rule: "depth", depth, price: None, trees, ..Row::of(whole, depth, whole) }
    }

    /// A crawl by the rule of yield, against the whole one.
    pub(crate) fn of_price(price: Price, sums: &Sums, whole: &Sums) -> Row {
        let depth = whole.levels.len().saturating_sub(1) as u8;
        Row { rule: "yield", price: Some(price.hosts()), trees: sums.stopped, ..Row::of(sums, depth, whole) }
    }

    fn of(sums: &Sums, depth: u8, whole: &Sums) -> Row {
        let (load, all) = (sums.load(depth), whole.load(u8::MAX));
        let urls = up_to(&sums.urls, depth);
        Row {
            rule: "",
            depth,
            price: None,
            pages: load.requests - sums.robots,
            load: share(load.requests, all.requests),
            load_bytes: share(load.bytes, all.bytes),
            load_seconds: share(load.busy_ms, all.busy_ms),
            coverage_hosts: share(up_to(&sums.hosts, depth), whole.hosts.len() as u64),
            coverage_urls: share(urls, whole.urls.len() as u64),
            urls,
            trees: 0,
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

fn up_to<K>(levels: &HashMap<K, u8>, depth: u8) -> u64 {
    levels.values().filter(|level| **level <= depth).count() as u64
}

fn least<K: Eq + Hash>(levels: &mut HashMap<K, u8>, key: K, level: u8) {
    levels.entry(key).and_modify(|least| *least = (*least).min(level)).or_insert(level);
}

fn at<T: Clone + Default>(levels: &mut Vec<T>, level: u8) -> &mut T {
    let index = usize::from(level);
    if levels.len() <= index {
        levels.resize(index + 1, T::default());
    }
    &mut levels[index]
}
