//! The operator's limits on time and bytes.
//!
//! Nothing is allowed while the daemon is paused, outside of its hours, or when the bytes of a day or a month are spent.
//!
//! Bytes are on disk as moved *before* they are moved, a two-hundredth of the limit ahead: nothing is moved beyond, so after a kill what is
//! on record is more than what was moved, never less. What was ahead counts as moved after a start: each costs at most 0.5 % of a limit.
//!
//! Days and months are those of the machine's clock, as its operator reads them. A clock that is set back begins no new day; one that is
//! set forward does, and one that is set forward and back gives no day's bytes twice.

use nearcrawl_model::{
    allowance::{AllowanceView, Rest},
    time::WallTime,
};
use serde::{Deserialize, Serialize};

/// Minutes in a week.
pub const WEEK: u16 = 7 * 24 * 60;

/// A shorter rest is no reason to give a subnet away: moving it takes as long.
const LONG: u16 = 60;

/// A day's or a month's bytes are nearly spent when less than one in so many is left.
const NEARLY: u64 = 20;

/// Without a limit they are written down after so many bytes.
const KEPT_AFTER: u64 = 32 << 20;

/// What the clock on the operator's wall shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// Days since some day long ago.
    pub day: i64,
    /// Months since some month long ago.
    pub month: i64,
    /// Minutes since the midnight before Monday.
    pub minute: u16,
}

/// Hours of a week in which it may crawl: from a minute of the week on, for so many. They may go on into the next week.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first minute, since the midnight before Monday.
    pub from: u16,
    /// How many.
    pub minutes: u16,
}

impl Window {
    fn has(self, minute: u16) -> bool {
        (minute + WEEK - self.from) % WEEK < self.minutes
    }

    fn opens_in(self, minute: u16) -> u16 {
        (self.from + WEEK - minute) % WEEK
    }
}

/// What the configuration allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes a day.
    pub per_day: Option<u64>,
    /// Bytes a month.
    pub per_month: Option<u64>,
    /// When it may crawl; always, if empty.
    pub hours: Vec<Window>,
    /// So many minutes before it may ask nothing for long, subnets with work are given away; 0 keeps them.
    pub departs_before: u16,
}

/// What the operator's limits leave for the next while: why it should be given no more subnets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// Soon it may ask nothing for long, and again from then on.
    pub back_at: Option<WallTime>,
    /// The bytes among members are spent.
    pub swarm_spent: bool,
    /// It uses nearly as much memory as it may.
    pub memory_nearly_full: bool,
    /// Its files take nearly as much of the disk as they may.
    pub disk_nearly_full: bool,
}

/// Until when it is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Pause {
    Until(WallTime),
    ForGood,
}

/// What is kept for the next start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    day: i64,
    day_bytes: u64,
    month: i64,
    month_bytes: u64,
    pause: Option<Pause>,
    /// The day and its bytes before the clock was set back, or forward by more than a day; and the same of the month.
    day_before: Option<(i64, u64)>,
    month_before: Option<(i64, u64)>,
}

/// What is kept of web servers, of members and of others; none of what has not changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllKept {
    /// Of web servers, and the pause.
    pub crawl: Option<Kept>,
    /// Of members.
    pub swarm: Option<Kept>,
    /// Of programs that are no members.
    pub readers: Option<Kept>,
}

impl AllKept {
    /// None if there is nothing in it.
    pub fn any(self) -> Option<AllKept> {
        (self.crawl.is_some() || self.swarm.is_some() || self.readers.is_some()).then_some(self)
    }
}

/// What the operator allows.
#[derive(Clone, Debug)]
pub struct Allowance {
    limits: Limits,
    /// As it is now.
    now: Kept,
    /// As it was handed out to be kept at last, and as it is on disk.
    kept: Kept,
    stored: Kept,
    /// The minute of the week; none before the clock was looked at.
    minute: Option<u16>,
}

impl Allowance {
    /// With what was kept at the last stop.
    pub fn new(limits: Limits, kept: Option<Kept>) -> Allowance {
        let kept = kept.unwrap_or_default();
        Allowance { limits, now: kept.clone(), stored: kept.clone(), kept, minute: None }
    }

    /// So many more bytes were moved, and the clock shows this.
    pub fn moved(&mut self, bytes: u64, clock: LocalTime) {
        self.minute = Some(clock.minute);
        let now = &mut self.now;
        begin((&mut now.day, &mut now.day_bytes, &mut now.day_before), clock.day);
        begin((&mut now.month, &mut now.month_bytes, &mut now.month_before), clock.month);
        now.day_bytes = now.day_bytes.saturating_add(bytes);
        now.month_bytes = now.month_bytes.saturating_add(bytes);
    }

