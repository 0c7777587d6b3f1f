//! Experiment on URL caches of all sizes, by several rules, on the requests of a crawl of a known web.
//!
//! The experiment is the one of Broder, Najork and Wiener, "Efficient URL Caching for World Wide Web Crawling" (§4 and §5): a web
//! ([`graph`], [`named`], [`synthetic`]) is crawled by many threads ([`trace`]), the links they find are looked up in a cache ([`stream`]),
//! and it is counted how many a rule misses ([`policies`], [`score`]). CLOCK is the daemons' own.

pub mod graph;
pub mod named;
pub mod policies;
pub mod score;
pub mod stream;
pub mod synthetic;
pub mod trace;

#[cfg(test)]
mod tests;

use policies::Policy;
use score::Row;
use std::{
    collections::BTreeMap,
    num::NonZero,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};
use stream::Stream;

/// Which caches are compared.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The rules, in the order of the rows.
    pub policies: Vec<Policy>,
    /// Entries, in the order of the rows. Where each thread has a cache of its own, of all of them together; then not below their number.
    pub sizes: Vec<usize>,
    /// Seed of all random numbers.
    pub seed: u64,
}

impl Experiment {
    /// Runs all rules at all sizes, `threads` of them at once; calls `finished` after each. A row for each rule and size, rule by rule.
    pub fn run(&self, streams: &[Stream], threads: NonZero<usize>, finished: &(dyn Fn() + Sync)) -> Vec<Row> {
        let tasks = self.tasks();
        let misses = self.run_tasks(&tasks, streams, threads, finished);
        let requests = streams.iter().map(|stream| stream.items().len() as u64).sum();
        let row = |policy: &Policy, size: &usize| {
            let of = |policy: Policy| misses.get(&(policy, *size)).copied().unwrap_or(0);
            Row::of(*policy, *size, requests, of(*policy), of(Policy::Min))
        };
        self.policies.iter().flat_map(|policy| self.sizes.iter().map(move |size| row(policy, size))).collect()
    }

    /// How many times [`Self::run`] calls `finished`.
    pub fn task_count(&self) -> usize {
        self.tasks().len()
    }

    /// What is asked for, and MIN, to compare with.
    fn tasks(&self) -> Vec<(Policy, usize)> {
        let mut tasks: Vec<_> =
            self.policies.iter().chain([&Policy::Min]).flat_map(|policy| self.sizes.iter().map(|size| (*policy, *size))).collect();
        tasks.sort_unstable();
        tasks.dedup();
        tasks
    }

    fn run_tasks(
        &self,
        tasks: &[(Policy, usize)],
        streams: &[Stream],
        threads: NonZero<usize>,
        finished: &(dyn Fn() + Sync),
    ) -> BTreeMap<(Policy, usize), u64> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            while let Some((policy, size)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                let each = streams.iter().enumerate().map(|(number, stream)| {
                    // The entries that cannot be shared out evenly go to the first.
                    let size = size / streams.len() + usize::from(number < size % streams.len());
                    policy.misses(stream, size.max(1), self.seed.wrapping_add(number as u64))
                });
                done.push(((*policy, *size), each.sum::<u64>()));
                finished();
            }
            done
        };
        thread::scope(|scope| {
            let others: Vec<_> = (1..threads.get().min(tasks.len())).map(|_| scope.spawn(work)).collect();
            let mut all: BTreeMap<_, _> = work().into_iter().collect();
            for other in others {
                match other.join() {
                    Ok(done) => all.extend(done),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            all
        })
    }
}
