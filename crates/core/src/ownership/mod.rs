//! Whose is a subnet?
//!
//! * [`register`]: the claims that are known, merged
//! * [`claims`]: ours are stored, told and watched; those of others are checked and held
//! * [`gossip`]: what everybody is told, and what gossip lost
//! * `effects`: which machines hear of a claim
//! * [`take_over`]: who goes on with what a member left?

pub(crate) mod claims;
mod effects;
pub(crate) mod gossip;
pub mod register;
pub(crate) mod take_over;

use nearcrawl_model::{access_point::AccessPoint, claim::SignedClaim, subnet::Subnet, time::Moment};
use register::Register;
use std::collections::{BTreeMap, BTreeSet};

/// The claims to subnets, ours and others'.
pub(crate) struct Ownership {
    pub(crate) register: Register,
    /// New claims of ours that are not acted on yet, and since when they have been watched.
    watched: BTreeMap<Subnet, claims::Watched>,
    unstored: BTreeMap<u64, Vec<SignedClaim>>,
    pending_claims: BTreeMap<Subnet, SignedClaim>,
    gossip_due: Moment,
    compare_due: Moment,
    synced: bool,
    dead_since: BTreeMap<AccessPoint, Moment>,
    freed: BTreeMap<Subnet, Moment>,
    /// Claims to what others left that are being stored.
    inheriting: BTreeSet<(Subnet, u64)>,
}

impl Ownership {
    /// Nothing is known yet. `synced` is whether there is nobody to compare with first.
    pub(crate) fn new(now: Moment, synced: bool) -> Ownership {
        Ownership {
            register: Register::default(),
            watched: BTreeMap::new(),
            unstored: BTreeMap::new(),
            pending_claims: BTreeMap::new(),
            gossip_due: now,
            compare_due: now,
            synced,
            dead_since: BTreeMap::new(),
            freed: BTreeMap::new(),
            inheriting: BTreeSet::new(),
        }
    }

    /// Owners that are no members, and since when.
    pub(crate) fn dead_since(&self) -> impl Iterator<Item = (AccessPoint, Moment)> {
        self.dead_since.iter().map(|(gone, since)| (*gone, *since))
    }

    /// Whether claims of ours are still being stored.
    pub(crate) fn is_storing(&self) -> bool {
        !self.unstored.is_empty()
    }

    /// Whether claims of ours are still being stored or wait to be told.
    pub(crate) fn is_telling(&self) -> bool {
        !self.unstored.is_empty() || !self.pending_claims.is_empty()
    }
}
