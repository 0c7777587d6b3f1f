//! The protocols of a member and their versions.
//!
//! Every change that others could not read raises a number here.

/// The version of hello and of everything between members. Two members speak the lower one of their versions.
pub const PROTOCOL: u32 = 5;

/// The oldest version that is still spoken: the one before, so that a swarm can be updated member by member.
pub(super) const OLDEST: u32 = 5;

/// The first exchange on a connection: both sides say which swarm and which version.
pub(super) const HELLO: &str = "/nearcrawl/hello/1";

/// Questions and answers between members.
pub(super) const MEMBER: &str = "/nearcrawl/member/1";

/// The same where both are short: a stream that stays open.
pub(super) const BRIEF: &str = "/nearcrawl/brief/1";

/// The protocol for requests of non-members.
pub(super) const PUBLIC: &str = "/nearcrawl/public/1";

/// "Do you reach me?"
pub(super) const DIAL_BACK: &str = "/nearcrawl/dial-back/1";

/// What libp2p's identify says of us.
pub(super) const IDENTIFY: &str = "/nearcrawl/1";

/// The first part of the name of each gossip topic.
pub(super) const TOPIC: &str = "nearcrawl/1";
