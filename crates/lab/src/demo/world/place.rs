//! Places of the made-up servers: registries, organisations and subnets on loopback, and their distances to each access point.
//!
//! Five regions, each with its registry, three countries and one access point. Most organisations are near the access point of their
//! region, as in the world; some have a branch elsewhere and some are across the border, so that the hierarchy helps but does not know
//! everything.

use crate::rng::SplitMix64;
use nearcrawl_model::subnet::Subnet;
use std::{
    fmt::Write,
    net::{IpAddr, Ipv4Addr},
};

/// How many access points there are, one a region.
pub const ACCESS_POINTS: usize = 5;

/// Registries and their countries; the access point is in the first country.
const REGIONS: [(&str, [&str; 3]); ACCESS_POINTS] = [
    ("afrinic", ["KE", "ZA", "MA"]),
    ("apnic", ["JP", "IN", "NZ"]),
    ("arin", ["US", "CA", "JM"]),
    ("ripencc", ["DE", "PL", "IS"]),
    ("lacnic", ["BR", "CL", "UY"]),
];

/// Which other regions are nearest, nearest first: the order of the round trips.
const NEIGHBOURS: [[usize; 4]; ACCESS_POINTS] = [[3, 1, 2, 4], [2, 0, 3, 4], [3, 4, 1, 0], [0, 2, 4, 1], [2, 3, 0, 1]];

/// Of sixty subnets, so many are registered in each region. The last has few: its access point is the one that is killed.
const SHARES: [usize; ACCESS_POINTS] = [14, 14, 14, 12, 6];

/// Third octets of a region.
const REGION_STEP: u8 = 48;

/// A subnet with web servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Land {
    /// The subnet, as the hierarchy will have it.
    pub subnet: Subnet,
    /// The registry that it is registered at.
    pub registry: &'static str,
    /// The country that it is registered in.
    pub country: &'static str,
    /// The organisation that holds it.
    pub organisation: String,
    /// The round trip from each access point, in milliseconds.
    pub delays: [u32; ACCESS_POINTS],
}

impl Land {
    /// The access point with the least delay among those for which `living` holds.
    pub fn nearest(&self, living: impl Fn(usize) -> bool) -> Option<usize> {
        (0..ACCESS_POINTS).filter(|point| living(*point)).min_by_key(|point| self.delays[*point])
    }
}

/// A line of a registry's file.
#[derive(Clone, Debug)]
struct Record {
    region: usize,
    country: &'static str,
    start: Ipv4Addr,
    count: u32,
    status: &'static str,
    organisation: String,
}

/// All subnets with their registration.
#[derive(Clone, Debug)]
pub struct Places {
    /// Where each access point is.
    pub access_points: [Ipv4Addr; ACCESS_POINTS],
    /// The subnets, by region; those of the access points themselves among them.
    pub lands: Vec<Land>,
    records: Vec<Record>,
}

/// Hands out the addresses of one region.
struct Surveyor<'a> {
    net: u8,
    region: usize,
    next: u8,
    quota: usize,
    places: &'a mut Places,
    rng: &'a mut SplitMix64,
}

impl Places {
    /// Lays out `subnets` subnets within `127.net.0.0/16`, the same for the same seed.
    pub fn new(net: u8, subnets: usize, seed: u64) -> Places {
        Places::lay_out(net, subnets, &mut SplitMix64::new(seed))
    }

    /// Lays out `subnets` subnets within `127.net.0.0/16`.
    pub(super) fn lay_out(net: u8, subnets: usize, rng: &mut SplitMix64) -> Places {
        let access_points = std::array::from_fn(|region| Ipv4Addr::new(127, net, region as u8 * REGION_STEP, 1));
        let mut places = Places { access_points, lands: Vec::new(), records: Vec::new() };
        let share = |region: usize| subnets * SHARES[region] / 60;
        for region in 0..ACCESS_POINTS {
            let quota = if region == 0 { subnets - (1..ACCESS_POINTS).map(share).sum::<usize>() } else { share(region) };
            let next = region as u8 * REGION_STEP;
            Surveyor { net, region, next, quota, places: &mut places, rng }.settle();
        }
        places
    }

