//! Outbox of URLs for their owners: grouped by host, routed when they are sent, kept until they are acknowledged.
//!
//! At least once, and taken in idempotently, is effectively once. The outbox itself is not stored: what it holds stands in the
//! journals of the sites that named it, and is put back from there after a crash.

use crate::turns::{Turns, last_turn};
use nearcrawl_model::{
    access_point::AccessPoint,
    fetch::LocatedHost,
    ids::QuestionId,
    journal::{Arrival, JournalKey},
    message::HandOff,
    time::{Millis, Moment},
    url::Host,
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::IpAddr,
};

/// The most URLs in one hand-off.
pub(crate) const MAX_IN_BATCH: usize = 256;

/// The most bytes of URLs in one hand-off.
const MAX_BYTES_IN_BATCH: usize = 64 << 10;

/// The most URLs that wait because the look-up of their host failed for the moment: a quarter of
/// [`MAX_OUTGOING`](crate::crawler::MAX_OUTGOING), so that broken name servers stop no crawl.
pub(crate) const MAX_UNRESOLVED: usize = 50_000;

/// How long a queue that cannot be routed waits before it is looked at again, if nothing wakes it.
pub(crate) const LOOK_AGAIN: Millis = 2_000;

/// A URL under way, and which journal row named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// What is under way.
    pub arrival: Arrival,
    /// The journal and sequence number of the row that named it; none for seeds from people.
    pub origin: Option<(JournalKey, u64)>,
}

#[derive(Debug, Default)]
struct HostQueue {
    items: VecDeque<Item>,
    look_at: Moment,
    /// Whether it waits for a look-up of its host to be repeated.
    unresolved: bool,
    /// The owner for whose next message it waits, if the one under way has no room for it, and its address.
    behind: Option<(AccessPoint, IpAddr)>,
    /// Its place among the hosts of its address that wait: it keeps it until some of its URLs are sent.
    place: Option<u64>,
}

/// URLs of one host on their way in one message.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    /// To whom.
    pub to: AccessPoint,
    /// What.
    pub items: BTreeMap<Host, Vec<Item>>,
}

/// Hosts that wait for one owner's next message, by address, those of one address in the order in which they came.
type Line = Turns<IpAddr, (u64, Host)>;

/// URLs that wait for their owner.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    queues: BTreeMap<Host, HostQueue>,
    /// When to look at which queue: hosts that cannot be routed yet may be very many.
    agenda: BTreeSet<(Moment, Host)>,
    /// Hosts that wait for their owner's next message. They are not on the agenda: of an address with very many hosts nearly all wait, and all
    /// would be looked at whenever anything is routed.
    behind: BTreeMap<AccessPoint, Line>,
    /// The place of the next host that has to wait for a message.
    next_place: u64,
    /// The address that had the last turn in an owner's messages.
    last_turns: BTreeMap<AccessPoint, IpAddr>,
    in_flight: BTreeMap<QuestionId, InFlight>,
    busy: BTreeMap<AccessPoint, Moment>,
    waiting: usize,
    /// Of those, the ones in queues that wait for a look-up to be repeated.
    unresolved: usize,
}

impl Outbox {
    /// Puts a URL in.
    pub(crate) fn put(&mut self, item: Item) {
        let queue = self.queue(&item.arrival.url.host());
        let unresolved = queue.unresolved;
        queue.items.push_back(item);
        self.waiting += 1;
        self.unresolved += usize::from(unresolved);
    }

    /// Hosts whose queues are to be routed now; of those that wait for one owner's next message no more than it may have.
    pub(crate) fn due(&mut self, now: Moment) -> Vec<Host> {
        let busy = &self.busy;
        let free = self.behind.iter().filter(|(owner, _)| busy.get(owner).is_none_or(|until| *until <= now));
        let next: Vec<_> = free.flat_map(|(owner, line)| line.next(self.last_turns.get(owner), MAX_IN_BATCH)).collect();
        next.iter().for_each(|(_, host)| self.look_at(host, Moment::default()));
        let mut hosts: Vec<_> = self.agenda.iter().take_while(|(look_at, _)| *look_at <= now).map(|(_, host)| host.clone()).collect();
        hosts.sort_unstable();
        hosts
    }

