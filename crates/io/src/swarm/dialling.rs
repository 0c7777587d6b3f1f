//! Limits on dialling addresses that other members announce.
//!
//! Such addresses are dialled only if they are public or lie where the operator has members, not often at one place, and not again at once
//! if nobody answered.

use super::{
    messages::{SwarmCounters, count},
    rate::TokenBucket,
};
use ipnetwork::IpNetwork;
use libp2p::{Multiaddr, PeerId, multiaddr::Protocol};
use nearcrawl_model::address::AddressPolicy;
use std::{
    collections::{HashMap, HashSet},
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Peers of whom it is remembered that they were connected, that they could not be reached, and places where peers are said to be.
const MAX_REMEMBERED: usize = 4096;

/// After a failure a peer is not dialled for so long, twice as long after each further one, at most so long.
const AGAIN_AFTER: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(8));

/// At one place so many peers that were never connected are dialled at once, and then one each so many seconds.
const AT_ONE_PLACE: u32 = 4;
const ONE_EACH: Duration = Duration::from_secs(15);

/// Blocks of addresses that are used inside of networks. An operator who has members in one of them opens it.
const INSIDE: [&str; 7] = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16", "fc00::/7", "fe80::/10"];

/// Which addresses may be dialled at all; asked right before connecting. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Dialable {
    policy: Arc<Mutex<AddressPolicy>>,
    counters: Arc<SwarmCounters>,
}

impl Dialable {
    /// Public addresses, these ranges, and the blocks around the addresses in these multiaddrs, which the operator wrote.
    pub(super) fn new<'a>(ranges: &[IpNetwork], named: impl Iterator<Item = &'a String>, counters: Arc<SwarmCounters>) -> Dialable {
        let policy = AddressPolicy { allowed: ranges.to_vec(), ..AddressPolicy::default() };
        let dialable = Dialable { policy: Arc::new(Mutex::new(policy)), counters };
        for address in named.filter_map(|text| text.parse::<Multiaddr>().ok()).filter_map(|address| ip_of(&address)) {
            dialable.open_around(address);
        }
        dialable
    }

    fn policy(&self) -> MutexGuard<'_, AddressPolicy> {
        self.policy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The operator has a member here.
    pub(super) fn open_around(&self, address: IpAddr) {
        let mut policy = self.policy();
        if !address.is_unspecified()
            && policy.check_ip(address).is_err()
            && let Some(block) = block_around(address)
        {
            policy.allowed.push(block);
        }
    }

    /// Looks up a name that the operator wrote, so that what it leads to can be dialled from then on.
    pub(super) fn open_named(&self, address: &Multiaddr) {
        let mut parts = address.iter();
        let (Some(Protocol::Dns(name) | Protocol::Dns4(name) | Protocol::Dns6(name)), Some(Protocol::Tcp(port))) =
            (parts.next(), parts.next())
        else {
            return;
        };
        let (dialable, name) = (self.clone(), name.into_owned());
        tokio::spawn(async move {
            if let Ok(addresses) = tokio::net::lookup_host((name, port)).await {
                addresses.for_each(|found: SocketAddr| dialable.open_around(found.ip()));
            }
        });
    }

    /// May this address be dialled?
    pub(super) fn check(&self, address: IpAddr) -> io::Result<()> {
        self.policy().check_ip(address).map_err(|why| {
            count(&self.counters.dials_forbidden);
            let text = format!("{address} is {why}; such addresses are dialled only where swarm.bootstrap, listen or advertise name one");
            io::Error::new(io::ErrorKind::PermissionDenied, text)
        })
    }
}

/// The address that a multiaddr begins with.
pub(super) fn ip_of(address: &Multiaddr) -> Option<IpAddr> {
    match address.iter().next()? {
        Protocol::Ip4(ip) => Some(ip.into()),
        Protocol::Ip6(ip) => Some(ip.into()),
        _ => None,
    }
}

/// Where an address leads that is exactly an IP address, a port of TCP or QUIC, and perhaps a peer's name; none for any other shape: what
/// stands behind or before those parts could lead elsewhere.
pub(super) fn plain(address: &Multiaddr) -> Option<SocketAddr> {
    let mut parts = address.iter();
    let ip = match parts.next()? {
        Protocol::Ip4(ip) => IpAddr::from(ip),
        Protocol::Ip6(ip) => IpAddr::from(ip),
        _ => return None,
    };
    let port = match parts.next()? {
        Protocol::Tcp(port) => port,
        Protocol::Udp(port) if parts.next()? == Protocol::QuicV1 => port,
        _ => return None,
    };
    let fits = match (parts.next(), parts.next()) {
        (None, _) => true,
        (Some(Protocol::P2p(_)), rest) => rest.is_none(),
        _ => false,
    };
    fits.then(|| SocketAddr::new(ip, port))
}

