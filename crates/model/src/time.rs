//! Two clocks, never mixed: the boot clock, by which decisions are made, and the wall clock, which is shown to people.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{fmt, str::FromStr};

/// A moment on the machine's own boot clock, in milliseconds; it goes on while a laptop sleeps and never jumps.
/// All decisions use this one. It means nothing on another machine: messages carry durations instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

/// A length of time, in milliseconds.
pub type Millis = u64;

impl Moment {
    /// This moment plus `millis`, saturating.
    pub fn after(self, millis: Millis) -> Moment {
        Moment(self.0.saturating_add(millis))
    }

    /// This moment minus `millis`, the beginning at the earliest.
    pub fn before(self, millis: Millis) -> Moment {
        Moment(self.0.saturating_sub(millis))
    }

    /// How long ago `earlier` was, zero if it lies ahead.
    pub fn since(self, earlier: Moment) -> Millis {
        self.0.saturating_sub(earlier.0)
    }
}

/// Wall-clock time: milliseconds since 1970-01-01 UTC. Shown and stored, never used to decide what is safe.
/// In JSON it is RFC 3339 in UTC; between members and on disk it is the number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(pub u64);

/// The last moment that RFC 3339 can write: 9999-12-31T23:59:59.999Z. What a member says to be later is shown as this.
const MAX_WRITTEN: u64 = 253_402_300_799_999;

const DAY: u64 = 86_400_000;

/// A text that is not a moment as [`WallTime`] is written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no moment in UTC as RFC 3339 writes it, like 2026-11-22T20:17:14.250Z")]
pub struct ParseTimeError(pub String);

/// RFC 3339 in UTC with milliseconds, like `2026-11-22T20:17:14.250Z`.
impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.min(MAX_WRITTEN);
        let (year, month, day) = date_of(millis / DAY);
        let (hour, minute, second) = (millis % DAY / 3_600_000, millis % 3_600_000 / 60_000, millis % 60_000 / 1000);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", millis % 1000)
    }
}

impl FromStr for WallTime {
    type Err = ParseTimeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        read(text).ok_or_else(|| ParseTimeError(text.chars().take(80).collect()))
    }
}

fn read(text: &str) -> Option<WallTime> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let numbers = |text: &str, separator| text.split(separator).map(|part| part.parse().ok()).collect::<Option<Vec<u64>>>();
    let [year, month, day] = numbers(date, '-')?.try_into().ok()?;
    let [hour, minute, second] = numbers(clock, ':')?.try_into().ok()?;
    let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
    let in_range = (1970..=9999).contains(&year) && (1..=12).contains(&month) && hour < 24 && minute < 60 && second < 60;
    let days = in_range.then(|| days_to(year, month, day)).filter(|days| date_of(*days) == (year, month, day))?;
    Some(WallTime(days * DAY + hour * 3_600_000 + minute * 60_000 + second * 1000 + thousandths.parse::<u64>().ok()?))
}

/// Year, month and day of the Gregorian calendar, so many days after 1970-01-01. Years are counted from March here, so that the
/// leap day is the last of its year.
fn date_of(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day_of_year - (153 * from_march + 2) / 5 + 1)
}

/// The inverse of [`date_of`]; the date is in 1970 or later.
fn days_to(year: u64, month: u64, day: u64) -> u64 {
    let year = year - u64::from(month <= 2);
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * from_march + 2) / 5 + day.saturating_sub(1);
    let year_of_era = year % 400;
    year / 400 * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

impl Serialize for WallTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_str(self) } else { self.0.serialize(serializer) }
    }
}

/// How a moment may be written in JSON. Commit 3107d04 wrote the number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Millis(u64),
}

impl<'de> Deserialize<'de> for WallTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return u64::deserialize(deserializer).map(WallTime);
        }
        match Written::deserialize(deserializer)? {
            Written::Text(text) => text.parse().map_err(serde::de::Error::custom),
            Written::Millis(millis) => Ok(WallTime(millis)),
        }
    }
}

/// What every event brings along: both clocks, read once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// The boot clock: for intervals and deadlines.
    pub moment: Moment,
    /// The wall clock: for what is shown and stored.
    pub wall: WallTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_and_programs_read_rfc_3339_and_members_exchange_the_number() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_790_000_000_250, "2026-09-21T14:13:20.250Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (MAX_WRITTEN, "9999-12-31T23:59:59.999Z"),
        ];
        for (millis, text) in cases {
            assert_eq!(WallTime(millis).to_string(), text);
            assert_eq!(text.parse(), Ok(WallTime(millis)));
            assert_eq!(serde_json::to_string(&WallTime(millis)).unwrap(), format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<WallTime>(&format!("\"{text}\"")).unwrap(), WallTime(millis));
            assert_eq!(serde_json::from_str::<WallTime>(&millis.to_string()).unwrap(), WallTime(millis), "as 0.1.0 wrote it");
            assert_eq!(postcard::to_stdvec(&WallTime(millis)).unwrap(), postcard::to_stdvec(&millis).unwrap());
        }
        assert_eq!(WallTime(u64::MAX).to_string(), "9999-12-31T23:59:59.999Z");
        assert_eq!("2026-09-21T14:13:20Z".parse(), Ok(WallTime(1_790_000_000_000)));
        for bad in [
            "",
            "2026-09-21",
            "2026-09-21T14:13:20",
            "2026-02-29T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-09-21T24:00:00Z",
            "1969-12-31T00:00:00Z",
        ] {
            assert!(bad.parse::<WallTime>().is_err(), "{bad}");
        }
    }

    #[test]
    fn every_day_until_9999_is_read_as_it_is_written() {
        for day in (0..=MAX_WRITTEN / DAY).step_by(13) {
            let written = WallTime(day * DAY);
            assert_eq!(written.to_string().parse(), Ok(written));
        }
    }
}