    /// This host cannot be routed yet: look again later, or when woken.
    pub(crate) fn later(&mut self, host: &Host, now: Moment) {
        self.look_at(host, now.after(LOOK_AGAIN));
    }

    /// Those of an owner's hosts that the next message may have, if it may start, by turns; the others wait for the one after it.
    pub(crate) fn choose(&mut self, owner: AccessPoint, hosts: Vec<LocatedHost>, now: Moment) -> Vec<LocatedHost> {
        if !self.may_send(owner, now) {
            hosts.iter().for_each(|located| self.wait_behind(located, owner));
            return Vec::new();
        }
        let mut line = Line::default();
        for located in &hosts {
            let place = self.place_of(&located.host);
            line.insert(located.address, (place, located.host.clone()));
        }
        let mut hosts: BTreeMap<Host, LocatedHost> = hosts.into_iter().map(|located| (located.host.clone(), located)).collect();
        let next = line.next(self.last_turns.get(&owner), MAX_IN_BATCH);
        let chosen = next.iter().filter_map(|(_, host)| hosts.remove(host)).collect();
        hosts.values().for_each(|located| self.wait_behind(located, owner));
        chosen
    }

    /// This host's URLs are for an owner whose next message has no room for them: look again when it may have another one.
    fn wait_behind(&mut self, located: &LocatedHost, owner: AccessPoint) {
        let LocatedHost { host, address, .. } = located;
        let place = self.place_of(host);
        let Some(queue) = self.queues.get_mut(host) else { return };
        self.agenda.remove(&(queue.look_at, host.clone()));
        if let Some(other) = queue.behind.replace((owner, *address)) {
            self.leave(host, other, place);
        }
        self.behind.entry(owner).or_default().insert(*address, (place, host.clone()));
    }

    /// The place of a host among those that wait; it gets the last one if it has none.
    fn place_of(&mut self, host: &Host) -> u64 {
        let next = &mut self.next_place;
        let new = || {
            *next += 1;
            *next
        };
        self.queues.get_mut(host).map_or(0, |queue| *queue.place.get_or_insert_with(new))
    }

    fn leave(&mut self, host: &Host, (owner, address): (AccessPoint, IpAddr), place: u64) {
        let Some(line) = self.behind.get_mut(&owner) else { return };
        line.remove(&address, &(place, host.clone()));
        if line.is_empty() {
            self.behind.remove(&owner);
        }
    }

    /// The look-up of this host failed for the moment: look again when it may be repeated. Whether there is room for its URLs to wait.
    #[must_use]
    pub(crate) fn await_lookup(&mut self, host: &Host, at: Moment) -> bool {
        if let Some(queue) = self.queues.get_mut(host)
            && !queue.unresolved
        {
            queue.unresolved = true;
            self.unresolved += queue.items.len();
        }
        self.look_at(host, at);
        self.unresolved <= MAX_UNRESOLVED
    }

    /// Something about this host became known.
    pub(crate) fn wake(&mut self, host: &Host) {
        if let Some(queue) = self.queues.get_mut(host)
            && queue.unresolved
        {
            queue.unresolved = false;
            self.unresolved -= queue.items.len();
        }
        self.look_at(host, Moment::default());
    }

    /// The ownership map changed: everything may be routable now.
    pub(crate) fn wake_all(&mut self) {
        for queue in self.queues.values_mut() {
            (queue.look_at, queue.behind) = (Moment::default(), None);
        }
        self.behind.clear();
        self.agenda = self.queues.keys().map(|host| (Moment::default(), host.clone())).collect();
    }

