//! Requests to the seen set and its answers: whether a page of a site is known already, and at which level.
//!
//! The seen set is on disk, so it is asked in batches: one visit with the links it found, and one answer to each link.

use super::fingerprint::Fingerprint;
use crate::ids::SiteNumber;
use serde::{Deserialize, Serialize};

/// The deepest level that the seen set tells apart: deeper ones count as this one.
pub const DEEPEST_LEVEL: u8 = 63;

/// The state of a known page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageState {
    /// It waits to be fetched.
    Waiting,
    /// Its level is beyond the depth, so it is not fetched.
    Cut,
    /// It was fetched.
    Visited,
}

/// A visit to be recorded in the seen set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenVisit {
    /// The page that was visited.
    pub page: Fingerprint,
    /// The level it was visited at.
    pub level: u8,
    /// Its links to pages of the same site.
    pub children: Vec<Fingerprint>,
}

/// One batch for the seen set. The visit is recorded first, then the questions are answered in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenBatch {
    /// The site and run, as one number that is mixed into the fingerprints.
    pub site: SiteNumber,
    /// The deepest level that is fetched.
    pub depth: u8,
    /// The page that was just visited; none if the pages came from elsewhere.
    pub visited: Option<SeenVisit>,
    /// The pages asked about, each with the level that it would have.
    pub questions: Vec<(Fingerprint, u8)>,
}

/// The answer to one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SeenAnswer {
    /// Not known before. It waits from now on, or is cut if its level is beyond the depth. Answered exactly once for each page.
    New,
    /// Known at this level or a lower one: nothing changes.
    Known,
    /// Known at a higher level, which is now replaced by this one. If it had been cut and is within the depth now, it waits.
    Shorter {
        /// Its state until now.
        was: PageState,
    },
}
