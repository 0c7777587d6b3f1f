//! Limits on the gossip that is taken, and on what of it is passed on.
//!
//! A message costs one token, and one more for each [`STEP`] bytes, of several buckets: that of the member that sent it, that of its
//! author, and, if it is to be passed on, that of all that is. What a member passes on for others is always less than what others take of
//! it, so nobody is blamed for a flood that it only hears. What a connected member says itself is counted apart: it comes through whatever
//! others have it pass on.

use super::rate::TokenBucket;
use libp2p::PeerId;
use std::{collections::HashMap, time::Instant};

/// A message costs one more token for each so many bytes.
const STEP: usize = 8 << 10;

/// What one member may send us, its own and what it passes on: so many tokens at once, so many a second.
const FROM_ONE: (u32, u32) = (1000, 200);

/// Of that, what it says itself: a member tells its claims and its sums at most once a second each, and its distances more rarely.
const SAID_BY_ONE: (u32, u32) = (300, 30);

/// What is passed on of one author by others than itself.
const TOLD_OF_ONE: (u32, u32) = (100, 10);

/// The same for all authors together of whom no address is known here: keys cost nothing.
const TOLD_OF_UNKNOWN: (u32, u32) = (100, 10);

/// What is passed on in all; with what a member says itself less than [`FROM_ONE`].
const PASSED_ON: (u32, u32) = (500, 150);

/// Messages beyond its limits after which a member is shut out, and by how many a second that is forgiven.
pub(super) const MAX_EXCESS: (u32, u32) = (2000, 20);

/// Authors whose buckets are kept.
const MAX_AUTHORS: usize = 4096;

/// What is done with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gossip {
    /// It is heard and passed on.
    Taken,
    /// It is heard, but not passed on: enough is.
    Heard,
    /// It is left aside, because others say too much of this author.
    Left,
    /// It is left aside, and the member that sent it is to blame.
    Excess,
}

/// Who wrote a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Author {
    /// The member that sent it.
    Sender,
    /// Another one, of whom it is known where it can be reached.
    Known(PeerId),
    /// Anybody else.
    Unknown,
}

/// The buckets of a member that sends gossip.
#[derive(Debug)]
pub(super) struct Sender {
    /// For all that it sends.
    all: TokenBucket,
    /// Of that, for what it says itself.
    said: TokenBucket,
}

impl Sender {
    /// One that has said nothing yet.
    pub(super) fn new(now: Instant) -> Sender {
        Sender { all: bucket(FROM_ONE, now), said: bucket(SAID_BY_ONE, now) }
    }
}

/// Buckets that do not belong to a connection.
#[derive(Debug)]
pub(super) struct GossipLimits {
    authors: HashMap<PeerId, TokenBucket>,
    unknown: TokenBucket,
    passed_on: TokenBucket,
}

fn bucket((burst, rate): (u32, u32), now: Instant) -> TokenBucket {
    TokenBucket::new(burst, rate, now)
}

/// What a message of this length costs.
fn cost(length: usize) -> f64 {
    (1 + length / STEP) as f64
}

impl GossipLimits {
    pub(super) fn new(now: Instant) -> GossipLimits {
        GossipLimits { authors: HashMap::new(), unknown: bucket(TOLD_OF_UNKNOWN, now), passed_on: bucket(PASSED_ON, now) }
    }

    /// A message of this length came from a member, whose buckets these are.
    pub(super) fn judge(&mut self, sender: &mut Sender, author: Author, length: usize, now: Instant) -> Gossip {
        let (own, cost) = (author == Author::Sender, cost(length));
        if !sender.all.take_some(now, cost) || (own && !sender.said.take_some(now, cost)) {
            return Gossip::Excess;
        }
        let told_of = match author {
            Author::Sender => None,
            Author::Known(author) => Some(self.told_of(author, now)),
            Author::Unknown => Some(&mut self.unknown),
        };
        if told_of.is_some_and(|bucket| !bucket.take_some(now, cost)) {
            return Gossip::Left;
        }
        if self.passed_on.take_some(now, cost) { Gossip::Taken } else { Gossip::Heard }
    }

