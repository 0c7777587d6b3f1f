//! Schedules visits to servers.
//!
//! Politeness: one request at a time to an address from the whole swarm, and a rest after each.
//!
//! Three levels: site → address → subnet block. The holder of an address's token may ask one of its sites one thing; the token
//! comes back with the answer, and the address rests for max(factor × answer time, crawl-delay, least delay) (Mercator's rule,
//! UC-16). Picking the next due address costs O(log n).
//!
//! An address may have more hosts than can be visited in months. So only [`WINDOW`] of them take turns; the others wait for their first
//! request in the order of a keyed hash ([`InLine`]). At any time those visited are those first in an order that no site can know or
//! choose: a uniform sample of all that are known, whatever the order in which they were discovered.

use super::politeness::Politeness;
use nearcrawl_model::{
    fingerprint::FingerprintKey,
    subnet::Subnet,
    time::{Millis, Moment},
    url::Host,
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::IpAddr,
};

/// Sites of one address that take turns. While there are as many, no further one begins its run, but for one in [`BEGINS_EVERY`] turns.
pub(crate) const WINDOW: usize = 16;

/// One in so many turns of an address begins a run though there are [`WINDOW`] others: their servers may have pages without end.
const BEGINS_EVERY: u32 = 64;

/// Hosts that wait at one address for their first request beyond which they do not count as waiting URLs.
const CROWD: usize = 64;

/// Tells the order of hosts from all else that the key is used for.
const ORDER: u64 = 0x006f_7264_6572;

/// Where a site stands among those of its address that wait for the first request of their run: earlier runs come first, so that nothing is
/// visited a second time before all was once; in a run it is the host's place. It depends on nothing but these, so it is the same after a
/// restart and at every owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InLine {
    /// The number of the run.
    pub run: u32,
    /// By [`place_of`].
    pub place: u64,
}

/// A host's place in line among those of its address: the same at every member, and not to be chosen by who names the host.
pub fn place_of(host: &Host, key: &FingerprintKey) -> u64 {
    key.of(host.as_str()).scoped(ORDER).0
}

/// What a site asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// The first request of its run.
    First(InLine),
    /// One more.
    Further,
}

/// The sites of one address that have something to ask, and when it may be asked again.
#[derive(Debug, Default)]
struct AddressQueue {
    /// Sites at this address that have begun their run and have something to ask, in turn.
    begun: VecDeque<Host>,
    /// Of those that have not begun it, the first in line, and all others. Most addresses have one site: no tree for that.
    next: Option<(InLine, Host)>,
    behind: BTreeMap<InLine, Host>,
    /// Turns since the last one that began a run.
    turns: u32,
    not_before: Moment,
    busy: bool,
    /// Whether the last turn was lent.
    lent: bool,
}

impl AddressQueue {
    fn is_empty(&self) -> bool {
        self.begun.is_empty() && self.next.is_none()
    }

    /// Sites that wait for the first request of their run.
    fn to_begin(&self) -> usize {
        usize::from(self.next.is_some()) + self.behind.len()
    }

    fn enter(&mut self, site: &Host, asks: Asks) {
        match (asks, &mut self.next) {
            (Asks::First(order), Some((first, _))) if *first == order => {}
            (Asks::First(order), Some(next)) => {
                let (order, host) = if order < next.0 { std::mem::replace(next, (order, site.clone())) } else { (order, site.clone()) };
                self.behind.insert(order, host);
            }
            (Asks::First(order), None) => self.next = Some((order, site.clone())),
            (Asks::Further, _) if !self.begun.contains(site) => {
                if self.begun.is_empty() {
                    self.begun.reserve_exact(1);
                }
                self.begun.push_back(site.clone());
            }
            (Asks::Further, _) => {}
        }
    }

    /// Whose turn it is.
    fn turn(&mut self) -> Option<Host> {
        let begins = self.begun.len() < WINDOW || self.turns >= BEGINS_EVERY;
        let (_, host) = match self.next.take_if(|_| begins) {
            Some(first) => first,
            None => {
                self.turns = self.turns.saturating_add(1);
                return self.begun.pop_front();
            }
        };
        (self.turns, self.next) = (0, self.behind.pop_first());
        Some(host)
    }

    fn leave(&mut self, site: &Host, order: InLine) {
        self.begun.retain(|waiting| waiting != site);
        if self.next.take_if(|(first, _)| *first == order).is_some() {
            self.next = self.behind.pop_first();
        } else {
            self.behind.remove(&order);
        }
    }
}

