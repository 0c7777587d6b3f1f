//! Route that says whether the swarm made a request to an address at a certain time.
//!
//! All members are asked what their logs of requests say, and where a log does not, what the records of them say.

use super::{
    context::Context,
    error::{ErrorView, RequestError},
    routes::{Asked, read},
};
use crate::node::query::Query;
use axum::{Json, extract::State};
use nearcrawl_model::{request_record::RequestsAnswer, requests_made::RequestsQuery, time::WallTime};
use serde::Deserialize;
use std::net::IpAddr;
use utoipa::IntoParams;

/// Which requests.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct VerifyQuery {
    /// The address of the server.
    address: String,
    /// A moment in UTC, like 2026-11-26T08:15:00Z: requests that began from then on.
    from: String,
    /// Until then, at most two days later.
    until: String,
}

/// Whether any member made a request to an address at a certain time, and by which rule: all are asked, which takes up to 8 s. Members that do not answer are named, and what the records of their requests say that replicas keep.
#[utoipa::path(get, path = "/api/verify", params(VerifyQuery),
    responses((status = 200, body = RequestsAnswer), (status = 400, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn verify(State(context): State<Context>, asked: Asked<VerifyQuery>) -> Result<Json<RequestsAnswer>, RequestError> {
    let VerifyQuery { address, from, until } = read(asked)?;
    let wrong =
        |error: String| RequestError::bad_request(error, "ask like address=192.0.2.1&from=2026-11-26T08:10:00Z&until=2026-11-26T08:20:00Z");
    let address: IpAddr = address.parse().map_err(|_| wrong(format!("address={address:?} is no IP address")))?;
    let moment = |name: &str, text: &str| text.parse::<WallTime>().map_err(|why| wrong(format!("{name}={why}")));
    let query = RequestsQuery { address: address.to_canonical(), from: moment("from", &from)?, until: moment("until", &until)? };
    if !query.is_fair() {
        return Err(wrong("until is before from, or more than two days later".to_owned()));
    }
    Ok(Json(context.queries.ask(|reply| Query::RequestsMade { query, reply }).await?))
}
