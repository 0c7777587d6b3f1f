//! Prefix arithmetic: addresses as numbers, and ranges cut at prefix boundaries.

use nearcrawl_model::subnet::Subnet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A prefix as numbers. The order is that of a walk through the address space: IPv4 before IPv6, by first address, the
/// covering prefix before those inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Prefix {
    /// Whether it is IPv6.
    pub v6: bool,
    /// First address as a number.
    pub first: u128,
    /// Length in bits.
    pub length: u8,
}

/// What is added to the length of an IPv6 prefix where only the length is stored.
pub(super) const V6_LENGTH: u8 = 64;

/// The shortest prefix that is believed: nobody holds more than an eighth of an address space.
pub(super) const SHORTEST: u8 = 3;

/// How many bits addresses of a family have.
pub(super) const fn family_bits(v6: bool) -> u8 {
    if v6 { 128 } else { 32 }
}

/// An address as family and number; an IPv4 address mapped into IPv6 is the IPv4 address.
pub(super) fn number(address: IpAddr) -> (bool, u128) {
    match address.to_canonical() {
        IpAddr::V4(ip) => (false, u128::from(ip.to_bits())),
        IpAddr::V6(ip) => (true, ip.to_bits()),
    }
}

impl Prefix {
    /// The prefix that a hierarchy keeps as a length (IPv6 with [`V6_LENGTH`] added) and a head: an IPv4 address, or where `long` has
    /// the IPv6 address.
    pub(crate) fn stored(length: u8, head: u32, long: impl FnOnce(u32) -> u128) -> Prefix {
        match length.checked_sub(V6_LENGTH) {
            None => Prefix { v6: false, first: u128::from(head), length },
            Some(length) => Prefix { v6: true, first: long(head), length },
        }
    }

    /// The last address as a number.
    pub(crate) fn last(&self) -> u128 {
        let host_bits = family_bits(self.v6) - self.length;
        self.first | if host_bits == 128 { u128::MAX } else { (1 << host_bits) - 1 }
    }

    /// Whether `other` lies inside or is the same.
    pub(crate) fn covers(&self, other: &Prefix) -> bool {
        self.v6 == other.v6 && self.length <= other.length && self.first <= other.first && other.first <= self.last()
    }

    /// The same as a value of the model.
    pub(crate) fn subnet(&self) -> Subnet {
        let address =
            if self.v6 { IpAddr::V6(Ipv6Addr::from_bits(self.first)) } else { IpAddr::V4(Ipv4Addr::from_bits(self.first as u32)) };
        Subnet::around(address, self.length)
    }
}

impl From<&Subnet> for Prefix {
    fn from(subnet: &Subnet) -> Prefix {
        // Not `number`: a prefix of mapped addresses is an IPv6 prefix and its length counts 128 bits.
        let (v6, first) = match subnet.first() {
            IpAddr::V4(ip) => (false, u128::from(ip.to_bits())),
            IpAddr::V6(ip) => (true, ip.to_bits()),
        };
        Prefix { v6, first, length: subnet.length() }
    }
}

/// Cuts the range from `first` to `last` (both included) into the fewest prefixes, in address order.
pub(super) fn cut(v6: bool, first: u128, last: u128) -> impl Iterator<Item = Prefix> {
    let bits = u32::from(family_bits(v6));
    let mut next = (first <= last).then_some(first);
    std::iter::from_fn(move || {
        let first = next?;
        // The largest power of two that starts here and does not pass the end.
        let room = (last - first).checked_add(1).map_or(128, u128::ilog2);
        let size = first.trailing_zeros().min(bits).min(room);
        let prefix = Prefix { v6, first, length: (bits - size) as u8 };
        next = prefix.last().checked_add(1).filter(|n| *n <= last);
        Some(prefix)
    })
}
