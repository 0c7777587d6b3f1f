//! For how long were members here, as far as their totals tell?
//!
//! It is remembered of those that are gone, too, also when others have taken over all that they owned: that is when it is asked.

use nearcrawl_model::{
    access_point::AccessPoint,
    time::{Millis, Moment},
};
use std::collections::BTreeMap;

/// So many members are remembered; of more those are forgotten that have been gone for longest.
pub(crate) const MAX_STAYS: usize = 16_384;

/// A member that told nothing for longer than this, and for longer than it had been here, is here anew.
const AWAY: Millis = 120_000;

/// When a member told its totals first and last.
#[derive(Clone, Copy, Debug)]
struct Stay {
    first: Moment,
    last: Moment,
}

/// The stays of all members.
#[derive(Debug, Default)]
pub(super) struct Stays {
    known: BTreeMap<AccessPoint, Stay>,
}

impl Stays {
    /// A member told its totals, or that they hold.
    pub(super) fn told(&mut self, who: AccessPoint, now: Moment) {
        if let Some(stay) = self.known.get_mut(&who) {
            let (away, here) = (now.since(stay.last), stay.last.since(stay.first));
            if away > here.max(AWAY) {
                stay.first = now;
            }
            stay.last = now;
            return;
        }
        if self.known.len() >= MAX_STAYS
            && let Some((longest_gone, _)) = self.known.iter().min_by_key(|(_, stay)| stay.last)
        {
            let longest_gone = *longest_gone;
            self.known.remove(&longest_gone);
        }
        self.known.insert(who, Stay { first: now, last: now });
    }

    /// How much time lies between the first time and the last, and when that was; none of a member of which nothing is known.
    pub(super) fn lasted(&self, who: &AccessPoint) -> Option<(Millis, Moment)> {
        self.known.get(who).map(|stay| (stay.last.since(stay.first), stay.last))
    }

    /// How many members are remembered.
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: AccessPoint = AccessPoint([1; 32]);

    #[test]
    fn a_stay_goes_on_after_an_absence_unless_that_is_longer_than_the_stay_was() {
        let (mut stays, seconds) = (Stays::default(), |seconds: u64| Moment(seconds * 1_000));
        assert_eq!(stays.lasted(&A), None);
        (0..=60).step_by(20).for_each(|at| stays.told(A, seconds(at)));
        stays.told(A, seconds(180));
        assert_eq!(stays.lasted(&A), Some((180_000, seconds(180))), "it was started anew");
        stays.told(A, seconds(360));
        assert_eq!(stays.lasted(&A), Some((360_000, seconds(360))));
        stays.told(A, seconds(721));
        assert_eq!(stays.lasted(&A), Some((0, seconds(721))), "a guest that comes now and then");
    }

    #[test]
    fn of_too_many_those_are_forgotten_that_have_been_gone_for_longest() {
        let mut stays = Stays::default();
        let point = |number: u64| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            AccessPoint(bytes)
        };
        (0..MAX_STAYS as u64 + 2).for_each(|number| {
            stays.told(point(number), Moment(number));
            stays.told(point(0), Moment(number));
        });
        let known: Vec<_> = (0..4).map(|number| stays.lasted(&point(number)).is_some()).collect();
        assert_eq!((known, stays.len()), (vec![true, false, false, true], MAX_STAYS));
    }
}
