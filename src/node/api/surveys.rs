//! Routes on surveys.

use super::{
    context::Context,
    error::{ErrorView, RequestError},
    routes::{Asked, read},
};
use crate::{
    io::json,
    node::query::{NoProbesError, Query},
};
use axum::{Json, body::Bytes, extract::State, http::StatusCode};
use nearcrawl_model::{
    survey::{SurveyPlan, SurveyRef, SurveyState, SurveyView},
    survey_probes::SurveyProbes,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The largest body of a survey's plan, in bytes: as JSON it is longer than as it is signed.
pub(super) const MAX_BODY: usize = 8 << 20;

/// Which survey.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SurveyQuery {
    /// Its name; with an @ and the end of its creator's peer id behind it if several creators have one of that name.
    name: String,
}

/// Whose probes for which survey.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ProbesQuery {
    /// The survey's name, as for `/api/survey`.
    name: String,
    /// The peer id of the member.
    of: String,
}

/// The body of a request to change a survey of this access point.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StateBody {
    /// Its name.
    pub name: String,
    /// What it is to be.
    pub state: SurveyState,
}

fn refused(why: String) -> RequestError {
    RequestError::bad_request(why, "`nearcrawl survey list` shows the surveys of the swarm")
}

/// All surveys that this access point knows of, without their lists: those that run first.
#[utoipa::path(get, path = "/api/surveys",
    responses((status = 200, body = Vec<SurveyView>), (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn surveys(State(context): State<Context>) -> Result<Json<Vec<SurveyView>>, RequestError> {
    Ok(Json(context.queries.ask(Query::Surveys).await?))
}

/// A survey with its list.
#[utoipa::path(get, path = "/api/survey", params(SurveyQuery),
    responses((status = 200, body = SurveyView), (status = 400, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn survey(State(context): State<Context>, asked: Asked<SurveyQuery>) -> Result<Json<SurveyView>, RequestError> {
    let which: SurveyRef = read(asked)?.name.parse().map_err(|why| refused(format!("{why}")))?;
    context.queries.ask(|reply| Query::Survey { which, reply }).await?.map(Json).map_err(refused)
}

/// What a member's probes of a survey's sample came to: this member's, or another's, which is asked.
#[utoipa::path(get, path = "/api/survey/probes", params(ProbesQuery),
    responses((status = 200, body = SurveyProbes), (status = 400, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn probes(State(context): State<Context>, asked: Asked<ProbesQuery>) -> Result<Json<SurveyProbes>, RequestError> {
    let ProbesQuery { name, of } = read(asked)?;
    let which: SurveyRef = name.parse().map_err(|why| refused(format!("{why}")))?;
    let of = of.parse().map_err(|_| RequestError::bad_request(format!("of={of:?} is no peer id"), "GET /api/members lists them"))?;
    let told = context.queries.ask(|reply| Query::SurveyProbes { which, of, reply }).await?;
    told.map(Json).map_err(|why| match why {
        NoProbesError::NoSample(why) => refused(why),
        NoProbesError::NoAnswer(why) => RequestError::new(StatusCode::SERVICE_UNAVAILABLE, why, "ask again in a few seconds"),
    })
}

/// Makes a survey, signed by this access point. It is stored when the answer comes, and other members hear of it then.
#[utoipa::path(post, path = "/api/surveys", request_body = SurveyPlan,
    responses((status = 200, body = SurveyView), (status = 400, body = ErrorView), (status = 415, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn make(State(context): State<Context>, body: Bytes) -> Result<Json<SurveyView>, RequestError> {
    let hint = "GET /openapi.json describes a SurveyPlan";
    let plan: SurveyPlan =
        serde_json::from_slice(&body).map_err(|why| RequestError::bad_request(format!("the body {}", json::wrong(&why)), hint))?;
    let plan = Box::new(plan);
    context.queries.ask(|reply| Query::MakeSurvey { plan, reply }).await?.map(Json).map_err(refused)
}

/// Pauses, resumes or ends a survey of this access point.
#[utoipa::path(post, path = "/api/survey/state", request_body = StateBody,
    responses((status = 200, body = SurveyView), (status = 400, body = ErrorView), (status = 415, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn change(State(context): State<Context>, body: Bytes) -> Result<Json<SurveyView>, RequestError> {
    let hint = r#"send {"name": "universities", "state": "paused"}"#;
    let StateBody { name, state } =
        serde_json::from_slice(&body).map_err(|why| RequestError::bad_request(format!("the body {}", json::wrong(&why)), hint))?;
    context.queries.ask(|reply| Query::ChangeSurvey { name, state, reply }).await?.map(Json).map_err(refused)
}
