//! Signed statements of which every member keeps a copy.
//!
//! Kept here: which versions are kept, who has not acknowledged them, with whom they are compared next, and what came of what people said
//! here. Opt-outs and admissions are two kinds of them; which are kept, and what follows from them, is for their machines to decide.
//!
//! Of each the greatest revision is kept; of two with one revision that with the greater digest. They are stored before they are told.

use nearcrawl_model::{
    access_point::AccessPoint,
    ids::WriteId,
    opt_out::{StatementHead, StatementId, StatementsDigest},
    time::{Millis, Moment},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Statements are stored in so many pages, so that one costs little writing.
pub const PAGES: u8 = 64;

/// Statements that were refused and are not asked for again.
const MAX_REFUSED: usize = 10_000;

/// After how long statements are compared with another member: twice as long after each comparison that found the same there, up to the second
/// one; as soon as before when something has changed here, or differed there. Who has come is compared with at once.
const COMPARE_EVERY: Millis = 5_000;
const MAX_COMPARE_EVERY: Millis = 60_000;

/// After so many times one is not told any more: it hears of it when statements are compared.
const MAX_TIMES: u8 = 30;

/// Questions of people whose outcome is remembered.
const MAX_OUTCOMES: usize = 64;

/// In which page a statement is stored.
pub(crate) fn page_of(id: &StatementId) -> u8 {
    id.0[0] % PAGES
}

/// A statement that is kept here, with its signed bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept<S, T> {
    pub(crate) statement: S,
    pub(crate) signed: T,
    pub(crate) head: StatementHead,
}

/// The statements of one kind that are kept here.
#[derive(Debug)]
pub(crate) struct Book<S, T> {
    kept: BTreeMap<StatementId, Arc<Kept<S, T>>>,
    /// Versions that are being stored. They hold, but nobody is told of them.
    storing: BTreeMap<StatementId, Option<WriteId>>,
    refused: BTreeSet<StatementHead>,
    /// Pages that are to be stored.
    changed_pages: BTreeSet<u8>,
    /// How often what is told of it has changed.
    changes: u64,
}

impl<S, T> Default for Book<S, T> {
    fn default() -> Book<S, T> {
        Book { kept: BTreeMap::new(), storing: BTreeMap::new(), refused: BTreeSet::new(), changed_pages: BTreeSet::new(), changes: 0 }
    }
}

/// Statements come.
impl<S, T> Book<S, T> {
    /// Whether a version of a statement is wanted here: it is newer than what is known, and was not refused.
    pub(crate) fn lacks(&self, head: &StatementHead) -> bool {
        self.kept.get(&head.id).is_none_or(|known| known.head < *head) && !self.refused.contains(head)
    }

    /// A statement is kept from now on. It was stored before, or is to be.
    pub(crate) fn keep(&mut self, kept: Arc<Kept<S, T>>, is_stored: bool) {
        if !is_stored {
            self.changed_pages.insert(page_of(&kept.head.id));
            self.storing.insert(kept.head.id, None);
        }
        self.changes += 1;
        self.kept.insert(kept.head.id, kept);
    }

    /// A statement is not kept any more, nor asked for again.
    pub(crate) fn drop_one(&mut self, id: &StatementId) -> Option<Arc<Kept<S, T>>> {
        let kept = self.kept.remove(id)?;
        self.changed_pages.insert(page_of(id));
        self.changes += 1;
        self.storing.remove(id);
        self.refuse(kept.head);
        Some(kept)
    }

    /// A statement was refused; it is not asked for again.
    pub(crate) fn refuse(&mut self, head: StatementHead) {
        if self.refused.len() >= MAX_REFUSED {
            self.refused.clear();
        }
        self.refused.insert(head);
    }

    /// What was refused may be asked for again.
    pub(crate) fn forget_refused(&mut self) {
        self.refused.clear();
    }

    /// The pages that are to be stored.
    pub(crate) fn take_changed_pages(&mut self) -> BTreeSet<u8> {
        std::mem::take(&mut self.changed_pages)
    }

    /// Whether any page is to be stored.
    pub(crate) fn has_changed(&self) -> bool {
        !self.changed_pages.is_empty()
    }

    /// The statements of a page, which are stored by this write.
    pub(crate) fn page(&mut self, page: u8, write: WriteId) -> Vec<&T> {
        self.storing.iter_mut().filter(|(id, _)| page_of(id) == page).for_each(|(_, waits_for)| *waits_for = Some(write));
        self.kept.iter().filter(|(id, _)| page_of(id) == page).map(|(_, kept)| &kept.signed).collect()
    }

