//! The pages for browsers: one that shows the node's state, and a text for owners of web sites.

use super::{context::Context, error::RequestError};
use crate::node::query::Query;
use axum::{
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use rust_embed::RustEmbed;

/// The page's own files; it uses nothing else from anywhere.
#[derive(RustEmbed)]
#[folder = "src/node/api/page/"]
struct Files;

fn embedded(name: &str) -> Response {
    let kind = match name.rsplit_once('.') {
        Some((_, "html")) => "text/html; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "svg")) => "image/svg+xml",
        Some((_, "json")) => "application/json",
        _ => "text/plain; charset=utf-8",
    };
    match Files::get(name) {
        Some(file) => ([(header::CONTENT_TYPE, kind)], file.data.into_owned()).into_response(),
        None => RequestError::new(StatusCode::NOT_FOUND, "the page has no such file", "open / in a browser").into_response(),
    }
}

/// The page for browsers: status, members and results, refreshed by its script.
#[utoipa::path(get, path = "/", responses((status = 200, description = "A page that watches the node", content_type = "text/html")))]
pub async fn index() -> Response {
    embedded("index.html")
}

/// One of the page's files.
pub async fn file(Path(name): Path<String>) -> Response {
    embedded(&name)
}

/// What owners of web sites should know.
#[utoipa::path(get, path = "/bot", responses((status = 200, description = "For owners of web sites", content_type = "text/plain")))]
pub async fn bot(State(context): State<Context>) -> Result<String, RequestError> {
    let status = context.queries.ask(Query::Status).await?;
    let visits = &context.local.visits;
    let listed = |lines: &[String]| lines.iter().map(|line| format!("  {}\n", line.replace('\n', "\n    "))).collect::<String>();
    Ok(format!(
        "nearcrawl {}: a crawler run by volunteers, which counts and describes public web servers.\n\nWhat it does at your server\n{}\nHow to say \
         no\n{}\nWho it is\n{}  This access point: {}\n",
        status.version,
        listed(&visits.done),
        listed(&visits.kept_away),
        listed(&visits.who),
        status.access_point,
    ))
}