    /// The queue of a host; a new one is to be looked at now.
    fn queue(&mut self, host: &Host) -> &mut HostQueue {
        if !self.queues.contains_key(host) {
            self.agenda.insert((Moment::default(), host.clone()));
        }
        self.queues.entry(host.clone()).or_default()
    }

    /// Nothing is to be done for this host before then, unless it is woken.
    pub(crate) fn look_at(&mut self, host: &Host, moment: Moment) {
        if let Some(queue) = self.queues.get_mut(host) {
            self.agenda.remove(&(queue.look_at, host.clone()));
            self.agenda.insert((moment, host.clone()));
            queue.look_at = moment;
            if let (Some(behind), Some(place)) = (queue.behind.take(), queue.place) {
                self.leave(host, behind, place);
            }
        }
    }

    fn remove(&mut self, host: &Host) -> Option<HostQueue> {
        let queue = self.queues.remove(host)?;
        self.agenda.remove(&(queue.look_at, host.clone()));
        if let (Some(behind), Some(place)) = (queue.behind, queue.place) {
            self.leave(host, behind, place);
        }
        if queue.unresolved {
            self.unresolved -= queue.items.len();
        }
        Some(queue)
    }

    /// Takes a host's whole queue out: for ourselves, or because it leads nowhere.
    pub(crate) fn take(&mut self, host: &Host) -> Vec<Item> {
        let items: Vec<_> = self.remove(host).map(|queue| queue.items.into()).unwrap_or_default();
        self.waiting -= items.len();
        items
    }

    /// An example of what waits for this host.
    pub(crate) fn peek(&self, host: &Host) -> Option<&Item> {
        self.queues.get(host)?.items.front()
    }

    /// Whether all that waits for this host are links of other sites: nobody named it, and it is no part of a tree.
    pub(crate) fn has_links_alone(&self, host: &Host) -> bool {
        let mut items = self.queues.get(host).into_iter().flat_map(|queue| &queue.items).peekable();
        items.peek().is_some() && items.all(|item| item.origin.is_some() && item.arrival.place.is_none())
    }

    /// The latest run in which what waits for this host was named; 0 if nothing waits.
    pub(crate) fn newest_run(&self, host: &Host) -> u32 {
        let items = self.queues.get(host).into_iter().flat_map(|queue| &queue.items);
        items.filter(|item| item.arrival.place.is_some()).map(|item| item.arrival.run).max().unwrap_or(0)
    }

    /// Whether a message to this access point may start: one at a time, and not before it wants the next.
    pub(crate) fn may_send(&self, to: AccessPoint, now: Moment) -> bool {
        self.busy.get(&to).is_none_or(|until| *until <= now)
    }

    /// Packs a message to an owner from these hosts' queues, up to the limits: one URL of each host, then a second one of each, and so on, so
    /// that a host with very many URLs delays no other.
    pub(crate) fn pack(&mut self, question: QuestionId, to: AccessPoint, hosts: &[LocatedHost], now: Moment) -> Vec<HandOff> {
        let (mut room, mut bytes) = (MAX_IN_BATCH, MAX_BYTES_IN_BATCH);
        let mut sent = InFlight { to, items: BTreeMap::new() };
        let mut turns: VecDeque<_> = hosts.iter().collect();
        while room > 0
            && bytes > 0
            && let Some(located) = turns.pop_front()
        {
            let Some(queue) = self.queues.get_mut(&located.host) else { continue };
            // Its address is known, so it waits for no look-up any more.
            if std::mem::take(&mut queue.unresolved) {
                self.unresolved -= queue.items.len();
            }
            let Some(item) = queue.items.pop_front() else { continue };
            room -= 1;
            bytes = bytes.saturating_sub(item.arrival.url.as_str().len() + 32);
            sent.items.entry(located.host.clone()).or_default().push(item);
            turns.push_back(located);
        }
        let mut message = Vec::new();
        for located in hosts {
            let Some(items) = sent.items.get(&located.host) else { continue };
            let arrivals = items.iter().map(|item| item.arrival.clone()).collect();
            message.push(HandOff { host: located.clone(), arrivals });
            self.waiting -= items.len();
            match self.queues.get_mut(&located.host) {
                Some(queue) if queue.items.is_empty() => drop(self.remove(&located.host)),
                Some(queue) => queue.place = None,
                None => {}
            }
        }
        if !message.is_empty() {
            let had = message.iter().map(|hand_off| hand_off.host.address);
            if let Some(last) = last_turn(self.last_turns.get(&to), had) {
                self.last_turns.insert(to, last);
            }
            // Of owners for whom nothing waits any more nothing is remembered: members come and go.
            self.busy.retain(|_, until| *until > now);
            self.last_turns.retain(|owner, _| *owner == to || self.busy.contains_key(owner) || self.behind.contains_key(owner));
            self.in_flight.insert(question, sent);
            // Until the answer; a lost question ends with its own time-out, this is only a second line.
            self.busy.insert(to, now.after(60_000));
        }
        message
    }