/// The front of the frontier: addresses by when they may be asked next.
#[derive(Debug)]
pub struct Scheduler {
    politeness: Politeness,
    queues: BTreeMap<IpAddr, AddressQueue>,
    /// Addresses that have sites waiting and are not busy.
    due: BTreeSet<(Moment, IpAddr)>,
    busy: usize,
    busy_blocks: BTreeMap<Subnet, usize>,
    /// Addresses that were due but whose block was full.
    held_back: BTreeMap<Subnet, BTreeSet<IpAddr>>,
}

/// The block whose load is limited as one: a /24, or a /48.
fn block(address: IpAddr) -> Subnet {
    Subnet::around(address, if address.is_ipv4() { 24 } else { 48 })
}

impl Scheduler {
    /// An empty front.
    pub fn new(politeness: Politeness) -> Scheduler {
        Scheduler {
            politeness,
            queues: BTreeMap::new(),
            due: BTreeSet::new(),
            busy: 0,
            busy_blocks: BTreeMap::new(),
            held_back: BTreeMap::new(),
        }
    }

    /// The rules in force.
    pub fn politeness(&self) -> &Politeness {
        &self.politeness
    }

    /// This site at this address has something to ask. Saying so again changes nothing.
    pub fn want(&mut self, address: IpAddr, site: &Host, asks: Asks) {
        let queue = self.queues.entry(address).or_default();
        queue.enter(site, asks);
        if !queue.busy && !self.held_back.get(&block(address)).is_some_and(|held| held.contains(&address)) {
            self.due.insert((queue.not_before, address));
        }
    }

    /// Leave this address alone until `until`, at least.
    pub fn rest(&mut self, address: IpAddr, until: Moment) {
        let queue = self.queues.entry(address).or_default();
        if until > queue.not_before {
            let was_due = self.due.remove(&(queue.not_before, address));
            queue.not_before = until;
            if was_due {
                self.due.insert((until, address));
            }
        }
    }

    /// Gives somebody else a turn at this address, which is left alone from its beginning until so long after: when that is; none if it is not
    /// known, because a request is under way, or if the last turn was lent and we have something to ask and may (`asks`): who wants one turn after
    /// the other gets every second. Who asks nothing there now has no need of a note: it may be any address.
    pub fn lend(&mut self, address: IpAddr, now: Moment, length: Millis, asks: bool) -> Option<Moment> {
        let Some(queue) = self.queues.get_mut(&address) else { return Some(now) };
        let from = queue.not_before.max(now);
        if queue.busy || (queue.lent && asks && !queue.is_empty()) {
            return None;
        }
        queue.lent = true;
        self.rest(address, from.after(length));
        Some(from)
    }

    /// Hands out the token of an address that may be asked now, with the site whose turn it is.
    pub fn take(&mut self, now: Moment) -> Option<(IpAddr, Host)> {
        while self.busy < self.politeness.parallel {
            let &(when, address) = self.due.first()?;
            if when > now {
                return None;
            }
            self.due.pop_first();
            let around = block(address);
            let in_block = self.busy_blocks.entry(around).or_default();
            if *in_block >= self.politeness.per_block {
                self.held_back.entry(around).or_default().insert(address);
                continue;
            }
            let Some(queue) = self.queues.get_mut(&address) else { continue };
            let Some(site) = queue.turn() else { continue };
            *in_block += 1;
            queue.busy = true;
            queue.lent = false;
            self.busy += 1;
            return Some((address, site));
        }
        None
    }

    /// Takes a token back; the address rests until `until`.
    pub fn give_back(&mut self, address: IpAddr, until: Moment) {
        let Some(queue) = self.queues.get_mut(&address) else { return };
        if !queue.busy {
            return;
        }
        queue.busy = false;
        queue.not_before = queue.not_before.max(until);
        self.busy -= 1;
        if !queue.is_empty() {
            self.due.insert((queue.not_before, address));
        }
        let around = block(address);
        if let Some(count) = self.busy_blocks.get_mut(&around) {
            *count -= 1;
            if *count == 0 {
                self.busy_blocks.remove(&around);
            }
        }
        if let Some(held) = self.held_back.remove(&around) {
            for address in held {
                if let Some(queue) = self.queues.get(&address) {
                    self.due.insert((queue.not_before, address));
                }
            }
        }
    }

    /// This site, which stands or stood here in line, asks nothing any more.
    pub(crate) fn drop_site(&mut self, address: IpAddr, site: &Host, order: InLine) {
        let Some(queue) = self.queues.get_mut(&address) else { return };
        queue.leave(site, order);
        if queue.is_empty() && !queue.busy {
            self.due.remove(&(queue.not_before, address));
        }
    }

