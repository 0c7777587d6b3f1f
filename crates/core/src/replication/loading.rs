//! Chooses the best of the copies of a subnet's journals that are here and elsewhere.
//!
//! A journal is not signed, so whoever is asked could offer a later one than there ever was. All that was recorded is at each of the members
//! that the former owners named to the voters: beside their copies those of members that nobody named do not count.
//!
//! One that was named may lie as well, and have less than was recorded, or nothing. So two of each set are believed, or our own store, and not
//! one alone. After that one the others of its set are waited for:
//!
//! * those that are silent, until they are back or dead, in any case;
//! * those that are alive and do not answer, for a minute, if it has nothing, or others have a copy that is better than its own;
//! * those that have been dead for less than [`MAX_DOUBT`], if others have a copy that is better than its own, or if it has nothing and two
//!   died lately: of a liar and two that died at once, one for good, the last one has all;
//! * nobody who is dead for longer, left, or has lost its disk. So subnets without rows do not wait if their owner named too few, or one of
//!   those that it named is gone.
//!
//! Where one alone has answered in the end, what members kept that nobody named counts for hosts of which nothing else is here.

use super::awaited_replicas::{AwaitedReplicas, Chance};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::ClaimReason,
    journal::{JournalEntry, JournalKey},
    ownership_history::OwnershipHistory,
    replica::{NamedReplica, StoreId},
    subnet::Subnet,
    time::{Millis, Moment},
    url::Host,
    vote::InheritedReplicas,
};
use std::collections::{BTreeMap, BTreeSet};

/// How long replicas may take to send what they kept.
const RECALL_TIMEOUT: Millis = 20_000;

/// After how long a replica that did not answer is asked again.
const RECALL_AGAIN: Millis = 2_000;

/// If no replica at all answers, how many times that long a new owner waits before it begins from nothing: what others kept is worth
/// more than five minutes.
const MAX_SILENCES: u32 = 15;

/// For how long others that were named are waited for if one of them alone has answered and may hide something, and for how long they may
/// have been dead; less if no set of theirs deserves as much ([`AwaitedReplicas::longest`]). A machine that starts again is back by then.
pub(super) const MAX_DOUBT: Millis = 300_000;

/// So many members that were named are believed that they have all that was recorded.
const BELIEVED: usize = 2;

/// Members that came back are asked so often, while none has answered that must have all.
const LOOK_AGAIN: Millis = 5_000;

/// An owner without any history here rests its servers for so long (the previous owner may have asked a moment ago).
const UNKNOWN_REST: Millis = 30_000;

/// One copy of a host's journal, here or at a replica.
#[derive(Debug)]
pub(crate) struct JournalCopy {
    pub(crate) key: JournalKey,
    pub(crate) entries: Vec<JournalEntry>,
    /// The epoch of the owner who wrote its end, as far as that took over from another.
    pub(crate) taken_over: u64,
    /// Whether this is what our own store has.
    pub(crate) own: bool,
    /// Whether it is of a member that nobody named: it may be left over of a host that went to another address long ago.
    pub(crate) left_over: bool,
}

impl JournalCopy {
    pub(crate) fn new(key: JournalKey, entries: Vec<JournalEntry>, own: bool) -> JournalCopy {
        let mut copy = JournalCopy { taken_over: 0, own, left_over: false, key, entries };
        copy.taken_over = copy.last_epoch(u64::MAX);
        copy
    }

    /// The last epoch at which an owner took it over, of those up to this one.
    fn last_epoch(&self, upto: u64) -> u64 {
        let entries = self.entries[since_it_came(&self.key, &self.entries)..].iter();
        let epochs = entries.filter_map(|entry| if let JournalEntry::TakenOver { epoch } = entry { Some(*epoch) } else { None });
        epochs.filter(|epoch| *epoch <= upto).max().unwrap_or(0)
    }

