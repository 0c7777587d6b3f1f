//! Routes on admission of members: certificates and expulsions.

use super::{
    context::Context,
    error::{ErrorView, RequestError},
};
use crate::{io::json, node::query::Query};
use axum::{Json, body::Bytes, extract::State};
use nearcrawl_model::{
    access_point::AccessPoint,
    admission::{AdmissionView, SignedAdmission},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of a request to take in a certificate or an expulsion.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AdmissionBody {
    /// The one line of text that was signed.
    pub statement: String,
}

/// What was taken in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TakenInView {
    /// The peer id of the member that it is about.
    #[schema(value_type = String)]
    pub access_point: AccessPoint,
}

fn refused(why: String) -> RequestError {
    RequestError::bad_request(why, "`nearcrawl swarm invite` and `nearcrawl swarm expel` make what is taken in here")
}

/// Who may be a member: the certificates and expulsions that this access point knows of.
#[utoipa::path(get, path = "/api/admission",
    responses((status = 200, body = AdmissionView), (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn admission(State(context): State<Context>) -> Result<Json<AdmissionView>, RequestError> {
    Ok(Json(context.queries.ask(Query::Admission).await?))
}

/// Takes in a certificate or an expulsion. It is stored when the answer comes, and other members hear of it then.
#[utoipa::path(post, path = "/api/admission", request_body = AdmissionBody,
    responses((status = 200, body = TakenInView), (status = 400, body = ErrorView), (status = 415, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn take_in(State(context): State<Context>, body: Bytes) -> Result<Json<TakenInView>, RequestError> {
    let hint = r#"send {"statement": "nearcrawl-admission-1:…"}"#;
    let body: AdmissionBody =
        serde_json::from_slice(&body).map_err(|why| RequestError::bad_request(format!("the body {}", json::wrong(&why)), hint))?;
    let signed = body.statement.parse::<SignedAdmission>().map(Box::new).map_err(|why| refused(why.to_string()))?;
    let taken_in = context.queries.ask(|reply| Query::GiveAdmission { signed, reply }).await?;
    taken_in.map(|access_point| Json(TakenInView { access_point })).map_err(refused)
}
