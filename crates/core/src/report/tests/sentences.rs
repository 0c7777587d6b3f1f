//! Tests of the sentence that says what keeps the crawler busy, or what keeps it from work.

use super::{super::Outside, *};
use crate::crawler::MAX_OUTGOING;
use crate::event::OptOutEvent;
use nearcrawl_model::opt_out::{OptOutKey, OptOutProof, OptOutSubject};
use nearcrawl_model::ownership_map::ComparedPart;
use nearcrawl_model::view::{Activity, State};

#[test]
fn a_crawl_alone_goes_from_nothing_to_done_and_says_every_step() {
    let mut played = Played::alone();
    assert_eq!(played.crawler.view().activity(), Activity::NothingSeeded);
    assert!(played.crawler.view().all_done());

    played.slow_dns = true;
    played.seed("http://a.ke/");
    assert_eq!(played.crawler.view().activity(), Activity::FindingOwners { hosts: 1 });
    assert!(played.crawler.view().has_work());

    played.dns_answers();
    assert_eq!(played.sentence(), "fetching from 1 server");
    played.web_answers(&[]);
    assert!(
        matches!(played.crawler.view().activity(), Activity::WaitingForPoliteness { servers: 1, next: 900..=1_000 }),
        "{}",
        played.sentence()
    );
    played.pass(1_000);
    played.web_answers(&[]);
    assert_eq!(played.crawler.view().activity(), Activity::Recording, "the page is not stored yet");
    assert!(played.crawler.view().has_work());

    played.finish(&[]);
    let Activity::Done { next: Some(next) } = played.crawler.view().activity() else { panic!("{}", played.sentence()) };
    assert!(next <= REVISIT && next > REVISIT - 60_000, "{next}");
    assert_eq!(played.crawler.view().activity().state(), State::Idle);
}

#[test]
fn what_cannot_be_crawled_is_not_called_nothing() {
    let mut played = Played::alone();
    played.seed("http://bad.ke/");
    assert_eq!(played.sentence(), "no work: every host named so far is denied by the configuration");
    played.seed("http://nowhere.ke/");
    assert_eq!(played.sentence(), "no work: no usable address was found for the hosts of 1 URL");
    assert!(played.crawler.view().all_done());
}

#[test]
fn a_name_server_that_does_not_answer_keeps_a_seed_waiting_and_why_says_so() {
    let mut played = Played::alone();
    played.slow_dns = true;
    played.seed("http://a.ke/");
    played.handle(Event::Resolved { host: host("a.ke"), answer: Err(ResolveError::TimedOut) });
    assert_eq!(played.crawler.view().activity(), Activity::FindingOwners { hosts: 1 });
    let why = played.why("a.ke").answer_text;
    assert!(why.contains("failed (the name server did not answer in time) and is repeated in 5.0 s"), "{why}");
    assert_eq!(played.crawler.view().unlocated(&"a.ke".parse().unwrap(), &AddressPolicy::default()), None, "asking does not hurry it");
    played.lookups.clear();
    played.pass(4_800);
    assert!(played.lookups.is_empty());
    played.pass(300);
    played.dns_answers();
    assert_eq!(played.sentence(), "fetching from 1 server");
}

#[test]
fn what_waits_at_a_server_that_is_opted_out_is_not_blamed_on_the_budget() {
    let mut played = Played::alone();
    played.seed("http://a.ke/");
    played.web_answers(&[]);
    played.pass(1_000);
    played.web_answers(&["http://a.ke/1", "http://a.ke/2"]);
    let key = OptOutKey { subject: OptOutSubject::read("a.ke", false).unwrap(), proof: OptOutProof::Order };
    played.handle(Event::OptOut(OptOutEvent::Asked { number: 1, key, stops: true }));
    played.finish(&[]);
    played.pass(2_000);
    assert_eq!(
        played.sentence(),
        "no work: what waits at 1 server may not be asked for: an opt-out, a survey that rests, or a scope that has them no more"
    );
}