    /// Whether it is this run that this one is compared with: the one that it names; else the one just before it, or, while nothing was visited
    /// and so nothing compared, any one before it: it may have caught up with its tree, and its owner was still reading.
    pub(crate) fn follows(&self, run: u32) -> bool {
        let named =
            self.entries.iter().rev().find_map(|entry| if let JournalEntry::Follows { run, .. } = entry { Some(*run) } else { None });
        let has_begun = || self.entries.iter().any(|entry| matches!(entry, JournalEntry::Visited { .. }));
        match named.filter(|named| *named < self.key.run) {
            Some(named) => run == named,
            None => run < self.key.run && (run + 1 == self.key.run || !has_begun()),
        }
    }

    fn rank(&self) -> (u64, u32, usize) {
        (self.taken_over, self.key.run, self.entries.len())
    }
}

/// Where a journal goes on in this subnet whose host was in another one before: epochs and owners told above are of that one.
fn since_it_came(key: &JournalKey, entries: &[JournalEntry]) -> usize {
    let comes = |entry: &JournalEntry| matches!(entry, JournalEntry::Moved { from, to, .. } if *to == key.subnet && from != to);
    entries.iter().rposition(comes).map_or(0, |row| row + 1)
}

/// What was found of a subnet's journals.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The best copy of each host's journal so far.
    best: BTreeMap<Host, JournalCopy>,
    /// Of each run before these of which a member kept something, the longest copy: which of them the best one is compared with is known when
    /// all copies are here.
    older: BTreeMap<JournalKey, JournalCopy>,
    /// Copies that were taken over later than the subnet was ours.
    refused: usize,
}

/// Those of a subnet's journals that can be what they are said to be.
fn copies_of(subnet: Subnet, journals: Vec<(JournalKey, Vec<JournalEntry>)>, own: bool) -> impl Iterator<Item = JournalCopy> {
    journals.into_iter().filter_map(move |(key, mut entries)| {
        let begins = matches!(entries.first(), Some(JournalEntry::Opened { .. }));
        if key.subnet != subnet || !begins || !key.is_plausible() {
            return None;
        }
        // A copy counts up to the first row that no honest owner can have written.
        let plausible = entries.iter().take_while(|entry| entry.is_plausible()).count();
        entries.truncate(plausible);
        Some(JournalCopy::new(key, entries, own))
    })
}

impl Found {
    /// Keeps the better copy of each host's journal: that of the latest owner, of it the latest run, of it the longest.
    fn add(&mut self, copy: JournalCopy) {
        let host = copy.key.host.clone();
        let beaten = match self.best.get(&host) {
            Some(known) if (known.rank(), known.own) >= (copy.rank(), copy.own) => Some(copy),
            _ => self.best.insert(host.clone(), copy),
        };
        // What a run before it knew saves the new owner downloads.
        if let Some(other) = beaten.filter(|other| self.best.get(&host).is_some_and(|best| other.key.run < best.key.run))
            && self.older.get(&other.key).is_none_or(|known| known.entries.len() < other.entries.len())
        {
            self.older.insert(other.key.clone(), other);
        }
    }

    /// How many copies were taken over later than the subnet was ours.
    pub(crate) fn refused(&self) -> usize {
        self.refused
    }

    /// How long the subnet's servers rest first: nothing tells when an owner before us, whom there was if we claimed it for this reason,
    /// asked them last.
    pub(crate) fn rest_after(&self, reason: ClaimReason) -> Option<Millis> {
        let inherited = matches!(reason, ClaimReason::OwnerDead | ClaimReason::Released | ClaimReason::Moved);
        (self.best.is_empty() && inherited).then_some(UNKNOWN_REST)
    }

    /// What the owners before wrote down of the subnet as a whole.
    pub(crate) fn ownership_histories(&self) -> Vec<OwnershipHistory> {
        let entries = self.best.values().flat_map(|copy| &copy.entries[since_it_came(&copy.key, &copy.entries)..]);
        entries.filter_map(|entry| if let JournalEntry::OwnershipHistory(history) = entry { Some(history.clone()) } else { None }).collect()
    }

