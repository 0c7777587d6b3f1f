//! Choice of the edition of the hierarchy that the swarm uses: the one that more than half of its members vouch for.
//!
//! A hierarchy is rebuilt every three months (IPMicra §4.1). No member is in charge, so:
//!
//! * **Vouching.** A member vouches for the edition that its operator gave it. If another member vouches for a newer one, it fetches
//!   that one, opens it (which checks all of its structure), compares it with its own, and vouches for it instead if the change is no
//!   more than the time between them explains. It does not follow a stranger more often than every [`MIN_DAYS`] days of dates, nor
//!   into the future: otherwise one liar could change the world in many small steps, or end all change with a date.
//! * **Using.** A member uses the edition that more than half of the settled members vouch for, itself included. It must have opened
//!   it itself; whether the change is plausible has been judged by those who vouch. So half of the members or fewer cannot put
//!   another hierarchy upon the rest that the rest do not find right themselves, and a broken one is used by no member.
//! * **Looking** costs memory and time: no more than [`MAX_UNDER_WAY`] editions are fetched at once, and the one most vouch for.
//! * **Pinned** by its operator, a member stays with what it has, and vouches for that.
//!
//! Members that use different editions meanwhile do not disagree about any owner: that follows from the claims alone.

use nearcrawl_model::{
    access_point::AccessPoint,
    edition::{Edition, Endorsement, today},
    time::{Millis, Moment, Now},
};
use std::collections::{BTreeMap, BTreeSet};

/// Between the dates of two editions that a member vouches for because others do, at least so many days lie.
pub(crate) const MIN_DAYS: i64 = 28;

/// Registries date their files by their own clocks: so many days from now are not the future yet.
const DAYS_AHEAD: i64 = 2;

/// How long fetching an edition may take.
pub const GATHER_WITHIN: Millis = 600_000;

/// After how long an edition that could not be fetched is tried again. It doubles with each failure.
const GATHER_AGAIN: Millis = 30_000;

/// How often an edition is tried before it is given up until the next start.
const MAX_TRIES: u32 = 8;

/// Editions that are fetched at once because a member vouches for them. The one that most vouch for is fetched besides.
const MAX_UNDER_WAY: usize = 2;

/// Members that are asked for one edition at a time.
pub const MAX_SOURCES: usize = 8;

/// A member that vouched for editions that were looked at so often without finding a plausible one is not listened to any more, until it
/// has been away.
const MAX_BLAME: u32 = 8;

/// Editions that are remembered as known or failed.
const MAX_EDITIONS: usize = 64;

/// What came of looking at an edition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is whole, and what it changes is explained by time.
    Plausible,
    /// It is whole, but changes more than time explains, or goes back in time.
    Doubtful,
    /// It could not be had, or is broken.
    Unusable,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Fetch it from any of these and look at it.
    Gather {
        /// What.
        edition: Edition,
        /// Living members who vouch for it.
        from: Vec<AccessPoint>,
    },
    /// Use it from now on; it has been looked at.
    Use(Edition),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Knowledge {
    /// Being fetched, at the latest until then.
    Under { until: Moment, tries: u32 },
    /// Failed so often; not tried before then.
    Failed { again: Moment, tries: u32 },
    /// Opened.
    Opened,
}

/// Members whose endorsements are kept.
const MAX_HEARD: usize = 8_192;

/// What one member knows of editions.
#[derive(Debug)]
pub(crate) struct Editions {
    me: AccessPoint,
    pinned: bool,
    uses: Edition,
    endorses: Edition,
    heard: BTreeMap<AccessPoint, Endorsement>,
    known: BTreeMap<[u8; 32], Knowledge>,
    /// How often we looked at what a member vouched for, since that was plausible.
    blame: BTreeMap<AccessPoint, u32>,
}

impl Editions {
    /// At the start: what is used, and what the operator gives. Both are at hand.
    pub(crate) fn new(me: AccessPoint, uses: Edition, endorses: Edition, pinned: bool) -> Editions {
        let known = [(uses.hash, Knowledge::Opened), (endorses.hash, Knowledge::Opened)].into();
        Editions { me, pinned, uses, endorses, heard: BTreeMap::new(), known, blame: BTreeMap::new() }
    }

