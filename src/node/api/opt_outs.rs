//! Routes on opt-outs.

use super::{
    context::Context,
    error::{ErrorView, RequestError},
};
use crate::{io::json, node::query::Query};
use axum::{Json, body::Bytes, extract::State};
use nearcrawl_model::opt_out::{OptOutKey, OptOutProof, OptOutSubject, OptOutView};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of a request to have nothing asked of a server, or to have it asked again.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OptOutBody {
    /// A host, an address or a range of addresses.
    pub subject: String,
    /// Whether all hosts below that name are meant, too.
    #[serde(default)]
    pub domain: bool,
    /// What shows that who says so may.
    pub proof: OptOutProof,
}

impl OptOutBody {
    fn read(body: &[u8]) -> Result<OptOutKey, RequestError> {
        let hint = r#"send {"subject": "museum.or.ke", "proof": "txt"}"#;
        let body: OptOutBody =
            serde_json::from_slice(body).map_err(|why| RequestError::bad_request(format!("the body {}", json::wrong(&why)), hint))?;
        let key = OptOutSubject::read(&body.subject, body.domain).map(|subject| OptOutKey { subject, proof: body.proof });
        key.and_then(|key| key.check().map(|()| key)).map_err(|why| refused(why.to_string()))
    }
}

fn refused(why: String) -> RequestError {
    RequestError::bad_request(why, "`nearcrawl opt-out list` shows the opt-outs of the swarm")
}

/// All opt-outs that this access point knows of: those that are in force first.
#[utoipa::path(get, path = "/api/opt-outs",
    responses((status = 200, body = Vec<OptOutView>), (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn opt_outs(State(context): State<Context>) -> Result<Json<Vec<OptOutView>>, RequestError> {
    Ok(Json(context.queries.ask(Query::OptOuts).await?))
}

/// Has nothing asked of a server any more, if the proof is there. It is stored when the answer comes, and other members hear of it then.
#[utoipa::path(post, path = "/api/opt-outs", request_body = OptOutBody,
    responses((status = 200, body = OptOutView), (status = 400, body = ErrorView), (status = 415, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn add(State(context): State<Context>, body: Bytes) -> Result<Json<OptOutView>, RequestError> {
    say(&context, &body, true).await
}

/// Takes an opt-out back, if its proof is not there any more. An order is taken back where it was given.
#[utoipa::path(post, path = "/api/opt-outs/withdraw", request_body = OptOutBody,
    responses((status = 200, body = OptOutView), (status = 400, body = ErrorView), (status = 415, body = ErrorView),
        (status = 500, body = ErrorView), (status = 503, body = ErrorView)))]
pub async fn withdraw(State(context): State<Context>, body: Bytes) -> Result<Json<OptOutView>, RequestError> {
    say(&context, &body, false).await
}

async fn say(context: &Context, body: &[u8], stops: bool) -> Result<Json<OptOutView>, RequestError> {
    let key = OptOutBody::read(body)?;
    context.queries.ask(|reply| Query::SayOptOut { key, stops, reply }).await?.map(Json).map_err(refused)
}
