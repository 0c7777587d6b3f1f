//! Description of the API as OpenAPI, made from the routes themselves.

use super::{admission, logs, opt_outs, page, routes, settings, sums, surveys, verify};
use axum::Json;
use utoipa::OpenApi;

/// The description of all routes.
#[derive(OpenApi)]
#[openapi(
    info(title = "nearcrawl", description = "A running access point: what it does, what the swarm knows, and starting points for more."),
    paths(
        routes::status,
        routes::members,
        routes::ownership,
        routes::results,
        routes::cross_table,
        routes::distinct,
        routes::why,
        routes::events,
        verify::verify,
        routes::servers,
        routes::server_owners,
        routes::server_rows,
        routes::server_history,
        routes::export_rows,
        routes::seeds,
        sums::sums,
        sums::keep,
        surveys::surveys,
        surveys::make,
        surveys::survey,
        surveys::probes,
        surveys::change,
        logs::events,
        logs::requests,
        logs::history,
        settings::settings,
        routes::pause,
        routes::resume,
        admission::admission,
        admission::take_in,
        opt_outs::opt_outs,
        opt_outs::add,
        opt_outs::withdraw,
        routes::leave,
        routes::declare_lost,
        routes::measure,
        routes::hand_over,
        routes::pin,
        openapi,
        routes::metrics,
        page::index,
        page::bot
    ),
    components(schemas(
        nearcrawl_model::plan::Plan,
        nearcrawl_model::failing_pages::FailingPage,
        nearcrawl_model::run_history::RunSummary,
        nearcrawl_model::trend::Trend
    ))
)]
pub(super) struct Description;

/// The description of this API.
#[utoipa::path(get, path = "/openapi.json", responses((status = 200, description = "OpenAPI 3.1")))]
pub async fn openapi() -> Json<utoipa::openapi::OpenApi> {
    Json(Description::openapi())
}
