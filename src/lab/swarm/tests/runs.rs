//! What happens after the first run, and to what is found late: shorter ways, second visits, seeds that come again?

use super::*;

/// Two sites; the second learns of a shorter way to its deep pages only when the first is nearly done.
fn late_shorter_ways() -> Web {
    let mut web = Web::default();
    web.live("a.test", "20.0.0.1");
    web.live("b.test", "20.0.1.1");
    let chain = |host: &str, n: usize| format!("http://{host}/{n}");
    for n in 0..12 {
        // a: a long chain; its end leads into the middle of b's chain, whose own way there is too long.
        let next = chain("a.test", n + 1);
        web.page(&chain("a.test", n), &[&next]);
        let next = [chain("b.test", n + 1), chain("b.test", n + 2)];
        web.page(&chain("b.test", n), &[&next[0], if n % 4 == 0 { next[1].as_str() } else { next[0].as_str() }]);
    }
    web.page("http://a.test/", &["http://a.test/0", "http://b.test/"]);
    web.page("http://a.test/3", &["http://a.test/4", "http://b.test/5", "http://a.test/1"]);
    web.page("http://b.test/", &["http://b.test/0", "http://b.test/moved"]);
    web.page("http://b.test/6", &["http://b.test/7", "http://a.test/9"]);
    web.put("http://b.test/moved", super::super::web::Answer::Redirect(PageUrl::parse("http://b.test/2").unwrap()));
    web
}

#[test]
fn a_shorter_way_that_is_found_late_opens_what_the_depth_had_cut() {
    for seed in 0..6 {
        for aps in [1, 3] {
            let web = late_shorter_ways();
            let places = [10, 50, 90];
            let config = WorldConfig { seed, settings: settings(4), hierarchy: hierarchy(4), places: places[..aps].to_vec() };
            let truth = walk(&web, &urls(&["http://a.test/"]), &scope(), 4, "nearcrawl");
            assert!(truth.asked.keys().any(|url| url.as_str() == "http://b.test/9"), "only the late way leads there");
            let mut world = World::new(config, web);
            (0..aps).for_each(|number| world.start(number));
            world.run(1_000);
            world.seed(0, urls(&["http://a.test/"]));
            let results = finish(&mut world, &truth, 10 * MINUTE);
            assert_fetched(&world, &truth, &BTreeSet::new());
            assert_totals(&results, &truth);
        }
    }
}

const SHAPE: WebShape = WebShape { hosts: 9, hosts_per_subnet: 2, pages: 10, shared: 0 };

#[test]
fn the_next_run_fetches_everything_once_more_and_counts_nothing_double() {
    for seed in 0..3 {
        let mut settings = settings(3);
        settings.revisit = 15 * MINUTE;
        let (mut world, truth) = swarm(seed, &[10, 50, 90], &SHAPE, settings);
        world.seed(0, urls(&["http://s0.test/"]));
        let first = finish(&mut world, &truth, 10 * MINUTE);
        assert_fetched(&world, &truth, &BTreeSet::new());
        let all_again = |world: &World| {
            let fetched = world.ledger.fetches();
            truth.asked.keys().all(|url| fetched.get(url) == Some(&2)) && agreed(world).is_some()
        };
        if !world.run_until(15 * MINUTE, all_again) {
            let fetched = world.ledger.fetches();
            let odd: Vec<_> =
                truth.asked.keys().filter(|url| fetched.get(url) != Some(&2)).map(|url| (url.as_str(), fetched.get(url))).collect();
            panic!("seed {seed}: second run: {odd:?}, {:?}", agreed(&world).map(|results| results.summary.total));
        }
        world.run(3_000);
        let second = agreed(&world).unwrap();
        assert_eq!(second.summary.total.pages, first.summary.total.pages);
        assert_totals(&second, &truth);
        assert_polite(&world);
        let journals = |world: &World, run: u32| -> usize {
            (0..3).map(|number| world.disk(number).unwrap().journals.keys().filter(|key| key.run == run).count()).sum()
        };
        assert_eq!(journals(&world, 1), 2 * truth.hosts.len(), "the first run has served: only its keepers still have it");
        world.run(15 * MINUTE);
        assert_eq!((journals(&world, 1), journals(&world, 3)), (0, 3 * truth.hosts.len()), "with the third it is gone");
    }
}

#[test]
fn a_seed_that_comes_again_and_a_late_one_change_only_what_they_must() {
    let (mut world, truth) = swarm(1, &[10, 50, 90], &SHAPE, settings(3));
    world.seed(0, urls(&["http://s0.test/"]));
    finish(&mut world, &truth, 10 * MINUTE);
    let before = world.ledger.requests();
    world.seed(2, urls(&["http://s0.test/", "http://s3.test/p1"]));
    world.seed(1, urls(&["http://nowhere.test/", "http://s0.test/"]));
    world.run(MINUTE);
    let seeds = urls(&["http://s0.test/", "http://s3.test/p1"]);
    let truth = walk(&world.web, &seeds, &scope(), 3, "nearcrawl");
    let results = finish(&mut world, &truth, 10 * MINUTE);
    assert_fetched(&world, &truth, &BTreeSet::new());
    assert_totals(&results, &truth);
    assert!(world.ledger.requests() - before < 12, "only what the later seed brought nearer");
}
