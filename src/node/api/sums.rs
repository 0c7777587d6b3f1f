//! Routes by which sums over rows are kept for whoever asks next.
//!
//! A survey, a rule or a label is summed by the command that asks, over the rows of all owners. While a dead member's subnets are taken over
//! nobody has their rows, and the command that asks first then has no sums of before. So commands give sums for which all rows were there to
//! the daemon that they asked, if they have its token, and read there what others gave. The daemon understands none of it, and forgets it when
//! it ends.

use super::{
    context::Context,
    error::{ErrorView, RequestError},
    routes::{Asked, read},
};
use crate::{io::json, node::clock};
use axum::{Json, body::Bytes, extract::State};
use nearcrawl_core::report::KEPT;
use nearcrawl_model::{
    time::{Millis, Moment},
    view::LimitView,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};
use utoipa::{IntoParams, ToSchema};

/// Questions whose sums are kept at once: beyond that the oldest are forgotten.
pub const MAX_QUESTIONS: usize = 64;

/// Bytes of all sums together.
pub const MAX_KEPT_BYTES: usize = 16 << 20;

/// The longest question, in bytes.
pub const MAX_QUESTION: usize = 1_024;

/// Sums that were given.
#[derive(Debug)]
struct Given {
    at: Moment,
    sums: String,
}

#[derive(Debug, Default)]
struct Kept {
    by_question: BTreeMap<String, Given>,
    bytes: usize,
}

/// The last whole sums of questions that were asked lately; clones share them.
#[derive(Clone, Debug, Default)]
pub struct KeptSums(Arc<Mutex<Kept>>);

impl Kept {
    fn forget(&mut self, question: &str) {
        if let Some(given) = self.by_question.remove(question) {
            self.bytes -= given.sums.len();
        }
    }

    /// Forgets what is too old to answer, then the oldest until so many bytes more find room.
    fn make_room(&mut self, bytes: usize, now: Moment) {
        let too_old = |given: &Given| now.since(given.at) > KEPT;
        let old: Vec<_> = self.by_question.iter().filter(|(_, given)| too_old(given)).map(|(question, _)| question.clone()).collect();
        old.iter().for_each(|question| self.forget(question));
        while self.by_question.len() >= MAX_QUESTIONS || self.bytes + bytes > MAX_KEPT_BYTES {
            let oldest = self.by_question.iter().min_by_key(|(_, given)| given.at).map(|(question, _)| question.clone());
            let Some(oldest) = oldest else { return };
            self.forget(&oldest);
        }
    }
}

impl KeptSums {
    fn locked<R>(&self, with: impl FnOnce(&mut Kept) -> R) -> R {
        // Whoever panicked with the lock left nothing half done that matters: the sums of a question are one value.
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps these instead of those of before.
    fn give(&self, question: String, sums: String, now: Moment) {
        self.locked(|kept| {
            kept.forget(&question);
            kept.make_room(sums.len(), now);
            kept.bytes += sums.len();
            kept.by_question.insert(question, Given { at: now, sums });
        });
    }

    /// The sums of a question, and how old they are; none if there are none that may still answer.
    fn of(&self, question: &str, now: Moment) -> Option<(String, Millis)> {
        self.locked(|kept| {
            let given = kept.by_question.get(question)?;
            let age = now.since(given.at);
            (age <= KEPT).then(|| (given.sums.clone(), age))
        })
    }

    /// How much of what it may keep is kept, for monitoring.
    pub fn limits(&self) -> [LimitView; 2] {
        let (questions, bytes) = self.locked(|kept| (kept.by_question.len(), kept.bytes));
        let limit = |name: &str, used: usize, max: usize| LimitView { name: name.to_owned(), used: used as u64, max: max as u64 };
        [limit("questions with kept sums", questions, MAX_QUESTIONS), limit("bytes of kept sums", bytes, MAX_KEPT_BYTES)]
    }
}

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

/// Keeps sums over rows for ten minutes: of the 64 latest questions, and 16 MiB together. The answer is how many are kept.
#[utoipa::path(post, path = "/api/sums", request_body = SumsBody,
    responses((status = 200, body = Vec<LimitView>), (status = 400, body = ErrorView), (status = 415, body = ErrorView),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_answer_for_ten_minutes_and_the_latest_of_a_question_do() {
        let kept = KeptSums::default();
        kept.give("a".to_owned(), "1".to_owned(), Moment(0));
        kept.give("b".to_owned(), "22".to_owned(), Moment(5));
        kept.clone().give("a".to_owned(), "333".to_owned(), Moment(1_000));
        assert_eq!(kept.of("a", Moment(601_000)), Some(("333".to_owned(), 600_000)));
        assert_eq!((kept.of("a", Moment(601_001)), kept.of("c", Moment(0))), (None, None));
        assert_eq!(kept.limits().map(|limit| limit.used), [2, 5]);
        kept.give("c".to_owned(), "4".to_owned(), Moment(700_000));
        assert_eq!(kept.limits().map(|limit| limit.used), [1, 1], "what is too old takes no room");
    }

    #[test]
    fn questions_and_bytes_are_limited_and_the_oldest_give_way() {
        let kept = KeptSums::default();
        for number in 0..MAX_QUESTIONS as u64 + 3 {
            kept.give(number.to_string(), "{}".to_owned(), Moment(number));
        }
        assert_eq!(kept.limits().map(|limit| (limit.used, limit.max)), [(64, 64), (128, 16 << 20)]);
        let answers = |question: &str| kept.of(question, Moment(100)).is_some();
        assert_eq!(["2", "3", "66"].map(answers), [false, true, true]);
        let long = "7".repeat(1 << 20);
        (0..20).for_each(|number| kept.give(format!("long {number}"), long.clone(), Moment(200 + number)));
        assert_eq!(kept.limits().map(|limit| limit.used), [16, 16 << 20]);
        assert_eq!(["long 3", "long 4", "long 19"].map(|question| kept.of(question, Moment(300)).is_some()), [false, true, true]);
    }
}
