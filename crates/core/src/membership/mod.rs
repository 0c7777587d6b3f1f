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
pub mod rendezvous;
mod roster;
pub(crate) mod shutdown;
mod swim;

#[cfg(test)]
mod simulation;

pub use fence::{Fence, FenceReason};
pub use machine::HeldBack;
pub(crate) use machine::Membership;
pub use member::{MAX_ADDRESS, MAX_ADDRESSES, Member, MemberError};
pub use roster::{Roster, RosterConfig, Standing, Verdict};
pub(crate) use shutdown::Shutdown;
pub use swim::{Output, Swim, SwimConfig, SwimError};
