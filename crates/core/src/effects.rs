//! What several machines do about one fact, in order. Nothing is decided here.
//!
//! * [`claims`]: what everybody knows, and whose a subnet is
//! * [`hand_overs`]: a subnet should have another owner
//! * [`journals`]: rows are written, stored, copied, read back
//! * [`owners`]: nobody's subnets get owners
//! * [`routing`]: URLs on their way to their owners
//! * [`sites`]: our own sites are asked

mod claims;
mod hand_overs;
mod journals;
mod owners;
mod routing;
mod sites;
