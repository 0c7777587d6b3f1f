//! The web of the simulated swarm: a table of answers, with the addresses of hosts and their robots.txt.

use super::Answer;
use nearcrawl_model::url::{Host, PageUrl};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
};

/// A web that does not change by itself.
#[derive(Clone, Debug, Default)]
pub struct TableWeb {
    /// What URLs answer; all others answer 404.
    pub answers: BTreeMap<PageUrl, Answer>,
    /// Where hosts live; all others do not resolve.
    pub addresses: BTreeMap<Host, IpAddr>,
    /// robots.txt of hosts; the others have none (404).
    pub robots: BTreeMap<Host, String>,
}

/// How large a made-up web is.
#[derive(Clone, Debug)]
pub struct TableShape {
    /// Hosts, each at an address of its own unless `shared` says otherwise.
    pub hosts: usize,
    /// Hosts in one /24.
    pub hosts_per_subnet: usize,
    /// Pages of each host, its root included.
    pub pages: usize,
    /// Every so-manieth host shares the address of the one before it; 0 is none.
    pub shared: usize,
}

/// The host of this number, in a web that is drawn at random.
fn name(host: usize) -> String {
    format!("s{host}.test")
}

/// A page of it, the root first.
fn url(host: usize, page: usize) -> String {
    let path = match page {
        0 => String::new(),
        _ if page % 11 == 10 => format!("private/{page}"),
        _ => format!("p{page}"),
    };
    format!("http://{}/{path}", name(host))
}

/// By host and page: where it leads.
fn random_links(shape: &TableShape, random: &mut StdRng) -> BTreeMap<(usize, usize), Vec<String>> {
    let mut links: BTreeMap<(usize, usize), Vec<String>> = BTreeMap::new();
    for host in 0..shape.hosts {
        for page in 1..shape.pages {
            let from = random.random_range(page.saturating_sub(7)..page);
            links.entry((host, from)).or_default().push(url(host, page));
        }
        for page in 0..shape.pages {
            for _ in 0..random.random_range(0..3) {
                let other = random.random_range(0..shape.pages);
                links.entry((host, page)).or_default().push(url(host, other));
            }
        }
        // A ring and some chords between hosts.
        links.entry((host, 0)).or_default().push(url((host + 1) % shape.hosts, 0));
        for _ in 0..3 {
            let from = random.random_range(0..shape.pages);
            let to = (random.random_range(0..shape.hosts), random.random_range(0..shape.pages));
            links.entry((host, from)).or_default().push(url(to.0, to.1));
        }
    }
    links
}

impl TableWeb {
    /// A page, made from texts; what is no URL is left out.
    pub fn page(&mut self, url: &str, links: &[&str]) {
        let links = links.iter().filter_map(|link| PageUrl::parse(link).ok()).collect();
        self.put(url, Answer::Page(links));
    }

    /// Any answer, for a URL as text; nothing happens if it is none.
    pub fn put(&mut self, url: &str, answer: Answer) {
        if let Ok(url) = PageUrl::parse(url) {
            self.answers.insert(url, answer);
        }
    }

    /// A host's address; nothing happens if the texts are neither.
    pub fn live(&mut self, host: &str, address: &str) {
        if let (Ok(host), Ok(address)) = (host.parse(), address.parse()) {
            self.addresses.insert(host, address);
        }
    }

    /// What this URL answers.
    pub fn answer(&self, url: &PageUrl) -> Answer {
        self.answers.get(url).cloned().unwrap_or(Answer::Status(404))
    }

    /// A web whose hosts link to each other: every page is linked from an earlier one of its host, so all can be reached from the roots;
    /// further links go anywhere. Some pages redirect, some are no pages, some hosts keep us out of a directory.
    pub fn random(shape: &TableShape, seed: u64) -> TableWeb {
        let mut web = TableWeb::default();
        let mut links = random_links(shape, &mut StdRng::seed_from_u64(seed));
        for host in 0..shape.hosts {
            let lives = if shape.shared > 0 && host % shape.shared == shape.shared - 1 { host - 1 } else { host };
            let (subnet, place) = (lives / shape.hosts_per_subnet.max(1), lives % shape.hosts_per_subnet.max(1));
            let address = Ipv4Addr::from(0x1400_0000 + (subnet as u32) * 256 + place as u32 + 1);
            web.live(&name(host), &address.to_string());
            if host % 5 == 3
                && let Ok(host) = name(host).parse()
            {
                web.robots.insert(host, "User-agent: *\nDisallow: /private/\n".to_owned());
            }
            for page in 0..shape.pages {
                let found = links.remove(&(host, page)).unwrap_or_default();
                let found: Vec<_> = found.iter().map(String::as_str).collect();
                web.page(&url(host, page), &found);
            }
            web.add_other_answers(shape, host);
        }
        for answer in web.answers.values_mut() {
            if let Answer::Page(links) = answer {
                let mut seen = std::collections::BTreeSet::new();
                links.retain(|link| seen.insert(link.clone()));
            }
        }
        web
    }

    /// What is no page on a host, and links to it: a redirect, a picture, and something that is not there.
    fn add_other_answers(&mut self, shape: &TableShape, host: usize) {
        let Ok(to) = PageUrl::parse(&url(host, shape.pages / 2)) else { return };
        let others = ["moved", "image.png", "missing"].map(|path| format!("http://{}/{path}", name(host)));
        self.put(&others[0], Answer::Redirect(to));
        self.put(&others[1], Answer::NotHtml);
        if let Ok(root) = PageUrl::parse(&url(host, 0))
            && let Some(Answer::Page(links)) = self.answers.get_mut(&root)
        {
            links.extend(others.iter().filter_map(|other| PageUrl::parse(other).ok()));
        }
    }
}
