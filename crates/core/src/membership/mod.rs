//! Who is alive? SWIM finds out, the roster says who is missing for good, the fence says when we are the one who is missing.
//!
//! * [`Swim`]: SWIM with suspicion as a pure machine: datagrams and moments in, datagrams and news out;
//! * [`Roster`]: live, silent, dead: a silent member keeps what it owns until it has been silent for long enough;
//! * [`Fence`]: have we been cut off? Then we must stop before the others take over;
//! * `shutdown`: how does this access point go?
//! * [`rendezvous`]: who of the live ones serves a key?

mod fence;
pub(crate) mod machine;
mod member;
pub(crate) mod rendezvous;
mod roster;
pub(crate) mod shutdown;
mod swim;

#[cfg(test)]
mod simulation;

pub(crate) use fence::FenceReason;
pub use machine::HeldBack;
pub(crate) use machine::Membership;
pub use member::Member;
pub(crate) use roster::{Roster, Standing};
pub use roster::{RosterConfig, Verdict};
pub(crate) use shutdown::Shutdown;
pub use swim::SwimError;
pub use swim::{Output, Swim, SwimConfig};
