//! The figures of a scenario.

use nearcrawl_model::time::Millis;
use serde::Serialize;
use std::collections::BTreeMap;

/// What came of a scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Of everything random.
    pub seed: u64,
    /// SHA-256 over all contacts with servers, all stored claims and rows, and these figures but for the longest step.
    pub digest: String,
    /// Requests for pages and robots.txt.
    pub fetches: u64,
    /// Pairs of fetches of one subnet by two members at one time, or of one address before its pause was over.
    pub overlaps: u64,
    /// The longest time during which two members fetched one subnet.
    pub overlap_ms_max: Millis,
    /// Pairs of contacts with one address, whoever made them, without the daemon's pause between them.
    pub pauses_broken: u64,
    /// Pages that were asked for again in the run in which they were recorded.
    pub fetched_twice: u64,
    /// Pages and records that were recorded and are not with their owner at the end.
    pub lost: u64,
    /// Answers that were called exact and differ from what was recorded.
    pub exact_but_wrong: u64,
    /// The longest time for which a subnet had no living owner that may fetch.
    pub ownerless_ms_max: Millis,
    /// From the end of a member to a living owner of each of its subnets.
    pub failover_ms: Failover,
    /// The same without the time in which no member reached as many voters as must agree.
    pub failover_with_quorum_ms: Failover,
    /// Encoded bytes of messages, sent and received, for each member and day.
    pub bytes_member_day: u64,
    /// The same by what the messages were about.
    #[serde(skip)]
    pub bytes_by_kind: BTreeMap<&'static str, u64>,
    /// The longest time that a crawler took for one event, measured on this machine.
    pub longest_step_ms: f64,
    /// The first promise that was broken.
    pub first_violation: Option<Violation>,
    /// Whether all promises were kept: the exit status.
    #[serde(skip)]
    pub holds: bool,
    /// All times of `failover_ms`, sorted, so that those of many runs can be put together.
    #[serde(skip)]
    pub failovers: Vec<Millis>,
    /// The same for `failover_with_quorum_ms`.
    #[serde(skip)]
    pub failovers_with_quorum: Vec<Millis>,
    /// What the swarm did, to be drawn.
    #[serde(skip)]
    pub course: Vec<Sample>,
    /// What happened to it, to be drawn.
    #[serde(skip)]
    pub marks: Vec<(Millis, &'static str)>,
}

/// How long subnets of members that ended had no owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Failover {
    /// Subnets.
    pub n: u64,
    /// The median.
    pub p50: Millis,
    /// The 99th percentile.
    pub p99: Millis,
    /// The longest.
    pub max: Millis,
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Since the start.
    pub at_ms: Millis,
    /// What was seen, in a sentence.
    #[serde(rename = "what_text")]
    pub what: String,
}

/// The swarm at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Since the start.
    pub at: Millis,
    /// Processes that run.
    pub running: usize,
    /// Of these, those that may fetch.
    pub able: usize,
    /// Subnets that are known, and those with a living owner.
    pub known: usize,
    /// Of the known subnets, those with a living owner that may fetch.
    pub owned: usize,
    /// Requests so far.
    pub fetches: u64,
}

impl Verdict {
    /// The promises that were broken, by the names of their figures; `end` if only the state at the end is not as it should be.
    pub fn broken(&self) -> Vec<&'static str> {
        let counts = [
            ("overlaps", self.overlaps),
            ("pauses_broken", self.pauses_broken),
            ("fetched_twice", self.fetched_twice),
            ("lost", self.lost),
            ("exact_but_wrong", self.exact_but_wrong),
        ];
        let mut broken: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 0).map(|(name, _)| name).collect();
        if broken.is_empty() && !self.holds {
            broken.push("end");
        }
        broken
    }
}

impl Failover {
    /// Of all times, sorted.
    pub fn of(all: &[Millis]) -> Failover {
        let at = |share: f64| all.get(((all.len() as f64 * share).ceil() as usize).saturating_sub(1)).copied().unwrap_or(0);
        Failover { n: all.len() as u64, p50: at(0.5), p99: at(0.99), max: at(1.0) }
    }
}

/// The first promise that was broken.
#[derive(Debug, Default)]
pub(super) struct First(pub(super) Option<Violation>);

impl First {
    /// A promise was broken at some time since the start.
    pub(super) fn note(&mut self, at_ms: Millis, what: impl FnOnce() -> String) {
        if self.0.as_ref().is_none_or(|first| at_ms < first.at_ms) {
            self.0 = Some(Violation { at_ms, what: what() });
        }
    }
}
