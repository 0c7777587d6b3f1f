//! Tests of the address policy: every special range, every form that wraps an address, and every edge.

use super::{AddressError, AddressPolicy};
use AddressError::*;
use ipnetwork::IpNetwork;
use std::net::{IpAddr, SocketAddr};

/// Address and what the default policy says of it.
const VECTORS: &[(&str, Option<AddressError>)] = &[
    // Each range: below, first, inside, last, above.
    ("0.0.0.0", Some(Unspecified)),
    ("0.1.2.3", Some(Unspecified)),
    ("0.255.255.255", Some(Unspecified)),
    ("1.0.0.0", None),
    ("1.1.1.1", None),
    ("8.8.8.8", None),
    ("9.255.255.255", None),
    ("10.0.0.0", Some(Private)),
    ("10.20.30.40", Some(Private)),
    ("10.255.255.255", Some(Private)),
    ("11.0.0.0", None),
    ("100.63.255.255", None),
    ("100.64.0.0", Some(SharedNat)),
    ("100.100.100.200", Some(SharedNat)),
    ("100.127.255.255", Some(SharedNat)),
    ("100.128.0.0", None),
    ("126.255.255.255", None),
    ("127.0.0.0", Some(Loopback)),
    ("127.0.0.1", Some(Loopback)),
    ("127.0.0.53", Some(Loopback)),
    ("127.255.255.255", Some(Loopback)),
    ("128.0.0.0", None),
    ("168.63.129.15", None),
    ("168.63.129.16", Some(Metadata)),
    ("168.63.129.17", None),
    ("169.253.255.255", None),
    ("169.254.0.0", Some(LinkLocal)),
    ("169.254.169.254", Some(LinkLocal)),
    ("169.254.170.2", Some(LinkLocal)),
    ("169.254.255.255", Some(LinkLocal)),
    ("169.255.0.0", None),
    ("172.15.255.255", None),
    ("172.16.0.0", Some(Private)),
    ("172.17.0.1", Some(Private)),
    ("172.31.255.255", Some(Private)),
    ("172.32.0.0", None),
    ("191.255.255.255", None),
    ("192.0.0.0", Some(Protocol)),
    ("192.0.0.8", Some(Protocol)),
    ("192.0.0.9", Some(Protocol)),
    ("192.0.0.170", Some(Protocol)),
    ("192.0.0.192", Some(Protocol)),
    ("192.0.0.255", Some(Protocol)),
    ("192.0.1.0", None),
    ("192.0.1.255", None),
    ("192.0.2.0", Some(Documentation)),
    ("192.0.2.255", Some(Documentation)),
    ("192.0.3.0", None),
    ("192.31.196.1", None),
    ("192.52.193.1", None),
    ("192.88.98.255", None),
    ("192.88.99.1", Some(Protocol)),
    ("192.88.100.0", None),
    ("192.167.255.255", None),
    ("192.168.0.0", Some(Private)),
    ("192.168.1.1", Some(Private)),
    ("192.168.255.255", Some(Private)),
    ("192.169.0.0", None),
    ("192.175.48.1", None),
    ("198.17.255.255", None),
    ("198.18.0.0", Some(Benchmark)),
    ("198.19.255.255", Some(Benchmark)),
    ("198.20.0.0", None),
    ("198.51.99.255", None),
    ("198.51.100.0", Some(Documentation)),
    ("198.51.100.255", Some(Documentation)),
    ("198.51.101.0", None),
    ("203.0.112.255", None),
    ("203.0.113.0", Some(Documentation)),
    ("203.0.113.255", Some(Documentation)),
    ("203.0.114.0", None),
    ("223.255.255.255", None),
    ("224.0.0.1", Some(Multicast)),
    ("233.252.0.1", Some(Multicast)),
    ("239.255.255.255", Some(Multicast)),
    ("240.0.0.0", Some(Reserved)),
    ("250.1.2.3", Some(Reserved)),
    ("255.255.255.254", Some(Reserved)),
    ("255.255.255.255", Some(Broadcast)),
    ("93.184.216.34", None),
    ("196.201.214.200", None),
    // IPv6.
    ("::", Some(Unspecified)),
    ("::1", Some(Loopback)),
    ("::2", Some(Reserved)),
    ("::127.0.0.1", Some(Reserved)),
    ("::8.8.8.8", Some(Reserved)),
    ("::ffff:127.0.0.1", Some(Loopback)),
    ("::ffff:7f00:1", Some(Loopback)),
    ("::ffff:10.0.0.1", Some(Private)),
    ("::ffff:169.254.169.254", Some(LinkLocal)),
    ("::ffff:0.0.0.0", Some(Unspecified)),
    ("::ffff:8.8.8.8", None),
    ("::ffff:0:127.0.0.1", Some(Reserved)),
    ("64:ff9b::7f00:1", Some(Loopback)),
    ("64:ff9b::10.1.2.3", Some(Private)),
    ("64:ff9b::169.254.169.254", Some(LinkLocal)),
    ("64:ff9b::8.8.8.8", None),
    ("64:ff9b:0:0:1::808:808", Some(Reserved)),
    ("64:ff9b:1::", Some(Private)),
    ("64:ff9b:1::808:808", Some(Private)),
    ("64:ff9b:2::", Some(Reserved)),
    ("100::", Some(Reserved)),
    ("100::1", Some(Reserved)),
    ("100:0:0:1::1", Some(Reserved)),
    ("200::1", Some(Reserved)),
    ("1fff:ffff::1", Some(Reserved)),
    ("2000::1", None),
    ("2001::", Some(Unspecified)),
    ("2001:0:7f00:1::", Some(Loopback)),
    // Teredo: server 65.54.227.120, client 192.0.2.45 (RFC 4380's example) and client 8.8.8.8.
    ("2001:0:4136:e378:8000:63bf:3fff:fdd2", Some(Documentation)),
    ("2001:0:4136:e378:8000:63bf:f7f7:f7f7", None),
    ("2001:0:a00:1:8000:63bf:f7f7:f7f7", Some(Private)),
    ("2001:1::1", Some(Protocol)),
    ("2001:2::1", Some(Benchmark)),
    ("2001:2:1::1", Some(Protocol)),
    ("2001:4:112::1", Some(Protocol)),
    ("2001:10::1", Some(Protocol)),
    ("2001:20::1", Some(Protocol)),
    ("2001:1ff:ffff::1", Some(Protocol)),
    ("2001:200::1", None),
    ("2001:db7:ffff::1", None),
    ("2001:db8::1", Some(Documentation)),
    ("2001:db8:ffff:ffff::1", Some(Documentation)),
    ("2001:db9::1", None),
    ("2001:4860:4860::8888", None),
    ("2002:7f00:1::", Some(Loopback)),
    ("2002:a00:1::1", Some(Private)),
    ("2002:c0a8:101::1", Some(Private)),
    ("2002:808:808::1", None),
    ("2606:4700:4700::1111", None),
    ("2620:4f:8000::1", None),
    ("2a00:1450:4001::200e", None),
    ("3ffe::1", None),
    ("3fff::1", Some(Documentation)),
    ("3fff:fff:ffff::1", Some(Documentation)),
    ("3fff:1000::1", None),
    ("4000::1", Some(Reserved)),
    ("5f00::1", Some(Protocol)),
    ("5f01::1", Some(Reserved)),
    ("fbff::1", Some(Reserved)),
    ("fc00::1", Some(Private)),
    ("fd00:ec2::254", Some(Private)),
    ("fdff:ffff::1", Some(Private)),
    ("fe00::1", Some(Reserved)),
    ("fe80::1", Some(LinkLocal)),
    ("febf:ffff::1", Some(LinkLocal)),
    ("fec0::1", Some(Private)),
    ("ff00::1", Some(Multicast)),
    ("ff02::fb", Some(Multicast)),
    ("ffff:ffff::1", Some(Multicast)),
];

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn every_special_range_is_refused_by_its_class_and_its_neighbours_are_not() {
    assert!(VECTORS.len() >= 120, "only {} vectors", VECTORS.len());
    let policy = AddressPolicy::default();
    let wrong: Vec<_> = VECTORS.iter().filter(|(text, want)| policy.check_ip(ip(text)).err() != *want).collect();
    let found: Vec<_> = wrong.iter().map(|(text, _)| policy.check_ip(ip(text))).collect();
    assert!(wrong.is_empty(), "{wrong:?} but {found:?}");
}

