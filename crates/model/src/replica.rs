//! Replicas of journals: the members that keep copies, and identifiers of their databases.

use super::access_point::AccessPoint;
use serde::{Deserialize, Serialize};

/// About how many subnets one question to a replica may be: as many as a new owner loads at a time.
pub const MAX_SUBNETS_ASKED: usize = 1_024;

/// How many members an owner may name as those that have all its journals.
pub const MAX_NAMED: usize = 8;

/// Tells a member's database from the one that it has after the loss of its disk: a random number, drawn when the database is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StoreId(pub u64);

/// A member that keeps copies of all journals of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NamedReplica {
    /// The member.
    pub member: AccessPoint,
    /// The database in which the copies are. With another one it does not have them.
    pub store: StoreId,
}
