//! What an access point is doing, and why not more: one word for programs, one sentence for people.

use crate::{allowance::Rest, time::Millis};
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// What an access point is doing, and why it is not doing more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Activity {
    /// The store is read, the swarm is joined.
    #[default]
    Starting,
    /// Requests are under way to this many servers.
    Fetching {
        /// Servers with a request under way.
        servers: u64,
    },
    /// URLs wait, but every server that has some is to be left alone for now.
    WaitingForPoliteness {
        /// Servers that wait.
        servers: u64,
        /// When the first may be asked again.
        next: Millis,
    },
    /// Nothing is to be fetched here, but owners or addresses of this many hosts are still being found.
    FindingOwners {
        /// Hosts without a known owner or address.
        hosts: u64,
    },
    /// Nothing is to be fetched here, but URLs are on their way to owners that are known.
    HandingOver {
        /// URLs that their owners have not acknowledged yet.
        urls: u64,
    },
    /// Subnets became this access point's, or were at its last stop: what happened there before is being read.
    ReadingBack {
        /// Subnets whose journals are being read.
        subnets: u64,
        /// Those of them that wait until a member is back that keeps their journals.
        waiting: u64,
    },
    /// Everything is fetched; the last of it is being stored and copied to other members.
    Recording,
    /// Nothing more is fetched of these servers in this run.
    BudgetSpent {
        /// Servers whose page budget is used up.
        servers: u64,
    },
    /// Everything is fetched but for new hosts that limits on those hold back.
    HeldBack {
        /// Hosts that wait.
        hosts: u64,
    },
    /// No URL was ever named.
    NothingSeeded,
    /// URLs were named, but no server of them is crawled here.
    NoServers {
        /// The reason, as the end of a sentence.
        why: String,
    },
    /// Everything that was named is done; the first tree is visited again in this long.
    Done {
        /// Milliseconds until the first tree is due again; none if no revisit is planned.
        next: Option<Millis>,
    },
    /// It may not be a member, and asks no server anything.
    NotAdmitted {
        /// The reason, as a sentence.
        why: String,
    },
    /// Other members exist, but none answers.
    NoPeersReachable,
    /// Cut off from the swarm: it stopped so that no server is visited twice.
    Fenced {
        /// The reason, as the end of a sentence, like `2 of 5 members answer`.
        why: String,
    },
    /// A limit is reached (disk, quota): it says which.
    LimitReached {
        /// The limit and its value, as the end of a sentence.
        limit: String,
    },
    /// Its operator lets nothing be asked of any server now; it keeps what it owns.
    Resting(Rest),
    /// Stopping for a while: it keeps what it owns.
    Stopping,
    /// Giving its subnets back.
    Leaving,
}

impl Activity {
    /// In one word.
    pub fn state(&self) -> State {
        match self {
            Activity::Starting => State::Starting,
            Activity::Fetching { .. } => State::Fetching,
            Activity::WaitingForPoliteness { .. }
            | Activity::FindingOwners { .. }
            | Activity::HandingOver { .. }
            | Activity::ReadingBack { .. }
            | Activity::Recording => State::Waiting,
            Activity::NothingSeeded
            | Activity::NoServers { .. }
            | Activity::BudgetSpent { .. }
            | Activity::HeldBack { .. }
            | Activity::Done { .. } => State::Idle,
            Activity::NoPeersReachable | Activity::Fenced { .. } | Activity::NotAdmitted { .. } => State::Fenced,
            Activity::Resting(rest) if !rest.is_spent() => State::Paused,
            Activity::LimitReached { .. } | Activity::Resting(_) => State::Stopped,
            Activity::Stopping | Activity::Leaving => State::Leaving,
        }
    }
}

