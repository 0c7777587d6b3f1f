//! Round-robin queue over groups.
//!
//! Each group has its turn: a group with very many items delays no other.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::Bound,
};

/// What waits, by group; within a group in its own order.
#[derive(Clone, Debug)]
pub(crate) struct Turns<G, T> {
    groups: BTreeMap<G, BTreeSet<T>>,
    len: usize,
}

impl<G, T> Default for Turns<G, T> {
    fn default() -> Turns<G, T> {
        Turns { groups: BTreeMap::new(), len: 0 }
    }
}

impl<G: Ord + Copy, T: Ord + Clone> Turns<G, T> {
    /// One more waits.
    pub(crate) fn insert(&mut self, group: G, item: T) {
        self.len += usize::from(self.groups.entry(group).or_default().insert(item));
    }

    /// It does not wait any more.
    pub(crate) fn remove(&mut self, group: &G, item: &T) {
        let Some(items) = self.groups.get_mut(group) else { return };
        self.len -= usize::from(items.remove(item));
        if items.is_empty() {
            self.groups.remove(group);
        }
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All that wait, group by group.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.groups.values().flatten()
    }

    /// Whose turn it is: one of each group, then a second one of each, and so on, at most so many, from the group behind `last` on.
    pub(crate) fn next(&self, last: Option<&G>, most: usize) -> Vec<T> {
        let behind = last.map_or(Bound::Unbounded, Bound::Excluded);
        let upto = last.map(|last| self.groups.range((Bound::Unbounded, Bound::Included(last))));
        let mut turns: VecDeque<_> =
            self.groups.range((behind, Bound::Unbounded)).chain(upto.into_iter().flatten()).map(|(_, items)| items.iter()).collect();
        let mut next = Vec::new();
        while next.len() < most
            && let Some(mut items) = turns.pop_front()
        {
            if let Some(item) = items.next() {
                next.push(item.clone());
                turns.push_back(items);
            }
        }
        next
    }
}

/// The group that had the last turn, after one of these groups each had its own, from the one behind `last` on.
pub(crate) fn last_turn<G: Ord>(last: Option<&G>, had: impl Iterator<Item = G>) -> Option<G> {
    had.max_by(|one, other| (last.is_some_and(|last| one <= last), one).cmp(&(last.is_some_and(|last| other <= last), other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(items: &[(u8, u32)]) -> Turns<u8, u32> {
        let mut turns = Turns::default();
        items.iter().for_each(|(group, item)| turns.insert(*group, *item));
        turns
    }

    #[test]
    fn each_group_has_its_turn_from_the_one_behind_the_last_on() {
        let turns = turns(&[(1, 10), (1, 11), (1, 12), (2, 20), (3, 30), (3, 31)]);
        assert_eq!(turns.next(None, 5), [10, 20, 30, 11, 31]);
        assert_eq!(turns.next(Some(&1), 4), [20, 30, 10, 31]);
        assert_eq!(turns.next(Some(&3), 1), [10]);
        assert_eq!(turns.next(Some(&9), usize::MAX), [10, 20, 30, 11, 31, 12]);
    }

    #[test]
    fn what_is_removed_has_no_turn_and_all_are_counted() {
        let mut turns = turns(&[(1, 10), (1, 10), (2, 20)]);
        assert_eq!((turns.len(), turns.is_empty()), (2, false));
        turns.remove(&1, &10);
        turns.remove(&1, &10);
        turns.remove(&7, &10);
        assert_eq!((turns.len(), turns.next(None, 9), turns.iter().count()), (1, vec![20], 1));
        turns.remove(&2, &20);
        assert!(turns.is_empty() && turns.groups.is_empty());
    }

    #[test]
    fn nothing_waits_for_ever_though_each_message_has_less_room_than_was_asked_for() {
        let turns = turns(&(0..50).map(|group| (group, u32::from(group))).collect::<Vec<_>>());
        let (mut last, mut had) = (None, BTreeSet::new());
        for _ in 0..25 {
            // Of eight that may go, two do.
            let gone: Vec<u8> = turns.next(last.as_ref(), 8).into_iter().take(2).map(|item| item as u8).collect();
            last = last_turn(last.as_ref(), gone.iter().copied()).or(last);
            had.extend(gone);
        }
        assert_eq!(had.len(), 50);
        assert_eq!((last_turn(Some(&5), [6, 7, 1].into_iter()), last_turn::<u8>(Some(&5), [].into_iter())), (Some(1), None));
    }
}