    /// A message was taken in. What was not the receiver's goes back; what was is returned with its origins.
    pub(crate) fn acked(&mut self, question: QuestionId, not_mine: &[Host]) -> Vec<Item> {
        let Some(sent) = self.in_flight.remove(&question) else { return Vec::new() };
        self.busy.remove(&sent.to);
        let refused: BTreeSet<_> = not_mine.iter().collect();
        let mut done = Vec::new();
        for (host, items) in sent.items {
            if refused.contains(&host) { self.put_back(host, items, Moment::default()) } else { done.extend(items) }
        }
        done
    }

    /// A message was not taken in: its URLs go back, and the receiver is left alone for `pause`.
    pub(crate) fn nacked(&mut self, question: QuestionId, now: Moment, pause: Millis) {
        let Some(sent) = self.in_flight.remove(&question) else { return };
        self.busy.insert(sent.to, now.after(pause));
        for (host, items) in sent.items {
            self.put_back(host, items, now.after(pause));
        }
    }

    fn put_back(&mut self, host: Host, items: Vec<Item>, look_at: Moment) {
        self.waiting += items.len();
        let queue = self.queue(&host);
        let unresolved = if queue.unresolved { items.len() } else { 0 };
        for item in items.into_iter().rev() {
            queue.items.push_front(item);
        }
        self.unresolved += unresolved;
        self.look_at(&host, look_at);
    }

    /// Hosts with URLs that wait to be routed, in order.
    pub(crate) fn waiting_hosts(&self) -> impl Iterator<Item = &Host> {
        self.queues.keys()
    }

    /// URLs that wait or fly.
    pub(crate) fn len(&self) -> usize {
        self.waiting + self.in_flight.values().flat_map(|sent| sent.items.values()).map(Vec::len).sum::<usize>()
    }

    /// URLs that wait for a look-up of their host to be repeated: about [`MAX_UNRESOLVED`] at most.
    pub(crate) fn unresolved(&self) -> usize {
        self.unresolved
    }

    /// Whether nothing is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::url::PageUrl;

    const TO: AccessPoint = AccessPoint([3; 32]);

    fn item(url: &str) -> Item {
        Item { arrival: Arrival { url: PageUrl::parse(url).unwrap(), place: None, run: 1 }, origin: None }
    }

    fn at(host: &str) -> LocatedHost {
        LocatedHost { host: host.parse().unwrap(), address: "9.0.0.1".parse().unwrap(), valid_for: 1 }
    }

