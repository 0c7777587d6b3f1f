//! Which address is this host pinned to? Each host is resolved by one access point, its steward, for the whole swarm.
//!
//! A host behind a content network resolves "nearby" at every access point: placed by each one's own answer it would be crawled by
//! all. So the steward resolves once, and every member uses its answer for as long as the pin holds.
//!
//! A look-up that fails for the moment ([`ResolveError::is_transient`]) says nothing of the name: it is repeated after a pause, which
//! doubles each time. After as many failures as the settings allow, the host counts as one without an address.

use nearcrawl_model::{
    fetch::{LocatedHost, ResolveError},
    ids::Ticket,
    time::{Millis, Moment},
    url::Host,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How many hosts' pins are remembered.
pub(crate) const MAX_PINS: usize = 200_000;

/// How long a steward's word is believed at most.
const LONGEST_PIN: Millis = 7 * 86_400_000;

/// How long a failure is believed.
const FAILURE_HOLDS: Millis = 300_000;

/// Look-ups of one host that may fail for the moment, one after another, before a daemon takes it for one without an address: ten
/// minutes pass between the first and the last.
pub const MAX_LOOKUPS: u32 = 8;

/// The same in a crawl without a swarm, where people wait for its end: 15 s.
pub const MAX_LOOKUPS_ALONE: u32 = 3;

/// The pause after the first look-up that failed for the moment; it doubles with each further one, up to [`FAILURE_HOLDS`].
const LOOK_UP_AGAIN: Millis = 5_000;

/// How many look-ups may be under way.
pub(crate) const MAX_RESOLVING: usize = 32;

/// Hosts whose stewards were asked and have not answered. More than that are not on their way at once.
const MAX_ASKED: usize = 200_000;

/// Members' questions that wait for a look-up of ours. So many bound the queue, too: each puts in one host at most.
pub(crate) const MAX_LOOKUP_QUESTIONS: usize = 4_096;

/// What is known of a host's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// It is pinned here.
    At(LocatedHost),
    /// It has no usable address.
    Nowhere(ResolveError),
    /// Its last look-up failed for the moment; it is not repeated before then.
    Later(ResolveError, Moment),
    /// Nothing; it must be looked up.
    Unknown,
}

/// What the last look-up of a host came to.
#[derive(Debug)]
struct Pin {
    answer: Result<LocatedHost, ResolveError>,
    /// How long it is believed.
    until: Moment,
    /// How many look-ups in a row have failed for the moment.
    failures: u32,
    /// Whether it failed for the moment and is to be repeated.
    is_repeated: bool,
    /// Whether a member would not take the host in at this address.
    is_doubted: bool,
}

/// Pins, and the steward's duty of making them.
#[derive(Debug, Default)]
pub(crate) struct Locator {
    pins: BTreeMap<Host, Pin>,
    /// When the steward of a host was asked last; at most [`MAX_ASKED`].
    asked: BTreeMap<Host, Moment>,
    resolving: BTreeSet<Host>,
    queue: VecDeque<Host>,
    /// What is in the queue.
    queued: BTreeSet<Host>,
    /// Members that wait for a look-up of ours, by their tickets.
    waiting: BTreeMap<Host, Vec<Ticket>>,
    /// How many tickets these are; at most [`MAX_LOOKUP_QUESTIONS`].
    questions: usize,
}

impl Locator {
    /// What is known now. A pin's remaining time is brought up to date.
    pub(crate) fn lookup(&self, host: &Host, now: Moment) -> Lookup {
        let Some(pin) = self.pins.get(host).filter(|pin| pin.until > now) else { return Lookup::Unknown };
        match &pin.answer {
            Ok(located) => Lookup::At(LocatedHost { valid_for: pin.until.since(now), ..located.clone() }),
            Err(failure) if pin.is_repeated => Lookup::Later(*failure, pin.until),
            Err(failure) => Lookup::Nowhere(*failure),
        }
    }