#[test]
fn whatever_is_refused_bare_is_refused_in_every_wrapping() {
    let policy = AddressPolicy::default();
    for (text, want) in VECTORS {
        let IpAddr::V4(inner) = ip(text) else { continue };
        let [a, b, c, d] = inner.octets();
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        for wrapped in [
            format!("::ffff:{high:x}:{low:x}"),
            format!("64:ff9b::{high:x}:{low:x}"),
            format!("2002:{high:x}:{low:x}::1"),
            format!("2001:0:808:808:0:0:{:x}:{:x}", !high, !low),
        ] {
            assert_eq!(policy.check_ip(ip(&wrapped)).err(), *want, "{text} as {wrapped}");
        }
    }
}

#[test]
fn only_the_allowed_ports_are_dialled() {
    let policy = AddressPolicy::default();
    for (port, fine) in [(80, true), (443, true), (8080, true), (8443, true), (0, false), (22, false), (25, false), (6379, false)] {
        let refusal = policy.check(SocketAddr::new(ip("8.8.8.8"), port)).err();
        assert_eq!(refusal, if fine { None } else { Some(Port(port)) });
    }
    let none = AddressPolicy { ports: vec![], ..AddressPolicy::default() };
    assert_eq!(none.check(SocketAddr::new(ip("8.8.8.8"), 80)), Err(Port(80)));
}

