//! Tests that two access points crawl the same pages of a site, in whatever order things come to them.

use crate::swarm::tests::*;
use crate::web::Answer;
use nearcrawl_core::crawl::site::yields::Price;
use nearcrawl_model::record::{RunState, ServerRecord};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};

const HOST: &str = "http://a.test";

/// A site with scripts, redirects, several ways to each page, refused pages, and deeper than it is crawled.
fn site(seed: u64, pages: usize) -> TableWeb {
    let mut random = StdRng::seed_from_u64(seed);
    let mut web = TableWeb::default();
    web.live("a.test", "20.0.0.1");
    web.robots.insert("a.test".parse().unwrap(), "User-agent: *\nDisallow: /private/\n".to_owned());
    let path = |random: &mut StdRng, page: usize| match page % 9 {
        3 => format!("{HOST}/list?page={}", random.random_range(0..pages)),
        5 => format!("{HOST}/show{}?item={page}", page % 3),
        7 => format!("{HOST}/moved/{page}"),
        8 => format!("{HOST}/private/{page}"),
        _ => format!("{HOST}/p{page}"),
    };
    let urls: Vec<String> = (0..pages).map(|page| if page == 0 { format!("{HOST}/") } else { path(&mut random, page) }).collect();
    for (page, url) in urls.iter().enumerate() {
        let mut links: Vec<&str> = (0..random.random_range(1..5)).map(|_| urls[random.random_range(0..pages)].as_str()).collect();
        links.push(&urls[(page + 1) % pages]);
        if url.contains("/moved/") {
            web.put(url, Answer::Redirect(PageUrl::parse(links[0]).unwrap()));
        } else if page % 17 == 16 {
            web.put(url, Answer::Broken);
        } else {
            links.extend(["http://b.test/", "http://far.example/"].into_iter().filter(|_| page % 4 == 0));
            let mut seen = BTreeSet::new();
            links.retain(|link| seen.insert(*link));
            web.page(url, &links);
        }
    }
    web
}

/// The record without what tells the time.
fn timeless(record: &ServerRecord) -> ServerRecord {
    let mut record = ServerRecord { first_visit_at: None, last_visit_at: None, busy_ms: 0, ..record.clone() };
    record.levels.iter_mut().for_each(|level| level.busy_ms = 0);
    record
}

/// Crawls with one access point at a place, and so with answers that take more or less long; `arrivals` are starting URLs with the moment when they are named. The pages asked for, in order, and
/// the site's record.
fn crawl(web: &TableWeb, place: u8, depth: u8, arrivals: &[(Millis, &str)]) -> (Vec<String>, ServerRecord) {
    crawl_as(settings(depth), web, place, arrivals)
}

fn crawl_as(settings: Settings, web: &TableWeb, place: u8, arrivals: &[(Millis, &str)]) -> (Vec<String>, ServerRecord) {
    let (world, asked, record) = crawl_reading(settings, web, place, arrivals, 0);
    assert_polite(&world);
    (asked, record)
}

/// Crawls, and takes so long to read a page.
fn crawl_reading(
    settings: Settings,
    web: &TableWeb,
    place: u8,
    arrivals: &[(Millis, &str)],
    reading: Millis,
) -> (World, Vec<String>, ServerRecord) {
    // A run that its budget may pause is never finished.
    let pauses = settings.rules.pages_per_run > 0;
    let config = WorldConfig { seed: 1, settings, hierarchy: hierarchy(2), places: vec![place] };
    let mut world = World::new(config, web.clone());
    world.reading = reading;
    world.start(0);
    world.run(1_000);
    for (after, url) in arrivals {
        world.run(*after);
        world.seed(0, urls(&[url]));
    }
    assert!(world.run_until(30 * MINUTE, |world| (pauses || agreed(world).is_some())
        && world.crawler(0).is_some_and(|crawler| crawler.view().all_done())));
    let asked = world.ledger.contacts.iter().filter_map(|contact| match &contact.purpose {
        Purpose::Page(url) if url.as_str().starts_with(HOST) => Some(url.to_string()),
        _ => None,
    });
    let record =
        world.crawler(0).unwrap().view().servers(None, 10).servers.into_iter().find(|record| record.host.as_str() == "a.test").unwrap();
    let asked = asked.collect();
    (world, asked, timeless(&record))
}

