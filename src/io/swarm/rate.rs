//! Is this peer asking too often? A token bucket.

use std::time::Instant;

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

    /// Takes a token, if there is one.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let elapsed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + elapsed * self.per_second).min(self.burst);
        self.filled = self.filled.max(now);
        let has_one = self.tokens >= 1.0;
        if has_one {
            self.tokens -= 1.0;
        }
        has_one
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_burst_passes_then_the_rate() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(5, 2, start);
        assert_eq!((0..10).filter(|_| bucket.take(start)).count(), 5);
        let later = start + Duration::from_millis(1500);
        assert_eq!((0..10).filter(|_| bucket.take(later)).count(), 3);
        let much_later = start + Duration::from_secs(3600);
        assert_eq!((0..10).filter(|_| bucket.take(much_later)).count(), 5, "it does not save up more than a burst");
    }
}
