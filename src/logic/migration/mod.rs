//! Would this subnet be crawled better from elsewhere? The question of Chen, Wang and Olsen's TWOMA, asked by the subnet's owner.
//!
//! Every rule plays the same small [`Automaton`]: each access to a subnet is answered by a reward (one state inward) or a penalty (one
//! state towards the boundary); a penalty at the boundary makes it move. The rules differ in what they reward, and in where they send:
//!
//! * [`oma`], the automaton that the paper starts from, rewards what belongs together (laboratory only);
//! * [`twoma`], the paper's, rewards what takes less time than the average of its access point, and sends anywhere;
//! * [`Case`], the default, rewards what would not be crawled sooner elsewhere, as far as that can be known, and sends to where it would.
//!
//! All are local: an owner knows what it measured itself, what probes foretold, and what others gossip of their load. `t` counts
//! accesses; there is no clock.

mod automaton;
mod case;
mod estimate;
mod experience;
mod family;
pub mod oma;
mod price;
mod relief;
mod surprise;
pub mod twoma;
mod weather;

#[cfg(test)]
mod tests;

pub use automaton::{Answer, Automaton, STATES};
pub use case::{Candidate, Case, Judgement, MOST_ARMS, Prior, Rival, Verdict};
pub use family::{Families, MOST_FAMILIES, Scale};
pub use price::LoadPrice;
pub use relief::{Spare, relieve};
pub use surprise::{Change, Surprise};
