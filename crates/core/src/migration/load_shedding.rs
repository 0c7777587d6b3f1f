//! Load shedding: the subnets that an access point busier than the average gives away, although it is the best place for them.
//!
//! Load prices (see [`LoadPrice`](super::LoadPrice)) act slowly: a subnet moves only after several penalties, and prices that followed
//! loads at once would move many subnets together. A present excess is therefore shed directly: the subnets whose move costs least go
//! first, until half of the excess is gone.

/// Load is shed above the average by this share.
const TOLERANCE: f64 = 0.02;

/// The share of the excess that is shed at a time: other members act on the same loads.
const SHED_SHARE: f64 = 0.5;

/// A subnet that could go, to the best of the other access points that were thought of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShedCandidate<U, A> {
    /// Which subnet.
    pub unit: U,
    /// Where it would go.
    pub arm: A,
    /// For how long, in whatever unit, it keeps its present access point busy.
    pub here: f64,
    /// For how long it would keep the other one busy.
    pub there: f64,
    /// What the move should bring, as [`Rival::worth`](super::Rival::worth); negative if it costs.
    pub worth: f64,
}

/// Which of them go, if this access point is busy for `own` and the swarm's on average for `average`. The other access point is asked
/// by `accepts` whether it has room for one that would keep it busy for so long; what it accepts goes.
pub fn shed_load<U, A>(
    own: f64,
    average: f64,
    mut candidates: Vec<ShedCandidate<U, A>>,
    mut accepts: impl FnMut(&A, f64) -> bool,
) -> Vec<(U, A)> {
    let excess = own - average;
    if !excess.is_finite() || excess <= TOLERANCE * average {
        return Vec::new();
    }
    let mut budget = SHED_SHARE * excess;
    candidates.sort_by(|one, other| other.worth.total_cmp(&one.worth));
    let mut leaving = Vec::new();
    for ShedCandidate { unit, arm, here, there, .. } in candidates {
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

    fn shed_candidate(unit: u8, here: f64, worth: f64) -> ShedCandidate<u8, char> {
        ShedCandidate { unit, arm: if unit.is_multiple_of(2) { 'a' } else { 'b' }, here, there: 2.0 * here, worth }
    }

    #[test]
    fn half_of_the_excess_goes_and_what_costs_least_goes_first() {
        let candidates = vec![
            shed_candidate(1, 2.0, -9.0),
            shed_candidate(2, 2.0, -1.0),
            shed_candidate(3, 2.0, -4.0),
            shed_candidate(4, 9.0, -0.5),
            shed_candidate(5, 0.0, 1.0),
        ];
        assert_eq!(shed_load(28.0, 20.0, candidates.clone(), |_, _| true), [(2, 'a'), (3, 'b')]);
        assert_eq!(shed_load(24.0, 20.0, candidates.clone(), |_, _| true), [(2, 'a')]);
        assert_eq!(shed_load(20.3, 20.0, candidates, |_, _| true), [], "it is hardly busier than the others");
    }

    #[test]
    fn no_member_is_given_what_it_has_no_room_for() {
        let mut room = 5.0;
        let candidates = (1..=6).map(|unit| shed_candidate(unit, 1.0, -1.0)).collect();
        let leaving = shed_load(40.0, 20.0, candidates, |arm, there| {
            let fits = *arm == 'a' && there <= room;
            room -= if fits { there } else { 0.0 };
            fits
        });
        assert_eq!(leaving, [(2, 'a'), (4, 'a')]);
    }

    #[test]
    fn who_is_not_busy_at_all_or_knows_nothing_keeps_everything() {
        for (own, average) in [(0.0, 0.0), (f64::NAN, 1.0), (1.0, f64::NAN), (0.5, 1.0)] {
            assert_eq!(shed_load(own, average, vec![shed_candidate(1, 0.1, 1.0)], |_, _| true), []);
        }
    }
}
