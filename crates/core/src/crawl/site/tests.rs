//! Tests that a site requests what it should, in the right order, and that its journal replays to the same state.

mod yielding;

use super::{replay::replay, *};
use nearcrawl_model::{
    evaluation::{Evaluation, Rule},
    failing_pages::MAX_FAILING_PAGES,
    ids::SiteNumber,
    journal::Arrival,
    previous_run::PreviousRow,
    revisit::{Change, Validators},
    seen::PageState,
};

const KEY: FingerprintKey = FingerprintKey([7; 16]);

fn rules() -> SiteRules {
    SiteRules { depth: 2, price: Price::default(), pages_per_run: 0, product_token: "nearcrawl".to_owned() }
}

fn page(path: &str) -> PageUrl {
    PageUrl::parse(&format!("http://a.ke{path}")).unwrap()
}

fn found(paths: &[(&str, u8)]) -> Vec<(PageUrl, u8, u8)> {
    paths.iter().map(|(path, level)| (page(path), *level, 0)).collect()
}

fn opened() -> (JournalKey, Vec<JournalEntry>) {
    let key = JournalKey { subnet: "9.0.0.0/24".parse().unwrap(), host: "a.ke".parse().unwrap(), run: 1 };
    let entry = JournalEntry::Opened { address: "9.0.0.1".parse().unwrap(), tree: "a.ke".parse().unwrap(), at: WallTime(1) };
    (key, vec![entry])
}

fn robots(body: &str) -> JournalEntry {
    JournalEntry::Robots { origin: page("/").origin(), at: WallTime(2), answer: Ok((200, body.as_bytes().to_vec())), took: 5 }
}

fn visited(path: &str, level: u8, links: &[(&str, u8)], outgoing: &[&str]) -> JournalEntry {
    JournalEntry::Visited {
        url: page(path),
        level,
        at: WallTime(3),
        outcome: VisitOutcome::Page(200),
        took: 20,
        first_byte_us: Some(9),
        bytes: 100,
        software: None,
        children: links.iter().map(|(path, _)| KEY.of(page(path).as_str())).collect(),
        found: found(links),
        outgoing: outgoing.iter().map(|url| Arrival { url: PageUrl::parse(url).unwrap(), place: None, run: 1 }).collect(),
        beyond_scope: vec!["far.example".parse().unwrap()],
        rest: None,
    }
}

/// Applies entries to a new site and returns it with the paths it asks next, setting aside what it says to set aside.
fn play(entries: &[JournalEntry], rules: &SiteRules) -> (Site, Vec<String>) {
    let (key, mut all) = opened();
    all.extend_from_slice(entries);
    let mut site = replay(key, SiteNumber(1), &all, rules, &KEY).unwrap().site;
    let mut asked = Vec::new();
    loop {
        match site.next(WallTime(4), rules, &KEY) {
            Next::Nothing => return (site, asked),
            Next::Skip(url, reason) => {
                asked.push(format!("-{} {reason:?}", url.path_and_query()));
                site.apply(&JournalEntry::Skipped { url, reason }, rules, &KEY);
            }
            Next::Fetch(order) => {
                asked.push(order.url.path_and_query().to_owned());
                let entry =
                    if order.purpose == FetchPurpose::Robots { robots("") } else { visited(order.url.path_and_query(), 1, &[], &[]) };
                site.apply(&entry, rules, &KEY);
            }
        }
    }
}

#[test]
fn robots_comes_first_then_levels_in_the_order_of_discovery() {
    let (site, asked) = play(&[JournalEntry::Admitted { urls: found(&[("/b", 1), ("/start", 0), ("/a", 1)]) }], &rules());
    assert_eq!(asked, ["/robots.txt", "/start", "/b", "/a"]);
    assert_eq!((site.record.pages, site.record.requests, site.record.state), (3, 4, RunState::Complete));
    assert!(site.finished());
}

