//! How far is it from one access point to the others? Measured on the connections between them, told to everybody by the one who
//! measured.

use super::access_point::{AccessPoint, ShortId};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The most round trips that one access point tells.
pub const MAX_TOLD: usize = 256;

/// Where an access point is, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distances {
    /// Who says so.
    pub from: AccessPoint,
    /// Grows with each telling.
    pub version: u64,
    /// An address of its own that the hierarchy can place; none if it knows only private ones.
    pub address: Option<IpAddr>,
    /// Its country, two capital letters.
    pub country: Option<[u8; 2]>,
    /// The port of a web server at its own address, for others to time the way by: with the same kind of probe as servers are
    /// probed with, distances to members and to servers can be compared.
    pub home_port: Option<u16>,
    /// Round trips to others, in microseconds, the shortest first, at most [`MAX_TOLD`].
    pub round_trips: Vec<(ShortId, u32)>,
}
