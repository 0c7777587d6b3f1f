//! The words that a voter of the next list waits for if it did not vote by the one before.
//!
//! What was decided before is not signed, and any voter may bring it. If the first word were enough, a voter that lies could say that nothing
//! was decided before an honest one says what was: two quorums would then share only voters that know nothing. So what one brings counts as
//! its own word, and all that voted before are asked for theirs. All words together are taken in once
//!
//! * those who told could have chosen this list themselves: as they decide nothing by the list before any more, they share a voter with any
//!   quorum that did, and from seven voters on more of them than may lie;
//! * or the time has passed in which a lease that it does not know of is over, and more told than may lie, one of them of its own accord: with what all that chose the list had decided,
//!   or as one that votes by it. That is less: it holds as long as those that are away are not needed beside those that lie. Else a few that
//!   are gone would keep a newcomer from voting for good.

use super::asker::Asker;
use nearcrawl_model::{
    access_point::AccessPoint,
    time::{Millis, Moment},
    vote::{HandedOver, VoterList, liars_borne},
};
use std::collections::{BTreeMap, BTreeSet};

/// When those that have not answered are asked again.
const ASK_AGAIN: Millis = 2_000;

/// A list by which this access point may vote once it has heard enough.
#[derive(Debug)]
pub(super) struct Installing {
    list: VoterList,
    since: Moment,
    asked: Option<Moment>,
    /// The words of voters of this list and of the one before: at most one of each.
    told: BTreeMap<AccessPoint, HandedOver>,
    /// Who brought the list last, and waits for an answer.
    asker: Option<Asker>,
}

impl Installing {
    /// A list was brought.
    pub(super) fn new(now: Moment, list: VoterList) -> Installing {
        Installing { list, since: now, asked: None, told: BTreeMap::new(), asker: None }
    }

    /// Which list it is.
    pub(super) fn list(&self) -> &VoterList {
        &self.list
    }

    /// A voter of this list or of the one before says that this was decided.
    pub(super) fn told(&mut self, who: AccessPoint, before: HandedOver) {
        self.told.insert(who, before);
    }

    /// This one waits for an answer. Returns who did before.
    pub(super) fn waits(&mut self, asker: Asker) -> Option<Asker> {
        self.asker.replace(asker)
    }

    /// Who waits for an answer.
    pub(super) fn into_asker(self) -> Option<Asker> {
        self.asker
    }

    /// What was told.
    pub(super) fn words(&self) -> impl Iterator<Item = &HandedOver> {
        self.told.values()
    }

    /// Whether what was told is enough, of those that do not answer after `patience`: a newcomer lets nobody take over any earlier, so that
    /// the wait costs nothing until then. Voters of the list `before` that are in `lost` do not count.
    pub(super) fn is_enough(&self, now: Moment, patience: Millis, before: Option<&VoterList>, lost: &BTreeSet<AccessPoint>) -> bool {
        let chosen = before.is_some_and(|before| before.may_choose(&mut self.told.keys(), &self.list, lost));
        let there = before.unwrap_or(&self.list).voters.iter().filter(|voter| !lost.contains(voter)).count();
        let waited = now.since(self.since) >= patience;
        chosen || waited && self.told.len() > liars_borne(there)
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
