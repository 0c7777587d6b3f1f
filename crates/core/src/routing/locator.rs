//! Which address is this host pinned to? Each host is resolved by one access point, its steward, for the whole swarm.
//!
//! A host behind a content network resolves "nearby" at every access point: placed by each one's own answer it would be crawled by
//! all. So the steward resolves once, and everybody uses its answer for as long as the pin holds.

use nearcrawl_model::{
    fetch::{LocatedHost, ResolveError},
    ids::Ticket,
    time::{Millis, Moment},
    url::Host,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How many hosts' pins are remembered.
pub const MAX_PINS: usize = 200_000;

/// How long a failure is believed.
const FAILURE_HOLDS: Millis = 300_000;

/// How many look-ups may be under way.
pub const MAX_RESOLVING: usize = 32;

/// What is known of a host's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// It is pinned here.
    At(LocatedHost),
    /// It has no usable address.
    Nowhere(ResolveError),
    /// Nothing; somebody must be asked.
    Unknown,
}

/// Pins, and the steward's duty of making them.
#[derive(Debug, Default)]
pub struct Locator {
    pins: BTreeMap<Host, (Result<LocatedHost, ResolveError>, Moment)>,
    asked: BTreeMap<Host, Moment>,
    resolving: BTreeSet<Host>,
    queue: VecDeque<Host>,
    /// What is in the queue.
    queued: BTreeSet<Host>,
    /// Members that wait for a look-up of ours, by their tickets.
    waiting: BTreeMap<Host, Vec<Ticket>>,
}

impl Locator {
    /// What is known now. A pin's remaining time is brought up to date.
    pub fn lookup(&self, host: &Host, now: Moment) -> Lookup {
        match self.pins.get(host) {
            Some((_, until)) if *until <= now => Lookup::Unknown,
            Some((Ok(located), until)) => Lookup::At(LocatedHost { valid_for: until.since(now), ..located.clone() }),
            Some((Err(failure), _)) => Lookup::Nowhere(*failure),
            None => Lookup::Unknown,
        }
    }

    /// Notes an answer. Beyond [`MAX_PINS`] expired pins go first, then the whole memory: pins can be asked for again.
    pub fn learn(&mut self, host: &Host, answer: Result<LocatedHost, ResolveError>, now: Moment) {
        if self.pins.len() >= MAX_PINS {
            self.pins.retain(|_, (_, until)| *until > now);
            if self.pins.len() >= MAX_PINS {
                self.pins.clear();
            }
        }
        let holds = answer.as_ref().map_or(FAILURE_HOLDS, |located| located.valid_for);
        self.asked.remove(host);
        self.pins.insert(host.clone(), (answer, now.after(holds)));
    }

    /// Whether to ask the steward now: true at most once in `patience`.
    pub fn should_ask(&mut self, host: &Host, now: Moment, patience: Millis) -> bool {
        let due = self.asked.get(host).is_none_or(|at| now.since(*at) >= patience);
        if due {
            self.asked.insert(host.clone(), now);
        }
        due
    }

    /// Nobody answered: the next [`Locator::should_ask`] may ask again at once.
    pub fn unasked(&mut self, host: &Host) {
        self.asked.remove(host);
    }

    /// Steward: look this host up; `ticket` is the member who waits for it, if any.
    pub fn resolve(&mut self, host: &Host, ticket: Option<Ticket>) {
        if let Some(ticket) = ticket {
            self.waiting.entry(host.clone()).or_default().push(ticket);
        }
        if !self.resolving.contains(host) && self.queued.insert(host.clone()) {
            self.queue.push_back(host.clone());
        }
    }

    /// Steward: the next look-up to start, if there is room.
    pub fn next_lookup(&mut self) -> Option<Host> {
        if self.resolving.len() >= MAX_RESOLVING {
            return None;
        }
        let host = self.queue.pop_front()?;
        self.queued.remove(&host);
        self.resolving.insert(host.clone());
        Some(host)
    }

    /// Steward: a look-up ended. Returns the tickets of those who wait for it.
    pub fn resolved(&mut self, host: &Host, answer: Result<LocatedHost, ResolveError>, now: Moment) -> Vec<Ticket> {
        self.resolving.remove(host);
        self.learn(host, answer, now);
        self.waiting.remove(host).unwrap_or_default()
    }

    /// Hosts that have no usable address, as far as this access point knows.
    pub fn nowhere(&self) -> usize {
        self.pins.values().filter(|(answer, _)| answer.is_err()).count()
    }

    /// Pins and failures remembered, expired ones included: at most [`MAX_PINS`].
    pub fn remembered(&self) -> usize {
        self.pins.len()
    }

    /// Look-ups of ours under way: at most [`MAX_RESOLVING`].
    pub fn resolving(&self) -> usize {
        self.resolving.len()
    }

    /// Hosts that this access point, as their steward, is looking up or will.
    pub fn looking_up(&self) -> impl Iterator<Item = &Host> {
        self.resolving.iter().chain(&self.queue)
    }

    /// Look-ups under way or queued.
    pub fn under_way(&self) -> usize {
        self.resolving.len() + self.queue.len() + self.asked.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Host {
        text.parse().unwrap()
    }

    fn located(name: &str, valid_for: Millis) -> LocatedHost {
        LocatedHost { host: host(name), address: "9.0.0.1".parse().unwrap(), valid_for }
    }

    #[test]
    fn a_pin_holds_for_its_time_and_one_lookup_serves_all_who_wait() {
        let mut locator = Locator::default();
        let a = host("a.ke");
        locator.resolve(&a, Some(Ticket(7)));
        locator.resolve(&a, Some(Ticket(8)));
        locator.resolve(&a, None);
        assert_eq!((locator.next_lookup(), locator.next_lookup()), (Some(a.clone()), None));
        assert_eq!(locator.resolved(&a, Ok(located("a.ke", 1000)), Moment(0)), [Ticket(7), Ticket(8)]);
        assert_eq!(locator.lookup(&a, Moment(400)), Lookup::At(located("a.ke", 600)));
        assert_eq!(locator.lookup(&a, Moment(1000)), Lookup::Unknown);
    }

    #[test]
    fn the_steward_is_asked_once_until_patience_ends() {
        let mut locator = Locator::default();
        let a = host("a.ke");
        assert!(locator.should_ask(&a, Moment(0), 100));
        assert!(!locator.should_ask(&a, Moment(99), 100));
        assert!(locator.should_ask(&a, Moment(100), 100));
        locator.learn(&a, Err(ResolveError::NoSuchName), Moment(100));
        assert_eq!(locator.lookup(&a, Moment(101)), Lookup::Nowhere(ResolveError::NoSuchName));
    }
}
