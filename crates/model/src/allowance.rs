//! What its operator lets an access point do: when it may crawl, and how many bytes it may move.

use super::{
    time::{Millis, WallTime},
    view::Span,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// Why nothing is asked of any server, by order of its operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rest {
    /// The operator said so.
    Paused {
        /// When it goes on by itself; none if only `resume` ends it.
        until: Option<WallTime>,
    },
    /// It is none of the hours in which it may crawl.
    OutsideHours {
        /// In how long the next of them begin.
        opens_in: Millis,
    },
    /// The default route goes over a line whose bytes cost money.
    Metered {
        /// The interface of that route.
        interface: String,
    },
    /// So many bytes were moved today.
    DaySpent {
        /// How many it may be.
        limit: u64,
    },
    /// So many bytes were moved in this month.
    MonthSpent {
        /// How many it may be.
        limit: u64,
    },
    /// The process uses more memory than it may.
    MemoryFull {
        /// How many bytes it may be.
        limit: u64,
    },
}

impl Rest {
    /// Whether a limit is reached, of bytes or of memory.
    pub fn is_spent(&self) -> bool {
        matches!(self, Rest::DaySpent { .. } | Rest::MonthSpent { .. } | Rest::MemoryFull { .. })
    }
}

/// The sentence that people read.
impl fmt::Display for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rest::Paused { until: None } => f.write_str("paused by its operator, until `nearcrawl resume`"),
            Rest::Paused { until: Some(until) } => write!(f, "paused by its operator until {}", Minute(*until)),
            Rest::OutsideHours { opens_in } => write!(f, "outside of its hours (allowance.hours); the next begin in {}", Span(*opens_in)),
            Rest::Metered { interface } => write!(
                f,
                "paused: the line is metered ({interface}; allowance.metered_interfaces); it continues when the default route goes over another \
                 interface"
            ),
            Rest::DaySpent { limit } => {
                write!(f, "its {} of today (allowance.crawl_per_day) are spent; it continues tomorrow", Size(*limit))
            }
            Rest::MonthSpent { limit } => {
                write!(f, "its {} of this month (allowance.crawl_per_month) are spent; it continues in the next one", Size(*limit))
            }
            Rest::MemoryFull { limit } => {
                write!(
                    f,
                    "it uses more than the {} of memory that it may (allowance.memory, or seven eighths of what the system allows); it continues \
                     when it uses a sixteenth less",
                    Size(*limit)
                )
            }
        }
    }
}

/// A moment to the minute, as in `2026-11-26 14:43 UTC`.
#[derive(Clone, Copy, Debug)]
pub struct Minute(pub WallTime);

impl fmt::Display for Minute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        // Without the seconds what ends within this minute would seem to be over.
        let time = text.get(11..19).map(|time| time.strip_suffix(":00").unwrap_or(time));
        match (text.get(..10), time) {
            (Some(day), Some(time)) => write!(f, "{day} {time} UTC"),
            _ => f.write_str(&text),
        }
    }
}

/// Bytes as the configuration has them, as in `2 GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        match units.into_iter().find(|(_, size)| self.0 >= *size && self.0.is_multiple_of(*size)) {
            Some((unit, size)) => write!(f, "{} {unit}", self.0 / size),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

/// The operator's limits, and how much of them is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AllowanceView {
    /// Whether the operator paused it.
    pub paused: bool,
    /// When a pause ends by itself; none if it does not, or if there is none.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub paused_until_at: Option<WallTime>,
    /// The interface of the default route, if that is a metered line; left out otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metered_interface: Option<String>,
    /// Bytes to and from web servers today, as their sockets carried them.
    pub day_bytes: u64,
    /// How many they may be; left out without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day_limit_bytes: Option<u64>,
    /// The same in this month.
    pub month_bytes: u64,
    /// How many they may be; left out without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub month_limit_bytes: Option<u64>,
    /// How many bytes to and from web servers there may be in a second; left out without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit_bytes: Option<u64>,
    /// Bytes to and from members today; of QUIC an estimate.
    #[serde(default)]
    pub swarm_day_bytes: u64,
    /// How many they may be; left out without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swarm_day_limit_bytes: Option<u64>,
    /// Bytes to and from members in this month.
    #[serde(default)]
    pub swarm_month_bytes: u64,
    /// Of those of today, bytes to and from programs that are no members, and from peers before it was known that they are.
    #[serde(default)]
    pub readers_day_bytes: u64,
    /// How many of these are served: their share of the limit; left out without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readers_day_limit_bytes: Option<u64>,
    /// Memory that the process uses, without pages of files; 0 where the system does not tell.
    #[serde(default)]
    pub memory_bytes: u64,
    /// How much it may be; left out without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    /// Bytes that the files of the state directory take.
    #[serde(default)]
    pub disk_bytes: u64,
    /// How many they may be; left out without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_limit_bytes: Option<u64>,
    /// Questions sent to name servers since the start, repeated ones included.
    #[serde(default)]
    pub dns_questions: u64,
    /// Those of them that waited for their turn (`dns.max_per_second`).
    #[serde(default)]
    pub dns_questions_delayed: u64,
    /// What the limits keep it from besides asking servers, in sentences.
    #[serde(default)]
    pub notes_text: Vec<String>,
}