#[test]
fn each_request_has_the_rule_that_led_to_it() {
    let urls = vec![(page("/"), 0, 0), (page("/moved"), 0, 1), (page("/a"), 1, 0)];
    let (key, mut all) = opened();
    all.push(JournalEntry::Admitted { urls });
    let mut site = replay(key, SiteNumber(1), &all, &rules(), &KEY).unwrap().site;
    let mut asked = Vec::new();
    let mut failed = false;
    while let Next::Fetch(order) = site.next(WallTime(4), &rules(), &KEY) {
        site.sent(&order, &KEY);
        let (reason, path) = (site.reason(), order.url.path_and_query().to_owned());
        site.asking = None;
        assert_eq!((reason.run, reason.tree), (1, Some("a.ke".parse().unwrap())), "{path}");
        asked.push(format!("{path} {} {}", reason.rule.word(), reason.level));
        if path == "/" && !std::mem::replace(&mut failed, true) {
            assert!(site.page_failed(KEY.of(order.url.as_str()), FetchError::ConnectTimeout).is_some());
            continue;
        }
        let entry = if order.purpose == FetchPurpose::Robots { robots("") } else { visited(&path, reason.level, &[], &[]) };
        site.apply(&entry, &rules(), &KEY);
    }
    assert_eq!(asked, ["/robots.txt robots 0", "/ start 0", "/ second-try 0", "/moved redirect 0", "/a link 1"]);
}

#[test]
fn what_robots_forbids_is_set_aside_and_counted() {
    let entries = [JournalEntry::Admitted { urls: found(&[("/", 0), ("/private/x", 0)]) }, robots("User-agent: *\nDisallow: /private")];
    let (site, asked) = play(&entries, &rules());
    assert_eq!(asked, ["/", "-/private/x Robots"]);
    assert_eq!((site.record.refused_by_robots, site.record.pages), (1, 1));
}

#[test]
fn one_query_url_of_a_script_is_asked_whichever_is_found_first_and_the_plain_page_besides() {
    for order in [["/i.php?id=1", "/i.php?id=2"], ["/i.php?id=2", "/i.php?id=1"]] {
        let urls = found(&[(order[0], 1), ("/i.php", 1), (order[1], 1)]);
        let (site, asked) = play(&[JournalEntry::Admitted { urls }, robots("")], &rules());
        assert_eq!(asked, [order[0], "/i.php"], "the first found wins, the plain page is another");
        assert_eq!(site.record.cut_by_script, 1);
    }
    let later = [JournalEntry::Admitted { urls: found(&[("/", 0)]) }, robots(""), visited("/i.php?id=1", 1, &[("/i.php?id=9", 2)], &[])];
    assert_eq!(play(&later, &rules()).1, ["/"], "a fetched script has had its turn");
}

#[test]
fn a_site_of_scripts_and_redirects_without_end_is_asked_for_so_many_and_does_not_fill_the_memory() {
    let (journal, mut entries) = opened();
    entries.extend([robots(""), JournalEntry::Admitted { urls: found(&[("/waits?q=1", 1)]) }]);
    let mut site = replay(journal, SiteNumber(1), &entries, &rules(), &KEY).unwrap().site;
    for number in 0..MAX_SCRIPTS.max(MAX_REDIRECTS) + 5 {
        let mut entry = visited(&format!("/{number}?q=1"), 1, &[("/to", 1)], &[]);
        if let JournalEntry::Visited { outcome, .. } = &mut entry {
            *outcome = VisitOutcome::Redirect(302);
        }
        site.apply(&entry, &rules(), &KEY);
    }
    assert_eq!((site.scripts.len(), site.redirects.len()), (MAX_SCRIPTS, MAX_REDIRECTS));
    let cut = site.record.cut_by_script;
    site.apply(&JournalEntry::Admitted { urls: found(&[("/further?q=1", 1)]) }, &rules(), &KEY);
    assert_eq!(site.record.cut_by_script, cut + 1, "a script that was never asked for");
    assert!(matches!(site.next(WallTime(4), &rules(), &KEY), Next::Skip(url, SkipReason::Script) if url == page("/waits?q=1")));
}

#[test]
fn what_lies_beyond_the_depth_is_counted_and_a_shorter_way_opens_it_again() {
    let deep = [
        JournalEntry::Admitted { urls: found(&[("/", 0)]) },
        robots(""),
        visited("/", 0, &[("/1", 1)], &[]),
        visited("/1", 1, &[("/2", 2)], &[]),
        visited("/2", 2, &[("/3", 3)], &[]),
    ];
    let (site, asked) = play(&deep, &rules());
    assert_eq!((asked.len(), site.record.cut_by_depth, site.record.state), (0, 1, RunState::CutByDepth));
    let mut raised = deep.to_vec();
    raised.push(JournalEntry::Raised { urls: found(&[("/3", 2)]), visited: vec![(KEY.of(page("/2").as_str()), 1)] });
    let (site, asked) = play(&raised, &rules());
    assert_eq!((asked, site.record.cut_by_depth, site.record.state), (vec!["/3".to_owned()], 0, RunState::Complete));
}

