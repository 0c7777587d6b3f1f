//! Routes on recent events: the newest lines of the daemon's log and of its log of requests, and the rates of the last 24 hours.

use super::{
    context::Context,
    error::{ErrorView, RequestError},
    history::HistoryView,
};
use crate::{
    io::request_log,
    node::recent_events::{self, LoggedView},
};
use axum::{Json, extract::State, http::StatusCode};
use serde_json::Value;

/// So many lines of the log of requests are told.
const NEWEST: usize = 100;

/// The newest messages of the daemon's log since it started, the newest first: at most 100 of them.
#[utoipa::path(get, path = "/api/log/events", responses((status = 200, body = Vec<LoggedView>), (status = 500, body = ErrorView)))]
pub async fn events() -> Json<Vec<LoggedView>> {
    Json(recent_events::newest())
}

/// The newest lines of the log of requests, the newest first: at most 100 of them, as `nearcrawl log --json` prints them.
#[utoipa::path(get, path = "/api/log/requests",
    responses((status = 200, body = Vec<Object>), (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn requests(State(context): State<Context>) -> Result<Json<Vec<Value>>, RequestError> {
    let Some(directory) = context.local.requests else { return Ok(Json(Vec::new())) };
    let failed = |why: String| RequestError::new(StatusCode::SERVICE_UNAVAILABLE, why, "`nearcrawl log` reads the same files");
    let read = tokio::task::spawn_blocking(move || request_log::newest(&directory, NEWEST)).await;
    let lines = read.map_err(|why| failed(why.to_string()))?.map_err(|why| failed(format!("the log of requests cannot be read: {why}")))?;
    Ok(Json(lines.into_iter().filter_map(|line| serde_json::to_value(line).ok()).collect()))
}

/// Rates of this access point and totals of the swarm by the minute, for the last 24 hours.
#[utoipa::path(get, path = "/api/history", responses((status = 200, body = HistoryView), (status = 500, body = ErrorView)))]
pub async fn history(State(context): State<Context>) -> Json<HistoryView> {
    Json(context.local.history.view())
}
