//! Locates hosts: each is resolved by one access point, its steward, for the whole swarm, and pinned to one address.
//!
//! A host behind a content network resolves "nearby" at every access point: placed by each one's own answer it would be crawled by
//! all. So the steward resolves once, and every member uses its answer for as long as the pin holds.
//!
//! A look-up that fails for the moment ([`ResolveError::is_transient`]) says nothing of the name: it is repeated after a pause, which
//! doubles each time. After as many failures as the settings allow, the host counts as one without an address. One that had an address
//! keeps it meanwhile: an answer that is too old is better than none (RFC 8767).
//!
//! A host has moved if the address it is pinned to is not among those that its name has any more. Only the owner of that address can say
//! that its journals have gone where the host went, so a steward that finds a host elsewhere goes on telling the address before until the
//! owner has asked for the new one, or says that it does not have the host.

use nearcrawl_model::{
    fetch::{LocatedHost, ResolveError},
    ids::Ticket,
    time::{Millis, Moment},
    url::Host,
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::IpAddr,
};

/// How many hosts' pins are remembered.
pub(crate) const MAX_PINS: usize = 200_000;

/// How long a steward's answer is believed at most.
const MAX_PINNED_FOR: Millis = 7 * 86_400_000;

/// How long a failure is believed.
const FAILURE_HOLDS: Millis = 300_000;

/// Look-ups of one host that may fail for the moment, one after another, before a daemon takes it for one without an address: ten
/// minutes pass between the first and the last.
pub const MAX_LOOKUPS: u32 = 8;

/// The same in a crawl without a swarm, where people wait for its end: 15 s.
pub const MAX_LOOKUPS_ALONE: u32 = 3;

/// The pause after the first look-up that failed for the moment; it doubles with each further one, up to [`FAILURE_HOLDS`].
const LOOK_UP_AGAIN: Millis = 5_000;

/// For how long a look-up of ours serves owners who ask whether the host has moved: whoever asks again and again has a name looked up once
/// in that time.
const LOOKED_UP_ANEW: Millis = 60_000;

/// A steward's answer is not asked for anew within this time.
const FRESH: Millis = 5_000;

/// A site begins at an address that was learnt within this time.
const RECENT: Millis = 300_000;

/// For how long a moved host stays at its address before while its owner there is being told.
const MOVING_HOLDS: Millis = 5_000;

/// For how long what an owner said of a host holds, if a look-up leads elsewhere and the owner neither asks where it is nor says that it does
/// not have it: so long it may take until a silent owner's subnets are taken over.
const HINT_HOLDS: Millis = 120_000;

/// After so long a moved host counts as being at its new address, whether its owner handed it over or not.
const MOVES_WITHIN: Millis = 600_000;

/// How many look-ups may be under way. They wait for name servers most of the time, and stewards look up for all: with 32, and answers
/// after 30 ms, three members looked 3,200 names up in a second, and those of other servers waited for those of an address with very many.
pub(crate) const MAX_RESOLVING: usize = 256;

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
    /// When it was learnt.
    learnt: Moment,
    /// Whether only the owner of the address said so.
    is_hint: bool,
    /// What the owner of an address said, if a look-up of ours did not find the host there, and since when.
    hinted: Option<(LocatedHost, Moment)>,
    /// Where its name leads, if its owner was told and has not handed it over yet, and since when.
    moving: Option<(LocatedHost, Moment)>,
    /// When we looked it up ourselves, if we did.
    looked_up: Option<Moment>,
}

/// What came of a look-up of ours.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LookedUp {
    /// Members that wait for it.
    pub(crate) tickets: Vec<Ticket>,
    /// What they are told.
    pub(crate) answer: Result<LocatedHost, ResolveError>,
    /// Owners that ask whether the host has moved.
    pub(crate) confirming: Vec<Ticket>,
    /// What they are told: where its name leads.
    pub(crate) confirmed: Result<LocatedHost, ResolveError>,
    /// Whether it stands: not if it failed for the moment and is to be repeated.
    pub(crate) stands: bool,
    /// The address before, and where the name leads, if that is not what is told: the owner of the address before is to be told first.
    pub(crate) elsewhere: Option<(IpAddr, LocatedHost)>,
}

