//! Acknowledgements of URLs that were handed over, once they are recorded.
//!
//! A member waits for its answer, our own outbox for leave to forget them.

use super::outbox::Item;
use crate::context::Context;
use nearcrawl_model::{ids::Ticket, journal::JournalKey, message::Response, url::Host};

/// Members' hand-offs that may be in the course of being recorded. Whoever sends one more is to come again later.
pub(crate) const MAX_ACKNOWLEDGEMENTS: usize = 4_096;

/// Who waits for arrivals to be recorded.
#[derive(Debug)]
pub(crate) enum Reply {
    /// A member, by its ticket; hosts that are not ours are named.
    Member { ticket: Ticket, not_mine: Vec<Host> },
    /// Our own outbox.
    Own(Vec<Item>),
}

/// What a hand-off or a seed waits for before it is acknowledged.
#[derive(Debug)]
pub(crate) struct Acknowledgement {
    pub(crate) reply: Reply,
    /// Journals that must be recorded up to there.
    pub(crate) needs: Vec<(JournalKey, u64)>,
}

/// Hand-offs that were taken in and are not acknowledged yet, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Acknowledgements {
    waiting: Vec<Acknowledgement>,
}

/// What became of our own URLs whose acknowledgement came due.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    /// Recorded in sites of ours.
    pub(crate) delivered: Vec<Item>,
    /// Their site was lost before they were recorded.
    pub(crate) lost: Vec<Item>,
}

impl Acknowledgements {
    /// One more waits.
    pub(crate) fn push(&mut self, acknowledgement: Acknowledgement) {
        self.waiting.push(acknowledgement);
    }

    /// How many of them are members'.
    pub(crate) fn members(&self) -> usize {
        self.waiting.iter().filter(|waiting| matches!(waiting.reply, Reply::Member { .. })).count()
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Answers every member whose arrivals are recorded by now. `recorded` says whether a journal is, up to a
    /// row (exclusive), `owns` whether it is still ours.
    pub(crate) fn settle(
        &mut self,
        cx: &mut Context,
        recorded: impl Fn(&JournalKey, u64) -> bool,
        owns: impl Fn(&JournalKey) -> bool,
    ) -> Settled {
        let is_due = |ack: &mut Acknowledgement| ack.needs.iter().all(|(key, upto)| recorded(key, *upto) || !owns(key));
        let mut settled = Settled::default();
        for Acknowledgement { reply, needs } in self.waiting.extract_if(.., is_due) {
            match reply {
                Reply::Member { ticket, mut not_mine } => {
                    // What we lost meanwhile is not ours to acknowledge.
                    not_mine.extend(needs.into_iter().filter(|(key, _)| !owns(key)).map(|(key, _)| key.host));
                    cx.answer(ticket, Response::HandedOff { not_mine });
                }
                Reply::Own(items) if needs.iter().all(|(key, _)| owns(key)) => settled.delivered.extend(items),
                Reply::Own(items) => settled.lost.extend(items),
            }
        }
        settled
    }
}
