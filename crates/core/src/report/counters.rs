//! Counters of what this access point did and refused since it started, for status and metrics.

use nearcrawl_model::{
    fetch::{FetchError, ResolveError},
    message::Unwilling,
    receipt::Declined,
};
use std::collections::BTreeMap;

/// Counters of what this access point did and refused since it started.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// HTML pages fetched.
    pub pages: u64,
    /// Requests sent.
    pub requests: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Pages that were not downloaded again because they are the same as in the run before.
    pub not_modified: u64,
    /// Requests without a usable answer.
    pub failed: u64,
    /// Requests without a usable answer, those for robots.txt included, by what went wrong.
    pub failures: BTreeMap<FetchError, u64>,
    /// Probes made.
    pub probes: u64,
    /// Of those, for other stewards.
    pub probes_for_others: u64,
    /// Probes that were not made here, by reason.
    pub declined: BTreeMap<Declined, u64>,
    /// Probes that others did not make for us, by reason.
    pub declined_by_others: BTreeMap<Declined, u64>,
    /// Downloads that were nearer than what was known of their subnet.
    pub passive_timings: u64,
    /// Subnets that a procedure of ours gave an owner, by how many probes it took.
    pub settled: BTreeMap<u16, u64>,
    /// Subnets of others that we took over because we had measured them, without a probe.
    pub deputies: u64,
    /// Accesses to subnets of ours that the default rule of migration judged.
    pub accesses_judged: u64,
    /// Subnets of ours that we offered to others.
    pub moves_offered: u64,
    /// Of those, the ones that went.
    pub moves_made: u64,
    /// Of those, the ones that stayed: refused, or something came between.
    pub moves_called_off: u64,
    /// Offers of ours that others refused, by reason.
    pub moves_refused: BTreeMap<Unwilling, u64>,
    /// Subnets that were handed to us.
    pub moves_taken: u64,
    /// Names looked up.
    pub lookups: u64,
    /// Of those, the ones that failed for the moment and are repeated.
    pub lookups_repeated: u64,
    /// Of those, the ones that brought no usable address in the end, by why not.
    pub unresolved: BTreeMap<ResolveError, u64>,
    /// What was refused, by class.
    pub refused: BTreeMap<&'static str, u64>,
    /// Seeds taken in since the start.
    pub seeds: u64,
    /// External hosts out of scope that were named.
    pub beyond_scope: u64,
    /// Other editions of the hierarchy that came into use.
    pub editions: u64,
    /// Arrivals that lead nowhere because their host does not resolve.
    pub nowhere: u64,
}