    /// The best copy of each host's journal, and that of the run which it is compared with.
    pub(crate) fn into_journals(self) -> impl Iterator<Item = (JournalCopy, Option<JournalCopy>)> {
        let Found { best, mut older, .. } = self;
        best.into_values().map(move |copy| {
            let first = JournalKey { run: 0, ..copy.key.clone() };
            let newest = older.range(first..copy.key.clone()).rev().find(|(key, _)| copy.follows(key.run));
            let newest = newest.map(|(key, _)| key.clone());
            let previous = newest.and_then(|key| older.remove(&key));
            (copy, previous)
        })
    }
}

/// A subnet that became ours and whose journals are being fetched or read.
#[derive(Debug)]
pub(super) struct Loading {
    /// Members still asked for what they kept; one that did not answer is asked again then.
    asked: BTreeMap<AccessPoint, Option<Moment>>,
    /// Members that have sent all they had, and their databases.
    heard: BTreeMap<AccessPoint, Option<StoreId>>,
    /// Sets of members that have all that was recorded, none of which has answered yet; it does not begin before one of each does, or their
    /// time is over.
    awaited: AwaitedReplicas,
    /// It does not begin with what our own store has if that does not go on at this epoch, before another member has answered.
    doubtful_before: Option<u64>,
    begun: Moment,
    /// Whether others that were named have been waited for for long enough, if one of them may hide something.
    doubted: bool,
    /// A member that has not answered by then is not waited for; if no member has, others are asked.
    until: Moment,
    /// How often no member had answered by then.
    silences: u32,
    /// Whether our own store has been read.
    read: bool,
    /// What our own store has.
    own: Vec<JournalCopy>,
    /// What members have sent.
    told: BTreeMap<AccessPoint, Vec<JournalCopy>>,
    /// Bytes that members have sent.
    bytes: usize,
}

/// What to do about a subnet whose replicas had time enough to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    /// No member is waited for, or none any more: it begins with what was found, as soon as our own store is read.
    Begin,
    /// No member answered: others are asked.
    AskOthers,
}

impl Loading {
    /// These members are asked for what they kept, and our own store.
    pub(super) fn new(now: Moment, asked: BTreeSet<AccessPoint>, awaited: AwaitedReplicas) -> Loading {
        let asked = asked.into_iter().map(|replica| (replica, None)).collect();
        Loading {
            asked,
            heard: BTreeMap::new(),
            awaited,
            doubtful_before: None,
            begun: now,
            doubted: false,
            until: now.after(RECALL_TIMEOUT),
            silences: 0,
            read: false,
            own: Vec::new(),
            told: BTreeMap::new(),
            bytes: 0,
        }
    }

    /// A replica sent all that it had in this database, so many bytes, or nothing came of asking it. Returns whether that was kept.
    pub(super) fn answered(
        &mut self,
        now: Moment,
        subnet: Subnet,
        (from, store): (AccessPoint, Option<StoreId>),
        journals: Option<Vec<(JournalKey, Vec<JournalEntry>)>>,
        bytes: usize,
    ) -> bool {
        let Some(again) = self.asked.get_mut(&from) else { return false };
        let Some(journals) = journals else {
            *again = Some(now.after(RECALL_AGAIN));
            return false;
        };
        self.asked.remove(&from);
        self.heard.insert(from, store);
        if let Some(store) = store {
            self.awaited.heard(from, store);
        }
        let copies: Vec<_> = copies_of(subnet, journals, false).collect();
        if !copies.is_empty() {
            self.told.insert(from, copies);
        }
        self.bytes += bytes;
        true
    }

    /// Whether a member is asked and has not failed to answer.
    pub(super) fn is_asking(&self, member: &AccessPoint) -> bool {
        self.asked.get(member).is_some_and(Option::is_none)
    }

    /// Bytes that members have sent.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What our own store has is believed alone only if an owner began to write there at this epoch.
    pub(super) fn doubt_before(&mut self, epoch: u64) {
        self.doubtful_before = Some(epoch);
    }