/// What is opened together with a special address: the block that it is from, or its /16.
fn block_around(address: IpAddr) -> Option<IpNetwork> {
    let inside = INSIDE.iter().filter_map(|block| block.parse::<IpNetwork>().ok()).find(|block| block.contains(address));
    let bits = if address.is_ipv4() { 16 } else { 128 };
    inside.or_else(|| IpNetwork::new(address, bits).and_then(|around| IpNetwork::new(around.network(), bits)).ok())
}

/// Which peers are dialled now.
#[derive(Debug)]
pub(super) struct DialLimits {
    /// Peers that were connected: they are where they say.
    proven: HashSet<PeerId>,
    failed: HashMap<PeerId, (Instant, Duration)>,
    places: HashMap<String, TokenBucket>,
    /// Peers that were never connected and are being dialled.
    under_way: HashSet<PeerId>,
    most_under_way: usize,
}

impl DialLimits {
    /// With so many connections being made at a time.
    pub(super) fn new(most_pending: u32) -> DialLimits {
        DialLimits {
            proven: HashSet::new(),
            failed: HashMap::new(),
            places: HashMap::new(),
            under_way: HashSet::new(),
            // The others are for peers that are known to exist.
            most_under_way: (most_pending / 2).max(1) as usize,
        }
    }

    /// Which of these addresses of a peer may be dialled now; that counts.
    pub(super) fn take(&mut self, peer: PeerId, addresses: Vec<Multiaddr>, now: Instant) -> Vec<Multiaddr> {
        if self.failed.get(&peer).is_some_and(|(until, _)| now < *until) {
            return Vec::new();
        }
        if self.proven.contains(&peer) || self.under_way.contains(&peer) {
            return addresses;
        }
        if self.under_way.len() >= self.most_under_way {
            return Vec::new();
        }
        let free: Vec<Multiaddr> = addresses.into_iter().filter(|address| self.has_room_at(address, now)).collect();
        if !free.is_empty() {
            self.under_way.insert(peer);
        }
        free
    }

    fn has_room_at(&mut self, address: &Multiaddr, now: Instant) -> bool {
        // Through a third member nobody else is dialled; and that one, if it is not connected, by libp2p, which has limits of its own.
        if address.iter().any(|part| part == Protocol::P2pCircuit) {
            return true;
        }
        let place = address.iter().next().map(|part| part.to_string()).unwrap_or_default();
        if self.places.len() >= MAX_REMEMBERED && !self.places.contains_key(&place) {
            self.places.retain(|_, bucket| !bucket.is_full(now));
        }
        let room = self.places.len() < MAX_REMEMBERED || self.places.contains_key(&place);
        room && self.places.entry(place).or_insert_with(|| TokenBucket::every(AT_ONE_PLACE, ONE_EACH, now)).take(now)
    }

    /// Whether this peer could not be reached the last time.
    pub(super) fn has_failed(&self, peer: &PeerId) -> bool {
        self.failed.contains_key(peer)
    }

    /// A connection to this peer stands. Whoever connected to us need not be where it says.
    pub(super) fn connected(&mut self, peer: PeerId, dialled: bool) {
        self.under_way.remove(&peer);
        self.failed.remove(&peer);
        if !dialled {
            return;
        }
        if self.proven.len() >= MAX_REMEMBERED {
            self.proven.clear();
        }
        self.proven.insert(peer);
    }

