//! Results of a member's probes of a survey's sample: its rows of the matrix of members and servers.

use super::{
    access_point::AccessPoint,
    ownership_map::at_most,
    survey::{MAX_PROBED, SignedSurvey},
    time::WallTime,
    url::Host,
};
use serde::{Deserialize, Serialize};
use std::{fmt, net::IpAddr};
use utoipa::ToSchema;

/// Rows of one member and survey.
pub const MAX_ROWS: usize = MAX_PROBED as usize;

/// Round-trip times to other members that one member tells.
pub const MAX_ROUND_TRIPS: usize = 4_096;

/// Members that a reader is told to ask.
pub const MAX_MEMBERS: usize = 4_096;

/// What a reader needs to know to ask for all probes of a survey's sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbedSurvey {
    /// The survey, as its creator signed it: who passes it on cannot change the list that its sample is drawn from.
    pub signed: SignedSurvey,
    /// The members, the one that answers first; at most [`MAX_MEMBERS`].
    #[serde(deserialize_with = "at_most::<_, _, MAX_MEMBERS>")]
    pub members: Vec<AccessPoint>,
}

/// What came of the probe of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeOutcome {
    /// It is stored that the probe begins, and no more: it is under way.
    UnderWay,
    /// The server answered.
    Answered,
    /// It did not.
    NoAnswer,
    /// Its name has no address that may be contacted: nothing was sent.
    NoAddress,
    /// The member stopped before the probe had ended. The server is not probed again.
    Interrupted,
}

impl fmt::Display for ProbeOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProbeOutcome::UnderWay => "under-way",
            ProbeOutcome::Answered => "answered",
            ProbeOutcome::NoAnswer => "no-answer",
            ProbeOutcome::NoAddress => "no-address",
            ProbeOutcome::Interrupted => "interrupted",
        })
    }
}

/// A server of a sample that was probed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProbedServer {
    /// Its name.
    #[schema(value_type = String)]
    pub host: Host,
    /// The address that was contacted; none if it has none.
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
    /// When, by the member's clock.
    #[schema(value_type = String)]
    pub at: WallTime,
    /// What came of it.
    pub outcome: ProbeOutcome,
    /// The round-trip time in microseconds, if it answered.
    pub rtt_us: Option<u32>,
}

/// How far another member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MemberRoundTrip {
    /// Which member.
    #[schema(value_type = String)]
    pub access_point: AccessPoint,
    /// The round-trip time in microseconds.
    pub rtt_us: u32,
}

/// What a member's probes of a survey's sample came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SurveyProbes {
    /// The member.
    #[schema(value_type = String)]
    pub access_point: AccessPoint,
    /// Where the member is: an address of its own that its hierarchy has.
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
    /// How many servers the sample has.
    pub servers: u32,
    /// How many of them the member does not probe, because its configuration denies them.
    pub denied: u32,
    /// How many wait because the contacts by probes that their subnets may get in thirty days are used up.
    pub waiting_for_budget: u32,
    /// How many wait because their addresses are not known yet.
    pub waiting_for_address: u32,
    /// How many wait because nobody owns their addresses yet, or the owner cannot say when they may be probed.
    pub waiting_for_turn: u32,
    /// Those that were probed, in the order of their names; at most [`MAX_ROWS`].
    #[serde(deserialize_with = "at_most::<_, _, MAX_ROWS>")]
    pub rows: Vec<ProbedServer>,
    /// How far the other members are; at most [`MAX_ROUND_TRIPS`].
    #[serde(deserialize_with = "at_most::<_, _, MAX_ROUND_TRIPS>")]
    pub round_trips: Vec<MemberRoundTrip>,
}

impl SurveyProbes {
    /// How many servers were probed to the end, or could not be.
    pub fn done(&self) -> u32 {
        self.rows.iter().filter(|row| row.outcome != ProbeOutcome::UnderWay).count() as u32
    }

    /// Whether nothing more is going to be probed: each server of the sample was, or the configuration denies it.
    pub fn is_whole(&self) -> bool {
        self.done().saturating_add(self.denied) >= self.servers
    }
}