    /// What is used.
    pub(crate) fn uses(&self) -> Edition {
        self.uses
    }

    /// What this member vouches for.
    pub(crate) fn endorses(&self) -> Edition {
        self.endorses
    }

    /// The operator gives another edition, which is at hand: it is vouched for, whatever its age and whatever it changes.
    pub(crate) fn propose(&mut self, edition: Edition) {
        self.note(edition, Knowledge::Opened);
        self.endorses = edition;
        if self.pinned {
            self.uses = edition;
        }
    }

    /// What a member says of itself; its last statement counts. False if there is no room for one more member's.
    pub(crate) fn hear(&mut self, endorsement: Endorsement) -> bool {
        if self.heard.len() >= MAX_HEARD && !self.heard.contains_key(&endorsement.by) {
            return false;
        }
        let newer = self.heard.get(&endorsement.by).is_none_or(|known| known.version < endorsement.version);
        if endorsement.by != self.me && newer {
            self.heard.insert(endorsement.by, endorsement);
        }
        true
    }

    /// Forgets what members said who are gone.
    pub(crate) fn retain(&mut self, keep: impl Fn(&AccessPoint) -> bool) {
        self.heard.retain(|member, _| keep(member));
        self.blame.retain(|member, _| keep(member));
    }

    /// How many of these members vouch for each edition, by hash; this one counts.
    pub(crate) fn votes(&self, settled: &BTreeSet<AccessPoint>) -> BTreeMap<[u8; 32], (Edition, usize)> {
        let others = self.heard.values().filter(|said| settled.contains(&said.by)).map(|said| said.endorses);
        let mut votes: BTreeMap<[u8; 32], (Edition, usize)> = BTreeMap::new();
        for edition in others.chain([self.endorses]) {
            votes.entry(edition.hash).or_insert((edition, 0)).1 += 1;
        }
        votes
    }

    /// What is to be done next, given the members that count and those that can be asked.
    pub(crate) fn next(&mut self, settled: &BTreeSet<AccessPoint>, live: &[AccessPoint], now: Now) -> Option<Wish> {
        if self.pinned {
            return None;
        }
        let members = settled.iter().filter(|member| **member != self.me).count() + 1;
        let favourite = self.votes(settled).into_values().find(|(_, votes)| 2 * votes > members).map(|(edition, _)| edition);
        if let Some(favourite) = favourite.filter(|favourite| favourite.hash != self.uses.hash) {
            if self.known.get(&favourite.hash) == Some(&Knowledge::Opened) {
                self.uses = favourite;
                if favourite.age_order(&self.endorses).is_gt() {
                    self.endorses = favourite;
                }
                return Some(Wish::Use(favourite));
            }
            if let Some(wish) = self.gather(favourite, live, now.moment) {
                return Some(wish);
            }
        }
        let under_way = self.known.values().filter(|known| matches!(known, Knowledge::Under { until, .. } if *until > now.moment));
        if under_way.count() >= MAX_UNDER_WAY {
            return None;
        }
        self.newer(now).into_iter().find_map(|edition| self.gather(edition, live, now.moment))
    }

    /// The editions that this member would follow others to. First those of members who cost us nothing yet, so that no member can keep the
    /// others' waiting for ever by naming one after another that does not exist; then those that more vouch for; then the later ones.
    fn newer(&self, now: Now) -> Vec<Edition> {
        let mut newer: BTreeMap<[u8; 32], (Edition, u32, usize)> = BTreeMap::new();
        for said in self.heard.values().filter(|said| self.follows(&said.endorses, now)) {
            let blame = self.blame.get(&said.by).copied().unwrap_or(0);
            if blame < MAX_BLAME {
                let (_, least, votes) = newer.entry(said.endorses.hash).or_insert((said.endorses, blame, 0));
                (*least, *votes) = ((*least).min(blame), *votes + 1);
            }
        }
        let mut newer: Vec<_> = newer.into_values().collect();
        newer.sort_unstable_by(|(a, blame_a, votes_a), (b, blame_b, votes_b)| {
            blame_a.cmp(blame_b).then(votes_b.cmp(votes_a)).then_with(|| b.age_order(a))
        });
        newer.into_iter().map(|(edition, ..)| edition).collect()
    }

