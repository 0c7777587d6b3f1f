//! Token bucket that limits how often a peer asks.

use std::time::{Duration, Instant};

/// So many at once, so many a second.
#[derive(Clone, Debug)]
pub(super) struct TokenBucket {
    burst: f64,
    per_second: f64,
    tokens: f64,
    filled: Instant,
}

impl TokenBucket {
    /// A full bucket.
    pub(super) fn new(burst: u32, per_second: u32, now: Instant) -> TokenBucket {
        TokenBucket { burst: f64::from(burst), per_second: f64::from(per_second), tokens: f64::from(burst), filled: now }
    }

    /// A full bucket with one more token each so often.
    pub(super) fn every(burst: u32, each: Duration, now: Instant) -> TokenBucket {
        TokenBucket { per_second: 1.0 / each.as_secs_f64(), ..TokenBucket::new(burst, 0, now) }
    }

    /// Takes a token, if there is one.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        self.take_some(now, 1.0)
    }

    /// Takes so many tokens, if there are so many.
    pub(super) fn take_some(&mut self, now: Instant, tokens: f64) -> bool {
        self.fill(now);
        let enough = self.tokens >= tokens;
        if enough {
            self.tokens -= tokens;
        }
        enough
    }

    /// Whether nothing was taken for so long that a new bucket would be the same.
    pub(super) fn is_full(&mut self, now: Instant) -> bool {
        self.fill(now);
        self.tokens >= self.burst
    }

    fn fill(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + elapsed * self.per_second).min(self.burst);
        self.filled = self.filled.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_burst_passes_then_the_rate() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(5, 2, start);
        assert_eq!((0..10).filter(|_| bucket.take(start)).count(), 5);
        let later = start + Duration::from_millis(1500);
        assert_eq!((0..10).filter(|_| bucket.take(later)).count(), 3);
        let much_later = start + Duration::from_secs(3600);
        assert!(bucket.is_full(much_later));
        assert_eq!((0..10).filter(|_| bucket.take(much_later)).count(), 5, "it does not save up more than a burst");
        let once_more = much_later + Duration::from_secs(2);
        assert!(!bucket.take_some(once_more, 4.5) && bucket.take_some(once_more, 3.5) && !bucket.is_full(once_more));
    }
}
