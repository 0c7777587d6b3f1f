//! Routes by which sums over rows are kept for whoever asks next.

use super::{
    context::Context,
    error::{ErrorView, RequestError},
    routes::{Asked, read},
};
use crate::{io::json, node::clock};
use axum::{Json, body::Bytes, extract::State};
use nearcrawl_model::{time::Millis, view::LimitView};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// The longest question, in bytes.
pub const MAX_QUESTION: usize = 1_024;

/// The largest body by which sums are given, in bytes: a table over rows has all cells.
pub(super) const MAX_BODY: usize = 4 << 20;

/// Which sums.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SumsQuery {
    /// What was asked, word for word as when the sums were given.
    question: String,
}

/// Sums that somebody gave, if anybody did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KeptSumsView {
    /// How long ago all rows were there; null if there are no sums.
    pub age_ms: Option<Millis>,
    /// What was given; null if there are none.
    #[schema(value_type = Object)]
    pub sums: Value,
}

/// The body of a request to keep sums.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SumsBody {
    /// What was asked, with all that tells it from other questions: at most 1,024 bytes.
    pub question: String,
    /// The answer, for which all rows were there.
    #[schema(value_type = Object)]
    pub sums: Value,
}

/// The last sums over rows that a command gave for this question while all rows were there, for ten minutes: they answer while rows are
/// missing.
#[utoipa::path(get, path = "/api/sums", params(SumsQuery),
    responses((status = 200, body = KeptSumsView), (status = 400, body = ErrorView), (status = 500, body = ErrorView)))]
pub async fn sums(State(context): State<Context>, asked: Asked<SumsQuery>) -> Result<Json<KeptSumsView>, RequestError> {
    let question = read(asked)?.question;
    let kept = context.local.kept_sums.of(&question, clock::now().moment);
    let told = kept.and_then(|(sums, age)| Some(KeptSumsView { age_ms: Some(age), sums: serde_json::from_str(&sums).ok()? }));
    Ok(Json(told.unwrap_or_default()))
}

/// Keeps sums over rows for ten minutes: of the 64 latest questions, 4 MiB each and 16 MiB together. The answer is how many are kept.
#[utoipa::path(post, path = "/api/sums", request_body = SumsBody,
    responses((status = 200, body = Vec<LimitView>), (status = 400, body = ErrorView),
        (status = 413, description = "More than 4 MiB", content_type = "text/plain"), (status = 415, body = ErrorView),
        (status = 500, body = ErrorView)))]
pub async fn keep(State(context): State<Context>, body: Bytes) -> Result<Json<Vec<LimitView>>, RequestError> {
    let hint = r#"send {"question": "…", "sums": {…}}"#;
    let SumsBody { question, sums } =
        serde_json::from_slice(&body).map_err(|why| RequestError::bad_request(format!("the body {}", json::wrong(&why)), hint))?;
    if question.is_empty() || question.len() > MAX_QUESTION {
        return Err(RequestError::bad_request(format!("a question has 1 to {MAX_QUESTION} bytes"), hint));
    }
    if !sums.is_object() {
        return Err(RequestError::bad_request("sums must be an object", hint));
    }
    let kept = &context.local.kept_sums;
    kept.give(question, sums.to_string(), clock::now().moment);
    Ok(Json(kept.limits().into()))
}
