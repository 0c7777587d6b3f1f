//! The words that a voter of the next list waits for if it did not vote by the one before.
//!
//! What was decided before is not signed, and any voter may bring it. If the first word were enough, a voter that lies could say that
//! nothing was decided before an honest one says what was: two quorums would then share only voters that know nothing. So what one brings
//! counts as its own word, and all that voted before are asked for theirs. Words of others that vote by this list are taken in, too, but do
//! not count as words of those that voted before. All words together are taken in once
//!
//! * those who told could have chosen this list themselves: as they decide nothing by the list before any more, they share a voter with any
//!   quorum that did, and from seven voters on more of them than may lie;
//! * or the time has passed in which a lease that it does not know of is over, and those who told have a voter in every quorum of the list
//!   before. From seven voters on that one may lie: this holds as long as those that are away are not needed beside those that lie;
//! * or, where no voter may lie (below seven), the proposer brought what all that accepted the list told it, and the others have had some
//!   seconds to say more. Who accepted the list is proven by signatures, and each has a voter in every quorum of before with those who
//!   told. So voters that die between the choice of a list and its beginning keep nobody from voting who is needed in their place;
//! * or, where no voter may lie by either list, that time has passed, and one told that votes by this list and did not by the one before:
//!   it has heard enough itself;
//! * or nothing more has been told for as long as accepted claims are kept, by more than may lie in both lists. What those that are gone
//!   had accepted is older than that: it was published since, or those that know of it count it as withdrawn, too. So whoever is gone for
//!   good keeps a newcomer from voting for ten minutes at most, or until an operator declares it lost.

use super::{asker::Asker, handed_over, voter::KEPT_FOR};
use nearcrawl_model::{
    access_point::AccessPoint,
    time::{Millis, Moment},
    vote::{HandedOver, VoterList, liars_borne, quorum_of},
};
use std::collections::{BTreeMap, BTreeSet};

/// When those that have not answered are asked again.
const ASK_AGAIN: Millis = 2_000;

/// For how long others may say more than the proposer brought while nobody decides because the list is not in force: owners have renewed
/// their leases before these run out.
const BRIEFLY: Millis = 5_000;

/// A list by which this access point may vote once it has heard enough.
#[derive(Debug)]
pub(super) struct Installing {
    list: VoterList,
    since: Moment,
    asked: Option<Moment>,
    /// The words of voters of this list and of the one before: of each what it brought or answered.
    told: BTreeMap<AccessPoint, HandedOver>,
    /// When a voter told something for the first time, the last of them.
    last_told: Moment,
    /// Those that accepted the list, if its proposer brought what they told.
    accepted: BTreeSet<AccessPoint>,
    /// Who brought the list, and waits for an answer: one question of each voter.
    askers: BTreeMap<AccessPoint, Asker>,
}

impl Installing {
    /// A list was brought.
    pub(super) fn new(now: Moment, list: VoterList) -> Installing {
        let (told, accepted, askers) = Default::default();
        Installing { list, since: now, asked: None, told, last_told: now, accepted, askers }
    }

    /// Which list it is.
    pub(super) fn list(&self) -> &VoterList {
        &self.list
    }

    /// A voter of this list or of the one before says that this was decided: beside what it said before, as a proposer brings more than it
    /// decided itself.
    pub(super) fn told(&mut self, now: Moment, who: AccessPoint, before: HandedOver) {
        if let Some(known) = self.told.get_mut(&who) {
            return handed_over::merge(known, before);
        }
        self.told.insert(who, before);
        self.last_told = now;
    }

    /// What was told is all that these told the proposer, who accepted the list.
    pub(super) fn told_for(&mut self, accepted: BTreeSet<AccessPoint>) {
        self.accepted = accepted;
    }

    /// This voter waits for an answer. Returns its question before.
    pub(super) fn waits(&mut self, who: AccessPoint, asker: Asker) -> Option<Asker> {
        self.askers.insert(who, asker)
    }

    /// Who waits for an answer.
    pub(super) fn into_askers(self) -> impl Iterator<Item = Asker> {
        self.askers.into_values()
    }

    /// What was told.
    pub(super) fn words(&self) -> impl Iterator<Item = &HandedOver> {
        self.told.values()
    }

    /// Whether what was told is enough; `patience` is for how long a lease may last that is not known here. Voters of the list `before`
    /// that are in `lost` do not count. `in_force` is whether others vote by this list already.
    pub(super) fn is_enough(
        &self,
        now: Moment,
        (patience, in_force): (Millis, bool),
        before: Option<&VoterList>,
        lost: &BTreeSet<AccessPoint>,
    ) -> bool {
        let before = before.unwrap_or(&self.list);
        let counts = |voter: &&AccessPoint| before.contains(voter) && !lost.contains(*voter);
        let there = before.voters.iter().filter(counts).count();
        // So many have a voter in each quorum.
        let needed = there.saturating_sub(quorum_of(there)) + 1;
        let waited = now.since(self.since);
        let told = self.told.keys().filter(counts).count();
        let told_or_accepted = self.told.keys().chain(&self.accepted).filter(counts).collect::<BTreeSet<_>>().len();
        let some_time = if in_force { patience } else { BRIEFLY.min(patience) };
        let may_lie = liars_borne(there) + liars_borne(self.list.voters.len());
        let some_told = self.told.len() > may_lie;
        let is_told_by_newcomer = self.told.keys().any(|voter| self.list.contains(voter) && !before.contains(voter));
        before.may_choose(&mut self.told.keys(), &self.list, lost)
            || waited >= patience && (told >= needed || there == 0 && some_told || may_lie == 0 && is_told_by_newcomer)
            || waited >= some_time && !self.accepted.is_empty() && liars_borne(there) == 0 && told_or_accepted >= needed
            || now.since(self.last_told) >= KEPT_FOR && some_told
    }

    /// Whom to ask now: those that voted before, and, if it is in force, those that vote by this list.
    pub(super) fn due(&mut self, now: Moment, before: Option<&VoterList>, in_force: bool) -> BTreeSet<AccessPoint> {
        if self.asked.is_some_and(|asked| now.since(asked) < ASK_AGAIN) {
            return BTreeSet::new();
        }
        self.asked = Some(now);
        let lists = before.into_iter().chain(in_force.then_some(&self.list));
        lists.flat_map(|list| &list.voters).filter(|voter| !self.told.contains_key(voter)).copied().collect()
    }
}