#[test]
fn servers_that_need_no_rest_are_asked_for_the_next_page_while_one_is_read_and_for_the_same_pages_in_the_same_order() {
    let (mut quicker, mut left_out, mut paused) = (0, 0, 0);
    for seed in 20..32 {
        let web = site(seed, 90);
        let starts: Vec<&str> = web.answers.keys().map(PageUrl::as_str).step_by(11).collect();
        let arrivals: Vec<_> = starts.iter().map(|url| (0, *url)).collect();
        let mut settings = settings(2 + (seed % 4) as u8);
        settings.politeness = Politeness { min_delay: 0, factor: 0, ..settings.politeness };
        settings.rules.price = Price::of(if seed % 2 == 0 { 0.0 } else { 0.3 }).unwrap();
        settings.rules.pages_per_run = if seed % 3 == 0 { 12 } else { 0 };
        let (before, asked, record) = crawl_reading(settings.clone(), &web, 40, &arrivals, 0);
        for reading in [1, 40, 700] {
            let (meanwhile, asked_meanwhile, record_meanwhile) = crawl_reading(settings.clone(), &web, 40, &arrivals, reading);
            assert_eq!((&asked, &record), (&asked_meanwhile, &record_meanwhile), "seed {seed}, {reading} ms");
            assert!(meanwhile.ledger.too_close(0, 0).is_empty(), "one request at a time");
            // Had each page been read before the next was asked for, it would have taken so much longer.
            let span = |world: &World| world.ledger.contacts.last().map_or(0, |last| last.end.since(world.ledger.contacts[0].begin));
            quicker += usize::from(span(&meanwhile) < span(&before) + reading * (record.pages / 2));
        }
        (left_out, paused) = (left_out + record.cut_by_yield, paused + usize::from(record.state == RunState::PausedByBudget));
    }
    assert!(quicker > 12 && left_out > 0 && paused > 0, "{quicker} {left_out} {paused}");
}

#[test]
fn starting_urls_may_be_named_in_any_order_before_the_first_page_is_asked_for() {
    for seed in 0..4 {
        let web = site(seed, 60);
        let mut starts: Vec<&str> = web.answers.keys().map(PageUrl::as_str).step_by(9).collect();
        let mut random = StdRng::seed_from_u64(seed);
        let mut first = None;
        for turn in 0..5 {
            starts.shuffle(&mut random);
            let arrivals: Vec<_> = starts.iter().map(|url| (random.random_range(0..8), *url)).collect();
            let crawled = crawl(&web, 10 + 20 * turn, 3, &arrivals);
            assert_eq!(crawled.1.known, crawled.1.accounted(), "{:?}", crawled.1);
            assert!(crawled.1.cut_by_script > 0 && crawled.1.cut_by_depth + crawled.1.refused_by_robots > 0);
            let first = first.get_or_insert_with(|| crawled.clone());
            assert_eq!((&first.0, &first.1), (&crawled.0, &crawled.1), "seed {seed}: {starts:?}");
        }
    }
}

#[test]
fn without_scripts_starting_urls_may_be_named_at_any_time() {
    for seed in 0..4 {
        let mut web = site(seed, 60);
        web.answers.retain(|url, _| url.query().is_none());
        for answer in web.answers.values_mut() {
            if let Answer::Page(links) = answer {
                links.retain(|link| link.query().is_none());
            }
        }
        let starts: Vec<&str> = web.answers.keys().map(PageUrl::as_str).step_by(13).collect();
        let mut random = StdRng::seed_from_u64(seed);
        let mut first = None;
        for turn in 0..5 {
            let arrivals: Vec<_> = starts.iter().map(|url| (random.random_range(0..1 + 4_000 * Millis::from(turn)), *url)).collect();
            let (mut asked, record) = crawl(&web, 10 + 20 * turn, 3, &arrivals);
            asked.sort_unstable();
            assert_eq!(record.known, record.accounted(), "{record:?}");
            // A page may be asked for before it is known how near it is: only what level it counts at depends on that.
            let record = ServerRecord { levels: Vec::new(), deepest: 0, ..record };
            let first = first.get_or_insert_with(|| (asked.clone(), record.clone()));
            assert_eq!((&first.0, &first.1), (&asked, &record), "seed {seed}, turn {turn}");
        }
    }
}

