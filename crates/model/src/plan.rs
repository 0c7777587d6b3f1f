//! Plan of a crawl: its estimated cost and coverage, for people and programs.

use super::time::Millis;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where a plan's figures come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Grounds {
    /// Servers that were crawled.
    Measured {
        /// Servers whose records the figures are taken from.
        servers: u64,
        /// Of these, how many were not crawled to their end: what lies behind is not in the curve.
        cut_short: u64,
    },
    /// Nothing was measured: the curve is the paper's, and what a server costs is assumed.
    Paper {
        /// Requests to a server at full depth.
        requests: u64,
        /// Bytes of an answer.
        bytes: u64,
        /// How long an answer takes, in milliseconds.
        response_ms: Millis,
    },
}

/// What one depth costs and brings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DepthPlan {
    /// The deepest level that is fetched.
    pub depth: u8,
    /// Requests, as a share of those at the greatest depth measured.
    pub load_ratio: f64,
    /// The same for bytes.
    pub load_bytes_ratio: f64,
    /// The same for the time that servers take to answer.
    pub load_busy_ratio: f64,
    /// External hosts found, as a share of those found at the greatest depth measured.
    pub coverage_ratio: f64,
    /// Requests to a server, on the average.
    pub requests: f64,
}

/// How a figure is spread over servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Spread {
    /// The arithmetic mean.
    pub mean: f64,
    /// Half of the servers have no more; none if single servers are not known.
    pub median: Option<f64>,
    /// Nine of ten servers have no more.
    pub p90: Option<f64>,
    /// The largest value; none if single servers are not known.
    pub max: Option<f64>,
}

/// What a server is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServerPlan {
    /// Requests, robots.txt among them.
    pub requests: Spread,
    /// Bytes of bodies.
    pub bytes: Spread,
    /// Time that the server takes to answer, in milliseconds.
    pub busy_ms: Spread,
    /// Time from its first to its last answer, rests included, in milliseconds.
    pub duration_ms: Spread,
}

/// What all starting hosts together cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TotalPlan {
    /// Number of starting hosts.
    pub servers: u64,
    /// Of these, hosts with a record of their own, which is used instead of the average.
    pub known: u64,
    /// Requests to all of them, robots.txt among them.
    pub requests: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Time that servers take to answer, added up, in milliseconds.
    pub busy_ms: u64,
    /// How long all of it takes, with as many servers at once as the pace allows, in milliseconds.
    pub duration_ms: u64,
}

/// How fast servers are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pace {
    /// The least rest between two requests to a server, in milliseconds.
    pub min_delay_ms: Millis,
    /// The rest is at least this many times what the last answer took.
    pub delay_factor: u64,
    /// Servers asked at once.
    pub max_parallel: u64,
}

/// What a crawl is expected to cost at each depth, and the least depth that finds the wanted share of external hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// The share of the external hosts that is wanted.
    pub wanted_ratio: f64,
    /// Where the figures come from.
    pub grounds: Grounds,
    /// Depth by depth.
    pub depths: Vec<DepthPlan>,
    /// The least depth that finds enough.
    pub chosen: DepthPlan,
    /// What a server is asked for at that depth.
    pub server: ServerPlan,
    /// What the starting hosts cost at that depth; none if they were not named.
    pub total: Option<TotalPlan>,
    /// At this pace.
    pub pace: Pace,
}
