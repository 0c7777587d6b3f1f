//! Which small web do swarms of a few daemons crawl? Hosts with pages that hang together as trees, some near each access point.

use super::Ground;
use nearcrawl::{
    demo::{
        reference::{self, Expected, Pages, Said},
        web::{Answer, Site},
        world::Places,
    },
    model::url::{Host, PageUrl},
};
use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

/// How deep it is crawled: what the demonstration's configuration says.
pub const DEPTH: u8 = 8;

/// How long an answer takes for somebody who is nobody's neighbour.
const STRANGER: Duration = Duration::from_millis(5);

/// How long answers take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distances {
    /// As long as the made-up world says.
    Real,
    /// No time: only how much work there is counts.
    None,
}

/// A web of hosts with equally many pages.
#[derive(Debug)]
pub struct SmallWeb {
    pub places: Places,
    pub hosts: Vec<(Host, Ipv4Addr)>,
    pages: usize,
    distances: Distances,
}

impl SmallWeb {
    /// So many hosts, one a subnet, with so many pages each.
    pub fn new(ground: &Ground, hosts: usize, pages: usize, distances: Distances) -> SmallWeb {
        let places = Places::new(ground.net, hosts, 7);
        let hosts = places.lands.iter().take(hosts).enumerate().map(|(number, land)| {
            let IpAddr::V4(first) = land.subnet.first() else { unreachable!("places are IPv4") };
            let name = format!("host{number}.{}.test", land.country.to_lowercase());
            (name.parse().expect("a name"), Ipv4Addr::from_bits(first.to_bits() + 9))
        });
        SmallWeb { hosts: hosts.collect(), places, pages, distances }
    }

    /// All names with their addresses.
    pub fn names(&self) -> Vec<(Host, IpAddr)> {
        self.hosts.iter().map(|(name, address)| (name.clone(), IpAddr::V4(*address))).collect()
    }

    /// Where the crawl starts; everything can be reached from there.
    pub fn seeds(&self) -> Vec<String> {
        vec![self.url(0, 0)]
    }

    /// A page's URL.
    pub fn url(&self, host: usize, page: usize) -> String {
        let path = if page == 0 { String::new() } else { format!("p{page}.html") };
        format!("http://{}:8080/{path}", self.hosts[host].0)
    }

    /// What a crawl must come to.
    pub fn expected(&self) -> Expected {
        let seeds: Vec<PageUrl> = self.seeds().iter().map(|url| PageUrl::parse(url).expect("a seed")).collect();
        reference::traverse(self, &seeds, DEPTH)
    }

    /// What a page links to: its two children, its host's root, and from root to root two other hosts.
    fn links(&self, host: &str, path: &str) -> Option<Vec<String>> {
        let host = self.hosts.iter().position(|(name, _)| name.as_str() == host)?;
        let page = match path {
            "/" => 0,
            _ => path.strip_prefix("/p")?.strip_suffix(".html")?.parse().ok().filter(|page| *page > 0 && *page < self.pages)?,
        };
        let mut links: Vec<String> =
            [2 * page + 1, 2 * page + 2].into_iter().filter(|to| *to < self.pages).map(|to| self.url(host, to)).collect();
        if page == 0 {
            links.extend([2 * host + 1, 2 * host + 2].into_iter().filter(|to| *to < self.hosts.len()).map(|to| self.url(to, 0)));
        } else {
            links.push(self.url(host, 0));
        }
        Some(links)
    }
}

impl Site for SmallWeb {
    fn answer(&self, host: &str, path: &str) -> Answer {
        match self.links(host, path) {
            Some(links) => Answer::html(links.iter().map(|link| format!("<p><a href=\"{link}\">on</a></p>\n")).collect::<String>()),
            None => Answer::status(404),
        }
    }

    fn delay(&self, server: IpAddr, peer: IpAddr) -> Duration {
        let land = self.places.land_of(server).map(|land| &self.places.lands[land]);
        let point = self.places.access_points.iter().position(|point| IpAddr::V4(*point) == peer);
        match (self.distances, land.zip(point)) {
            (Distances::Real, Some((land, point))) => Duration::from_millis(u64::from(land.delays[point])),
            (Distances::Real, None) => STRANGER,
            (Distances::None, _) => Duration::ZERO,
        }
    }
}

impl Pages for SmallWeb {
    fn said(&self, url: &PageUrl) -> Said {
        match self.links(url.host().as_str(), url.path_and_query()) {
            Some(links) => Said::Page(links.iter().map(|link| PageUrl::parse(link).expect("a link")).collect()),
            None => Said::Status(404),
        }
    }

    fn allowed(&self, _: &PageUrl) -> bool {
        true
    }

    fn in_scope(&self, host: &Host) -> bool {
        host.tld() == Some("test")
    }
}
