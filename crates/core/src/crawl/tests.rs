//! Tests that each server is asked what it should be, when it may be, and that every URL is entered once.

mod coming;
mod limits;
mod robots;
mod rules;

use super::{Crawl, CrawlReads, fetch_cycle::Turn};
use crate::{
    context::Context,
    delegation::Delegation,
    event::{Command, StoreCommand, WebCommand},
    migration::Migration,
    ownership::Ownership,
    replication::Replication,
    routing::{Routing, acknowledgements::Reply},
    signal::Signal,
};
use nearcrawl_model::{
    claim::{Claim, ClaimReason, SignedClaim},
    facts::{FrontPage, RobotsSummary},
    fetch::{FetchError, FetchOrder, FetchOutcome, FetchPurpose, FetchReport, LocatedHost, PageFacts},
    ids::SeenTicket,
    journal::Arrival,
    links::Links,
    seen::{SeenAnswer, SeenBatch},
    subnet::Subnet,
    time::Moment,
    url::{Host, PageUrl},
};
use std::net::IpAddr;

const ADDRESS: &str = "9.0.1.1";

/// The crawl of an access point that is alone and owns the subnet of a.ke. Its seen set knows nothing.
struct Played {
    cx: Context,
    ownership: Ownership,
    delegation: Delegation,
    migration: Migration,
    routing: Routing,
    replication: Replication,
    crawl: Crawl,
}

fn host(text: &str) -> Host {
    text.parse().unwrap()
}

fn url(text: &str) -> PageUrl {
    PageUrl::parse(text).unwrap()
}

fn address() -> IpAddr {
    ADDRESS.parse().unwrap()
}

fn subnet() -> Subnet {
    Subnet::around(address(), 24)
}

impl Played {
    fn new() -> Played {
        let mut cx = Context::of_test(1);
        cx.settings.scope.open = false;
        let mut ownership = Ownership::new(cx.now.moment, true);
        let (reason, answers) = (ClaimReason::Awarded, Vec::new());
        let claim = Claim {
            subnet: subnet(),
            epoch: 1,
            owner: cx.me,
            rtt_us: Some(1_000),
            runner_up: None,
            probes: 1,
            reason,
            released: false,
            answers,
        };
        let holds = ownership.merge(claim.clone(), SignedClaim::sign(&claim, &cx.key));
        assert!(holds.is_some(), "no other member claims it");
        Played {
            ownership,
            delegation: Delegation::default(),
            migration: Migration::default(),
            routing: Routing::default(),
            replication: Replication::default(),
            crawl: Crawl::new(&cx.settings, 0),
            cx,
        }
    }

    /// a.ke with its start page, whose robots.txt is asked for.
    fn begun() -> Played {
        let mut played = Played::new();
        played.admit("http://a.ke/");
        let [batch] = &played.questions()[..] else { panic!("one question") };
        assert_eq!(batch.1.len(), 1);
        played.all_is_new();
        played
    }

    fn others(&mut self) -> (&mut Crawl, &mut Context, &mut Replication, CrawlReads<'_>) {
        let Played { ownership, delegation, migration, routing, .. } = self;
        (&mut self.crawl, &mut self.cx, &mut self.replication, CrawlReads { ownership, delegation, migration, routing })
    }

    fn admit(&mut self, text: &str) {
        let located = LocatedHost { host: host("a.ke"), address: address(), valid_for: 60_000 };
        let arrivals = vec![Arrival { url: url(text), place: None, run: 1 }];
        let (crawl, cx, replication, others) = self.others();
        crawl.admit(cx, replication, others, vec![(located, arrivals)], Reply::Own(Vec::new()));
    }

    /// What the seen set is asked, by ticket; other commands are forgotten.
    fn questions(&self) -> Vec<(SeenTicket, Vec<SeenBatch>)> {
        let seen = self.cx.commands.iter().filter_map(|command| match command {
            Command::Store(StoreCommand::Seen { ticket, batches }) if *ticket != SeenTicket::NO_ANSWER => Some((*ticket, batches.clone())),
            _ => None,
        });
        seen.collect()
    }