    /// There is no other member that could know more.
    pub(super) fn is_alone(&mut self) {
        self.doubtful_before = None;
    }

    /// Our own store was read.
    pub(super) fn read(&mut self, now: Moment, subnet: Subnet, journals: Vec<(JournalKey, Vec<JournalEntry>)>) {
        self.read = true;
        self.own.extend(copies_of(subnet, journals, true));
        if let Some(epoch) = self.doubtful_before {
            let begun = self.own.iter().any(|copy| copy.taken_over >= epoch);
            self.doubtful_before = self.doubtful_before.filter(|_| !begun);
            if begun {
                self.awaited.clear();
            }
            // Others are asked at once.
            self.until = now;
        }
    }

    /// Replicas that failed to answer and are asked again now.
    pub(super) fn ask_again(&mut self, now: Moment) -> Vec<AccessPoint> {
        let due = self.asked.iter_mut().filter(|(_, again)| again.is_some_and(|due| due <= now));
        let due = due.map(|(from, again)| {
            *again = None;
            *from
        });
        due.collect()
    }

    /// What to do if its time is over, or all is here that can be had: the last that it waited for may be no answer of a member, but what
    /// the voters tell.
    pub(super) fn overdue(&mut self, now: Moment) -> Option<Overdue> {
        if self.is_complete() {
            return Some(Overdue::Begin);
        }
        if self.until > now {
            return None;
        }
        let waits = !self.awaited.is_empty();
        self.awaited.have_waited(now.since(self.begun));
        self.doubted |= now.since(self.begun) >= MAX_DOUBT.min(self.awaited.longest());
        let found = self.doubtful_before.is_none() && !(self.own.is_empty() && self.told.is_empty());
        let gives_up = waits || !self.heard.is_empty() || found || self.silences >= MAX_SILENCES;
        if self.awaited.is_empty() && gives_up && !self.is_in_doubt() {
            self.asked.clear();
            self.awaited.clear();
            self.doubtful_before = None;
            return Some(Overdue::Begin);
        }
        Some(Overdue::AskOthers)
    }

    /// No member that must have all answered in time. Returns which of these are asked now: those that have not answered yet.
    pub(super) fn ask_instead(&mut self, now: Moment, mut others: BTreeSet<AccessPoint>) -> BTreeSet<AccessPoint> {
        others.retain(|member| !self.heard.contains_key(member));
        self.until = now.after(if others.is_empty() { LOOK_AGAIN } else { RECALL_TIMEOUT });
        self.silences += 1;
        self.asked = others.iter().map(|replica| (*replica, None)).collect();
        others
    }

    /// Whether it waits for a member to come back.
    pub(super) fn is_parked(&self) -> bool {
        self.read && (!self.awaited.is_empty() || self.is_in_doubt()) && self.silences > 0
    }

    /// Looks whether those that were named and have not answered may yet.
    pub(super) fn look(&mut self, now: Moment, chance: impl Fn(&AccessPoint) -> Chance) {
        self.awaited.look(now, chance);
    }

    /// The members that have all that was recorded, as long as none of them has answered, or one alone that may hide something.
    pub(super) fn awaited(&self) -> Vec<AccessPoint> {
        if !self.awaited.is_empty() {
            return self.awaited.members().collect();
        }
        let unsure = self.unsure_sets().into_iter().flat_map(|(_, others)| others);
        let waited_for: BTreeSet<_> = unsure.filter(|member| self.awaited.chance_of(member) != Chance::Never).collect();
        waited_for.into_iter().collect()
    }

    /// Whether this member was named, and answered from the database that was meant.
    fn is_named(&self, member: &AccessPoint) -> bool {
        self.heard.get(member).copied().flatten().is_some_and(|store| self.awaited.has_named(*member, store))
    }

