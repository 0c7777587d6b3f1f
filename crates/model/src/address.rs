//! Policy on the addresses that may be contacted: global ones on the allowed ports, what the operator opened, and never our own.
//!
//! The tables follow IANA's registries of special-purpose addresses. An address that carries another one inside (mapped,
//! NAT64, 6to4, Teredo) is judged by what it carries, because that is where the packets go in the end.

use crate::subnet::Subnet;
use ipnetwork::{IpNetwork, Ipv6Network};
use serde::{Deserialize, Serialize};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

/// The ports that web servers are expected on; others are refused, so that no member can be made to connect to mail or SSH servers.
pub(crate) const WEB_PORTS: [u16; 4] = [80, 443, 8080, 8443];

/// Why an address may not be contacted. The classes are counted one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum AddressError {
    /// `0.0.0.0/8` and `::`: "this network", which many systems take for the machine itself.
    #[error("the unspecified address or \"this network\"")]
    Unspecified,
    /// `127.0.0.0/8` and `::1`.
    #[error("a loopback address")]
    Loopback,
    /// RFC 1918 and unique local addresses.
    #[error("a private address")]
    Private,
    /// `100.64.0.0/10`: behind a carrier's translator.
    #[error("an address of a carrier-grade NAT")]
    SharedNat,
    /// `169.254.0.0/16` and `fe80::/10`; clouds keep their metadata here.
    #[error("a link-local address")]
    LinkLocal,
    /// A cloud's service for its own machines at an otherwise ordinary address.
    #[error("a cloud's internal service")]
    Metadata,
    /// IETF protocol assignments: no web server is there.
    #[error("an address assigned to a protocol")]
    Protocol,
    /// Addresses for documentation.
    #[error("an address for documentation")]
    Documentation,
    /// Addresses for benchmarks.
    #[error("an address for benchmarks")]
    Benchmark,
    /// Multicast.
    #[error("a multicast address")]
    Multicast,
    /// The limited broadcast address.
    #[error("the broadcast address")]
    Broadcast,
    /// Everything that is not, or not yet, global unicast.
    #[error("a reserved address")]
    Reserved,
    /// The operator denied the range.
    #[error("in a range that the configuration denies")]
    Denied,
    /// One of the access point's own addresses.
    #[error("an address of this machine")]
    Own,
    /// The port is not one of those allowed.
    #[error("port {0} is not among the allowed ports")]
    Port(u16),
    /// In an IPv6 network of the access point, where its neighbours are that a router's firewall protects from everybody else.
    #[error("an address in the IPv6 network of this machine")]
    OwnNetwork,
    /// Not one that the operator opened, and none of the others may be contacted: no contact is configured at which people could ask who is
    /// asking.
    #[error("an address that is not opened, and no contact is configured")]
    NoContact,
}

impl AddressError {
    /// The class in one word: the label under which a refusal is counted.
    pub fn class(self) -> &'static str {
        match self {
            AddressError::Unspecified => "unspecified",
            AddressError::Loopback => "loopback",
            AddressError::Private => "private",
            AddressError::SharedNat => "shared-nat",
            AddressError::LinkLocal => "link-local",
            AddressError::Metadata => "metadata",
            AddressError::Protocol => "protocol",
            AddressError::Documentation => "documentation",
            AddressError::Benchmark => "benchmark",
            AddressError::Multicast => "multicast",
            AddressError::Broadcast => "broadcast",
            AddressError::Reserved => "reserved",
            AddressError::Denied => "denied",
            AddressError::Own => "own",
            AddressError::OwnNetwork => "own-network",
            AddressError::NoContact => "no-contact",
            AddressError::Port(_) => "port",
        }
    }
}

/// An IPv6 network of one customer, or one of its local networks, is this long; machines in it are neighbours.
const LOCAL_V6: u8 = 64;

/// No local network is larger; that of a tunnel's interface may be all of IPv6.
const MIN_LOCAL_V6: u8 = 32;