    /// The registries' files, in the delegated-extended format: name and text.
    pub fn registry_files(&self) -> Vec<(String, String)> {
        let mut files = Vec::new();
        for (region, (registry, _)) in REGIONS.iter().enumerate() {
            let records: Vec<&Record> = self.records.iter().filter(|record| record.region == region).collect();
            let mut text =
                format!("# Made up for a demonstration on loopback addresses; no registry ever said this.\n2|{registry}|20261121|");
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}|19700101|20261121|+0000\n{registry}|*|ipv4|*|{}|summary", records.len(), records.len());
            for Record { country, start, count, status, organisation, .. } in records {
                let _ = writeln!(text, "{registry}|{country}|ipv4|{start}|{count}|20200101|{status}|{organisation}");
            }
            files.push((format!("delegated-{registry}-made-up"), text));
        }
        files
    }

    /// The smallest subnet around an address, by its index.
    pub fn land_of(&self, address: IpAddr) -> Option<usize> {
        let around = self.lands.iter().enumerate().filter(|(_, land)| land.subnet.contains(address));
        around.max_by_key(|(_, land)| land.subnet.length()).map(|(index, _)| index)
    }
}

impl Surveyor<'_> {
    /// Organisation after organisation, until the region has its subnets.
    fn settle(mut self) {
        let home = self.region;
        let own = format!("net-{}", REGIONS[home].1[0].to_lowercase());
        self.block(0, 256, "allocated", &own, &[(0, 24, home)]);
        let mut number = 0;
        while self.quota > 0 {
            number += 1;
            let country = number % 3;
            let organisation = format!("org-{}-{number}", REGIONS[home].1[country].to_lowercase());
            match number % 6 {
                // A provider, and a customer of another name within its block.
                2 if self.quota >= 2 => self.provider(country, &organisation),
                // A branch in another region, under the same name.
                3 if home < 2 && self.quota >= 3 => {
                    self.block(country, 256, "allocated", &organisation, &[(0, 24, home)]);
                    self.block(country, 256, "allocated", &organisation, &[(0, 24, home)]);
                    self.block(country, 128, "assigned", &organisation, &[(0, 25, (home + 1) % 4)]);
                }
                // Registered here, living across the border.
                5 if home == 2 => self.block(country, 256, "assigned", &organisation, &[(0, 24, 3)]),
                // 192 addresses are no prefix: two subnets in one record.
                4 | 0 if self.quota >= 2 => self.block(country, 192, "allocated", &organisation, &[(0, 25, home), (128, 26, home)]),
                1 => self.block(country, 256, "assigned", &organisation, &[(0, 24, home)]),
                _ => self.block(country, 128, "assigned", &organisation, &[(0, 25, home)]),
            }
        }
    }

    fn provider(&mut self, country: usize, organisation: &str) {
        self.next = self.next.next_multiple_of(4);
        let block = self.next;
        self.block(country, 1024, "allocated", organisation, &[(0, 22, self.region)]);
        let after = self.next;
        self.next = block + 2;
        self.block(country, 64, "assigned", &format!("{organisation}-customer"), &[(0, 26, self.region)]);
        self.next = after;
    }

    /// Registers `count` addresses from the next free /24 on, with subnets at these offsets, lengths and near this access point.
    fn block(&mut self, country: usize, count: u32, status: &'static str, organisation: &str, subnets: &[(u8, u8, usize)]) {
        let (registry, countries) = REGIONS[self.region];
        let start = Ipv4Addr::new(127, self.net, self.next, 0);
        let country = countries[country];
        let organisation = organisation.to_owned();
        self.places.records.push(Record { region: self.region, country, start, count, status, organisation: organisation.clone() });
        for (offset, length, near) in subnets {
            let first = Ipv4Addr::new(127, self.net, self.next, *offset);
            let delays = self.delays(*near);
            let subnet = Subnet::around(first.into(), *length);
            self.places.lands.push(Land { subnet, registry, country, organisation: organisation.clone(), delays });
            self.quota = self.quota.saturating_sub(1);
        }
        self.next += count.div_ceil(256) as u8;
    }

    /// 8 to 25 ms from `near`, at least 62 ms from the next, and at least 20 ms between any two.
    fn delays(&mut self, near: usize) -> [u32; ACCESS_POINTS] {
        let mut delays = [0; ACCESS_POINTS];
        delays[near] = 8 + self.rng.below(18) as u32;
        for (rank, other) in NEIGHBOURS[near].iter().enumerate() {
            delays[*other] = 62 + 26 * rank as u32 + self.rng.below(6) as u32;
        }
        delays
    }
}
