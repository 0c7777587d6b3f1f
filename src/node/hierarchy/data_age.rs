//! Age of the registries' data that the hierarchy is made of, told at each start, and by `doctor`.

use nearcrawl_model::{
    edition::{Edition, today},
    time::WallTime,
    view::counted,
};
use std::fmt;

/// Registries change some per cent of their entries in so many days.
const OLD_DAYS: i64 = 180;

/// The age of a hierarchy's newest source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataAge {
    /// In days; 0 if it is of tomorrow, by this clock.
    days: i64,
    /// The date of the source, YYYYMMDD.
    built: u32,
}

impl DataAge {
    /// The age of this edition by the wall clock; none if no source has a date.
    pub fn of(edition: &Edition, now: WallTime) -> Option<DataAge> {
        Some(DataAge { days: (today(now) - edition.day()?).max(0), built: edition.built })
    }

    /// Whether it should be renewed.
    pub fn is_old(self) -> bool {
        self.days > OLD_DAYS
    }

    /// Tells the log how old the data is that a daemon begins with, and what to do if it is old.
    pub(in crate::node) fn tell(age: Option<DataAge>) {
        match age {
            Some(age) if age.is_old() => {
                tracing::warn!("{age}: `nearcrawl hierarchy renew` fetches today's; nearcrawl-hierarchy.timer does it every three months");
            }
            Some(age) => tracing::info!("{age}"),
            None => tracing::info!("the hierarchy's sources have no date"),
        }
    }
}

impl fmt::Display for DataAge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = (self.built / 10_000, self.built / 100 % 100, self.built % 100);
        let age = counted(u64::try_from(self.days).unwrap_or(0), "day");
        write!(f, "the registries' data is {age} old: the newest is of {year:04}-{month:02}-{day:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_in_days_and_is_old_after_half_a_year() {
        let edition = |built| Edition { hash: [0; 32], built };
        let now = WallTime(20_778 * 86_400_000 + 5);
        let age = DataAge::of(&edition(20_261_120), now).unwrap();
        assert_eq!(age.to_string(), "the registries' data is 1 day old: the newest is of 2026-11-20");
        assert!(!age.is_old());
        assert!(DataAge::of(&edition(20_260_505), now).unwrap().is_old());
        // A registry in another time zone is a day ahead.
        assert!(DataAge::of(&edition(20_261_122), now).unwrap().to_string().contains("is 0 days old"));
        assert_eq!(DataAge::of(&edition(0), now), None);
    }
}