/// What it does not do though it may crawl, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserve {
    /// The bytes among members are spent.
    SwarmSpent {
        /// How many they may be a day.
        limit: u64,
    },
    /// The share of programs that are no members is spent.
    ReadersSpent {
        /// How many bytes they may be a day.
        limit: u64,
    },
    /// It uses nearly as much memory as it may.
    MemoryNearlyFull {
        /// How many bytes it may be.
        limit: u64,
    },
    /// Its files take nearly as much of the disk as they may.
    DiskNearlyFull {
        /// How many bytes they may take.
        limit: u64,
    },
    /// Soon it may ask nothing for long.
    Departing {
        /// In how long it may again.
        back_in: Millis,
    },
    /// It has been on a metered line for some seconds.
    GivesAway,
}

/// The sentence that people read.
impl fmt::Display for Reserve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reserve::SwarmSpent { limit } => write!(
                f,
                "its {} of today among members (allowance.swarm_per_day) are spent: it sends no editions and exports, relays for nobody new, and \
                 takes no further subnets; leases, votes and copies of what was fetched go on",
                Size(*limit)
            ),
            Reserve::ReadersSpent { limit } => write!(
                f,
                "its {} of today for programs that are no members, a quarter of allowance.swarm_per_day, are spent: it refuses their questions \
                 until tomorrow",
                Size(*limit)
            ),
            Reserve::MemoryNearlyFull { limit } => write!(
                f,
                "it uses more than seven eighths of the {} of memory that it may (allowance.memory, or what the system allows): no further subnets \
                 are taken but those of dead members, and after a minute others get what has work, until it is less than three quarters",
                Size(*limit)
            ),
            Reserve::DiskNearlyFull { limit } => write!(
                f,
                "its files take more than seven eighths of the {} of the disk that they may (allowance.disk): no further subnets are taken but those \
                 of dead members, and after a minute others get what has work, until it is less than three quarters",
                Size(*limit)
            ),
            Reserve::GivesAway => f.write_str(
                "while the line is metered, subnets with work go to other members, and no further ones are taken (allowance.hand_over_before = \
                 \"0s\" keeps them)",
            ),
            Reserve::Departing { back_in } => write!(
                f,
                "soon it may ask nothing, and again in {} (allowance.hand_over_before): subnets with work go to other members, and no further ones \
                 are taken",
                Span(*back_in)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_have_moments_to_the_second_and_sizes_as_configured() {
        let paused = Rest::Paused { until: Some(WallTime(1_700_000_000_123)) };
        assert_eq!(paused.to_string(), "paused by its operator until 2023-11-14 22:13:20 UTC");
        assert_eq!(Minute(WallTime(1_700_000_040_000)).to_string(), "2023-11-14 22:14 UTC", "a whole one has none");
        let metered = Rest::Metered { interface: "wwan0".to_owned() };
        assert!(
            metered.to_string().starts_with("paused: the line is metered (wwan0; allowance.metered_interfaces)") && !metered.is_spent()
        );
        assert!(Rest::DaySpent { limit: 16 << 20 }.to_string().starts_with("its 16 MiB of today (allowance.crawl_per_day)"));
        assert!(Rest::MonthSpent { limit: 30 << 30 }.to_string().starts_with("its 30 GiB of this month"));
        assert!(
            Reserve::SwarmSpent { limit: 1 << 30 }.to_string().starts_with("its 1 GiB of today among members (allowance.swarm_per_day)")
        );
        assert!(Rest::DaySpent { limit: 20_000_001 }.to_string().starts_with("its 20000001 bytes of today"));
    }
}