    fn told_of(&mut self, author: PeerId, now: Instant) -> &mut TokenBucket {
        if self.authors.len() >= MAX_AUTHORS && !self.authors.contains_key(&author) {
            // Who was silent for a while has all its tokens, and needs no bucket.
            self.authors.retain(|_, bucket| !bucket.is_full(now));
        }
        if self.authors.len() < MAX_AUTHORS || self.authors.contains_key(&author) {
            self.authors.entry(author).or_insert_with(|| bucket(TOLD_OF_ONE, now))
        } else {
            &mut self.unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// What becomes of so many messages.
    fn tried(times: usize, mut judge: impl FnMut() -> Gossip) -> [usize; 4] {
        let mut seen = [0; 4];
        for _ in 0..times {
            seen[judge() as usize] += 1;
        }
        seen
    }

    #[test]
    fn who_says_too_much_is_to_blame_and_the_others_are_heard() {
        let now = Instant::now();
        let (mut limits, mut loud, mut quiet) = (GossipLimits::new(now), Sender::new(now), Sender::new(now));
        assert_eq!(tried(5_000, || limits.judge(&mut loud, Author::Sender, 100, now)), [300, 0, 0, 4_700]);
        assert_eq!(tried(50, || limits.judge(&mut quiet, Author::Sender, 100, now)), [50, 0, 0, 0]);
        let later = now + Duration::from_secs(10);
        assert_eq!(tried(1_000, || limits.judge(&mut loud, Author::Sender, 100, later)), [300, 0, 0, 700]);
    }

    #[test]
    fn large_messages_cost_more() {
        let now = Instant::now();
        let (mut limits, mut loud) = (GossipLimits::new(now), Sender::new(now));
        assert_eq!(tried(20, || limits.judge(&mut loud, Author::Sender, 256 << 10, now)), [9, 0, 0, 11]);
    }

    #[test]
    fn invented_authors_share_one_bucket_and_blame_nobody_who_passes_them_on() {
        let now = Instant::now();
        let (mut limits, mut relay) = (GossipLimits::new(now), Sender::new(now));
        assert_eq!(tried(900, || limits.judge(&mut relay, Author::Unknown, 100, now)), [100, 0, 800, 0]);
        let known = Author::Known(PeerId::random());
        assert_eq!(tried(50, || limits.judge(&mut relay, known, 100, now)), [50, 0, 0, 0]);
        assert_eq!(tried(100, || limits.judge(&mut relay, known, 100, now)), [50, 0, 0, 50], "it has sent all that it may");
    }

    #[test]
    fn what_is_passed_on_is_less_than_what_others_take() {
        const { assert!(PASSED_ON.0 + SAID_BY_ONE.0 < FROM_ONE.0 && PASSED_ON.1 + SAID_BY_ONE.1 < FROM_ONE.1) };
        let now = Instant::now();
        let mut limits = GossipLimits::new(now);
        let mut heard = [0; 4];
        for _ in 0..10 {
            let (mut relay, author) = (Sender::new(now), Author::Known(PeerId::random()));
            let seen = tried(100, || limits.judge(&mut relay, author, 100, now));
            heard.iter_mut().zip(seen).for_each(|(sum, more)| *sum += more);
        }
        assert_eq!(heard, [500, 500, 0, 0]);
    }

    #[test]
    fn buckets_of_authors_are_limited() {
        let now = Instant::now();
        let mut limits = GossipLimits::new(now);
        for _ in 0..MAX_AUTHORS + 10 {
            limits.judge(&mut Sender::new(now), Author::Known(PeerId::random()), 100, now);
        }
        assert_eq!(limits.authors.len(), MAX_AUTHORS);
        let later = now + Duration::from_secs(60);
        limits.judge(&mut Sender::new(later), Author::Known(PeerId::random()), 100, later);
        assert_eq!(limits.authors.len(), 1);
    }
}
