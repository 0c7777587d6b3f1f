//! The answer to a request that is refused: the error and a hint what to do, as JSON.

use crate::{
    io::tasks::{self, TaskKind},
    node::query::QueryError,
};
use axum::{
    Json,
    extract::Request,
    http::{Method, StatusCode, Uri},
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of every answer that is an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorView {
    /// What is wrong.
    pub error: String,
    /// What to do about it.
    pub hint: String,
}

/// A status and what to say with it.
#[derive(Debug)]
pub struct RequestError {
    status: StatusCode,
    view: ErrorView,
}

impl RequestError {
    /// The request cannot be understood.
    pub fn bad_request(error: impl Into<String>, hint: impl Into<String>) -> RequestError {
        RequestError::new(StatusCode::BAD_REQUEST, error, hint)
    }

    /// A refusal with any other status.
    pub fn new(status: StatusCode, error: impl Into<String>, hint: impl Into<String>) -> RequestError {
        RequestError { status, view: ErrorView { error: error.into(), hint: hint.into() } }
    }
}

impl IntoResponse for RequestError {
    fn into_response(self) -> Response {
        (self.status, Json(self.view)).into_response()
    }
}

impl From<QueryError> for RequestError {
    fn from(failure: QueryError) -> Self {
        let (status, hint) = match failure {
            QueryError::Closed => (StatusCode::SERVICE_UNAVAILABLE, "wait for it to end, then start it again"),
            QueryError::TooBusy => (StatusCode::SERVICE_UNAVAILABLE, "ask again in a few seconds; its log says what it is doing"),
        };
        RequestError::new(status, failure.to_string(), hint)
    }
}

/// Passes a request on, and answers it if its handler panics: else its connection would just be closed.
pub async fn answer_panics(request: Request, next: Next) -> Response {
    tasks::run(TaskKind::ApiRequest, next.run(request)).await.unwrap_or_else(|why| {
        let hint = "this is a fault of nearcrawl: its log says where; other requests are still answered";
        RequestError::new(StatusCode::INTERNAL_SERVER_ERROR, why.to_string(), hint).into_response()
    })
}

/// For paths that do not exist.
pub async fn no_such_path(uri: Uri) -> RequestError {
    let path: String = uri.path().chars().take(80).collect();
    RequestError::new(StatusCode::NOT_FOUND, format!("there is nothing at {path}"), "GET /openapi.json lists what there is")
}

/// For methods that a path does not have.
pub async fn no_such_method(method: Method, uri: Uri) -> RequestError {
    let error = format!("{} cannot be asked with {method}", uri.path());
    RequestError::new(StatusCode::METHOD_NOT_ALLOWED, error, "GET /openapi.json lists what there is")
}
