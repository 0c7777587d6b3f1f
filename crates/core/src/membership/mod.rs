//! Membership: which access points are alive.
//!
//! SWIM finds out, the roster says who is missing for good. Whether we are the one who is missing, the voters say.
//!
//! * [`Swim`]: SWIM with suspicion as a pure machine: datagrams and moments in, datagrams and changes out;
//! * `contacts`: who was heard when, and who is probed because it left a question unanswered;
//! * `hearsay`: what is believed of what members say of each other;
//! * [`Roster`]: live, silent, dead: a silent member keeps what it owns until it has been silent for long enough;
//! * `shutdown`: how this access point leaves;
//! * [`rendezvous`]: which of the live members serves a key.

mod contacts;
mod hearsay;
pub(crate) mod machine;
mod member;
mod profiles;
pub(crate) mod rendezvous;
mod roster;
pub(crate) mod shutdown;
mod swim;
mod swim_config;
#[cfg(test)]
mod tests;

pub use crate::voting::lease::NoLease;
pub use hearsay::SwimError;
pub use machine::HeldBack;
pub(crate) use machine::Membership;
pub use member::Member;
pub use rendezvous::stewards_of;
pub use roster::{LeftOut, Parting, RosterConfig, Verdict};
pub(crate) use roster::{Roster, Standing};
pub(crate) use shutdown::Shutdown;
pub use swim::{Output, Swim};
pub use swim_config::SwimConfig;
