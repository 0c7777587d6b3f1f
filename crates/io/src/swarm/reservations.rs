//! Reservations at members through which we are reached.
//!
//! There are two where that is possible, so that one may vanish.

use super::messages::Reached;
use libp2p::{Multiaddr, PeerId, core::transport::ListenerId, multiaddr::Protocol};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// Members that relay to us at a time.
const MAX_RELAYS: usize = 2;

/// A reservation that is not granted for so long is sought elsewhere.
const GRANTED_WITHIN: Duration = Duration::from_secs(10);

/// A member that did not grant one, or vanished, is left alone for so long.
const SHUNNED_FOR: Duration = Duration::from_secs(60);

/// How often a relay is asked whether it is still there: a machine that vanishes says nothing, and libp2p notices after minutes.
const ASKED_EVERY: Duration = Duration::from_secs(12);

/// Members that are left alone at a time.
const MAX_SHUNNED: usize = 256;

/// A place at a member.
#[derive(Debug)]
struct Held {
    relay: PeerId,
    listener: ListenerId,
    begun: Instant,
    asked: Instant,
    address: Option<Multiaddr>,
}

/// The places that we hold, by the listener that libp2p has for each: it may close one without saying which address ends.
#[derive(Debug, Default)]
pub(super) struct Reservations {
    held: Vec<Held>,
    shunned: HashMap<PeerId, Instant>,
}

impl Reservations {
    /// How many more relays are wanted.
    pub(super) fn wanted(&self, state: Reached) -> usize {
        if state == Reached::Behind { MAX_RELAYS.saturating_sub(self.held.len()) } else { 0 }
    }

    /// Whether this member may be asked for one.
    pub(super) fn may_ask(&self, relay: &PeerId, now: Instant) -> bool {
        self.held.iter().all(|held| held.relay != *relay) && self.shunned.get(relay).is_none_or(|until| now >= *until)
    }

    /// It was asked.
    pub(super) fn asked(&mut self, relay: PeerId, listener: ListenerId, now: Instant) {
        self.held.push(Held { relay, listener, begun: now, asked: now, address: None });
    }

    /// A listener has this address now; whether it is one of ours. Of several the one by TCP is taken: the relay is mostly connected by it.
    pub(super) fn granted(&mut self, listener: ListenerId, address: Multiaddr) -> bool {
        let Some(held) = self.held.iter_mut().find(|held| held.listener == listener) else { return false };
        let by_quic = address.iter().any(|part| part == Protocol::QuicV1);
        if held.address.is_none() || !by_quic {
            held.address = Some(address);
        }
        true
    }

    /// A listener has closed; whether it was one of ours.
    pub(super) fn closed(&mut self, listener: ListenerId, now: Instant) -> bool {
        let relay = self.held.iter().find(|held| held.listener == listener).map(|held| held.relay);
        relay.map(|relay| self.gone(&relay, now)).is_some()
    }

    /// A member vanished, or does not grant what was asked.
    pub(super) fn gone(&mut self, relay: &PeerId, now: Instant) {
        let before = self.held.len();
        self.held.retain(|held| held.relay != *relay);
        if self.held.len() < before {
            self.shunned.retain(|_, until| now < *until);
            if self.shunned.len() < MAX_SHUNNED {
                self.shunned.insert(*relay, now + SHUNNED_FOR);
            }
        }
    }

    /// Looks at the clock: which relays are to be asked whether they are still there. What was not granted in time is given up.
    pub(super) fn tick(&mut self, now: Instant) -> Vec<PeerId> {
        let late = |held: &&Held| held.address.is_none() && now.saturating_duration_since(held.begun) >= GRANTED_WITHIN;
        let late: Vec<PeerId> = self.held.iter().filter(late).map(|held| held.relay).collect();
        late.iter().for_each(|relay| self.gone(relay, now));
        let mut asked = Vec::new();
        for held in self.held.iter_mut().filter(|held| now.saturating_duration_since(held.asked) >= ASKED_EVERY) {
            held.asked = now;
            asked.push(held.relay);
        }
        asked
    }

    /// The members that relay to us, with the addresses at which we are reached through them.
    pub(super) fn granted_by(&self) -> impl Iterator<Item = (&PeerId, &Multiaddr)> {
        self.held.iter().filter_map(|held| Some((&held.relay, held.address.as_ref()?)))
    }

    /// Whether this member relays to us, or is to.
    pub(super) fn is_held(&self, relay: &PeerId) -> bool {
        self.held.iter().any(|held| held.relay == *relay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_relay_is_sought_when_one_closes_vanishes_or_does_not_grant() {
        let mut now = Instant::now();
        let (mut held, relays) = (Reservations::default(), [(); 4].map(|()| PeerId::random()));
        let listeners = [(); 4].map(|()| ListenerId::next());
        assert_eq!((held.wanted(Reached::Unknown), held.wanted(Reached::Public), held.wanted(Reached::Behind)), (0, 0, 2));
        held.asked(relays[0], listeners[0], now);
        held.asked(relays[1], listeners[1], now);
        assert_eq!((held.wanted(Reached::Behind), held.may_ask(&relays[0], now)), (0, false));
        assert!(held.granted(listeners[0], Multiaddr::empty()) && !held.granted(listeners[3], Multiaddr::empty()));
        now += GRANTED_WITHIN;
        assert!(held.tick(now).is_empty());
        assert_eq!((held.wanted(Reached::Behind), held.may_ask(&relays[1], now), held.granted_by().count()), (1, false, 1));
        held.asked(relays[2], listeners[2], now);
        now += ASKED_EVERY;
        assert_eq!(held.tick(now), [relays[0]], "the other one granted nothing");
        assert!(held.closed(listeners[0], now) && !held.closed(listeners[3], now));
        assert_eq!((held.wanted(Reached::Behind), held.granted_by().count()), (2, 0));
        assert!(!held.may_ask(&relays[0], now) && held.may_ask(&relays[0], now + SHUNNED_FOR));
    }
}
