//! Migration of subnets to access points that crawl them better (Chen, Wang, Olsen: TWOMA), decided by the subnet's owner.
//!
//! Every rule plays the same small [`Automaton`]: each access to a subnet is answered by a reward (one state inward) or a penalty (one
//! state towards the boundary); a penalty at the boundary makes it move. The rules differ in what they reward, and in where they send:
//!
//! * [`twoma`], the paper's, rewards what takes less time than the average of its access point, and sends anywhere;
//! * [`Case`], the default, rewards what would not be crawled sooner elsewhere, as far as that can be known, and sends to where it would.
//!
//! All are local: an owner knows what it measured itself, what probes predicted, and what others gossip of their load. `t` counts
//! accesses; there is no clock.

mod autocorrelation;
mod automaton;
mod case;
mod change_detection;
mod departure;
mod estimate;
mod experience;
mod family;
pub mod handover;
mod history;
pub mod judge;
mod load_shedding;
mod machine;
mod price;
pub mod twoma;

#[cfg(test)]
mod tests;

pub(crate) use automaton::STATES;
pub use automaton::{Answer, Automaton};
pub(crate) use case::Judgement;
pub use case::{ANY_GAIN, Candidate, Case, Prior, Verdict};
pub use change_detection::{Change, ChangeDetector};
pub use family::Families;
pub(crate) use family::Scale;
pub(crate) use history::{MAX_HISTORIES, OwnershipHistories};
pub use load_shedding::{ShedCandidate, shed_load};
pub(crate) use machine::Migration;
pub use price::LoadPrice;
