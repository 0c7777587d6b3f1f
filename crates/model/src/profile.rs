//! Profile of a member, published if its operator chose so: a name, and what its limits leave it to do.

use super::access_point::AccessPoint;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{fmt, str::FromStr};
use utoipa::ToSchema;

/// The longest name of a member, in characters.
pub const MAX_NAME: usize = 32;

/// The greatest number of limits that one member tells of: one of each kind.
const MAX_USED: usize = 3;

/// How a member's operator calls it: 1 to [`MAX_NAME`] characters that can be seen, and single spaces between them. It proves nothing: another
/// member may have the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String)]
pub struct MemberName(String);

/// The error for a text that is no name of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a member's name has 1 to {MAX_NAME} printable characters, without spaces at its ends or two in a row")]
pub struct MemberNameError;

impl FromStr for MemberName {
    type Err = MemberNameError;

    fn from_str(text: &str) -> Result<Self, MemberNameError> {
        let fits = (1..=MAX_NAME).contains(&text.chars().count()) && text.trim() == text && !text.contains("  ");
        // A mark that combines would do so with whatever is shown before the name.
        let begins = text.chars().next().is_some_and(|first| is_printable("", first));
        if fits && begins && text.chars().all(|character| is_printable("a", character)) {
            Ok(MemberName(text.to_owned()))
        } else {
            Err(MemberNameError)
        }
    }
}

/// Whether Rust would write the character behind this text as it is, or escapes it only because it stands in quotes. Control characters, those
/// that turn the direction of writing, and what has no width are escaped.
fn is_printable(before: &str, character: char) -> bool {
    let mut text = String::from(before);
    text.push(character);
    matches!(character, ' ' | '"' | '\'' | '\\') || text.escape_debug().count() == before.chars().count() + 1
}

impl TryFrom<String> for MemberName {
    type Error = MemberNameError;

    fn try_from(text: String) -> Result<Self, MemberNameError> {
        text.parse()
    }
}

impl From<MemberName> for String {
    fn from(name: MemberName) -> String {
        name.0
    }
}

impl fmt::Display for MemberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What its limits leave a member to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AllowanceState {
    /// No limit keeps it from anything.
    WithinLimits,
    /// Its operator paused it.
    Paused,
    /// It is none of its hours.
    OutsideHours,
    /// The bytes that it may move to and from servers in a day are spent.
    DaySpent,
    /// The same of the month.
    MonthSpent,
    /// It uses as much memory as it may.
    MemoryFull,
    /// It crawls; the bytes that it may move among members in a day are spent.
    SwarmSpent,
}

impl fmt::Display for AllowanceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            AllowanceState::WithinLimits => "within limits",
            AllowanceState::Paused => "paused",
            AllowanceState::OutsideHours => "outside its hours",
            AllowanceState::DaySpent => "day spent",
            AllowanceState::MonthSpent => "month spent",
            AllowanceState::MemoryFull => "memory full",
            AllowanceState::SwarmSpent => "spent among members",
        })
    }
}

/// A limit of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ByteLimit {
    /// To and from servers in a day.
    CrawlDay,
    /// To and from servers in a month.
    CrawlMonth,
    /// Among members in a day.
    SwarmDay,
}

impl fmt::Display for ByteLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ByteLimit::CrawlDay => "day",
            ByteLimit::CrawlMonth => "month",
            ByteLimit::SwarmDay => "day among members",
        })
    }
}

/// How much of a limit is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsedShare {
    /// Which limit.
    pub limit: ByteLimit,
    /// How much of it.
    #[schema(value_type = f64)]
    pub used_ratio: Tenths,
}

/// A share in tenths, at most ten: finer ones would tell others what is fetched when. In JSON 1 is the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tenths(u8);

impl Serialize for Tenths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { (f64::from(self.0) / 10.0).serialize(serializer) } else { self.0.serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for Tenths {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let tenths = if deserializer.is_human_readable() {
            (f64::deserialize(deserializer)? * 10.0).round() as u8
        } else {
            u8::deserialize(deserializer)?
        };
        if tenths <= 10 { Ok(Tenths(tenths)) } else { Err(serde::de::Error::custom("more than the whole")) }
    }
}

impl UsedShare {
    /// So many bytes of so many; none without a limit.
    pub fn new(limit: ByteLimit, used: u64, of: Option<u64>) -> Option<UsedShare> {
        let of = of?;
        let tenths = if used >= of { 10 } else { (u128::from(used) * 10 / u128::from(of)) as u8 };
        Some(UsedShare { limit, used_ratio: Tenths(tenths) })
    }
}