    /// Notes an answer. Beyond [`MAX_PINS`] expired pins go first, then the whole memory: pins can be asked for again.
    /// Returns whether it stands: not if the look-up failed for the moment and is to be repeated, which is done if fewer than
    /// `max_lookups` have failed.
    pub(crate) fn learn(&mut self, host: &Host, answer: Result<LocatedHost, ResolveError>, now: Moment, max_lookups: u32) -> bool {
        if self.pins.len() >= MAX_PINS {
            self.pins.retain(|_, pin| pin.until > now);
            if self.pins.len() >= MAX_PINS {
                self.pins.clear();
            }
        }
        let before = self.pins.get(host).map_or(0, |pin| pin.failures);
        let transient = answer.as_ref().is_err_and(|failure| failure.is_transient());
        let failures = if transient { (before + 1).min(max_lookups) } else { 0 };
        let holds = match &answer {
            Ok(located) => located.valid_for.min(LONGEST_PIN),
            Err(_) if transient && failures < max_lookups => {
                (LOOK_UP_AGAIN << failures.saturating_sub(1).min(MAX_LOOKUPS)).min(FAILURE_HOLDS)
            }
            Err(_) => FAILURE_HOLDS,
        };
        let is_repeated = transient && failures < max_lookups;
        self.asked.remove(host);
        self.pins.insert(host.clone(), Pin { answer, until: now.after(holds), failures, is_repeated, is_doubted: false });
        !is_repeated
    }

    /// A member did not take this host in at its address: it may have to ask the steward first. If it does not a second time either, the
    /// address is asked for anew.
    pub(crate) fn doubt(&mut self, host: &Host) {
        if let Some(pin) = self.pins.get_mut(host)
            && !std::mem::replace(&mut pin.is_doubted, true)
        {
            return;
        }
        self.pins.remove(host);
    }

    /// Whether to ask the steward now: true at most once in `patience`.
    pub(crate) fn should_ask(&mut self, host: &Host, now: Moment, patience: Millis) -> bool {
        let due = self.asked.get(host).is_none_or(|at| now.since(*at) >= patience);
        if due {
            self.limit_asked(now, patience);
            self.asked.insert(host.clone(), now);
        }
        due
    }

    /// Beyond [`MAX_ASKED`] those go first that may be asked again, then all: then some are asked again sooner.
    fn limit_asked(&mut self, now: Moment, patience: Millis) {
        if self.asked.len() >= MAX_ASKED {
            self.asked.retain(|_, at| now.since(*at) < patience);
            if self.asked.len() >= MAX_ASKED {
                self.asked.clear();
            }
        }
    }

    /// No member answered: the next [`Locator::should_ask`] may ask again at once.
    pub(crate) fn unasked(&mut self, host: &Host) {
        self.asked.remove(host);
    }

    /// Steward: look this host up; `ticket` is the member who waits for it, if any. False if too many members wait: then nothing is done.
    pub(crate) fn resolve(&mut self, host: &Host, ticket: Option<Ticket>) -> bool {
        if let Some(ticket) = ticket {
            if self.questions >= MAX_LOOKUP_QUESTIONS {
                return false;
            }
            self.questions += 1;
            self.waiting.entry(host.clone()).or_default().push(ticket);
        }
        if !self.resolving.contains(host) && self.queued.insert(host.clone()) {
            self.queue.push_back(host.clone());
        }
        true
    }

    /// Steward: the next look-up to start, if there is room.
    pub(crate) fn next_lookup(&mut self) -> Option<Host> {
        if self.resolving.len() >= MAX_RESOLVING {
            return None;
        }
        let host = self.queue.pop_front()?;
        self.queued.remove(&host);
        self.resolving.insert(host.clone());
        Some(host)
    }

    /// Steward: a look-up ended. Returns the tickets of those who wait for it, and whether the answer stands, as [`Locator::learn`] says.
    pub(crate) fn resolved(
        &mut self,
        host: &Host,
        answer: Result<LocatedHost, ResolveError>,
        now: Moment,
        max_lookups: u32,
    ) -> (Vec<Ticket>, bool) {
        self.resolving.remove(host);
        let stands = self.learn(host, answer, now, max_lookups);
        let tickets = self.waiting.remove(host).unwrap_or_default();
        self.questions -= tickets.len();
        (tickets, stands)
    }

    /// Members' questions that wait for a look-up of ours: at most [`MAX_LOOKUP_QUESTIONS`].
    pub(crate) fn questions(&self) -> usize {
        self.questions
    }

    /// Pins and failures remembered, expired ones included: at most [`MAX_PINS`].
    pub(crate) fn remembered(&self) -> usize {
        self.pins.len()
    }

    /// Look-ups of ours under way: at most [`MAX_RESOLVING`].
    pub(crate) fn resolving(&self) -> usize {
        self.resolving.len()
    }

