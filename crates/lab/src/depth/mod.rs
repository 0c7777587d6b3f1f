//! Experiment on depth: how many requests to a site are enough to find the hosts that it links to.
//!
//! Trees of a made-up web are crawled by the daemon's rules, at every price.
//!
//! The experiment is the one of Nakahira, Hoshino and Mikami, "Low Load Server Crawler" (WWW 2008, §3.1 to §3.3): the same starting URLs
//! are crawled to greater and greater depth, and what was fetched is held against the external URLs that were collected.

pub mod crawl;
pub mod score;
pub mod sensitivity;

#[cfg(test)]
mod tests;

use crate::web::endless::EndlessWeb;
use crawl::Tree;
use nearcrawl_core::crawl::site::{SiteRules, yields::Price};
use score::{Row, Sums};
use std::{
    num::NonZero,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

/// What is crawled, and how.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The made-up web that is crawled.
    pub web: EndlessWeb,
    /// How many sites are started from: the first ones.
    pub sites: u64,
    /// The deepest level.
    pub max_depth: u8,
    /// External hosts that a request must be expected to bring, for the rule of yield.
    pub prices: Vec<Price>,
}

impl Experiment {
    /// Crawls everything, `threads` trees at once; calls `crawled` after each tree. A row for each depth, then one for each price.
    pub fn run(&self, threads: NonZero<usize>, crawled: &(dyn Fn() + Sync)) -> Vec<Row> {
        let whole = self.crawl(&self.rules(Price::default()), threads, crawled);
        let by_depth: Vec<Row> = (1..=self.max_depth).map(|depth| Row::of_depth(depth, &whole)).collect();
        let by_yield = self.prices.iter().map(|price| Row::of_price(*price, &self.crawl(&self.rules(*price), threads, crawled), &whole));
        by_depth.into_iter().chain(by_yield).collect()
    }

    /// How many times [`Self::run`] calls `crawled`.
    pub fn trees(&self) -> u64 {
        self.sites * (1 + self.prices.len() as u64)
    }

    fn rules(&self, price: Price) -> SiteRules {
        SiteRules { depth: self.max_depth, price, pages_per_run: 0, product_token: "nearcrawl".to_owned() }
    }

    /// All trees by the same rules.
    fn crawl(&self, rules: &SiteRules, threads: NonZero<usize>, crawled: &(dyn Fn() + Sync)) -> Sums {
        let next = AtomicU64::new(0);
        let work = || {
            let mut sums = Sums::default();
            loop {
                let site = next.fetch_add(1, Ordering::Relaxed);
                if site >= self.sites {
                    return sums;
                }
                let tree: Tree = crawl::tree(&self.web, site, rules);
                sums.add(&tree);
                crawled();
            }
        };
        thread::scope(|scope| {
            let others: Vec<_> = (1..threads.get()).map(|_| scope.spawn(work)).collect();
            let mut all = work();
            for other in others {
                match other.join() {
                    Ok(sums) => all.merge(sums),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            all
        })
    }
}