    #[test]
    fn a_batch_is_limited_and_nothing_is_lost_on_the_way() {
        let mut outbox = Outbox::default();
        for n in 0..300 {
            outbox.put(item(&format!("http://a.ke/{n}")));
        }
        outbox.put(item("http://b.ke/"));
        let batch = outbox.pack(QuestionId(1), TO, &[at("a.ke"), at("b.ke")], Moment(0));
        assert_eq!(batch.iter().map(|h| h.arrivals.len()).sum::<usize>(), MAX_IN_BATCH);
        assert!(!outbox.may_send(TO, Moment(0)));
        assert_eq!(outbox.len(), 301);
        outbox.nacked(QuestionId(1), Moment(0), 500);
        assert!(!outbox.may_send(TO, Moment(499)) && outbox.may_send(TO, Moment(500)));
        assert_eq!((outbox.len(), outbox.due(Moment(499)), outbox.due(Moment(500)).len()), (301, vec![], 2));
        let again = outbox.pack(QuestionId(2), TO, &[at("a.ke")], Moment(500));
        assert_eq!(again[0].arrivals[0].url.as_str(), "http://a.ke/0", "in order");
        assert_eq!(outbox.acked(QuestionId(2), &[]).len(), MAX_IN_BATCH);
        assert_eq!(outbox.len(), 301 - MAX_IN_BATCH);
    }

    #[test]
    fn what_is_not_the_receivers_is_routed_anew() {
        let mut outbox = Outbox::default();
        outbox.put(item("http://a.ke/1"));
        outbox.put(item("http://b.ke/1"));
        outbox.pack(QuestionId(1), TO, &[at("a.ke"), at("b.ke")], Moment(0));
        assert_eq!(outbox.due(Moment(9)), []);
        let done = outbox.acked(QuestionId(1), &["b.ke".parse().unwrap()]);
        assert_eq!(done, [item("http://a.ke/1")]);
        assert_eq!(outbox.due(Moment(0)), ["b.ke".parse().unwrap()]);
    }

    #[test]
    fn what_waits_for_a_repeated_look_up_is_counted_until_it_is_woken_or_taken() {
        let mut outbox = Outbox::default();
        let (a, b): (Host, Host) = ("a.ke".parse().unwrap(), "b.ke".parse().unwrap());
        outbox.put(item("http://a.ke/1"));
        outbox.put(item("http://b.ke/1"));
        assert!(outbox.await_lookup(&a, Moment(5_000)) && outbox.await_lookup(&a, Moment(5_000)) && outbox.await_lookup(&b, Moment(7_000)));
        outbox.put(item("http://a.ke/2"));
        assert_eq!((outbox.unresolved(), outbox.due(Moment(4_999)), outbox.due(Moment(5_000))), (3, vec![], vec![a.clone()]));
        outbox.wake(&a);
        outbox.put(item("http://a.ke/3"));
        assert_eq!((outbox.unresolved(), outbox.take(&b).len(), outbox.unresolved()), (1, 1, 0));
        assert!(outbox.await_lookup(&b, Moment(0)) && outbox.unresolved() == 0, "a queue that is not there waits for nothing");
        outbox.put(item("http://b.ke/2"));
        assert!(outbox.await_lookup(&b, Moment(0)) && outbox.unresolved() == 1);
        assert_eq!((outbox.pack(QuestionId(1), TO, &[at("b.ke")], Moment(0)).len(), outbox.unresolved()), (1, 0));
        assert!(outbox.await_lookup(&a, Moment(0)));
        (4..=MAX_UNRESOLVED).for_each(|number| outbox.put(item(&format!("http://a.ke/{number}"))));
        assert!(outbox.await_lookup(&a, Moment(0)), "exactly as many as may wait");
        outbox.put(item("http://a.ke/more"));
        assert!(!outbox.await_lookup(&a, Moment(0)));
        assert_eq!((outbox.take(&a).len(), outbox.unresolved(), outbox.len()), (MAX_UNRESOLVED + 1, 0, 1), "one is on its way");
    }

