//! Benchmark of finding the smallest subnet of an address among a million: `cargo bench --bench lookup`.
//!
//! Before anything is timed, a million addresses are looked up and compared with a naive search.

use criterion::{Criterion, criterion_group, criterion_main};
use nearcrawl_hierarchy::{Builder, Hierarchy, Position};
use nearcrawl_model::subnet::Subnet;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::{
    collections::HashMap,
    hint::black_box,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::Instant,
};

mod support;

const SUBNETS: u32 = 1_000_000;
/// Addresses asked for, over and over: too many for their subnets to stay in a cache.
const ADDRESSES: usize = 1 << 20;

fn million() -> Hierarchy {
    let mut builder = Builder::new();
    builder.read_delegated("made", support::registry(SUBNETS, 10, 1)).expect("the records are well-formed");
    let since = Instant::now();
    let hierarchy = builder.finish().expect("they are within the limits");
    let bytes = hierarchy.image().len();
    println!(
        "{} subnets of {} organisations, tree made in {:.2?}, image {:.1} MB, {:.1} bytes a subnet",
        hierarchy.len(),
        hierarchy.organisations(),
        since.elapsed(),
        bytes as f64 / 1e6,
        bytes as f64 / f64::from(hierarchy.len()),
    );
    hierarchy
}

fn random_v4(random: &mut StdRng) -> IpAddr {
    Ipv4Addr::from_bits(random.random()).into()
}

/// An address within a random subnet.
fn hit(hierarchy: &Hierarchy, random: &mut StdRng, v6: bool) -> IpAddr {
    loop {
        match hierarchy.subnet(Position(random.random_range(0..hierarchy.len()))) {
            subnet if subnet.first().is_ipv6() != v6 => continue,
            subnet => match subnet.first() {
                IpAddr::V4(first) => return Ipv4Addr::from_bits(first.to_bits() | random.random::<u32>() >> subnet.length()).into(),
                IpAddr::V6(first) => return Ipv6Addr::from_bits(first.to_bits() | random.random::<u128>() >> subnet.length()).into(),
            },
        }
    }
}

/// Compares a million look-ups with a naive search: ever shorter prefixes around the address, until one is known.
fn check(hierarchy: &Hierarchy) {
    let known: HashMap<Subnet, Position> = (0..hierarchy.len()).map(Position).map(|p| (hierarchy.subnet(p), p)).collect();
    let mut random = StdRng::seed_from_u64(3);
    let mut found = 0;
    for round in 0..1_000_000 {
        let address = match round % 4 {
            0 | 1 => random_v4(&mut random),
            2 => hit(hierarchy, &mut random, false),
            _ => hit(hierarchy, &mut random, true),
        };
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let naive = (0..=bits).rev().find_map(|length| known.get(&Subnet::around(address, length)).copied());
        assert_eq!(hierarchy.locate(address), naive, "{address}");
        found += u32::from(naive.is_some());
    }
    println!("1000000 addresses found where a naive search finds them, {found} of them in some subnet");
}

fn lookup(criterion: &mut Criterion) {
    let hierarchy = million();
    check(&hierarchy);
    let mut random = StdRng::seed_from_u64(2);
    let mut bench = |name: &str, address: &mut dyn FnMut(&mut StdRng) -> IpAddr| {
        let addresses: Vec<IpAddr> = (0..ADDRESSES).map(|_| address(&mut random)).collect();
        let mut next = 0;
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| {
                next = (next + 1) % ADDRESSES;
                black_box(hierarchy.locate(addresses[next]))
            });
        });
        // Each address is only known when the one before was found: nothing overlaps.
        let mut next = 0;
        criterion.bench_function(&format!("{name}, one after another"), |bencher| {
            bencher.iter(|| {
                let found = hierarchy.locate(addresses[next]).map_or(0, |p| p.0 as usize & 1);
                next = (next + 1 + found) % ADDRESSES;
                next
            });
        });
    };
    bench("any IPv4 address", &mut random_v4);
    bench("IPv4 address in a random subnet", &mut |random| hit(&hierarchy, random, false));
    bench("IPv6 address in a random subnet", &mut |random| hit(&hierarchy, random, true));
}

criterion_group!(benches, lookup);
criterion_main!(benches);