#[test]
fn a_spent_budget_pauses_and_a_new_slot_goes_on() {
    let rules = SiteRules { pages_per_run: 2, ..rules() };
    let entries = [JournalEntry::Admitted { urls: found(&[("/", 0), ("/1", 1), ("/2", 1)]) }, robots("")];
    let (mut site, asked) = play(&entries, &rules);
    assert_eq!((asked.len(), site.record.state, site.finished()), (2, RunState::PausedByBudget, false));
    assert!(!site.may_resume(WallTime(500), 1_000) && site.may_resume(WallTime(1_001), 1_000));
    site.apply(&JournalEntry::Resumed { at: WallTime(1_001) }, &rules, &KEY);
    assert!(matches!(site.next(WallTime(1_002), &rules, &KEY), Next::Fetch(order) if order.url == page("/2")));
}

#[test]
fn a_journal_read_back_knows_what_was_met_and_what_may_not_have_arrived() {
    let (key, mut entries) = opened();
    entries.push(JournalEntry::Admitted { urls: found(&[("/", 0)]) });
    entries.push(visited("/", 0, &[("/1", 1)], &["http://b.ke/x"]));
    entries.push(visited("/1", 1, &[("/2", 2), ("/2b", 2)], &["http://c.ke/y"]));
    entries.push(visited("/2", 2, &[("/3", 3)], &[]));
    let replayed = replay(key.clone(), SiteNumber(5), &entries, &rules(), &KEY).unwrap();
    let states: Vec<_> = replayed.seen.iter().map(|(page, level, state)| (*page, *level, *state)).collect();
    for (path, level, state) in [
        ("/", 0, PageState::Visited),
        ("/1", 1, PageState::Visited),
        ("/2", 2, PageState::Visited),
        ("/2b", 2, PageState::Waiting),
        ("/3", 3, PageState::Cut),
    ] {
        assert!(states.contains(&(KEY.of(page(path).as_str()), level, state)), "{path}");
    }
    assert_eq!(replayed.cut, [(KEY.of(page("/3").as_str()), page("/3").to_string())]);
    assert_eq!(replayed.outgoing.iter().map(|(row, _)| *row).collect::<Vec<_>>(), [2, 3]);
    entries.push(JournalEntry::Forwarded { before: 3 });
    let replayed = replay(key.clone(), SiteNumber(5), &entries, &rules(), &KEY).unwrap();
    assert_eq!(replayed.outgoing.iter().map(|(row, _)| *row).collect::<Vec<_>>(), [3], "the first has arrived");
    assert_eq!(replayed.site.next_sequence(), entries.len() as u64);
    assert!(replay(key, SiteNumber(5), &entries[1..], &rules(), &KEY).is_none(), "without an opening there is nothing to stand on");
}

/// What came when robots.txt was asked for.
fn robots_answer(answer: Result<(u16, &str), FetchError>, at: u64) -> JournalEntry {
    let answer = answer.map(|(status, body)| (status, body.as_bytes().to_vec()));
    JournalEntry::Robots { origin: page("/").origin(), at: WallTime(at), answer, took: 5 }
}

#[test]
fn robots_missing_allows_and_robots_not_to_be_had_forbids() {
    let admitted = || JournalEntry::Admitted { urls: found(&[("/", 0)]) };
    for status in [400, 401, 403, 404, 410, 451] {
        let (site, asked) = play(&[admitted(), robots_answer(Ok((status, "User-agent: *\nDisallow: /")), 2)], &rules());
        assert_eq!((asked, site.record.refused_by_robots), (vec!["/".to_owned()], 0), "{status}");
    }
    let stays_out = [Ok((429, "")), Ok((500, "")), Ok((503, "")), Err(FetchError::Unreachable), Err(FetchError::BadRedirect)];
    for answer in stays_out {
        let (site, asked) = play(&[admitted(), robots_answer(answer, 2)], &rules());
        assert_eq!((asked, site.record.refused_by_robots), (vec!["-/ RobotsUnavailable".to_owned()], 1), "{answer:?}");
    }
    let (site, _) = play(&[admitted(), robots_answer(Err(FetchError::BadRedirect), 2)], &rules());
    assert_eq!(site.record.status, ServerStatus::RobotsUnavailable, "it answered, so it is not down");
}

