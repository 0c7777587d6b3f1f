//! Path of a packet: where it goes, how long it takes, whether it is lost.
//!
//! Pure: time is an argument, chance has a seed.

use crate::{NetlabError, Router};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
    net::Ipv4Addr,
    time::Duration,
};

/// Bytes on their way in the whole network before it drops packets.
const MAX_QUEUED: usize = 256 << 20;

/// A node: a namespace with addresses of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name in this network.
    pub name: String,
    /// Its addresses, which need to be free in this network only.
    pub addresses: Vec<Ipv4Addr>,
}

/// Which nodes there are, and how far apart.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// Round trips between two addresses, named in either order. Between others there is no delay.
    pub round_trips: BTreeMap<(Ipv4Addr, Ipv4Addr), Duration>,
    /// Which packets are lost follows from this.
    pub seed: u64,
    /// The nodes that are behind routers, by their names: a node's addresses are its router's then.
    pub routers: BTreeMap<String, Router>,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dropped {
    /// It is not IPv4, or from or to an address of nobody here.
    NoRoute,
    /// The network is partitioned between the two nodes.
    Parted,
    /// By chance.
    Lost,
    /// Too much is on its way.
    Full,
    /// The kernel did not take it.
    NotTaken,
}

/// A packet on its way: when it is due, its number among all, the node that it goes to, its bytes.
type Packet = Reverse<(Duration, u64, usize, Vec<u8>)>;

/// The state of the network.
#[derive(Debug, Default)]
pub(crate) struct Network {
    names: BTreeMap<String, usize>,
    node_of: BTreeMap<Ipv4Addr, usize>,
    one_way: BTreeMap<(Ipv4Addr, Ipv4Addr), Duration>,
    parted: BTreeSet<(usize, usize)>,
    lossy: BTreeSet<usize>,
    /// Of 2^32 packets between two lossy nodes so many are lost.
    lost_of_all: u64,
    chance: u64,
    sent: u64,
    queued: usize,
    queue: BinaryHeap<Packet>,
    dropped: BTreeMap<Dropped, u64>,
}

impl Network {
    pub(crate) fn new(plan: &Plan) -> Result<Network, NetlabError> {
        let mut network = Network { chance: plan.seed | 1, ..Network::default() };
        for (number, node) in plan.nodes.iter().enumerate() {
            if network.names.insert(node.name.clone(), number).is_some() {
                return Err(NetlabError::Plan(format!("two nodes are called {}", node.name)));
            }
            for address in &node.addresses {
                if network.node_of.insert(*address, number).is_some() {
                    return Err(NetlabError::Plan(format!("two nodes have the address {address}")));
                }
            }
        }
        for ((one, other), round_trip) in &plan.round_trips {
            network.one_way.insert((*one, *other), *round_trip / 2);
            network.one_way.insert((*other, *one), *round_trip / 2);
        }
        Ok(network)
    }

    pub(crate) fn node(&self, name: &str) -> Result<usize, NetlabError> {
        self.names.get(name).copied().ok_or_else(|| NetlabError::Plan(format!("there is no node {name}")))
    }

    /// Nothing passes between these nodes and those any more.
    pub(crate) fn part(&mut self, these: &[usize], those: &[usize]) {
        for one in these {
            for other in those.iter().filter(|other| *other != one) {
                self.parted.extend([(*one, *other), (*other, *one)]);
            }
        }
    }

    /// Everything passes again.
    pub(crate) fn heal(&mut self) {
        self.parted.clear();
    }

    /// Of packets between two of these nodes this share, 0 to 1, is lost.
    pub(crate) fn lose(&mut self, share: f64, nodes: &[usize]) {
        self.lossy = nodes.iter().copied().collect();
        self.lost_of_all = (share.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u64;
    }

    pub(crate) fn dropped(&self) -> &BTreeMap<Dropped, u64> {
        &self.dropped
    }

    /// Queues a packet that a node has just sent, or drops and counts it.
    pub(crate) fn accept(&mut self, from: usize, bytes: &[u8], now: Duration) {
        if let Err(why) = self.route(from, bytes, now) {
            self.count(why);
        }
    }

    pub(crate) fn count(&mut self, why: Dropped) {
        *self.dropped.entry(why).or_default() += 1;
    }

    fn route(&mut self, from: usize, bytes: &[u8], now: Duration) -> Result<(), Dropped> {
        let (source, destination) = ends(bytes).ok_or(Dropped::NoRoute)?;
        let to = *self.node_of.get(&destination).ok_or(Dropped::NoRoute)?;
        if self.node_of.get(&source) != Some(&from) {
            return Err(Dropped::NoRoute);
        }
        if self.parted.contains(&(from, to)) {
            return Err(Dropped::Parted);
        }
        if self.lossy.contains(&from) && self.lossy.contains(&to) && self.draw() < self.lost_of_all {
            return Err(Dropped::Lost);
        }
        if self.queued + bytes.len() > MAX_QUEUED {
            return Err(Dropped::Full);
        }
        let due = now + self.one_way.get(&(source, destination)).copied().unwrap_or_default();
        self.queue.push(Reverse((due, self.sent, to, bytes.to_vec())));
        self.queued += bytes.len();
        self.sent += 1;
        Ok(())
    }

    /// The next packet whose time has come, with the node that it goes to.
    pub(crate) fn take_due(&mut self, now: Duration) -> Option<(usize, Vec<u8>)> {
        if self.next_due()? > now {
            return None;
        }
        let Reverse((_, _, to, bytes)) = self.queue.pop()?;
        self.queued -= bytes.len();
        Some((to, bytes))
    }

    /// When the next packet is due.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.queue.peek().map(|Reverse((due, ..))| *due)
    }