    /// The operator pauses it.
    pub fn pause(&mut self, until: Option<WallTime>) {
        self.now.pause = Some(until.map_or(Pause::ForGood, Pause::Until));
    }

    /// The operator has it go on.
    pub fn resume(&mut self) {
        self.now.pause = None;
    }

    /// Why nothing may be asked of any server, if so.
    pub fn rest(&mut self, wall: WallTime) -> Option<Rest> {
        match self.now.pause {
            Some(Pause::ForGood) => return Some(Rest::Paused { until: None }),
            Some(Pause::Until(until)) if until > wall => return Some(Rest::Paused { until: Some(until) }),
            Some(Pause::Until(_)) => self.now.pause = None,
            None => {}
        }
        let Limits { per_day, per_month, hours, .. } = &self.limits;
        if !hours.is_empty() {
            let open = |minute: u16| hours.iter().any(|window| window.has(minute));
            if !self.minute.is_some_and(open) {
                let next = self.minute.and_then(|minute| hours.iter().map(|window| window.opens_in(minute)).min());
                return Some(Rest::OutsideHours { opens_in: u64::from(next.unwrap_or(0)) * 60_000 });
            }
        }
        let spent = |limit: &Option<u64>, bytes: u64| limit.filter(|limit| bytes >= *limit);
        let of_month = spent(per_month, self.now.month_bytes).map(|limit| Rest::MonthSpent { limit });
        of_month.or_else(|| spent(per_day, self.now.day_bytes).map(|limit| Rest::DaySpent { limit }))
    }

    /// When its hours end, if that is within a minute: no request begins from then on.
    pub fn ends_at(&self, wall: WallTime) -> Option<WallTime> {
        let minute = self.minute.filter(|_| !self.limits.hours.is_empty())?;
        let open = |minute: u16| self.limits.hours.iter().any(|window| window.has(minute));
        let ends = open(minute) && !open((minute + 1) % WEEK);
        ends.then(|| WallTime(wall.0 - wall.0 % 60_000 + 60_000))
    }

    /// When it may ask again, if it soon may ask nothing for long.
    pub fn back_at(&self, wall: WallTime) -> Option<WallTime> {
        let minute = self.minute.filter(|_| self.limits.departs_before > 0)?;
        let away = self.closing(minute).or_else(|| self.running_out(minute))?;
        let whole = wall.0 - wall.0 % 60_000;
        Some(WallTime(whole + u64::from(away) * 60_000))
    }

    /// In how many minutes its next hours begin, if the present ones end soon and the rest is long.
    fn closing(&self, minute: u16) -> Option<u16> {
        let Limits { hours, departs_before, .. } = &self.limits;
        let open = |after: u16| hours.iter().any(|window| window.has((minute + after) % WEEK));
        if hours.is_empty() || !open(0) {
            return None;
        }
        let ends_in = (1..=*departs_before).find(|after| !open(*after))?;
        let begins_in = (ends_in..ends_in + WEEK).find(|after| open(*after))?;
        (begins_in - ends_in >= LONG).then_some(begins_in)
    }

    /// In how many minutes there will be bytes again, if those of the day or the month are nearly spent and that is long.
    fn running_out(&self, minute: u16) -> Option<u16> {
        const DAY: u16 = 24 * 60;
        let nearly = |limit: Option<u64>, bytes: u64| limit.is_some_and(|limit| limit.saturating_sub(bytes) < limit / NEARLY);
        let midnight = DAY - minute % DAY;
        if nearly(self.limits.per_month, self.now.month_bytes) {
            // At least a day, most likely more.
            return Some(midnight + DAY);
        }
        (nearly(self.limits.per_day, self.now.day_bytes) && midnight >= LONG).then_some(midnight)
    }

    /// How many bytes may still be moved today.
    pub fn left(&self) -> u64 {
        let left = |limit: Option<u64>, bytes: u64| limit.map_or(u64::MAX, |limit| limit.saturating_sub(bytes));
        left(self.limits.per_day, self.now.day_bytes).min(left(self.limits.per_month, self.now.month_bytes))
    }

