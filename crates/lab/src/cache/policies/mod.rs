//! The rules of replacement for a URL cache, each in a file of its own; all are fed with items numbered from 0 without gaps.

mod clock;
mod infinite;
mod list;
mod lru;
pub(crate) mod min;
pub(crate) mod popular;
mod random;
mod rule;
mod s3fifo;
mod sieve;

#[cfg(test)]
mod tests;

use super::stream::Stream;
use rule::Cache;
use std::fmt;

/// A replacement policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Policy {
    /// Keeps everything (INFINITE).
    Infinite,
    /// Knows all requests to come (MIN).
    Min,
    /// Replaces the item not requested for longest (LRU).
    Lru,
    /// The daemon's CLOCK.
    Clock,
    /// Replaces a random item.
    Random,
    /// Holds the most requested items from the start, without a miss for loading them: as the paper counts.
    Static,
    /// The same, with one miss for each item loaded.
    StaticCharged,
    /// S3-FIFO: a small, a main and a ghost queue.
    S3Fifo,
    /// SIEVE: one queue, and a pointer that moves over it to find what to replace.
    Sieve,
}

impl Policy {
    /// All of them, in the order of tables.
    pub const ALL: [Policy; 9] = [
        Policy::Infinite,
        Policy::Min,
        Policy::Lru,
        Policy::Clock,
        Policy::Random,
        Policy::Static,
        Policy::StaticCharged,
        Policy::S3Fifo,
        Policy::Sieve,
    ];

    /// How many requests of this stream it misses with `size` entries (at least 1).
    pub fn misses(self, stream: &Stream, size: usize, seed: u64) -> u64 {
        let (items, distinct) = (stream.items(), stream.distinct());
        match self {
            Policy::Static => popular::misses(stream.counts(), size),
            Policy::StaticCharged => popular::misses(stream.counts(), size) + popular::loaded(stream.counts(), size),
            Policy::Infinite => misses_of(infinite::Infinite::new(distinct), items),
            // With room for everything nothing is ever replaced, by any rule.
            _ if size >= distinct => distinct as u64,
            Policy::Min => min::misses(items, stream.next(), size, distinct),
            Policy::Lru => misses_of(lru::Lru::new(size, distinct), items),
            Policy::Clock => misses_of(clock::Clock::new(size), items),
            Policy::Random => misses_of(random::Random::new(size, distinct, seed), items),
            Policy::S3Fifo => misses_of(s3fifo::S3Fifo::new(size, distinct), items),
            Policy::Sieve => misses_of(sieve::Sieve::new(size, distinct), items),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Policy::Infinite => "infinite",
            Policy::Min => "min",
            Policy::Lru => "lru",
            Policy::Clock => "clock",
            Policy::Random => "random",
            Policy::Static => "static",
            Policy::StaticCharged => "static-charged",
            Policy::S3Fifo => "s3fifo",
            Policy::Sieve => "sieve",
        })
    }
}

/// Feeds a cache with all requests and counts what it missed.
fn misses_of(mut cache: impl Cache, items: &[u32]) -> u64 {
    items.iter().map(|item| u64::from(!cache.touch(*item))).sum()
}
