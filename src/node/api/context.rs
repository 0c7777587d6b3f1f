//! Context of the API's handlers: the node, by queries, its metrics, and what is on this machine alone.

use super::{history::History, kept_sums::KeptSums, token::Token};
use crate::node::{config::InUse, metrics::Metrics, query::QueryHandle, visits::Visits};
use std::{path::PathBuf, sync::Arc};

/// What every handler can reach.
#[derive(Clone)]
pub(super) struct Context {
    pub queries: QueryHandle,
    pub metrics: Arc<Metrics>,
    pub local: Local,
}

/// What the API knows of this machine.
#[derive(Clone, Debug, Default)]
pub struct Local {
    /// By which changes are allowed; without one, everybody who reaches the API may change something.
    pub token: Option<Token>,
    /// The directory of the log of requests, if there is one.
    pub requests: Option<PathBuf>,
    /// What the configuration says.
    pub settings: InUse,
    /// What owners of web sites are told.
    pub visits: Visits,
    /// What was done lately.
    pub history: History,
    /// Sums over rows that commands gave.
    pub kept_sums: KeptSums,
}
