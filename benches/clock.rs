//! Benchmark of a look-up in the CLOCK cache.
//!
//! `cargo bench --bench clock`: hits, misses and four hits of five, in a cache that stays in the processor's and in one that does not.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use nearcrawl_core::clock_cache::ClockCache;
use nearcrawl_model::fingerprint::Fingerprint;
use std::hint::black_box;

/// Links of a page.
const LINKS: u64 = 105;

fn touches(criterion: &mut Criterion) {
    for capacity in [25_600, 1 << 22] {
        let mut group = criterion.benchmark_group(format!("{capacity} entries, {LINKS} links"));
        group.throughput(Throughput::Elements(LINKS));
        for (name, misses_of_ten) in [("hits", 0), ("misses", 10), ("4 hits of 5", 2)] {
            let held = capacity as u64 / 2;
            // What is requested again is spread over half of the cache, so that it stays there.
            let link = |n: u64| {
                let chance = Fingerprint(n).scoped(3).0;
                if chance % 10 < misses_of_ten { (Fingerprint(n).scoped(1), true) } else { (Fingerprint(chance % held).scoped(2), false) }
            };
            let mut clock = ClockCache::with_capacity(capacity);
            for n in 0..held {
                clock.touch(Fingerprint(n).scoped(2));
            }
            let pages: Vec<Vec<(Fingerprint, bool)>> =
                (0..20_000).map(|page| (page * LINKS..(page + 1) * LINKS).map(link).collect()).collect();
            // The pages come again and again, but their new links are new each time.
            let now = |(link, new): &(Fingerprint, bool), round: u64| if *new { link.scoped(round) } else { *link };
            let mut visit = 0;
            group.bench_function(name, |bencher| {
                bencher.iter(|| {
                    visit += 1;
                    let page = &pages[visit % pages.len()];
                    black_box(page.iter().filter(|link| clock.touch(now(link, visit as u64))).count())
                });
            });
        }
    }
}

criterion_group!(benches, touches);
criterion_main!(benches);
