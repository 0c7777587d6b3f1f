//! S3-FIFO (Yang et al., SOSP 2023, algorithm 1).
//!
//! New items enter a small queue, of a tenth of the entries. Items requested again while they are in it move to the main queue; of the
//! others only the names are kept for a while (ghosts), and an item requested as a ghost enters the main queue at once.

use super::rule::Cache;
use std::collections::VecDeque;

/// The greatest value of a request counter.
const MAX_REQUESTS: u8 = 3;

/// Where an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    Held,
    /// A ghost; so many were there before it.
    Ghost(u64),
}

/// Three queues, first in, first out.
#[derive(Clone, Debug)]
pub(crate) struct S3Fifo {
    size: usize,
    place: Vec<Place>,
    meetings: Vec<u8>,
    small: VecDeque<u32>,
    main: VecDeque<u32>,
    /// How many items have become ghosts; one is forgotten when as many as fit into the main queue came after it.
    ghosts: u64,
}

impl S3Fifo {
    /// With so many entries, for a stream of `distinct` different items.
    pub(super) fn new(size: usize, distinct: usize) -> S3Fifo {
        let (place, meetings) = (vec![Place::Nowhere; distinct], vec![0; distinct]);
        S3Fifo { size, place, meetings, small: VecDeque::new(), main: VecDeque::new(), ghosts: 0 }
    }

    /// How many entries the small queue is to have.
    fn small_size(size: usize) -> usize {
        (size / 10).max(1)
    }

    fn is_ghost(&self, item: u32) -> bool {
        let most = (self.size - S3Fifo::small_size(self.size)) as u64;
        matches!(self.place[item as usize], Place::Ghost(number) if self.ghosts - number <= most)
    }

    fn evict(&mut self) {
        if self.small.len() >= S3Fifo::small_size(self.size) {
            self.evict_small();
        } else {
            self.evict_main();
        }
    }

    fn evict_small(&mut self) {
        while let Some(item) = self.small.pop_front() {
            if std::mem::take(&mut self.meetings[item as usize]) > 1 {
                self.main.push_back(item);
            } else {
                self.place[item as usize] = Place::Ghost(self.ghosts);
                self.ghosts += 1;
                return;
            }
        }
    }

    fn evict_main(&mut self) {
        while let Some(item) = self.main.pop_front() {
            let meetings = &mut self.meetings[item as usize];
            if *meetings == 0 {
                self.place[item as usize] = Place::Nowhere;
                return;
            }
            *meetings -= 1;
            self.main.push_back(item);
        }
    }
}

impl Cache for S3Fifo {
    fn touch(&mut self, item: u32) -> bool {
        if self.place[item as usize] == Place::Held {
            let meetings = &mut self.meetings[item as usize];
            *meetings = (*meetings + 1).min(MAX_REQUESTS);
            return true;
        }
        // The first turn may only move items from the small queue to the main one.
        while self.small.len() + self.main.len() >= self.size {
            self.evict();
        }
        let queue = if self.is_ghost(item) { &mut self.main } else { &mut self.small };
        queue.push_back(item);
        self.place[item as usize] = Place::Held;
        self.meetings[item as usize] = 0;
        false
    }
}
