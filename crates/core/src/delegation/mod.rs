//! Who should hold this subnet? IPMicra's question, asked by the subnet's steward instead of a coordinator.
//!
//! [`ipmicra`] is the paper's procedure; [`Nearest`] decides by what [`Knowledge`] the swarm has gathered of distances. Around them:
//!
//! * `machine`: what is learnt from claims, downloads and members
//! * `address_assignment`: whose is an address, and who decides if it is nobody's? `reservations`: for which subnet is it reserved?
//! * `settlement`: a subnet gets its owner; `rounds`, `procedure`: how far each search is
//! * `prober`: probes for ourselves and for others; [`contacts`]: how often a subnet was contacted
//! * `distances`: how far are the members from each other?

pub(crate) mod address_assignment;
mod chart;
pub mod contacts;
mod delegated;
mod distances;
pub(crate) mod machine;
mod others;
pub(crate) mod prober;
mod procedure;
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
pub use knowledge::{Knowledge, MAX_SUBNETS};
pub(crate) use machine::Delegation;
pub use nearest::Nearest;
pub(crate) use others::Others;
pub use search::Policy;
pub use verdict::{Step, Verdict};