    #[test]
    fn what_waits_is_looked_at_when_it_is_time_or_when_it_is_woken() {
        let mut outbox = Outbox::default();
        let hosts: Vec<Host> = ["b.ke", "a.ke", "c.ke"].map(|host| host.parse().unwrap()).to_vec();
        hosts.iter().for_each(|host| outbox.put(item(&format!("http://{host}/"))));
        assert_eq!(outbox.due(Moment(0)), ["a.ke", "b.ke", "c.ke"].map(|host| host.parse().unwrap()), "in order");
        hosts.iter().for_each(|host| outbox.later(host, Moment(100)));
        outbox.put(item("http://b.ke/more"));
        assert_eq!(outbox.due(Moment(99 + LOOK_AGAIN)), []);
        outbox.wake(&hosts[2]);
        assert_eq!(outbox.due(Moment(100)), hosts[2..]);
        outbox.take(&hosts[1]);
        assert_eq!(outbox.due(Moment(100 + LOOK_AGAIN)), [hosts[0].clone(), hosts[2].clone()]);
        outbox.later(&hosts[2], Moment(200));
        outbox.wake_all();
        assert_eq!((outbox.due(Moment(0)).len(), outbox.agenda.len()), (2, 2));
    }

    #[test]
    fn hosts_for_which_a_message_has_no_room_are_looked_at_when_their_owner_may_have_the_next_one() {
        let mut outbox = Outbox::default();
        let hosts: Vec<_> = (0..2 * MAX_IN_BATCH + 8).map(|number| at(&format!("h{number:03}.ke"))).collect();
        hosts.iter().for_each(|at| outbox.put(item(&format!("http://{}/", at.host))));
        let (now, later) = hosts.split_at(MAX_IN_BATCH);
        let chosen = outbox.choose(TO, hosts.clone(), Moment(0));
        assert_eq!(chosen, now, "as many as fit");
        assert_eq!(outbox.pack(QuestionId(1), TO, &chosen, Moment(0)).len(), MAX_IN_BATCH);
        assert_eq!(outbox.due(Moment(1)), [], "one message at a time");
        outbox.wake(&later[3].host);
        assert_eq!(outbox.due(Moment(1)), [later[3].host.clone()], "something became known of it");
        assert_eq!(outbox.choose(TO, vec![later[3].clone()], Moment(1)), [], "and waits on");
        outbox.wait_behind(&later[4], AccessPoint([9; 32]));
        assert_eq!(outbox.due(Moment(1)), [later[4].host.clone()], "another owner is free");
        outbox.acked(QuestionId(1), &[]);
        let due = outbox.due(Moment(1));
        assert_eq!((due.len(), &due[0]), (MAX_IN_BATCH + 1, &later[0].host), "and no more than fit the next one");
        due.iter().for_each(|host| drop(outbox.take(host)));
        assert_eq!(outbox.due(Moment(1)).len(), later.len() - due.len(), "what is left comes after that");
        later.iter().for_each(|at| drop(outbox.take(&at.host)));
        assert!(outbox.is_empty() && outbox.behind.is_empty() && outbox.agenda.is_empty());
        outbox.put(item("http://a.ke/"));
        outbox.wait_behind(&at("a.ke"), TO);
        outbox.wake_all();
        assert_eq!((outbox.due(Moment(0)).len(), outbox.behind.len()), (1, 0), "the owner may be another");
    }

    /// Sends the next message of these hosts, and has it taken in. Returns how many URLs of each host were in it.
    fn send(outbox: &mut Outbox, hosts: &[LocatedHost]) -> BTreeMap<Host, usize> {
        let waiting = hosts.iter().filter(|at| outbox.peek(&at.host).is_some()).cloned().collect();
        let chosen = outbox.choose(TO, waiting, Moment(0));
        let message = outbox.pack(QuestionId(1), TO, &chosen, Moment(0));
        let urls: Vec<_> = message.iter().flat_map(|hand_off| &hand_off.arrivals).map(|arrival| arrival.url.as_str().len() + 32).collect();
        assert!(urls.len() <= MAX_IN_BATCH && urls.iter().skip(1).sum::<usize>() < MAX_BYTES_IN_BATCH);
        outbox.acked(QuestionId(1), &[]);
        message.into_iter().map(|hand_off| (hand_off.host.host, hand_off.arrivals.len())).collect()
    }

