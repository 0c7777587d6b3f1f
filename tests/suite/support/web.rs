//! The small web that swarms of a few daemons crawl: hosts with pages that hang together as trees, some near each access point.

use super::Ground;
use nearcrawl_lab::demo::world::Places;
use nearcrawl_lab::oracle;
use nearcrawl_lab::oracle::Expected;
use nearcrawl_lab::web::server::{HttpAnswer, HttpSite};
use nearcrawl_lab::web::{Answer, Web};
use nearcrawl_model::{
    subnet::Subnet,
    url::{Host, PageUrl},
};
use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

/// How deep it is crawled: what the demonstration's configuration says.
const DEPTH: u8 = 8;

/// A web of hosts with equally many pages, in two halves that know nothing of each other: hosts with even and with odd numbers.
#[derive(Debug)]
pub struct SmallWeb {
    pub places: Places,
    pub hosts: Vec<(Host, Ipv4Addr)>,
    pages: usize,
    delay_percent: u32,
}

impl SmallWeb {
    /// So many hosts, one a subnet, with so many pages each, `delay_percent` of the made-up round trips away.
    pub fn new(ground: &Ground, hosts: usize, pages: usize, delay_percent: u32) -> SmallWeb {
        let places = Places::new(ground.net, hosts, 7);
        let hosts = places.lands.iter().take(hosts).enumerate().map(|(number, land)| {
            let IpAddr::V4(first) = land.subnet.first() else { unreachable!("places are IPv4") };
            let name = format!("host{number}.{}.test", land.country.to_lowercase());
            (name.parse().expect("a name"), Ipv4Addr::from_bits(first.to_bits() + 9))
        });
        SmallWeb { hosts: hosts.collect(), places, pages, delay_percent }
    }

    /// All names with their addresses.
    pub fn names(&self) -> Vec<(Host, IpAddr)> {
        self.hosts.iter().map(|(name, address)| (name.clone(), IpAddr::V4(*address))).collect()
    }

    /// The subnets that the hosts live in.
    pub fn subnets(&self) -> BTreeSet<Subnet> {
        let lands = self.hosts.iter().filter_map(|(_, address)| self.places.land_of(IpAddr::V4(*address)));
        lands.map(|land| self.places.lands[land].subnet).collect()
    }

    /// Whether a server belongs to one of these subnets, and to no smaller one within it: a provider's customer may have another owner.
    pub fn is_in(&self, server: IpAddr, subnets: &BTreeSet<Subnet>) -> bool {
        self.places.land_of(server).is_some_and(|land| subnets.contains(&self.places.lands[land].subnet))
    }

    /// The subnets that the hosts of one half live in, which all can be reached from that half's seed.
    pub fn subnets_of_half(&self, half: usize) -> BTreeSet<Subnet> {
        let hosts = self.hosts.iter().skip(half).step_by(2);
        let lands = hosts.filter_map(|(_, address)| self.places.land_of(IpAddr::V4(*address)));
        lands.map(|land| self.places.lands[land].subnet).collect()
    }

    /// From where each half can be reached.
    pub fn seeds(&self) -> Vec<String> {
        vec![self.url(0, 0), self.url(1, 0)]
    }

    /// A page's URL.
    pub fn url(&self, host: usize, page: usize) -> String {
        let path = if page == 0 { String::new() } else { format!("p{page}.html") };
        format!("http://{}:8080/{path}", self.hosts[host].0)
    }

    /// What a crawl from these must come to.
    pub fn expected(&self, seeds: &[String]) -> Expected {
        let seeds: Vec<PageUrl> = seeds.iter().map(|url| PageUrl::parse(url).expect("a seed")).collect();
        oracle::traverse(self, &seeds, DEPTH)
    }

    /// What a page links to: its two children, its host's root, and from root to root two other hosts of the
    /// same half.
    pub fn links(&self, host: &str, path: &str) -> Option<Vec<String>> {
        let host = self.hosts.iter().position(|(name, _)| name.as_str() == host)?;
        let page = match path {
            "/" => 0,
            _ => path.strip_prefix("/p")?.strip_suffix(".html")?.parse().ok().filter(|page| *page > 0 && *page < self.pages)?,
        };
        let mut links: Vec<String> =
            [2 * page + 1, 2 * page + 2].into_iter().filter(|to| *to < self.pages).map(|to| self.url(host, to)).collect();
        if page == 0 {
            let (half, place) = (host % 2, host / 2);
            let others = [2 * place + 1, 2 * place + 2].map(|place| 2 * place + half);
            links.extend(others.into_iter().filter(|to| *to < self.hosts.len()).map(|to| self.url(to, 0)));
        } else {
            links.push(self.url(host, 0));
        }
        Some(links)
    }
}

impl HttpSite for SmallWeb {
    fn respond(&self, host: &str, path: &str) -> HttpAnswer {
        match self.links(host, path) {
            Some(links) => HttpAnswer::html(links.iter().map(|link| format!("<p><a href=\"{link}\">on</a></p>\n")).collect::<String>()),
            None => HttpAnswer::status(404),
        }
    }

    fn delay(&self, server: IpAddr, peer: IpAddr) -> Duration {
        let land = self.places.land_of(server).map(|land| &self.places.lands[land]);
        let point = self.places.access_points.iter().position(|point| IpAddr::V4(*point) == peer);
        let ms = land.zip(point).map_or(0, |(land, point)| land.delays[point]);
        Duration::from_micros(u64::from(ms * self.delay_percent) * 10)
    }
}

impl Web for SmallWeb {
    fn answer(&self, url: &PageUrl) -> Answer {
        match self.links(url.host().as_str(), url.path_and_query()) {
            Some(links) => Answer::Page(links.iter().map(|link| PageUrl::parse(link).expect("a link")).collect()),
            None => Answer::Status(404),
        }
    }

    fn allowed(&self, _: &PageUrl) -> bool {
        true
    }

    fn in_scope(&self, host: &Host) -> bool {
        host.tld() == Some("test")
    }
}
