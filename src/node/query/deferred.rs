//! Queries about a host that is new here: each waits until the host's steward has answered with its address, or for a short time.

use super::{MAX_WAITING, Reply};
use nearcrawl_core::crawler::Crawler;
use nearcrawl_model::view::{Subject, WhyView};
use std::time::Duration;
use tokio::time::Instant;

/// For how long, at most. Looking up a name may take longer; the same query again is then answered at once.
const PATIENCE: Duration = Duration::from_secs(3);

/// Questions that wait for a steward's word.
#[derive(Default)]
pub struct DeferredQueries {
    waiting: Vec<(Subject, Reply<WhyView>, Instant)>,
}

impl DeferredQueries {
    /// Whether one more question may wait.
    pub fn has_room(&self) -> bool {
        self.waiting.len() < MAX_WAITING
    }

    /// Has this question wait.
    pub fn wait(&mut self, subject: Subject, reply: Reply<WhyView>) {
        self.waiting.push((subject, reply, Instant::now() + PATIENCE));
    }

    /// Answers what can be answered by now, and what has waited long enough.
    pub fn settle(&mut self, crawler: &Crawler) {
        let now = Instant::now();
        let (over, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(subject, _, until)| *until <= now || crawler.view().unlocated(subject).is_none());
        self.waiting = waiting;
        for (subject, reply, _) in over {
            // A caller that has stopped waiting is no error.
            let _ = reply.send(crawler.view().why(&subject));
        }
    }
}
