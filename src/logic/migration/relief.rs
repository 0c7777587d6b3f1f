//! Which subnets does an access point give away because it is too busy, although they are well off with it?
//!
//! Prices make the busy dearer (see [`LoadPrice`](super::LoadPrice)), but slowly: subnets feel them one penalty after the other, and a
//! price that followed loads at once would send all of them on their way together. What is too much now is therefore given away directly:
//! those subnets whose going costs least, and no more of them than stand for a part of the excess.

/// An access point is too busy when it is busier than the average by this share.
const TOO_BUSY: f64 = 0.02;

/// So much of the excess is given away at a time: what was judged before it acts on loads that will have changed.
const PART: f64 = 0.5;

/// A subnet that could go, to the best of the other access points that were thought of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spare<U, A> {
    /// Which subnet.
    pub unit: U,
    /// Where it would go.
    pub arm: A,
    /// For how long, in whatever unit, it keeps its present access point busy.
    pub here: f64,
    /// For how long it would keep the other one busy.
    pub there: f64,
    /// What its going should bring, as [`Rival::worth`](super::Rival::worth); negative if it costs.
    pub worth: f64,
}

/// Which of them go, if this access point is busy for `own` and the swarm's on average for `average`. The other access point is asked
/// by `accepts` whether it has room for one that would keep it busy for so long; what it says yes to goes.
pub fn relieve<U, A>(own: f64, average: f64, mut spares: Vec<Spare<U, A>>, mut accepts: impl FnMut(&A, f64) -> bool) -> Vec<(U, A)> {
    let excess = own - average;
    if !excess.is_finite() || excess <= TOO_BUSY * average {
        return Vec::new();
    }
    let mut budget = PART * excess;
    spares.sort_by(|one, other| other.worth.total_cmp(&one.worth));
    let mut leaving = Vec::new();
    for Spare { unit, arm, here, there, .. } in spares {
        if here > 0.0 && here <= budget && accepts(&arm, there) {
            budget -= here;
            leaving.push((unit, arm));
        }
    }
    leaving
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spare(unit: u8, here: f64, worth: f64) -> Spare<u8, char> {
        Spare { unit, arm: if unit.is_multiple_of(2) { 'a' } else { 'b' }, here, there: 2.0 * here, worth }
    }

    #[test]
    fn half_of_the_excess_goes_and_what_costs_least_goes_first() {
        let spares = vec![spare(1, 2.0, -9.0), spare(2, 2.0, -1.0), spare(3, 2.0, -4.0), spare(4, 9.0, -0.5), spare(5, 0.0, 1.0)];
        assert_eq!(relieve(28.0, 20.0, spares.clone(), |_, _| true), [(2, 'a'), (3, 'b')]);
        assert_eq!(relieve(24.0, 20.0, spares.clone(), |_, _| true), [(2, 'a')]);
        assert_eq!(relieve(20.3, 20.0, spares, |_, _| true), [], "it is hardly busier than the others");
    }

    #[test]
    fn nobody_is_given_what_it_has_no_room_for() {
        let mut room = 5.0;
        let spares = (1..=6).map(|unit| spare(unit, 1.0, -1.0)).collect();
        let leaving = relieve(40.0, 20.0, spares, |arm, there| {
            let fits = *arm == 'a' && there <= room;
            room -= if fits { there } else { 0.0 };
            fits
        });
        assert_eq!(leaving, [(2, 'a'), (4, 'a')]);
    }

    #[test]
    fn who_is_not_busy_at_all_or_knows_nothing_keeps_everything() {
        for (own, average) in [(0.0, 0.0), (f64::NAN, 1.0), (1.0, f64::NAN), (0.5, 1.0)] {
            assert_eq!(relieve(own, average, vec![spare(1, 0.1, 1.0)], |_, _| true), []);
        }
    }
}
