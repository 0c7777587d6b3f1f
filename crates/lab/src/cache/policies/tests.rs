//! Tests of each rule against models that are slow and obvious, and of MIN against all that can be done at all.

use super::{Policy, infinite, lru, random, rule::Cache, s3fifo, sieve};
use crate::cache::stream::{Numbers, Stream};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Numbers for items in tests are below.
const ITEMS: usize = 40;

fn stream(items: &[u32]) -> Stream {
    Stream::new(items.to_vec(), &mut Numbers::new(ITEMS))
}

/// Requests with some locality: runs around a place that moves.
fn requests(most: usize) -> impl Strategy<Value = Vec<u32>> {
    let run = (0..ITEMS as u32, prop::collection::vec(0u32..6, 1..12));
    prop::collection::vec(run, 0..most / 6).prop_map(|runs| {
        let run = |(place, steps): (u32, Vec<u32>)| steps.into_iter().map(move |step| (place + step) % ITEMS as u32);
        runs.into_iter().flat_map(run).collect()
    })
}

/// LRU: the last seen is last.
#[derive(Default)]
struct NaiveLru(Vec<u32>);

impl NaiveLru {
    fn touch(&mut self, item: u32, size: usize) -> bool {
        let at = self.0.iter().position(|held| *held == item);
        if let Some(at) = at {
            self.0.remove(at);
        } else if self.0.len() == size {
            self.0.remove(0);
        }
        self.0.push(item);
        at.is_some()
    }
}

/// SIEVE: items with marks, the oldest first; the hand is an index.
#[derive(Default)]
struct NaiveSieve {
    queue: Vec<(u32, bool)>,
    hand: usize,
}

impl NaiveSieve {
    fn touch(&mut self, item: u32, size: usize) -> bool {
        if let Some(held) = self.queue.iter_mut().find(|held| held.0 == item) {
            held.1 = true;
            return true;
        }
        if self.queue.len() == size {
            while std::mem::take(&mut self.queue[self.hand].1) {
                self.hand = (self.hand + 1) % size;
            }
            self.queue.remove(self.hand);
            // What stood behind is there now; at the newest end the hand begins anew, before the new item comes.
            self.hand %= self.queue.len().max(1);
        }
        self.queue.push((item, false));
        false
    }
}

/// S3-FIFO: two queues of items with counts, and a list of ghosts, the oldest first.
#[derive(Default)]
struct NaiveS3Fifo {
    small: Vec<(u32, u8)>,
    main: Vec<(u32, u8)>,
    ghosts: Vec<u32>,
}

impl NaiveS3Fifo {
    fn touch(&mut self, item: u32, size: usize) -> bool {
        if let Some(held) = self.small.iter_mut().chain(&mut self.main).find(|held| held.0 == item) {
            held.1 = (held.1 + 1).min(3);
            return true;
        }
        let small_size = (size / 10).max(1);
        while self.small.len() + self.main.len() == size {
            if self.small.len() < small_size {
                let (oldest, count) = self.main.remove(0);
                if count > 0 {
                    self.main.push((oldest, count - 1));
                }
                continue;
            }
            let (oldest, count) = self.small.remove(0);
            if count > 1 {
                self.main.push((oldest, 0));
                // The paper goes on in the small queue until something has left it.
                while let Some((oldest, count)) = (!self.small.is_empty()).then(|| self.small.remove(0)) {
                    if count > 1 {
                        self.main.push((oldest, 0));
                    } else {
                        self.ghosts.push(oldest);
                        break;
                    }
                }
            } else {
                self.ghosts.push(oldest);
            }
            let most = size - small_size;
            while self.ghosts.len() > most {
                self.ghosts.remove(0);
            }
        }
        match self.ghosts.iter().position(|ghost| *ghost == item) {
            Some(at) => {
                // Its place stays taken until its time is over: nobody else is remembered longer for it.
                self.ghosts[at] = u32::MAX;
                self.main.push((item, 0));
            }
            None => self.small.push((item, 0)),
        }
        false
    }
}

/// The fewest misses of all that a cache can do: on each miss keep anything of what it has and the item.
fn fewest_misses(items: &[u32], size: usize) -> u64 {
    let mut reachable: BTreeMap<BTreeSet<u32>, u64> = BTreeMap::from([(BTreeSet::new(), 0)]);
    for item in items {
        let mut after: BTreeMap<BTreeSet<u32>, u64> = BTreeMap::new();
        let mut reach = |held: BTreeSet<u32>, misses: u64| {
            let known = after.entry(held).or_insert(misses);
            *known = misses.min(*known);
        };
        for (held, misses) in reachable {
            if held.contains(item) {
                reach(held, misses);
                continue;
            }
            reach(held.clone(), misses + 1);
            let mut with = held.clone();
            with.insert(*item);
            if with.len() <= size {
                reach(with, misses + 1);
                continue;
            }
            for victim in &held {
                let mut without = with.clone();
                without.remove(victim);
                reach(without, misses + 1);
            }
        }
        reachable = after;
    }
    reachable.into_values().min().unwrap_or(0)
}

