//! Tests that the made-up web is one web: every page has one URL, and is the same whoever asks.

use super::{links::Link, place::Place, *};
use std::collections::BTreeSet;

fn web() -> EndlessWeb {
    EndlessWeb::new(5, Shape::default(), 8080)
}

/// All pages of a site up to a level, calendars' first days included, by following links.
fn pages(web: &EndlessWeb, plan: &Plan, depth: u32) -> Vec<(Place, u32)> {
    let mut found = vec![(Place::Front, 0)];
    let mut known = BTreeSet::from([Place::Front]);
    let mut next = 0;
    while let Some((place, level)) = found.get(next).copied() {
        next += 1;
        for link in links::of(&web.shape, plan, &place) {
            if let Link::Inside(to) = link
                && level < depth
                && !matches!(to, Place::Day { day: 1.., .. })
                && known.insert(to)
            {
                found.push((to, level + 1));
            }
        }
    }
    found
}

#[test]
fn every_page_is_where_its_plan_says_and_has_one_url() {
    let web = web();
    let mut urls = BTreeSet::new();
    for site in 0..150 {
        let plan = web.plan(site);
        let found = pages(&web, &plan, 9);
        for depth in [0, 1, 2, 5, 9] {
            assert_eq!(found.iter().filter(|(_, level)| *level <= depth).count() as u64, plan.pages(depth), "site {site} to {depth}");
        }
        for (place, level) in found {
            assert_eq!(place.level(&plan), level, "{place:?} of site {site}");
            let url = web.url(&plan, &place).unwrap();
            let host = HostName::read(url.host_str()).unwrap();
            assert_eq!((host.site, place::read(&host, &plan, url.path_and_query())), (site, Some(place)), "{url}");
            assert!(urls.insert(url));
        }
    }
    assert!(urls.len() > 3_000);
}

#[test]
fn what_is_written_otherwise_does_not_exist() {
    let web = web();
    for (host, path) in [
        ("s1.test", "/about"),
        ("s1.test", "/d0"),
        ("s1.test", "/d0/0.html"),
        ("s1.test", "/d00/"),
        ("s1.test", "/d65536/"),
        ("s1.test", "/d0/99999999.html"),
        ("s1.test", "/d0/99999999999999999999.html"),
        ("s01.test", "/"),
        ("www.s1.test", "/"),
        ("s1.example", "/"),
        ("test", "/"),
        ("x00000000000000ff.test", "/"),
    ] {
        assert_eq!(web.page(host, path), None, "{host}{path}");
    }
    assert!(web.page("s1.test", "/").is_some());
}

#[test]
fn a_page_is_as_large_as_foretold_and_says_its_links() {
    let web = web();
    for site in 0..40 {
        let plan = web.plan(site);
        for (place, _) in pages(&web, &plan, 3) {
            let url = web.url(&plan, &place).unwrap();
            let html = web.page(url.host_str(), url.path_and_query()).unwrap();
            let links = links::of(&web.shape, &plan, &place);
            assert_eq!(html.len(), html::size(&plan, &place, &links), "{url}");
            assert_eq!(html.matches("<a href=").count(), links.len(), "{url}");
        }
    }
}

#[test]
fn equal_seeds_make_equal_webs_and_others_others() {
    let page = |seed| EndlessWeb::new(seed, Shape::default(), 80).page("s3.test", "/").unwrap();
    assert_eq!(page(1), page(1));
    assert_ne!(page(1), page(2));
}