#[test]
fn a_guess_that_is_asked_by_another_scheme_counts_no_more() {
    let start = page("/");
    let rows = [JournalEntry::Admitted { urls: found(&[("/", 0)]) }, robots_answer(Err(FetchError::TlsFailed), 2)];
    let (mut site, _) = play(&rows, &rules());
    let counts = |site: &Site| [site.record.known, site.record.refused_by_robots, site.record.refused_by_robots_unavailable];
    assert!(counts(&site) == [1, 1, 1] && site.is_unreachable_start(&start, &KEY));
    assert!(!site.is_unreachable_start(&page("/other"), &KEY));
    // Twice changes no more than once.
    for _ in 0..2 {
        site.apply(&JournalEntry::Skipped { url: start.clone(), reason: SkipReason::OtherScheme }, &rules(), &KEY);
        assert!(counts(&site) == [0, 0, 0] && !site.is_unreachable_start(&start, &KEY), "{:?}", site.record);
    }
    assert_eq!((site.record.failed, site.record.requests), (1, 1), "what was asked was asked");
}

#[test]
fn robots_is_asked_for_again_after_a_day_where_it_belongs() {
    let (key, mut entries) = opened();
    entries.extend([JournalEntry::Admitted { urls: found(&[("/", 0)]) }, robots_answer(Ok((200, "")), 1_000)]);
    let mut site = replay(key, SiteNumber(1), &entries, &rules(), &KEY).unwrap().site;
    let asked = |site: &Site, at: u64| match site.next(WallTime(at), &rules(), &KEY) {
        Next::Fetch(order) => order.url.to_string(),
        other => format!("{other:?}"),
    };
    let day = 24 * 3_600_000;
    assert_eq!(asked(&site, 1_000 + day), "http://a.ke/");
    assert_eq!(asked(&site, 1_001 + day), "http://a.ke/robots.txt");
    let elsewhere = PageUrl::parse("http://www.b.ke/robots.txt").unwrap();
    assert!(site.robots_moved(&page("/").origin(), &elsewhere));
    assert_eq!(asked(&site, 1_001 + day), "http://www.b.ke/robots.txt");
    site.apply(&robots_answer(Ok((200, "")), 1_001 + day), &rules(), &KEY);
    assert_eq!(asked(&site, 1_002 + 2 * day), "http://a.ke/robots.txt", "not at the place of yesterday");
}

#[test]
fn robots_may_move_five_times() {
    let (key, entries) = opened();
    let mut site = replay(key, SiteNumber(1), &entries, &rules(), &KEY).unwrap().site;
    let origin = page("/").origin();
    let hops: Vec<bool> =
        (0..6).map(|n| site.robots_moved(&origin, &PageUrl::parse(&format!("http://h{n}.ke/robots.txt")).unwrap())).collect();
    assert_eq!(hops, [true, true, true, true, true, false]);
}

#[test]
fn a_crawl_delay_in_robots_is_on_the_record_and_too_long_a_one_keeps_us_out_and_says_so() {
    let admitted = || JournalEntry::Admitted { urls: found(&[("/", 0)]) };
    let (site, asked) = play(&[admitted(), robots("User-agent: *\nCrawl-delay: 300")], &rules());
    assert_eq!((asked, site.record.crawl_delay_ms), (vec!["/".to_owned()], Some(300_000)));
    assert_eq!(site.crawl_delay(&page("/").origin()), Some(300_000));
    let (site, asked) = play(&[admitted(), robots("User-agent: *\nCrawl-delay: 300.1")], &rules());
    assert_eq!(asked, ["-/ CrawlDelay"]);
    let record = &site.record;
    assert_eq!((record.crawl_delay_ms, record.refused_by_crawl_delay, record.refused_by_robots), (Some(300_100), 1, 1));
    assert_eq!(record.status, ServerStatus::Robots);
    let words = site.robots_says(&page("/")).unwrap();
    assert_eq!(words, "demands a pause of 5 min 0 s between requests, more than the limit of 5 min 0 s, so nothing is requested");
}

#[test]
fn what_pages_ask_of_robots_is_on_the_record() {
    let restricted = |path: &str, no_index, no_follow| {
        let mut entry = visited(path, 0, &[], &[]);
        if let JournalEntry::Visited { outcome, .. } = &mut entry {
            *outcome = VisitOutcome::RestrictedPage { status: 200, no_index, no_follow };
        }
        entry
    };
    let entries = [
        JournalEntry::Admitted { urls: found(&[("/", 0), ("/1", 0), ("/2", 0)]) },
        robots(""),
        restricted("/", true, false),
        restricted("/1", true, true),
        visited("/2", 0, &[], &[]),
    ];
    let (site, _) = play(&entries, &rules());
    let record = &site.record;
    assert_eq!((record.pages, record.no_index, record.no_follow, record.by_status[&200]), (3, 2, 1, 3));
    assert_eq!(record.status, ServerStatus::Up);
}

