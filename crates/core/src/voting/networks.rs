//! The networks in which each member was seen, for limits on votes by network.
//!
//! A key costs nothing, an address does: so there is at most one vote for each network (/24, /48), and of the voters of larger lists at
//! most a third for each autonomous system.
//!
//! What counts is the address at the other end of a member's own connection, as this access point saw it; what members say of themselves or
//! of others does not. Two access points may have seen different things, so each judges for itself.

use crate::context::Context;
use nearcrawl_model::{access_point::AccessPoint, address::network_of, subnet::Subnet, time::Moment, vote::VoterList};
use std::{
    collections::{BTreeMap, VecDeque},
    net::IpAddr,
};

/// From this number of voters on at most a third of them may be of one autonomous system. Smaller swarms would often have none.
const SYSTEMS_COUNT_FROM: usize = 7;

/// Members whose networks are remembered: as many as have an address that is remembered.
pub(crate) const MAX_SEEN: usize = 8_192;

/// Networks of one member that are remembered, the last ones: more than there are voters, so that whoever moves from one to the next to make
/// room for another key of its own needs as many networks as it gets votes.
const MAX_OF_ONE: usize = 8;

/// Where a member was seen.
#[derive(Debug, Default)]
struct Seen {
    at: Moment,
    /// Networks, the last one last; those of which each address counts for itself are not among them.
    networks: VecDeque<Subnet>,
    /// Whether the last address was one that counts for itself.
    singly: bool,
    /// The autonomous system of the last one, if the hierarchy knows it.
    asn: Option<u32>,
}

/// The networks of members.
#[derive(Debug)]
pub(crate) struct Networks {
    me: AccessPoint,
    /// Ranges in which each address counts for itself: those of laboratories.
    singly: Vec<Subnet>,
    seen: BTreeMap<AccessPoint, Seen>,
    /// Grows whenever something changes that decides who has a place on a list.
    version: u64,
}

impl Networks {
    /// Nobody has been seen yet.
    pub(crate) fn new(me: AccessPoint, singly: Vec<Subnet>) -> Networks {
        // Behind an address translator no address of one's own may be known.
        Networks { me, singly, seen: BTreeMap::from([(me, Seen { singly: true, ..Seen::default() })]), version: 0 }
    }

    /// This access point has this address itself.
    pub(crate) fn have(&mut self, cx: &Context, address: IpAddr) {
        self.note(cx, self.me, address);
    }

    /// A member is connected from this address. Those that are on `list` are never forgotten for others.
    pub(crate) fn saw(&mut self, cx: &mut Context, who: AccessPoint, address: IpAddr, list: Option<&VoterList>) {
        if !self.seen.contains_key(&who) && self.seen.len() >= MAX_SEEN {
            let stays = |who: &AccessPoint| *who == self.me || list.is_some_and(|list| list.contains(who));
            let oldest = self.seen.iter().filter(|(who, _)| !stays(who)).min_by_key(|(_, seen)| seen.at).map(|(who, _)| *who);
            oldest.map(|oldest| self.seen.remove(&oldest));
            cx.refuse("networks of members beyond the limit");
        }
        self.note(cx, who, address);
    }

    fn note(&mut self, cx: &Context, who: AccessPoint, address: IpAddr) {
        let address = address.to_canonical();
        let network = network_of(address);
        // Whoever connects from a loopback address is on this machine.
        let singly = address.is_loopback() || self.singly.iter().any(|range| range.contains(address));
        let seen = self.seen.entry(who).or_default();
        seen.at = cx.now.moment;
        self.version += 1;
        seen.singly = singly;
        seen.asn = cx.hierarchy.asn_of(address).filter(|_| !singly);
        if !singly && seen.networks.back() != Some(&network) {
            seen.networks.retain(|known| *known != network);
            seen.networks.push_back(network);
            if seen.networks.len() > MAX_OF_ONE {
                seen.networks.pop_front();
            }
        }
    }

    /// Another number whenever who is in which network may be told otherwise than before.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// How many members' networks are remembered.
    pub(crate) fn len(&self) -> usize {
        self.seen.len()
    }

    /// In which network a member was seen last; none if it was not seen, or counts for itself.
    pub(crate) fn network(&self, who: &AccessPoint) -> Option<Subnet> {
        let seen = self.seen.get(who).filter(|seen| !seen.singly)?;
        seen.networks.back().copied()
    }

    /// Whether these two are in one network, as they were seen last; this access point itself is in all that it has addresses of.
    pub(crate) fn together(&self, one: &AccessPoint, other: &AccessPoint) -> bool {
        let (mut one, mut other) = (one, other);
        if *other == self.me {
            std::mem::swap(&mut one, &mut other);
        }
        let Some(network) = self.network(other) else { return false };
        let of_mine = |seen: &Seen| seen.networks.contains(&network);
        if *one == self.me { self.seen.get(one).is_some_and(of_mine) } else { self.network(one) == Some(network) }
    }

    /// Whether a newcomer may not become a voter beside this one: both were seen in one network at any time, or neither was seen at all.
    /// All that are not seen, because others pass on what they say, count as being in one network.
    pub(crate) fn excludes(&self, newcomer: &AccessPoint, beside: &AccessPoint) -> bool {
        match (self.seen.get(newcomer), self.seen.get(beside)) {
            (Some(one), Some(other)) => one.networks.iter().any(|network| other.networks.contains(network)),
            (None, None) => true,
            _ => false,
        }
    }