/// What a member tells of its limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "WireAllowance")]
pub struct ToldAllowance {
    /// What they leave it to do.
    pub state: AllowanceState,
    /// How much of them is used; empty if it has none, or does not tell.
    pub used: Vec<UsedShare>,
}

#[derive(Deserialize)]
struct WireAllowance {
    state: AllowanceState,
    used: Vec<UsedShare>,
}

/// The error for limits as no member has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more limits than there are")]
struct ToldAllowanceError;

impl TryFrom<WireAllowance> for ToldAllowance {
    type Error = ToldAllowanceError;

    fn try_from(WireAllowance { state, used }: WireAllowance) -> Result<Self, ToldAllowanceError> {
        if used.len() <= MAX_USED { Ok(ToldAllowance { state, used }) } else { Err(ToldAllowanceError) }
    }
}

/// As in `day spent (day 100 %, month 40 %)`.
impl fmt::Display for ToldAllowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used: Vec<_> = self.used.iter().map(|share| format!("{} {} %", share.limit, share.used_ratio.0 * 10)).collect();
        let used = if used.is_empty() { String::new() } else { format!(" ({})", used.join(", ")) };
        f.pad(&format!("{}{used}", self.state))
    }
}

/// What a member tells of itself. Nobody can check it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Profile {
    /// How its operator calls it; null if it has no name.
    #[serde(default)]
    pub name: Option<MemberName>,
    /// What its limits leave it to do; null if it does not tell.
    #[serde(default)]
    pub allowance: Option<ToldAllowance>,
}

/// A profile on its way to the other members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldProfile {
    /// The member that tells it.
    pub from: AccessPoint,
    /// Increases with each telling of one member; receivers keep the greatest.
    pub version: u64,
    /// What it tells.
    pub profile: Profile,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_can_be_seen() {
        for good in ["Museum", "Nairobi 2", "Zürich – Ost", "東京大学", "O'Neill \"a\\b\" <b>&amp;", "हिन्दी", &"x".repeat(MAX_NAME)]
        {
            assert_eq!(good.parse::<MemberName>().map(String::from), Ok(good.to_owned()), "{good}");
        }
        let long = "x".repeat(MAX_NAME + 1);
        for bad in ["", " a", "a ", "a  b", "a\nb", "a\u{1b}[31m", "a\u{202e}b", "a\u{200b}b", "\u{301}a", "a\u{a0}b", "a\u{e000}", &long] {
            assert_eq!(bad.parse::<MemberName>(), Err(MemberNameError), "{bad:?}");
        }
        let sent = postcard::to_stdvec(&"a\u{7}".to_owned()).unwrap();
        assert!(postcard::from_bytes::<MemberName>(&sent).is_err(), "a member cannot send one either");
    }

    #[test]
    fn shares_are_told_in_steps_and_no_more_of_them_than_there_are_limits() {
        let share = |used, of| UsedShare::new(ByteLimit::CrawlDay, used, of).map(|share| share.used_ratio.0);
        assert_eq!([share(0, Some(9)), share(199, Some(1000)), share(1000, Some(1000))], [Some(0), Some(1), Some(10)]);
        assert_eq!([share(u64::MAX - 1, Some(u64::MAX)), share(0, Some(0)), share(5, None)], [Some(9), Some(10), None]);
        let told = |count| (AllowanceState::DaySpent, vec![UsedShare { limit: ByteLimit::CrawlDay, used_ratio: Tenths(10) }; count]);
        let read = |count| postcard::from_bytes::<ToldAllowance>(&postcard::to_stdvec(&told(count)).unwrap());
        assert_eq!(read(1).unwrap().to_string(), "day spent (day 100 %)");
        assert!(read(MAX_USED).is_ok() && read(MAX_USED + 1).is_err());
        let beyond = (AllowanceState::DaySpent, vec![(ByteLimit::CrawlDay, 11_u8)]);
        assert!(postcard::from_bytes::<ToldAllowance>(&postcard::to_stdvec(&beyond).unwrap()).is_err());
        let json = serde_json::to_string(&UsedShare::new(ByteLimit::SwarmDay, 3, Some(10))).unwrap();
        assert_eq!(json, r#"{"limit":"swarm-day","used_ratio":0.3}"#);
        assert_eq!(serde_json::from_str::<Option<UsedShare>>(&json).unwrap(), UsedShare::new(ByteLimit::SwarmDay, 3, Some(10)));
    }
}