#[test]
fn refusals_for_being_asked_too_much_double_the_rest_of_a_site() {
    let (key, entries) = opened();
    let mut site = replay(key, SiteNumber(1), &entries, &rules(), &KEY).unwrap().site;
    let answer = |status| {
        let mut entry = visited("/x", 0, &[], &[]);
        if let JournalEntry::Visited { outcome, .. } = &mut entry {
            *outcome = status;
        }
        entry
    };
    let mut rests = vec![site.back_off()];
    for _ in 0..9 {
        site.apply(&answer(VisitOutcome::Status(if rests.len() % 2 == 0 { 429 } else { 503 })), &rules(), &KEY);
        rests.push(site.back_off());
    }
    let seconds: Vec<_> = rests.iter().map(|rest| rest / 1_000).collect();
    assert_eq!(seconds, [30, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600, 3_600]);
    site.apply(&answer(VisitOutcome::Failed(FetchError::HeadTimeout)), &rules(), &KEY);
    assert_eq!(site.back_off(), 3_600_000, "no answer is no better");
    site.apply(&answer(VisitOutcome::Status(404)), &rules(), &KEY);
    assert_eq!(site.back_off(), 30_000);
}

#[test]
fn however_many_pages_fail_once_the_next_one_may_be_asked_for_once_more_too() {
    let (key, all) = opened();
    let mut site = replay(key, SiteNumber(1), &all, &rules(), &KEY).unwrap().site;
    for number in 0..3 * MAX_TRIED {
        let path = format!("/{number}");
        let print = KEY.of(page(&path).as_str());
        assert!(site.page_failed(print, FetchError::HeadTimeout).is_some(), "page {number}");
        match number % 3 {
            0 => assert_eq!(site.page_failed(print, FetchError::HeadTimeout), None, "once"),
            1 => site.apply(&JournalEntry::Skipped { url: page(&path), reason: SkipReason::Denied }, &rules(), &KEY),
            _ => {}
        }
        if number % 3 != 1 {
            site.apply(&visited(&path, 0, &[], &[]), &rules(), &KEY);
        }
    }
}

fn kept(path: &str, change: Option<Change>, size: u64, named: &[&str]) -> JournalEntry {
    let named: Vec<_> = named.iter().map(|url| PageUrl::parse(url).unwrap()).collect();
    let elsewhere = named.iter().map(|url| KEY.of(url.as_str())).collect();
    let (page, validators) = (KEY.of(page(path).as_str()), Validators { etag: Some("\"7\"".to_owned()), last_modified: None });
    JournalEntry::Kept { page, level: 1, validators, content: 9, size, change, elsewhere, named }
}

#[test]
fn what_changed_since_the_run_before_is_on_the_record_when_nothing_waits() {
    let entries = [
        JournalEntry::Admitted { urls: found(&[("/", 0), ("/gone", 0)]) },
        JournalEntry::Follows { run: 1, pages: 5 },
        robots(""),
        visited("/", 0, &[("/1", 1), ("/2", 1), ("/3", 1)], &[]),
        kept("/", Some(Change::NotModified), 700, &[]),
        visited("/1", 1, &[], &[]),
        kept("/1", Some(Change::Changed), 100, &["http://b.ke/", "http://b.ke/x", "http://w.a.ke/"]),
        visited("/2", 1, &[], &[]),
        kept("/2", Some(Change::New), 100, &[]),
    ];
    let (first, mut all) = opened();
    let key = JournalKey { run: 2, ..first.clone() };
    all.extend(entries);
    let unfinished = replay(key.clone(), SiteNumber(1), &all, &rules(), &KEY).unwrap().site.record;
    assert_eq!((unfinished.waiting, unfinished.changes.unwrap().gone), (2, 0), "what waits may be there still");
    assert!(replay(first, SiteNumber(1), &all, &rules(), &KEY).unwrap().site.record.changes.is_none(), "nothing is compared with itself");
    let mut last = visited("/gone", 0, &[], &[]);
    if let JournalEntry::Visited { outcome, .. } = &mut last {
        *outcome = VisitOutcome::Status(410);
    }
    all.extend([last, visited("/3", 1, &[], &[]), kept("/3", Some(Change::Unchanged), 100, &[])]);
    let record = replay(key, SiteNumber(1), &all, &rules(), &KEY).unwrap().site.record;
    let changes = record.changes.unwrap();
    assert_eq!((changes.new, changes.changed, changes.unchanged, changes.not_modified, changes.gone), (1, 1, 2, 1, 2));
    assert_eq!((changes.bytes_saved, record.external_hosts), (700, 2), "b.ke and far.example; w.a.ke belongs to the tree");
    assert_eq!(changes.sentence(), "Since run 1: 1 new page, 1 changed, 2 unchanged, 2 gone.");
    assert_eq!(record.completeness(), "Of 5 URLs known, 5 fetched (4 pages).");
    let levels: Vec<_> = record.levels.iter().map(|level| (level.requests, level.pages, level.bytes, level.external_hosts)).collect();
    assert_eq!(levels, [(3, 1, 200, 1), (3, 3, 1_000, 1)], "robots.txt counts at level 0");
    assert_eq!((record.page_bytes, record.bytes), (1_100, 500), "what came with 410 is no page");
}

