//! Turns of connections from places at which no member was, while the bytes for programs that are no members are spent.
//!
//! A connection costs some kilobytes before anything is asked over it. It is not refused to everybody: it may be of somebody who says no to
//! the swarm, or of a new member. But each place has three turns in ten minutes, all that come through one relay have eight, and all
//! together one each half a minute.

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

/// Turns of all that come through one relay: they may be several, and who uses one up takes none from those of another relay.
const TURNS_OF_RELAY: u32 = 8;

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    /// A place: an address, or a /64 of IPv6.
    Place(IpAddr),
    /// A relay at this place: where the other end is cannot be seen.
    Relay(IpAddr),
    /// It does not say.
    Unknown,
}

/// Who may connect. There are never more places than turns of all within [`PLACE_RESTS`].
pub(super) struct SpentTurns {
    all: TokenBucket,
    /// When its first turn was, and how many it has had since.
    places: HashMap<Origin, (Instant, u32)>,
}

impl SpentTurns {
    /// After a rest.
    pub(super) fn new(now: Instant) -> SpentTurns {
        SpentTurns { all: TokenBucket::every(BURST, ONE_EACH, now), places: HashMap::new() }
    }

    /// Whether a connection from there has a turn, which it takes.
    pub(super) fn take(&mut self, origin: Origin, now: Instant) -> bool {
        self.places.retain(|_, (first, _)| now.saturating_duration_since(*first) < PLACE_RESTS);
        let turns = if matches!(origin, Origin::Relay(_)) { TURNS_OF_RELAY } else { TURNS_OF_PLACE };
        let is_free = self.places.get(&origin).is_none_or(|(_, had)| *had < turns) && self.all.take(now);
        if is_free {
            self.places.entry(origin).or_insert((now, 0)).1 += 1;
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
        let place = |number: u8| Origin::Place(IpAddr::from([198, 51, 100, number]));
        assert!((0..TURNS_OF_PLACE).all(|_| turns.take(place(1), begin)) && !turns.take(place(1), begin + PLACE_RESTS / 2));
        assert!(turns.take(place(2), begin + PLACE_RESTS / 2) && turns.take(place(1), begin + PLACE_RESTS));
        let later = begin + 10 * PLACE_RESTS;
        let taken = (0..=255).filter(|number| turns.take(place(*number), later)).count();
        assert_eq!((taken, turns.places.len()), (BURST as usize, BURST as usize));
        assert!(turns.take(Origin::Unknown, later + ONE_EACH) && !turns.take(Origin::Unknown, later + ONE_EACH), "all together have few");
    }

    #[test]
    fn what_comes_through_one_relay_takes_no_turn_from_another_relay_and_none_from_who_is_at_its_place() {
        let begin = Instant::now();
        let mut turns = SpentTurns::new(begin);
        let [one, other] = [1, 2].map(|number| IpAddr::from([198, 51, 100, number]));
        let taken = |turns: &mut SpentTurns, origin| (0..20).filter(|_| turns.take(origin, begin)).count();
        assert_eq!(taken(&mut turns, Origin::Relay(one)), TURNS_OF_RELAY as usize);
        assert_eq!(taken(&mut turns, Origin::Relay(other)), TURNS_OF_RELAY as usize);
        assert_eq!(taken(&mut turns, Origin::Place(one)), TURNS_OF_PLACE as usize);
    }
}
