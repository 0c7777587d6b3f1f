//! Tests that the crawler follows robots.txt where it may, backs off when it is told to, and says why it stays out.

use super::*;
use nearcrawl_model::{
    record::{RunState, ServerStatus},
    view::VisitState,
};

impl Played {
    /// The web answers one request with this.
    pub(crate) fn answers(&mut self, outcome: FetchOutcome, retry_after: Option<Millis>) -> FetchOrder {
        let order = self.fetches.pop().expect("a request is under way");
        let report = FetchReport {
            url: order.url.clone(),
            outcome,
            took: 20,
            connect_us: Some(7_000),
            first_byte_us: Some(9_000),
            wire_bytes: 0,
            software: None,
            retry_after,
            facts: Vec::new(),
        };
        self.handle(Event::Fetched { address: order.address, report: Box::new(report) });
        order
    }

    /// Time passes until a request is under way; says how much, and whom it goes to.
    pub(crate) fn next_request(&mut self, at_most: Millis) -> Option<(Millis, String, String)> {
        for waited in (0..=at_most).step_by(100) {
            if let Some(order) = self.fetches.last() {
                return Some((waited, order.url.to_string(), order.address.to_string()));
            }
            self.pass(100);
        }
        None
    }

    pub(crate) fn asks(&mut self, at_most: Millis) -> Option<(String, String)> {
        self.next_request(at_most).map(|(_, url, address)| (url, address))
    }

    /// Whatever else is asked for meanwhile is not there (a subnet without an owner gets an owner by naming a host in it, which is
    /// then crawled); says whom the request for this URL goes to, and answers it.
    fn others_until(&mut self, wanted: &str, outcome: Option<FetchOutcome>) -> Option<String> {
        for _ in 0..20 {
            let (url, address) = self.asks(60_000)?;
            if url == wanted {
                self.answers(outcome.unwrap_or(FetchOutcome::Status(404)), None);
                return Some(address);
            }
            self.answers(FetchOutcome::Status(404), None);
        }
        panic!("it asks on and on");
    }
}

fn moved(to: &str) -> FetchOutcome {
    FetchOutcome::Redirect { status: 301, to: Link { url: url(to), fingerprint: FINGERPRINTS.of(to) } }
}

fn rules_of(body: &'static str) -> FetchOutcome {
    FetchOutcome::Robots { status: 200, body: body.as_bytes().into() }
}

fn asked(url: &str, address: &str) -> Option<(String, String)> {
    Some((url.to_owned(), address.to_owned()))
}

#[test]
fn a_robots_txt_at_another_host_of_ours_holds_for_the_first() {
    let mut played = Played::alone();
    played.seed("http://a.ke/secret/x");
    // The same subnet, then one without an owner, and last the same address.
    played.names.insert(host("www.a.ke"), "9.0.1.1".parse().unwrap());
    for (from, address, to) in [
        ("http://a.ke/robots.txt", "9.0.1.1", moved("http://b.ke/robots.txt")),
        ("http://b.ke/robots.txt", "9.0.1.2", moved("http://c.ke/r.txt")),
        ("http://c.ke/r.txt", "9.0.2.1", moved("http://www.a.ke/robots.txt")),
        ("http://www.a.ke/robots.txt", "9.0.1.1", rules_of("User-agent: *\nDisallow: /secret")),
    ] {
        assert_eq!(played.others_until(from, Some(to)), Some(address.to_owned()), "{from}");
    }
    assert_eq!(played.others_until("http://a.ke/secret/x", None), None, "it is forbidden");
    assert!(played.crawler.view().all_done(), "{}", played.sentence());
    let record = played.crawler.view().servers(None, 10).servers.into_iter().find(|record| record.host == host("a.ke")).unwrap();
    assert_eq!((record.refused_by_robots, record.by_status.get(&404)), (1, Some(&1)));
}

#[test]
fn a_robots_txt_that_leads_where_we_may_not_ask_keeps_us_out() {
    // Out of scope, denied, without an address, and another member's.
    for to in ["http://far.example/robots.txt", "http://bad.ke/robots.txt", "http://nowhere.ke/robots.txt", "http://c.ke/robots.txt"] {
        let mut played = Played::alone();
        played.claimed_by(3, "9.0.2.0/24", false);
        played.seed("http://a.ke/");
        assert_eq!(played.asks(120_000), asked("http://a.ke/robots.txt", "9.0.1.1"));
        played.answers(moved(to), None);
        assert_eq!(played.asks(5_000), None, "{to}");
        let record = &played.crawler.view().servers(None, 1).servers[0];
        assert_eq!((record.refused_by_robots, record.pages, record.state), (1, 0, RunState::Complete), "{to}");
        assert_eq!(record.status, ServerStatus::RobotsUnavailable, "{to}");
        assert!(played.why("http://a.ke/").robots_text.unwrap().starts_with("could not be fetched, so nothing is requested"), "{to}");
        // What another member may crawl is named to it, as a link would be.
        assert_eq!(played.crawler.view().has_work(), to.contains("c.ke"), "{to}: {}", played.sentence());
    }
}

#[test]
fn a_robots_txt_that_moves_on_and_on_is_none() {
    let mut played = Played::alone();
    played.seed("http://a.ke/");
    for hop in 0..=5 {
        let (asked, _) = played.asks(120_000).expect("it is asked for");
        assert!(asked.ends_with("/robots.txt"), "{asked}");
        played.answers(moved(if hop % 2 == 0 { "http://b.ke/robots.txt" } else { "http://a.ke/robots.txt" }), None);
    }
    assert_eq!(played.asks(120_000), asked("http://a.ke/", "9.0.1.1"));
}

