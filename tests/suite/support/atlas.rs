//! The real places that daemons and servers stand for.
//!
//! There are twelve and 220 of them, moved onto loopback with their registration and distances.
//!
//! Real addresses become loopback addresses one to one: each /24 becomes a /24, and a registered block becomes the smallest range that
//! holds what became of everything in it. So who is whose sibling, parent and fellow of one organisation stays as it is in the
//! registries' files, and daemons and laboratory can be given the same hierarchy of the same addresses.

use super::Ground;
use ipnetwork::Ipv4Network;
use nearcrawl_lab::web::server::{HttpAnswer, HttpSite};
use nearcrawl_model::url::Host;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    time::Duration,
};

/// How many bits of a loopback address are the same for all of them: so many places need more than a /16.
pub const RANGE_BITS: u8 = 14;

/// An anchor: where it really is, and what it is here.
#[derive(Clone, Debug)]
pub struct Anchor {
    pub id: String,
    pub address: Ipv4Addr,
    pub host: Host,
    registry: String,
    country: String,
    holder: String,
    real: Ipv4Addr,
    networks: Vec<Ipv4Network>,
}

/// The excerpt, on loopback.
#[derive(Debug)]
pub struct RealPlaces {
    /// Where the daemons are.
    pub points: Vec<Anchor>,
    /// Where the servers are.
    pub sites: Vec<Anchor>,
    /// What became of each block.
    moved: BTreeMap<Ipv4Network, Ipv4Network>,
    /// Milliseconds by the loopback addresses of server and asker.
    round_trips: BTreeMap<(Ipv4Addr, Ipv4Addr), f64>,
    /// Answers take so many times as long as the real round trip.
    pub scale: f64,
}