/// The sentence that people read.
impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Activity::Starting => f.write_str("starting: reading the store and joining the swarm"),
            Activity::Fetching { servers } => write!(f, "fetching from {}", counted(*servers, "server")),
            Activity::WaitingForPoliteness { servers, next } => {
                write!(f, "pausing between requests to {}, next in {}", counted(*servers, "server"), Span(*next))
            }
            Activity::FindingOwners { hosts } => write!(f, "finding owners of {}", counted(*hosts, "host")),
            Activity::HandingOver { urls: 1 } => f.write_str("sending 1 URL to its owner"),
            Activity::HandingOver { urls } => write!(f, "sending {} to their owners", counted(*urls, "URL")),
            Activity::ReadingBack { subnets, waiting: 0 } => write!(f, "reading the journals of {}", counted(*subnets, "subnet")),
            Activity::ReadingBack { subnets, waiting } => write!(
                f,
                "reading the journals of {}; {waiting} of them wait until a member is back that keeps them (see `nearcrawl why`)",
                counted(*subnets, "subnet")
            ),
            Activity::Recording => f.write_str("storing and replicating what was fetched"),
            Activity::BudgetSpent { servers } => write!(f, "no work: the page budget of {} is used up", counted(*servers, "server")),
            Activity::HeldBack { hosts } => {
                write!(f, "no work: the limits on new hosts hold back {} until another day", counted(*hosts, "host"))
            }
            Activity::NothingSeeded => f.write_str("no work: nothing was seeded"),
            Activity::NoServers { why } => write!(f, "no work: {why}"),
            Activity::Done { next: Some(next) } => write!(f, "no work: everything is fetched, next visit in {}", Span(*next)),
            Activity::Done { next: None } => f.write_str("no work: everything is fetched"),
            Activity::NoPeersReachable => f.write_str("no member reachable"),
            Activity::NotAdmitted { why } => f.write_str(why),
            Activity::Fenced { why } => write!(f, "fenced: {why}"),
            Activity::LimitReached { limit } => write!(f, "stopped: {limit}"),
            Activity::Resting(rest) => write!(f, "{rest}"),
            Activity::Stopping => f.write_str("stopping: finishing what is under way"),
            Activity::Leaving => f.write_str("leaving: releasing its subnets"),
        }
    }
}

/// How many of something, in words: `1 server`, `12 servers`, `2 entries`, `3 addresses`. Every text for people counts by this function.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    let vowel_before_y = noun.ends_with("ay") || noun.ends_with("ey") || noun.ends_with("oy");
    match noun.strip_suffix('y') {
        _ if count == 1 => format!("1 {noun}"),
        Some(stem) if !vowel_before_y => format!("{count} {stem}ies"),
        _ if ["s", "x", "ch", "sh"].iter().any(|end| noun.ends_with(end)) => format!("{count} {noun}es"),
        _ => format!("{count} {noun}s"),
    }
}

/// A length of time as people say it: `350 ms`, `1.4 s`, `3 min 5 s`, `2 h 10 min`, `6 d 4 h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Millis);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 / 1000;
        match (self.0, seconds) {
            (ms @ ..1_000, _) => write!(f, "{ms} ms"),
            (ms @ ..10_000, _) => write!(f, "{}.{} s", ms / 1000, ms % 1000 / 100),
            (_, s @ ..60) => write!(f, "{s} s"),
            (_, s @ ..3_600) => write!(f, "{} min {} s", s / 60, s % 60),
            (_, s @ ..86_400) => write!(f, "{} h {} min", s / 3_600, s % 3_600 / 60),
            (_, s) => write!(f, "{} d {} h", s / 86_400, s % 86_400 / 3_600),
        }
    }
}

/// An age as people say it where parts of a second say nothing: whole seconds, rounded up; from a minute on as a [`Span`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age(pub Millis);

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.div_ceil(1_000).max(1) {
            seconds @ ..60 => write!(f, "{seconds} s"),
            seconds => Span(seconds.saturating_mul(1_000)).fmt(f),
        }
    }
}

