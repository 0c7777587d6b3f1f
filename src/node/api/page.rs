//! The pages for browsers: one that shows the node's state, and a text for owners of web sites.

use super::{context::Context, error::RequestError};
use crate::node::query::Query;
use axum::{
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use nearcrawl_core::crawl::site::robots::PROGRAM_TOKEN;
use nearcrawl_model::{
    opt_out::{PROOF_PATH, PROOF_WORD, TXT_LABEL},
    view::Span,
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
    let contact = match &status.contact {
        Some(contact) => format!("Write to {contact}."),
        None => "The volunteer who runs this access point left no address.".to_owned(),
    };
    Ok(format!(
        "nearcrawl {version}: a crawler run by volunteers, which counts and describes public web servers.\n\n\
         How it introduces itself\n  {agent}\n\n\
         What it does at your server\n\
         \x20 One request at a time, from the whole swarm, over one kept connection.\n\
         \x20 After each answer it pauses: at least {factor} times as long as the answer took, at least {least}, and as long as your\n\
         \x20 Crawl-delay (beyond 300 s it asks for nothing) or Retry-After says.\n\
         \x20 HTML pages only, a bounded depth from your home page, one URL for each script with a query.\n\
         \x20 It keeps counts (pages, sizes, answer times, status codes, links to other hosts), not your pages.\n\n\
         How to keep it out\n\
         \x20 robots.txt is read before anything else, again after a day, and obeyed (RFC 9309). This keeps every access point out:\n\n\
         \x20   User-agent: {PROGRAM_TOKEN}\n\
         \x20   Disallow: /\n\n\
         \x20 One no stops the whole swarm, pages and probes alike: publish a TXT record at {TXT_LABEL}.HOST that says {PROOF_WORD}, or the file\n\
         \x20 {PROOF_PATH} with the first line {PROOF_WORD}, and write to any access point (nearcrawl opt-out add HOST).\n\n\
         Complaints and questions\n  {contact}\n  This access point: {me}\n",
        version = status.version,
        agent = status.user_agent,
        factor = status.pace.delay_factor,
        least = Span(status.pace.min_delay_ms),
        me = status.access_point,
    ))
}