    #[test]
    fn a_host_with_very_many_urls_delays_no_other() {
        let mut outbox = Outbox::default();
        let hosts: Vec<_> = (0..11).map(|number| at(&format!("h{number:02}.ke"))).collect();
        (0..10_000).for_each(|number| outbox.put(item(&format!("http://h00.ke/{number}"))));
        hosts[1..].iter().for_each(|at| outbox.put(item(&format!("http://{}/", at.host))));
        let sent = send(&mut outbox, &hosts);
        assert_eq!((sent.len(), sent[&hosts[0].host]), (11, MAX_IN_BATCH - 10), "all of the others are in the first message");
        assert_eq!(send(&mut outbox, &hosts).len(), 1);
    }

    #[test]
    fn long_urls_delay_no_host_for_ever() {
        let mut outbox = Outbox::default();
        let hosts: Vec<_> =
            (0..200).map(|number| LocatedHost { address: IpAddr::from([9, 0, 0, number]), ..at(&format!("h{number:03}.ke")) }).collect();
        let long = "x".repeat(2_000);
        for at in &hosts {
            (0..100).for_each(|number| outbox.put(item(&format!("http://{}/{long}{number}", at.host))));
        }
        // A message has room for some 32 of these URLs.
        let sent: BTreeSet<_> = (0..8).flat_map(|_| send(&mut outbox, &hosts).into_keys()).collect();
        assert_eq!(sent.len(), hosts.len(), "each has had its turn");
    }

    #[test]
    fn the_hosts_of_one_address_are_sent_in_the_order_in_which_they_came() {
        let mut outbox = Outbox::default();
        let others = (0..MAX_IN_BATCH).map(|number| LocatedHost {
            address: IpAddr::from([9, 1, (number >> 8) as u8, number as u8]),
            ..at(&format!("h{number:03}.ke"))
        });
        let hosts: Vec<_> = [at("a.ke"), at("b.ke")].into_iter().chain(others).collect();
        // Each message has room for one host of each address but one.
        hosts.iter().for_each(|at| (0..9).for_each(|number| outbox.put(item(&format!("http://{}/{number}", at.host)))));
        let sent: Vec<_> = (0..4).map(|_| send(&mut outbox, &hosts)).collect();
        let times = |host: &str| sent.iter().filter(|sent| sent.contains_key(&host.parse::<Host>().unwrap())).count();
        assert!(times("a.ke") >= 1 && times("b.ke") >= 1, "{} and {}", times("a.ke"), times("b.ke"));
    }

    #[test]
    fn an_address_with_very_many_hosts_leaves_each_other_one_its_turn() {
        let mut outbox = Outbox::default();
        let many = (0..4 * MAX_IN_BATCH).map(|number| at(&format!("a{number:04}.ke")));
        let others = (0..MAX_IN_BATCH).map(|number| LocatedHost {
            address: IpAddr::from([9, 1, (number >> 8) as u8, number as u8]),
            ..at(&format!("z{number:04}.ke"))
        });
        for located in many.chain(others) {
            outbox.put(item(&format!("http://{}/", located.host)));
            outbox.wait_behind(&located, TO);
        }
        let mut seen = Vec::new();
        for _ in 0..2 {
            let due = outbox.due(Moment(0));
            assert_eq!(due.len(), MAX_IN_BATCH);
            due.iter().for_each(|host| drop(outbox.take(host)));
            seen.extend(due);
        }
        let ordinary = seen.iter().filter(|host| host.as_str().starts_with('z')).count();
        assert_eq!(ordinary, MAX_IN_BATCH, "all of them are in the first two messages, before nearly all of the many");
    }
}
