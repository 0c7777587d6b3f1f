//! Turns of connections from places at which no member was, while the bytes for programs that are no members are spent.
//!
//! A connection costs some kilobytes before anything is asked over it. It is not refused to everybody: it may be of somebody who says no to
//! the swarm, or of a new member. But each place has three turns in ten minutes, and all together one each half a minute.

use super::rate::TokenBucket;
use std::{
    collections::HashMap,
    net::IpAddr,
    time::{Duration, Instant},
};

/// For all places together so many after a rest (others are members that come back after a restart of ours), and one more each so often.
const BURST: u32 = 64;
const ONE_EACH: Duration = Duration::from_secs(30);

/// Turns of a place within [`PLACE_RESTS`]: to say no, to look whether it was heard, and once more.
const TURNS_OF_PLACE: u32 = 3;
const PLACE_RESTS: Duration = Duration::from_secs(600);

/// Who may connect. There are never more places than turns of all within [`PLACE_RESTS`].
pub(super) struct SpentTurns {
    all: TokenBucket,
    /// When its first turn was, and how many it has had since.
    places: HashMap<Option<IpAddr>, (Instant, u32)>,
}

impl SpentTurns {
    /// After a rest.
    pub(super) fn new(now: Instant) -> SpentTurns {
        SpentTurns { all: TokenBucket::every(BURST, ONE_EACH, now), places: HashMap::new() }
    }

    /// Whether a connection from there has a turn, which it takes; through a third member it comes from no place.
    pub(super) fn take(&mut self, place: Option<IpAddr>, now: Instant) -> bool {
        self.places.retain(|_, (first, _)| now.saturating_duration_since(*first) < PLACE_RESTS);
        let is_free = self.places.get(&place).is_none_or(|(_, had)| *had < TURNS_OF_PLACE) && self.all.take(now);
        if is_free {
            self.places.entry(place).or_insert((now, 0)).1 += 1;
        }
        is_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_few_turns_and_all_places_together_have_few() {
        let begin = Instant::now();
        let mut turns = SpentTurns::new(begin);
        let place = |number: u8| Some(IpAddr::from([198, 51, 100, number]));
        assert!((0..TURNS_OF_PLACE).all(|_| turns.take(place(1), begin)) && !turns.take(place(1), begin + PLACE_RESTS / 2));
        assert!(turns.take(place(2), begin + PLACE_RESTS / 2) && turns.take(place(1), begin + PLACE_RESTS));
        let later = begin + 10 * PLACE_RESTS;
        let taken = (0..=255).filter(|number| turns.take(place(*number), later)).count();
        assert_eq!((taken, turns.places.len()), (BURST as usize, BURST as usize));
        assert!(turns.take(None, later + ONE_EACH) && !turns.take(None, later + ONE_EACH), "all together have few");
    }
}