    /// What was written is durable. Returns those statements that are, in this version.
    pub(crate) fn stored(&mut self, write: WriteId) -> Vec<Arc<Kept<S, T>>> {
        let ids: Vec<_> = self.storing.iter().filter(|(_, waits_for)| **waits_for == Some(write)).map(|(id, _)| *id).collect();
        self.storing.retain(|_, waits_for| *waits_for != Some(write));
        self.changes += ids.len() as u64;
        ids.iter().filter_map(|id| self.kept.get(id).cloned()).collect()
    }
}

/// To be read.
impl<S, T> Book<S, T> {
    /// One that is kept.
    pub(crate) fn get(&self, id: &StatementId) -> Option<&Arc<Kept<S, T>>> {
        self.kept.get(id)
    }

    /// All that are kept, in the order of their ids.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Kept<S, T>>> {
        self.kept.values()
    }

    /// Whether a statement is durable.
    pub(crate) fn is_stored(&self, id: &StatementId) -> bool {
        self.kept.contains_key(id) && !self.storing.contains_key(id)
    }

    fn told(&self) -> impl Iterator<Item = &Arc<Kept<S, T>>> {
        self.kept.iter().filter(|(id, _)| !self.storing.contains_key(*id)).map(|(_, kept)| kept)
    }

    /// Which versions are stored.
    pub(crate) fn heads(&self) -> Vec<StatementHead> {
        self.told().map(|kept| kept.head).collect()
    }

    /// Their digest: equal books have equal ones.
    pub(crate) fn digest(&self) -> StatementsDigest {
        StatementsDigest::of(self.told().map(|kept| &kept.head))
    }

    /// What is to be answered to a member whose statements have this digest: nothing if ours are the same.
    pub(crate) fn compared(&self, theirs: StatementsDigest) -> Option<Vec<StatementHead>> {
        (self.digest() != theirs).then(|| self.heads())
    }

    /// Which statements of another we lack, and which ones of ours the other lacks.
    pub(crate) fn differences(&self, theirs: &[StatementHead]) -> (Vec<StatementId>, Vec<StatementId>) {
        let lacking = theirs.iter().filter(|head| self.lacks(head)).map(|head| head.id).collect();
        let known: BTreeMap<StatementId, &StatementHead> = theirs.iter().map(|head| (head.id, head)).collect();
        let is_missing = |head: &&Arc<Kept<S, T>>| known.get(&head.head.id).is_none_or(|known| **known < head.head);
        (lacking, self.told().filter(is_missing).map(|kept| kept.head.id).collect())
    }

    /// How many are kept.
    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }
}

impl<S, T: Clone> Book<S, T> {
    /// The signed statements with these ids that are stored.
    pub(crate) fn signed<'a>(&self, ids: impl IntoIterator<Item = &'a StatementId>) -> Vec<T> {
        let stored = ids.into_iter().filter(|id| self.is_stored(id));
        stored.filter_map(|id| self.kept.get(id)).map(|kept| kept.signed.clone()).collect()
    }
}

/// What each of the others was told and has not acknowledged, and how often. A few others are told one by one, and again every second: a
/// message may get lost, and they have to know it within seconds.
#[derive(Debug, Default)]
pub(crate) struct Telling {
    untold: BTreeMap<AccessPoint, (BTreeSet<StatementId>, u8)>,
}

impl Telling {
    /// These are to be told that.
    pub(crate) fn begin(&mut self, others: &[AccessPoint], ids: &[StatementId]) {
        for other in others {
            let (untold, times) = self.untold.entry(*other).or_default();
            untold.extend(ids);
            *times = 0;
        }
    }

    /// Who is to be told what now.
    pub(crate) fn now(&mut self, lives: impl Fn(&AccessPoint) -> bool) -> Vec<(AccessPoint, Vec<StatementId>)> {
        self.untold.retain(|other, (_, times)| *times < MAX_TIMES && lives(other));
        self.untold.values_mut().for_each(|(_, times)| *times += 1);
        self.untold.iter().map(|(other, (ids, _))| (*other, ids.iter().copied().collect())).collect()
    }

    /// A member has heard these.
    pub(crate) fn acknowledged(&mut self, by: AccessPoint, ids: &[StatementId]) {
        if let Some((untold, _)) = self.untold.get_mut(&by) {
            untold.retain(|id| !ids.contains(id));
            if untold.is_empty() {
                self.untold.remove(&by);
            }
        }
    }
}