#[test]
fn an_allowed_range_opens_itself_and_nothing_else() {
    let policy = AddressPolicy { allowed: vec!["127.10.0.0/16".parse().unwrap()], ..AddressPolicy::default() };
    assert_eq!(policy.check_ip(ip("127.10.3.4")), Ok(()));
    assert_eq!(policy.check_ip(ip("::ffff:127.10.3.4")), Ok(()), "the same address, written otherwise");
    assert_eq!(policy.check_ip(ip("127.11.0.1")), Err(Loopback));
    assert_eq!(policy.check_ip(ip("::1")), Err(Loopback));
    assert_eq!(policy.check_ip(ip("10.0.0.1")), Err(Private));
    assert_eq!(policy.check_ip(ip("64:ff9b::127.10.3.4")), Err(Loopback), "a tunnel ends at another network's loopback");
    assert_eq!(policy.check(SocketAddr::new(ip("127.10.3.4"), 22)), Err(Port(22)), "an open range opens no port");
}

#[test]
fn without_a_contact_nothing_may_be_contacted_that_was_not_opened() {
    let policy = AddressPolicy {
        allowed: vec!["127.10.0.0/16".parse().unwrap()],
        denied: vec!["127.10.9.0/24".parse().unwrap()].into(),
        only_allowed: true,
        ..AddressPolicy::default()
    };
    assert_eq!(policy.check_ip(ip("127.10.3.4")), Ok(()));
    assert_eq!(policy.check_ip(ip("127.10.9.4")), Err(Denied));
    assert_eq!(policy.check_ip(ip("10.0.0.1")), Err(Private), "which needs more than a contact");
    for public in ["1.1.1.1", "2606:4700::1", "64:ff9b::101:101"] {
        assert_eq!(policy.check_ip(ip(public)), Err(NoContact), "{public}");
    }
}

#[test]
fn denied_ranges_and_our_own_addresses_win_over_allowed_ones() {
    let policy = AddressPolicy {
        allowed: vec!["127.0.0.0/8".parse().unwrap()],
        denied: vec!["127.66.0.0/16".parse().unwrap(), "8.8.8.0/24".parse().unwrap()].into(),
        own: vec![ip("127.0.0.5"), ip("9.9.9.9"), ip("::ffff:9.9.9.10")],
        ..AddressPolicy::default()
    };
    assert_eq!(policy.check_ip(ip("127.0.0.6")), Ok(()));
    assert_eq!(policy.check_ip(ip("127.0.0.5")), Err(Own));
    assert_eq!(policy.check_ip(ip("::ffff:127.0.0.5")), Err(Own));
    assert_eq!(policy.check_ip(ip("127.66.1.1")), Err(Denied));
    assert_eq!(policy.check_ip(ip("8.8.8.8")), Err(Denied));
    assert_eq!(policy.check_ip(ip("64:ff9b::8.8.8.8")), Err(Denied));
    assert_eq!(policy.check_ip(ip("2002:808:808::1")), Err(Denied));
    assert_eq!(policy.check_ip(ip("9.9.9.9")), Err(Own));
    assert_eq!(policy.check_ip(ip("9.9.9.10")), Err(Own));
    assert_eq!(policy.check_ip(ip("64:ff9b::9.9.9.9")), Err(Own));
}

