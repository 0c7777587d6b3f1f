//! Starting points that are being stored: callers get an answer when they are durable, or after a short time that they are not yet.

use super::Reply;
use nearcrawl_model::{url::PageUrl, view::SeedView};
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

/// The longest wait for the disk. Then the starting points are accepted, and the answer says that they are not durable yet.
const MAX_DISK_WAIT: Duration = Duration::from_millis(60);

/// Starting points whose asker waits.
pub struct Waiting {
    /// What was named.
    pub urls: Vec<PageUrl>,
    /// Where the answer goes.
    pub reply: Reply<SeedView>,
    until: Instant,
}

/// All whose askers wait, by the number of the chore that stores them.
#[derive(Default)]
pub struct Seeding {
    waiting: BTreeMap<u64, Waiting>,
    last: u64,
}

impl Seeding {
    /// The number of the next ones.
    pub fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Has these wait.
    pub fn wait(&mut self, number: u64, urls: Vec<PageUrl>, reply: Reply<SeedView>) {
        self.waiting.insert(number, Waiting { urls, reply, until: Instant::now() + MAX_DISK_WAIT });
    }

    /// These are stored, or failed to be; none if their asker was answered before.
    pub fn done(&mut self, number: u64) -> Option<Waiting> {
        self.waiting.remove(&number)
    }

    /// When the next asker has waited long enough.
    pub fn due(&self) -> Option<Instant> {
        self.waiting.values().map(|waiting| waiting.until).min()
    }

    /// Takes out one whose asker has waited long enough.
    pub fn late(&mut self) -> Option<Waiting> {
        let now = Instant::now();
        let number = *self.waiting.iter().find(|(_, waiting)| waiting.until <= now)?.0;
        self.waiting.remove(&number)
    }
}
