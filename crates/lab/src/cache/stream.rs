//! Streams of requests to a cache: the links of the crawled pages in the order they were found, all or those that leave a process.

use super::{
    graph::Graph,
    policies::{min, popular},
    trace::{Crawl, Visit},
};
use std::sync::OnceLock;

/// Which links are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All, as one process finds them that has all sites: the paper's full trace.
    Full,
    /// Those that the first of several processes finds and that lead to sites of others: the paper's cross sub-trace.
    Cross,
    /// Those that lead to pages of the site that they are found at, in a cache of their own.
    Within,
    /// Those that lead to pages of other sites, in a cache of their own.
    Between,
}

/// Requests for items, which are numbered from 0 in the order of their first coming.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    items: Vec<u32>,
    distinct: usize,
    next: OnceLock<min::Next>,
    counts: OnceLock<Vec<u32>>,
}

impl Stream {
    /// Numbers the pages anew; these are below `pages`.
    pub fn new(mut requests: Vec<u32>, numbers: &mut Numbers) -> Stream {
        let distinct = numbers.renumber(&mut requests);
        Stream { items: requests, distinct, ..Stream::default() }
    }

    /// The requests in their order, each the index of an item.
    pub fn items(&self) -> &[u32] {
        &self.items
    }

    /// How many different items there are.
    pub fn distinct(&self) -> usize {
        self.distinct
    }

    /// For each request when the same item is requested next.
    pub(super) fn next(&self) -> &min::Next {
        self.next.get_or_init(|| min::next_requests(&self.items, self.distinct))
    }

    /// How often each item is requested, the greatest first.
    pub(super) fn counts(&self) -> &[u32] {
        self.counts.get_or_init(|| popular::counts(&self.items, self.distinct))
    }
}

/// New numbers for old ones, without gaps; used for one stream after another.
pub struct Numbers {
    new: Vec<u32>,
}

impl Numbers {
    /// For old numbers below `pages`.
    pub fn new(pages: usize) -> Numbers {
        Numbers { new: vec![u32::MAX; pages] }
    }

    /// Writes the new numbers over the old ones; how many there are.
    fn renumber(&mut self, requests: &mut [u32]) -> usize {
        let mut old = Vec::new();
        for request in requests {
            let new = &mut self.new[*request as usize];
            if *new == u32::MAX {
                *new = old.len() as u32;
                old.push(*request);
            }
            *request = *new;
        }
        old.iter().for_each(|old| self.new[*old as usize] = u32::MAX);
        old.len()
    }
}

/// The streams that the caches see: one, or with `per_thread` one for each thread. With `dedupe_page` a link that a page has twice is asked
/// for once.
pub fn streams(graph: &Graph, crawl: &Crawl, part: Part, dedupe_page: bool, per_thread: bool) -> Vec<Stream> {
    let crawl = if part != Part::Cross { Crawl { processes: 1, ..*crawl } } else { *crawl };
    let visits = crawl.visits(graph);
    let mut requests = vec![Vec::new(); if per_thread { crawl.threads } else { 1 }];
    // The visit that asked for each page last; visits count from 1.
    let mut asked_by = vec![0; if dedupe_page { graph.pages() } else { 0 }];
    for (number, Visit { page, thread }) in visits.into_iter().enumerate().filter(|(_, visit)| (visit.thread as usize) < crawl.threads) {
        let requests = &mut requests[if per_thread { thread as usize } else { 0 }];
        for target in graph.links(page) {
            let wanted = match part {
                Part::Full => true,
                Part::Cross => crawl.process_of(graph.site_of(*target)) != 0,
                Part::Within => graph.site_of(*target) == graph.site_of(page),
                Part::Between => graph.site_of(*target) != graph.site_of(page),
            };
            let twice = dedupe_page && std::mem::replace(&mut asked_by[*target as usize], number as u32 + 1) == number as u32 + 1;
            if wanted && !twice {
                requests.push(*target);
            }
        }
    }
    let mut numbers = Numbers::new(graph.pages());
    requests.into_iter().map(|requests| Stream::new(requests, &mut numbers)).collect()
}
