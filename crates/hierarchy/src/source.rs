//! Sources of a hierarchy: names and dates of its files, and the registry and country they give for a holder.

use serde::{Deserialize, Serialize};

/// A source of the hierarchy, for people; not part of the hash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Source {
    /// The registry or data set.
    pub name: String,
    /// Its date as the file says it (YYYYMMDD for registries).
    pub date: String,
}

/// A registry and a country within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub registry: u16,
    pub country: [u8; 2],
}