    /// How many bytes may be moved before more is kept: of what is limited no more than is on disk as moved already.
    pub fn granted(&self) -> u64 {
        let Kept { day, day_bytes, month, month_bytes, .. } = &self.stored;
        let of = |limit: Option<u64>, is_same: bool, stored: u64, moved: u64| match limit {
            None => u64::MAX,
            Some(_) if !is_same => 0,
            Some(limit) => stored.min(limit).saturating_sub(moved),
        };
        let of_day = of(self.limits.per_day, *day == self.now.day, *day_bytes, self.now.day_bytes);
        of_day.min(of(self.limits.per_month, *month == self.now.month, *month_bytes, self.now.month_bytes))
    }

    /// What is to be kept now, if that has changed: with bytes ahead. It is handed out once; [`Allowance::has_kept`] or
    /// [`Allowance::has_not_kept`] follows.
    pub fn due(&mut self) -> Option<Kept> {
        let Kept { day, day_bytes, month, month_bytes, pause, .. } = self.now;
        let Limits { per_day, per_month, .. } = self.limits;
        let kept = &self.kept;
        let same = (kept.day, kept.month, kept.pause) == (day, month, pause);
        if same && !is_short(kept.day_bytes, day_bytes, per_day) && !is_short(kept.month_bytes, month_bytes, per_month) {
            return None;
        }
        let (day_bytes, month_bytes) = (with_ahead(day_bytes, per_day), with_ahead(month_bytes, per_month));
        self.kept = Kept { day_bytes, month_bytes, ..self.now.clone() };
        Some(self.kept.clone())
    }

    /// At the end, when nothing is moved any more: what was moved, with nothing ahead. None if that is on disk already.
    pub fn at_the_end(&mut self) -> Option<Kept> {
        let changed = self.stored != self.now;
        self.kept = self.now.clone();
        changed.then(|| self.kept.clone())
    }

    /// What was handed out is on disk.
    pub fn has_kept(&mut self) {
        self.stored = self.kept.clone();
    }

    /// What was handed out is not: it is handed out again.
    pub fn has_not_kept(&mut self) {
        self.kept = Kept { day: i64::MIN, ..Kept::default() };
    }

    /// Whether a pause, or the end of one, has not been handed out to be kept.
    pub fn has_unkept_pause(&self) -> bool {
        self.kept.pause != self.now.pause
    }

    /// What people are told of it.
    pub fn view(&self) -> AllowanceView {
        let paused_until_at = self.now.pause.and_then(|pause| if let Pause::Until(until) = pause { Some(until) } else { None });
        AllowanceView {
            paused: self.now.pause.is_some(),
            paused_until_at,
            day_bytes: self.now.day_bytes,
            day_limit_bytes: self.limits.per_day,
            month_bytes: self.now.month_bytes,
            month_limit_bytes: self.limits.per_month,
            ..AllowanceView::default()
        }
    }
}

/// How much is kept ahead: 0.5 % of the limit; without one nothing waits for the disk.
fn ahead(limit: Option<u64>) -> u64 {
    limit.map_or(0, |limit| (limit / 200).max(1))
}

/// So many bytes, with those ahead, up to the limit.
fn with_ahead(bytes: u64, limit: Option<u64>) -> u64 {
    bytes.saturating_add(ahead(limit)).min(limit.unwrap_or(u64::MAX)).max(bytes)
}

/// Whether less than half of what is kept ahead is left, and there may be more; without a limit, whether much was moved since.
fn is_short(kept: u64, bytes: u64, limit: Option<u64>) -> bool {
    match limit {
        None => bytes.saturating_sub(kept) >= KEPT_AFTER,
        Some(_) => kept.saturating_sub(bytes) < ahead(limit).div_ceil(2) && with_ahead(bytes, limit) > kept,
    }
}

