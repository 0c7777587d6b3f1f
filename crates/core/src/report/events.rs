//! Recent delegations, judgements and hand-overs that ended here.
//!
//! Kept in memory, for studies; nothing is decided by it.

use nearcrawl_model::view::EventView;
use std::collections::VecDeque;

/// How many are kept of judgements, and of all others: at most two mebibytes each.
pub(crate) const MAX_EVENTS: usize = 4_096;

/// The latest of what ended at this access point. Judgements are many: they are kept apart, so that they push nothing else out.
#[derive(Debug, Default)]
pub(crate) struct Events {
    ended: Latest,
    judged: Latest,
    /// How many there were.
    count: u64,
}

/// The latest events of a kind, each with its number.
#[derive(Debug, Default)]
struct Latest {
    latest: VecDeque<(u64, EventView)>,
    dropped: u64,
}

impl Latest {
    fn note(&mut self, number: u64, event: EventView) {
        if self.latest.len() == MAX_EVENTS {
            self.latest.pop_front();
            self.dropped += 1;
        }
        self.latest.push_back((number, event));
    }
}

impl Events {
    /// One more delegation or hand-over ended; the oldest goes if there are too many.
    pub(crate) fn note(&mut self, event: EventView) {
        self.ended.note(self.count, event);
        self.count += 1;
    }

    /// One more access was judged; the oldest judgement goes if there are too many.
    pub(crate) fn judged(&mut self, judgement: EventView) {
        self.judged.note(self.count, judgement);
        self.count += 1;
    }

    /// All that are kept with their numbers, the oldest first.
    pub(crate) fn all(&self) -> Vec<&(u64, EventView)> {
        let mut all: Vec<_> = self.ended.latest.iter().chain(&self.judged.latest).collect();
        all.sort_by_key(|(number, _)| *number);
        all
    }

    /// The delegations and hand-overs that are kept, the oldest first.
    pub(crate) fn latest(&self) -> impl DoubleEndedIterator<Item = &EventView> + ExactSizeIterator {
        self.ended.latest.iter().map(|(_, event)| event)
    }

    /// How many delegations and hand-overs have ended since the start.
    pub(crate) fn ended(&self) -> u64 {
        self.ended.dropped + self.ended.latest.len() as u64
    }

    /// How many of all are not kept any more.
    pub(crate) fn dropped(&self) -> u64 {
        self.ended.dropped + self.judged.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::{
        access_point::AccessPoint,
        time::WallTime,
        view::{EventKind, EventOutcome},
    };

    #[test]
    fn the_latest_are_kept_and_those_before_are_counted() {
        let mut events = Events::default();
        let event = |kind, number| EventView {
            kind,
            begun_at: WallTime(number),
            duration_ms: 1,
            subnet: "192.0.2.0/24".parse().unwrap(),
            outcome: EventOutcome::Owned,
            from: None,
            to: AccessPoint([1; 32]),
            probes: Some(0),
            policy: Some("random".to_owned()),
            reason_text: None,
            requests: None,
            took_ms: None,
        };
        let most = MAX_EVENTS as u64;
        (0..most + 3).for_each(|number| events.note(event(EventKind::Delegation, number)));
        assert_eq!((events.latest().count() as u64, events.dropped()), (most, 3));
        let begun: Vec<u64> = events.latest().map(|event| event.begun_at.0).collect();
        assert_eq!((begun.first(), begun.last()), (Some(&3), Some(&(most + 2))));
        // Judgements push out only judgements, and stand between the others as they came.
        (0..most + 5).for_each(|number| events.judged(event(EventKind::Judgement, number)));
        events.note(event(EventKind::Move, 0));
        assert_eq!((events.latest().count() as u64, events.dropped(), events.ended()), (most, 4 + 5, most + 4));
        let all = events.all();
        assert!(all.is_sorted_by_key(|(number, _)| *number) && all.len() as u64 == 2 * most);
        assert_eq!(all.last().map(|(number, event)| (*number, event.kind)), Some((2 * most + 8, EventKind::Move)));
    }
}