    /// This peer could not be reached.
    pub(super) fn failed(&mut self, peer: PeerId, now: Instant) {
        self.under_way.remove(&peer);
        if self.failed.len() >= MAX_REMEMBERED && !self.failed.contains_key(&peer) {
            self.failed.retain(|_, (until, _)| now < *until);
        }
        let pause = self.failed.get(&peer).map_or(AGAIN_AFTER.0, |(_, pause)| (*pause * 2).min(AGAIN_AFTER.1));
        if self.failed.len() < MAX_REMEMBERED || self.failed.contains_key(&peer) {
            self.failed.insert(peer, (now + pause, pause));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn public_addresses_are_dialled_and_others_where_the_operator_has_members() {
        let named = ["/ip4/127.70.0.1/tcp/4817".to_owned(), "/ip4/192.168.7.1/tcp/1".to_owned(), "/ip4/0.0.0.0/tcp/4817".to_owned()];
        let counters = Arc::new(SwarmCounters::default());
        let dialable = Dialable::new(&["127.80.0.0/14".parse().unwrap()], named.iter(), counters.clone());
        let may = |address: &str| dialable.check(address.parse().unwrap()).is_ok();
        assert!(may("1.1.1.1") && may("2606:4700::1111"));
        assert!(may("127.70.3.4") && may("127.81.0.1") && may("192.168.200.1"));
        for special in ["127.71.0.1", "127.0.0.1", "10.0.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1", "::1", "fe80::1", "fd00::1"] {
            assert!(!may(special), "{special}");
        }
        assert_eq!(counters.dials_forbidden.load(Ordering::Relaxed), 9);
        dialable.open_around("10.3.2.1".parse().unwrap());
        assert!(may("10.99.0.1") && !may("172.16.0.1"));
    }

    #[test]
    fn an_address_leads_where_it_says_or_nowhere() {
        let id = PeerId::random();
        let leads = |text: &str| plain(&text.parse().unwrap()).map(|address| address.to_string());
        for text in ["/ip4/1.1.1.1/tcp/1", &format!("/ip4/1.1.1.1/tcp/1/p2p/{id}"), &format!("/ip4/1.1.1.1/udp/1/quic-v1/p2p/{id}")] {
            assert_eq!(leads(text).as_deref(), Some("1.1.1.1:1"), "{text}");
        }
        for text in [
            "/ip4/1.1.1.1/tcp/1/ip4/127.0.0.1/tcp/6379",
            &format!("/p2p/{id}/ip4/169.254.169.254/tcp/80"),
            &format!("/ip4/1.1.1.1/tcp/1/p2p/{id}/p2p-circuit"),
            &format!("/ip4/1.1.1.1/tcp/1/p2p/{id}/ip4/10.0.0.1/tcp/80"),
            "/ip4/1.1.1.1/udp/1",
            "/dns4/localhost/tcp/80",
            "/ip4/1.1.1.1",
        ] {
            assert_eq!(leads(text), None, "{text}");
        }
    }

    fn places(number: u32) -> Vec<Multiaddr> {
        vec![format!("/ip4/192.0.2.{number}/tcp/{}", 1000 + number).parse().unwrap()]
    }

    #[test]
    fn a_place_is_not_dialled_for_ever_more_members_that_are_not_there() {
        let now = Instant::now();
        let mut limits = DialLimits::new(100);
        let mut tried = |now| {
            let peer = PeerId::random();
            let taken = !limits.take(peer, places(1), now).is_empty();
            limits.failed(peer, now);
            taken
        };
        assert_eq!((0..50).filter(|_| tried(now)).count(), AT_ONE_PLACE as usize);
        assert_eq!((0..50).filter(|_| tried(now + ONE_EACH)).count(), 1);
        assert!(!limits.take(PeerId::random(), places(2), now).is_empty(), "elsewhere there is room");
    }

    #[test]
    fn who_was_there_before_finds_room_beside_those_who_may_not_exist() {
        let now = Instant::now();
        let mut limits = DialLimits::new(36);
        let known = PeerId::random();
        limits.connected(known, true);
        assert_eq!((0..50).filter(|number| !limits.take(PeerId::random(), places(*number), now).is_empty()).count(), 18);
        assert!(!limits.take(known, places(1), now).is_empty());
    }

    #[test]
    fn after_a_failure_a_peer_is_left_alone_for_a_while() {
        let mut now = Instant::now();
        let mut limits = DialLimits::new(36);
        let peer = PeerId::random();
        limits.connected(peer, true);
        for pause in [500, 1_000, 2_000, 4_000, 8_000, 8_000].map(Duration::from_millis) {
            limits.failed(peer, now);
            assert!(limits.take(peer, places(1), now + pause - Duration::from_millis(1)).is_empty());
            now += pause;
            assert!(!limits.take(peer, places(1), now).is_empty());
        }
        limits.failed(peer, now);
        limits.connected(peer, true);
        assert!(!limits.take(peer, places(1), now).is_empty());
    }
}