#[test]
fn neighbours_in_our_ipv6_network_are_refused_unless_the_network_is_opened_and_those_of_ipv4_are_not() {
    let policy = AddressPolicy::default();
    let near = |addresses: &[&str], networks: &[&str]| {
        let networks: Vec<IpNetwork> = networks.iter().map(|text| text.parse().unwrap()).collect();
        policy.seen_at.set(&addresses.iter().map(|text| ip(text)).collect::<Vec<_>>(), &networks);
    };
    near(&["2a00:1:2:3::7", "9.9.9.9"], &["2a00:5:6:7::8/64", "9.9.8.7/24", "2a00:9::1/128", "2a01:20::1/56", "2a0f::1/0"]);
    assert_eq!(policy.check_ip(ip("2a00:1:2:3::7")), Err(Own));
    assert_eq!(policy.check_ip(ip("2a00:1:2:3::8")), Err(OwnNetwork), "the /64 in which others see us");
    assert_eq!(policy.check_ip(ip("2a00:1:2:4::8")), Ok(()));
    assert_eq!(policy.check_ip(ip("2a00:5:6:7::9")), Err(OwnNetwork), "the network of an interface");
    assert_eq!(policy.check_ip(ip("2a00:9::2")), Err(OwnNetwork), "at least the /64");
    assert_eq!(policy.check_ip(ip("2a01:20:0:ff::1")), Err(OwnNetwork), "a longer network than a /64");
    assert_eq!(policy.check_ip(ip("2a01:20:0:100::1")), Ok(()));
    assert_eq!((policy.check_ip(ip("2a0f:0:1::1")), policy.check_ip(ip("2606:4700::1"))), (Err(OwnNetwork), Ok(())), "not all of IPv6");
    assert_eq!((policy.check_ip(ip("9.9.9.8")), policy.check_ip(ip("9.9.8.6"))), (Ok(()), Ok(())), "customers of a data centre");
    let opened = AddressPolicy { allowed: vec!["2a00:1:2:3::/64".parse().unwrap()], ..policy.clone() };
    assert_eq!(opened.check_ip(ip("2a00:1:2:3::8")), Ok(()));
    assert_eq!(opened.check_ip(ip("2a00:1:2:3::7")), Err(Own));
    assert_eq!(opened.check_ip(ip("2a00:5:6:7::9")), Err(OwnNetwork));
    near(&[], &[]);
    assert_eq!(policy.check_ip(ip("2a00:1:2:3::8")), Ok(()), "it is somewhere else now");
    let named = AddressPolicy { own: vec![ip("2a00:1:2:3::7")], ..AddressPolicy::default() };
    assert_eq!((named.check_ip(ip("2a00:1:2:3::8")), named.check_ip(ip("2a00:1:2:2::8"))), (Err(OwnNetwork), Ok(())));
    assert_eq!(policy.check_ip(ip("fe80::1")), Err(LinkLocal));
}

#[test]
fn every_class_has_its_own_word() {
    let all = [
        Unspecified,
        Loopback,
        Private,
        SharedNat,
        LinkLocal,
        Metadata,
        Protocol,
        Documentation,
        Benchmark,
        Multicast,
        Broadcast,
        Reserved,
        Denied,
        Own,
        OwnNetwork,
        NoContact,
        Port(1),
    ];
    let words: std::collections::BTreeSet<_> = all.iter().map(|refusal| refusal.class()).collect();
    assert_eq!(words.len(), all.len());
}

