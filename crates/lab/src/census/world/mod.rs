//! A made-up web with known facts: places, hosts, pages, and what each of them answers in each run.
//!
//! Pure and seeded.

mod draw;
pub(crate) mod host;
mod links;
mod lists;
mod place;
mod render;
mod study;

pub(crate) use lists::{OUTSIDE, TLDS};
pub(crate) use place::Places;
pub(crate) use render::{Failures, title};
pub(crate) use study::{NOWHERE, Study};

use super::plan::CensusPlan;
use crate::rng::SplitMix64;
use host::{Content, Door, Host, Nature, Page, Robots, Target};
use nearcrawl_model::{revisit::content_of, url::PageUrl};
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
};

/// How made-up servers answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// Nothing comes at all.
    pub(crate) silent: bool,
    pub(crate) http10: bool,
}

/// The web.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) plan: CensusPlan,
    pub(crate) places: Places,
    pub(crate) hosts: Vec<Host>,
    index: BTreeMap<String, usize>,
}

impl World {
    /// Makes a web up, in `127.net.0.0/16`.
    pub(crate) fn new(plan: CensusPlan, net: u8) -> World {
        let mut rng = SplitMix64::new(plan.seed ^ 0xce05_0505);
        let mut places = Places::new(net, plan.hosts, plan.daemons, &mut rng);
        let mut hosts = draw::hosts(&plan, &mut places, &mut rng);
        links::pages(&plan, &mut hosts, &mut rng);
        let index = hosts.iter().enumerate().map(|(number, host)| (host.name.clone(), number)).collect();
        World { plan, places, hosts, index }
    }

    /// From where everything can be reached.
    pub(crate) fn seeds(&self) -> Vec<String> {
        let named = self.hosts.iter().filter(|host| !matches!(host.nature, Nature::Part | Nature::Hidden));
        named.take(links::SEEDS).map(Host::home).collect()
    }

    pub(crate) fn host(&self, name: &str) -> Option<&Host> {
        self.index.get(name).map(|number| &self.hosts[*number])
    }

