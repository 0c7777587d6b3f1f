//! Totals that this daemon told before its last end; they answer until it knows as much again.
//!
//! Else totals would seem to fall with every restart, to those of its own servers first, and to nothing before.
//!
//! What was told is stored whenever it has changed. After a start it answers, as the last consistent totals with their age, until the
//! totals are exact or nothing in them is less than before; for as long as all last consistent totals do, at most.

use crate::node::state::write_behind::WriteBehind;
use nearcrawl_core::report::KEPT;
use nearcrawl_model::{
    summary::{Counts, Coverage, Summary, SwarmResults},
    time::{Millis, Moment, Now, WallTime},
};
use serde::{Deserialize, Serialize};

/// Totals that were told.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Told {
    /// When.
    at: WallTime,
    /// The same by the boot clock, in milliseconds; none in what earlier builds stored.
    #[serde(default)]
    boot_ms: Option<u64>,
    oldest_roll_up_age_ms: Millis,
    covers: Vec<Coverage>,
    summary: Summary,
}

impl Told {
    /// How old it is, at least, if the clock on the wall was set back.
    fn age(&self, now: Now) -> Millis {
        let by_wall = now.wall.0.saturating_sub(self.at.0);
        // After another boot it is older than that boot.
        let by_boot = self.boot_ms.map_or(0, |then| now.moment.0.checked_sub(then).unwrap_or(now.moment.0));
        by_wall.max(by_boot)
    }
}

/// The totals that were told last.
#[derive(Debug, Default)]
pub struct ToldTotals {
    /// What the process before told, how old that was when this one began, and when it began; none if it does not answer any more.
    before: Option<(Told, Millis, Moment)>,
    /// The sums that were told last and are stored, or are going to be.
    last: Option<Counts>,
    writes: WriteBehind<Vec<u8>>,
}

impl ToldTotals {
    /// At a start, with what is stored. What cannot be read counts as absent.
    pub fn begin(stored: Option<&[u8]>, now: Now) -> ToldTotals {
        let told = stored.and_then(|bytes| serde_json::from_slice::<Told>(bytes).ok());
        let aged = told.map(|told| (told.age(now), told));
        ToldTotals { before: aged.map(|(age, told)| (told, age, now.moment)), ..ToldTotals::default() }
    }

    /// The totals as they are told: these, or those of before.
    pub fn answer(&mut self, results: SwarmResults, now: Moment) -> SwarmResults {
        let is_over = |(told, age, begun): &mut (Told, Millis, Moment)| {
            // Where some members' totals of before answer beside others' newest ones servers may be counted twice.
            let is_as_much = results.consistent_age_ms.is_none() && !results.summary.total.is_less_than(&told.summary.total);
            results.exact || is_as_much || *age + now.since(*begun) > KEPT
        };
        drop(self.before.take_if(is_over));
        let Some((told, age, begun)) = &self.before else { return results };
        let age = age + now.since(*begun);
        let covers = told.covers.iter().map(|covered| Coverage { roll_up_age_ms: covered.roll_up_age_ms + age, ..*covered });
        SwarmResults {
            consistent_age_ms: Some(age),
            oldest_roll_up_age_ms: told.oldest_roll_up_age_ms + age,
            covers: covers.collect(),
            summary: told.summary.clone(),
            ..results
        }
    }

    /// These were told: what is to be stored now, if anything is. What was told while something is being stored is stored after that.
    pub fn told(&mut self, results: &SwarmResults, at: Now) -> Option<Vec<u8>> {
        if self.before.is_some() || self.last.as_ref() == Some(&results.summary.total) {
            return None;
        }
        let SwarmResults { oldest_roll_up_age_ms, covers, summary, .. } = results.clone();
        self.last = Some(results.summary.total);
        self.writes
            .put(serde_json::to_vec(&Told { at: at.wall, boot_ms: Some(at.moment.0), oldest_roll_up_age_ms, covers, summary }).ok()?);
        self.writes.next()
    }