    /// The seen set answers that all it was asked about is new.
    fn all_is_new(&mut self) {
        for (ticket, batches) in self.questions() {
            let answers = batches.iter().map(|batch| vec![SeenAnswer::New; batch.questions.len()]).collect();
            self.crawl.seen(&mut self.cx, &mut self.replication, ticket, answers);
        }
        self.cx.take_commands();
    }

    /// Whose turn it is takes it; the request that comes of it, if any.
    fn turn(&mut self) -> Option<FetchOrder> {
        let (at, whose) = self.crawl.next_turn(&self.cx)?;
        let mut again = 0;
        loop {
            let (crawl, cx, replication, others) = self.others();
            if crawl.take_turn(cx, replication, others, (at, &whose), again) != Turn::Again {
                break;
            }
            again += 1;
        }
        self.cx.take_commands().into_iter().find_map(|command| match command {
            Command::Web(WebCommand::Fetch(order)) => Some(order),
            _ => None,
        })
    }

    /// The server answers what it was asked.
    fn answers(&mut self, order: &FetchOrder, outcome: FetchOutcome) {
        let mut report = FetchReport {
            url: order.url.clone(),
            outcome,
            took: 50,
            connect_us: Some(900),
            first_byte_us: Some(20_000),
            wire_bytes: 1_000,
            software: None,
            retry_after: None,
            facts: Vec::new(),
        };
        let answered = self.crawl.answer_came(&mut self.cx, address(), &mut report).expect("it was asked");
        assert_eq!((answered.subnet, answered.rtt_us), (Some(subnet()), Some(900)));
        self.crawl.read_answer(&mut self.cx, &mut self.replication, address(), answered, report, None);
    }

    /// robots.txt allows everything, and the address has rested.
    fn allowed() -> Played {
        let mut played = Played::begun();
        let order = played.turn().expect("robots.txt is asked for");
        played.answers(&order, FetchOutcome::Status(404));
        played.cx.now.moment = Moment(60_000);
        played.cx.take_commands();
        played
    }
}

fn page(links: &[&str]) -> FetchOutcome {
    let links = Links::from_iter(
        links.iter().map(|text| nearcrawl_model::links::Link { url: url(text), fingerprint: Context::of_test(1).secret.of(text) }),
    );
    FetchOutcome::Page { status: 200, page: PageFacts { links, ..PageFacts::default() } }
}

#[test]
fn robots_txt_is_asked_for_first_and_its_server_rests_after_the_answer() {
    let mut played = Played::begun();
    let order = played.turn().expect("the site has something to ask");
    assert_eq!((order.purpose, order.url.as_str()), (FetchPurpose::Robots, "http://a.ke/robots.txt"));
    played.answers(&order, FetchOutcome::Status(404));
    assert_eq!(played.turn(), None, "it rests");
    played.cx.now.moment = Moment(played.cx.settings.politeness.min_delay);
    assert_eq!(played.turn().map(|order| order.url), Some(url("http://a.ke/")));
}

#[test]
fn a_url_that_the_cache_knows_is_not_asked_about_again() {
    let mut played = Played::begun();
    played.admit("http://a.ke/");
    let asked: Vec<_> = played.questions().into_iter().flat_map(|(_, batches)| batches).map(|batch| batch.questions.len()).collect();
    assert_eq!(asked, [0]);
    assert_eq!(played.crawl.site(&host("a.ke")).map(|site| site.record.known), Some(1));
}

#[test]
fn a_member_that_hands_urls_over_waits_for_the_row_that_says_so() {
    let played = Played::begun();
    let upto = played.crawl.site(&host("a.ke")).map(|site| site.next_sequence());
    let admitted = played.cx.signals.iter().find_map(|signal| match signal {
        Signal::Admitted(acknowledgement) => Some(acknowledgement.needs.clone()),
        _ => None,
    });
    assert_eq!(
        admitted.map(|needs| needs.into_iter().map(|(key, upto)| (key.host, upto)).collect::<Vec<_>>()),
        Some(vec![(host("a.ke"), upto.unwrap())])
    );
}

#[test]
fn nothing_is_asked_in_a_subnet_that_is_not_ours_any_more() {
    let mut played = Played::allowed();
    played.ownership = Ownership::new(played.cx.now.moment, true);
    assert_eq!(played.turn(), None);
    assert_eq!(played.crawl.fetches().in_flight(), 0);
}

