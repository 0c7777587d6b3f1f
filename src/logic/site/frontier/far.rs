//! Which URLs wait far back, and when do they come forward? In memory are only their fingerprints, in order; the texts are set aside
//! on disk.

use crate::model::fingerprint::Fingerprint;
use std::collections::{BTreeMap, VecDeque};

/// The level of those that do not wait here any more.
const NOWHERE: u8 = u8::MAX;

/// The far part of a frontier: everything here comes after everything that waits near. Eight bytes a URL.
#[derive(Debug, Default)]
pub(super) struct Far {
    /// By level, the shallowest first.
    queues: Vec<(u8, VecDeque<Fingerprint>)>,
    /// The level of those that were called and are on their way.
    coming: Option<u8>,
    /// Those that have moved, with the level where they wait now, or [`NOWHERE`]: in the queues of other levels they stand still,
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
        self.coming.or_else(|| self.queues.first().map(|(level, _)| *level))
    }

    /// Puts one behind all others of its level.
    pub(super) fn push_last(&mut self, level: u8, page: Fingerprint) {
        self.queue(level, page).push_back(page);
    }

    /// Puts one before all others of its level.
    pub(super) fn push_first(&mut self, level: u8, page: Fingerprint) {
        self.queue(level, page).push_front(page);
    }

    /// The queue of a level, for a page that waits there from now on.
    fn queue(&mut self, level: u8, page: Fingerprint) -> &mut VecDeque<Fingerprint> {
        self.waiting += 1;
        if let Some(now) = self.moved.get_mut(&page) {
            *now = level;
        }
        let at = match self.queues.binary_search_by_key(&level, |(level, _)| *level) {
            Ok(at) => at,
            Err(at) => {
                self.queues.insert(at, (level, VecDeque::new()));
                at
            }
        };
        &mut self.queues[at].1
    }

    /// Whether a page that stands in the queue of a level does wait there.
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
            && let Some((level, queue)) = self.queues.first_mut()
        {
            let level = *level;
            let Some(page) = queue.pop_front() else {
                self.queues.remove(0);
                // The others of its level are called before those of the next one.
                if called.is_empty() {
                    continue;
                }
                self.coming = Some(level);
                break;
            };
            if self.waits(level, page) {
                called.push(page);
            }
            if called.len() >= most {
                self.coming = Some(level);
            }
        }
        if self.queues.is_empty() && self.coming.is_none() {
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
        let all = self.queues.iter().flat_map(|(level, queue)| queue.iter().map(|page| (*level, *page)));
        all.filter(|(level, page)| self.waits(*level, *page))
    }
}
