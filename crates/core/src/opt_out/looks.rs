//! Schedules the checks of opt-out proofs.
//!
//! There are few at a time, and the same one again only after a rest that grows: what members say must not make others contact a server
//! that wants no requests.

use nearcrawl_model::{
    access_point::AccessPoint,
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
const MAX_REST: Millis = 3_600_000;

/// The rests after the looks in vain at a proof, until it is said that it is not there: a record may not have come to all name servers yet,
/// nor a file to all machines behind an address; and one of them may answer that there is none while the others still have it.
const LOOK_AGAIN: [Millis; 2] = [60_000, 600_000];

/// How long such a series of looks takes.
pub(crate) const SERIES: Millis = LOOK_AGAIN[0] + LOOK_AGAIN[1];

/// A proof that was looked for in vain holds requests up again because somebody says that it is there: in so long once for each who says so,
/// and at most so often in all, since anybody can make as many keys as they like.
const OPENED_EVERY: Millis = 86_400_000;
const MAX_OPENED: usize = 3;

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
    /// After what rest it is looked again; none if it is clear now. What was seen here before is believed to be there as long as that is
    /// unclear.
    fn found(&mut self, found: &ProofLook, now: Moment, was_seen: bool) -> Option<Millis> {
        match found {
            ProofLook::Stands => None,
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

/// Why a proof is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// It is not clear whether it is there: nothing is asked until it is.
    Unknown,
    /// Somebody says again that it is there, though it was looked for in vain: that alone holds no requests up.
    Repeated,
    /// People took the opt-out back here, and the proof was not there: nothing is asked until the further looks agree, though perhaps no
    /// member says any more that it is there.
    TakenBack,
}

/// The looks that are due, under way and done.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// When each is to begin, and why.
    due: BTreeMap<OptOutKey, (Moment, Why)>,
    running: BTreeMap<QuestionId, Look>,
    /// How many were made of each, and until when it rests.
    made: BTreeMap<OptOutKey, (u32, Moment)>,
    /// Those at proofs of which it is not clear yet whether they are there.
    vain: BTreeMap<OptOutKey, Vain>,
    /// When each held requests up because of whom who said that it is there; those that were seen since apart.
    opened: BTreeMap<OptOutKey, BTreeMap<AccessPoint, Moment>>,
    /// When the next file may be looked for.
    next_file: Moment,
}

fn rest_after(looks: u32) -> Millis {
    if looks < 2 { 0 } else { REST.saturating_mul(1 << (looks - 2).min(20)).min(MAX_REST) }
}

impl Looks {
    /// A proof is to be looked for as soon as its rest is over.
    pub(crate) fn want(&mut self, key: &OptOutKey, now: Moment) {
        self.insert(key, self.rested(key, now), Why::Unknown);
    }

    /// Somebody says that a proof is there. Requests wait until it was looked for, unless it was looked for in vain here (`in_vain`) and
    /// they waited for it not long ago: whoever repeats it again and again would have them wait for ever.
    pub(crate) fn want_said(&mut self, key: &OptOutKey, now: Moment, by: AccessPoint, in_vain: bool) {
        if self.holds(key) {
            return;
        }
        let opened = self.opened.entry(key.clone()).or_default();
        opened.retain(|_, at| now.since(*at) < OPENED_EVERY);
        if in_vain && (opened.contains_key(&by) || opened.len() >= MAX_OPENED) {
            return self.insert(key, self.rested(key, now), Why::Repeated);
        }
        opened.insert(by, now);
        // These few times it does not rest: otherwise requests would wait for that, too.
        let begins = if in_vain { now } else { self.rested(key, now) };
        self.due.insert(key.clone(), (begins, Why::Unknown));
    }

    /// A proof that was looked for by a previous process is looked for once more, and only if it is not clear then again.
    pub(crate) fn want_once(&mut self, key: &OptOutKey, now: Moment) {
        self.vain.insert(key.clone(), Vain { gone: LOOK_AGAIN.len() as u32, ..Vain::default() });
        self.want(key, now);
    }

    /// People take an opt-out back: nothing is asked until a series of looks is over. One that is under way goes on: it is not shortened by
    /// saying so again. `has_looked` tells whether a first look was made just now.
    pub(crate) fn take_back(&mut self, key: &OptOutKey, now: Moment, has_looked: bool) {
        if let Some((_, why)) = self.due.get_mut(key) {
            *why = if *why == Why::Repeated { Why::Repeated } else { Why::TakenBack };
            return;
        }
        let (gone, begins) = if has_looked { (1, now.after(LOOK_AGAIN[0])) } else { (0, now) };
        self.vain.insert(key.clone(), Vain { gone, ..Vain::default() });
        self.insert(key, begins, Why::TakenBack);
    }

    /// When a proof may be looked for next.
    fn rested(&self, key: &OptOutKey, now: Moment) -> Moment {
        self.made.get(key).map_or(now, |(_, until)| now.max(*until))
    }

    fn insert(&mut self, key: &OptOutKey, begins: Moment, why: Why) {
        self.due.entry(key.clone()).or_insert((begins, why));
    }

    /// Whether nothing is asked until a proof was looked for.
    pub(crate) fn holds(&self, key: &OptOutKey) -> bool {
        self.due.get(key).is_some_and(|(_, why)| *why != Why::Repeated)
    }

    /// Whether that is so because people took the opt-out back here.
    pub(crate) fn is_taken_back(&self, key: &OptOutKey) -> bool {
        self.due.get(key).is_some_and(|(_, why)| *why == Why::TakenBack)
    }

    /// Whether a proof was not there at the last look, and is looked for again.
    pub(crate) fn is_doubtful(&self, key: &OptOutKey) -> bool {
        self.vain.get(key).is_some_and(|vain| vain.gone > 0)
    }

    /// The next proof to look for now, if there is one and not too many are looked for.
    pub(crate) fn next(&self, now: Moment) -> Option<OptOutKey> {
        let running = |key: &OptOutKey| self.running.values().any(|look| look.asked.is_none() && look.key == *key);
        let file_runs = self.running.values().any(|look| look.key.proof == OptOutProof::File);
        let may_look = |key: &OptOutKey| key.proof != OptOutProof::File || (!file_runs && self.next_file <= now);
        let busy = self.running.values().filter(|look| look.asked.is_none()).count() >= MAX_RUNNING;
        self.due.iter().find(|(key, (begins, _))| !busy && *begins <= now && !running(key) && may_look(key)).map(|(key, _)| key.clone())
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

    /// A look has ended; whether it is clear now if the proof is there. `mine` is what this access point says of one: whether it is there.
    pub(crate) fn end(
        &mut self,
        question: QuestionId,
        now: Moment,
        found: &ProofLook,
        mine: impl Fn(&OptOutKey) -> Option<bool>,
    ) -> Option<(Look, bool)> {
        let look = self.running.remove(&question)?;
        if look.key.proof == OptOutProof::File {
            self.next_file = now.after(FILE_REST);
        }
        if *found == ProofLook::Stands {
            self.opened.remove(&look.key);
        }
        let until = self.count(&look, now);
        let is_clear = match (&look.asked, found) {
            (None, found) => self.ended(&look.key, now, until, found, mine(&look.key)),
            (Some(_), ProofLook::Stands) => true,
            (Some((_, false)), ProofLook::Gone(_)) => {
                // What was looked for in vain before is gone already.
                if self.due.contains_key(&look.key) || mine(&look.key) != Some(false) {
                    self.take_back(&look.key, now, true);
                }
                false
            }
            // That people looked too early says nothing of what is looked for later.
            (Some(_), _) => false,
        };
        if is_clear {
            self.due.remove(&look.key);
            self.vain.remove(&look.key);
        }
        Some((look, is_clear))
    }

    /// Counts a look; until when its proof rests. Those that people of this machine ask for are theirs to count; what rested for long
    /// begins anew.
    fn count(&mut self, look: &Look, now: Moment) -> Moment {
        let lately = self.made.get(&look.key).filter(|(_, until)| until.after(MAX_REST) > now);
        let looks = lately.map_or(0, |(looks, _)| *looks).saturating_add(u32::from(look.asked.is_none()));
        let until = now.after(rest_after(looks));
        self.made.insert(look.key.clone(), (looks, until));
        until
    }

    /// A look that nobody waits for found this; whether it is clear now if the proof is there. Otherwise it is looked for again: within a
    /// series soon, since requests may be waiting for the end of that.
    fn ended(&mut self, key: &OptOutKey, now: Moment, until: Moment, found: &ProofLook, mine: Option<bool>) -> bool {
        let Some(rest) = self.vain.entry(key.clone()).or_default().found(found, now, mine == Some(true)) else { return true };
        let is_unclear = matches!(found, ProofLook::Unclear(_));
        let why = match self.due.get(key).map_or(Why::Unknown, |(_, why)| *why) {
            // A look that comes to nothing is no reason to doubt what a whole series of them found.
            Why::Unknown if is_unclear && mine == Some(false) => Why::Repeated,
            why => why,
        };
        let is_series = !is_unclear && why != Why::Repeated;
        let again = now.after(rest);
        self.due.insert(key.clone(), (if is_series { again } else { again.max(until) }, why));
        false
    }

    /// Forgets those of which nothing is said any more, and does not look where nobody who is believed wants nothing to be asked, but for
    /// what was taken back here.
    pub(crate) fn retain(&mut self, known: impl Fn(&OptOutKey) -> bool, wanted: impl Fn(&OptOutKey) -> bool) {
        self.due.retain(|key, (_, why)| *why == Why::TakenBack || wanted(key));
        self.vain.retain(|key, _| self.due.contains_key(key));
        self.made.retain(|key, _| known(key));
        self.opened.retain(|key, _| known(key));
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
            looks.end(QuestionId(question), now.after(1_000), &found, |_| None);
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