#[test]
fn robots_txt_that_is_refused_is_asked_for_three_times_and_later_each_time_it_says_so() {
    let mut played = Played::alone();
    played.seed("http://a.ke/");
    let unavailable = |status| FetchOutcome::Robots { status, body: Vec::new().into() };
    let mut waits = Vec::new();
    for (status, retry_after) in [(503, None), (429, Some(90_000)), (500, None)] {
        let (waited, asked, _) = played.next_request(120_000).expect("it is asked for");
        assert_eq!(asked, "http://a.ke/robots.txt");
        waits.push(waited);
        played.answers(unavailable(status), retry_after);
    }
    assert!((30_000..=30_200).contains(&waits[1]) && (90_000..=90_200).contains(&waits[2]), "{waits:?}");
    assert_eq!(played.asks(120_000), None, "it stays out");
    assert_eq!(played.crawler.view().servers(None, 1).servers[0].refused_by_robots, 1);
}

#[test]
fn pages_refused_for_being_asked_too_much_are_backed_off_from_after_robots_allowed_them() {
    let mut played = Played::alone();
    for page in ["http://a.ke/1", "http://a.ke/2", "http://a.ke/3", "http://a.ke/4", "http://a.ke/5"] {
        played.seed(page);
    }
    played.asks(120_000);
    played.answers(rules_of("User-agent: *\nCrawl-delay: 2"), None);
    let mut waits = Vec::new();
    for (status, retry_after) in [(200, None), (429, None), (503, None), (503, Some(500_000)), (404, None), (404, None)] {
        let (waited, ..) = played.next_request(600_000).expect("a page is asked for");
        waits.push(waited / 1_000);
        played.answers(FetchOutcome::Status(status), retry_after);
    }
    assert_eq!(waits, [2, 2, 30, 60, 500, 2], "Crawl-delay, twice as long after each refusal, as long as the server says, Crawl-delay");
}

#[test]
fn links_of_a_nofollow_page_are_not_followed_and_robots_wishes_are_on_the_record() {
    let mut played = Played::alone();
    played.seed("http://a.ke/");
    played.asks(120_000);
    played.answers(FetchOutcome::Status(404), None);
    played.asks(120_000);
    let links = [Link { url: url("http://a.ke/1"), fingerprint: FINGERPRINTS.of("http://a.ke/1") }].into_iter().collect();
    let page = PageFacts { links, no_index: true, no_follow: true, ..PageFacts::default() };
    played.answers(FetchOutcome::Page { status: 200, page }, None);
    assert_eq!(played.asks(120_000), None);
    let record = &played.crawler.view().servers(None, 1).servers[0];
    assert_eq!((record.pages, record.known, record.no_index, record.no_follow), (1, 1, 1, 1));
}

#[test]
fn a_server_that_is_down_says_why_and_one_that_refuses_is_not_down() {
    use nearcrawl_model::fetch::FetchError::{Challenged, ConnectionRefused};
    for (failure, tries, status, words) in [
        (ConnectionRefused, 2, ServerStatus::Down, "0 pages fetched, because it refused the connection"),
        (Challenged, 1, ServerStatus::Refused, "0 pages fetched, because it refuses crawlers"),
    ] {
        let mut played = Played::alone();
        played.seed("http://a.ke/");
        played.asks(120_000).expect("robots.txt is asked for");
        played.answers(rules_of(""), None);
        for _ in 0..tries {
            played.asks(120_000).expect("the page is asked for");
            played.answers(FetchOutcome::Failed(failure), None);
        }
        played.pass(5_000);
        assert_eq!(played.crawler.view().servers(None, 1).servers[0].status, status);
        assert_eq!(played.crawler.view().counters().failures, [(failure, tries)].into());
        let said = played.why("a.ke").answer_text;
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn what_robots_txt_forbids_is_told_from_what_is_not_requested_because_it_could_not_be_had() {
    let rules = |text: &'static str| vec![rules_of(text)];
    let failing = || (0..3).map(|_| FetchOutcome::Robots { status: 503, body: Vec::new().into() }).collect::<Vec<_>>();
    let cases = [
        (rules("User-agent: *\nDisallow: /"), VisitState::RefusedByRobots, ServerStatus::Robots, "robots.txt forbids it", [1, 0, 0]),
        (failing(), VisitState::RobotsUnavailable, ServerStatus::RobotsUnavailable, "robots.txt could not be had", [1, 1, 0]),
        (
            rules("User-agent: *\nCrawl-delay: 900"),
            VisitState::RefusedByCrawlDelay,
            ServerStatus::Robots,
            "demands a longer pause between requests than is waited",
            [1, 0, 1],
        ),
    ];
    for (answers, state, status, words, counts) in cases {
        let mut played = Played::alone();
        played.seed("http://a.ke/");
        for answer in answers {
            played.asks(300_000).expect("robots.txt is asked for");
            played.answers(answer, None);
        }
        assert_eq!(played.asks(300_000), None, "{state:?}: nothing else is asked for");
        let record = &played.crawler.view().servers(None, 1).servers[0];
        assert_eq!((record.status, record.state), (status, RunState::Complete));
        assert_eq!([record.refused_by_robots, record.refused_by_robots_unavailable, record.refused_by_crawl_delay], counts, "{state:?}");
        let (page, server) = (played.why("http://a.ke/"), played.why("a.ke").answer_text);
        assert_eq!(page.state, Some(state));
        assert!(page.answer_text.contains(words), "{}", page.answer_text);
        let forbidden = server.contains("1 refused by robots.txt");
        assert_eq!(forbidden, state == VisitState::RefusedByRobots, "{server}");
        assert_eq!(server.contains("because its robots.txt keeps this crawler out"), status == ServerStatus::Robots, "{server}");
        assert!(server.contains("robots.txt"), "{server}");
    }
}
