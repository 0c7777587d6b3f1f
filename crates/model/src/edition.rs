//! Editions of the hierarchy, and the votes for them.

use super::{access_point::AccessPoint, time::WallTime};
use serde::{Deserialize, Serialize};
use std::{cmp::Ordering, fmt};

/// One edition of the shared hierarchy: identified by its content's hash, ordered by the date of its sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Edition {
    /// SHA-256 of the content.
    pub hash: [u8; 32],
    /// The latest date of its sources as YYYYMMDD; 0 if none of them has one.
    pub built: u32,
}

impl Edition {
    /// The order in which editions follow each other: by date, and of one date the one with the smaller hash comes last.
    pub fn age_order(&self, other: &Edition) -> Ordering {
        self.built.cmp(&other.built).then_with(|| other.hash.cmp(&self.hash))
    }

    /// The day on which the latest of its sources was made, counted from 1970; none if that is no date.
    pub fn day(&self) -> Option<i64> {
        day(self.built)
    }
}

/// Days from 1970-01-01 to a date like 20260401 (Gregorian, years 1 to 9999).
fn day(date: u32) -> Option<i64> {
    let (year, month, day) = (i64::from(date / 10_000), i64::from(date / 100 % 100), i64::from(date % 100));
    if !(1..=9_999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin in March have the leap day at their end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    Some(365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468)
}

/// The day of a wall clock, counted from 1970.
pub fn today(wall: WallTime) -> i64 {
    (wall.0 / 86_400_000) as i64
}

impl fmt::Display for Edition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hash.iter().take(4).try_for_each(|byte| write!(f, "{byte:02x}"))?;
        if self.built == 0 { Ok(()) } else { write!(f, " of {}", self.built) }
    }
}

/// A member's vote: which edition it uses, and which one it announces as right after checking it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endorsement {
    /// The member that votes. Accepted only from that member itself.
    pub by: AccessPoint,
    /// Increases with each vote of one member, also across restarts; receivers keep the greatest.
    pub version: u64,
    /// The edition that the member uses now.
    pub uses: Edition,
    /// The edition that it votes for; the swarm changes to one that more than half of the members vote for.
    pub endorses: Edition,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_become_days() {
        let days = [(19_700_101, Some(0)), (19_700_301, Some(59)), (20_000_229, Some(11_016)), (20_261_121, Some(20_778))];
        for (date, expected) in days {
            assert_eq!(day(date), expected, "{date}");
        }
        assert_eq!((day(0), day(20_261_301), day(99_999_999)), (None, None, None));
        assert_eq!(today(WallTime(1_795_219_200_000)), 20_778);
    }

    #[test]
    fn the_later_edition_follows_and_of_one_date_the_smaller_hash() {
        let edition = |built, first| Edition { hash: [first; 32], built };
        assert_eq!(edition(20_260_101, 1).age_order(&edition(20_251_231, 1)), Ordering::Greater);
        assert_eq!(edition(20_260_101, 1).age_order(&edition(20_260_101, 2)), Ordering::Greater);
        assert_eq!(edition(20_260_101, 1).age_order(&edition(20_260_101, 1)), Ordering::Equal);
    }
}