    /// Whether a list of `size` voters has as many voters of this one's autonomous system as it may, with these on it.
    pub(crate) fn is_crowded<'a>(&self, who: &AccessPoint, size: usize, voters: impl IntoIterator<Item = &'a AccessPoint>) -> bool {
        let asn = |who: &AccessPoint| self.seen.get(who).and_then(|seen| seen.asn);
        let Some(system) = asn(who).filter(|_| size >= SYSTEMS_COUNT_FROM) else { return false };
        voters.into_iter().filter(|voter| *voter != who && asn(voter) == Some(system)).count() >= size / 3
    }

    /// How many of these voters of a list of `size` could be done without: they are beside another in a network, or too many of a system.
    pub(crate) fn surplus(&self, voters: &[AccessPoint], size: usize) -> usize {
        self.split(voters, size).1.len()
    }

    /// Those of these voters that count, in order, and those that could be done without.
    pub(crate) fn split(&self, voters: &[AccessPoint], size: usize) -> (Vec<AccessPoint>, Vec<AccessPoint>) {
        let (mut count, mut surplus) = (Vec::new(), Vec::new());
        for voter in voters {
            let beside = count.iter().any(|other| self.together(voter, other));
            if beside || self.is_crowded(voter, size, &count) { surplus.push(*voter) } else { count.push(*voter) }
        }
        (count, surplus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_hierarchy::{Builder, Format, RoutedUse};
    use std::sync::Arc;

    fn ap(number: u8) -> AccessPoint {
        AccessPoint([number; 32])
    }

    fn at(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_of_one_network_are_told_by_their_24_or_48_bits_whatever_form_they_come_in() {
        let mut cx = Context::of_test(99);
        let mut networks = Networks::new(cx.me, vec!["10.0.0.0/8".parse().unwrap()]);
        let mut together = |one: &str, other: &str| {
            networks.saw(&mut cx, ap(1), at(one), None);
            networks.saw(&mut cx, ap(2), at(other), None);
            networks.together(&ap(1), &ap(2))
        };
        assert!(together("192.0.2.1", "192.0.2.255"));
        assert!(!together("192.0.2.1", "192.0.3.1"));
        assert!(together("192.0.2.1", "::ffff:192.0.2.7"));
        assert!(together("2001:db8:1:2::1", "2001:db8:1:ffff::2"));
        assert!(!together("2001:db8:1::1", "2001:db8:2::1"));
        assert!(together("192.0.2.1", "2002:c000:0207::1"), "6to4: each IPv4 address has a /48 of its own");
        assert!(!together("10.0.0.1", "10.0.0.2"), "a laboratory's");
        assert!(!together("127.0.0.1", "127.0.0.1"), "this machine");
        assert!(together("172.16.0.1", "172.16.0.2"), "a private network is one");
    }

    #[test]
    fn what_this_access_point_has_itself_counts_too() {
        let mut cx = Context::of_test(99);
        let mut networks = Networks::new(cx.me, Vec::new());
        networks.saw(&mut cx, ap(1), at("192.0.2.1"), None);
        assert!(!networks.together(&ap(1), &cx.me) && !networks.excludes(&ap(1), &cx.me));
        networks.have(&cx, at("192.0.2.2"));
        networks.have(&cx, at("2001:db8::1"));
        assert!(networks.together(&ap(1), &cx.me) && networks.together(&cx.me, &ap(1)) && networks.excludes(&ap(1), &cx.me));
    }

    #[test]
    fn a_third_of_seven_voters_may_be_of_one_autonomous_system() {
        let mut cx = Context::of_test(99);
        let table = b"prefix,country,asn,name\n198.18.0.0/15,KE,64512,Museum\n203.0.113.0/24,KE,64513,Archive\n";
        let mut builder = Builder::new();
        builder.read("table", &table[..], Format::Networks, RoutedUse::default()).unwrap();
        cx.hierarchy = Arc::new(builder.finish().unwrap());
        let mut networks = Networks::new(cx.me, Vec::new());
        for number in 1..=5 {
            networks.saw(&mut cx, ap(number), IpAddr::from([198, 18, number, 1]), None);
        }
        networks.saw(&mut cx, ap(6), at("203.0.113.1"), None);
        networks.saw(&mut cx, ap(7), at("192.0.2.1"), None);
        assert!(!networks.is_crowded(&ap(3), 7, &[ap(1), ap(6), ap(7)]));
        assert!(networks.is_crowded(&ap(3), 7, &[ap(1), ap(2), ap(6)]));
        assert!(!networks.is_crowded(&ap(3), 5, &[ap(1), ap(2), ap(4)]), "fewer voters may");
        assert!(!networks.is_crowded(&ap(6), 7, &[ap(1), ap(2)]));
        assert!(!networks.is_crowded(&ap(7), 7, &[ap(1), ap(2)]), "of which nobody knows the system");
        let (count, surplus) = networks.split(&[ap(1), ap(2), ap(3), ap(6), ap(7)], 7);
        assert_eq!((count, surplus), (vec![ap(1), ap(2), ap(6), ap(7)], vec![ap(3)]));
    }

    #[test]
    fn the_longest_unseen_make_room_and_voters_do_not() {
        let mut cx = Context::of_test(99);
        let mut networks = Networks::new(cx.me, Vec::new());
        let numbered = |number: u64| {
            let mut key = [9; 32];
            key[..8].copy_from_slice(&number.to_be_bytes());
            AccessPoint(key)
        };
        let list = VoterList { number: 1, voters: vec![numbered(0)], age: 0 };
        for number in 0..MAX_SEEN as u64 + 10 {
            cx.now.moment = Moment(number);
            networks.saw(&mut cx, numbered(number), at("192.0.2.1"), Some(&list));
        }
        assert_eq!(networks.len(), MAX_SEEN);
        assert!(networks.network(&numbered(0)).is_some() && networks.network(&numbered(1)).is_none());
        assert!(cx.counters.refused["networks of members beyond the limit"] > 0);
    }
}