fn fixture(name: &str) -> csv::Reader<std::fs::File> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/latency/atlas-12x220").join(name);
    csv::Reader::from_path(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

impl RealPlaces {
    /// Reads the excerpt and moves it onto this ground.
    pub fn new(ground: &Ground, scale: f64) -> RealPlaces {
        RealPlaces::from(ground.first(), scale)
    }

    /// The same from this address on, which begins a range of [`RANGE_BITS`].
    pub fn from(first: Ipv4Addr, scale: f64) -> RealPlaces {
        let mut anchors = Vec::new();
        for row in fixture("nodes.csv").into_records() {
            let row = row.expect("a row of nodes");
            let networks = row[8].split(' ').map(|network| network.parse().expect("a network")).collect();
            let text = |column: usize| row[column].to_owned();
            let real: Ipv4Addr = row[1].parse().expect("an address");
            let host = format!("anchor{}.{}.test", &row[0], row[2].to_lowercase()).parse().expect("a host");
            let (registry, country, holder) = (text(5), text(6), text(7));
            let anchor = Anchor { id: text(0), address: real, host, registry, country, holder, real, networks };
            anchors.push((&row[4] == "1", anchor));
        }
        let moved = move_blocks(anchors.iter().map(|(_, anchor)| anchor), first);
        let mut places = RealPlaces { points: Vec::new(), sites: Vec::new(), moved, round_trips: BTreeMap::new(), scale };
        let mut by_id = BTreeMap::new();
        for (is_source, mut anchor) in anchors {
            let quarter = places.moved[&quarter(anchor.real)];
            anchor.address = Ipv4Addr::from_bits(quarter.network().to_bits() + u32::from(anchor.real.octets()[3]));
            by_id.insert(anchor.id.clone(), anchor.address);
            if is_source { places.points.push(anchor) } else { places.sites.push(anchor) }
        }
        for row in fixture("rtt_min_ms.csv").into_records() {
            let row = row.expect("a row of round trips");
            let key = (by_id[&row[1]], by_id[&row[0]]);
            places.round_trips.insert(key, row[2].parse().expect("milliseconds"));
        }
        places
    }

    /// All names with their addresses: the sites', and one at each access point's own address.
    pub fn names(&self) -> Vec<(Host, IpAddr)> {
        self.sites.iter().chain(&self.points).map(|anchor| (anchor.host.clone(), IpAddr::V4(anchor.address))).collect()
    }

    /// The real round trip between a server and an asker, in milliseconds.
    pub fn ms(&self, server: Ipv4Addr, asker: Ipv4Addr) -> Option<f64> {
        self.round_trips.get(&(server, asker)).copied()
    }

    /// What the registries say of these addresses, in their format: name and text.
    pub fn registry_files(&self) -> Vec<(String, String)> {
        let mut records: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for anchor in self.points.iter().chain(&self.sites) {
            let Anchor { registry, country, holder, networks, .. } = anchor;
            for network in networks {
                let block = self.moved[network];
                let (first, count) = (block.network(), block.size());
                let record = format!("{registry}|{country}|ipv4|{first}|{count}|20181013|allocated|{holder}\n");
                records.entry(registry).or_default().insert(record);
            }
        }
        let write = |(registry, records): (&str, BTreeSet<String>)| {
            let count = records.len();
            let mut text = format!("2|{registry}|20181013|{count}|19700101|20181013|+0000\n{registry}|*|ipv4|*|{count}|summary\n");
            text.extend(records);
            (format!("delegated-{registry}-excerpt"), text)
        };
        records.into_iter().map(write).collect()
    }

    /// The nodes as the laboratory reads them, with the addresses that they have here.
    pub fn nodes_csv(&self) -> String {
        let mut text = "probe_id,ipv4,country,is_target,is_source\n".to_owned();
        for (is_source, anchors) in [(1, &self.points), (0, &self.sites)] {
            for Anchor { id, address, country, .. } in anchors {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{id},{address},{country},1,{is_source}");
            }
        }
        text
    }

    /// The round trips as the laboratory reads them; those to the sites as `measured` has them, by site and point.
    pub fn round_trips_csv(&self, measured: impl Fn(Ipv4Addr, Ipv4Addr) -> f64) -> String {
        let points: BTreeSet<Ipv4Addr> = self.points.iter().map(|point| point.address).collect();
        let ids: BTreeMap<Ipv4Addr, &str> = self.points.iter().chain(&self.sites).map(|anchor| (anchor.address, &*anchor.id)).collect();
        let mut text = "source,target,ms\n".to_owned();
        for ((server, asker), real) in &self.round_trips {
            let ms = if points.contains(server) { *real } else { measured(*server, *asker) };
            let _ = writeln!(text, "{},{},{ms}", ids[asker], ids[server]);
        }
        text
    }
}

impl HttpSite for RealPlaces {
    fn respond(&self, _: &str, path: &str) -> HttpAnswer {
        if path == "/" { HttpAnswer::html("<title>A page</title><p>One page that leads nowhere.") } else { HttpAnswer::status(404) }
    }

    fn delay(&self, server: IpAddr, peer: IpAddr) -> Duration {
        let (IpAddr::V4(server), IpAddr::V4(peer)) = (server, peer) else { return Duration::ZERO };
        self.ms(server, peer).map_or(Duration::ZERO, |ms| Duration::from_secs_f64(ms * self.scale / 1000.0))
    }
}

/// The /24 around an address.
fn quarter(address: Ipv4Addr) -> Ipv4Network {
    network(address, 24)
}

fn network(address: Ipv4Addr, bits: u8) -> Ipv4Network {
    let around = Ipv4Network::new(address, bits).expect("at most 32 bits");
    Ipv4Network::new(around.network(), bits).expect("at most 32 bits")
}

fn covers(outer: &Ipv4Network, inner: &Ipv4Network) -> bool {
    outer.prefix() <= inner.prefix() && outer.contains(inner.network())
}

/// What becomes of each block and of each /24 with an address in it, from this loopback address on.
fn move_blocks<'a>(anchors: impl Iterator<Item = &'a Anchor>, first: Ipv4Addr) -> BTreeMap<Ipv4Network, Ipv4Network> {
    // A block of less than a /24 moves with the /24 around it.
    let (mut large, mut small) = (BTreeSet::new(), BTreeSet::new());
    for anchor in anchors {
        large.insert(quarter(anchor.real));
        for block in &anchor.networks {
            if block.prefix() <= 24 {
                large.insert(*block)
            } else {
                small.insert(*block)
            };
        }
    }
    let mut moved = BTreeMap::new();
    let everything = network(Ipv4Addr::UNSPECIFIED, 0);
    large.insert(everything);
    lay_out(&everything, &large, &mut moved);
    let used = moved.remove(&everything).expect("everything was laid out");
    assert!(used.prefix() >= RANGE_BITS, "the excerpt is too large for a /{RANGE_BITS} of loopback: it needs a /{}", used.prefix());
    for block in moved.values_mut() {
        *block = network(Ipv4Addr::from_bits(block.network().to_bits() + first.to_bits()), block.prefix());
    }
    for block in small {
        let around: Ipv4Network = moved[&quarter(block.network())];
        let inside = u32::from(block.network().octets()[3]);
        moved.insert(block, network(Ipv4Addr::from_bits(around.network().to_bits() + inside), block.prefix()));
    }
    moved
}