/// Pins, and the steward's duty of making them.
#[derive(Debug, Default)]
pub(crate) struct Locator {
    pins: BTreeMap<Host, Pin>,
    /// When the steward of a host was asked last; at most [`MAX_ASKED`].
    asked: BTreeMap<Host, Moment>,
    resolving: BTreeSet<Host>,
    /// Hosts being looked up, or about to be, whose owners asked whether they are still at this address, and the members among these.
    confirming: BTreeMap<Host, (IpAddr, Vec<Ticket>)>,
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
            Ok(located) => located.valid_for.min(MAX_PINNED_FOR),
            Err(_) if transient && failures < max_lookups => {
                (LOOK_UP_AGAIN << failures.saturating_sub(1).min(MAX_LOOKUPS)).min(FAILURE_HOLDS)
            }
            Err(_) => FAILURE_HOLDS,
        };
        let is_repeated = transient && failures < max_lookups;
        self.asked.remove(host);
        let (until, is_doubted, is_hint) = (now.after(holds), false, false);
        let pin =
            Pin { answer, until, failures, is_repeated, is_doubted, learnt: now, is_hint, hinted: None, moving: None, looked_up: None };
        self.pins.insert(host.clone(), pin);
        !is_repeated
    }

    /// A member did not take this host in at its address: it may have to ask the steward first. If it does not a second time either, the
    /// address is asked for anew. Whether it is the first time.
    pub(crate) fn doubt(&mut self, host: &Host) -> bool {
        if let Some(pin) = self.pins.get_mut(host)
            && !std::mem::replace(&mut pin.is_doubted, true)
        {
            return true;
        }
        self.pins.remove(host);
        false
    }

    /// Whether what is known of this host was learnt just now.
    pub(crate) fn is_fresh(&self, host: &Host, now: Moment) -> bool {
        self.pins.get(host).is_some_and(|pin| now.since(pin.learnt) < FRESH)
    }

    /// Whether what is known of this host was learnt so lately that a site may begin there. What holds for no longer than [`MOVING_HOLDS`] is
    /// told of a host that moves, or about to be looked up again.
    pub(crate) fn is_recent(&self, host: &Host, now: Moment) -> bool {
        let moves = |pin: &Pin| pin.answer.as_ref().is_ok_and(|located| located.valid_for <= MOVING_HOLDS);
        self.pins.get(host).is_some_and(|pin| now.since(pin.learnt) < RECENT && !moves(pin))
    }

    /// What is known of this host is too old: the next question about it goes to its steward.
    pub(crate) fn outdate(&mut self, host: &Host, now: Moment) {
        if let Some(pin) = self.pins.get_mut(host) {
            pin.until = now;
        }
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

    /// Steward: where this host's name leads, if we looked it up a moment ago.
    pub(crate) fn confirmed(&self, host: &Host, now: Moment) -> Option<Result<LocatedHost, ResolveError>> {
        let pin = self.pins.get(host).filter(|pin| (pin.until > now || pin.moving.is_some()) && !pin.is_repeated)?;
        pin.looked_up.filter(|at| now.since(*at) < LOOKED_UP_ANEW)?;
        if let Some((moving, _)) = &pin.moving {
            return Some(Ok(moving.clone()));
        }
        Some(pin.answer.clone().map(|located| LocatedHost { valid_for: pin.until.since(now), ..located }))
    }

    /// Steward: look up whether this host is still at this address; `ticket` is the member that asks, if it is not ourselves. False if too
    /// many members wait: then nothing is done.
    pub(crate) fn confirm(&mut self, host: &Host, address: IpAddr, ticket: Option<Ticket>) -> bool {
        if ticket.is_some() && self.questions >= MAX_LOOKUP_QUESTIONS {
            return false;
        }
        self.questions += usize::from(ticket.is_some());
        let is_known = self.last_address(host) == Some(address);
        let (about, tickets) = self.confirming.entry(host.clone()).or_insert((address, Vec::new()));
        // What the owner of the address that is known asks counts.
        *about = if is_known { address } else { *about };
        tickets.extend(ticket);
        self.resolve(host, None)
    }

    /// Steward: the owner of this address has the host there: another member was its steward before, or it has just been handed over. What
    /// we did not know, or may have learnt before another member was the steward (`was_others`), is looked up when somebody asks. Where it is
    /// by what we know, if that is elsewhere.
    pub(crate) fn hint(&mut self, host: &Host, address: IpAddr, now: Moment, was_others: impl Fn(Moment) -> bool) -> Option<LocatedHost> {
        let pin = self.pins.get(host);
        if let Some(pin) = pin
            && let Ok(known) = &pin.answer
            && (pin.moving.is_some() || !was_others(pin.learnt))
        {
            let moved = pin.moving.clone().filter(|(moving, _)| moving.address == address);
            let elsewhere = (known.address != address && moved.is_none()).then(|| known.clone());
            if let Some((moved, _)) = moved {
                self.learn(host, Ok(moved), now, 1);
            }
            return elsewhere;
        }
        let is_known = pin.and_then(|pin| pin.hinted.as_ref()).is_some_and(|(known, _)| known.address == address);
        if !is_known && (self.pins.len() < MAX_PINS || pin.is_some()) {
            let answer = Ok(LocatedHost { host: host.clone(), address, valid_for: 0 });
            let (until, learnt, is_repeated, is_doubted, is_hint, hinted) = (now, now, false, false, true, None);
            let pin = Pin { answer, until, failures: 0, is_repeated, is_doubted, learnt, is_hint, hinted, moving: None, looked_up: None };
            self.pins.insert(host.clone(), pin);
        }
        None
    }

    /// When what is known of this host was learnt; the beginning of time if nothing is.
    pub(crate) fn learnt(&self, host: &Host) -> Moment {
        self.pins.get(host).map_or(Moment::default(), |pin| pin.learnt)
    }

    /// What is known of where this host was last, however long ago.
    fn before(&self, host: &Host) -> Option<LocatedHost> {
        let pin = self.pins.get(host)?;
        pin.answer.clone().ok().or_else(|| pin.hinted.clone().map(|(hinted, _)| hinted))
    }

    /// Where this host was last, however long ago.
    fn last_address(&self, host: &Host) -> Option<IpAddr> {
        self.before(host).map(|before| before.address)
    }

    /// Steward: the next look-up to start, if there is room, and the address that holds if it is among the answers.
    pub(crate) fn next_lookup(&mut self) -> Option<(Host, Option<IpAddr>)> {
        if self.resolving.len() >= MAX_RESOLVING {
            return None;
        }
        let host = self.queue.pop_front()?;
        self.queued.remove(&host);
        self.resolving.insert(host.clone());
        let pinned = self.last_address(&host).or_else(|| self.confirming.get(&host).map(|(address, _)| *address));
        Some((host, pinned))
    }

    /// Steward: a look-up ended. `has_owner` says whether a member may have the journals of hosts at an address.
    pub(crate) fn resolved(
        &mut self,
        host: &Host,
        answer: Result<LocatedHost, ResolveError>,
        now: Moment,
        max_lookups: u32,
        has_owner: impl Fn(IpAddr) -> bool,
    ) -> LookedUp {
        self.resolving.remove(host);
        let tickets = self.waiting.remove(host).unwrap_or_default();
        self.questions -= tickets.len();
        let (about, confirming) = self.confirming.remove(host).map_or((None, Vec::new()), |(about, asked)| (Some(about), asked));
        self.questions -= confirming.len();
        let (pin, before) = (self.pins.get(host), self.before(host));
        let is_confirmed = before.as_ref().is_some_and(|before| about == Some(before.address));
        let hinted_since = pin.and_then(|pin| pin.hinted.as_ref().map(|(_, since)| *since).or_else(|| pin.is_hint.then_some(now)));
        let told = pin.and_then(|pin| pin.moving.clone());
        let since = told.as_ref().map(|(_, since)| *since);
        let stays = |is_confirmed: bool| match (since, hinted_since) {
            (Some(since), _) => now.since(since) < MOVES_WITHIN,
            (None, Some(since)) => is_confirmed || now.since(since) < HINT_HOLDS,
            (None, None) => true,
        };
        let mut confirmed = answer.clone();
        let (mut elsewhere, mut moving, mut hinted) = (None, None, None);
        let answer = match (answer, before) {
            // An answer that is too old is better than none; what others said of it is not.
            (Err(failure), Some(before)) if failure.is_transient() && hinted_since.is_none() => {
                confirmed = Ok(LocatedHost { valid_for: FAILURE_HOLDS, ..before });
                confirmed.clone()
            }
            (Err(failure), Some(before)) if failure.is_transient() => {
                hinted = hinted_since.map(|since| (before, since));
                Err(failure)
            }
            (Ok(new), Some(before)) if new.address != before.address && has_owner(before.address) && stays(is_confirmed) => {
                if is_confirmed || told.is_some_and(|(told, _)| told.address == new.address) {
                    moving = Some((new, since.unwrap_or(now)));
                    Ok(LocatedHost { valid_for: MOVING_HOLDS, ..before })
                } else {
                    elsewhere = Some((before.address, new));
                    // Who said where it is may not know yet, or lie: it is asked.
                    hinted = hinted_since.map(|since| (before.clone(), since));
                    if hinted.is_some() { Err(ResolveError::TimedOut) } else { Ok(LocatedHost { valid_for: MOVING_HOLDS, ..before }) }
                }
            }
            (answer, _) => answer,
        };
        let stands = self.learn(host, answer.clone(), now, max_lookups);
        if let Some(pin) = self.pins.get_mut(host) {
            pin.hinted = hinted;
            if elsewhere.is_none() {
                (pin.looked_up, pin.moving) = (Some(now), moving);
            }
        }
        LookedUp { tickets, answer, confirming, confirmed, stands, elsewhere }
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
        assert_eq!((locator.next_lookup(), locator.next_lookup()), (Some((a.clone(), None)), None));
        let told = locator.resolved(&a, Ok(located("a.ke", 1000)), Moment(0), MAX_LOOKUPS, |_| true);
        assert_eq!((told.tickets, told.stands), (vec![Ticket(7), Ticket(8)], true));
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
        assert_eq!(locator.next_lookup(), Some((a.clone(), None)));
        assert_eq!(locator.resolved(&a, Err(ResolveError::NoSuchName), Moment(0), MAX_LOOKUPS, |_| true).tickets, [Ticket(0)]);
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

    fn at(address: &str) -> LocatedHost {
        LocatedHost { address: address.parse().unwrap(), ..located("a.ke", 100_000) }
    }

    /// Looks `a.ke` up.
    fn look_up(locator: &mut Locator, answer: Result<LocatedHost, ResolveError>, now: Moment, has_owner: bool) -> LookedUp {
        locator.resolve(&host("a.ke"), None);
        locator.next_lookup().unwrap();
        locator.resolved(&host("a.ke"), answer, now, MAX_LOOKUPS, |_| has_owner)
    }

    #[test]
    fn a_host_that_moved_stays_where_it_has_an_owner_until_that_one_has_handed_it_over() {
        let (mut locator, a) = (Locator::default(), host("a.ke"));
        look_up(&mut locator, Ok(at("9.0.0.1")), Moment(0), true);
        let told = look_up(&mut locator, Ok(at("9.0.1.1")), Moment(200_000), true);
        assert_eq!((told.answer.unwrap().address, told.elsewhere), (at("9.0.0.1").address, Some((at("9.0.0.1").address, at("9.0.1.1")))));
        assert_eq!(locator.lookup(&a, Moment(204_999)), Lookup::At(LocatedHost { valid_for: 1, ..at("9.0.0.1") }));
        assert_eq!(locator.confirmed(&a, Moment(204_000)), None, "what was found elsewhere is looked up for the owner");
        assert!(locator.confirm(&a, at("9.0.0.1").address, Some(Ticket(4))));
        let told = look_up(&mut locator, Ok(at("9.0.1.1")), Moment(219_000), true);
        assert_eq!((told.confirming, told.confirmed, told.elsewhere), (vec![Ticket(4)], Ok(at("9.0.1.1")), None));
        assert_eq!(told.answer.unwrap().address, at("9.0.0.1").address, "others are told when it is there");
        assert_eq!(locator.confirmed(&a, Moment(220_000)), Some(Ok(at("9.0.1.1"))), "one look-up serves for a minute");
        assert_eq!(locator.hint(&a, at("9.0.1.1").address, Moment(230_000), |_| false), None, "its new owner has it");
        assert!(matches!(locator.lookup(&a, Moment(230_000)), Lookup::At(located) if located.address == at("9.0.1.1").address));
        let told = look_up(&mut locator, Ok(at("9.0.2.1")), Moment(400_000), false);
        assert_eq!((told.answer, told.elsewhere), (Ok(at("9.0.2.1")), None), "nobody can have its journals");
    }

    #[test]
    fn an_owner_that_never_hands_a_host_over_does_not_keep_it() {
        let mut locator = Locator::default();
        look_up(&mut locator, Ok(at("9.0.0.1")), Moment(0), true);
        for now in (100_000..700_000).step_by(50_000).map(Moment) {
            locator.confirm(&host("a.ke"), at("9.0.0.1").address, None);
            assert_eq!(look_up(&mut locator, Ok(at("9.0.1.1")), now, true).answer.unwrap().address, at("9.0.0.1").address, "{now:?}");
        }
        let told = look_up(&mut locator, Ok(at("9.0.1.1")), Moment(100_000 + MOVES_WITHIN), true);
        assert_eq!((told.answer, told.elsewhere), (Ok(at("9.0.1.1")), None));
    }

    #[test]
    fn what_is_looked_up_anew_holds_if_it_is_among_the_answers_and_while_name_servers_fail() {
        let (mut locator, a) = (Locator::default(), host("a.ke"));
        assert!(locator.confirm(&a, at("9.0.0.7").address, None));
        assert_eq!(locator.next_lookup(), Some((a.clone(), Some(at("9.0.0.7").address))), "its owner says where it was");
        locator.resolved(&a, Ok(at("9.0.0.7")), Moment(0), MAX_LOOKUPS, |_| true);
        locator.confirm(&a, at("9.0.0.1").address, None);
        assert_eq!(locator.next_lookup(), Some((a.clone(), Some(at("9.0.0.7").address))), "its steward knows better");
        let told = locator.resolved(&a, Err(ResolveError::TimedOut), Moment(70_000), MAX_LOOKUPS, |_| true);
        assert_eq!((told.answer.unwrap().address, told.stands), (at("9.0.0.7").address, true));
        let told = look_up(&mut locator, Err(ResolveError::NoSuchName), Moment(700_000), true);
        assert_eq!(told.answer, Err(ResolveError::NoSuchName), "the name is gone");
    }

    #[test]
    fn what_an_owner_says_of_its_hosts_serves_a_new_steward_and_holds_nobody_up_for_long() {
        let (mut locator, a) = (Locator::default(), host("a.ke"));
        assert_eq!(locator.hint(&a, at("9.0.0.7").address, Moment(100), |_| false), None);
        assert_eq!(locator.lookup(&a, Moment(100)), Lookup::Unknown, "it is looked up all the same");
        locator.resolve(&a, None);
        assert_eq!(locator.next_lookup(), Some((a.clone(), Some(at("9.0.0.7").address))));
        let told = locator.resolved(&a, Ok(at("9.0.1.1")), Moment(200), MAX_LOOKUPS, |_| true);
        let elsewhere = Some((at("9.0.0.7").address, at("9.0.1.1")));
        assert_eq!((told.answer, told.elsewhere), (Err(ResolveError::TimedOut), elsewhere.clone()));
        assert_eq!(locator.hint(&a, at("9.0.0.7").address, Moment(300), |_| false), None, "it says so again");
        assert_eq!(look_up(&mut locator, Err(ResolveError::Crashed), Moment(6_000), true).elsewhere, None);
        let told = look_up(&mut locator, Ok(at("9.0.1.1")), Moment(119_000), true);
        assert_eq!((told.answer, told.elsewhere), (Err(ResolveError::TimedOut), elsewhere), "it may be silent");
        let told = look_up(&mut locator, Ok(at("9.0.1.1")), Moment(200 + HINT_HOLDS), true);
        assert_eq!(told.answer, Ok(at("9.0.1.1")), "whatever its owner says");
        assert_eq!(locator.hint(&a, at("9.0.0.7").address, Moment(200_000), |_| false), Some(at("9.0.1.1")));
    }

    #[test]
    fn a_host_of_which_an_owner_told_stays_there_while_the_owner_hands_it_over() {
        for asked_first in [false, true] {
            let (mut locator, a) = (Locator::default(), host("a.ke"));
            locator.hint(&a, at("9.0.0.7").address, Moment(100), |_| false);
            if !asked_first {
                look_up(&mut locator, Ok(at("9.0.1.1")), Moment(200), true);
            }
            for now in [300, 6_000, 60_000].map(Moment) {
                assert!(locator.confirm(&a, at("9.0.0.7").address, Some(Ticket(4))));
                let told = look_up(&mut locator, Ok(at("9.0.1.1")), now, true);
                assert_eq!((told.confirmed, told.elsewhere), (Ok(at("9.0.1.1")), None));
                assert_eq!(told.answer.unwrap().address, at("9.0.0.7").address, "{now:?}: others are told when it is there");
            }
            assert_eq!(locator.hint(&a, at("9.0.1.1").address, Moment(61_000), |_| false), None);
            assert!(matches!(locator.lookup(&a, Moment(61_000)), Lookup::At(located) if located == LocatedHost { ..at("9.0.1.1") }));
        }
    }

    #[test]
    fn what_an_owner_says_counts_more_than_what_was_learnt_before_another_member_was_the_steward() {
        let (mut locator, a) = (Locator::default(), host("a.ke"));
        look_up(&mut locator, Ok(at("9.0.0.1")), Moment(0), true);
        assert_eq!(locator.hint(&a, at("9.0.1.1").address, Moment(9_000), |_| false), Some(at("9.0.0.1")));
        assert_eq!(locator.hint(&a, at("9.0.1.1").address, Moment(9_000), |learnt| learnt < Moment(5_000)), None);
        assert_eq!(locator.lookup(&a, Moment(9_000)), Lookup::Unknown, "it is looked up");
        assert_eq!(look_up(&mut locator, Ok(at("9.0.1.1")), Moment(9_100), true).answer, Ok(at("9.0.1.1")));
    }

    #[test]
    fn only_the_owner_of_the_address_that_is_known_gives_a_host_away() {
        let (mut locator, a) = (Locator::default(), host("a.ke"));
        locator.hint(&a, at("9.0.0.1").address, Moment(0), |_| false);
        assert!(locator.confirm(&a, at("9.0.1.1").address, Some(Ticket(4))), "another owner asks, who has it already");
        let told = look_up(&mut locator, Ok(at("9.0.1.1")), Moment(100), true);
        assert_eq!((told.confirmed, told.elsewhere), (Ok(at("9.0.1.1")), Some((at("9.0.0.1").address, at("9.0.1.1")))));
    }
}
