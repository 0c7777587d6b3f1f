//! Who is alive? SWIM finds out, the roster says who is missing for good. Whether we are the one who is missing, the voters say.
//!
//! * [`Swim`]: SWIM with suspicion as a pure machine: datagrams and moments in, datagrams and news out;
//! * `hearsay`: what of what members say of each other is believed?
//! * [`Roster`]: live, silent, dead: a silent member keeps what it owns until it has been silent for long enough;
//! * `shutdown`: how does this access point go?
//! * [`rendezvous`]: who of the live ones serves a key?

mod hearsay;
pub(crate) mod machine;
mod member;
mod profiles;
pub(crate) mod rendezvous;
mod roster;
pub(crate) mod shutdown;
mod swim;
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
pub use swim::{Output, Swim, SwimConfig};
