//! Which server may be visited now? Politeness: one request at a time to an address from the whole swarm, and a rest after each.
//!
//! Three levels: site → address → subnet block. The holder of an address's token may ask one of its sites one thing; the token
//! comes back with the answer, and the address rests for max(factor × answer time, crawl-delay, least delay) (Mercator's rule,
//! UC-16). Picking the next due address costs O(log n).

use super::politeness::Politeness;
use nearcrawl_model::{subnet::Subnet, time::Moment, url::Host};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::IpAddr,
};

#[derive(Debug, Default)]
struct Lane {
    /// Sites at this address with something to ask, in turn.
    sites: VecDeque<Host>,
    not_before: Moment,
    busy: bool,
}

/// The front of the frontier: addresses by when they may be asked next.
#[derive(Debug)]
pub struct Scheduler {
    politeness: Politeness,
    lanes: BTreeMap<IpAddr, Lane>,
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
            lanes: BTreeMap::new(),
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
    pub fn want(&mut self, address: IpAddr, site: &Host) {
        let lane = self.lanes.entry(address).or_default();
        if !lane.sites.contains(site) {
            if lane.sites.is_empty() {
                // Most addresses have one site: no room for more until there are more.
                lane.sites.reserve_exact(1);
            }
            lane.sites.push_back(site.clone());
        }
        if !lane.busy && !self.held_back.get(&block(address)).is_some_and(|held| held.contains(&address)) {
            self.due.insert((lane.not_before, address));
        }
    }

    /// Leave this address alone until `until`, at least.
    pub fn rest(&mut self, address: IpAddr, until: Moment) {
        let lane = self.lanes.entry(address).or_default();
        if until > lane.not_before {
            let was_due = self.due.remove(&(lane.not_before, address));
            lane.not_before = until;
            if was_due {
                self.due.insert((until, address));
            }
        }
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
            let Some(lane) = self.lanes.get_mut(&address) else { continue };
            let Some(site) = lane.sites.pop_front() else { continue };
            *in_block += 1;
            lane.busy = true;
            self.busy += 1;
            return Some((address, site));
        }
        None
    }

    /// Takes a token back; the address rests until `until`.
    pub fn give_back(&mut self, address: IpAddr, until: Moment) {
        let Some(lane) = self.lanes.get_mut(&address) else { return };
        if !lane.busy {
            return;
        }
        lane.busy = false;
        lane.not_before = lane.not_before.max(until);
        self.busy -= 1;
        if !lane.sites.is_empty() {
            self.due.insert((lane.not_before, address));
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
                if let Some(lane) = self.lanes.get(&address) {
                    self.due.insert((lane.not_before, address));
                }
            }
        }
    }

    /// This site asks nothing any more.
    pub(crate) fn drop_site(&mut self, address: IpAddr, site: &Host) {
        let Some(lane) = self.lanes.get_mut(&address) else { return };
        lane.sites.retain(|waiting| waiting != site);
        if lane.sites.is_empty() && !lane.busy {
            self.due.remove(&(lane.not_before, address));
        }
    }

    /// Forgets clocks of addresses that no site wants and that rested long ago, so that the map does not grow for ever.
    pub fn tidy(&mut self, now: Moment) {
        self.lanes.retain(|_, lane| lane.busy || !lane.sites.is_empty() || lane.not_before > now);
    }

    /// When the next address may be asked, if any waits and there is room.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        if self.busy >= self.politeness.parallel { None } else { self.due.first().map(|(when, _)| *when) }
    }

    /// When this address may be asked next.
    pub(crate) fn not_before(&self, address: IpAddr) -> Option<Moment> {
        self.lanes.get(&address).map(|lane| lane.not_before)
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
        front.want(ip("9.0.0.1"), &host("a.ke"));
        front.want(ip("9.0.0.1"), &host("b.ke"));
        assert_eq!(front.take(Moment(0)), Some((ip("9.0.0.1"), host("a.ke"))));
        assert_eq!(front.take(Moment(0)), None, "the token is out");
        front.want(ip("9.0.0.1"), &host("a.ke"));
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
            front.want(ip(&format!("9.0.0.{n}")), &host("a.ke"));
        }
        front.want(ip("9.0.1.1"), &host("b.ke"));
        front.want(ip("9.0.2.1"), &host("b.ke"));
        let taken: Vec<_> = std::iter::from_fn(|| front.take(Moment(0))).map(|(a, _)| a).collect();
        assert_eq!(taken, [ip("9.0.0.1"), ip("9.0.0.2"), ip("9.0.1.1")]);
        front.give_back(ip("9.0.0.1"), Moment(10));
        assert_eq!(front.take(Moment(1)).unwrap().0, ip("9.0.0.3"), "a place in the block came free");
        assert_eq!((front.busy(), front.take(Moment(1))), (3, None));
    }

    #[test]
    fn longer_rests_win_and_dropped_sites_do_not_come_up() {
        let mut front = front(8, 4);
        front.want(ip("9.0.0.1"), &host("a.ke"));
        front.rest(ip("9.0.0.1"), Moment(900));
        front.rest(ip("9.0.0.1"), Moment(300));
        assert_eq!(front.next_due(), Some(Moment(900)));
        front.drop_site(ip("9.0.0.1"), &host("a.ke"));
        assert_eq!((front.next_due(), front.resting()), (None, 0));
        front.tidy(Moment(1000));
        assert_eq!(front.not_before(ip("9.0.0.1")), None);
    }
}
