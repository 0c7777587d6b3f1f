//! Who is alive? SWIM finds out, the roster says who is missing for good, the fence says when we are the one who is missing.
//!
//! * [`Membership`]: SWIM with suspicion as a pure machine: datagrams and moments in, datagrams and news out;
//! * [`Roster`]: live, silent, dead: a silent member keeps what it owns until it has been silent for long enough;
//! * [`Fence`]: have we been cut off? Then we must stop before the others take over;
//! * [`rendezvous`]: who of the live ones serves a key?

mod fence;
mod member;
pub mod rendezvous;
mod roster;
mod swim;

#[cfg(test)]
mod simulation;

pub use fence::{Fence, FenceReason};
pub use member::{BadMember, LONGEST_ADDRESS, MOST_ADDRESSES, Member};
pub use roster::{Roster, RosterConfig, Standing, Verdict};
pub use swim::{Membership, MembershipConfig, Output, SwimRefusal};