/// Addresses of this access point that no configuration names: those of the router that it is behind, as others see it, and those of its
/// machine's interfaces; and its IPv6 networks. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct SeenAt(Arc<RwLock<Seen>>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    addresses: Vec<IpAddr>,
    networks: Vec<Ipv6Network>,
}

impl SeenAt {
    /// This access point is at these addresses, and its interfaces are in these networks, and no others. The /64 of each IPv6 address is a
    /// network of its own, too. Those of IPv4 are not: in data centres many customers share one, and at home it is private.
    pub fn set(&self, addresses: &[IpAddr], networks: &[IpNetwork]) {
        let addresses: Vec<IpAddr> = addresses.iter().map(IpAddr::to_canonical).collect();
        let of_interfaces = networks.iter().filter_map(|network| match network {
            IpNetwork::V6(network) => local_v6(network.ip(), network.prefix()),
            IpNetwork::V4(_) => None,
        });
        let around = addresses.iter().filter_map(|address| match address {
            IpAddr::V6(address) => local_v6(*address, LOCAL_V6),
            IpAddr::V4(_) => None,
        });
        let mut networks: Vec<Ipv6Network> = of_interfaces.chain(around).collect();
        networks.sort_unstable();
        networks.dedup();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Seen { addresses, networks };
    }

    /// Where it is.
    pub fn get(&self) -> Vec<IpAddr> {
        self.seen().addresses.clone()
    }

    fn seen(&self) -> RwLockReadGuard<'_, Seen> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, address: IpAddr) -> bool {
        self.seen().addresses.contains(&address)
    }

    fn is_near(&self, address: Ipv6Addr) -> bool {
        self.seen().networks.iter().any(|network| network.contains(address))
    }
}

/// The local network of an address with such a prefix.
fn local_v6(address: Ipv6Addr, prefix: u8) -> Option<Ipv6Network> {
    Ipv6Network::new(address, prefix.clamp(MIN_LOCAL_V6, LOCAL_V6)).ok()
}

impl PartialEq for SeenAt {
    fn eq(&self, other: &SeenAt) -> bool {
        let seen = self.seen().clone();
        seen == *other.seen()
    }
}

impl Eq for SeenAt {}

/// What this access point may contact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPolicy {
    /// Special ranges that the operator opens (a laboratory's loopback, a campus). Each opens only itself.
    pub allowed: Vec<IpNetwork>,
    /// Whether no other address may be contacted: those who run the servers there could not reach the operator.
    pub only_allowed: bool,
    /// Ranges that the operator denies; wins over `allowed`.
    pub denied: DeniedRanges,
    /// The access point's own addresses, exactly; wins over `allowed`. The rest of the /64 of one of IPv6 is refused unless it is allowed.
    pub own: Vec<IpAddr>,
    /// The same, as others see it and as its interfaces have it, with its networks.
    pub seen_at: SeenAt,
    /// The ports that may be dialled. With an empty list nothing may.
    pub ports: Vec<u16>,
}

/// Ranges that the operator denies. Clones are one list, which may change while it is in use.
#[derive(Clone, Debug, Default)]
pub struct DeniedRanges(Arc<RwLock<Vec<IpNetwork>>>);

impl DeniedRanges {
    /// These from now on.
    pub fn replace(&self, ranges: Vec<IpNetwork>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = ranges;
    }

    fn contain(&self, address: IpAddr) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).iter().any(|range| range.contains(address))
    }
}

impl From<Vec<IpNetwork>> for DeniedRanges {
    fn from(ranges: Vec<IpNetwork>) -> DeniedRanges {
        DeniedRanges(Arc::new(RwLock::new(ranges)))
    }
}

