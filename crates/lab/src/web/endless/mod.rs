//! A made-up web without end, in which a page is a function of the seed and its URL: nothing is stored.
//!
//! Sites ([`plan`]) have sections of very different sizes, and links ([`links`]) become rarer the deeper a page lies; [`shape`] has the
//! numbers. The laboratory crawls it in memory ([`crate::depth`]), `nearcrawl lab serve` offers it to real crawlers over HTTP.

pub(crate) mod html;
pub(crate) mod links;
pub mod place;
pub(crate) mod plan;
pub mod shape;

#[cfg(test)]
mod tests;

use super::{Answer, Web};
use crate::rng::KeyedRng;
use links::Link;
use nearcrawl_model::url::{Host, PageUrl};
use place::{HostName, Place};
use plan::Plan;
use shape::Shape;

/// A web with any number of sites, generated from a seed.
#[derive(Clone, Debug)]
pub struct EndlessWeb {
    /// What is typical of it.
    pub shape: Shape,
    /// The port of all its servers.
    pub port: u16,
    rng: KeyedRng,
}

impl EndlessWeb {
    /// The web of this seed; its servers listen on `port`.
    pub fn new(seed: u64, shape: Shape, port: u16) -> EndlessWeb {
        EndlessWeb { shape, port, rng: KeyedRng::new(seed) }
    }

    /// The same chance, other numbers.
    pub(crate) fn shaped(self, shape: Shape) -> EndlessWeb {
        EndlessWeb { shape, ..self }
    }

    /// The site of this number; there is one for every number.
    pub fn plan(&self, site: u64) -> Plan {
        Plan::of(self.rng, site, &self.shape)
    }

    /// Where a page of a site is found.
    pub fn url(&self, plan: &Plan, place: &Place) -> Option<PageUrl> {
        place::url(plan, place, self.port)
    }

    /// The page at a path of a host, as HTML; none if there is no such host or page.
    pub fn page(&self, host: &str, path_and_query: &str) -> Option<String> {
        let host = HostName::read(host)?;
        let plan = self.plan(host.site);
        let place = place::read(&host, &plan, path_and_query)?;
        let links = links::of(&self.shape, &plan, &place);
        Some(html::write(self.port, &plan, &place, &links))
    }

    /// How many of the first sites have this many pages together, on levels up to `depth`.
    pub fn sites_with(&self, pages: u64, depth: u32) -> u64 {
        let mut sum = 0;
        (0..)
            .find(|site| {
                sum += self.plan(*site).pages(depth);
                sum >= pages
            })
            .map_or(1, |last: u64| last + 1)
    }
}

impl Web for EndlessWeb {
    fn answer(&self, url: &PageUrl) -> Answer {
        let Some(host) = HostName::read(url.host_str()) else { return Answer::Status(404) };
        let plan = self.plan(host.site);
        let Some(place) = place::read(&host, &plan, url.path_and_query()) else { return Answer::Status(404) };
        let links = links::of(&self.shape, &plan, &place).into_iter().filter_map(|link| match link {
            Link::Inside(to) => self.url(&plan, &to),
            Link::Outside(to) => PageUrl::parse(&to.at(self.port)).ok(),
        });
        Answer::Page(links.collect())
    }

    fn allowed(&self, _: &PageUrl) -> bool {
        true
    }

    fn in_scope(&self, host: &Host) -> bool {
        HostName::read(host.as_str()).is_some()
    }
}