#[test]
fn a_spent_budget_is_said_and_ends_the_work() {
    let mut settings = settings();
    settings.rules.pages_per_run = 1;
    let mut played = Played::new(settings, &[]);
    played.seed("http://a.ke/");
    played.finish(&["http://a.ke/1", "http://a.ke/2"]);
    assert_eq!(played.sentence(), "no work: the page budget of 1 server is used up");
    let view = played.why("a.ke");
    assert!(
        view.answer_text.contains("has used up its page budget") && view.answer_text.contains("the run goes on in 23 h"),
        "{}",
        view.answer_text
    );
    assert!(view.next_visit_in_ms.is_some_and(|millis| millis > 82_800_000), "{:?}", view.next_visit_in_ms);
}

#[test]
fn no_member_reachable_is_said_after_a_moment_and_not_at_once() {
    let joining = Settings { joins: true, ..settings() };
    for (settings, remembered) in [(joining, &[][..]), (settings(), &[2, 3, 4, 5][..])] {
        let mut played = Played::new(settings, remembered);
        assert_eq!(played.crawler.view().activity(), Activity::Starting);
        played.seed("http://a.ke/");
        played.pass(6_000);
        assert_eq!(played.crawler.view().activity(), Activity::NoPeersReachable);
        assert!(played.fetches.is_empty());
        let reasons = ["cannot reach a: closed", "cannot reach b: no such name"].map(str::to_owned).to_vec();
        let status = played.crawler.view().status(Outside { connection_errors: reasons, ..Outside::default() });
        assert_eq!(status.state_text, "no member reachable: cannot reach a: closed; cannot reach b: no such name");
        assert_eq!(status.alone_text, None, "it knows of others");
    }
}

#[test]
fn the_only_member_of_a_swarm_says_so() {
    let mut played = Played::alone();
    let alone = |played: &Played| played.crawler.view().status(Outside::default()).alone_text;
    assert!(alone(&played).is_some_and(|said| said.contains("only member")));
    played.meet(2);
    assert_eq!(alone(&played), None);
}

#[test]
fn rules_on_hosts_hold_at_once_when_they_change() {
    let mut played = Played::alone();
    let denied = Scope { denied_ranges: vec!["9.0.1.0/24".parse().unwrap()], ..settings().scope };
    played.handle(Event::Scope(Box::new(denied)));
    played.seed("http://a.ke/");
    played.finish(&["http://a.ke/"]);
    assert_eq!(played.crawler.view().status(Outside::default()).work.requests, 0, "not even robots.txt");
    assert!(played.why("a.ke").answer_text.contains("crawl.deny_ranges"), "{}", played.why("a.ke").answer_text);
    played.handle(Event::Scope(Box::new(settings().scope)));
    played.seed("http://a.ke/");
    played.finish(&["http://a.ke/"]);
    assert_eq!(played.crawler.view().status(Outside::default()).work.pages, 1);
    // A link to a host that only its address brings into scope.
    let by_range = Scope { tlds: Default::default(), ranges: vec!["9.0.2.0/24".parse().unwrap()], ..settings().scope };
    played.handle(Event::Scope(Box::new(by_range)));
    assert!(played.crawler.context.may_admit(&host("x.example")), "it is looked up first");
    assert!(played.crawler.context.admits_at(&host("x.example"), "9.0.2.9".parse().unwrap()));
    assert!(!played.crawler.context.admits_at(&host("x.example"), "9.0.3.9".parse().unwrap()));
}

#[test]
fn too_few_members_after_a_start_is_a_fence_with_its_reason() {
    let mut played = Played::new(settings(), &[2, 3, 4, 5]);
    played.meet(2);
    played.pass(6_000);
    assert!(played.sentence().starts_with("fenced: only 0 of the 3 voters needed renew its lease"), "{}", played.sentence());
    assert_eq!(played.crawler.view().activity().state(), State::Fenced);
}