#[test]
fn whatever_comes_late_every_url_known_is_accounted_for_once() {
    let mut left_out = 0;
    for seed in 10..18 {
        let web = site(seed, 120);
        let starts: Vec<&str> = web.answers.keys().map(PageUrl::as_str).step_by(9).collect();
        let mut random = StdRng::seed_from_u64(seed);
        let arrivals: Vec<_> = starts.iter().map(|url| (random.random_range(0..9_000), *url)).collect();
        let mut settings = settings(2 + (seed % 3) as u8);
        // Every second crawl leaves out what brings too few hosts.
        settings.rules.price = Price::of(if seed % 2 == 0 { 0.0 } else { 0.3 }).unwrap();
        let (asked, record) = crawl_as(settings, &web, 40, &arrivals);
        assert_eq!(record.known, record.accounted(), "seed {seed}: {record:?}");
        let mut times: BTreeMap<&str, usize> = BTreeMap::new();
        asked.iter().for_each(|url| *times.entry(url).or_default() += 1);
        let is_broken = |url: &str| matches!(web.answers.get(&PageUrl::parse(url).unwrap()), Some(Answer::Broken));
        let (broken, answered): (Vec<_>, Vec<_>) = times.into_iter().partition(|(url, _)| is_broken(url));
        assert!(answered.iter().all(|(_, times)| *times == 1) && answered.len() as u64 == record.fetched, "{answered:?}");
        // One may give way to another of its script before it is asked for once more.
        assert!(broken.iter().all(|(_, times)| *times <= 2), "{broken:?}");
        assert_eq!(broken.iter().filter(|(_, times)| *times == 2).count() as u64, record.unanswered);
        assert!(record.unanswered > 0);
        left_out += record.cut_by_yield;
        let scripts: Vec<_> = answered.iter().filter_map(|(url, _)| url.split_once('?')).map(|(script, _)| script).collect();
        assert_eq!(scripts.iter().collect::<BTreeSet<_>>().len(), scripts.len(), "one URL a script");
    }
    assert!(left_out > 0);
}

#[test]
fn of_two_urls_of_a_script_found_at_one_level_the_one_on_the_earlier_page_in_line_wins() {
    let mut web = TableWeb::default();
    web.live("a.test", "20.0.0.1");
    web.page("http://a.test/", &["http://a.test/z", "http://a.test/b"]);
    web.page("http://a.test/b", &["http://a.test/s?id=1"]);
    web.page("http://a.test/z", &["http://a.test/s?id=2"]);
    let (asked, record) = crawl(&web, 1, 5, &[(0, "http://a.test/")]);
    assert_eq!(asked, ["/", "/z", "/b", "/s?id=2"].map(|path| format!("{HOST}{path}")).to_vec());
    assert_eq!((record.cut_by_script, record.known, record.fetched), (1, 5, 4));
    // A redirect leads to the other one at a shorter level: it comes back, and wins.
    web.page("http://a.test/b", &["http://a.test/s?id=1", "http://a.test/c"]);
    web.put("http://a.test/c", Answer::Redirect(PageUrl::parse("http://a.test/d").unwrap()));
    web.put("http://a.test/m", Answer::Redirect(PageUrl::parse("http://a.test/s?id=1").unwrap()));
    web.page("http://a.test/", &["http://a.test/z", "http://a.test/b", "http://a.test/m"]);
    let (asked, record) = crawl(&web, 1, 5, &[(0, "http://a.test/")]);
    assert!(asked.contains(&format!("{HOST}/s?id=1")) && !asked.contains(&format!("{HOST}/s?id=2")), "{asked:?}");
    assert_eq!((record.cut_by_script, record.known), (1, record.accounted()));
}
