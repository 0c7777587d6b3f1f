//! Benchmark of building the whole world's WHOIS on a small machine.
//!
//! `cargo bench --bench build` builds five million nested subnets in a process of its own and prints what it took; other sizes: `cargo
//! bench --bench build -- 1000000`.

use nearcrawl_hierarchy::{Builder, Hierarchy, pack, unpack};
use std::{sync::Arc, time::Instant};

mod support;

/// Of so many subnets each organisation has one, on average.
const OF_A_HOLDER: u32 = 5;

/// A line of /proc/self/status in megabytes.
fn memory(line: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = status.lines().find_map(|l| l.strip_prefix(line)?.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    kilobytes.unwrap_or(f64::NAN) * 1024.0 / 1e6
}

fn main() {
    let subnets = std::env::args().filter_map(|a| a.parse().ok()).next().unwrap_or(5_000_000);
    let since = Instant::now();
    let told = |what: &str| println!("{what}: {:.1?}, {:.0} MB now, {:.0} MB at most", since.elapsed(), memory("VmRSS:"), memory("VmHWM:"));
    let mut builder = Builder::new();
    builder.read_delegated("made", support::registry(subnets, OF_A_HOLDER, 1)).expect("the records are well-formed");
    told("read");
    let hierarchy = builder.finish().expect("they are within the limits");
    told("built");
    let bytes = hierarchy.image().len();
    println!(
        "{} subnets, {} organisations, image {:.1} MB ({:.1} bytes a subnet)",
        hierarchy.len(),
        hierarchy.organisations(),
        bytes as f64 / 1e6,
        bytes as f64 / f64::from(hierarchy.len())
    );
    let packed = pack(&hierarchy);
    told("packed");
    println!("packed {:.1} MB", packed.len() as f64 / 1e6);
    let image = hierarchy.image().to_vec();
    drop(hierarchy);
    let opening = Instant::now();
    let opened = Hierarchy::open(Arc::new(image)).expect("it is what was built");
    println!("opened and checked in {:.2?}", opening.elapsed());
    drop(opened);
    let unpacking = Instant::now();
    unpack(&packed).expect("it is what was packed");
    println!("unpacked and checked in {:.2?}", unpacking.elapsed());
    told("all");
}