#[test]
fn bodies_that_are_no_pages_are_moved_and_no_size_of_pages() {
    let (key, mut all) = opened();
    all.push(JournalEntry::Admitted { urls: found(&[("/", 0), ("/a", 0), ("/b", 0), ("/c", 0)]) });
    let pdf = VisitOutcome::NotHtmlAs { status: 200, content_type: "application/pdf".to_owned() };
    let outcomes = [VisitOutcome::Status(500), VisitOutcome::Status(404), pdf, VisitOutcome::Redirect(301)];
    let mut site = replay(key, SiteNumber(1), &all, &rules(), &KEY).unwrap().site;
    for (path, answer) in ["/", "/a", "/b", "/c"].into_iter().zip(outcomes) {
        let mut entry = visited(path, 0, &[], &[]);
        if let JournalEntry::Visited { outcome, .. } = &mut entry {
            *outcome = answer;
        }
        site.apply(&entry, &rules(), &KEY);
    }
    assert_eq!((site.record.pages, site.record.bytes, site.record.page_bytes), (0, 400, 0));
}

#[test]
fn the_software_of_the_run_before_holds_until_a_page_is_downloaded() {
    let (first, all) = opened();
    let visit = |path: &str, status: u16, named: Option<&str>| {
        let mut entry = visited(path, 0, &[], &[]);
        if let JournalEntry::Visited { outcome, software, .. } = &mut entry {
            (*outcome, *software) = (VisitOutcome::Page(status), named.map(str::to_owned));
        }
        entry
    };
    let mut last = replay(first.clone(), SiteNumber(1), &all, &rules(), &KEY).unwrap().site;
    assert!(last.is_new_software("LiteSpeed"));
    last.apply(&JournalEntry::Admitted { urls: found(&[("/", 0)]) }, &rules(), &KEY);
    last.apply(&visit("/", 200, Some("LiteSpeed")), &rules(), &KEY);
    assert!(!last.is_new_software("LiteSpeed"));
    let rows = [all[0].clone(), last.whole_run().unwrap(), JournalEntry::Admitted { urls: found(&[("/", 0), ("/1", 0)]) }];
    let second = || replay(JournalKey { run: 2, ..first.clone() }, SiteNumber(2), &rows, &rules(), &KEY).unwrap().site;
    let software = |site: &Site| site.record.software.clone();
    let mut site = second();
    site.apply(&visit("/", 304, None), &rules(), &KEY);
    site.apply(&visit("/1", 304, None), &rules(), &KEY);
    assert_eq!((software(&site).as_deref(), site.runs().0[1].software.as_deref()), (Some("LiteSpeed"), Some("LiteSpeed")));
    assert!(
        site.is_new_software("LiteSpeed"),
        "that it is the same is written down: else a page without it could not be told from one with it"
    );
    site.apply(&visit("/", 304, Some("LiteSpeed")), &rules(), &KEY);
    site.apply(&visit("/1", 200, None), &rules(), &KEY);
    assert_eq!((software(&site).as_deref(), site.is_new_software("LiteSpeed")), (Some("LiteSpeed"), false), "it was named in this run");
    let mut site = second();
    site.apply(&visit("/", 200, None), &rules(), &KEY);
    assert_eq!(software(&site), None, "it does not name itself any more");
}

