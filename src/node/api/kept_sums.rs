//! Sums over rows that commands gave, kept for whoever asks next.
//!
//! A survey, a rule or a label is summed by the command that asks, over the rows of all owners. While a dead member's subnets are taken over
//! nobody has their rows, and the command that asks first then has no sums of before. So commands give sums for which all rows were there to
//! the daemon that they asked, if they have its token, and read there what others gave. The daemon understands none of it, and forgets it when
//! it ends.

use nearcrawl_core::report::KEPT;
use nearcrawl_model::{
    time::{Millis, Moment},
    view::LimitView,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// Questions whose sums are kept at once: beyond that the oldest are forgotten.
pub const MAX_QUESTIONS: usize = 64;

/// Bytes of all sums together.
pub const MAX_KEPT_BYTES: usize = 16 << 20;

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
    pub(super) fn give(&self, question: String, sums: String, now: Moment) {
        self.locked(|kept| {
            kept.forget(&question);
            kept.make_room(sums.len(), now);
            kept.bytes += sums.len();
            kept.by_question.insert(question, Given { at: now, sums });
        });
    }

    /// The sums of a question, and how old they are; none if there are none that may still answer.
    pub(super) fn of(&self, question: &str, now: Moment) -> Option<(String, Millis)> {
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
