//! State of a URL and of a host's run: one word for programs, and the words for people beside it.

use crate::record::RunState;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What became of a URL, or how the run of a host stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VisitState {
    /// The URL is being asked for.
    Requested,
    /// The URL was answered, and the page is being read.
    Reading,
    /// The URL waits for its turn.
    Waiting,
    /// The URL does not wait: it was asked for or set aside in this run, or was not named.
    NotWaiting,
    /// The host's run goes on.
    Running,
    /// The host's run is complete.
    Complete,
    /// The host's run is complete, and the depth cut something off.
    CutByDepth,
    /// The URL was left out, or some of the host's: too few new external hosts were to be expected of them.
    CutByYield,
    /// The URL waits, or some of the host's: the page budget of the run is spent.
    PausedByBudget,
    /// robots.txt forbids the URL.
    RefusedByRobots,
    /// robots.txt demands a longer pause between requests than is waited, so nothing is requested.
    RefusedByCrawlDelay,
    /// robots.txt could not be had, which counts as a refusal of everything.
    RobotsUnavailable,
    /// The host's run is complete but for what a limit holds back, which comes later.
    HeldBack,
}

impl From<RunState> for VisitState {
    fn from(state: RunState) -> Self {
        match state {
            RunState::Running => VisitState::Running,
            RunState::Complete => VisitState::Complete,
            RunState::CutByDepth => VisitState::CutByDepth,
            RunState::PausedByBudget => VisitState::PausedByBudget,
            RunState::CutByYield => VisitState::CutByYield,
            RunState::HeldBack => VisitState::HeldBack,
        }
    }
}
