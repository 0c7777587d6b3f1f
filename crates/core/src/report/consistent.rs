//! Totals that stay consistent while subnets change hands: of each member its last ones that go together with everybody else's.
//!
//! Members' totals come one after the other. While a subnet goes from one owner to another its servers are in nobody's, or in those of
//! both. So what a member tells answers if it speaks of what the member holds by our map, or held while it only gained subnets that
//! nobody had; and of all who had to do with a change of hands the new totals answer at once, when the last of them has told its own.
//! Until then their totals of before do: for [`KEPT`] at most, then the newest. So sums fall only if a member's own do.

use nearcrawl_model::{
    access_point::AccessPoint,
    claim::Claim,
    subnet::Subnet,
    summary::RollUp,
    time::{Millis, Moment},
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

/// For how long totals of before a change answer.
pub const KEPT: Millis = 600_000;

/// How many digests of a member's claims are remembered: a member tells totals every few seconds, and may be awarded many subnets meanwhile.
const MAX_DIGESTS: usize = 32;

/// Totals and when they came, or were said to hold.
pub(super) type Heard = (Arc<RollUp>, Moment);

/// What is known of one member.
#[derive(Debug)]
struct Known {
    /// Its totals that answer.
    shown: Option<Heard>,
    /// Whether it ever told totals that fit our map: before that its newest ones answer, since there are no others, unless they are less than
    /// those before. We began a moment ago, and it hands over what our map says is its own.
    fitted: bool,
    /// Since when it tells others, which do not answer.
    behind: Option<Moment>,
    /// Digests of what it held by our map since a subnet came to it from another member or went from it; the first one is the present one.
    digests: VecDeque<u64>,
}

/// Subnets that change hands, together with all others whose old or new owners are the same.
#[derive(Debug)]
struct Change {
    /// Who had them or has them, and the totals that fit our map which each has told since.
    members: BTreeMap<AccessPoint, Option<Heard>>,
    /// Subnets that were released and not claimed since.
    unclaimed: BTreeSet<Subnet>,
    /// Whether somebody in it said of its own sums that they are not whole: whose are not may depend on each other.
    unwhole: bool,
    begun: Moment,
}

impl Change {
    /// Whether everybody told totals of after it, but those who are gone.
    fn is_over(&self, is_gone: impl Fn(&AccessPoint) -> bool) -> bool {
        self.unclaimed.is_empty() && self.members.iter().all(|(member, told)| told.is_some() || is_gone(member))
    }

    fn is_too_old(&self, now: Moment) -> bool {
        now.since(self.begun) > KEPT
    }
}

/// Of every member the totals that answer.
#[derive(Debug, Default)]
pub(super) struct Consistent {
    known: BTreeMap<AccessPoint, Known>,
    changes: Vec<Change>,
}

/// What answers now.
pub(super) struct Answer<'a> {
    /// Of each member that is in it.
    pub(super) totals: Vec<(AccessPoint, &'a Heard)>,
    /// Since when the oldest of these are not the newest any more, or will not be soon; none if all are the newest.
    pub(super) since: Option<Moment>,
}

impl Default for Known {
    fn default() -> Known {
        Known { shown: None, fitted: false, behind: None, digests: VecDeque::from([0]) }
    }
}

impl Consistent {
    /// A claim holds from now on instead of the one before. `around`: the one that decided till now, if there was none to this subnet.
    /// Returns whose totals are to be looked at again: [`Consistent::look`].
    pub(super) fn claim_holds(
        &mut self,
        claim: &Claim,
        before: Option<&Claim>,
        around: Option<&Claim>,
        digest_of: impl Fn(&AccessPoint) -> u64,
        is_gone: impl Fn(&AccessPoint) -> bool,
        now: Moment,
    ) -> BTreeSet<AccessPoint> {
        let mut concerned = BTreeSet::from([claim.owner]);
        self.end_what_is_over(is_gone);
        let last = before.or(around).filter(|last| !last.released || !claim.released);
        let handed = last.filter(|last| last.owner != claim.owner || last.released || claim.released);
        if let Some(last) = handed {
            concerned.insert(last.owner);
            let touches = |change: &Change| {
                change.unclaimed.contains(&claim.subnet) || concerned.iter().any(|member| change.members.contains_key(member))
            };
            let change = self.begin(touches, &concerned, now);
            if claim.released {
                change.unclaimed.insert(claim.subnet);
            } else {
                change.unclaimed.remove(&claim.subnet);
            }
        }
        for member in &concerned {
            let digests = &mut self.known.entry(*member).or_default().digests;
            digests.truncate(if handed.is_some() { 0 } else { MAX_DIGESTS - 1 });
            digests.push_front(digest_of(member));
        }
        concerned
    }

    /// Changes of which everybody has told who is not gone are over, though nobody looked since: what answers already goes on to, whatever
    /// begins next.
    fn end_what_is_over(&mut self, is_gone: impl Fn(&AccessPoint) -> bool) {
        for change in self.changes.extract_if(.., |change| change.is_over(&is_gone)) {
            for (member, told) in change.members {
                let known = self.known.entry(member).or_default();
                (known.behind, known.shown) = (None, told);
            }
        }
    }

    /// A change that concerns these begins, or goes on: it is one with all that it touches.
    fn begin(&mut self, touches: impl Fn(&Change) -> bool, concerned: &BTreeSet<AccessPoint>, now: Moment) -> &mut Change {
        let mut whole = Change { members: BTreeMap::new(), unclaimed: BTreeSet::new(), unwhole: false, begun: now };
        for change in self.changes.extract_if(.., |change| touches(change)) {
            whole.begun = whole.begun.min(change.begun);
            whole.unwhole |= change.unwhole;
            whole.members.extend(change.members);
            whole.unclaimed.extend(change.unclaimed);
        }
        whole.members.extend(concerned.iter().map(|member| (*member, None)));
        self.changes.push(whole);
        let last = self.changes.len() - 1;
        &mut self.changes[last]
    }

    /// A member told these totals, or what it holds by our map is something else now.
    pub(super) fn look(&mut self, member: AccessPoint, heard: &Heard, is_gone: impl Fn(&AccessPoint) -> bool, now: Moment) {
        let known = self.known.entry(member).or_default();
        let digest = heard.0.claims_digest;
        let fits = known.digests.contains(&digest);
        known.fitted |= fits;
        if fits {
            known.behind = None;
        } else if known.shown.as_ref().is_none_or(|(shown, _)| shown.version != heard.0.version) {
            known.behind.get_or_insert(now);
        }
        let too_old = known.behind.is_some_and(|since| now.since(since) > KEPT);
        let falls = known.shown.as_ref().is_some_and(|(shown, _)| heard.0.summary.total.is_less_than(&shown.summary.total));
        let newest_answers = too_old || (!known.fitted && !falls);
        if newest_answers {
            known.shown = Some(heard.clone());
        } else if known.digests.front() == Some(&!digest) {
            self.end_what_is_over(is_gone);
            let touches = |change: &Change| change.unwhole || change.members.contains_key(&member);
            self.begin(touches, &BTreeSet::from([member]), now).unwhole = true;
            return;
        }
        let mut changes = self.changes.iter_mut();
        match (changes.find_map(|change| change.members.get_mut(&member)), fits) {
            (Some(told), true) => *told = Some(heard.clone()),
            (None, true) => known.shown = Some(heard.clone()),
            (_, false) => {}
        }
    }

    /// Ends what is over, and forgets who is gone: is no member and owns nothing. `newest`: a member's newest totals.
    pub(super) fn settle<'a>(
        &mut self,
        is_gone: impl Fn(&AccessPoint) -> bool,
        newest: impl Fn(&AccessPoint) -> Option<&'a Heard>,
        now: Moment,
    ) {
        for change in self.changes.extract_if(.., |change| change.is_over(&is_gone) || change.is_too_old(now)) {
            for (member, told) in change.members {
                let known = self.known.entry(member).or_default();
                known.behind = told.is_none().then_some(change.begun);
                known.shown = told.or_else(|| newest(&member).cloned());
            }
        }
        let changes = &self.changes;
        self.known.retain(|member, _| !is_gone(member) || changes.iter().any(|change| change.members.contains_key(member)));
    }

    /// Which totals answer now: as if [`Consistent::settle`] had just been called.
    pub(super) fn answer<'a>(
        &'a self,
        is_gone: impl Fn(&AccessPoint) -> bool,
        newest: impl Fn(&AccessPoint) -> Option<&'a Heard>,
        now: Moment,
    ) -> Answer<'a> {
        let mut answer = Answer { totals: Vec::new(), since: None };
        let mut changing = BTreeMap::new();
        for change in &self.changes {
            let is_over = change.is_over(&is_gone);
            changing.extend(change.members.iter().map(|(member, told)| (member, (change, is_over, told))));
        }
        for (member, known) in &self.known {
            let (totals, kept_since) = match changing.get(member) {
                Some((_, true, told)) => (told.as_ref(), None),
                Some((change, ..)) if !change.is_too_old(now) => (known.shown.as_ref(), Some(change.begun)),
                None if is_gone(member) => (None, None),
                None if known.behind.is_none_or(|since| now.since(since) <= KEPT) => (known.shown.as_ref(), known.behind),
                _ => (newest(member), None),
            };
            answer.since = answer.since.into_iter().chain(kept_since).min();
            answer.totals.extend(totals.map(|totals| (*member, totals)));
        }
        answer
    }
}
