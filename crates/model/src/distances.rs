//! Distances between access points.
//!
//! These are round-trip times over the connections between members, published by the member that measured them.

use super::access_point::{AccessPoint, ShortId};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The greatest number of round-trip times that one access point publishes.
pub const MAX_TOLD: usize = 256;

/// An access point's position and distances, as it states them itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distances {
    /// The access point that states them.
    pub from: AccessPoint,
    /// Increases with each publication of one access point; receivers keep the greatest.
    pub version: u64,
    /// One of its public addresses, so that the hierarchy can place it; none if it knows only private ones.
    pub address: Option<IpAddr>,
    /// Its country, two capital letters.
    pub country: Option<[u8; 2]>,
    /// The port of a web server at its address, none if there is none. Other members probe it the same way as they probe web servers, so
    /// that distances to members and to servers can be compared.
    pub home_port: Option<u16>,
    /// Round-trip times to other members, in microseconds, the shortest first, at most [`MAX_TOLD`].
    pub round_trips: Vec<(ShortId, u32)>,
}
