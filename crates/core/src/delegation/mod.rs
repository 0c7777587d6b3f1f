//! Delegation of subnets to members, as in IPMicra, run by the subnet's steward instead of a coordinator.
//!
//! [`ipmicra`] is the paper's procedure; [`Nearest`] decides by what [`Knowledge`] the swarm has gathered of distances; [`drawn`] decides
//! by chance, for comparison. Around them:
//!
//! * `machine`: what is learnt from claims, downloads and members
//! * `address_assignment`: the owner of an address, and who decides if it has none; `reservations`: the subnet that it is reserved for
//! * `settlement`: a subnet gets its owner; `rounds`, `procedure`: how far each search is
//! * `prober`: probes for ourselves and for others; [`contacts`]: how often a subnet was contacted
//! * `distances`: how far the members are from each other

mod address_assignment;
mod chart;
pub mod contacts;
mod delegated;
mod distances;
mod draw;
pub(crate) mod machine;
pub(crate) mod prober;
mod procedure;
mod reads;
mod reservations;
pub(crate) mod rounds;
pub(crate) mod search;
mod settlement;
mod verdict;

mod foretelling;
mod globe;
mod hypotheses;
pub mod ipmicra;
mod knowledge;
mod nearest;
mod places;
mod plane;
mod relatives;
#[cfg(test)]
mod tests;

pub use delegated::Delegated;
pub use draw::drawn;
pub(crate) use draw::drawn_in_order;
pub use knowledge::{Knowledge, MAX_SUBNETS};
pub use nearest::Nearest;
pub(crate) use reads::DelegationReads;
pub use search::Policy;
pub use verdict::{Step, Verdict};

use distances::MemberDistances;
pub(crate) use distances::own_ip;
use nearcrawl_model::{subnet::Subnet, time::Moment};
use prober::Prober;
use reservations::Reservations;
use rounds::Rounds;
use std::collections::BTreeMap;

/// Finds owners for subnets that have none.
#[derive(Debug, Default)]
pub(crate) struct Delegation {
    /// Who holds what, by position in the hierarchy.
    delegated: Delegated,
    /// What is known of the distances to subnets.
    knowledge: Knowledge,
    /// How far the members are from each other.
    distances: MemberDistances,
    /// Addresses without an owner.
    reservations: Reservations,
    /// The searches that run, and those that wait.
    rounds: Rounds,
    /// Our own probes, and the contacts that are known.
    prober: Prober,
    /// Subnets that were probed a moment ago, and until when their addresses rest.
    rests: BTreeMap<Subnet, Moment>,
}