    /// It was stored, or could not be, and is stored when totals are told again: what is to be stored next.
    pub fn has_stored(&mut self, is_stored: bool) -> Option<Vec<u8>> {
        self.writes.has_stored(is_stored);
        if is_stored {
            return self.writes.next();
        }
        self.last = None;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(servers: u64, pages: u64, exact: bool) -> SwarmResults {
        let summary = Summary { total: Counts { servers, pages, ..Counts::default() }, ..Summary::default() };
        SwarmResults {
            answered_by: "12D3KooWEeb1Zenzi2ukXNL4jegf7qgCbVDQ4XTx55YZ3kjLcUyQ".parse().unwrap(),
            exact,
            in_transition_text: (!exact).then(|| "waiting".to_owned()),
            oldest_roll_up_age_ms: 0,
            covers: Vec::new(),
            summary,
            consistent_age_ms: None,
        }
    }

    fn at(seconds: u64) -> Now {
        Now { moment: Moment(seconds * 1_000), wall: WallTime(seconds * 1_000 + 7_000_000) }
    }

    /// What a process stored that told so much at 100 s.
    fn stored() -> Vec<u8> {
        ToldTotals::default().told(&results(9, 90, true), at(100)).unwrap()
    }

    fn told(totals: &mut ToldTotals, results: SwarmResults, now: Now) -> (u64, u64, Option<Millis>) {
        let told = totals.answer(results, now.moment);
        (told.summary.total.servers, told.summary.total.pages, told.consistent_age_ms)
    }

    #[test]
    fn a_clock_that_was_set_back_makes_nothing_younger() {
        let age = |now: Now| told(&mut ToldTotals::begin(Some(&stored()), now), results(0, 0, false), now).2;
        let set_back = |seconds: u64| Now { wall: WallTime(1_000), ..at(seconds) };
        assert_eq!(age(set_back(160)), Some(60_000));
        assert_eq!(age(set_back(40)), Some(40_000), "the machine was started 40 s ago");
        assert_eq!(age(Now { moment: Moment(2_000), ..at(160) }), Some(60_000));
    }

    #[test]
    fn what_was_told_before_answers_until_as_much_is_known_again() {
        let mut totals = ToldTotals::begin(Some(&stored()), at(103));
        assert_eq!(told(&mut totals, results(0, 0, false), at(104)), (9, 90, Some(4_000)));
        assert_eq!(told(&mut totals, results(9, 89, false), at(105)), (9, 90, Some(5_000)));
        assert_eq!(totals.told(&results(9, 90, false), at(105)), None, "it is stored");
        assert_eq!(told(&mut totals, results(9, 91, false), at(106)), (9, 91, None));
        assert_eq!(told(&mut totals, results(1, 1, false), at(107)), (1, 1, None), "once only");
    }

    #[test]
    fn exact_totals_answer_at_once_and_old_ones_not_for_long() {
        let mut totals = ToldTotals::begin(Some(&stored()), at(103));
        assert_eq!(told(&mut totals, results(8, 80, true), at(104)), (8, 80, None));
        let mut totals = ToldTotals::begin(Some(&stored()), at(103));
        assert_eq!(told(&mut totals, results(8, 80, false), at(700)).2, Some(600_000));
        assert_eq!(told(&mut totals, results(8, 80, false), at(701)), (8, 80, None));
        let mut totals = ToldTotals::begin(Some(b"{}"), at(103));
        assert_eq!(told(&mut totals, results(0, 0, false), at(104)), (0, 0, None));
    }

    #[test]
    fn changes_are_stored_one_after_another() {
        let mut totals = ToldTotals::default();
        assert!(totals.told(&results(1, 1, false), at(1)).is_some());
        assert!(totals.told(&results(2, 2, false), at(1)).is_none(), "one is on its way");
        let next = totals.has_stored(true).unwrap();
        assert_eq!(told(&mut ToldTotals::begin(Some(&next), at(2)), results(0, 0, false), at(2)).0, 2);
        assert!(totals.has_stored(true).is_none() && totals.told(&results(2, 2, true), at(2)).is_none(), "nothing has changed");
        assert!(totals.told(&results(3, 3, false), at(2)).is_some());
        assert!(totals.has_stored(false).is_none());
        assert!(totals.told(&results(3, 3, false), at(3)).is_some(), "it could not be stored");
        assert!(totals.told(&results(4, 4, false), at(3)).is_none(), "one is on its way");
        assert!(totals.has_stored(false).is_none(), "a full disk is not tried again at once");
        let next = totals.told(&results(4, 4, false), at(5)).unwrap();
        assert_eq!(told(&mut ToldTotals::begin(Some(&next), at(6)), results(0, 0, false), at(6)), (4, 4, Some(1_000)));
    }
}