/// Lays out everything directly within a block one after the other, from zero on, and then the block itself around it.
fn lay_out(block: &Ipv4Network, all: &BTreeSet<Ipv4Network>, moved: &mut BTreeMap<Ipv4Network, Ipv4Network>) {
    let within: Vec<&Ipv4Network> = all.iter().filter(|other| *other != block && covers(block, other)).collect();
    if within.is_empty() {
        moved.insert(*block, network(Ipv4Addr::UNSPECIFIED, 24));
        return;
    }
    let direct = within.iter().filter(|inner| !within.iter().any(|outer| outer != *inner && covers(outer, inner)));
    let (mut next, mut largest) = (0, 0);
    for inner in direct {
        lay_out(inner, all, moved);
        let size = moved[*inner].size();
        let start: u32 = u32::next_multiple_of(next, size);
        for (real, new) in moved.iter_mut().filter(|(real, _)| covers(inner, real)) {
            debug_assert!(all.contains(real));
            *new = network(Ipv4Addr::from_bits(new.network().to_bits() + start), new.prefix());
        }
        next = start + size;
        largest = largest.max(size);
    }
    // Larger than anything within, so that no two blocks become the same.
    let size = next.max(largest + 1).next_power_of_two();
    moved.insert(*block, network(Ipv4Addr::UNSPECIFIED, 32 - size.ilog2() as u8));
}

#[test]
fn real_blocks_keep_their_relations_on_loopback() {
    let ground = Ground::pretend(60);
    let places = RealPlaces::new(&ground, 1.0);
    assert_eq!((places.points.len(), places.sites.len(), places.round_trips.len()), (12, 220, 2772));
    let addresses: BTreeSet<Ipv4Addr> = places.points.iter().chain(&places.sites).map(|anchor| anchor.address).collect();
    assert_eq!(addresses.len(), 232);
    let range: Ipv4Network = ground.range().parse().unwrap();
    assert!(addresses.iter().all(|address| range.contains(*address)));
    for (one, new_one) in &places.moved {
        assert!(new_one.prefix() >= one.prefix(), "{one} became {new_one}");
        for (other, new_other) in &places.moved {
            assert_eq!(covers(one, other), covers(new_one, new_other), "{one} and {other} became {new_one} and {new_other}");
            assert_eq!(one < other, new_one < new_other, "{one} and {other} became {new_one} and {new_other}");
        }
    }
    for anchor in places.points.iter().chain(&places.sites) {
        for (block, new) in &places.moved {
            assert_eq!(block.contains(anchor.real), new.contains(anchor.address), "{anchor:?} in {block}, {new}");
        }
    }
}