#[test]
fn a_journal_read_for_the_next_run_gives_pages_their_versions_and_links_their_names() {
    let (key, mut entries) = opened();
    entries.push(JournalEntry::Admitted { urls: found(&[("/", 0)]) });
    entries.push(visited("/", 0, &[("/1", 1), ("/9", 7)], &["http://b.ke/"]));
    entries.push(kept("/", Some(Change::New), 700, &["http://b.ke/"]));
    entries.push(JournalEntry::Beyond { page: KEY.of(page("/").as_str()), urls: vec![7, 9] });
    entries.push(visited("/1", 1, &[], &[]));
    let mut reader = previous_run::PreviousRunReader::new(KEY);
    let mut rows: Vec<_> = entries.into_iter().flat_map(|entry| reader.read(entry)).collect();
    rows.extend(reader.end());
    let text = |url: &str| PreviousRow::Text(KEY.of(url), url.to_owned());
    for url in ["http://a.ke/", "http://a.ke/1", "http://a.ke/9", "http://b.ke/"] {
        assert!(rows.contains(&text(url)), "{url}");
    }
    let pages: Vec<_> =
        rows.iter().filter_map(|row| if let PreviousRow::Page(of, page) = row { Some((*of, page)) } else { None }).collect();
    assert_eq!(pages.iter().map(|(of, _)| *of).collect::<Vec<_>>(), ["http://a.ke/", "http://a.ke/1"].map(|url| KEY.of(url)));
    let home = pages[0].1;
    assert_eq!((home.content, home.size, home.children.len(), home.elsewhere.len(), home.beyond_scope.len()), (9, 700, 2, 1, 1));
    assert_eq!((&home.beyond, &pages[1].1.beyond), (&vec![7, 9], &vec![]));
    assert_eq!((home.validators.etag.as_deref(), pages[1].1.validators.is_empty()), (Some("\"7\""), true));
    assert_eq!((reader.pages(), key.run), (2, 1));
}

#[test]
fn external_urls_hosts_and_domains_are_counted_once_each_in_scope_or_not() {
    let beyond = |path: &str, urls: &[&str]| JournalEntry::Beyond {
        page: KEY.of(page(path).as_str()),
        urls: urls.iter().map(|url| KEY.of(url).half()).collect(),
    };
    let (key, mut entries) = opened();
    entries.extend([
        JournalEntry::Admitted { urls: found(&[("/", 0)]) },
        robots(""),
        visited("/", 0, &[("/1", 1)], &["http://b.ke/"]),
        kept(
            "/",
            None,
            1,
            &["http://b.ke/", "http://b.ke/x", "http://news.b.ke/", "http://shop.b.co.ke/", "http://w.a.ke/", "http://9.1.1.1/"],
        ),
        beyond("/", &["http://far.example/", "http://far.example/2"]),
        visited("/1", 1, &[], &[]),
        kept("/1", None, 1, &["http://c.ke/"]),
        beyond("/1", &["http://far.example/2", "http://far.example/3"]),
    ]);
    let record = replay(key.clone(), SiteNumber(1), &entries, &rules(), &KEY).unwrap().site.record;
    // far.example, b.ke, news.b.ke, shop.b.co.ke, 9.1.1.1 and c.ke; the address belongs to no domain.
    assert_eq!((record.external_urls, record.external_hosts, record.external_domains), (9, 6, 4));
    // With many, every member that reads the journal comes to the same estimate, and it never falls.
    let mut site = replay(key.clone(), SiteNumber(1), &entries, &rules(), &KEY).unwrap().site;
    for number in 0..2_000 {
        let path = format!("/far/{number}");
        let (far, before) = (format!("http://h{number}.example/{number}"), site.record.clone());
        let mut visit = visited(&path, 1, &[], &[]);
        if let JournalEntry::Visited { beyond_scope, .. } = &mut visit {
            *beyond_scope = vec![format!("h{}.example", number % 700).parse().unwrap()];
        }
        for entry in [visit, beyond(&path, &[&far])] {
            site.apply(&entry, &rules(), &KEY);
            entries.push(entry);
        }
        let now = &site.record;
        assert!(now.external_urls >= before.external_urls && now.external_domains >= before.external_domains);
        assert!(now.external_domains <= now.external_hosts, "no more domains than hosts");
    }
    let record = site.record;
    assert_eq!(record.external_hosts, 706);
    assert!((1_808..=2_210).contains(&record.external_urls) && (633..=706).contains(&record.external_domains), "{record:?}");
    assert_eq!(replay(key, SiteNumber(2), &entries, &rules(), &KEY).unwrap().site.record, record);
}

