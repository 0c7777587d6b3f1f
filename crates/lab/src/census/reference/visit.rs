//! A visit: a URL that was requested, its outcome, and where it leads.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// One URL that was asked for, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Visit {
    pub(crate) url: String,
    /// What `export pages` says of it, but for what is measured, and for the server.
    pub(super) row: Map<String, Value>,
    /// The different URLs in scope that it leads to, with their hosts.
    pub(crate) links: BTreeMap<String, String>,
    /// The different hosts out of scope that it leads to.
    pub(crate) beyond: BTreeSet<String>,
}
