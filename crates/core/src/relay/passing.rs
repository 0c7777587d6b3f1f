//! What we pass on for members that do not reach each other, with a limit for each in a time.

use nearcrawl_model::{
    access_point::AccessPoint,
    ids::{QuestionId, Ticket},
    time::{Millis, Moment},
};
use std::collections::BTreeMap;

/// Questions of others that are under way through us, of all askers together and of one.
pub(crate) const MAX_PASSING: usize = 512;
const MAX_PASSING_OF_ONE: usize = 64;

/// What is passed on for one asker in [`WINDOW`]: questions, and bytes of questions and answers.
pub(super) const MAX_QUESTIONS: u32 = 500;
pub(super) const MAX_BYTES: usize = 8 << 20;
const WINDOW: Millis = 10_000;

/// After this time an answer is not waited for any more: the asker waits longer, and then knows that it was not us who failed.
const ANSWER_TIMEOUT: Millis = 7_000;

/// A question on its way through us.
#[derive(Debug)]
pub(super) struct Passed {
    /// Who is answered.
    pub(super) ticket: Ticket,
    pub(super) asker: AccessPoint,
    since: Moment,
}

/// All that goes through us.
#[derive(Debug, Default)]
pub(super) struct Passing {
    under_way: BTreeMap<QuestionId, Passed>,
    /// Since when is counted what goes through, and how much did.
    since: Moment,
    used: BTreeMap<AccessPoint, (u32, usize)>,
}

impl Passing {
    pub(super) fn len(&self) -> usize {
        self.under_way.len()
    }

    /// Whether a question of this length may be passed on.
    pub(super) fn may(&mut self, now: Moment, asker: AccessPoint, bytes: usize) -> bool {
        if now.since(self.since) >= WINDOW {
            (self.since, self.used) = (now, BTreeMap::new());
        }
        let of_one = self.under_way.values().filter(|passed| passed.asker == asker).count();
        let (questions, used) = self.used.get(&asker).copied().unwrap_or_default();
        self.under_way.len() < MAX_PASSING && of_one < MAX_PASSING_OF_ONE && questions < MAX_QUESTIONS && used + bytes <= MAX_BYTES
    }

    pub(super) fn begin(&mut self, now: Moment, question: QuestionId, ticket: Ticket, asker: AccessPoint, bytes: usize) {
        self.under_way.insert(question, Passed { ticket, asker, since: now });
        let used = self.used.entry(asker).or_default();
        *used = (used.0 + 1, used.1.saturating_add(bytes));
    }

    /// An answer came back, or none will.
    pub(super) fn end(&mut self, question: QuestionId, bytes: usize) -> Option<Passed> {
        let passed = self.under_way.remove(&question)?;
        let used = self.used.entry(passed.asker).or_default();
        used.1 = used.1.saturating_add(bytes);
        Some(passed)
    }

    /// Those that have been waited for long enough.
    pub(super) fn overdue(&mut self, now: Moment) -> Vec<Passed> {
        self.under_way.extract_if(.., |_, passed| now.since(passed.since) >= ANSWER_TIMEOUT).map(|(_, passed)| passed).collect()
    }
}