/// The registries once more, as text; the longest prefix decides. What lies in none of these is for everybody.
const REGISTRIES: &[(&str, Option<AddressError>)] = &[
    ("0.0.0.0/8", Some(Unspecified)),
    ("10.0.0.0/8", Some(Private)),
    ("100.64.0.0/10", Some(SharedNat)),
    ("127.0.0.0/8", Some(Loopback)),
    ("168.63.129.16/32", Some(Metadata)),
    ("169.254.0.0/16", Some(LinkLocal)),
    ("172.16.0.0/12", Some(Private)),
    ("192.0.0.0/24", Some(Protocol)),
    ("192.0.2.0/24", Some(Documentation)),
    ("192.88.99.0/24", Some(Protocol)),
    ("192.168.0.0/16", Some(Private)),
    ("198.18.0.0/15", Some(Benchmark)),
    ("198.51.100.0/24", Some(Documentation)),
    ("203.0.113.0/24", Some(Documentation)),
    ("224.0.0.0/4", Some(Multicast)),
    ("240.0.0.0/4", Some(Reserved)),
    ("255.255.255.255/32", Some(Broadcast)),
    ("::/0", Some(Reserved)),
    ("::/128", Some(Unspecified)),
    ("::1/128", Some(Loopback)),
    ("64:ff9b::/96", None),
    ("64:ff9b:1::/48", Some(Private)),
    ("100::/64", Some(Reserved)),
    ("2000::/3", None),
    ("2001::/23", Some(Protocol)),
    ("2001::/32", None),
    ("2001:2::/48", Some(Benchmark)),
    ("2001:db8::/32", Some(Documentation)),
    ("3fff::/20", Some(Documentation)),
    ("5f00::/16", Some(Protocol)),
    ("fc00::/7", Some(Private)),
    ("fe80::/10", Some(LinkLocal)),
    ("fec0::/10", Some(Private)),
    ("ff00::/8", Some(Multicast)),
];

/// What the registries say of an address, and then of those that it carries.
fn naively(address: IpAddr) -> bool {
    let listed = |address: IpAddr| {
        let ranges = REGISTRIES.iter().map(|(range, class)| (range.parse::<ipnetwork::IpNetwork>().unwrap(), class));
        let longest = ranges.filter(|(range, _)| range.contains(address)).max_by_key(|(range, _)| range.prefix());
        longest.is_some_and(|(_, class)| class.is_some())
    };
    let IpAddr::V6(six) = address else { return listed(address) };
    let bytes = six.octets();
    let four = |at: usize, flip: u8| IpAddr::from([bytes[at] ^ flip, bytes[at + 1] ^ flip, bytes[at + 2] ^ flip, bytes[at + 3] ^ flip]);
    let text = |length: usize| bytes[..length].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    if text(12) == "00000000000000000000ffff" {
        return listed(four(12, 0));
    }
    let mut carried = Vec::new();
    if text(12) == "0064ff9b0000000000000000" {
        carried.push(four(12, 0));
    } else if text(2) == "2002" {
        carried.push(four(2, 0));
    } else if text(4) == "20010000" {
        carried.extend([four(4, 0), four(12, 0xff)]);
    }
    listed(address) || carried.into_iter().any(listed)
}

/// Addresses near the edges of everything: one of the ranges above, or random, with a few bits changed.
fn near_an_edge() -> impl proptest::strategy::Strategy<Value = IpAddr> {
    use proptest::prelude::*;
    let flips = || prop::collection::vec(0u32..128, 0..3);
    (0..REGISTRIES.len() + 4, any::<u128>(), any::<bool>(), flips()).prop_map(|(range, random, last, flips)| {
        let (base, length, is_v4) = match REGISTRIES.get(range) {
            Some((range, _)) => match range.parse::<ipnetwork::IpNetwork>().unwrap() {
                ipnetwork::IpNetwork::V4(range) => (u128::from(range.network().to_bits()) << 96, range.prefix(), true),
                ipnetwork::IpNetwork::V6(range) => (range.network().to_bits(), range.prefix(), false),
            },
            // The wrappings: mapped, NAT64, 6to4, Teredo.
            None => [(0xffff << 32, 96, false), (0x64_ff9b << 96, 96, false), (0x2002 << 112, 16, false), (0x2001 << 112, 32, false)]
                [range - REGISTRIES.len()],
        };
        let inside = u128::MAX.checked_shr(length.into()).unwrap_or(0);
        let mut bits = base | if last { inside } else { random & inside };
        for flip in flips {
            bits ^= 1 << flip;
        }
        if is_v4 { IpAddr::from(((bits >> 96) as u32).to_be_bytes()) } else { IpAddr::from(bits.to_be_bytes()) }
    })
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 50_000, ..Default::default() })]

    #[test]
    fn the_table_says_what_the_registries_say(address in near_an_edge()) {
        let found = AddressPolicy::default().check_ip(address);
        proptest::prop_assert_eq!(found.is_err(), naively(address), "{}: {:?}", address, found);
    }
}
