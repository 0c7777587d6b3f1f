//! Tests that an image is accepted only if every byte is right, and agrees with the hierarchy it was made from.

use super::*;
use crate::snapshot::unpacked;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::sync::Arc;

/// Both families, nested networks over three levels, several organisations, countries and registries.
fn mixed() -> Hierarchy {
    let mut records = String::new();
    for i in 0..40u32 {
        let (cc, holder) = (["KE", "UG", "RW"][i as usize % 3], i % 7);
        records += &format!("r{}|{cc}|ipv4|10.{i}.0.0|65536|20000101|allocated|h{holder}\n", i % 2);
        records += &format!("r0|{cc}|ipv4|10.{i}.16.0|4096|20000101|assigned|h{}\n", (i + 1) % 7);
        records += &format!("r1|UG|ipv4|10.{i}.16.128|64|20000101|assigned|c{i}\n");
        records += &format!("r1|{cc}|ipv6|2001:db8:{i:x}::|48|20000101|allocated|h{holder}\n");
        records += &format!("r0|{cc}|ipv6|2001:db8:{i:x}:8000::|52|20000101|assigned|d{i}\n");
    }
    records += "r0|KE|ipv6|2a00::|12|20000101|allocated|h1\nr0|KE|ipv4|255.255.255.0|256|20000101|allocated|h1\n";
    of(&records)
}

fn open(image: Vec<u8>) -> Result<Hierarchy, ImageError> {
    Hierarchy::open(Arc::new(image))
}

#[test]
fn an_image_is_the_same_hierarchy_wherever_it_lies() {
    let hierarchy = real();
    let opened = open(hierarchy.image().to_vec()).unwrap();
    assert_eq!((opened.hash(), Stats::of(&opened)), (hierarchy.hash(), Stats::of(&hierarchy)));
    assert_eq!(opened.image(), hierarchy.image());
    assert_eq!(unpacked(&opened), unpacked(&hierarchy), "and can be packed again");
    for p in positions(&hierarchy) {
        assert_eq!(opened.locate(hierarchy.subnet(p).first()), hierarchy.locate(hierarchy.subnet(p).first()));
    }
    // Memory need not be aligned.
    struct Odd(Vec<u8>);
    impl AsRef<[u8]> for Odd {
        fn as_ref(&self) -> &[u8] {
            &self.0[1..]
        }
    }
    let odd = Odd([&[0], hierarchy.image()].concat());
    assert_eq!(Hierarchy::open(Arc::new(odd)).unwrap().hash(), hierarchy.hash());
}

#[test]
fn packed_and_unpacked_an_image_is_the_same_to_the_byte() {
    let hierarchy = mixed();
    let unpacked = unpack(&pack(&hierarchy)).unwrap();
    assert_eq!(unpacked.image(), hierarchy.image());
    assert_eq!(pack(&unpacked), pack(&hierarchy));
    assert_eq!(unpack(hierarchy.image()).unwrap().hash(), hierarchy.hash(), "either form is read");
}

/// The bytes that say something: not the long runs of one number in the index of a small hierarchy.
fn telling(image: &[u8]) -> Vec<usize> {
    let changes = |at: usize| at < 4 || image[at] != image[at - 4] || image.get(at + 4) != Some(&image[at]);
    (0..image.len()).filter(|at| changes(*at)).collect()
}

#[test]
fn no_changed_byte_is_believed() {
    let hierarchy = mixed();
    let image = hierarchy.image();
    let mut random = StdRng::seed_from_u64(1);
    let telling = telling(image);
    for round in 0..600 {
        let mut changed = image.to_vec();
        // Half of them where something stands, half anywhere; now and then several bytes.
        for _ in 0..=random.random_range(0..3u32) {
            let at = if round % 2 == 0 { telling[random.random_range(0..telling.len())] } else { random.random_range(0..image.len()) };
            changed[at] ^= random.random_range(1..=255u8);
        }
        if changed != image {
            assert!(open(changed).is_err(), "round {round}");
        }
    }
}

#[test]
fn no_shortened_or_lengthened_image_is_believed() {
    let image = mixed().image().to_vec();
    for cut in (0..256).chain((256..image.len()).step_by(4999)).chain(image.len() - 64..image.len()) {
        assert!(open(image[..cut].to_vec()).is_err(), "cut at {cut}");
    }
    assert_eq!(open([&image[..], &[0]].concat()).unwrap_err(), ImageError::Length);
    assert_eq!(open(b"NCRAWLIM and then something else".to_vec()).unwrap_err(), ImageError::NotAnImage);
    assert_eq!(open(Vec::new()).unwrap_err(), ImageError::NotAnImage);
}

#[test]
fn counts_that_promise_more_than_there_is_cost_nothing() {
    for at in (80..80 + 13 * 4).step_by(4) {
        let mut image = empty().image().to_vec();
        image[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(open(image).unwrap_err(), ImageError::Length, "count at {at}");
    }
}

#[test]
fn an_empty_hierarchy_has_an_image_too() {
    let opened = open(empty().image().to_vec()).unwrap();
    assert!(opened.is_empty());
    assert_eq!((opened.hash(), opened.locate(ip("10.0.0.1")), opened.locate(ip("2001:db8::1"))), (empty().hash(), None, None));
}

#[test]
fn random_addresses_live_in_the_longest_prefix_of_a_large_tree() {
    let mut random = StdRng::seed_from_u64(7);
    let mut extras = Vec::new();
    for _ in 0..3_000 {
        let (v4, v6) = (random.random::<u32>() & 0x0fff_ffff | 0x4000_0000, random.random::<u128>() >> 20 | 0x2a00 << 112);
        extras.push(Subnet::around(std::net::Ipv4Addr::from_bits(v4).into(), random.random_range(8..=30)));
        extras.push(Subnet::around(std::net::Ipv6Addr::from_bits(v6).into(), random.random_range(20..=64)));
    }
    let further = |prefix| FurtherPrefix { prefix, country: String::new(), organisation: "x".into(), registry: String::new() };
    let hierarchy = with_further(&empty(), &extras.iter().copied().map(further).collect::<Vec<_>>()).unwrap();
    let known: std::collections::BTreeSet<Subnet> = extras.iter().copied().collect();
    // Slow and obvious: the first of ever shorter prefixes around the address that is known.
    let naive = |address: IpAddr| {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        (0..=bits).rev().map(|length| Subnet::around(address, length)).find(|s| known.contains(s))
    };
    for round in 0..6_000u32 {
        let address: IpAddr = match round % 4 {
            0 => std::net::Ipv4Addr::from_bits(random.random::<u32>() & 0x0fff_ffff | 0x4000_0000).into(),
            1 => std::net::Ipv6Addr::from_bits(random.random::<u128>() >> 20 | 0x2a00 << 112).into(),
            2 => extras[random.random_range(0..extras.len())].first(),
            _ => std::net::Ipv6Addr::from_bits(random.random()).into(),
        };
        assert_eq!(hierarchy.locate(address).map(|p| hierarchy.subnet(p)), naive(address), "{address}");
    }
}
