//! How are subnets given away here, and what did it cost? Numbers for people and monitoring.

use crate::access_point::AccessPoint;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What one access point did to find owners, since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DelegationView {
    /// By which procedure: `nearcrawl` or `ipmicra`.
    pub policy: String,
    /// Subnets that got an owner by a procedure of this access point as their steward.
    pub delegated: u64,
    /// Of those, subnets that took no probe.
    pub delegated_without_probe: u64,
    /// Subnets delegated, by how many probes each took.
    pub delegated_by_probes: BTreeMap<u16, u64>,
    /// Probes that it made for other stewards.
    pub probes_for_others: u64,
    /// Probes that it was asked for and did not make, by reason.
    pub declined: BTreeMap<String, u64>,
    /// Probes that it asked others for and that they did not make, by reason.
    pub declined_by_others: BTreeMap<String, u64>,
    /// Subnets of members that died or left which it took over because it had measured them before: without a probe.
    pub takeovers_without_probe: u64,
    /// Downloads that showed a subnet to be nearer than was known, free of charge.
    pub passive_timings: u64,
    /// Measurements that the search for the nearest learns from.
    pub observations: u64,
    /// Members to which the way was measured.
    pub members_measured: u64,
}

/// What one access point did to have subnets where they are best off, since it started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MigrationView {
    /// By which rule: `nearcrawl`, `twoma` or `none`.
    pub rule: String,
    /// Accesses to its subnets that were judged.
    pub judged: u64,
    /// Subnets that it offered to others.
    pub offered: u64,
    /// Of those, the ones that went.
    pub released: u64,
    /// Of those, the ones that stayed: refused, or something came between.
    pub called_off: u64,
    /// Offers that others refused, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Subnets that were handed to it.
    pub received: u64,
    /// Requests under way over the last minute, beside as many as may be under way at once: 0 to 1.
    pub busy_ratio: f64,
    /// What a second of its time counts beside a second of an unloaded member's: 1 is the same.
    pub price_ratio: f64,
}

/// What a member's probe of a subnet gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MeasurementView {
    /// Who measured; none if it is not known here any more.
    #[schema(value_type = Option<String>)]
    pub access_point: Option<AccessPoint>,
    /// The round trip, in milliseconds.
    pub rtt_ms: f64,
}