    /// Hosts that this access point, as their steward, is looking up or will.
    pub(crate) fn looking_up(&self) -> impl Iterator<Item = &Host> {
        self.resolving.iter().chain(&self.queue)
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
        assert_eq!(locator.resolved(&a, Ok(located("a.ke", 1000)), Moment(0), MAX_LOOKUPS), (vec![Ticket(7), Ticket(8)], true));
        assert_eq!(locator.lookup(&a, Moment(400)), Lookup::At(located("a.ke", 600)));
        assert_eq!(locator.lookup(&a, Moment(1000)), Lookup::Unknown);
    }

    #[test]
    fn a_failure_for_the_moment_is_repeated_after_growing_pauses_and_believed_at_last() {
        let (mut locator, a) = (Locator::default(), host("a.ke"));
        let failure = [ResolveError::TimedOut, ResolveError::ServerFailed, ResolveError::Crashed];
        let (mut now, mut pauses) = (Moment(0), Vec::new());
        for number in 0.. {
            let failure = failure[number % 3];
            let stands = locator.learn(&a, Err(failure), now, MAX_LOOKUPS);
            match locator.lookup(&a, now) {
                Lookup::Later(told, at) if !stands && told == failure => {
                    pauses.push(at.since(now));
                    assert_eq!(locator.lookup(&a, at), Lookup::Unknown, "it may be looked up again");
                    now = at;
                }
                Lookup::Nowhere(told) if stands && told == failure => break,
                other => panic!("{other:?} after {number}"),
            }
        }
        assert_eq!(pauses, [5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000]);
        now = now.after(FAILURE_HOLDS);
        assert!(locator.learn(&a, Err(ResolveError::TimedOut), now, MAX_LOOKUPS), "no pauses anew for a host that was given up");
        assert!(locator.learn(&a, Ok(located("a.ke", 1_000)), now, MAX_LOOKUPS));
        assert!(!locator.learn(&a, Err(ResolveError::TimedOut), now.after(1_000), MAX_LOOKUPS), "an answer begins the count anew");
    }

    #[test]
    fn members_questions_beyond_the_limit_are_refused_and_our_own_are_not() {
        let (mut locator, a) = (Locator::default(), host("a.ke"));
        for number in 0..MAX_LOOKUP_QUESTIONS {
            let name = if number == 0 { a.clone() } else { host(&format!("a{number}.ke")) };
            assert!(locator.resolve(&name, Some(Ticket(number as u64))));
        }
        assert!(!locator.resolve(&host("b.ke"), Some(Ticket(7))) && !locator.resolve(&a, Some(Ticket(7))));
        assert_eq!(locator.looking_up().count(), MAX_LOOKUP_QUESTIONS, "nothing was queued for them");
        assert!(locator.resolve(&host("c.ke"), None));
        assert_eq!(locator.next_lookup(), Some(a.clone()));
        assert_eq!(locator.resolved(&a, Err(ResolveError::NoSuchName), Moment(0), MAX_LOOKUPS).0, [Ticket(0)]);
        assert!(locator.resolve(&host("b.ke"), Some(Ticket(7))), "one was answered");
    }

    #[test]
    fn stewards_that_never_answer_do_not_fill_the_memory() {
        let mut locator = Locator::default();
        for number in 0..=MAX_ASKED {
            assert!(locator.should_ask(&host(&format!("a{number}.ke")), Moment(number as u64), 1_000));
        }
        assert_eq!(locator.asked.len(), 1_000, "those that may not be asked again yet, and the last");
        for number in 0..MAX_ASKED {
            locator.should_ask(&host(&format!("b{number}.ke")), Moment(MAX_ASKED as u64), 1_000);
            assert!(locator.asked.len() <= MAX_ASKED);
        }
    }

    #[test]
    fn the_steward_is_asked_once_until_patience_ends() {
        let mut locator = Locator::default();
        let a = host("a.ke");
        assert!(locator.should_ask(&a, Moment(0), 100));
        assert!(!locator.should_ask(&a, Moment(99), 100));
        assert!(locator.should_ask(&a, Moment(100), 100));
        locator.learn(&a, Err(ResolveError::NoSuchName), Moment(100), MAX_LOOKUPS);
        assert_eq!(locator.lookup(&a, Moment(101)), Lookup::Nowhere(ResolveError::NoSuchName));
    }
}
