//! Places of the servers: registries, countries and organisations on loopback, and the files that a hierarchy is built from.

use crate::rng::SplitMix64;
use nearcrawl_model::subnet::Subnet;
use std::{fmt::Write, net::Ipv4Addr};

/// Registries with their countries.
const REGISTRIES: [(&str, [&str; 6]); 5] = [
    ("afrinic", ["KE", "ZA", "MA", "TZ", "NG", "QM"]),
    ("apnic", ["JP", "IN", "NZ", "TH", "KR", "FJ"]),
    ("arin", ["US", "CA", "JM", "BB", "BS", "GD"]),
    ("ripencc", ["DE", "PL", "IS", "GR", "UA", "XA"]),
    ("lacnic", ["BR", "CL", "UY", "PE", "CU", "BO"]),
];

/// Registries, by their numbers, with the countries that have a top-level domain here: codes that ISO 3166 leaves to its users, so that no real
/// country has them.
const HOMES: [(usize, &str); 2] = [(0, "QM"), (3, "XA")];

/// Third octets with servers; those beyond are the daemons'.
const FIRST_BLOCK: u8 = 1;
const LAST_BLOCK: u8 = 220;

/// Third octet of the first daemon's own block.
const DAEMONS: u8 = 224;

/// A subnet with servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Land {
    /// The subnet, as the hierarchy has it.
    pub(crate) subnet: Subnet,
    /// The registry, the country, and who holds it.
    pub(crate) registry: &'static str,
    pub(crate) country: &'static str,
    pub(crate) organisation: String,
    /// The number of the nearest daemon.
    pub(crate) near: usize,
    /// How many addresses are taken, and how many may be.
    taken: u8,
    room: u8,
}

/// All subnets.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    net: u8,
    pub(crate) lands: Vec<Land>,
    pub(crate) daemons: Vec<(Ipv4Addr, &'static str)>,
    delegated: [Vec<String>; REGISTRIES.len()],
    networks: String,
}

impl Places {
    /// Subnets for so many addresses and daemons within `127.net.0.0/16`.
    pub(crate) fn new(net: u8, addresses: usize, daemons: usize, rng: &mut SplitMix64) -> Places {
        let mut places = Places { net, lands: Vec::new(), daemons: Vec::new(), delegated: Default::default(), networks: String::new() };
        for daemon in 0..daemons {
            let (registry, country) = (daemon % REGISTRIES.len(), daemon / REGISTRIES.len() % 6);
            let (third, country) = (DAEMONS + daemon as u8, REGISTRIES[registry].1[country]);
            places.record(registry, country, third, 256, &format!("daemon-{daemon}"));
            places.daemons.push((Ipv4Addr::new(127, net, third, 1), country));
        }
        let (mut third, mut number) = (FIRST_BLOCK, 0);
        // As many to a subnet as must be, and some more: a third of the subnets is small.
        let usual = (3 + addresses / 120).min(200);
        while places.lands.iter().map(|land| usize::from(land.room)).sum::<usize>() < addresses && third <= LAST_BLOCK {
            number += 1;
            third += places.settle(third, number, usual, daemons, rng);
        }
        places
    }

    /// One more organisation; how many blocks it has.
    fn settle(&mut self, third: u8, number: usize, usual: usize, daemons: usize, rng: &mut SplitMix64) -> u8 {
        let (registry, drawn) = (rng.below(REGISTRIES.len()), rng.below(6));
        let (registry, country) = if rng.below(4) == 0 { HOMES[rng.below(HOMES.len())] } else { (registry, REGISTRIES[registry].1[drawn]) };
        // Some have several blocks, and some have them at two registries.
        let name = if rng.below(5) == 0 { format!("world-{}", rng.below(4)) } else { format!("org-{}-{number}", country.to_lowercase()) };
        let near = if rng.below(5) == 0 { rng.below(daemons) } else { registry % daemons };
        let land = |places: &mut Places, offset: u8, length, country, organisation: &str, room: usize| {
            let subnet = Subnet::around(Ipv4Addr::new(127, places.net, third, offset).into(), length);
            let (registry, organisation) = (REGISTRIES[registry].0, organisation.to_owned());
            places.lands.push(Land { subnet, registry, country, organisation, near, taken: 0, room: room as u8 });
        };
        match rng.below(4) {
            // 192 addresses are no prefix: two subnets in one record.
            0 => {
                self.record(registry, country, third, 192, &name);
                land(self, 0, 25, country, &name, usual.min(100));
                land(self, 128, 26, country, &name, 1 + rng.below(3));
            }
            // A customer of another name, perhaps in another country of the registry, inside a provider's block.
            1 => {
                self.record(registry, country, third, 256, &name);
                let (elsewhere, customer) = (REGISTRIES[registry].1[rng.below(6)], format!("customer-{number}"));
                // Networks are named by their autonomous systems.
                let _ = writeln!(self.networks, "127.{}.{third}.192/26,{elsewhere},{},{customer}", self.net, 64_500 + number);
                land(self, 0, 24, country, &name, usual.min(150));
                land(self, 192, 26, elsewhere, &customer, usual.min(50));
            }
            _ => {
                self.record(registry, country, third, 256, &name);
                land(self, 0, 24, country, &name, usual);
            }
        }
        1
    }

    fn record(&mut self, registry: usize, country: &str, third: u8, count: u32, holder: &str) {
        let name = REGISTRIES[registry].0;
        self.delegated[registry].push(format!("{name}|{country}|ipv4|127.{}.{third}.0|{count}|20200101|allocated|{holder}", self.net));
    }

    /// A free address in one of the subnets, with the number of that.
    pub(crate) fn take(&mut self, rng: &mut SplitMix64) -> Option<(Ipv4Addr, usize)> {
        let free: Vec<usize> = (0..self.lands.len()).filter(|land| self.lands[*land].taken < self.lands[*land].room).collect();
        let number = *free.get(rng.below(free.len().max(1)))?;
        let land = &mut self.lands[number];
        land.taken += 1;
        let std::net::IpAddr::V4(first) = land.subnet.first() else { return None };
        Some((Ipv4Addr::from_bits(first.to_bits() + 4 + u32::from(land.taken)), number))
    }

    /// The files that the hierarchy is built from: name and text.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        let mut files = vec![("networks.csv".to_owned(), self.networks.clone())];
        for (number, (registry, _)) in REGISTRIES.iter().enumerate() {
            let records = &self.delegated[number];
            let count = records.len();
            let mut text = format!("2|{registry}|20261121|{count}|19700101|20261121|+0000\n{registry}|*|ipv4|*|{count}|summary\n");
            records.iter().for_each(|record| text.push_str(&format!("{record}\n")));
            files.push((format!("delegated-{registry}-made-up"), text));
        }
        files.retain(|(_, text)| !text.is_empty() && !text.contains("|0|19700101"));
        files
    }

    /// How long the answer takes of a server in this subnet when the daemon at that address asks, in milliseconds.
    pub(crate) fn delay_ms(&self, land: usize, peer: std::net::IpAddr) -> u64 {
        let asker = self.daemons.iter().position(|(address, _)| std::net::IpAddr::V4(*address) == peer);
        match asker {
            Some(asker) if asker == self.lands[land].near => 1 + (land % 3) as u64,
            Some(asker) => 8 + 4 * (asker.abs_diff(self.lands[land].near)) as u64,
            None => 10,
        }
    }
}