    /// The sets of which somebody has answered, but too few to be believed; and of each the others that have not answered from whichever
    /// database.
    fn unsure_sets(&self) -> Vec<(Vec<AccessPoint>, Vec<AccessPoint>)> {
        let ours = |member: &AccessPoint| !self.heard.contains_key(member);
        let is_unsure = |answered: &[AccessPoint]| !answered.is_empty() && answered.len() < BELIEVED && !answered.iter().any(ours);
        let sets = self.awaited.parted().filter(|(answered, _)| is_unsure(answered));
        sets.map(|(answered, others)| (answered, others.into_iter().filter(ours).collect())).collect()
    }

    /// Whether our own store, or somebody whom nobody named, has a better copy of a host than those that were named, or theirs is missing.
    fn others_have_more(&self) -> bool {
        let (named, others): (Vec<_>, Vec<_>) = self.told.iter().partition(|(member, _)| self.is_named(member));
        let mut best: BTreeMap<&Host, _> = BTreeMap::new();
        for copy in named.into_iter().flat_map(|(_, copies)| copies) {
            let known = best.entry(&copy.key.host).or_insert_with(|| copy.rank());
            *known = copy.rank().max(*known);
        }
        let mut others = others.into_iter().flat_map(|(_, copies)| copies).chain(&self.own);
        others.any(|copy| best.get(&copy.key.host).is_none_or(|known| copy.rank() > *known))
    }

    /// Whether it waits for another that was named because one alone of a set has answered.
    fn is_in_doubt(&self) -> bool {
        if self.doubted {
            return false;
        }
        let mut others_have_more = None;
        self.unsure_sets().into_iter().any(|(answered, others)| {
            let may_come = |chance| others.iter().filter(|member| self.awaited.chance_of(member) == chance).count();
            let (soon, alive, perhaps) = (may_come(Chance::Soon), may_come(Chance::Alive), may_come(Chance::Perhaps));
            let has_nothing = !answered.iter().any(|member| self.told.contains_key(member));
            soon > 0
                || has_nothing && (alive > 0 || perhaps >= BELIEVED)
                || alive + perhaps > 0 && *others_have_more.get_or_insert_with(|| self.others_have_more())
        })
    }

    /// Voters told who has all. Our own store, and those that have answered, count.
    pub(super) fn learn(&mut self, own: NamedReplica, sets: &[InheritedReplicas]) {
        self.awaited.learn(sets);
        self.awaited.heard(own.member, own.store);
        self.heard
            .iter()
            .filter_map(|(member, store)| Some((*member, (*store)?)))
            .for_each(|(from, store)| self.awaited.heard(from, store));
    }

    /// Whom it still waits for.
    pub(super) fn into_awaited(self) -> AwaitedReplicas {
        self.awaited
    }

    /// These members will not come back.
    pub(super) fn declare_lost(&mut self, lost: &[AccessPoint]) {
        self.awaited.declare_lost(lost);
        self.doubted |= self.awaited.unheard().all(|member| lost.contains(&member));
    }

    /// Whether all that can be had is here.
    pub(super) fn is_complete(&self) -> bool {
        let sure = self.doubtful_before.is_none() || !self.heard.is_empty();
        self.read && sure && self.asked.is_empty() && self.awaited.is_empty() && !self.is_in_doubt()
    }

