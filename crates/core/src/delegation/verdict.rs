//! Steps and outcome of a delegation search.

use nearcrawl_model::access_point::AccessPoint;

/// What the procedure wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ask this access point to probe the subnet once, then tell the answer.
    Ask(AccessPoint),
    /// It is decided.
    Settle(Verdict),
}

/// Who gets the subnet, and what it took to find out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The new owner.
    pub owner: AccessPoint,
    /// What its probe measured, in microseconds; none if it was not asked to probe or got no answer.
    pub rtt_us: Option<u32>,
    /// The next best answer: takes over without probes if the owner dies.
    pub runner_up: Option<AccessPoint>,
    /// How many probes were asked for.
    pub probes: u16,
    /// Whether the subnet is near everywhere (anycast), so that it was given to whom has least to do rather than to the nearest.
    pub by_load: bool,
}
