//! Somebody at the desk asks about a host that is new here: how long is its steward waited for? Until it told the address, or a moment.

use super::desk::{Answer, MOST_WAITING};
use crate::{logic::crawler::Crawler, model::view::Subject};
use std::time::Duration;
use tokio::{sync::oneshot, time::Instant};

/// For how long, at most. A name that has to be looked up anew may take longer: whoever asks again then is answered at once.
const PATIENCE: Duration = Duration::from_secs(3);

/// Questions that wait for a steward's word.
#[derive(Default)]
pub struct Wondering {
    waiting: Vec<(Subject, oneshot::Sender<Answer>, Instant)>,
}

impl Wondering {
    /// Whether one more question may wait.
    pub fn has_room(&self) -> bool {
        self.waiting.len() < MOST_WAITING
    }

    /// Has this question wait.
    pub fn wait(&mut self, subject: Subject, reply: oneshot::Sender<Answer>) {
        self.waiting.push((subject, reply, Instant::now() + PATIENCE));
    }

    /// Answers what can be answered by now, and what has waited long enough.
    pub fn settle(&mut self, mind: &Crawler) {
        let now = Instant::now();
        let (over, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(subject, _, until)| *until <= now || mind.unlocated(subject).is_none());
        self.waiting = waiting;
        for (subject, reply, _) in over {
            // An asker who went away is no error.
            let _ = reply.send(Answer::Why(Box::new(mind.why(&subject))));
        }
    }
}
