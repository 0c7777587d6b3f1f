//! A small made-up web, used where there are no files: sites of very different sizes whose pages share a menu.

use super::graph::Graph;
use rand::{RngExt, SeedableRng, rngs::StdRng};

/// How many sites it has.
const SITES: u32 = 1_000;
/// Pages of a site: from this many …
const MIN_PAGES: f64 = 8.0;
/// … with a Pareto tail of this exponent …
const TAIL: f64 = 1.1;
/// … up to this many.
const MAX_PAGES: f64 = 800.0;
/// Links that all pages of a site have.
const MENU: u32 = 10;
/// Links of a page to others nearby on its site.
const NEARBY: u32 = 6;
/// How far these reach, in pages.
const REACH: u32 = 20;
/// How likely a page has one more link to the front page of another site.
const OUTWARD: f64 = 0.3;

/// The web of this seed.
pub fn web(seed: u64) -> Graph {
    let mut random = StdRng::seed_from_u64(seed);
    let mut site_of = Vec::new();
    let mut fronts = Vec::new();
    for site in 0..SITES {
        let pages = MIN_PAGES / random.random_range(f64::EPSILON..1.0).powf(1.0 / TAIL);
        fronts.push(site_of.len() as u32);
        site_of.resize(site_of.len() + pages.min(MAX_PAGES) as usize, site);
    }
    let mut links = Vec::new();
    for (site, front) in fronts.iter().enumerate() {
        let end = fronts.get(site + 1).copied().unwrap_or(site_of.len() as u32);
        for page in *front..end {
            links.extend((*front..end).take(MENU as usize).map(|menu| (page, menu)));
            let (low, high) = (page.saturating_sub(REACH).max(*front), (page + REACH).min(end - 1));
            links.extend((0..NEARBY).map(|_| (page, random.random_range(low..=high))));
            while random.random_bool(OUTWARD) {
                // The square makes some sites far more popular than others.
                let popular = random.random_range(0.0..1.0_f64).powi(2) * fronts.len() as f64;
                links.push((page, fronts[popular as usize]));
            }
        }
    }
    Graph::new(&links, site_of)
}