    /// What was found of a subnet that is ours since this epoch. What our own store has was kept for its owners. What a member sent that no
    /// owner named may be invented: it counts if of a set that was named nobody has answered, and for hosts of which nothing else is here if
    /// one alone has. Epochs after ours tell nothing of who came last, as nobody took it over in one.
    pub(super) fn into_found(self, epoch: u64) -> Found {
        let (unheard, unsure) = (!self.awaited.all_answered(), !self.unsure_sets().is_empty());
        let named: BTreeSet<_> = self.told.keys().filter(|member| self.is_named(member)).copied().collect();
        let mut found = Found::default();
        let ranked = |copy: JournalCopy| JournalCopy { taken_over: copy.last_epoch(epoch), ..copy };
        self.own.into_iter().for_each(|copy| found.add(ranked(copy)));
        let (named, others): (Vec<_>, Vec<_>) = self.told.into_iter().partition(|(member, _)| named.contains(member));
        named.into_iter().flat_map(|(_, copies)| copies).for_each(|copy| found.add(ranked(copy)));
        let known: BTreeSet<_> = found.best.keys().cloned().collect();
        let counts = |copy: &JournalCopy| unheard || unsure && !known.contains(&copy.key.host);
        for copy in others.into_iter().flat_map(|(_, copies)| copies).filter(counts) {
            if copy.taken_over > epoch {
                found.refused += 1;
            } else {
                found.add(JournalCopy { left_over: true, ..ranked(copy) });
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::time::WallTime;

    fn subnet() -> Subnet {
        "10.1.0.0/16".parse().unwrap()
    }

    /// A journal of so many rows, the last of which names this run, if any.
    fn journal(run: u32, rows: usize, follows: Option<u32>) -> (JournalKey, Vec<JournalEntry>) {
        let opened = JournalEntry::Opened { address: "10.1.0.1".parse().unwrap(), tree: "a.ke".parse().unwrap(), at: WallTime(1) };
        let resumed = (1..rows).map(|row| JournalEntry::Resumed { at: WallTime(row as u64) });
        let follows = follows.map(|run| JournalEntry::Follows { run, pages: 1 });
        (JournalKey { subnet: subnet(), host: "a.ke".parse().unwrap(), run }, [opened].into_iter().chain(resumed).chain(follows).collect())
    }

    fn found(journals: &[(JournalKey, Vec<JournalEntry>)]) -> (u32, Option<u32>) {
        let mut found = Found::default();
        journals.iter().for_each(|journal| copies_of(subnet(), vec![journal.clone()], false).for_each(|copy| found.add(copy)));
        let all: Vec<_> = found.into_journals().map(|(best, previous)| (best.key.run, previous.map(|previous| previous.key.run))).collect();
        let [one] = all[..] else { panic!("{all:?}") };
        one
    }

    #[test]
    fn a_run_is_compared_with_the_one_that_it_names_else_with_the_one_just_before_it() {
        assert_eq!(found(&[journal(2, 3, None), journal(3, 1, None)]), (3, Some(2)));
        assert_eq!(found(&[journal(2, 3, None), journal(4, 1, Some(2))]), (4, Some(2)), "it had caught up with its tree");
        assert_eq!(found(&[journal(2, 3, None), journal(4, 1, None)]), (4, Some(2)), "its owner was still reading");
        let mut begun = journal(4, 1, None);
        begun.1.push(JournalEntry::Visited {
            url: nearcrawl_model::url::PageUrl::parse("http://a.ke/").unwrap(),
            level: 0,
            at: WallTime(2),
            outcome: nearcrawl_model::journal::VisitOutcome::Page(200),
            took: 1,
            first_byte_us: None,
            bytes: 1,
            software: None,
            children: Vec::new(),
            found: Vec::new(),
            outgoing: Vec::new(),
            beyond_scope: Vec::new(),
            rest: None,
        });
        assert_eq!(found(&[journal(2, 3, None), begun]), (4, None), "left over from long ago");
        assert_eq!(found(&[journal(2, 3, None), journal(3, 1, Some(3))]), (3, Some(2)), "nobody is compared with itself");
        assert_eq!(found(&[journal(1, 3, None), journal(1, 4, None)]), (1, None));
    }

    #[test]
    fn a_copy_of_a_run_in_between_does_not_take_the_place_of_the_one_that_it_names() {
        // Run 3 began at an owner who died before anybody compared it; its successor went on from run 2.
        let (second, third, fourth) = (journal(2, 9, None), journal(3, 1, None), journal(4, 1, Some(2)));
        assert_eq!(found(&[second.clone(), third.clone(), fourth.clone()]), (4, Some(2)));
        assert_eq!(found(&[fourth, third, second]), (4, Some(2)));
    }
}