#[test]
fn failures_are_counted_by_kind_and_a_challenge_is_no_failure_of_the_server() {
    let play_with = |outcomes: &[VisitOutcome]| {
        let visits = outcomes.iter().enumerate().map(|(n, outcome)| {
            let mut entry = visited(&format!("/{n}"), 0, &[], &[]);
            if let JournalEntry::Visited { outcome: old, .. } = &mut entry {
                *old = outcome.clone();
            }
            entry
        });
        let (key, mut entries) = opened();
        entries.push(robots(""));
        let mut site = replay(key, SiteNumber(1), &entries, &rules(), &KEY).unwrap().site;
        visits.for_each(|visit| site.apply(&visit, &rules(), &KEY));
        site
    };
    use FetchError::{CertificateExpired, Challenged, HeadTimeout};
    use VisitOutcome::{Failed, Page, Status};
    for (outcomes, status, main) in [
        (vec![Failed(HeadTimeout), Failed(CertificateExpired), Failed(CertificateExpired)], ServerStatus::Down, Some(CertificateExpired)),
        (vec![Failed(Challenged)], ServerStatus::Refused, Some(Challenged)),
        (vec![Status(403), Failed(Challenged), Status(429)], ServerStatus::Refused, Some(Challenged)),
        (vec![Page(200), Failed(Challenged)], ServerStatus::Up, Some(Challenged)),
        (vec![Status(404)], ServerStatus::NoPages, None),
        (vec![Status(403)], ServerStatus::Refused, None),
    ] {
        let site = play_with(&outcomes);
        assert_eq!((site.record.status, site.record.main_failure()), (status, main), "{outcomes:?}");
        assert_eq!(site.record.by_failure.values().sum::<u64>(), site.record.failed, "{outcomes:?}");
    }
    assert_eq!(play_with(&[Failed(Challenged)]).back_off(), 60_000, "a guard is given time like a server that says 429");
    let (site, _) = play(&[JournalEntry::Admitted { urls: found(&[("/", 0)]) }, robots_answer(Err(Challenged), 2)], &rules());
    assert_eq!(site.record.status, ServerStatus::Refused, "also where the guard stands before robots.txt");
}

#[test]
fn a_sample_of_failing_pages_is_read_off_the_journal() {
    let evaluation = Evaluation { failures: [(Rule::ImageName, 3), (Rule::LinkName, 1)].into(), ..Evaluation::default() };
    let evaluated = |path: &str, lines: &[u32]| {
        let page = KEY.of(page(path).as_str());
        JournalEntry::EvaluatedAt { page, evaluation: evaluation.clone(), took_us: 1, rules: 2, lines: lines.to_vec() }
    };
    let mut rows = vec![JournalEntry::Admitted { urls: vec![(page("/"), 0, 0)] }];
    for number in 0..30 {
        let path = format!("/{number}");
        rows.extend([visited(&path, 1, &[], &[]), evaluated(&path, &[number + 5, number + 9])]);
    }
    // What is said of another page than the one before is not entered, and where it fails is not always known.
    rows.extend([visited("/31", 1, &[], &[]), evaluated("/30", &[1, 1]), visited("/32", 1, &[], &[]), evaluated("/32", &[])]);
    let site = play(&rows, &rules()).0;
    assert_eq!(site.record.evaluation.as_ref().unwrap().failing, 32);
    let sample = site.record.failing_pages.by_rule();
    for (rule, first) in [(Rule::ImageName, 5), (Rule::LinkName, 9)] {
        let pages = &sample[&rule];
        assert_eq!(pages.len(), MAX_FAILING_PAGES);
        assert!(pages.iter().all(|page| page.url.path_and_query()[1..].parse() == Ok(page.line - first)), "{pages:?}");
    }
    let Some(JournalEntry::WholeRun { record }) = site.whole_run() else { panic!() };
    assert_eq!(ServerRecord::from_json(&record).unwrap().failing_pages, site.record.failing_pages);
}

#[test]
fn a_sample_that_is_too_long_for_a_row_is_left_out_of_it() {
    let failures = Rule::ALL.into_iter().map(|rule| (rule, 1)).collect();
    let evaluation = Evaluation { failures, ..Evaluation::default() };
    let mut rows = vec![JournalEntry::Admitted { urls: vec![(page("/"), 0, 0)] }];
    for number in 0..MAX_FAILING_PAGES {
        let path = format!("/{number}{}", "x".repeat(500));
        let (evaluation, lines) = (evaluation.clone(), vec![1; Rule::ALL.len()]);
        let at = JournalEntry::EvaluatedAt { page: KEY.of(page(&path).as_str()), evaluation, took_us: 1, rules: 2, lines };
        rows.extend([visited(&path, 1, &[], &[]), at]);
    }
    let site = play(&rows, &rules()).0;
    assert_eq!(site.record.failing_pages.by_rule().len(), Rule::ALL.len());
    let Some(JournalEntry::WholeRun { record }) = site.whole_run() else { panic!("the rest is told") };
    assert_eq!(ServerRecord::from_json(&record).unwrap().failing_pages, FailingPages::default());
}
