//! Has this site's page been met before, and how deep? What is asked of the seen set and what it answers.
//!
//! The seen set lies on disk, so logic asks in batches: one visit and the links it brought, one answer to each link.

use super::fingerprint::Fingerprint;
use serde::{Deserialize, Serialize};

/// The deepest level that the seen set tells apart: deeper ones count as this one.
pub const DEEPEST_LEVEL: u8 = 63;

/// What has become of a page that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageState {
    /// Its turn is yet to come.
    Waiting,
    /// It lies beyond the depth.
    Cut,
    /// It was asked for.
    Visited,
}

/// A visit, as the seen set remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenVisit {
    /// The page that was visited.
    pub page: Fingerprint,
    /// The level it was visited at.
    pub level: u8,
    /// Its links to pages of the same site.
    pub children: Vec<Fingerprint>,
}

/// What one step of a site asks of the seen set. The visit is entered first, then the questions are answered in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenBatch {
    /// The scope: which site in which run.
    pub site: u64,
    /// The deepest level that is still visited.
    pub depth: u8,
    /// The page that was just visited, if this comes of a visit.
    pub visited: Option<SeenVisit>,
    /// Pages that were named, each with the level it would have.
    pub questions: Vec<(Fingerprint, u8)>,
}

/// The answer to one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SeenAnswer {
    /// Never met before. It now waits, or is cut if its level is beyond the depth. Said exactly once of each page.
    New,
    /// Known at this level or a shorter one: nothing changes.
    Known,
    /// Known, but deeper than this. It now has the shorter level; if it had been cut and is within the depth now, it waits.
    Shorter {
        /// What had become of it until now.
        was: PageState,
    },
}