    /// How many further runs may begin at this address: none that would only wait in line.
    pub(crate) fn room_for_runs(&self, address: IpAddr) -> usize {
        self.queues.get(&address).map_or(WINDOW, |queue| WINDOW.saturating_sub(queue.begun.len() + queue.to_begin()))
    }

    /// Hosts that wait for the first request of their run at addresses where more than [`CROWD`] do.
    pub(crate) fn crowd(&self) -> usize {
        self.queues.values().map(AddressQueue::to_begin).filter(|waiting| *waiting > CROWD).sum()
    }

    /// Forgets clocks of addresses that no site wants and that rested long ago, so that the map does not grow for ever.
    pub fn tidy(&mut self, now: Moment) {
        self.queues.retain(|_, queue| queue.busy || !queue.is_empty() || queue.not_before > now);
    }

    /// When the next address may be asked, if any waits and there is room.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        if self.busy >= self.politeness.parallel { None } else { self.due.first().map(|(when, _)| *when) }
    }

    /// When this address may be asked next.
    pub(crate) fn not_before(&self, address: IpAddr) -> Option<Moment> {
        self.queues.get(&address).map(|queue| queue.not_before)
    }

    /// Addresses being asked right now.
    pub fn busy(&self) -> usize {
        self.busy
    }

    /// Addresses with sites that wait for their rest to end.
    pub(crate) fn resting(&self) -> usize {
        self.due.len() + self.held_back.values().map(BTreeSet::len).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front(parallel: usize, per_block: usize) -> Scheduler {
        Scheduler::new(Politeness { min_delay: 100, factor: 10, parallel, per_block })
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn host(text: &str) -> Host {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_is_asked_one_thing_at_a_time_and_rests_after() {
        let mut front = front(8, 4);
        front.want(ip("9.0.0.1"), &host("a.ke"), Asks::Further);
        front.want(ip("9.0.0.1"), &host("b.ke"), Asks::Further);
        assert_eq!(front.take(Moment(0)), Some((ip("9.0.0.1"), host("a.ke"))));
        assert_eq!(front.take(Moment(0)), None, "the token is out");
        front.want(ip("9.0.0.1"), &host("a.ke"), Asks::Further);
        let rest = front.politeness().rest_after(50, None);
        assert_eq!(rest, 500);
        front.give_back(ip("9.0.0.1"), Moment(50 + rest));
        assert_eq!(front.take(Moment(549)), None, "it rests");
        assert_eq!(front.next_due(), Some(Moment(550)));
        assert_eq!(front.take(Moment(550)).unwrap().1, host("b.ke"), "sites take turns");
    }

    #[test]
    fn a_block_and_the_whole_are_limited() {
        let mut front = front(3, 2);
        for n in 1..=4 {
            front.want(ip(&format!("9.0.0.{n}")), &host("a.ke"), Asks::Further);
        }
        front.want(ip("9.0.1.1"), &host("b.ke"), Asks::Further);
        front.want(ip("9.0.2.1"), &host("b.ke"), Asks::Further);
        let taken: Vec<_> = std::iter::from_fn(|| front.take(Moment(0))).map(|(a, _)| a).collect();
        assert_eq!(taken, [ip("9.0.0.1"), ip("9.0.0.2"), ip("9.0.1.1")]);
        front.give_back(ip("9.0.0.1"), Moment(10));
        assert_eq!(front.take(Moment(1)).unwrap().0, ip("9.0.0.3"), "a place in the block came free");
        assert_eq!((front.busy(), front.take(Moment(1))), (3, None));
    }

    #[test]
    fn a_turn_that_is_lent_begins_when_the_address_has_rested_and_nothing_is_asked_before_its_end() {
        let mut front = front(8, 4);
        let at = ip("9.0.0.1");
        assert_eq!(
            (front.lend(at, Moment(5), 300, true), front.not_before(at)),
            (Some(Moment(5)), None),
            "nothing is noted of any address"
        );
        front.want(at, &host("a.ke"), Asks::Further);
        front.want(at, &host("b.ke"), Asks::Further);
        assert!(front.take(Moment(0)).is_some());
        assert_eq!(front.lend(at, Moment(10), 300, true), None, "when the answer comes is not known");
        front.give_back(at, Moment(600));
        assert_eq!(front.lend(at, Moment(50), 300, true), Some(Moment(600)));
        assert_eq!(front.lend(at, Moment(60), 300, true), None, "we have something to ask first");
        assert_eq!(front.lend(at, Moment(60), 300, false), Some(Moment(900)), "who is held back has no use of its turns");
        assert_eq!((front.take(Moment(1_199)), front.next_due()), (None, Some(Moment(1_200))));
        assert!(front.take(Moment(1_200)).is_some());
        front.give_back(at, Moment(1_300));
        assert_eq!(front.lend(at, Moment(1_250), 300, true), Some(Moment(1_300)));
        assert_eq!(front.lend(at, Moment(1_250), 300, true), Some(Moment(1_600)), "nothing is left to ask");
    }

    #[test]
    fn longer_rests_win_and_dropped_sites_do_not_come_up() {
        let mut front = front(8, 4);
        front.want(ip("9.0.0.1"), &host("a.ke"), Asks::Further);
        front.rest(ip("9.0.0.1"), Moment(900));
        front.rest(ip("9.0.0.1"), Moment(300));
        assert_eq!(front.next_due(), Some(Moment(900)));
        front.drop_site(ip("9.0.0.1"), &host("a.ke"), InLine { run: 1, place: 7 });
        assert_eq!((front.next_due(), front.resting()), (None, 0));
        front.tidy(Moment(1000));
        assert_eq!(front.not_before(ip("9.0.0.1")), None);
    }

    const KEY: FingerprintKey = FingerprintKey([5; 16]);

    fn first(host: &Host, run: u32) -> Asks {
        Asks::First(InLine { run, place: place_of(host, &KEY) })
    }

    /// Takes turns of one address, each host asking `requests` times; returns them in the order of their turns.
    fn turns(front: &mut Scheduler, address: IpAddr, turns: usize, requests: usize) -> Vec<Host> {
        let mut asked: BTreeMap<Host, usize> = BTreeMap::new();
        let mut taken = Vec::new();
        for now in 0..turns as u64 {
            let Some((_, site)) = front.take(Moment(now)) else { break };
            let count = asked.entry(site.clone()).or_default();
            *count += 1;
            if *count < requests {
                front.want(address, &site, Asks::Further);
            }
            front.give_back(address, Moment(now));
            taken.push(site);
        }
        taken
    }

    #[test]
    fn hosts_of_one_address_begin_in_keyed_order_and_few_at_a_time_whatever_the_order_in_which_they_came() {
        let address = ip("9.0.0.1");
        let hosts: Vec<_> = (0..500).map(|n| host(&format!("h{n}.blogs.ke"))).collect();
        let mut orders = Vec::new();
        for backwards in [false, true] {
            let mut front = front(8, 4);
            let mut come = hosts.clone();
            if backwards {
                come.reverse();
            }
            come.iter().for_each(|host| front.want(address, host, first(host, 1)));
            assert_eq!((front.crowd(), front.room_for_runs(address)), (500, 0));
            let taken = turns(&mut front, address, 1_000, 10);
            let mut begun: Vec<Host> = Vec::new();
            taken.iter().for_each(|site| {
                if !begun.contains(site) {
                    begun.push(site.clone())
                }
            });
            orders.push(begun);
        }
        let mut by_place = hosts;
        by_place.sort_by_key(|host| place_of(host, &KEY));
        assert_eq!(orders[0], orders[1]);
        assert_eq!(orders[0][..], by_place[..orders[0].len()], "those visited are the first in line");
        assert!((100..100 + 2 * WINDOW).contains(&orders[0].len()), "1000 requests, 10 each: {}", orders[0].len());
    }

    #[test]
    fn servers_without_end_do_not_keep_the_others_waiting_and_second_runs_come_after_all_first_ones() {
        let (mut front, address) = (front(8, 4), ip("9.0.0.1"));
        let hosts: Vec<_> = (0..100).map(|n| host(&format!("h{n}.blogs.ke"))).collect();
        hosts.iter().for_each(|host| front.want(address, host, first(host, 1)));
        let again = host("again.blogs.ke");
        front.want(address, &again, Asks::First(InLine { run: 2, place: 0 }));
        let taken = turns(&mut front, address, 20_000, usize::MAX);
        let begun: BTreeSet<_> = taken.iter().collect();
        assert_eq!(begun.len(), 101);
        assert_eq!(taken.iter().position(|site| *site == again).unwrap(), {
            let first = |host: &Host| taken.iter().position(|site| site == host).unwrap();
            hosts.iter().map(first).max().unwrap() + BEGINS_EVERY as usize + 1
        });
    }

    #[test]
    fn a_host_that_leaves_gives_up_its_place() {
        let (mut front, address) = (front(8, 4), ip("9.0.0.1"));
        let hosts: Vec<_> = (0..5).map(|n| host(&format!("h{n}.blogs.ke"))).collect();
        hosts.iter().for_each(|host| front.want(address, host, first(host, 1)));
        for host in &hosts {
            let Asks::First(order) = first(host, 1) else { unreachable!() };
            front.drop_site(address, host, order);
        }
        assert_eq!((front.next_due(), front.room_for_runs(address)), (None, WINDOW));
    }
}