#[test]
fn links_are_sorted_by_where_they_lead_and_the_site_waits_for_the_seen_set() {
    let mut played = Played::allowed();
    played.cx.settings.scope.tlds = ["ke".to_owned()].into();
    let order = played.turn().expect("the start page");
    played.answers(&order, page(&["http://a.ke/x", "http://b.ke/", "http://far.example/"]));
    let [(_, batches)] = &played.questions()[..] else { panic!("one question") };
    assert_eq!(batches.iter().map(|batch| batch.questions.len()).collect::<Vec<_>>(), [1, 1], "one of the site, one of another in scope");
    assert_eq!(played.cx.counters.beyond_scope, 1);
    played.cx.now.moment = Moment(120_000);
    assert!(played.crawl.next_turn(&played.cx).is_none(), "its visit is not written down yet");
    assert!(!played.crawl.is_quiet(&subnet()));
    played.all_is_new();
    assert!(played.crawl.is_quiet(&subnet()));
    assert_eq!(played.turn().map(|order| order.url), Some(url("http://a.ke/x")));
}

#[test]
fn a_page_that_the_network_may_have_lost_is_asked_for_once_more_and_one_that_was_refused_is_not() {
    for (failure, tries) in [(FetchError::HeadTimeout, 2), (FetchError::ConnectTimeout, 2), (FetchError::BadEncoding, 1)] {
        let mut played = Played::allowed();
        for number in 1..=tries {
            let order = played.turn().unwrap_or_else(|| panic!("{failure:?}: try {number}"));
            assert_eq!((order.purpose, &order.url), (FetchPurpose::Page, &url("http://a.ke/")));
            played.answers(&order, FetchOutcome::Failed(failure));
            assert_eq!(played.turn(), None, "it rests");
            played.cx.now.moment = played.cx.now.moment.after(60_000);
        }
        // What became of it waits for the seen set; then it is written down.
        played.all_is_new();
        assert_eq!(played.turn(), None, "{failure:?}");
        let record = &played.crawl.site(&host("a.ke")).unwrap().record;
        assert_eq!((record.waiting, record.failed, record.requests), (0, 1, 2), "{failure:?}");
    }
}

#[test]
fn a_site_that_goes_to_another_owner_is_named_there_by_what_it_began_with() {
    let mut played = Played::begun();
    let items = played.crawl.dissolve(&mut played.cx, &mut played.replication, &subnet(), &[host("a.ke")], true);
    assert!(items.iter().any(|item| item.arrival.url == url("http://a.ke/") && item.arrival.place.is_none()));
    assert!(played.crawl.sites().is_empty() && played.crawl.fetches().scheduler().next_due().is_none());
    played.admit("http://a.ke/");
    let again: usize = played.questions().iter().map(|(_, batches)| batches[0].questions.len()).sum();
    assert_eq!(again, 2, "a new site asks anew, of the URL and of its root page");
}

#[test]
fn what_answers_say_of_the_server_is_written_down_once() {
    let mut played = Played::begun();
    let rows = |played: &Played| played.crawl.site(&host("a.ke")).map(|site| site.next_sequence()).unwrap();
    let (order, before) = (played.turn().expect("robots.txt"), rows(&played));
    assert!(!order.front);
    played.answers(&order, FetchOutcome::Status(404));
    assert_eq!(rows(&played), before + 2, "what was learnt, and robots.txt");
    played.cx.now.moment = Moment(60_000);
    played.cx.take_commands();
    let (order, before) = (played.turn().expect("the start page"), rows(&played));
    assert!(order.front);
    let title = FrontPage { title: Some("Museum".to_owned()), ..FrontPage::default() };
    played.answers(&order, FetchOutcome::Page { status: 200, page: PageFacts { front: Some(Box::new(title)), ..PageFacts::default() } });
    assert_eq!(rows(&played), before + 1);
    played.all_is_new();
    let facts = played.crawl.site(&host("a.ke")).and_then(|site| site.record.facts.clone()).unwrap();
    assert_eq!((facts.rtt_us, facts.first_byte_us, facts.robots), (Some(900), Some(20_000), Some(RobotsSummary::Absent)));
    assert_eq!(facts.title.as_deref(), Some("Museum"));
}
