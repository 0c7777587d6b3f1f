//! Routes of the API.
//!
//! Each is one query to the node, or a document about the API itself.

use super::{
    context::Context,
    error::{ErrorView, RequestError},
};
use crate::{
    io::json,
    node::{
        query::{MeasureError, Query},
        transfers::measured_transfer::MAX_BYTES,
    },
};
use axum::{
    Json,
    body::Bytes,
    extract::{Query as QueryString, State, rejection::QueryRejection},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    allowance::AllowanceView,
    cross_table::CrossTableView,
    distinct::DistinctView,
    exported::{ExportOf, ExportPlace, ExportQuery, ExportedRows, JournalPlace},
    server_rows::{RowsOf, ServerOwner, ServerRows},
    subnet::Subnet,
    summary::Dimension,
    time::Millis,
    url::Host,
    view::{
        DeclaredLostView, EventsView, LeaveView, MeasuredTransfer, MemberView, MoveView, OwnershipView, PinView, ResultsView, SeedView,
        ServersPage, StatusView, Subject, WhyView, counted,
    },
};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use utoipa::{IntoParams, ToSchema};

/// The most starting points that one request may name.
pub const MAX_SEEDS: usize = 10_000;

/// The most rows that one answer has.
pub const MAX_ROWS: usize = 10_000;

/// A query string that axum read, or could not read.
pub(super) type Asked<T> = Result<QueryString<T>, QueryRejection>;

pub(super) fn read<T>(asked: Asked<T>) -> Result<T, RequestError> {
    match asked {
        Ok(QueryString(parameters)) => Ok(parameters),
        Err(why) => {
            let text = why.body_text();
            let said = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
            let error = format!("the parameters cannot be understood: {said}");
            Err(RequestError::bad_request(error, "GET /openapi.json describes the parameters"))
        }
    }
}

/// Which splits of the results.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ResultsQuery {
    /// Only this split, or these with commas between: country, tld, registry, organisation, software, status, language, script, http, tls or
    /// family. All of them, if not given.
    by: Option<String>,
}

/// What to explain.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WhyQuery {
    /// A URL, a host, an IP address or a subnet.
    q: String,
    /// By what the member with this peer id knows, which is asked; by what is known here, if not given.
    of: Option<String>,
}

/// Where to go on in a long list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RowsQuery {
    /// Rows after this one (a host for servers, a subnet for ownership); from the first one, if not given.
    after: Option<String>,
    /// At most so many rows: 1 to 10000.
    limit: Option<usize>,
}

impl RowsQuery {
    fn limit(&self, default: usize) -> Result<usize, RequestError> {
        match self.limit {
            None => Ok(default),
            Some(limit @ 1..=MAX_ROWS) => Ok(limit),
            Some(limit) => Err(RequestError::bad_request(
                format!("limit={limit} is out of range"),
                format!("ask for 1 to {MAX_ROWS} rows, and go on with after="),
            )),
        }
    }
}

/// The body of a request to add starting points.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SeedsBody {
    /// URLs, written in full.
    pub urls: Vec<String>,
}