proptest! {
    #[test]
    fn lru_sieve_and_s3fifo_behave_exactly_like_the_naive_ones(size in 1usize..30, items in requests(400)) {
        let mut fast = (lru::Lru::new(size, ITEMS), sieve::Sieve::new(size, ITEMS), s3fifo::S3Fifo::new(size, ITEMS));
        let mut naive = (NaiveLru::default(), NaiveSieve::default(), NaiveS3Fifo::default());
        for (time, item) in items.iter().enumerate() {
            prop_assert_eq!(fast.0.touch(*item), naive.0.touch(*item, size), "LRU at {}", time);
            prop_assert_eq!(fast.1.touch(*item), naive.1.touch(*item, size), "SIEVE at {}", time);
            prop_assert_eq!(fast.2.touch(*item), naive.2.touch(*item, size), "S3-FIFO at {}", time);
        }
    }

    #[test]
    fn infinite_and_static_count_what_the_naive_ones_count(size in 1usize..50, items in requests(400)) {
        let mut cache = infinite::Infinite::new(ITEMS);
        let mut seen = BTreeSet::new();
        for item in &items {
            prop_assert_eq!(cache.touch(*item), !seen.insert(*item));
        }
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        items.iter().for_each(|item| *counts.entry(*item).or_default() += 1);
        let mut by_count: Vec<(u64, u32)> = counts.iter().map(|(item, count)| (*count, *item)).collect();
        by_count.sort_unstable_by(|a, b| b.cmp(a));
        let held: BTreeSet<u32> = by_count.iter().take(size).map(|(_, item)| *item).collect();
        let missed = items.iter().filter(|item| !held.contains(item)).count() as u64;
        let stream = stream(&items);
        prop_assert_eq!(Policy::Static.misses(&stream, size, 1), missed);
        prop_assert_eq!(Policy::StaticCharged.misses(&stream, size, 1), missed + held.len() as u64);
    }

    #[test]
    fn random_holds_what_it_held_but_one(size in 1usize..20, items in requests(200), seed in any::<u64>()) {
        let (mut cache, mut held) = (random::Random::new(size, ITEMS, seed), BTreeSet::new());
        for item in items {
            prop_assert_eq!(cache.touch(item), held.contains(&item));
            let before = held.clone();
            held = (0..ITEMS as u32).filter(|item| cache.holds(*item)).collect();
            prop_assert!(held.contains(&item) && held.len() <= size && before.difference(&held).count() <= 1);
        }
    }

    #[test]
    fn min_misses_as_few_as_anything_can(size in 1usize..5, items in prop::collection::vec(0u32..7, 0..24)) {
        prop_assert_eq!(Policy::Min.misses(&stream(&items), size, 1), fewest_misses(&items, size));
    }

    #[test]
    fn nobody_is_better_than_min_nor_min_than_infinite(size in 1usize..50, items in requests(600), seed in any::<u64>()) {
        let stream = stream(&items);
        let of = |policy: Policy| policy.misses(&stream, size, seed);
        let (least, infinite) = (of(Policy::Min), of(Policy::Infinite));
        prop_assert!(infinite <= least);
        // STATIC's loading is free in the paper's account, so it alone may seem better.
        for policy in Policy::ALL.into_iter().filter(|policy| !matches!(policy, Policy::Infinite | Policy::Static)) {
            prop_assert!(of(policy) >= least, "{} misses less than MIN", policy);
        }
    }
}

/// Where they differ most: links of a page are asked for once, and every page of a site has the same ones.
#[test]
fn sieve_loses_sight_of_moving_sites_where_clock_does_not() {
    let sites = 60;
    let mut items = Vec::new();
    for page in 0..sites * 30 {
        items.extend((0..10).map(|link| page / 30 * 400 + link));
        items.extend((0..10).map(|link| page / 30 * 400 + 10 + page % 30 * 10 + link));
    }
    let stream = Stream::new(items, &mut Numbers::new(sites as usize * 400));
    let [clock, sieve] = [Policy::Clock, Policy::Sieve].map(|policy| policy.misses(&stream, 64, 1) as f64 / stream.items().len() as f64);
    assert!(clock < 0.55 && sieve > clock, "CLOCK misses {clock}, SIEVE {sieve}");
}
