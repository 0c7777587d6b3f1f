//! Have we been cut off? A member that may be presumed dead must have stopped before the others take over what it owns.
//!
//! The fence is told at every change whether enough of the settled members answer. After too long a time without, it closes;
//! it opens again when enough of them have answered for a while, so that newer claims arrive before the first request goes out.

use nearcrawl_model::time::{Millis, Moment};
use std::fmt;

/// Why this access point must not fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceReason {
    /// It has just started, and not enough of the members it last knew have answered yet.
    NotHeardSinceStart,
    /// Fewer than half of the settled members answer.
    Minority,
    /// No member was heard of for this long, in milliseconds.
    Silence(Millis),
}

impl fmt::Display for FenceReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FenceReason::NotHeardSinceStart => f.write_str("just started: waiting for answers from enough of the members last known"),
            FenceReason::Minority => {
                f.write_str("cut off: fewer than half of the swarm answers, so the others may be taking over; check this machine's network")
            }
            FenceReason::Silence(silence) => {
                write!(f, "cut off: no message from the swarm for {} s; check this machine's network", silence / 1000)
            }
        }
    }
}

/// The fence itself. It only knows whether there is a quorum; who counts is the roster's business.
#[derive(Clone, Debug)]
pub(crate) struct Fence {
    /// For how long the quorum may be missing, in milliseconds.
    fence_after: Millis,
    /// For how long it must be back, in milliseconds.
    resume_after: Millis,
    /// Since when the quorum has been missing.
    losing_since: Option<Moment>,
    /// Since when it has been back.
    regained_since: Option<Moment>,
    /// Closed, and why.
    closed: Option<FenceReason>,
    /// When any member was last heard of.
    last_heard: Moment,
    /// Whether silence proves anything: not in a swarm of one or two.
    silence_counts: bool,
}

impl Fence {
    /// A fence at the access point's start; `closed` if it knew a swarm of three or more before.
    pub(crate) fn new(now: Moment, fence_after: Millis, resume_after: Millis, closed: bool) -> Fence {
        Fence {
            fence_after,
            resume_after,
            losing_since: None,
            regained_since: None,
            closed: closed.then_some(FenceReason::NotHeardSinceStart),
            last_heard: now,
            silence_counts: false,
        }
    }

    /// A member was heard of: anything that a member sent counts.
    pub(crate) fn heard(&mut self, now: Moment) {
        // The others may have taken over during the silence: one word from them does not undo that.
        self.close_if_due(now);
        self.last_heard = self.last_heard.max(now);
    }

    /// Whether enough members answer now, and how many members are settled, this one included.
    pub(crate) fn observe(&mut self, now: Moment, quorum: bool, settled: usize) {
        self.silence_counts = settled >= 3;
        if quorum {
            self.close_if_due(now);
            self.losing_since = None;
            if self.closed.is_some() {
                let since = *self.regained_since.get_or_insert(now);
                if now.since(since) >= self.resume_after && self.silence(now).is_none() {
                    self.closed = None;
                    self.regained_since = None;
                }
            }
        } else {
            self.regained_since = None;
            self.losing_since.get_or_insert(now);
            self.close_if_due(now);
        }
    }

    /// Must this access point refrain from fetching? To be asked right before each request, with the time of then.
    pub(crate) fn fenced(&self, now: Moment) -> Option<FenceReason> {
        self.closed.or_else(|| self.due(now))
    }

    /// What closes the fence now, if anything.
    fn due(&self, now: Moment) -> Option<FenceReason> {
        let lost = self.losing_since.is_some_and(|since| now.since(since) >= self.fence_after);
        if lost { Some(FenceReason::Minority) } else { self.silence(now) }
    }

    fn silence(&self, now: Moment) -> Option<FenceReason> {
        let silence = now.since(self.last_heard);
        (self.silence_counts && silence >= self.fence_after).then_some(FenceReason::Silence(silence))
    }

    fn close_if_due(&mut self, now: Moment) {
        if self.closed.is_none() {
            self.closed = self.due(now);
            if self.closed.is_some() {
                self.regained_since = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment(seconds * 1000)
    }

    fn fence() -> Fence {
        Fence::new(at(0), 30_000, 5_000, false)
    }

    #[test]
    fn a_lost_quorum_closes_it_after_thirty_seconds_and_a_regained_one_opens_it_after_five() {
        let mut fence = fence();
        fence.observe(at(10), false, 5);
        fence.heard(at(25));
        fence.heard(at(39));
        assert_eq!(fence.fenced(at(39)), None);
        assert_eq!(fence.fenced(at(40)), Some(FenceReason::Minority), "without being told anything in between");
        fence.heard(at(41));
        fence.observe(at(41), true, 5);
        assert!(fence.fenced(at(45)).is_some());
        fence.heard(at(46));
        fence.observe(at(46), true, 5);
        assert_eq!(fence.fenced(at(46)), None);
    }

    #[test]
    fn a_quorum_that_comes_back_in_time_changes_nothing() {
        let mut fence = fence();
        fence.observe(at(10), false, 5);
        fence.heard(at(20));
        fence.heard(at(30));
        fence.observe(at(30), true, 5);
        fence.observe(at(31), false, 5);
        assert_eq!(fence.fenced(at(45)), None);
    }

    #[test]
    fn silence_closes_it_from_three_members_on() {
        let mut pair = fence();
        pair.observe(at(1), true, 2);
        assert_eq!(pair.fenced(at(10_000)), None);
        let mut three = fence();
        three.observe(at(1), true, 3);
        three.heard(at(5));
        assert_eq!(three.fenced(at(34)), None);
        assert_eq!(three.fenced(at(35)), Some(FenceReason::Silence(30_000)));
    }

    #[test]
    fn one_word_after_a_long_sleep_does_not_open_it() {
        let mut fence = fence();
        fence.observe(at(1), true, 3);
        fence.heard(at(5));
        // The laptop slept for an hour; the first thing that happens is that a member is heard.
        fence.heard(at(3_600));
        assert!(fence.fenced(at(3_600)).is_some());
        fence.observe(at(3_601), true, 3);
        fence.observe(at(3_607), true, 3);
        assert_eq!(fence.fenced(at(3_607)), None);
    }

    #[test]
    fn a_restart_into_a_known_swarm_begins_closed() {
        let mut fence = Fence::new(at(0), 30_000, 5_000, true);
        assert_eq!(fence.fenced(at(0)), Some(FenceReason::NotHeardSinceStart));
        fence.heard(at(1));
        fence.observe(at(1), true, 3);
        fence.observe(at(6), true, 3);
        assert_eq!(fence.fenced(at(6)), None);
    }
}
