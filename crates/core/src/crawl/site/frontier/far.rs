//! The far part of a frontier.
//!
//! In memory are only the fingerprints of its URLs, in order; the texts are set aside on disk.

use nearcrawl_model::fingerprint::Fingerprint;
use std::{
    collections::{BTreeMap, VecDeque},
    iter,
};

/// The level of those that do not wait here any more.
const NOWHERE: u8 = u8::MAX;

/// The far part of a frontier: everything here comes after everything that waits near. Eight bytes a URL.
#[derive(Debug, Default)]
pub(super) struct Far {
    /// In order. What is found now is as a rule of the deepest level, and what comes forward of the shallowest: both ends are quick.
    line: VecDeque<Fingerprint>,
    /// How many of them are of each level, the shallowest first.
    levels: Vec<(u8, u32)>,
    /// The level of those that were called and are on their way.
    coming: Option<u8>,
    /// Those that have moved, with the level where they wait now, or [`NOWHERE`]: among those of other levels they stand still,
    /// but it does not count.
    moved: BTreeMap<Fingerprint, u8>,
    /// How many wait, those on their way with them.
    waiting: usize,
}

impl Far {
    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// The level that what waits here begins with: what is found at this level or deeper has its place behind.
    pub(super) fn first_level(&self) -> Option<u8> {
        self.coming.or_else(|| self.levels.first().map(|(level, _)| *level))
    }

    /// Puts one behind all others of its level.
    pub(super) fn push_last(&mut self, level: u8, page: Fingerprint) {
        let at = self.enter(level, page);
        let upto: u32 = self.levels[..=at].iter().map(|(_, count)| count).sum();
        self.line.insert(upto as usize - 1, page);
    }

    /// Puts one before all others of its level.
    pub(super) fn push_first(&mut self, level: u8, page: Fingerprint) {
        let at = self.enter(level, page);
        let before: u32 = self.levels[..at].iter().map(|(_, count)| count).sum();
        self.line.insert(before as usize, page);
    }

    /// Counts a page that waits at a level from now on; which of the levels that is.
    fn enter(&mut self, level: u8, page: Fingerprint) -> usize {
        self.waiting += 1;
        if let Some(now) = self.moved.get_mut(&page) {
            *now = level;
        }
        let at = self.levels.binary_search_by_key(&level, |(level, _)| *level).unwrap_or_else(|at| {
            self.levels.insert(at, (level, 0));
            at
        });
        self.levels[at].1 += 1;
        at
    }

    /// Whether a page that stands among those of a level does wait there.
    fn waits(&self, level: u8, page: Fingerprint) -> bool {
        self.moved.get(&page).is_none_or(|now| *now == level)
    }

    /// One that waits here waits no more, or elsewhere.
    pub(super) fn forget(&mut self, page: Fingerprint) {
        if self.moved.insert(page, NOWHERE) != Some(NOWHERE) {
            self.waiting = self.waiting.saturating_sub(1);
        }
    }

    /// Calls the first of them, at most so many, all of one level; none while others are on their way.
    pub(super) fn call(&mut self, most: usize) -> Vec<Fingerprint> {
        let mut called = Vec::new();
        while self.coming.is_none()
            && let Some((level, count)) = self.levels.first_mut()
        {
            let level = *level;
            let Some(page) = (*count > 0).then(|| self.line.pop_front()).flatten() else {
                self.levels.remove(0);
                // The others of its level are called before those of the next one.
                if called.is_empty() {
                    continue;
                }
                self.coming = Some(level);
                break;
            };
            *count -= 1;
            if self.waits(level, page) {
                called.push(page);
            }
            if called.len() >= most {
                self.coming = Some(level);
            }
        }
        if self.line.is_empty() {
            self.line.shrink_to_fit();
        }
        if self.levels.is_empty() && self.coming.is_none() {
            self.moved.clear();
        }
        called
    }

    /// Those called have come. Returns their level.
    pub(super) fn came(&mut self) -> Option<u8> {
        self.coming.take()
    }

    /// Whether one that was called from a level still waits; it does not wait here any more.
    pub(super) fn release(&mut self, level: u8, page: Fingerprint) -> bool {
        let waits = self.waits(level, page);
        if waits {
            self.waiting -= 1;
            if let Some(now) = self.moved.get_mut(&page) {
                *now = NOWHERE;
            }
        }
        waits
    }

    /// All that stand in line here with their levels, first in line first, without those on their way.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u8, Fingerprint)> {
        let levels = self.levels.iter().flat_map(|(level, count)| iter::repeat_n(*level, *count as usize));
        levels.zip(self.line.iter().copied()).filter(|(level, page)| self.waits(*level, *page))
    }
}