    /// Every name with its address.
    pub(crate) fn names(&self) -> impl Iterator<Item = (nearcrawl_model::url::Host, IpAddr)> + '_ {
        self.hosts.iter().filter_map(|host| Some((host.name.parse().ok()?, IpAddr::V4(host.address))))
    }

    /// Whether a server listens at this address in this run.
    pub(crate) fn listens(&self, address: Ipv4Addr, run: u32) -> bool {
        self.hosts.iter().any(|host| host.address == address && host.listens.has(run))
    }

    /// The whole URL of a target, named by this host.
    fn url_of(&self, from: &Host, target: &Target) -> String {
        match target {
            Target::Home(host) => self.hosts[*host].home(),
            Target::Page(host, page) => self.hosts[*host].origin() + &self.hosts[*host].pages[*page].path,
            Target::Text(text) if text.starts_with('/') => from.origin() + text,
            Target::Text(text) => text.clone(),
        }
    }

    /// The references of a page in this run, as they are written: those to the same host without it.
    fn hrefs(&self, host: &Host, page: &Page, run: u32) -> Vec<String> {
        let here = page.links.iter().filter(|link| link.span.has(run)).map(|link| match &link.to {
            Target::Text(text) if text.starts_with('/') => text.clone(),
            other => self.url_of(host, other),
        });
        here.collect()
    }

    /// Where a page leads in this run, as far as a crawler asks.
    pub(crate) fn links(&self, host: &Host, page: &Page, run: u32) -> Vec<PageUrl> {
        let links = page.links.iter().filter(|link| link.span.has(run) && !link.media);
        links.filter_map(|link| PageUrl::parse(&self.url_of(host, &link.to)).ok()).collect()
    }

    /// The text of an HTML page and what fails in it.
    pub(crate) fn html(&self, host: &Host, page: &Page, run: u32) -> (Vec<u8>, Failures) {
        render::page(host, page, run, &self.hrefs(host, page, run))
    }

    /// Where a redirect of a page leads.
    pub(crate) fn moved_to(&self, host: &Host, target: &Target) -> Option<PageUrl> {
        PageUrl::parse(&self.url_of(host, target)).ok()
    }

    /// What a server answers to `GET`, over https or not; `known` is what the asker says it has.
    pub(crate) fn reply(&self, name: &str, secure: bool, path: &str, run: u32, known: Option<&str>) -> Reply {
        let Some(host) = self.host(name) else { return plain(404) };
        let mut reply = self.content(host, secure, path, run);
        reply.http10 = host.http10;
        if host.etags && reply.status == 200 && path != "/robots.txt" {
            let tag = format!("\"{:016x}\"", content_of(&reply.body));
            if known == Some(&tag) {
                reply = Reply { http10: host.http10, body: Vec::new(), headers: Vec::new(), ..plain(304) };
            }
            reply.headers.push(("etag", tag));
        }
        let software = host.software_named(run, reply.status);
        let mut header = |name, value: Option<String>| reply.headers.extend(value.map(|value| (name, value)));
        header("server", software.map(str::to_owned));
        header("alt-svc", host.alt_svc.filter(|_| secure).map(|(offer, _)| offer.to_owned()));
        header("strict-transport-security", host.hsts.filter(|_| secure).map(|seconds| format!("max-age={seconds}; includeSubDomains")));
        header("cf-ray", host.guarded.then(|| "8f00ba4-LOO".to_owned()));
        header("content-usage", host.content_usage.map(str::to_owned));
        header("tdm-reservation", host.tdm_header.map(|reserved| u8::from(reserved).to_string()));
        let voice = host.voice(run);
        header("content-language", voice.tag.filter(|_| voice.by_header).map(|(tag, _)| tag.to_owned()));
        reply
    }

    fn content(&self, host: &Host, secure: bool, path: &str, run: u32) -> Reply {
        if path == "/robots.txt" {
            return robots(host);
        }
        if matches!(host.door, Door::Redirects(_)) && !secure {
            return if path == "/" { moved(format!("{}/", host.origin())) } else { plain(404) };
        }
        if matches!(host.nature, Nature::Forbids) {
            return plain(403);
        }
        let Some(page) = host.page(path, run) else { return plain(404) };
        match &page.content {
            Content::Html => {
                let kind = if host.latin1 { "text/html; charset=iso-8859-1" } else { "text/html; charset=utf-8" };
                Reply { headers: vec![("content-type", kind.to_owned())], body: self.html(host, page, run).0, ..plain(200) }
            }
            Content::Pdf => Reply { headers: vec![("content-type", "application/pdf".to_owned())], body: vec![b'%'; 300], ..plain(200) },
            Content::Moved(target) => moved(self.url_of(host, target)),
            Content::Status(status) => plain(*status),
            Content::Silence => Reply { silent: true, ..plain(200) },
            Content::BadEncoding => {
                let headers = vec![("content-type", "text/html".to_owned()), ("content-encoding", "made-up".to_owned())];
                Reply { headers, body: vec![b'x'; 200], ..plain(200) }
            }
            Content::BadRedirect => Reply { body: Vec::new(), ..plain(302) },
        }
    }

    /// How long the answer of a server takes for who asks from there, in milliseconds.
    pub(crate) fn delay_ms(&self, server: IpAddr, peer: IpAddr) -> u64 {
        let land = self.hosts.iter().find(|host| IpAddr::V4(host.address) == server).map_or(0, |host| host.land);
        self.places.delay_ms(land, peer)
    }
}

/// A status with a short text.
fn plain(status: u16) -> Reply {
    let headers = vec![("content-type", "text/plain".to_owned())];
    Reply { status, headers, body: b"nothing here\n".to_vec(), silent: false, http10: false }
}

fn moved(to: String) -> Reply {
    Reply { headers: vec![("location", to)], body: b"elsewhere\n".to_vec(), ..plain(301) }
}

fn robots(host: &Host) -> Reply {
    let text = |text: &str| Reply { body: text.as_bytes().to_vec(), ..plain(200) };
    match host.robots {
        Robots::Absent => plain(404),
        Robots::AllowsAll => text("User-agent: *\nDisallow:\n"),
        Robots::BarsSome => text("User-agent: *\nDisallow: /private/\n"),
        Robots::BarsSomeAndWishes => text("User-agent: *\nContent-Usage: search=y\nCrawl-delay: 0.5\nDisallow: /private/\n"),
        Robots::BarsAll => text("User-agent: *\nDisallow: /\n"),
        Robots::Fails => plain(500),
    }
}
