//! Counts of different hosts, domains and addresses over the whole swarm.
//!
//! Sets are too large to be told unasked with every roll-up: who is asked for them asks all members, which send theirs only if they have
//! changed.
//!
//! While subnets change hands some hosts are in nobody's sets. So the last counts that were whole answer, with their age, as the totals do:
//! for ten minutes, then the newest.

use super::consistent::KEPT;
use nearcrawl_model::{
    access_point::AccessPoint,
    distinct::{DistinctSets, DistinctView},
    time::{Millis, Moment},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Members that are asked. With more, somebody's sets are always missing.
const MAX_ASKED: usize = 512;

/// Who asks again so soon gets the same.
pub(super) const HOLDS: Millis = 2_000;

/// Our own sets are put together anew at most so often: this, and so much for each 1,000 sites, all of which are looked at.
const MADE_EVERY: Millis = 1_000;
const MADE_EVERY_PER_THOUSAND: Millis = 200;

/// Sets and their digest.
type Told = (Arc<DistinctSets>, u64);

/// What members told of their sets.
#[derive(Debug, Default)]
pub(super) struct Distinct {
    /// Our own, and when they were put together.
    own: Option<(Told, Moment)>,
    /// When all were asked last.
    begun: Option<Moment>,
    waits_for: BTreeSet<AccessPoint>,
    /// Who did not tell, or was not asked because there are so many, and how many members there were.
    silent: u64,
    members: u64,
    told: BTreeMap<AccessPoint, Told>,
    /// The last counts that were whole, and when the members were asked for them.
    whole: Option<(DistinctView, Moment)>,
}

impl Distinct {
    /// Our own sets as they are now, or were a short time ago.
    pub(super) fn own(&mut self, sites: usize, now: Moment, make: impl FnOnce() -> DistinctSets) -> Told {
        let holds = MADE_EVERY + sites as u64 / 1_000 * MADE_EVERY_PER_THOUSAND;
        if let Some((told, _)) = self.own.as_ref().filter(|(_, made)| now.since(*made) < holds) {
            return told.clone();
        }
        let sets = make();
        let digest = sets.digest();
        let told = (Arc::new(sets), digest);
        self.own = Some((told.clone(), now));
        told
    }

    /// Somebody wants to know. Says whom to ask, and which of their sets are known; nobody if that has just been done.
    pub(super) fn want(&mut self, me: AccessPoint, own: Told, live: &[AccessPoint], now: Moment) -> Vec<(AccessPoint, u64)> {
        if self.begun.is_some_and(|begun| now.since(begun) < HOLDS) {
            return Vec::new();
        }
        self.told.retain(|member, _| live.contains(member));
        self.told.insert(me, own);
        let asked: Vec<AccessPoint> = live.iter().filter(|member| **member != me).take(MAX_ASKED).copied().collect();
        let others = live.iter().filter(|member| **member != me).count();
        (self.silent, self.members) = (others.saturating_sub(asked.len()) as u64, others as u64 + 1);
        self.begun = Some(now);
        self.waits_for = asked.iter().copied().collect();
        asked.into_iter().map(|member| (member, self.told.get(&member).map_or(0, |(_, digest)| *digest))).collect()
    }

    /// A member told its sets, said that they are those that are known, or did not answer. Whether it was the last one.
    pub(super) fn came(&mut self, from: AccessPoint, answer: Option<Option<DistinctSets>>) -> bool {
        if !self.waits_for.remove(&from) {
            return false;
        }
        match answer {
            Some(Some(sets)) => {
                let digest = sets.digest();
                self.told.insert(from, (Arc::new(sets), digest));
            }
            Some(None) if self.told.contains_key(&from) => {}
            _ => self.silent += 1,
        }
        self.waits_for.is_empty()
    }

    /// Whether nobody is waited for.
    pub(super) fn has_come(&self) -> bool {
        self.waits_for.is_empty()
    }

    /// All that will come has come. If the swarm's totals are sure, of so many servers, and every member told its sets, these counts are whole.
    pub(super) fn settle(&mut self, me: AccessPoint, sure_of: Option<u64>) {
        let Some(begun) = self.begun.filter(|_| self.waits_for.is_empty() && self.silent == 0) else { return };
        let view = self.newest(me);
        // A host that changed hands between two answers may be in none of them.
        if sure_of.is_some_and(|servers| view.servers >= servers) {
            self.whole = Some((view, begun));
        }
    }

    fn newest(&self, me: AccessPoint) -> DistinctView {
        let mut sum = DistinctSets::default();
        self.told.values().for_each(|(sets, _)| sum.merge(sets));
        DistinctView::new(me, &sum, self.told.len() as u64)
    }

    /// What all have together, as far as they told it; if that is not whole, what they had when it was.
    pub(super) fn view(&self, me: AccessPoint, now: Moment) -> DistinctView {
        let missing = self.silent + self.waits_for.len() as u64;
        let why = match self.begun {
            None => Some("the members are yet to be asked".to_owned()),
            Some(_) if missing > 0 => Some(format!("{missing} of {} members did not tell what they have now", self.members)),
            Some(begun) if self.whole.as_ref().is_none_or(|(_, whole)| *whole != begun) => Some("totals are in transition".to_owned()),
            Some(_) => None,
        };
        let is_awaited = self.begun.is_none() || !self.waits_for.is_empty();
        let (mut view, at) = match &self.whole {
            Some((whole, at)) if now.since(*at) <= KEPT => (whole.clone(), Some(*at)),
            _ => (self.newest(me), self.begun),
        };
        view.age_ms = at.map(|at| now.since(at)).filter(|_| !is_awaited);
        view.in_transition_text = why;
        view
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::{fingerprint::FingerprintKey, sketch::Sketch};

    fn sets(numbers: std::ops::Range<u32>) -> DistinctSets {
        let key = FingerprintKey([1; 16]);
        let domains: Sketch = numbers.clone().map(|number| key.of(&number.to_string())).collect();
        DistinctSets { servers: u64::from(numbers.end - numbers.start), domains, ..DistinctSets::default() }
    }

    fn told(numbers: std::ops::Range<u32>) -> Told {
        let sets = sets(numbers);
        let digest = sets.digest();
        (Arc::new(sets), digest)
    }

    #[test]
    fn members_are_asked_once_and_send_only_what_has_changed() {
        let [me, a, b, stranger] = [1, 2, 3, 4].map(|byte| AccessPoint([byte; 32]));
        let mut distinct = Distinct::default();
        assert!(distinct.view(me, Moment(0)).is_awaited());
        assert_eq!(distinct.want(me, told(0..2), &[me, a, b], Moment(0)), [(a, 0), (b, 0)]);
        assert!(distinct.want(me, told(0..2), &[me, a, b], Moment(1_999)).is_empty());
        distinct.came(stranger, Some(Some(sets(0..500))));
        distinct.came(a, Some(Some(sets(1..4))));
        assert!(distinct.view(me, Moment(5)).is_awaited());
        distinct.came(b, None);
        let view = distinct.view(me, Moment(7));
        assert_eq!((view.age_ms, view.members, view.servers, view.domains.count), (Some(7), 2, 5, 4), "one domain is at both");
        assert_eq!(view.in_transition_text.as_deref(), Some("1 of 3 members did not tell what they have now"));
        assert_eq!(distinct.want(me, told(0..2), &[me, a], Moment(2_000)), [(a, told(1..4).1)]);
        distinct.came(a, None);
        let view = distinct.view(me, Moment(2_001));
        assert_eq!(view.in_transition_text.as_deref(), Some("1 of 2 members did not tell what they have now"));
        assert_eq!(distinct.want(me, told(0..2), &[me, a], Moment(4_000)), [(a, told(1..4).1)]);
        assert!(distinct.came(a, Some(None)));
        distinct.settle(me, Some(5));
        let view = distinct.view(me, Moment(4_001));
        assert_eq!((view.in_transition_text, view.domains.count), (None, 4));
    }

    #[test]
    fn while_subnets_change_hands_the_last_whole_counts_answer_with_their_age() {
        let [me, a, b] = [1, 2, 3].map(|byte| AccessPoint([byte; 32]));
        let mut distinct = Distinct::default();
        let mut gather = |live: &[AccessPoint], at: u64, sure_of: Option<u64>| {
            for (member, _) in distinct.want(me, told(0..2), live, Moment(at)) {
                distinct.came(member, Some(Some(sets(if member == a { 2..4 } else { 4..94 }))));
            }
            distinct.settle(me, sure_of);
            let view = distinct.view(me, Moment(at + 10));
            (view.servers, view.age_ms, view.in_transition_text)
        };
        let changes = Some("totals are in transition".to_owned());
        assert_eq!(gather(&[me, a, b], 0, None), (94, Some(10), changes.clone()), "the newest where none were whole yet");
        assert_eq!(gather(&[me, a, b], 10_000, Some(94)), (94, Some(10), None));
        assert_eq!(gather(&[me, a], 20_000, None), (94, Some(10_010), changes.clone()), "b died, and nobody owns what was its");
        assert_eq!(gather(&[me, a], 30_000, Some(94)), (94, Some(20_010), changes.clone()), "somebody does, and has not told its hosts");
        assert_eq!(gather(&[me, a], 620_000, None), (4, Some(10), changes), "not for ever");
        assert_eq!(gather(&[me, a, b], 630_000, Some(94)), (94, Some(10), None));
    }

    #[test]
    fn our_own_are_not_put_together_all_the_time() {
        let mut distinct = Distinct::default();
        assert_eq!(distinct.own(50_000, Moment(0), || sets(0..3)).0.servers, 3);
        assert_eq!(distinct.own(50_000, Moment(10_999), || sets(0..4)).0.servers, 3);
        assert_eq!(distinct.own(50_000, Moment(11_000), || sets(0..4)).0.servers, 4);
    }
}
