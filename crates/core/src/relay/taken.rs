//! Forwarded questions that are accepted: recent ones, each once.

use nearcrawl_model::{
    access_point::AccessPoint,
    forwarded::{ForwardedQuestion, Token},
    time::{Millis, Moment},
};
use std::collections::{BTreeMap, BTreeSet};

/// For how long one token is given out, in milliseconds of the boot clock. A question is taken with the present token and the one before.
pub(super) const TOKEN_EVERY: Millis = 15_000;

/// Questions that are remembered of one period, of all askers together and of one.
pub(crate) const MAX_TAKEN: usize = 16_384;
pub(super) const MAX_TAKEN_OF_ONE: usize = 1_024;

/// What is to be done with a forwarded question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Take,
    /// It names a token that is over: it may have been kept by somebody.
    Old,
    /// It was delivered before.
    Again,
    /// More than are remembered.
    TooMany,
}

/// An asker's process and the number of its question.
type Numbers = BTreeMap<AccessPoint, BTreeSet<(u64, u64)>>;

/// The questions of this period and of the one before.
#[derive(Debug)]
pub(super) struct Taken {
    process: u64,
    period: u64,
    present: Numbers,
    before: Numbers,
    /// How many are remembered of this period.
    count: usize,
}

impl Taken {
    pub(super) fn new(process: u64) -> Taken {
        Taken { process, period: 0, present: Numbers::new(), before: Numbers::new(), count: 0 }
    }

    /// How many are remembered of this period.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// What is given out at present.
    pub(super) fn token(&self, now: Moment) -> Token {
        Token { process: self.process, period: now.0 / TOKEN_EVERY }
    }

    /// Looks at a question whose seal holds; remembers it if it is to be taken.
    pub(super) fn judge(&mut self, now: Moment, question: &ForwardedQuestion) -> Verdict {
        let Token { period, process } = self.token(now);
        if period != self.period {
            // What was taken two periods ago is refused for its token.
            self.before = if period == self.period + 1 { std::mem::take(&mut self.present) } else { Numbers::new() };
            self.present.clear();
            (self.period, self.count) = (period, 0);
        }
        let token = question.token;
        if token.process != process || token.period > period || token.period + 1 < period {
            return Verdict::Old;
        }
        let number = (question.process, question.number);
        if [&self.present, &self.before].iter().any(|known| known.get(&question.from).is_some_and(|of_one| of_one.contains(&number))) {
            return Verdict::Again;
        }
        let of_one = self.present.get(&question.from).map_or(0, BTreeSet::len);
        if of_one >= MAX_TAKEN_OF_ONE || self.count >= MAX_TAKEN {
            return Verdict::TooMany;
        }
        self.present.entry(question.from).or_default().insert(number);
        self.count += 1;
        Verdict::Take
    }
}
