//! Hand-over of a subnet to a better owner, so that nothing is lost, requested twice, or left without an owner.
//!
//! Nothing travels that does not travel anyway. The next owner first becomes a replica: the journals come to it row by row while the
//! present owner goes on crawling. When little is lacking the present owner stops asking these servers, lets what is under way come to its
//! end, and has the last rows copied. Then it gives the subnet up by a release that names the next owner as the first successor, and tells
//! it so. The next owner claims it at the following epoch and begins where the journals end.
//!
//! The one point at which the owner changes is the claim. Before the release is durable everything can be called off; after it the
//! swarm's rule for released subnets holds, whichever member dies: the successors take over in their turns, and the previous owner is one
//! of them.
//!
//! * `outgoing`: the present owner's side; `incoming`: the next owner's side
//! * `surroundings`: what a hand-over reads of other machines
//! * `stage`: how far a hand-over is, and why none can begin

mod incoming;
mod outgoing;
mod stage;
mod surroundings;

pub(crate) use incoming::{Incoming, MAX_HANDED, MAX_INCOMING, Offer};
pub(crate) use outgoing::{MAX_OUTGOING, Outgoing, Proposal, Step};
pub use stage::Immovable;
pub use stage::Stage;
pub(crate) use surroundings::Surroundings;