/// Who this access point is and what it is doing.
#[utoipa::path(get, path = "/api/status",
    responses((status = 200, body = StatusView), (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn status(State(context): State<Context>) -> Result<Json<StatusView>, RequestError> {
    Ok(Json(context.queries.ask(Query::Status).await?))
}

/// The members of the swarm, as this one sees them.
#[utoipa::path(get, path = "/api/members",
    responses((status = 200, body = Vec<MemberView>), (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn members(State(context): State<Context>) -> Result<Json<Vec<MemberView>>, RequestError> {
    Ok(Json(context.queries.ask(Query::Members).await?))
}

/// Who owns which subnet, in the order of the subnets. As many rows as asked for: to go on, ask for those after the last one.
#[utoipa::path(get, path = "/api/ownership", params(RowsQuery),
    responses((status = 200, body = Vec<OwnershipView>), (status = 400, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn ownership(State(context): State<Context>, asked: Asked<RowsQuery>) -> Result<Json<Vec<OwnershipView>>, RequestError> {
    let rows = read(asked)?;
    let limit = rows.limit(MAX_ROWS)?;
    let after = match rows.after {
        None => None,
        Some(text) => Some(
            text.parse::<Subnet>()
                .map_err(|_| RequestError::bad_request(format!("after={text:?} is no subnet"), "write it like after=192.0.2.0/24"))?,
        ),
    };
    Ok(Json(context.queries.ask(|reply| Query::Ownership { after, limit, reply }).await?))
}

/// What the swarm knows so far: exact, or in transition and why; the same at every member once it is exact.
#[utoipa::path(get, path = "/api/results", params(ResultsQuery),
    responses((status = 200, body = ResultsView), (status = 400, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn results(State(context): State<Context>, asked: Asked<ResultsQuery>) -> Result<Json<ResultsView>, RequestError> {
    let only = read(asked)?.by.map(|names| names.split(',').map(dimension).collect::<Result<Vec<_>, _>>()).transpose()?;
    let mut results = context.queries.ask(Query::Results).await?;
    if let Some(only) = only {
        results.summary.by.retain(|dimension, _| only.contains(dimension));
    }
    Ok(Json(results.into()))
}

/// How long an answer of the members is waited for.
const DISTINCT_TIMEOUT: Duration = Duration::from_secs(3);

/// How old an answer may be that is not asked for anew.
const DISTINCT_HOLDS: Millis = 2_000;

/// How many different hosts, domains and addresses the swarm has: counts of sets, not sums over servers. All members are asked for their
/// sets, which takes up to 3 s.
#[utoipa::path(get, path = "/api/distinct",
    responses((status = 200, body = DistinctView), (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn distinct(State(context): State<Context>) -> Result<Json<DistinctView>, RequestError> {
    let until = Instant::now() + DISTINCT_TIMEOUT;
    loop {
        let view = context.queries.ask(Query::Distinct).await?;
        if view.age_ms.is_some_and(|age| age <= DISTINCT_HOLDS) || Instant::now() >= until {
            return Ok(Json(view));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn dimension(name: &str) -> Result<Dimension, RequestError> {
    serde_json::from_value(serde_json::Value::String(name.to_owned())).map_err(|_| {
        let name: String = name.chars().take(40).collect();
        RequestError::bad_request(
            format!("results are not split by {name:?}"),
            format!("split by {}", names(Dimension::ALL.iter().map(|dimension| dimension.name()))),
        )
    })
}

/// `a, b or c`.
fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    names.split_last().map_or_else(String::new, |(last, others)| format!("{} or {last}", others.join(", ")))
}

/// Which two splits go together.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CrossTableQuery {
    /// Two different splits, as in `by=country,tld`.
    by: String,
}

/// The sums of the swarm by two splits at once. All members are asked for their parts, which takes up to 3 s.
#[utoipa::path(get, path = "/api/cross-table", params(CrossTableQuery),
    responses((status = 200, body = CrossTableView), (status = 400, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn cross_table(State(context): State<Context>, asked: Asked<CrossTableQuery>) -> Result<Json<CrossTableView>, RequestError> {
    let by = read(asked)?.by;
    let Some((one, other)) = by.split_once(',').filter(|(one, other)| one != other) else {
        let by: String = by.chars().take(80).collect();
        return Err(RequestError::bad_request(format!("{by:?} names no two splits"), "write them like by=country,tld"));
    };
    let by = (dimension(one)?, dimension(other)?);
    Ok(Json(context.queries.ask(|reply| Query::CrossTable { by, reply }).await?))
}

/// Why a URL, host, address or subnet is crawled by whom, and when.
#[utoipa::path(get, path = "/api/why", params(WhyQuery),
    responses((status = 200, body = WhyView), (status = 400, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn why(State(context): State<Context>, asked: Asked<WhyQuery>) -> Result<Json<WhyView>, RequestError> {
    let WhyQuery { q, of } = read(asked)?;
    let subject: Subject = q.parse().map_err(|why| {
        RequestError::bad_request(format!("{why}"), "ask like q=https://museum.or.ke/, q=museum.or.ke, q=192.0.2.7 or q=192.0.2.0/24")
    })?;
    let Some(of) = of else { return Ok(Json(context.queries.ask(|reply| Query::Why { subject, reply }).await?)) };
    let of = of.parse().map_err(|_| RequestError::bad_request(format!("of={of:?} is no peer id"), "GET /api/members lists them"))?;
    let said = context.queries.ask(|reply| Query::WhyAt { subject, of, reply }).await?;
    said.map(Json)
        .map_err(|why| RequestError::new(StatusCode::SERVICE_UNAVAILABLE, why, "ask again in a few seconds, or ask another member"))
}

/// The delegations and hand-overs that ended at this access point lately, with how long each took: at most 4,096 since it started.
#[utoipa::path(get, path = "/api/events",
    responses((status = 200, body = EventsView), (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn events(State(context): State<Context>) -> Result<Json<EventsView>, RequestError> {
    Ok(Json(context.queries.ask(Query::Events).await?))
}

/// The servers that this access point has on record, in the order of their names.
#[utoipa::path(get, path = "/api/servers", params(RowsQuery),
    responses((status = 200, body = ServersPage), (status = 400, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn servers(State(context): State<Context>, asked: Asked<RowsQuery>) -> Result<Json<ServersPage>, RequestError> {
    let rows = read(asked)?;
    let limit = rows.limit(100)?;
    let after = rows.after.as_deref().map(host_after).transpose()?;
    Ok(Json(context.queries.ask(|reply| Query::Servers { after, limit, reply }).await?))
}

/// The members that have servers on record, as far as their totals were heard.
#[utoipa::path(get, path = "/api/servers/owners",
    responses((status = 200, body = Vec<ServerOwner>), (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn server_owners(State(context): State<Context>) -> Result<Json<Vec<ServerOwner>>, RequestError> {
    Ok(Json(context.queries.ask(Query::ServerOwners).await?))
}

/// Whose servers.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OwnerRowsQuery {
    /// The peer id of the owner: this access point, or another member, which is asked.
    of: String,
    /// Rows behind this host; from the first one, if not given.
    after: Option<String>,
}

/// The servers that a member has on record, in the order of their names, as many as fit into an answer: one JSON text each.
#[utoipa::path(get, path = "/api/servers/rows", params(OwnerRowsQuery),
    responses((status = 200, body = ServerRows), (status = 400, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn server_rows(State(context): State<Context>, asked: Asked<OwnerRowsQuery>) -> Result<Json<ServerRows>, RequestError> {
    rows_of_owner(&context, RowsOf::Servers, asked).await
}

/// The runs of the servers that a member has on record, in the order of their names, as many servers as fit into an answer: one JSON text
/// for each server, with all its runs.
#[utoipa::path(get, path = "/api/servers/history", params(OwnerRowsQuery),
    responses((status = 200, body = ServerRows), (status = 400, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn server_history(State(context): State<Context>, asked: Asked<OwnerRowsQuery>) -> Result<Json<ServerRows>, RequestError> {
    rows_of_owner(&context, RowsOf::History, asked).await
}

async fn rows_of_owner(context: &Context, rows: RowsOf, asked: Asked<OwnerRowsQuery>) -> Result<Json<ServerRows>, RequestError> {
    let asked = read(asked)?;
    let of = owner(&asked.of)?;
    let after = asked.after.as_deref().map(host_after).transpose()?;
    let rows = context.queries.ask(|reply| Query::ServerRows { rows, of, after, reply }).await?;
    rows.map(Json).map_err(|why| RequestError::new(StatusCode::SERVICE_UNAVAILABLE, why, "ask again in a few seconds"))
}

/// Which pages or links.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ExportRowsQuery {
    /// The peer id of the owner: this access point, or another member, which is asked.
    of: String,
    /// Of what: hosts, pages, host-links or page-links; or events, of this access point only.
    #[param(value_type = String)]
    rows: ExportOf,
    /// Rows behind this host; from the first one, if not given.
    after: Option<String>,
    /// With after and sequence: rows of this run of that host, and what is behind it; 0 for the one that answers at present.
    run: Option<u32>,
    /// From which row of its journal on.
    sequence: Option<u64>,
    /// How many of the rows that this one leads to are left out.
    part: Option<u32>,
}

/// Pages or links that a member has on record, in the order of hosts, as many rows as fit into an answer: one JSON text each.
#[utoipa::path(get, path = "/api/export/rows", params(ExportRowsQuery),
    responses((status = 200, body = ExportedRows), (status = 400, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn export_rows(State(context): State<Context>, asked: Asked<ExportRowsQuery>) -> Result<Json<ExportedRows>, RequestError> {
    let asked = read(asked)?;
    let of = owner(&asked.of)?;
    let within = match (asked.run, asked.sequence) {
        (Some(run), Some(sequence)) => Some(JournalPlace { run, sequence, part: asked.part.unwrap_or(0) }),
        (None, None) => None,
        _ => return Err(RequestError::bad_request("run and sequence go together", "GET /openapi.json describes the parameters")),
    };
    let from = asked.after.as_deref().map(host_after).transpose()?.map(|host| ExportPlace { host, within });
    let query = ExportQuery { of: asked.rows, from };
    let rows = context.queries.ask(|reply| Query::Export { of, query, reply }).await?;
    rows.map(Json).map_err(|why| RequestError::new(StatusCode::SERVICE_UNAVAILABLE, why, "ask again in a few seconds"))
}

fn owner(text: &str) -> Result<AccessPoint, RequestError> {
    text.parse().map_err(|_| RequestError::bad_request(format!("of={text:?} is no peer id"), "GET /api/servers/owners lists them"))
}

fn host_after(text: &str) -> Result<Host, RequestError> {
    text.parse().map_err(|_| RequestError::bad_request(format!("after={text:?} is no host"), "write it like after=museum.or.ke"))
}

/// Adds starting points. Those that are refused are listed with the reason; the others are accepted.
#[utoipa::path(post, path = "/api/seeds", request_body = SeedsBody,
    responses((status = 200, body = SeedView), (status = 400, body = ErrorView), (status = 415, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn seeds(State(context): State<Context>, body: Bytes) -> Result<Json<SeedView>, RequestError> {
    let hint = r#"send {"urls": ["https://example.org/"]}"#;
    let body: SeedsBody =
        serde_json::from_slice(&body).map_err(|why| RequestError::bad_request(format!("the body {}", json::wrong(&why)), hint))?;
    if body.urls.is_empty() || body.urls.len() > MAX_SEEDS {
        return Err(RequestError::bad_request(counted(body.urls.len(), "URL"), format!("name 1 to {MAX_SEEDS} URLs at a time")));
    }
    Ok(Json(context.queries.add_seeds(&body.urls).await?))
}

/// The body of a request to pause.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseBody {
    /// For how long, in milliseconds; until it is resumed, if not given.
    for_ms: Option<Millis>,
}

/// The longest pause that ends by itself: ten years.
const MAX_PAUSE: Millis = 10 * 365 * 86_400_000;

/// Asks no server anything for a while. The answer comes when that is stored; requests under way are finished.
#[utoipa::path(post, path = "/api/pause", request_body = PauseBody,
    responses((status = 200, body = AllowanceView), (status = 400, body = ErrorView), (status = 415, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn pause(State(context): State<Context>, body: Bytes) -> Result<Json<AllowanceView>, RequestError> {
    let hint = r#"send {"for_ms": 7200000}, or {} to pause until it is resumed"#;
    let PauseBody { for_ms: length } =
        serde_json::from_slice(&body).map_err(|why| RequestError::bad_request(format!("the body {}", json::wrong(&why)), hint))?;
    if let Some(length) = length.filter(|length| !(1..=MAX_PAUSE).contains(length)) {
        return Err(RequestError::bad_request(format!("for_ms={length} is out of range"), hint));
    }
    stored(context.queries.ask(|reply| Query::Pause { length, reply }).await?)
}

/// Goes on after a pause.
#[utoipa::path(post, path = "/api/resume",
    responses((status = 200, body = AllowanceView), (status = 415, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn resume(State(context): State<Context>) -> Result<Json<AllowanceView>, RequestError> {
    stored(context.queries.ask(Query::Resume).await?)
}

fn stored(answer: Result<AllowanceView, String>) -> Result<Json<AllowanceView>, RequestError> {
    answer.map(Json).map_err(|why| RequestError::new(StatusCode::SERVICE_UNAVAILABLE, why, "say it again when the disk answers"))
}

/// Leaves the swarm for good: gives all subnets back, then ends.
#[utoipa::path(post, path = "/api/leave",
    responses((status = 200, body = LeaveView), (status = 415, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn leave(State(context): State<Context>) -> Result<Json<LeaveView>, RequestError> {
    Ok(Json(context.queries.ask(Query::Leave).await?))
}

/// The body of an operator's declaration that members will not come back.
#[derive(Deserialize, ToSchema)]
pub struct DeclareLostBody {
    /// Their peer ids.
    #[schema(value_type = Vec<String>)]
    members: Vec<AccessPoint>,
}

/// The most members declared lost at a time.
const MAX_LOST: usize = 1_000;

/// These members will not come back: voters among them are not counted when the next list of voters is chosen. A member that is alive is
/// refused. Two could fetch from one server if one of them still ran.
#[utoipa::path(post, path = "/api/declare-lost", request_body = DeclareLostBody,
    responses((status = 200, body = DeclaredLostView), (status = 400, body = ErrorView), (status = 415, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn declare_lost(State(context): State<Context>, body: Bytes) -> Result<Json<DeclaredLostView>, RequestError> {
    let hint = r#"send {"members": ["12D3KooW…"]}"#;
    let DeclareLostBody { members } =
        serde_json::from_slice(&body).map_err(|why| RequestError::bad_request(format!("the body {}", json::wrong(&why)), hint))?;
    if members.is_empty() || members.len() > MAX_LOST {
        return Err(RequestError::bad_request(counted(members.len(), "member"), format!("name 1 to {MAX_LOST} members at a time")));
    }
    Ok(Json(context.queries.ask(|reply| Query::DeclareLost { members, reply }).await?))
}

/// The body of a request to measure the connection to a member.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasureBody {
    /// The member.
    #[schema(value_type = String)]
    of: AccessPoint,
    /// How many bytes are fetched, 1 to 4194304; in whole pieces of 262144.
    bytes: u64,
}

/// Measures the connection to a member: pieces of the hierarchy's file are fetched from it and discarded, for at most 8 s. They count
/// towards the budgets of both.
#[utoipa::path(post, path = "/api/measure", request_body = MeasureBody,
    responses((status = 200, body = MeasuredTransfer), (status = 400, body = ErrorView), (status = 415, body = ErrorView),
        (status = 500, body = ErrorView), (status = 502, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn measure(State(context): State<Context>, body: Bytes) -> Result<Json<MeasuredTransfer>, RequestError> {
    let hint = r#"send {"of": "12D3KooW…", "bytes": 4194304}"#;
    let MeasureBody { of, bytes } =
        serde_json::from_slice(&body).map_err(|why| RequestError::bad_request(format!("the body {}", json::wrong(&why)), hint))?;
    if !(1..=MAX_BYTES).contains(&bytes) {
        return Err(RequestError::bad_request(format!("bytes={bytes} is out of range"), format!("ask for 1 to {MAX_BYTES}")));
    }
    let measured = context.queries.ask(|reply| Query::Measure { of, bytes, reply }).await?;
    let why = match measured {
        Ok(measured) => return Ok(Json(measured)),
        Err(why) => why,
    };
    let (status, hint) = match why {
        MeasureError::Oneself | MeasureError::TooSmall(_) => (StatusCode::BAD_REQUEST, "GET /api/members lists the members"),
        MeasureError::WrongBytes => (StatusCode::BAD_GATEWAY, "that member is broken, or lies: tell its operator"),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "ask again in a few seconds, or of another member"),
    };
    Err(RequestError::new(status, format!("{}: {why}", of.short()), hint))
}

/// The body of a request to hand a subnet over.
#[derive(Deserialize, ToSchema)]
pub struct MoveBody {
    /// The subnet, like `192.0.2.0/24`.
    #[schema(value_type = String)]
    subnet: Subnet,
    /// The member that shall have it; it must be alive.
    #[schema(value_type = String)]
    to: AccessPoint,
}

/// Hands a subnet of this access point over to another one.
#[utoipa::path(post, path = "/api/move", request_body = MoveBody,
    responses((status = 200, body = MoveView), (status = 400, body = ErrorView), (status = 415, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn hand_over(State(context): State<Context>, body: Bytes) -> Result<Json<MoveView>, RequestError> {
    let hint = r#"send {"subnet": "192.0.2.0/24", "to": "12D3KooW…"}"#;
    let MoveBody { subnet, to } =
        serde_json::from_slice(&body).map_err(|why| RequestError::bad_request(format!("the body {}", json::wrong(&why)), hint))?;
    Ok(Json(context.queries.ask(|reply| Query::Move { subnet, to, reply }).await?))
}

/// The body of `POST /api/pin`.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct PinBody {
    /// The subnet, like `192.0.2.0/24`.
    #[schema(value_type = String)]
    subnet: Subnet,
    /// Whether it is to stay here.
    pinned: bool,
}

/// Keeps a subnet of this access point here, whoever is nearer or less busy, or lets it move again.
#[utoipa::path(post, path = "/api/pin", request_body = PinBody,
    responses((status = 200, body = PinView), (status = 400, body = ErrorView), (status = 415, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn pin(State(context): State<Context>, body: Bytes) -> Result<Json<PinView>, RequestError> {
    let hint = r#"send {"subnet": "192.0.2.0/24", "pinned": true}"#;
    let PinBody { subnet, pinned } =
        serde_json::from_slice(&body).map_err(|why| RequestError::bad_request(format!("the body {}", json::wrong(&why)), hint))?;
    Ok(Json(context.queries.ask(|reply| Query::Pin { subnet, pinned, reply }).await?))
}

/// Counters and gauges for Prometheus.
#[utoipa::path(get, path = "/metrics", responses((status = 200, description = "OpenMetrics text", content_type = "application/openmetrics-text")))]
pub async fn metrics(State(context): State<Context>) -> Result<Response, RequestError> {
    let status = context.queries.ask(Query::Status).await?;
    context.metrics.update(&status);
    context.metrics.update_limits(&context.local.kept_sums.limits());
    let kind = [(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")];
    Ok((kind, context.metrics.text()).into_response())
}