    /// 32 random bits (xorshift).
    fn draw(&mut self) -> u64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        self.chance >> 32
    }
}

/// Source and destination of an IPv4 packet.
fn ends(bytes: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let header: &[u8; 20] = bytes.first_chunk()?;
    let address = |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    (header[0] >> 4 == 4).then(|| (address(12), address(16)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const B: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
    const C: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 3);
    const MS: Duration = Duration::from_millis(1);

    fn network() -> Network {
        let node = |name: &str, address| Node { name: name.to_owned(), addresses: vec![address] };
        let nodes = vec![node("a", A), node("b", B), node("c", C)];
        let round_trips = [((A, B), 100 * MS), ((C, A), 10 * MS)].into();
        Network::new(&Plan { nodes, round_trips, seed: 7, ..Plan::default() }).unwrap()
    }

    fn packet(source: Ipv4Addr, destination: Ipv4Addr, number: u8) -> Vec<u8> {
        let mut bytes = vec![0; 21];
        bytes[0] = 0x45;
        bytes[12..16].copy_from_slice(&source.octets());
        bytes[16..20].copy_from_slice(&destination.octets());
        bytes[20] = number;
        bytes
    }

    #[test]
    fn packets_take_half_a_round_trip_and_stay_in_order() {
        let mut network = network();
        network.accept(0, &packet(A, B, 1), Duration::ZERO);
        network.accept(0, &packet(A, B, 2), Duration::ZERO);
        network.accept(2, &packet(C, A, 3), 40 * MS);
        network.accept(1, &packet(B, C, 4), 41 * MS);
        assert_eq!(network.take_due(40 * MS), None);
        assert_eq!(network.take_due(41 * MS), Some((2, packet(B, C, 4))), "no distance is named between these");
        assert_eq!(network.next_due(), Some(45 * MS));
        assert_eq!(network.take_due(60 * MS), Some((0, packet(C, A, 3))));
        assert_eq!(network.take_due(60 * MS), Some((1, packet(A, B, 1))));
        assert_eq!(network.take_due(60 * MS), Some((1, packet(A, B, 2))));
        assert_eq!((network.take_due(99 * MS), network.queued), (None, 0));
    }

    #[test]
    fn a_parted_network_passes_nothing_until_it_heals() {
        let mut network = network();
        network.part(&[0], &[1, 2]);
        network.accept(0, &packet(A, B, 1), Duration::ZERO);
        network.accept(2, &packet(C, A, 1), Duration::ZERO);
        network.accept(1, &packet(B, C, 2), Duration::ZERO);
        assert_eq!(network.dropped().get(&Dropped::Parted), Some(&2));
        assert_eq!(network.take_due(MS), Some((2, packet(B, C, 2))));
        network.heal();
        network.accept(0, &packet(A, B, 3), Duration::ZERO);
        assert_eq!(network.take_due(50 * MS), Some((1, packet(A, B, 3))));
    }

    #[test]
    fn the_share_that_is_lost_is_lost_between_the_nodes_named() {
        let mut network = network();
        network.lose(0.3, &[0, 1]);
        for _ in 0..10_000 {
            network.accept(0, &packet(A, B, 1), Duration::ZERO);
            network.accept(2, &packet(C, A, 1), Duration::ZERO);
        }
        let lost = network.dropped()[&Dropped::Lost];
        assert!((2_700..3_300).contains(&lost), "{lost}");
        assert_eq!(network.queue.len() as u64, 20_000 - lost);
        network.lose(0.0, &[]);
        network.accept(0, &packet(A, B, 1), Duration::ZERO);
        assert_eq!(network.dropped()[&Dropped::Lost], lost);
    }

    #[test]
    fn what_is_not_from_its_sender_or_goes_nowhere_is_dropped() {
        let mut network = network();
        network.accept(1, &packet(A, B, 1), Duration::ZERO);
        network.accept(0, &packet(A, Ipv4Addr::LOCALHOST, 1), Duration::ZERO);
        network.accept(0, &packet(A, B, 1)[..19], Duration::ZERO);
        let mut six = packet(A, B, 1);
        six[0] = 0x60;
        network.accept(0, &six, Duration::ZERO);
        assert_eq!(network.dropped()[&Dropped::NoRoute], 4);
        assert_eq!(network.next_due(), None);
    }

    #[test]
    fn a_plan_with_two_of_a_kind_is_refused() {
        let node = |name: &str, address| Node { name: name.to_owned(), addresses: vec![address] };
        for nodes in [vec![node("a", A), node("a", B)], vec![node("a", A), node("b", A)]] {
            assert!(matches!(Network::new(&Plan { nodes, ..Plan::default() }), Err(NetlabError::Plan(_))));
        }
        assert!(network().node("d").is_err());
    }
}
