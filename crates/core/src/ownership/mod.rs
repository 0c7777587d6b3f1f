//! Ownership of subnets.
//!
//! * [`register`]: the claims that are known, merged
//! * [`claims`]: ours are stored, told and watched; those of others are checked and held
//! * [`gossip`]: what every member is told
//! * [`comparison`]: what gossip lost, and what a newcomer lacks; `pass`: what is asked of one member; [`parts`]: in which parts the maps
//!   are compared
//! * [`take_over`]: who goes on with what a member left

pub(crate) mod claims;
pub(crate) mod comparison;
pub(crate) mod gossip;
pub(crate) mod parts;
mod pass;
pub mod register;
pub(crate) mod take_over;
#[cfg(test)]
mod tests;

use comparison::Comparison;
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::SignedClaim,
    ids::WriteId,
    subnet::Subnet,
    time::{Millis, Moment},
};
use register::Register;
use std::collections::{BTreeMap, BTreeSet};

/// A new claim that is not acted on yet.
#[derive(Clone, Copy, Debug)]
struct Watched {
    /// Since when there has been a lease.
    since: Moment,
    /// For how long it is watched.
    lasts: Millis,
    /// Whether there was none for a while.
    interrupted: bool,
    /// How often it was told.
    told: u64,
}

/// The claims to subnets, ours and others'.
pub(crate) struct Ownership {
    register: Register,
    /// New claims of ours that are not acted on yet, and since when they have been watched.
    watched: BTreeMap<Subnet, Watched>,
    /// Claims of ours that are being stored, by the number of the write.
    unstored: BTreeMap<WriteId, Vec<SignedClaim>>,
    /// Claims of ours that every member is to be told.
    pending_claims: BTreeMap<Subnet, SignedClaim>,
    /// When the next of them may be told.
    gossip_due: Moment,
    /// Comparing the map with other members.
    comparison: Comparison,
    /// Whether the map is whole, or there is no member: only then is it acted on.
    synced: bool,
    /// Owners that are no members, and since when.
    dead_since: BTreeMap<AccessPoint, Moment>,
    /// Subnets that were released, and since when.
    freed: BTreeMap<Subnet, Moment>,
    /// Subnets that we owned when our lease ran out, and at which epoch: others may own them by now.
    doubtful: BTreeMap<Subnet, u64>,
    /// Claims to what others left, or awarded, that are being stored, with their epochs.
    inheriting: BTreeSet<(Subnet, u64)>,
    looked_at: LookedAt,
}

/// Up to which subnet of the dead, and of those that were released, it was looked whether it is our turn; none if up to the end.
#[derive(Default)]
struct LookedAt {
    dead: Option<(AccessPoint, Subnet)>,
    freed: Option<Subnet>,
}
