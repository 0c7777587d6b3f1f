//! Figures on how subnets are assigned and moved at this access point, and what it cost, for people and monitoring.

use crate::access_point::AccessPoint;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What one access point did to find owners, since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DelegationView {
    /// The procedure that assigns subnets: `nearcrawl`, `ipmicra` or `random`.
    pub policy: String,
    /// Subnets that got an owner by a search of this access point as their steward.
    pub delegated: u64,
    /// Of those, subnets assigned without a probe.
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
    /// Downloads whose timing showed a subnet to be nearer than was known, so that no probe was needed.
    pub passive_timings: u64,
    /// Measurements in the model of distances that the search for the nearest goes by.
    pub observations: u64,
    /// Members to which the round-trip time was measured.
    pub members_measured: u64,
}

/// What one access point did to move subnets to better owners, since it started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MigrationView {
    /// The migration rule: `nearcrawl`, `twoma` or `none`.
    pub rule: String,
    /// Accesses to its subnets that were judged.
    pub judged: u64,
    /// Subnets that it offered to others.
    pub offered: u64,
    /// Of those, subnets that were released to the other.
    pub released: u64,
    /// Of those, subnets that stayed: the offer was refused, or the hand-over was called off.
    pub called_off: u64,
    /// Offers that others refused, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Subnets that others handed over to it.
    pub received: u64,
    /// Requests under way over the last minute, as a share of those that may be under way at once: 0 to 1.
    pub busy_ratio: f64,
    /// What a second of its time costs in the choice of an owner: 1 is an unloaded member's, more is a busier one's.
    pub price_ratio: f64,
}

/// One member's measurement of a subnet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MeasurementView {
    /// The member that measured; none if it is not known here any more.
    #[schema(value_type = Option<String>)]
    pub access_point: Option<AccessPoint>,
    /// The round-trip time, in milliseconds.
    pub rtt_ms: f64,
}
