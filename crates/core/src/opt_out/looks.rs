//! Which proofs are to be looked for, and when? Few at a time, and the same one again only after a rest that grows: what members say must not
//! make others ask a server that wants no requests.

use nearcrawl_model::{
    ids::QuestionId,
    opt_out::{OptOutKey, OptOutProof, ProofLook},
    time::{Millis, Moment},
};
use std::collections::BTreeMap;

/// Looks under way at a time, those that people wait for apart.
const MAX_RUNNING: usize = 4;

/// After a look for a file, which is at most two requests, no other file is looked for in so long: the names that somebody invents opt-outs for
/// may all be one server's. Records in the DNS cost the servers nothing.
const FILE_REST: Millis = 5_000;

/// The rest after the second look at one proof; it doubles with each further one.
const REST: Millis = 60_000;

/// The longest rest.
const LONGEST_REST: Millis = 3_600_000;

/// The rests after the looks in vain at a proof that was never seen here, until it is said that it is not there: a record may not have come to
/// all name servers yet, nor a file to all machines behind an address.
const LOOK_AGAIN: [Millis; 2] = [60_000, 600_000];

/// So many looks that come to nothing, over so long a time, are as good as one in vain: a server that is gone for good proves nothing.
const MAX_UNCLEAR: u32 = 6;
const UNCLEAR_FOR: Millis = 6 * 3_600_000;

/// A look that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) key: OptOutKey,
    /// What people who wait for it asked: its number, and whether they want nothing to be asked.
    pub(crate) asked: Option<(u64, bool)>,
}

/// Looks that found no proof.
#[derive(Debug, Default)]
struct Vain {
    /// In so many it was not there.
    gone: u32,
    /// So many came to nothing, the first of them then.
    unclear: u32,
    unclear_since: Moment,
}

impl Vain {
    /// After what rest it is looked again; none if it is clear now. What was seen here before is believed to be gone at once, and to be there
    /// as long as that is unclear.
    fn found(&mut self, found: &ProofLook, now: Moment, was_seen: bool) -> Option<Millis> {
        match found {
            ProofLook::Stands => None,
            ProofLook::Gone(_) if was_seen => None,
            ProofLook::Gone(_) => {
                self.gone += 1;
                LOOK_AGAIN.get(self.gone as usize - 1).copied()
            }
            ProofLook::Unclear(_) => {
                if self.unclear == 0 {
                    self.unclear_since = now;
                }
                self.unclear = self.unclear.saturating_add(1);
                let is_enough = self.unclear >= MAX_UNCLEAR && now.since(self.unclear_since) >= UNCLEAR_FOR;
                (was_seen || !is_enough).then_some(REST)
            }
        }
    }
}