/// With whom statements are compared next: with one member after another, round and round.
#[derive(Debug)]
pub(crate) struct Comparing {
    at: Moment,
    with: Option<AccessPoint>,
    every: Millis,
    /// How often our own had changed when this was last looked at.
    changes: u64,
}

impl Default for Comparing {
    fn default() -> Comparing {
        Comparing { at: Moment::default(), with: None, every: COMPARE_EVERY, changes: 0 }
    }
}

impl Comparing {
    /// The member whose turn it is, if one has a turn now.
    pub(crate) fn next<S, T>(&mut self, now: Moment, me: AccessPoint, book: &Book<S, T>, live: &[AccessPoint]) -> Option<AccessPoint> {
        if std::mem::replace(&mut self.changes, book.changes) != book.changes {
            self.differed(now);
        }
        if now < self.at || book.len() == 0 {
            return None;
        }
        self.at = now.after(self.every);
        let others = || live.iter().filter(|member| **member != me);
        let next = others().find(|member| self.with.is_none_or(|before| **member > before)).or_else(|| others().next());
        self.with = next.copied().or(self.with);
        next.copied()
    }

    /// A member has the same.
    pub(crate) fn was_equal(&mut self) {
        self.every = (2 * self.every).min(MAX_COMPARE_EVERY);
    }

    /// A member has others, or there are others here now.
    pub(crate) fn differed(&mut self, now: Moment) {
        self.every = COMPARE_EVERY;
        self.at = self.at.min(now.after(COMPARE_EVERY));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_statements_are_compared_ever_more_rarely_until_something_changes() {
        let me = AccessPoint([1; 32]);
        let others = [AccessPoint([2; 32]), AccessPoint([3; 32])];
        let mut book = Book::<(), ()>::default();
        let mut comparing = Comparing::default();
        // How often in ten minutes, when each answer is that all is the same.
        let often = |comparing: &mut Comparing, book: &Book<(), ()>, from: u64| {
            let asked = (from..from + 600).filter(|second| {
                let turn = comparing.next(Moment(second * 1_000), me, book, &others);
                turn.iter().for_each(|_| comparing.was_equal());
                turn.is_some()
            });
            asked.collect::<Vec<_>>()
        };
        assert!(often(&mut comparing, &book, 0).is_empty(), "nobody is asked about nothing");
        let head = StatementHead { id: StatementId([7; 16]), revision: 1, digest: [1; 16] };
        book.keep(Arc::new(Kept { statement: (), signed: (), head }), true);
        let first = often(&mut comparing, &book, 1_000);
        let pauses = |asked: &[u64]| asked.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>();
        // The pause doubles up to a minute, and stays there.
        assert_eq!(pauses(&first)[..5], [5, 10, 20, 40, 60], "{first:?}");
        assert!((11..=13).contains(&first.len()) && pauses(&first)[4..].iter().all(|pause| *pause == 60), "{first:?}");
        // A member has others.
        let last = Moment(1_600_000);
        comparing.differed(last);
        let again = often(&mut comparing, &book, 1_600);
        assert_eq!((again[0] <= 1_605, &pauses(&again)[..3]), (true, &[5, 10, 20][..]), "what differs is compared soon: {again:?}");
        book.drop_one(&head.id);
        book.keep(Arc::new(Kept { statement: (), signed: (), head }), true);
        let soon = often(&mut comparing, &book, 2_200);
        assert!(soon[0] <= 2_205 && pauses(&soon)[..3] == [5, 10, 20], "what is new here is compared as soon as ever: {soon:?}");
    }
}

/// What came of what people said here, by the numbers of their questions.
#[derive(Debug)]
pub(crate) struct Outcomes<K>(BTreeMap<u64, Result<(StatementId, K), String>>);

impl<K> Default for Outcomes<K> {
    fn default() -> Outcomes<K> {
        Outcomes(BTreeMap::new())
    }
}

impl<K: Clone> Outcomes<K> {
    /// This came of it: a statement about something, or a refusal as a sentence.
    pub(crate) fn note(&mut self, number: u64, outcome: Result<(StatementId, K), String>) {
        self.0.insert(number, outcome);
        if self.0.len() > MAX_OUTCOMES {
            self.0.pop_first();
        }
    }

    /// What came of a question; none if that is not known, or not stored yet.
    pub(crate) fn of(&self, number: u64, is_stored: impl Fn(&StatementId) -> bool) -> Option<Result<K, String>> {
        match self.0.get(&number)? {
            Err(why) => Some(Err(why.clone())),
            Ok((id, said)) => is_stored(id).then(|| Ok(said.clone())),
        }
    }
}