impl PartialEq for DeniedRanges {
    fn eq(&self, other: &DeniedRanges) -> bool {
        let own = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        own == *other.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Eq for DeniedRanges {}

impl Default for AddressPolicy {
    /// Global addresses on [`WEB_PORTS`].
    fn default() -> Self {
        AddressPolicy {
            allowed: Vec::new(),
            only_allowed: false,
            denied: DeniedRanges::default(),
            own: Vec::new(),
            seen_at: SeenAt::default(),
            ports: WEB_PORTS.to_vec(),
        }
    }
}

impl AddressPolicy {
    /// May this address be contacted at this port?
    pub fn check(&self, address: SocketAddr) -> Result<(), AddressError> {
        self.check_ip(address.ip())?;
        if self.ports.contains(&address.port()) { Ok(()) } else { Err(AddressError::Port(address.port())) }
    }

    /// May this address be contacted at all, whatever the port?
    pub fn check_ip(&self, address: IpAddr) -> Result<(), AddressError> {
        let address = address.to_canonical();
        let carried = carried(address);
        let faces = || std::iter::once(address).chain(carried.iter().flatten().map(|inner| IpAddr::V4(*inner)));
        if faces().any(|face| self.seen_at.has(face) || self.own.iter().any(|own| own.to_canonical() == face)) {
            return Err(AddressError::Own);
        }
        if faces().any(|face| self.denied.contain(face)) {
            return Err(AddressError::Denied);
        }
        // An opened IPv4 range does not open the tunnels to it: they end at another network's gateway.
        if self.allowed.iter().any(|range| range.contains(address)) {
            return Ok(());
        }
        match faces().find_map(special) {
            Some(refusal) => Err(refusal),
            None if self.is_near(address) => Err(AddressError::OwnNetwork),
            None if self.only_allowed => Err(AddressError::NoContact),
            None => Ok(()),
        }
    }

    /// Whether the address is in an IPv6 network of this access point. A home router gives global addresses to printers and the like, and lets
    /// nobody in to them from outside; this access point is inside.
    fn is_near(&self, address: IpAddr) -> bool {
        let IpAddr::V6(address) = address else { return false };
        let around =
            |own: &IpAddr| matches!(own, IpAddr::V6(own) if local_v6(*own, LOCAL_V6).is_some_and(|network| network.contains(address)));
        self.seen_at.is_near(address) || self.own.iter().any(around)
    }
}

/// The network of an address, as it is usually given to one customer whole: its /24, or its /48. An IPv6 address that carries an IPv4
/// address is in the network of that one, because whoever has the one gets the other at no cost.
pub fn network_of(address: IpAddr) -> Subnet {
    let address = address.to_canonical();
    match (address, carried(address)) {
        (IpAddr::V4(_), _) => Subnet::around(address, 24),
        // Of Teredo's two the client's.
        (IpAddr::V6(_), [_, Some(inner)] | [Some(inner), None]) => Subnet::around(IpAddr::V4(inner), 24),
        (IpAddr::V6(_), [None, None]) => Subnet::around(address, 48),
    }
}

/// The IPv4 addresses that an IPv6 address carries: one for NAT64 and 6to4, two for Teredo (server and client).
/// Mapped addresses are canonical, that is IPv4, before they come here.
fn carried(address: IpAddr) -> [Option<Ipv4Addr>; 2] {
    let IpAddr::V6(address) = address else { return [None, None] };
    let bits = address.to_bits();
    let v4 = |bits: u128| Some(Ipv4Addr::from_bits(bits as u32));
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => [v4(bits), None],
        [0x2002, ..] => [v4(bits >> 80), None],
        // The client's address is stored inverted (RFC 4380 §4).
        [0x2001, 0, ..] => [v4(bits >> 64), v4(!bits)],
        _ => [None, None],
    }
}

/// The class of a special-purpose address, none for a global one.
fn special(address: IpAddr) -> Option<AddressError> {
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

/// One line of the IPv4 table: network, prefix length, class.
type LineV4 = ([u8; 4], u8, AddressError);

/// IANA IPv4 Special-Purpose Address Registry without what it calls globally reachable; most specific first.
const SPECIAL_V4: &[LineV4] = &[
    ([255, 255, 255, 255], 32, AddressError::Broadcast),
    ([168, 63, 129, 16], 32, AddressError::Metadata),
    ([192, 0, 0, 0], 24, AddressError::Protocol),
    ([192, 0, 2, 0], 24, AddressError::Documentation),
    ([192, 88, 99, 0], 24, AddressError::Protocol),
    ([198, 51, 100, 0], 24, AddressError::Documentation),
    ([203, 0, 113, 0], 24, AddressError::Documentation),
    ([169, 254, 0, 0], 16, AddressError::LinkLocal),
    ([192, 168, 0, 0], 16, AddressError::Private),
    ([198, 18, 0, 0], 15, AddressError::Benchmark),
    ([172, 16, 0, 0], 12, AddressError::Private),
    ([100, 64, 0, 0], 10, AddressError::SharedNat),
    ([0, 0, 0, 0], 8, AddressError::Unspecified),
    ([10, 0, 0, 0], 8, AddressError::Private),
    ([127, 0, 0, 0], 8, AddressError::Loopback),
    ([224, 0, 0, 0], 4, AddressError::Multicast),
    ([240, 0, 0, 0], 4, AddressError::Reserved),
];

fn special_v4(address: Ipv4Addr) -> Option<AddressError> {
    let bits = address.to_bits();
    let is_in = |(network, length, _): &&LineV4| (bits ^ u32::from_be_bytes(*network)) >> (32 - u32::from(*length)) == 0;
    SPECIAL_V4.iter().find(is_in).map(|line| line.2)
}

/// One line of the IPv6 table: the network's first four groups, prefix length (at most 64), class.
type LineV6 = ([u16; 4], u8, AddressError);

/// IANA IPv6 Special-Purpose Address Registry; most specific first. Teredo, 6to4 and NAT64 are judged by what they carry.
const SPECIAL_V6: &[LineV6] = &[
    ([0x100, 0, 0, 0], 64, AddressError::Reserved),
    ([0x64, 0xff9b, 1, 0], 48, AddressError::Private),
    ([0x2001, 2, 0, 0], 48, AddressError::Benchmark),
    ([0x2001, 0xdb8, 0, 0], 32, AddressError::Documentation),
    ([0x3fff, 0, 0, 0], 20, AddressError::Documentation),
    ([0x5f00, 0, 0, 0], 16, AddressError::Protocol),
    ([0xfe80, 0, 0, 0], 10, AddressError::LinkLocal),
    ([0xfec0, 0, 0, 0], 10, AddressError::Private),
    ([0xff00, 0, 0, 0], 8, AddressError::Multicast),
    ([0xfc00, 0, 0, 0], 7, AddressError::Private),
];

fn special_v6(address: Ipv6Addr) -> Option<AddressError> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => return Some(AddressError::Unspecified),
        [0, 0, 0, 0, 0, 0, 0, 1] => return Some(AddressError::Loopback),
        // What these carry has been judged beside them.
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] | [0x2001, 0, ..] => return None,
        _ => {}
    }
    let high = (address.to_bits() >> 64) as u64;
    let network = |groups: [u16; 4]| groups.iter().fold(0u64, |bits, group| bits << 16 | u64::from(*group));
    let is_in = |network: u64, length: u8| (high ^ network) >> (64 - u32::from(length)) == 0;
    if let Some(line) = SPECIAL_V6.iter().find(|line| is_in(network(line.0), line.1)) {
        return Some(line.2);
    }
    if is_in(network([0x2001, 0, 0, 0]), 23) {
        return Some(AddressError::Protocol);
    }
    // Only 2000::/3 has been given out as global unicast.
    if is_in(network([0x2000, 0, 0, 0]), 3) { None } else { Some(AddressError::Reserved) }
}

#[cfg(test)]
mod tests;
