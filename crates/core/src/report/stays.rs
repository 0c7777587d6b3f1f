//! How long members were here, as far as their totals tell.
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

/// If nobody told anything for longer than this, we heard nobody, or stood still: that is no absence of others.
const SILENCE: Millis = 30_000;

/// When a member told its totals first and last.
#[derive(Clone, Copy, Debug)]
struct Stay {
    first: Moment,
    last: Moment,
    /// For how long we had been listening when it told them last.
    listened: Millis,
}

/// The stays of all members.
#[derive(Debug, Default)]
pub(super) struct Stays {
    known: BTreeMap<AccessPoint, Stay>,
    /// When anybody told anything last.
    heard: Option<Moment>,
    /// For how long we have been listening.
    listened: Millis,
}

impl Stays {
    /// A member told its totals, or that they hold.
    pub(super) fn told(&mut self, who: AccessPoint, now: Moment) {
        self.listened += self.heard.replace(now).map_or(0, |heard| now.since(heard).min(SILENCE));
        if let Some(stay) = self.known.get_mut(&who) {
            let (away, here) = (self.listened - stay.listened, stay.last.since(stay.first));
            if away > here.max(AWAY) {
                stay.first = now;
            }
            (stay.last, stay.listened) = (now, self.listened);
            return;
        }
        if self.known.len() >= MAX_STAYS
            && let Some((longest_gone, _)) = self.known.iter().min_by_key(|(_, stay)| stay.last)
        {
            let longest_gone = *longest_gone;
            self.known.remove(&longest_gone);
        }
        self.known.insert(who, Stay { first: now, last: now, listened: self.listened });
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

    const B: AccessPoint = AccessPoint([2; 32]);

    fn seconds(seconds: u64) -> Moment {
        Moment(seconds * 1_000)
    }

    #[test]
    fn a_stay_goes_on_after_an_absence_unless_that_is_longer_than_the_stay_was() {
        let mut stays = Stays::default();
        let mut told = |at: u64, by_a: bool| {
            stays.told(if by_a { A } else { B }, seconds(at));
            stays.lasted(&A)
        };
        let mut at = 0;
        // B is here all the time, A from and until then.
        for (from, until, since) in [(0, 60, 0), (180, 180, 0), (360, 360, 0), (740, 760, 740)] {
            while at < from {
                told(at, false);
                at += 20;
            }
            while at <= until {
                told(at, false);
                let lasted = told(at, true);
                assert_eq!(
                    lasted,
                    Some(((at - since) * 1_000, seconds(at))),
                    "a guest that comes now and then is here anew, others are not"
                );
                at += 20;
            }
        }
    }

    #[test]
    fn who_stood_still_or_was_cut_off_from_all_takes_nobody_for_absent() {
        let mut stays = Stays::default();
        let mut told = |at: u64| [A, B].into_iter().for_each(|who| stays.told(who, seconds(at)));
        (0..=60).step_by(20).for_each(&mut told);
        told(400);
        assert_eq!([A, B].map(|who| stays.lasted(&who)), [Some((400_000, seconds(400))); 2]);
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
