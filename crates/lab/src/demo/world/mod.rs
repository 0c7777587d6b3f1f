//! The world of the demonstration: a small made-up internet on loopback, pure and seeded: places, hosts and pages.

mod place;
mod site;
#[cfg(test)]
mod tests;

pub use place::{ACCESS_POINTS, Land, Places};
pub use site::{CHAIN, HostPlan, ITEMS, Oddities};

use crate::oracle;
use crate::oracle::Expected;
use crate::rng::SplitMix64;
use nearcrawl_model::url::{Host, PageUrl};
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    ops::RangeInclusive,
};

/// The port of all made-up web servers.
pub const WEB_PORT: u16 = 8080;

/// The top-level domain of all made-up hosts: reserved for tests, so that no real host can ever be meant.
pub(crate) const TLD: &str = "test";

/// How many servers a world may have.
pub(crate) const SERVERS: RangeInclusive<usize> = 60..=120;

/// How deep site trees are crawled here.
pub const DEPTH: u8 = 8;

/// An access point that nobody chose as nearest answers after this long, in milliseconds.
const STRANGER_MS: u32 = 30;

const WORDS: [&str; 12] =
    ["museum", "library", "harbour", "council", "market", "clinic", "radio", "school", "archive", "bakery", "theatre", "railway"];

/// What to make up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorldPlan {
    /// Decides everything that is random.
    pub seed: u64,
    /// How many servers, see [`SERVERS`].
    pub servers: usize,
    /// All addresses lie in `127.net.0.0/16`: two worlds with different numbers can run at the same time.
    pub net: u8,
}

impl Default for WorldPlan {
    fn default() -> Self {
        WorldPlan { seed: 1, servers: 66, net: 16 }
    }
}

/// A made-up internet.
#[derive(Clone, Debug)]
pub struct World {
    plan: WorldPlan,
    /// Subnets, registrations and distances.
    pub places: Places,
    /// Where each server is.
    pub servers: Vec<Ipv4Addr>,
    /// The hosts; two of them may live at one server.
    pub hosts: Vec<HostPlan>,
    index: BTreeMap<String, usize>,
    land_of: BTreeMap<IpAddr, usize>,
    seeds: Vec<usize>,
}

impl World {
    /// Makes a world up. The number of servers is cut to [`SERVERS`].
    pub fn new(plan: WorldPlan) -> World {
        let servers_wanted = plan.servers.clamp(*SERVERS.start(), *SERVERS.end());
        let mut rng = SplitMix64::new(plan.seed);
        let places = Places::lay_out(plan.net, servers_wanted * 10 / 11, &mut rng);
        let mut servers: Vec<Ipv4Addr> = Vec::new();
        for number in 0..servers_wanted {
            // Every subnet has one server, some have two.
            let land = &places.lands[number % places.lands.len()];
            let IpAddr::V4(first) = land.subnet.first() else { continue };
            let offset = 9 + (number / places.lands.len()) as u32 * 11;
            servers.push(Ipv4Addr::from_bits(first.to_bits() + offset));
        }
        let land_of = servers.iter().filter_map(|server| Some((IpAddr::V4(*server), places.land_of(IpAddr::V4(*server))?))).collect();
        let mut world = World { plan, places, servers, hosts: Vec::new(), index: BTreeMap::new(), land_of, seeds: Vec::new() };
        world.name_hosts(&mut rng);
        world.link_hosts(&mut rng);
        world
    }

    /// One host a server, three more that share an address, and one subdomain that is elsewhere than its parent.
    fn name_hosts(&mut self, rng: &mut SplitMix64) {
        let mut used: BTreeMap<String, usize> = BTreeMap::new();
        let last = self.servers.len() - 1;
        let sharing = [1, 9, 17];
        for server in (0..last).chain(sharing) {
            let land = self.land_of[&IpAddr::V4(self.servers[server])];
            let country = self.places.lands[land].country.to_lowercase();
            let number = used.entry(country.clone()).or_default();
            let (word, round) = (WORDS[*number % WORDS.len()], *number / WORDS.len());
            *number += 1;
            let label = if round == 0 { word.to_owned() } else { format!("{word}{}", round + 1) };
            self.add_host(&format!("{label}.{country}.{TLD}"), server, rng);
        }
        let parent = self.hosts[0].name.clone();
        self.add_host(&format!("digital.{parent}"), last, rng);
        for (index, host) in self.hosts.iter().enumerate() {
            self.index.insert(host.name.as_str().to_owned(), index);
        }
    }