    /// Whether this member would vouch for an edition because another one does, if it proves plausible.
    fn follows(&self, edition: &Edition, now: Now) -> bool {
        let (Some(theirs), Some(ours)) = (edition.day(), self.endorses.day()) else { return false };
        edition.hash != self.endorses.hash && theirs - ours >= MIN_DAYS && theirs <= today(now.wall) + DAYS_AHEAD
    }

    fn gather(&mut self, edition: Edition, live: &[AccessPoint], now: Moment) -> Option<Wish> {
        let tries = match self.known.get(&edition.hash) {
            None => 0,
            Some(Knowledge::Failed { again, tries }) if *again <= now && *tries < MAX_TRIES => *tries,
            // Nothing came back for so long: the task is gone.
            Some(Knowledge::Under { until, tries }) if *until <= now && *tries < MAX_TRIES => *tries,
            Some(_) => return None,
        };
        let vouches = |said: &&Endorsement| [said.endorses.hash, said.uses.hash].contains(&edition.hash) && live.contains(&said.by);
        let mut from: Vec<_> = self.heard.values().filter(vouches).map(|said| said.by).collect();
        // Others each time, so that no member gets in the way of who has it.
        from.sort_by_key(|member| self.blame.get(member).copied().unwrap_or(0));
        from.truncate(MAX_SOURCES);
        if from.is_empty() {
            return None;
        }
        for member in &from {
            // In advance: by the time that nothing has come of it they vouch for something else.
            let blame = self.blame.entry(*member).or_default();
            *blame = blame.saturating_add(1);
        }
        self.note(edition, Knowledge::Under { until: now.after(GATHER_WITHIN), tries: tries + 1 });
        Some(Wish::Gather { edition, from })
    }

    /// An edition was looked at. Whether this member vouches for it from now on.
    pub(crate) fn found(&mut self, edition: Edition, what: Found, now: Now) -> bool {
        let tries = match self.known.get(&edition.hash) {
            Some(Knowledge::Under { tries, .. } | Knowledge::Failed { tries, .. }) => *tries,
            Some(Knowledge::Opened) | None => 1,
        };
        if what == Found::Plausible {
            for said in self.heard.values().filter(|said| said.endorses.hash == edition.hash) {
                self.blame.remove(&said.by);
            }
        }
        if what == Found::Unusable {
            let again = now.moment.after(GATHER_AGAIN << tries.min(MAX_TRIES));
            self.note(edition, Knowledge::Failed { again, tries });
            return false;
        }
        self.note(edition, Knowledge::Opened);
        let endorsed = what == Found::Plausible && !self.pinned && self.follows(&edition, now);
        if endorsed {
            self.endorses = edition;
        }
        endorsed
    }

    /// An edition is not at hand any more: it has to be fetched before it is used.
    pub(crate) fn forget(&mut self, hash: &[u8; 32]) {
        if *hash != self.uses.hash {
            self.known.remove(hash);
        }
    }

    /// The edition that was to be used is not at hand; the one before stays in use.
    pub(crate) fn lost(&mut self, edition: Edition, before: Edition) {
        self.uses = before;
        self.forget(&edition.hash);
    }

    fn note(&mut self, edition: Edition, knowledge: Knowledge) {
        if self.known.len() >= MAX_EDITIONS && !self.known.contains_key(&edition.hash) {
            // Strangers name editions without end: what failed may be tried once more.
            let (uses, endorses) = (self.uses.hash, self.endorses.hash);
            self.known.retain(|hash, _| *hash == uses || *hash == endorses);
        }
        self.known.insert(edition.hash, knowledge);
    }
}

#[cfg(test)]
mod tests;