/// A new day or month begins with no bytes. If the clock is set back by more than one, it goes on with those that there are; when it shows that
/// day or month again, with the more of both. If it was set forward by more than one and then back, those of before and those since add up.
fn begin((known, bytes, before): (&mut i64, &mut u64, &mut Option<(i64, u64)>), shown: i64) {
    if shown > *known {
        let is_set_back = before.is_some_and(|(at, _)| at > *known);
        let jumps = (shown > *known + 1 && !is_set_back).then_some((*known, *bytes));
        *bytes = match *before {
            Some((at, then)) if at == shown => then.max(*bytes),
            _ => 0,
        };
        let further = before.filter(|(at, _)| *at > shown);
        let earlier = before.filter(|(at, _)| *at < *known);
        *before = further.or(jumps).or(earlier);
        *known = shown;
    } else if shown < *known - 1 {
        let moved_before = before.filter(|(at, _)| *at == shown).map_or(0, |(_, then)| then);
        if before.is_none_or(|(at, _)| at < *known) {
            *before = Some((*known, *bytes));
        }
        *bytes = bytes.saturating_add(moved_before);
        *known = shown;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MONDAY_NOON: u16 = 12 * 60;

    fn at(day: i64, minute: u16) -> LocalTime {
        LocalTime { day, month: day / 30, minute }
    }

    fn limits(per_day: Option<u64>, per_month: Option<u64>) -> Limits {
        Limits { per_day, per_month, ..Limits::default() }
    }

    #[test]
    fn a_spent_day_ends_at_midnight_and_a_spent_month_with_the_month() {
        let mut allowance = Allowance::new(limits(Some(1_000), Some(2_500)), None);
        let wall = WallTime(0);
        allowance.moved(999, at(100, 0));
        assert_eq!(allowance.rest(wall), None);
        allowance.moved(1, at(100, 0));
        assert_eq!(allowance.rest(wall), Some(Rest::DaySpent { limit: 1_000 }));
        allowance.moved(0, at(101, 0));
        assert_eq!(allowance.rest(wall), None);
        allowance.moved(1_000, at(101, 0));
        allowance.moved(500, at(102, 0));
        assert_eq!(allowance.rest(wall), Some(Rest::MonthSpent { limit: 2_500 }), "the longer one is told");
        allowance.moved(0, at(103, 0));
        assert!(allowance.rest(wall).is_some());
        allowance.moved(0, at(120, 0));
        assert_eq!(allowance.rest(wall), None, "another month");
    }

    #[test]
    fn a_clock_that_is_set_back_gives_nothing_and_does_not_stop_it_for_years() {
        let mut allowance = Allowance::new(limits(Some(1_000), None), None);
        allowance.moved(1_000, at(500, 0));
        allowance.moved(0, at(499, 0));
        assert!(allowance.rest(WallTime(0)).is_some(), "another time zone");
        allowance.moved(0, at(500, 0));
        assert!(allowance.rest(WallTime(0)).is_some());
        allowance.moved(0, at(100, 0));
        assert!(allowance.rest(WallTime(0)).is_some());
        allowance.moved(0, at(101, 0));
        assert_eq!(allowance.rest(WallTime(0)), None);
    }

    #[test]
    fn hours_go_across_midnight_and_the_end_of_the_week() {
        // Monday to Friday from 18:00 to 8:00, and Sunday from 20:00 to Monday 2:00.
        let mut hours: Vec<_> = (0..5).map(|day| Window { from: day * 1_440 + 18 * 60, minutes: 14 * 60 }).collect();
        hours.push(Window { from: 6 * 1_440 + 20 * 60, minutes: 6 * 60 });
        let mut allowance = Allowance::new(Limits { hours, ..Limits::default() }, None);
        assert!(allowance.rest(WallTime(0)).is_some(), "nobody has looked at the clock yet");
        let mut rest = |minute: u16| {
            allowance.moved(0, at(1, minute));
            allowance.rest(WallTime(0)).map(|rest| if let Rest::OutsideHours { opens_in } = rest { opens_in / 60_000 } else { 0 })
        };
        assert_eq!(rest(MONDAY_NOON), Some(6 * 60));
        assert_eq!((rest(18 * 60 - 1), rest(18 * 60)), (Some(1), None));
        assert_eq!((rest(1_440 + 8 * 60 - 1), rest(1_440 + 8 * 60)), (None, Some(10 * 60)));
        assert_eq!((rest(0), rest(119), rest(120)), (None, None, Some(16 * 60)), "Sunday's go on into Monday");
        assert_eq!((rest(5 * 1_440), rest(5 * 1_440 + 8 * 60)), (None, Some(36 * 60)), "Friday's until Saturday morning");
    }

    #[test]
    fn a_long_rest_is_foretold_some_minutes_before_it_begins_and_a_short_one_is_not() {
        // From 18:00 to 8:00, with a break from 3:00 to 3:30.
        let hours: Vec<_> = (0..7)
            .flat_map(|day| [(18 * 60, 9 * 60), (27 * 60 + 30, 4 * 60 + 30)].map(|(from, minutes)| (day * 1_440 + from, minutes)))
            .map(|(from, minutes)| Window { from: from % WEEK, minutes })
            .collect();
        let mut allowance = Allowance::new(Limits { hours, departs_before: 10, ..Limits::default() }, None);
        let wall = |minute: u16| WallTime(u64::from(minute) * 60_000 + 1_234);
        assert_eq!(allowance.back_at(wall(0)), None, "nobody has looked at the clock yet");
        let mut back_in = |minute: u16| {
            allowance.moved(0, at(1, minute));
            allowance.back_at(wall(minute)).map(|back| (back.0 / 60_000) as i64 - i64::from(minute))
        };
        assert_eq!((back_in(7 * 60 + 49), back_in(7 * 60 + 50), back_in(8 * 60 - 1)), (None, Some(10 * 60 + 10), Some(10 * 60 + 1)));
        assert_eq!(back_in(8 * 60), None, "too late");
        assert_eq!(back_in(2 * 60 + 55), None, "half an hour");
        assert_eq!(back_in(WEEK - 1), None, "Sunday night goes on into Monday");
        let mut allowance = Allowance::new(Limits { departs_before: 10, ..limits(Some(1_000), None) }, None);
        allowance.moved(949, at(7, MONDAY_NOON));
        assert_eq!(allowance.back_at(wall(0)), None);
        allowance.moved(2, at(7, MONDAY_NOON));
        assert_eq!(allowance.back_at(WallTime(0)), Some(WallTime(12 * 3_600_000)), "at midnight");
        allowance.moved(0, at(7, 1_400));
        assert_eq!(allowance.back_at(WallTime(0)), None, "that is soon");
    }

    #[test]
    fn the_end_of_the_hours_is_known_to_the_millisecond_a_minute_before() {
        // Sunday from 22:00 to 24:00, and Monday from 0:00 to 1:00: the one goes on into the other.
        let hours = vec![Window { from: 6 * 1_440 + 22 * 60, minutes: 120 }, Window { from: 0, minutes: 60 }];
        let mut allowance = Allowance::new(Limits { hours, ..Limits::default() }, None);
        let mut ends = |minute: u16, wall: u64| {
            allowance.moved(0, at(7, minute));
            allowance.ends_at(WallTime(wall))
        };
        assert_eq!([ends(58, 1_000_000), ends(WEEK - 1, 1_000_000), ends(60, 1_000_000), ends(21 * 60, 0)], [None; 4]);
        assert_eq!([ends(59, 1_020_000), ends(59, 1_079_999)], [Some(WallTime(1_080_000)); 2]);
        let mut always = Allowance::new(Limits::default(), None);
        always.moved(0, at(7, 59));
        assert_eq!(always.ends_at(WallTime(0)), None);
    }

    #[test]
    fn a_pause_holds_across_starts_and_ends_when_it_was_said() {
        let mut allowance = Allowance::new(Limits::default(), None);
        allowance.pause(Some(WallTime(5_000)));
        let kept = allowance.due();
        assert!(kept.is_some());
        let mut allowance = Allowance::new(Limits::default(), kept);
        assert_eq!(allowance.rest(WallTime(4_999)), Some(Rest::Paused { until: Some(WallTime(5_000)) }));
        assert_eq!(allowance.rest(WallTime(5_000)), None);
        assert!(!allowance.view().paused);
        allowance.pause(None);
        assert_eq!(Allowance::new(Limits::default(), allowance.due()).rest(WallTime(u64::MAX)), Some(Rest::Paused { until: None }));
        allowance.resume();
        assert_eq!(Allowance::new(Limits::default(), allowance.due()).rest(WallTime(0)), None);
    }

    proptest! {
        /// However often it is killed, and whether what was handed out came to the disk before or not: no more is moved than the limit, and no
        /// start costs more than 0.5 %.
        #[test]
        fn kills_never_give_more_bytes(steps in prop::collection::vec((1u64..5_000, 0u8..10), 1..2_000)) {
            let limit = 200_000;
            let (mut disk, mut moved, mut starts) = (None, 0, 0);
            let mut allowance = Allowance::new(limits(Some(limit), None), None);
            for (bytes, chance) in steps {
                allowance.moved(0, at(7, 0));
                if allowance.rest(WallTime(0)).is_some() {
                    prop_assert!(moved + starts * (limit / 200) >= limit, "spent at {moved} after {starts} starts");
                    break;
                }
                if let Some(kept) = allowance.due() {
                    match chance {
                        0 => allowance.has_not_kept(),
                        _ => {
                            disk = Some(kept);
                            allowance.has_kept();
                        }
                    }
                }
                let bytes = bytes.min(allowance.granted());
                allowance.moved(bytes, at(7, 0));
                moved += bytes;
                prop_assert!(moved <= limit);
                if chance == 1 {
                    allowance = Allowance::new(limits(Some(limit), None), disk.clone());
                    starts += 1;
                }
            }
        }

        /// What is kept is written once in a quarter of a percent of the limit, and always before it is moved.
        #[test]
        fn it_is_kept_seldom(bytes in 1u64..100) {
            let mut allowance = Allowance::new(limits(Some(1_000_000), None), None);
            let mut written = 0;
            for _ in 0..(900_000 / bytes) {
                allowance.moved(0, at(7, 0));
                if allowance.due().is_some() {
                    allowance.has_kept();
                    written += 1;
                }
                prop_assert!(allowance.granted() >= bytes);
                allowance.moved(bytes, at(7, 0));
            }
            prop_assert!(written <= 400, "{written}");
        }
    }

    #[test]
    fn without_limits_it_is_written_down_now_and_then_and_nothing_waits_for_that() {
        let mut allowance = Allowance::new(Limits::default(), None);
        allowance.moved(0, at(7, 0));
        assert!(allowance.due().is_some(), "another day");
        assert_eq!((allowance.granted(), allowance.left()), (u64::MAX, u64::MAX));
        allowance.moved(20 << 20, at(7, 0));
        assert_eq!(allowance.due(), None);
        allowance.moved(20 << 20, at(7, 0));
        let kept = allowance.due();
        assert!(kept.is_some());
        for _ in 0..10 {
            allowance = Allowance::new(Limits::default(), kept.clone());
            allowance.moved(0, at(7, 0));
            assert_eq!((allowance.due(), allowance.view().day_bytes), (None, 40 << 20), "a start costs nothing");
        }
    }

    #[test]
    fn a_stop_in_good_order_costs_nothing() {
        let mut allowance = Allowance::new(limits(Some(1_000_000), None), None);
        allowance.moved(0, at(7, 0));
        assert!(allowance.due().is_some());
        allowance.has_kept();
        allowance.moved(700, at(7, 0));
        let kept = allowance.at_the_end();
        allowance.has_kept();
        assert_eq!(allowance.at_the_end(), None);
        assert_eq!(Allowance::new(limits(Some(1_000_000), None), kept).view().day_bytes, 700);
    }

    #[test]
    fn a_clock_that_was_wrong_for_a_moment_gives_no_further_day() {
        let mut allowance = Allowance::new(limits(Some(1_000), Some(5_000)), None);
        allowance.moved(1_000, at(20_000, 0));
        // Started without a clock, before the time came from the network.
        let kept = allowance.due();
        let mut allowance = Allowance::new(limits(Some(1_000), Some(5_000)), kept);
        allowance.moved(0, at(0, 0));
        assert!(allowance.rest(WallTime(0)).is_some());
        allowance.moved(0, at(20_000, 0));
        assert!(allowance.rest(WallTime(0)).is_some(), "the same day as before");
        allowance.moved(0, at(20_001, 0));
        assert_eq!(allowance.rest(WallTime(0)), None);
    }

    #[test]
    fn a_clock_that_was_ahead_for_a_moment_gives_the_bytes_of_no_day_or_month_again() {
        let mut allowance = Allowance::new(limits(Some(1_000), Some(5_000)), None);
        allowance.moved(600, at(20_000, 0));
        allowance.moved(300, at(20_400, 0));
        assert_eq!(allowance.rest(WallTime(0)), None, "a day long after, as far as anybody can tell");
        allowance.moved(99, at(20_000, 0));
        assert_eq!(allowance.rest(WallTime(0)), None);
        allowance.moved(1, at(20_000, 0));
        assert_eq!(allowance.rest(WallTime(0)), Some(Rest::DaySpent { limit: 1_000 }), "600 before, 300 meanwhile, 100 since");
        assert_eq!(allowance.view().month_bytes, 1_000);
        allowance.moved(0, at(20_001, 0));
        assert_eq!(allowance.rest(WallTime(0)), None, "the next day");
        assert_eq!(allowance.view().month_bytes, 1_000);
    }

    /// A small computer that keeps no time while it is off.
    #[test]
    fn a_clock_that_begins_anew_at_each_boot_counts_nothing_twice() {
        let mut allowance = Allowance::new(limits(Some(1_000), Some(5_000)), None);
        for day in 20_000..20_010 {
            for boot in 1..=3 {
                allowance.moved(0, at(0, 0));
                allowance.moved(100, at(day, 0));
                assert_eq!(allowance.view().day_bytes, 100 * boot, "day {day}");
            }
        }
    }
}