/// The looks that are due, under way and done.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// When each is to begin.
    due: BTreeMap<OptOutKey, Moment>,
    running: BTreeMap<QuestionId, Look>,
    /// How many were made of each, and until when it rests.
    made: BTreeMap<OptOutKey, (u32, Moment)>,
    /// Those at proofs of which it is not clear yet whether they are there.
    vain: BTreeMap<OptOutKey, Vain>,
    /// When the next file may be looked for.
    next_file: Moment,
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

    /// A proof that was looked for in a life before is looked for once more, and only if it is not clear then again.
    pub(crate) fn want_once(&mut self, key: &OptOutKey, now: Moment) {
        self.vain.insert(key.clone(), Vain { gone: LOOK_AGAIN.len() as u32, ..Vain::default() });
        self.want(key, now);
    }

    /// Whether a proof is to be looked for, or is being looked for.
    pub(crate) fn awaits(&self, key: &OptOutKey) -> bool {
        self.due.contains_key(key)
    }

    /// The next proof to look for now, if there is one and not too many are looked for.
    pub(crate) fn next(&self, now: Moment) -> Option<OptOutKey> {
        let running = |key: &OptOutKey| self.running.values().any(|look| look.asked.is_none() && look.key == *key);
        let file_runs = self.running.values().any(|look| look.key.proof == OptOutProof::File);
        let may_look = |key: &OptOutKey| key.proof != OptOutProof::File || (!file_runs && self.next_file <= now);
        let busy = self.running.values().filter(|look| look.asked.is_none()).count() >= MAX_RUNNING;
        self.due.iter().find(|(key, begins)| !busy && **begins <= now && !running(key) && may_look(key)).map(|(key, _)| key.clone())
    }

    /// A look begins.
    pub(crate) fn begin(&mut self, question: QuestionId, look: Look) {
        self.running.insert(question, look);
    }

    /// What is looked for by this question.
    pub(crate) fn running(&self, question: QuestionId) -> Option<&Look> {
        self.running.get(&question)
    }

    /// A look that is not made after all.
    pub(crate) fn cancel(&mut self, question: QuestionId) {
        self.running.remove(&question);
    }

    /// A look has ended; whether it is clear now if the proof is there. `was_seen` tells of which this access point says that it is.
    pub(crate) fn end(
        &mut self,
        question: QuestionId,
        now: Moment,
        found: &ProofLook,
        was_seen: impl Fn(&OptOutKey) -> bool,
    ) -> Option<(Look, bool)> {
        let look = self.running.remove(&question)?;
        if look.key.proof == OptOutProof::File {
            self.next_file = now.after(FILE_REST);
        }
        // Those that people of this machine ask for are theirs to count; what rested for long begins anew.
        let lately = self.made.get(&look.key).filter(|(_, until)| until.after(LONGEST_REST) > now);
        let looks = lately.map_or(0, |(looks, _)| *looks).saturating_add(u32::from(look.asked.is_none()));
        let until = now.after(rest_after(looks));
        self.made.insert(look.key.clone(), (looks, until));
        let (again, is_clear) = match (&look.asked, found) {
            (None, found) => {
                let again = self.vain.entry(look.key.clone()).or_default().found(found, now, was_seen(&look.key));
                (again.map(|rest| until.max(now.after(rest))), again.is_none())
            }
            (Some(_), ProofLook::Stands) | (Some((_, false)), ProofLook::Gone(_)) => (None, true),
            // That people looked too early says nothing of what is looked for later.
            (Some(_), _) => (None, false),
        };
        if is_clear {
            self.due.remove(&look.key);
            self.vain.remove(&look.key);
        }
        if let Some(again) = again {
            self.due.insert(look.key.clone(), again);
        }
        Some((look, is_clear))
    }

    /// Forgets those of which nothing is said any more, and does not look where nobody who is believed wants nothing to be asked.
    pub(crate) fn retain(&mut self, known: impl Fn(&OptOutKey) -> bool, wanted: impl Fn(&OptOutKey) -> bool) {
        self.due.retain(|key, _| wanted(key));
        self.vain.retain(|key, _| wanted(key));
        self.made.retain(|key, _| known(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::opt_out::OptOutSubject;

    fn key(host: usize, proof: OptOutProof) -> OptOutKey {
        OptOutKey { subject: OptOutSubject::Host(format!("h{host}.ke").parse().unwrap()), proof }
    }

    #[test]
    fn files_are_looked_for_one_after_another_and_records_beside_them() {
        let mut looks = Looks::default();
        (0..100).for_each(|host| looks.want(&key(host, OptOutProof::File), Moment(0)));
        let (mut begun, mut question) = (Vec::new(), 0);
        for second in 0..100 {
            let now = Moment(second * 1_000);
            while let Some(key) = looks.next(now) {
                question += 1;
                begun.push(now);
                looks.begin(QuestionId(question), Look { key, asked: None });
            }
            // Each takes a second.
            let found = ProofLook::Gone("404".to_owned());
            looks.end(QuestionId(question), now.after(1_000), &found, |_| false);
        }
        assert!(begun.len() > 10 && begun.windows(2).all(|two| two[1].since(two[0]) >= FILE_REST), "{begun:?}");
        (0..3).for_each(|host| looks.want(&key(host, OptOutProof::Txt), Moment(0)));
        let mut records = 0;
        while let Some(key) = looks.next(Moment(200_000)) {
            records += u32::from(key.proof == OptOutProof::Txt);
            question += 1;
            looks.begin(QuestionId(question), Look { key, asked: None });
        }
        assert_eq!(records, 3);
    }
}
