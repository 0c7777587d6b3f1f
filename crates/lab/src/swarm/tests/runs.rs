//! Tests of what follows the first run, and of what is found late: shorter ways, second visits, seeds that come again.

use crate::swarm::tests::*;
use crate::web::Answer;
use nearcrawl_model::{
    account::Changes,
    journal::JournalKey,
    record::ServerRecord,
    server_rows::{HistoryRow, RowsOf},
};

/// Two sites; the second learns of a shorter way to its deep pages only when the first is nearly done.
fn late_shorter_ways() -> TableWeb {
    let mut web = TableWeb::default();
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
    web.put("http://b.test/moved", Answer::Redirect(PageUrl::parse("http://b.test/2").unwrap()));
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

const SHAPE: TableShape = TableShape { hosts: 9, hosts_per_subnet: 2, pages: 10, shared: 0 };

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
        if !world.run_until(17 * MINUTE, all_again) {
            let fetched = world.ledger.fetches();
            let odd: Vec<_> =
                truth.asked.keys().filter(|url| fetched.get(url) != Some(&2)).map(|url| (url.as_str(), fetched.get(url))).collect();
            panic!("seed {seed}: second run: {odd:?}, {:?}", agreed(&world).map(|results| results.summary.total));
        }
        world.run(3_000);
        // A roll-up of the last site may be on its way.
        assert!(world.run_until(30_000, |world| agreed(world).is_some()), "seed {seed}: no totals that all agree on");
        let second = agreed(&world).unwrap();
        assert_eq!(second.summary.total.pages, first.summary.total.pages);
        assert_totals(&second, &truth);
        assert_polite(&world);
        let journals = |world: &World, run: u32| -> usize {
            (0..3).map(|number| world.disk(number).unwrap().journals.keys().filter(|key| key.run == run).count()).sum()
        };
        assert_eq!(journals(&world, 1), 3 * truth.hosts.len(), "what the first run knew is kept while links may still come");
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

/// The records of all sites, at their owners.
pub(super) fn records(world: &World) -> Vec<ServerRecord> {
    world.running().into_iter().flat_map(|number| world.crawler(number).unwrap().view().servers(None, 1_000).servers).collect()
}

/// Runs until this run of every site is over.
#[track_caller]
pub(super) fn finish_run(world: &mut World, run: u32, hosts: usize) -> Vec<ServerRecord> {
    let over = |world: &World| {
        let records = records(world);
        records.len() == hosts && records.iter().all(|record| record.run == run && record.waiting == 0) && agreed(world).is_some()
    };
    if !world.run_until(20 * MINUTE, over) {
        let states: Vec<_> = records(world).iter().map(|r| (r.host.to_string(), r.run, r.waiting, r.state)).collect();
        panic!("run {run} is not over: {states:?}");
    }
    world.run(2_000);
    records(world)
}

/// The sum of what changed at all sites.
pub(super) fn changes(records: &[ServerRecord]) -> Changes {
    let mut sum = Changes::default();
    for record in records {
        let changes = record.changes.unwrap_or_else(|| panic!("{} is compared with nothing", record.host));
        sum.compared_run = changes.compared_run;
        sum.pages_before += changes.pages_before;
        sum.new += changes.new;
        sum.changed += changes.changed;
        sum.unchanged += changes.unchanged;
        sum.not_modified += changes.not_modified;
        sum.gone += changes.gone;
        sum.missed += changes.missed;
        sum.bytes_saved += changes.bytes_saved;
    }
    sum
}

fn is_page(web: &TableWeb, url: &PageUrl) -> bool {
    matches!(web.answer(url), Answer::Page(_))
}

/// What a second run must find changed, by the two truths.
fn expected_changes(old: (&TableWeb, &Truth), new: (&TableWeb, &Truth)) -> Changes {
    let pages =
        |(web, truth): (&TableWeb, &Truth)| -> BTreeSet<PageUrl> { truth.asked.keys().filter(|url| is_page(web, url)).cloned().collect() };
    let (before, after) = (pages(old), pages(new));
    let missed = before.iter().filter(|url| new.1.asked.contains_key(*url) && new.0.answer(url) == Answer::Broken).count() as u64;
    let same = before.intersection(&after).filter(|url| old.0.answer(url) == new.0.answer(url)).count() as u64;
    Changes {
        compared_run: 1,
        pages_before: before.len() as u64,
        new: after.difference(&before).count() as u64,
        changed: before.intersection(&after).count() as u64 - same,
        unchanged: same,
        gone: before.difference(&after).count() as u64 - missed,
        missed,
        ..Changes::default()
    }
}

#[track_caller]
fn assert_changes(found: Changes, expected: Changes) {
    assert_eq!(Changes { not_modified: 0, bytes_saved: 0, ..found }, expected);
}

/// Changes some pages, adds some, and takes some away. Starting URLs of the first run stay such.
fn change(web: &mut TableWeb, first: &Truth) -> Vec<PageUrl> {
    let starts: Vec<_> = first.asked.iter().filter(|(_, level)| **level == 0).map(|(url, _)| url.clone()).collect();
    let pages: Vec<_> = first.asked.keys().filter(|url| is_page(web, url)).cloned().collect();
    for (number, url) in pages.iter().enumerate() {
        let Answer::Page(mut links) = web.answer(url) else { continue };
        match number % 7 {
            2 => {
                let added = url.join("/added").unwrap();
                web.put(added.as_str(), Answer::Page(vec![url.root()]));
                links.push(added);
                web.put(url.as_str(), Answer::Page(links));
            }
            4 => {
                links.pop();
                web.put(url.as_str(), Answer::Page(links));
            }
            5 if !starts.contains(url) => web.put(url.as_str(), Answer::Status(410)),
            6 if number % 2 == 0 => web.put(url.as_str(), Answer::Broken),
            _ => {}
        }
    }
    starts
}

#[test]
fn a_second_run_of_an_unchanged_web_downloads_next_to_nothing_and_counts_the_same() {
    let mut settings = settings(3);
    settings.revisit = 15 * MINUTE;
    let (mut world, truth) = swarm(3, &[10, 50], &SHAPE, settings);
    // Each page links to three URLs out of scope, too: one that all have, one that few have, one that no other has.
    for (number, answer) in world.web.answers.values_mut().enumerate() {
        let Answer::Page(links) = answer else { continue };
        let far = ["http://far.example/", &format!("http://far.example/{}", number % 9), &format!("http://h{number}.far.example/")];
        links.extend(urls(&far));
    }
    world.seed(0, urls(&["http://s0.test/"]));
    finish(&mut world, &truth, 10 * MINUTE);
    let first = records(&world);
    let second = finish_run(&mut world, 2, truth.hosts.len());
    let sum = changes(&second);
    let every = Changes { compared_run: 1, pages_before: truth.pages, unchanged: truth.pages, ..Changes::default() };
    assert_changes(sum, every);
    let silent = truth.asked.keys().filter(|url| is_page(&world.web, url) && url.as_str().len() % 3 == 0).count() as u64;
    assert_eq!(sum.not_modified, truth.pages - silent, "all but those whose server says nothing of versions");
    let bytes = |records: &[ServerRecord]| records.iter().map(|record| record.bytes).sum::<u64>();
    assert_eq!(bytes(&second) + sum.bytes_saved, bytes(&first));
    let page_bytes = |records: &[ServerRecord]| records.iter().map(|record| record.page_bytes).sum::<u64>();
    let total = agreed(&world).unwrap().summary.total.page_bytes;
    assert_eq!((total, total > 0), (page_bytes(&first), true), "the size of pages is no less because they are not sent again");
    assert!(total < bytes(&first), "there are bodies that are no pages");
    for (before, now) in first.iter().zip(&second) {
        assert_eq!(now.page_bytes, before.page_bytes, "{}", now.host);
        let counts = |r: &ServerRecord| (r.pages, r.known, r.fetched, r.cut_by_depth, r.refused_by_robots, r.external_hosts, r.requests);
        let external = |r: &ServerRecord| (r.external_hosts, r.external_domains, r.external_urls);
        assert_eq!(external(before), external(now), "{}: of pages that were not downloaded, too", now.host);
        assert!(now.external_urls > now.external_hosts && now.external_hosts > now.external_domains && now.external_domains > 1);
        assert_eq!((&before.host, counts(before)), (&now.host, counts(now)));
        let levels = |r: &ServerRecord| r.levels.iter().map(|level| level.external_hosts).sum::<u64>();
        assert_eq!((levels(before), levels(now)), (before.external_hosts, now.external_hosts), "{}", now.host);
    }
    let total = agreed(&world).unwrap().summary.total;
    let all = |count: fn(&ServerRecord) -> u64| second.iter().map(count).sum::<u64>();
    assert_eq!((total.external_urls, total.external_domains), (all(|r| r.external_urls), all(|r| r.external_domains)));
    assert_polite(&world);
    let third = finish_run(&mut world, 3, truth.hosts.len());
    let third = changes(&third);
    assert_eq!(
        (third.unchanged, third.not_modified, third.gone),
        (truth.pages, sum.not_modified, 0),
        "what was not downloaded is known still"
    );
}

/// Crawls, changes the web, crawls again while members are killed and started, and counts what changed.
fn changed_web(seed: u64, places: &[u8], disturb: impl Fn(&mut World)) {
    let mut settings = settings(3);
    settings.revisit = 15 * MINUTE;
    let (mut world, truth) = swarm(seed, places, &SHAPE, settings);
    world.seed(0, urls(&["http://s0.test/"]));
    finish(&mut world, &truth, 10 * MINUTE);
    let old = world.web.clone();
    let starts = change(&mut world.web, &truth);
    let now = walk(&world.web, &starts, &scope(), 3, "nearcrawl");
    let expected = expected_changes((&old, &truth), (&world.web, &now));
    assert!(expected.new > 0 && expected.changed > 0 && expected.gone > 0 && expected.missed > 0, "{expected:?}");
    disturb(&mut world);
    let second = finish_run(&mut world, 2, truth.hosts.len());
    assert_changes(changes(&second), expected);
    assert_totals(&agreed(&world).unwrap(), &now);
}

#[test]
fn what_changed_is_counted_exactly() {
    for seed in 0..3 {
        changed_web(seed, &[10, 50, 90], |_| {});
    }
}

/// Whether the second run of a server is neither at its beginning nor at its end.
fn is_amid_the_second(record: &ServerRecord) -> bool {
    record.next_run.is_some_and(|next| next.run == 2 && next.pages > 2 && next.waiting > 0)
}

#[test]
fn what_changed_is_counted_exactly_across_a_kill_between_the_runs_and_in_the_second() {
    changed_web(1, &[10], |world| {
        world.kill(0);
        world.run(2_000);
        world.start(0);
        let some = |world: &World| records(world).iter().any(is_amid_the_second);
        assert!(world.run_until(20 * MINUTE, some));
        world.kill(0);
        world.run(2_000);
        world.start(0);
    });
}

#[test]
fn a_successor_in_the_second_run_knows_what_the_first_one_knew() {
    changed_web(2, &[10, 50, 90], |world| {
        let some = |world: &World| {
            let theirs = world.crawler(1).unwrap().view().servers(None, 1_000).servers;
            theirs.iter().any(is_amid_the_second)
        };
        assert!(world.run_until(20 * MINUTE, some));
        world.kill(1);
    });
}

#[test]
fn who_is_handed_a_subnet_in_the_second_run_by_an_owner_that_was_started_anew_in_it_knows_what_the_first_run_knew() {
    changed_web(2, &[10, 50, 90, 20, 60, 30, 70], |world| {
        let amid = |world: &World, number: usize| {
            let theirs = world.crawler(number).map(|crawler| crawler.view().servers(None, 1_000).servers).unwrap_or_default();
            theirs.iter().any(is_amid_the_second)
        };
        assert!(world.run_until(20 * MINUTE, |world| (0..7).any(|number| amid(world, number))));
        let owner = (0..7).find(|number| amid(world, *number)).unwrap();
        world.kill(owner);
        world.run(2_000);
        world.start(owner);
        assert!(world.run_until(MINUTE, |world| amid(world, owner)), "it goes on");
        // To those who have nothing of the run before.
        let is_of_first = |subnet: &Subnet, key: &JournalKey| key.subnet == *subnet && key.run == 1;
        let has_nothing = |world: &World, number: &usize, subnet: &Subnet| {
            world.disk(*number).is_some_and(|disk| !disk.journals.keys().any(|key| is_of_first(subnet, key)))
        };
        let mut moved = 0;
        for subnet in subnets(world) {
            if let Some(to) = (0..7).find(|number| has_nothing(world, number, &subnet)) {
                world.move_subnet(owner, subnet, to);
                moved += 1;
            }
        }
        assert!(moved > 0);
    });
}

/// Whose hosts lead to each other.
fn tree_of_two_hosts() -> World {
    let mut web = TableWeb::default();
    web.live("a.test", "20.0.0.1");
    web.live("b.a.test", "20.0.1.1");
    web.page("http://a.test/", &["http://a.test/1", "http://b.a.test/x"]);
    web.page("http://a.test/1", &["http://b.a.test/y"]);
    web.page("http://b.a.test/x", &["http://b.a.test/z"]);
    web.page("http://b.a.test/y", &["http://b.a.test/x", "http://a.test/1"]);
    web.page("http://b.a.test/z", &["http://a.test/late"]);
    web.page("http://a.test/late", &[]);
    let settings = Settings { revisit: 15 * MINUTE, ..settings(3) };
    let config = WorldConfig { seed: 1, settings, hierarchy: hierarchy(2), places: vec![10, 90] };
    let mut world = World::new(config, web);
    (0..2).for_each(|number| world.start(number));
    world.run(1_000);
    world.seed(0, urls(&["http://a.test/"]));
    world
}

#[test]
fn a_part_of_a_tree_at_another_host_is_visited_again_with_it_and_knows_its_pages() {
    let mut world = tree_of_two_hosts();
    let first = finish_run(&mut world, 1, 2);
    let second = finish_run(&mut world, 2, 2);
    let pages = |records: &[ServerRecord]| records.iter().map(|record| record.pages).sum::<u64>();
    assert_eq!((pages(&first), pages(&second)), (6, 6));
    let every = Changes { compared_run: 1, pages_before: 6, unchanged: 6, ..Changes::default() };
    assert_changes(changes(&second), every);
}

/// Polls totals and records until the second run of every site is over: no count falls. Where someone is killed, exact totals do not.
#[track_caller]
fn nothing_falls(world: &mut World, hosts: usize, pages: u64, mut disturb: impl FnMut(&mut World, usize)) {
    let over = |records: &[ServerRecord]| {
        records.len() == hosts && records.iter().all(|record| record.run == 2 && record.waiting == 0 && record.next_run.is_none())
    };
    let mut under_way = 0;
    for step in 0..6 * 20 * 60 {
        world.run(200);
        let records = records(world);
        for record in &records {
            assert!(record.pages > 0 || record.next_run.is_none(), "step {step}: {record:?}");
            under_way += usize::from(record.next_run.is_some());
        }
        for number in world.running() {
            let Some(results) = world.results(number).filter(|results| results.exact) else { continue };
            let total = results.summary.total;
            assert_eq!((total.servers, total.pages, total.unfinished), (hosts as u64, pages, 0), "step {step} at {number}");
        }
        disturb(world, under_way);
        if over(&records) {
            assert!(under_way > 0, "a run under way is told");
            return;
        }
    }
    panic!("the second run is not over");
}

#[test]
fn the_last_whole_run_answers_until_the_next_is_whole_though_an_owner_is_killed_in_it() {
    for killed in [None, Some(1)] {
        let settings = Settings { revisit: 15 * MINUTE, ..settings(3) };
        let (mut world, truth) = swarm(1, &[10, 50, 90], &SHAPE, settings);
        world.seed(0, urls(&["http://s0.test/"]));
        finish(&mut world, &truth, 10 * MINUTE);
        let mut killed = killed;
        nothing_falls(&mut world, truth.hosts.len(), truth.pages, |world, under_way| {
            if under_way > 100
                && let Some(number) = killed.take()
            {
                world.kill(number);
            }
        });
    }
}

/// What every running member says of the runs of its servers: host → number and pages of each run.
fn histories(world: &World) -> BTreeMap<String, Vec<(u32, u64)>> {
    let views = world.running().into_iter().map(|number| world.crawler(number).unwrap().view());
    let rows = views.flat_map(|view| view.rows(RowsOf::History, None).unwrap().rows);
    let read = rows.map(|row| serde_json::from_str::<HistoryRow>(&row).unwrap());
    // Nothing moves here: each is today where it was in every run.
    let stays = |row: &HistoryRow| row.runs.iter().all(|run| row.today.as_ref().is_some_and(|today| today.address == run.summary.address));
    let read = read.inspect(|row| assert!(stays(row), "{row:?}"));
    let runs = |row: &HistoryRow| row.runs.iter().map(|run| (run.summary.run, run.summary.pages)).collect();
    read.map(|row| (row.host.to_string(), runs(&row))).collect()
}

#[test]
fn three_runs_are_on_record_though_an_owner_dies_in_the_third() {
    let settings = Settings { revisit: 15 * MINUTE, ..settings(3) };
    let (mut world, truth) = swarm(1, &[10, 50, 90], &SHAPE, settings);
    world.seed(0, urls(&["http://s0.test/"]));
    finish(&mut world, &truth, 10 * MINUTE);
    let hosts = truth.hosts.len();
    finish_run(&mut world, 2, hosts);
    let amid = |world: &World| {
        let theirs = world.crawler(1).unwrap().view().servers(None, 1_000).servers;
        theirs.iter().any(|record| record.next_run.is_some_and(|next| next.run == 3))
    };
    assert!(world.run_until(20 * MINUTE, amid));
    world.kill(1);
    let last = finish_run(&mut world, 3, hosts);
    let expected = last.iter().map(|record| (record.host.to_string(), [1, 2, 3].map(|run| (run, record.pages)).to_vec())).collect();
    assert_eq!(histories(&world), expected);
}

#[test]
fn a_tree_of_two_hosts_loses_no_page_while_it_is_visited_again() {
    let mut world = tree_of_two_hosts();
    finish_run(&mut world, 1, 2);
    nothing_falls(&mut world, 2, 6, |_, _| {});
}

/// Two spellings of one site, `www.` at another address and another member's than the bare name, and a shop beside.
fn two_spellings() -> TableWeb {
    let mut web = TableWeb::default();
    web.live("www.a.test", "20.0.0.1");
    web.live("a.test", "20.0.1.1");
    web.live("shop.a.test", "20.0.2.1");
    web.live("b.test", "20.0.3.1");
    web.page("http://www.a.test/", &["http://www.a.test/1", "http://a.test/old"]);
    web.page("http://www.a.test/1", &["http://shop.a.test/", "http://a.test/only-www-leads-here"]);
    web.page("http://a.test/", &["http://a.test/old"]);
    web.page("http://a.test/old", &["http://a.test/older", "http://www.a.test/1"]);
    web.page("http://a.test/older", &["http://b.test/"]);
    web.page("http://a.test/only-www-leads-here", &[]);
    web.page("http://shop.a.test/", &["http://a.test/cart", "http://www.a.test/"]);
    web.put("http://a.test/cart", Answer::Redirect(PageUrl::parse("http://shop.a.test/basket").unwrap()));
    web.page("http://shop.a.test/basket", &[]);
    web.page("http://b.test/", &[]);
    web
}

#[test]
fn both_spellings_of_a_site_are_one_tree_whichever_is_named_and_are_visited_again_together() {
    for seed in seeds(2) {
        for named in [&["http://www.a.test/"][..], &["http://a.test/", "http://www.a.test/"], &["http://www.a.test/", "http://a.test/old"]]
        {
            let settings = Settings { revisit: 15 * MINUTE, ..settings(4) };
            let config = WorldConfig { seed, settings, hierarchy: hierarchy(4), places: vec![10, 50, 90] };
            let mut world = World::new(config, two_spellings());
            (0..3).for_each(|number| world.start(number));
            world.run(1_000);
            // Each is named at another member, and the later ones when the first may have led there already.
            for (number, url) in named.iter().enumerate() {
                world.seed(number, urls(&[url]));
                world.run(20_000 * seed);
            }
            let first = finish_run(&mut world, 1, 4);
            let trees: BTreeMap<_, _> = first.iter().map(|record| (record.host.as_str(), record.tree.as_str())).collect();
            let expected = [("a.test", "a.test"), ("b.test", "b.test"), ("shop.a.test", "a.test"), ("www.a.test", "a.test")];
            assert_eq!(trees, expected.into(), "{named:?}");
            let fetched = |world: &World| -> BTreeMap<String, usize> {
                world.ledger.fetches().into_iter().map(|(url, times)| (url.to_string(), times as usize)).collect()
            };
            // The root of the bare name is a starting URL only where a starting URL of that host was named.
            let root = named.len() > 1;
            assert_eq!(fetched(&world).len(), 9 + usize::from(root), "{named:?}: {:?}", fetched(&world));
            assert_eq!(fetched(&world).contains_key("http://a.test/"), root, "{named:?}");
            let external = first.iter().map(|record| (record.host.as_str(), record.external_hosts));
            assert_eq!(external.filter(|(_, hosts)| *hosts > 0).collect::<Vec<_>>(), [("a.test", 1)], "only b.test is another's");

            let second = finish_run(&mut world, 2, 4);
            let twice = fetched(&world);
            assert!(twice.values().all(|times| *times == 2), "{named:?}: {twice:?}");
            let pages = |records: &[ServerRecord]| records.iter().map(|record| (record.host.clone(), record.pages)).collect::<Vec<_>>();
            assert_eq!(pages(&second), pages(&first), "{named:?}");
            assert_polite(&world);
        }
    }
}

#[test]
fn a_spelling_that_is_named_late_catches_up_with_the_runs_of_its_tree() {
    let mut web = TableWeb::default();
    web.live("www.a.test", "20.0.0.1");
    web.live("a.test", "20.0.1.1");
    web.page("http://www.a.test/", &["http://www.a.test/1"]);
    web.page("http://www.a.test/1", &[]);
    web.page("http://a.test/", &[]);
    let settings = Settings { revisit: 15 * MINUTE, ..settings(3) };
    let mut world = World::new(WorldConfig { seed: 1, settings, hierarchy: hierarchy(2), places: vec![10] }, web);
    world.start(0);
    world.run(1_000);
    world.seed(0, urls(&["http://www.a.test/"]));
    finish_run(&mut world, 2, 1);
    world.seed(0, urls(&["http://a.test/"]));
    let fetched = |world: &World| records(world).iter().any(|record| record.host.as_str() == "a.test" && record.pages == 1);
    assert!(world.run_until(MINUTE, fetched));
    world.web.page("http://www.a.test/", &["http://www.a.test/1", "http://a.test/"]);
    let third = finish_run(&mut world, 3, 2);
    let since: Vec<_> = third.iter().map(|r| (r.host.as_str(), r.changes.unwrap().compared_run, r.changes.unwrap().unchanged)).collect();
    assert_eq!(since, [("a.test", 1, 1), ("www.a.test", 2, 1)]);
}
