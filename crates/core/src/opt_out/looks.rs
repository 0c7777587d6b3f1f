//! Which proofs are to be looked for, and when? Few at a time, and the same one again only after a rest that grows: what members say must not
//! make others ask a server that wants no requests.

use nearcrawl_model::{
    ids::QuestionId,
    opt_out::OptOutKey,
    time::{Millis, Moment},
};
use std::collections::BTreeMap;

/// Looks under way at a time, those that people wait for apart.
const MAX_RUNNING: usize = 4;

/// The rest after the second look at one proof; it doubles with each further one.
const REST: Millis = 60_000;

/// The longest rest.
const LONGEST_REST: Millis = 3_600_000;

/// A look that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) key: OptOutKey,
    /// What people who wait for it asked: its number, and whether they want nothing to be asked.
    pub(crate) asked: Option<(u64, bool)>,
}

/// The looks that are due, under way and done.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// When each is to begin.
    due: BTreeMap<OptOutKey, Moment>,
    running: BTreeMap<QuestionId, Look>,
    /// How many were made of each, and until when it rests.
    made: BTreeMap<OptOutKey, (u32, Moment)>,
}

fn rest_after(looks: u32) -> Millis {
    if looks < 2 { 0 } else { REST.saturating_mul(1 << (looks - 2).min(20)).min(LONGEST_REST) }
}

impl Looks {
    /// A proof is to be looked for as soon as its rest is over.
    pub(crate) fn want(&mut self, key: &OptOutKey, now: Moment) {
        let begins = self.made.get(key).map_or(now, |(_, until)| now.max(*until));
        self.due.entry(key.clone()).or_insert(begins);
    }

    /// Whether a proof is to be looked for, or is being looked for.
    pub(crate) fn awaits(&self, key: &OptOutKey) -> bool {
        self.due.contains_key(key)
    }

    /// The next proof to look for now, if there is one and not too many are looked for.
    pub(crate) fn next(&self, now: Moment) -> Option<OptOutKey> {
        let running = |key: &OptOutKey| self.running.values().any(|look| look.asked.is_none() && look.key == *key);
        let busy = self.running.values().filter(|look| look.asked.is_none()).count() >= MAX_RUNNING;
        self.due.iter().find(|(key, begins)| !busy && **begins <= now && !running(key)).map(|(key, _)| key.clone())
    }

    /// A look begins.
    pub(crate) fn begin(&mut self, question: QuestionId, look: Look) {
        self.running.insert(question, look);
    }

    /// A look has ended; `again` is whether it came to nothing.
    pub(crate) fn end(&mut self, question: QuestionId, now: Moment, again: bool) -> Option<Look> {
        let look = self.running.remove(&question)?;
        // Those that people of this machine ask for are theirs to count; what rested for long begins anew.
        let lately = self.made.get(&look.key).filter(|(_, until)| until.after(LONGEST_REST) > now);
        let looks = lately.map_or(0, |(looks, _)| *looks).saturating_add(u32::from(look.asked.is_none()));
        let until = now.after(rest_after(looks));
        self.made.insert(look.key.clone(), (looks, until));
        if again && look.asked.is_none() {
            self.due.insert(look.key.clone(), until.max(now.after(1_000)));
        } else if !again {
            self.due.remove(&look.key);
        }
        Some(look)
    }

    /// Forgets those of which nothing is said any more, and does not look where nobody who is believed wants nothing to be asked.
    pub(crate) fn retain(&mut self, known: impl Fn(&OptOutKey) -> bool, wanted: impl Fn(&OptOutKey) -> bool) {
        self.due.retain(|key, _| wanted(key));
        self.made.retain(|key, _| known(key));
    }
}