    fn add_host(&mut self, name: &str, server: usize, rng: &mut SplitMix64) {
        #[expect(clippy::unwrap_used, reason = "names are made of the words and countries above")]
        let name: Host = name.parse().unwrap();
        // The sites near the access point that is killed are the largest: there shall be work left to take over.
        let near = self.places.lands[self.land_of[&IpAddr::V4(self.servers[server])]].nearest(|_| true);
        let pages = if near == Some(self.victim()) { 14 } else { 6 + rng.below(9) };
        self.hosts.push(HostPlan { name, server, pages, links: Vec::new(), oddities: Oddities::default() });
    }

    /// Links between hosts, so that all of them can be reached from the seeds, and what is odd about some.
    fn link_hosts(&mut self, rng: &mut SplitMix64) {
        let subdomain = self.hosts.len() - 1;
        let mut order: Vec<usize> = (0..subdomain).collect();
        rng.shuffle(&mut order);
        self.seeds = order[..3].to_vec();
        for (place, host) in order.iter().enumerate().skip(3) {
            let parent = order[(place - 3) / 4];
            let page = [0, 0, 1, 2][(place - 3) % 4];
            self.hosts[parent].links.push((page, *host, 0));
        }
        for host in 0..subdomain {
            for _ in 0..2 {
                let other = rng.below(subdomain);
                if other != host {
                    let (here, there) = (rng.below(4), [0, 3][rng.below(2)]);
                    self.hosts[host].links.push((here, other, there));
                }
            }
            self.hosts[host].oddities = Oddities {
                private: host % 6 == 0,
                broken_link: host % 7 == 1,
                moved_within: host % 9 == 2,
                moved_away: (host % 11 == 3).then_some((host + 1) % subdomain),
                script: host % 8 == 4,
                document: host % 5 == 0,
                chain: host == 10,
                outside: host == 12,
            };
        }
        // Only its parent names it, so that it can only be reached as a part of the parent's tree.
        self.hosts[0].links.push((1, subdomain, 0));
    }

    /// What it was made of.
    pub fn plan(&self) -> WorldPlan {
        self.plan
    }

    /// Where each access point is.
    pub fn access_points(&self) -> [Ipv4Addr; ACCESS_POINTS] {
        self.places.access_points
    }

    /// Where the name server listens: a port of its own choosing.
    pub fn name_server(&self) -> SocketAddr {
        SocketAddr::from(([127, self.plan.net, 250, 53], 0))
    }

    /// Where the web servers listen.
    pub fn web_servers(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.servers.iter().map(|server| SocketAddr::from((*server, WEB_PORT)))
    }

    /// Web servers at the access points' own addresses.
    pub fn homes(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.places.access_points.iter().map(|point| SocketAddr::from((*point, WEB_PORT)))
    }

    /// All names with their addresses.
    pub fn names(&self) -> impl Iterator<Item = (Host, IpAddr)> + '_ {
        self.hosts.iter().map(|host| (host.name.clone(), IpAddr::V4(self.servers[host.server])))
    }

    /// From where everything can be reached.
    pub fn seeds(&self) -> Vec<PageUrl> {
        self.seeds.iter().filter_map(|host| PageUrl::parse(&self.page_url(*host, 0)).ok()).collect()
    }

    /// What a crawl must come to.
    pub fn expected(&self) -> Expected {
        oracle::traverse(self, &self.seeds(), DEPTH)
    }

    /// The access point that the demonstration kills.
    pub fn victim(&self) -> usize {
        ACCESS_POINTS - 1
    }

    /// The subnet (an index) in which a server is.
    pub fn land_of(&self, server: IpAddr) -> Option<usize> {
        self.land_of.get(&server).copied()
    }

    /// The subnets (indices) in which servers live.
    pub(crate) fn inhabited(&self) -> std::collections::BTreeSet<usize> {
        self.land_of.values().copied().collect()
    }

    /// Which access point has this address.
    pub(crate) fn access_point_at(&self, address: IpAddr) -> Option<usize> {
        self.places.access_points.iter().position(|point| IpAddr::V4(*point) == address)
    }

    /// How long the answer of `server` takes when `peer` asks, in milliseconds. Only the peer's address counts.
    pub(crate) fn delay_ms(&self, server: IpAddr, peer: IpAddr) -> u32 {
        match (self.places.land_of(server), self.access_point_at(peer)) {
            (Some(land), Some(point)) => self.places.lands[land].delays[point],
            _ => STRANGER_MS,
        }
    }
}
