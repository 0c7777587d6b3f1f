//! Would another rule have missed less? Of all items one in 64 is also shown to small caches that follow other rules, while the crawl goes on.
//!
//! Which items are shown depends on them alone, and the shadows have 1/64 of the entries: so they miss about what a whole cache of their rule
//! would. CLOCK itself is among them; how far it is from the real one says how far the sample can be believed.

use super::{ClockCache, ClockStatistics};
use crate::model::fingerprint::Fingerprint;
use std::collections::BTreeMap;

/// One item of so many is shown.
const ONE_OF: usize = 64;

/// A shadow with this many times the entries stands for a cache that forgets nothing.
const ALMOST_ALL: usize = 16;

/// A CLOCK cache with its shadows.
#[derive(Clone, Debug)]
pub struct ShadowedCache {
    clock: ClockCache,
    shadows: [Shadow; 4],
}

/// How a rule did with the items it was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShadowStatistics {
    /// The rule: `clock`, `lru`, `random`, or `lru-16` for 16 times the entries.
    pub policy: &'static str,
    /// Items that it held.
    pub hits: u64,
    /// Items that it did not.
    pub misses: u64,
}

impl ShadowedCache {
    /// A CLOCK cache of `capacity` entries, and shadows of a 64th of them each; one of a quarter.
    pub fn with_capacity(capacity: usize) -> ShadowedCache {
        let part = capacity.div_ceil(ONE_OF);
        let shadow = |policy, rule| Shadow { policy, rule, hits: 0, misses: 0 };
        ShadowedCache {
            clock: ClockCache::with_capacity(capacity),
            shadows: [
                shadow("clock", Rule::Clock(ClockCache::with_capacity(part))),
                shadow("lru", Rule::Lru(Lru::with_capacity(part))),
                shadow("random", Rule::Random(Random::with_capacity(part))),
                shadow("lru-16", Rule::Lru(Lru::with_capacity(part.saturating_mul(ALMOST_ALL)))),
            ],
        }
    }

    /// Whether `item` was met lately; if not, it is from now on.
    pub fn meet(&mut self, item: Fingerprint) -> bool {
        // By the lowest bits: the highest choose buckets, of which a shadow would then use a part only.
        if item.0.is_multiple_of(ONE_OF as u64) {
            self.shadows.iter_mut().for_each(|shadow| shadow.meet(item));
        }
        self.clock.meet(item)
    }

    /// Hits, misses and sizes of the real cache.
    pub fn statistics(&self) -> ClockStatistics {
        self.clock.statistics()
    }

    /// How the shadows did.
    pub fn shadows(&self) -> impl Iterator<Item = ShadowStatistics> {
        self.shadows.iter().map(|shadow| ShadowStatistics { policy: shadow.policy, hits: shadow.hits, misses: shadow.misses })
    }
}

#[derive(Clone, Debug)]
struct Shadow {
    policy: &'static str,
    rule: Rule,
    hits: u64,
    misses: u64,
}

#[derive(Clone, Debug)]
enum Rule {
    Clock(ClockCache),
    Lru(Lru),
    Random(Random),
}

impl Shadow {
    fn meet(&mut self, item: Fingerprint) {
        let hit = match &mut self.rule {
            Rule::Clock(cache) => cache.meet(item),
            Rule::Lru(cache) => cache.meet(item),
            Rule::Random(cache) => cache.meet(item),
        };
        *(if hit { &mut self.hits } else { &mut self.misses }) += 1;
    }
}

/// What was not met for longest goes.
#[derive(Clone, Debug)]
struct Lru {
    capacity: usize,
    time: u64,
    met: BTreeMap<Fingerprint, u64>,
    order: BTreeMap<u64, Fingerprint>,
}

impl Lru {
    fn with_capacity(capacity: usize) -> Lru {
        Lru { capacity, time: 0, met: BTreeMap::new(), order: BTreeMap::new() }
    }

    fn meet(&mut self, item: Fingerprint) -> bool {
        self.time += 1;
        self.order.insert(self.time, item);
        let before = self.met.insert(item, self.time);
        if let Some(before) = before {
            self.order.remove(&before);
        } else if self.met.len() > self.capacity
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.met.remove(&oldest);
        }
        before.is_some()
    }
}

/// Any item goes.
#[derive(Clone, Debug)]
struct Random {
    capacity: usize,
    held: BTreeMap<Fingerprint, ()>,
    slots: Vec<Fingerprint>,
    replaced: u64,
}

impl Random {
    fn with_capacity(capacity: usize) -> Random {
        Random { capacity, held: BTreeMap::new(), slots: Vec::new(), replaced: 0 }
    }

    fn meet(&mut self, item: Fingerprint) -> bool {
        if self.held.insert(item, ()).is_some() {
            return true;
        }
        if self.slots.len() < self.capacity {
            self.slots.push(item);
        } else {
            self.replaced += 1;
            // Chance enough: which slot is next has nothing to do with what is in it.
            let slot = Fingerprint(self.replaced).scoped(0).0 as usize % self.slots.len();
            let gone = std::mem::replace(&mut self.slots[slot], item);
            self.held.remove(&gone);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(hits: u64, misses: u64) -> f64 {
        misses as f64 / (hits + misses) as f64
    }

    /// Links of pages: those of a template, again and again, and some that few pages have; sites take turns.
    fn met(cache: &mut ShadowedCache) {
        for page in 0..60_000u64 {
            let site = page % 300;
            for link in 0..20 {
                let old = Fingerprint(page * 20 + link).scoped(1).0;
                // Half of the links are of the template, the others any of the site's newest.
                let link = if link < 10 { old % 60 } else { 60 + page / 300 * 4 + old % 80 };
                cache.meet(Fingerprint(site << 32 | link).scoped(2));
            }
        }
    }

    #[test]
    fn the_shadows_miss_what_whole_caches_of_their_rules_would() {
        let mut cache = ShadowedCache::with_capacity(25_600);
        met(&mut cache);
        let real = cache.statistics();
        let real = rate(real.hits, real.misses);
        let shadows: BTreeMap<_, _> = cache.shadows().map(|shadow| (shadow.policy, rate(shadow.hits, shadow.misses))).collect();
        assert!((shadows["clock"] - real).abs() < 0.04, "CLOCK itself misses {real}, its shadow {}", shadows["clock"]);
        assert!((shadows["lru"] - shadows["clock"]).abs() < 0.04, "{shadows:?}");
        assert!(shadows["random"] > shadows["lru"], "{shadows:?}");
        assert!(shadows["lru-16"] < shadows["lru"], "{shadows:?}");
        let shown: u64 = cache.shadows().map(|shadow| shadow.hits + shadow.misses).sum::<u64>() / 4;
        assert!((15_000..23_000).contains(&shown), "{shown} of 1,200,000");
    }

    #[test]
    fn the_shadows_replace_by_their_rules() {
        let item = |n: u64| Fingerprint(n).scoped(1);
        let mut lru = Lru::with_capacity(2);
        assert_eq!(
            [1, 2, 1, 3, 1, 2].map(|n| lru.meet(item(n))),
            [false, false, true, false, true, false],
            "3 replaces 2, which was met before 1"
        );
        let mut random = Random::with_capacity(10);
        (0..1_000).for_each(|n| assert!(!random.meet(item(n))));
        let held: Vec<_> = (0..1_000).filter(|n| random.held.contains_key(&item(*n))).collect();
        assert!(held.len() == 10 && held[0] < 990 && held[9] == 999, "some old ones stay, the newest is there: {held:?}");
    }
}