#[test]
fn silence_of_the_others_is_a_fence_with_its_reason() {
    let mut played = Played::new(settings(), &[2, 3, 4, 5]);
    for number in [2, 3, 4] {
        played.meet(number);
    }
    let renew = |request: &Request| matches!(request, Request::Renew(_)).then(|| Response::Renewed(vote::Renewed::Granted(Box::default())));
    let equal = |parts: &Vec<_>| Response::Compared { whole: true, parts: vec![ComparedPart::Equal; parts.len()] };
    let compare = |request: &Request| if let Request::CompareClaims(parts) = request { Some(equal(parts)) } else { None };
    for _ in 0..60 {
        played.answer(|request| renew(request).or_else(|| compare(request)));
        played.pass(500);
    }
    assert_eq!(played.crawler.view().activity(), Activity::NothingSeeded);
    played.answering.clear();
    played.pass(15_000);
    assert_eq!(played.crawler.view().activity(), Activity::NothingSeeded, "a lease lasts for 30 s");
    played.pass(16_000);
    let sentence = played.sentence();
    // It does not vote itself before it knows that its list is still in force.
    assert!(sentence.starts_with("fenced: only 0 of the 3 voters needed renew its lease"), "{sentence}");
}

#[test]
fn urls_of_others_are_on_their_way_until_they_are_taken_in() {
    let mut played = Played::alone();
    played.meet(2);
    played.claimed_by(2, "9.0.1.0/24", false);
    assert_eq!(played.sentence(), "no work: no server named so far is in a subnet of this access point");
    played.seed("http://a.ke/");
    let located = LocatedHost { host: host("a.ke"), address: "9.0.1.1".parse().unwrap(), valid_for: 86_400_000 };
    if played.crawler.view().activity() == (Activity::FindingOwners { hosts: 1 }) {
        played.answer(|request| matches!(request, Request::Locate(_)).then(|| Response::Located(Ok(located.clone()))));
    }
    assert_eq!(played.sentence(), "sending 1 URL to its owner");
    assert!(played.crawler.view().has_work());
    played.answer(|request| matches!(request, Request::HandOff(_)).then(|| Response::HandedOff { not_mine: Vec::new() }));
    assert_eq!(played.sentence(), "no work: no server named so far is in a subnet of this access point");
    assert!(played.crawler.view().all_done());
}

#[test]
fn what_was_owned_before_is_read_back_first() {
    let mut claims = Played::alone();
    claims.seed("http://a.ke/");
    let proof = claims.crawler.ownership.register().all().next().unwrap().proof();
    let addresses = Vec::new();
    let identity = Identity {
        key: key(1),
        incarnation: 2,
        addresses,
        fingerprints: FINGERPRINTS,
        claims: vec![proof],
        members: BTreeSet::new(),
        voting: claims.voting.into_iter().collect(),
        sole: true,
        store: Default::default(),
        contacts: Vec::new(),
        surveys: Vec::new(),
        survey_probes: Vec::new(),
        opt_outs: Vec::new(),
        admissions: Vec::new(),
        certificate: None,
    };
    let mut crawler = Crawler::new(identity, settings(), hierarchy(), claims.now);
    crawler.handle(claims.now, Event::Tick);
    assert_eq!(crawler.view().activity().to_string(), "reading the journals of 1 subnet");
    crawler.handle(claims.now, Event::Loaded { subnet: "9.0.1.0/24".parse().unwrap(), journals: Vec::new() });
    while crawler.next_command().is_some() {}
    assert_eq!(crawler.view().activity(), Activity::Done { next: None }, "something was named once: it is not that nothing was seeded");
}

#[test]
fn too_many_outgoing_urls_stop_it_and_it_says_what_helps() {
    let mut played = Played::alone();
    played.slow_dns = true;
    let many = (0..=MAX_OUTGOING).map(|number| url(&format!("http://a.ke/{number}"))).collect();
    played.handle(Event::Seeds(many));
    assert_eq!(played.crawler.view().activity().state(), State::Stopped);
    assert!(played.sentence().contains("more than 200000 URLs wait to be sent to their owners"), "{}", played.sentence());
}

#[test]
fn stopping_for_a_while_is_not_leaving() {
    let mut played = Played::alone();
    played.handle(Event::Drain);
    assert_eq!(played.sentence(), "stopping: finishing what is under way");
    let mut played = Played::alone();
    played.handle(Event::Leave);
    assert_eq!(played.sentence(), "leaving: releasing its subnets");
}
