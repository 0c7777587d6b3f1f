//! Which delegations and hand-overs ended here lately? Kept in memory, for studies; nothing is decided by it.

use nearcrawl_model::view::EventView;
use std::collections::VecDeque;

/// How many are kept: at most two mebibytes.
pub(crate) const MAX_EVENTS: usize = 4_096;

/// The latest delegations and hand-overs of this access point.
#[derive(Debug, Default)]
pub(crate) struct Events {
    latest: VecDeque<EventView>,
    dropped: u64,
}

impl Events {
    /// One more ended; the oldest goes if there are too many.
    pub(crate) fn note(&mut self, event: EventView) {
        if self.latest.len() == MAX_EVENTS {
            self.latest.pop_front();
            self.dropped += 1;
        }
        self.latest.push_back(event);
    }

    /// Those that are kept, the oldest first.
    pub(crate) fn latest(&self) -> impl Iterator<Item = &EventView> {
        self.latest.iter()
    }

    /// How many are not kept any more.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
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
        for number in 0..MAX_EVENTS as u64 + 3 {
            events.note(EventView {
                kind: EventKind::Delegation,
                begun_at: WallTime(number),
                duration_ms: 1,
                subnet: "192.0.2.0/24".parse().unwrap(),
                outcome: EventOutcome::Owned,
                from: None,
                to: AccessPoint([1; 32]),
                probes: Some(0),
                policy: Some("random".to_owned()),
                reason_text: None,
            });
        }
        assert_eq!((events.latest().count(), events.dropped()), (MAX_EVENTS, 3));
        let begun: Vec<u64> = events.latest().map(|event| event.begun_at.0).collect();
        assert_eq!((begun.first(), begun.last()), (Some(&3), Some(&(MAX_EVENTS as u64 + 2))));
    }
}
