//! What can the handlers of the API reach? The node, by queries, and its metrics.

use crate::node::{metrics::Metrics, query::QueryHandle};
use std::sync::Arc;

/// What every handler can reach.
#[derive(Clone)]
pub(super) struct Context {
    pub queries: QueryHandle,
    pub metrics: Arc<Metrics>,
}
