//! Who is alive? SWIM finds out, the roster says who is missing for good. Whether we are the one who is missing, the voters say.
//!
//! * [`Swim`]: SWIM with suspicion as a pure machine: datagrams and moments in, datagrams and news out;
//! * [`Roster`]: live, silent, dead: a silent member keeps what it owns until it has been silent for long enough;
//! * `shutdown`: how does this access point go?
//! * [`rendezvous`]: who of the live ones serves a key?

pub(crate) mod machine;
mod member;
pub(crate) mod rendezvous;
mod roster;
pub(crate) mod shutdown;
mod swim;

pub use crate::voting::lease::NoLease;
pub use machine::HeldBack;
pub(crate) use machine::Membership;
pub use member::Member;
pub use roster::{LeftOut, RosterConfig, Verdict};
pub(crate) use roster::{Roster, Standing};
pub(crate) use shutdown::Shutdown;
pub use swim::SwimError;
pub use swim::{Output, Swim, SwimConfig};