/// What an access point is doing, in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Reading the store and joining the swarm.
    #[default]
    Starting,
    /// Requests are under way.
    Fetching,
    /// There is work, but not right now.
    Waiting,
    /// There is no work.
    Idle,
    /// Cut off from the swarm, so it does not fetch.
    Fenced,
    /// Its operator paused it, or it is outside of its hours.
    Paused,
    /// A limit is reached.
    Stopped,
    /// On its way out.
    Leaving,
}

impl State {
    /// Every state.
    pub const ALL: [State; 8] =
        [State::Starting, State::Fetching, State::Waiting, State::Idle, State::Fenced, State::Paused, State::Stopped, State::Leaving];

    /// Its name in JSON and in the label of metrics.
    pub fn name(self) -> &'static str {
        match self {
            State::Starting => "starting",
            State::Fetching => "fetching",
            State::Waiting => "waiting",
            State::Idle => "idle",
            State::Fenced => "fenced",
            State::Paused => "paused",
            State::Stopped => "stopped",
            State::Leaving => "leaving",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_say_why_it_is_busy_or_idle() {
        let cases = [
            (Activity::Fetching { servers: 3 }, "fetching from 3 servers"),
            (Activity::Fetching { servers: 1 }, "fetching from 1 server"),
            (Activity::WaitingForPoliteness { servers: 12, next: 1_450 }, "pausing between requests to 12 servers, next in 1.4 s"),
            (Activity::WaitingForPoliteness { servers: 1, next: 90 }, "pausing between requests to 1 server, next in 90 ms"),
            (Activity::HandingOver { urls: 1 }, "sending 1 URL to its owner"),
            (Activity::NothingSeeded, "no work: nothing was seeded"),
            (Activity::HeldBack { hosts: 25 }, "no work: the limits on new hosts hold back 25 hosts until another day"),
            (Activity::Fenced { why: "2 of 5 members answer".into() }, "fenced: 2 of 5 members answer"),
            (Activity::NoPeersReachable, "no member reachable"),
            (Activity::Done { next: Some(7 * 86_400_000) }, "no work: everything is fetched, next visit in 7 d 0 h"),
        ];
        for (activity, sentence) in cases {
            assert_eq!(activity.to_string(), sentence);
        }
    }

    #[test]
    fn every_state_is_listed_once_and_named_as_in_json() {
        for (place, state) in State::ALL.into_iter().enumerate() {
            assert_eq!(state as usize, place, "the states are listed in the order of their declaration");
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
        assert_eq!(State::ALL.len(), State::Leaving as usize + 1);
    }

    #[test]
    fn ages_are_whole_seconds() {
        let cases = [(0, "1 s"), (400, "1 s"), (1_001, "2 s"), (26_000, "26 s"), (59_001, "1 min 0 s"), (600_000, "10 min 0 s")];
        for (age, text) in cases {
            assert_eq!(Age(age).to_string(), text);
        }
    }

    #[test]
    fn plurals_are_right() {
        let cases = [(1, "server", "1 server"), (0, "server", "0 servers"), (2, "journal row", "2 journal rows"), (1, "entry", "1 entry")];
        let irregular = [(3, "entry", "3 entries"), (2, "day", "2 days"), (7, "address", "7 addresses"), (2, "prefix", "2 prefixes")];
        for (count, noun, text) in cases.into_iter().chain(irregular) {
            assert_eq!(counted(count, noun), text);
        }
        assert_eq!(counted(usize::MAX, "page"), "18446744073709551615 pages");
    }

    #[test]
    fn spans_read_naturally() {
        let cases = [(0, "0 ms"), (999, "999 ms"), (1_000, "1.0 s"), (59_999, "59 s"), (185_000, "3 min 5 s"), (7_800_000, "2 h 10 min")];
        for (millis, text) in cases {
            assert_eq!(Span(millis).to_string(), text);
        }
    }
}
