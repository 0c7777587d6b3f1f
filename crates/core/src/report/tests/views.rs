//! Tests that the numbers, the lists and the reasons are true.

use super::{super::Outside, *};
use crate::migration::handover::Immovable;
use nearcrawl_model::{
    allowance::Rest,
    ids::Ticket,
    server_rows::{RowsOf, ServerRow},
    view::{LimitView, Liveness, State},
};

#[test]
fn the_status_adds_up_what_was_done_and_refused() {
    let mut played = Played::alone();
    played.seed("http://a.ke/");
    played.seed("http://bad.ke/");
    played.finish(&["http://a.ke/", "http://a.ke/1", "http://bad.ke/", "http://far.example/"]);
    let outside = Outside {
        version: "1.2.3".into(),
        refusals: [("hosts on the deny list".to_owned(), 5), ("peers".to_owned(), 2)].into(),
        limits: vec![LimitView { name: "connections".into(), used: 3, max: 512 }],
        ..Outside::default()
    };
    let status = played.crawler.view().status(outside.clone());
    assert_eq!((status.version.as_str(), status.state, status.servers), ("1.2.3", State::Idle, 1));
    assert_eq!((status.work.pages, status.work.requests, status.work.lookups), (2, 3, 1));
    assert_eq!((status.subnets_owned, status.subnets_claimed, status.waiting_urls, status.outgoing_urls), (1, 1, 0, 0));
    assert_eq!(status.refusals["hosts on the deny list"], 5 + 1 + 2, "the seed, and one link on each of two pages");
    assert_eq!((status.refusals["peers"], status.refusals["links to hosts out of scope"]), (2, 2));
    assert_eq!((status.hierarchy.subnets, status.hierarchy.hash.len()), (3, 64));
    let frontier = status.caches.iter().find(|cache| cache.place == "frontier").unwrap();
    assert!(frontier.hits >= 1 && frontier.entries >= 2 && frontier.capacity == 1_000, "{frontier:?}");
    assert!(status.limits.iter().all(|limit| limit.used <= limit.max && limit.max > 0), "{:?}", status.limits);
    assert!(status.limits.iter().any(|limit| limit.name == "connections"));

    let full = Outside { limit_reached: Some("the disk is full".into()), ..outside };
    assert_eq!(played.crawler.view().status(full).state_text, "stopped: the disk is full");
}

#[test]
fn members_are_listed_with_what_they_hold_and_how_alive_they_are() {
    let mut played = Played::alone();
    played.meet(2);
    played.claimed_by(2, "9.0.1.0/24", false);
    played.claimed_by(3, "9.0.2.0/24", false);
    let peers = played.crawler.view().members();
    assert_eq!((peers[0].is_me, peers[0].access_point, peers[0].addresses.len()), (true, member(1), 1));
    assert_eq!((peers[1].access_point, peers[1].liveness, peers[1].subnets), (member(2), Liveness::Alive, 1));
    assert_eq!(peers[1].addresses, ["/ip4/9.9.9.2/tcp/4817"]);
    assert_eq!(peers.len(), 2, "an owner that was never met is no member");
    played.answering.clear();
    played.pass(30_000);
    let stands: Vec<_> = played.crawler.view().members().iter().map(|peer| (peer.access_point, peer.liveness)).collect();
    assert!(stands.contains(&(member(2), Liveness::Silent)), "{stands:?}");
    let members = played.crawler.view().status(Outside::default()).members;
    assert_eq!((members.alive, members.silent), (1, 1));
}

#[test]
fn claims_and_servers_come_in_order_page_by_page() {
    let mut played = Played::alone();
    for name in ["c.ke", "a.ke", "b.ke"] {
        played.seed(&format!("http://{name}/"));
    }
    played.finish(&[]);
    let names = |page: &nearcrawl_model::view::ServersPage| page.servers.iter().map(|record| record.host.to_string()).collect::<Vec<_>>();
    let first = played.crawler.view().servers(None, 2);
    assert_eq!((names(&first), first.next.clone()), (vec!["a.ke".to_owned(), "b.ke".to_owned()], Some(host("b.ke"))));
    let second = played.crawler.view().servers(first.next.as_ref(), 2);
    assert_eq!((names(&second), second.next), (vec!["c.ke".to_owned()], None));
    assert_eq!(played.crawler.view().servers(None, 3).next, None, "no page follows that would be empty");

    let all = played.crawler.view().ownership(None, 100);
    assert_eq!(all.iter().map(|claim| claim.subnet.to_string()).collect::<Vec<_>>(), ["9.0.1.0/24", "9.0.2.0/24"]);
    assert_eq!(played.crawler.view().ownership(None, 1), all[..1]);
    assert_eq!(played.crawler.view().ownership(Some(all[0].subnet), 100), all[1..]);
}

#[test]
fn why_follows_a_host_from_its_name_to_its_turn() {
    let mut played = Played::alone();
    let view = played.why("a.ke");
    assert_eq!((view.address, view.subnet), (None, None));
    assert!(view.answer_text.contains("this access point looks its address up"), "{}", view.answer_text);

    played.slow_dns = true;
    played.seed("http://a.ke/deep/page");
    assert!(played.why("a.ke").answer_text.contains("its address is being looked up"), "{}", played.why("a.ke").answer_text);
    played.dns_answers();
    let view = played.why("http://a.ke/deep/page");
    assert_eq!(view.path_text.last().unwrap(), "block 9.0.1.0/24 ← its subnet");
    assert_eq!((view.address, view.subnet), (Some("9.0.1.1".parse().unwrap()), Some("9.0.1.0/24".parse().unwrap())));
    assert_eq!((view.owner_is_me, view.owner_liveness), (true, Some(Liveness::Alive)));
    assert_eq!((view.tree, view.level), (Some(host("a.ke")), Some(0)));
    assert_eq!(view.state_text.as_deref(), Some("waits, with 1 URL before it"), "the root comes first");
    assert!(view.answer_text.ends_with("a request is under way."), "{}", view.answer_text);
    assert_eq!((view.robots_text, view.last_visit_at, view.next_visit_in_ms), (None, None, None), "robots.txt is asked for first");

    played.web_answers(&[]);
    let view = played.why("http://a.ke/");
    assert!(view.next_visit_in_ms.is_some_and(|millis| (900..=1_000).contains(&millis)), "{:?}", view.next_visit_in_ms);
    assert_eq!(view.state_text.as_deref(), Some("waits, with 0 URLs before it"));
    played.finish(&["http://a.ke/more"]);
    let view = played.why("a.ke");
    assert_eq!(view.state_text.as_deref(), Some("is complete: 3 pages fetched"));
    assert!(view.answer_text.ends_with("Of 3 URLs known, 3 fetched (3 pages)."), "{}", view.answer_text);
    assert!(view.answer_text.starts_with("This access point crawls a.ke, because it owns the subnet 9.0.1.0/24."), "{}", view.answer_text);
    assert!(view.answer_text.contains("the next run begins in 6 d 23 h"), "{}", view.answer_text);
    assert!(view.robots_text.is_some_and(|robots| robots.starts_with("allows it (http://a.ke/")), "robots.txt was not there");
    assert!(view.last_visit_at.is_some());
    assert_eq!(played.why("http://a.ke/never").level, None);
    let there = played.why("9.0.1.1");
    assert!(there.answer_text.ends_with("1 server on record here: a.ke."), "{}", there.answer_text);
    assert_eq!(there.next_visit_in_ms, view.next_visit_in_ms, "of an address: that of its servers");
}

#[test]
fn why_says_whose_it_is_instead() {
    let mut played = Played::alone();
    played.seed("http://nowhere.ke/");
    let nowhere = played.why("nowhere.ke");
    assert!(nowhere.answer_text.ends_with("it has no usable address (no such name)."));
    assert_eq!(nowhere.no_address_reason, Some(ResolveError::NoSuchName));
    assert!(
        played.why("9.0.3.1").answer_text.starts_with("No member owns its subnet 9.0.3.0/24 yet"),
        "{}",
        played.why("9.0.3.1").answer_text
    );

    played.meet(2);
    played.claimed_by(2, "9.0.2.0/24", false);
    let view = played.why("9.0.2.1");
    assert_eq!((view.owner_is_me, view.owner_liveness), (false, Some(Liveness::Alive)));
    assert!(
        view.answer_text.contains(&member(2).short()) && view.answer_text.ends_with("run `nearcrawl why` on its machine."),
        "{}",
        view.answer_text
    );
    assert_eq!(view.ownership.map(|claim| claim.probes), Some(2));

    played.claimed_by(2, "9.0.2.0/24", true);
    let view = played.why("9.0.2.1");
    assert!(view.answer_text.contains("released its subnet 9.0.2.0/24"), "{}", view.answer_text);
    played.claimed_by(3, "9.0.3.0/24", false);
    assert_eq!(played.why("9.0.3.1").owner_liveness, None, "never met");
}

#[test]
fn why_says_what_keeps_a_server_of_ours_from_being_asked() {
    let mut played = Played::alone();
    played.seed("http://a.ke/");
    played.finish(&[]);
    assert!(played.why("http://9.0.1.7/").answer_text.contains("it is out of scope"), "{}", played.why("http://9.0.1.7/").answer_text);
    played.names.insert(host("bad.ke"), "9.0.1.9".parse().unwrap());
    played.handle(Event::Asked { from: member(2), ticket: Ticket(1), request: Request::Locate(host("bad.ke")) });
    assert!(played.why("bad.ke").answer_text.starts_with("The configuration of this access point denies bad.ke"));
    played.handle(Event::Drain);
    assert!(played.why("a.ke").answer_text.ends_with("Nothing is fetched at the moment: stopping: finishing what is under way."));
}

#[test]
fn of_a_denied_host_with_work_it_is_said_once_that_nothing_is_asked() {
    let mut played = Played::alone();
    played.seed("http://a.ke/");
    played.web_answers(&[]);
    played.pass(1_000);
    played.web_answers(&["http://a.ke/1", "http://a.ke/2"]);
    let scope = Scope { denied: [host("a.ke")].into(), ..settings().scope };
    played.handle(Event::Scope(Box::new(scope)));
    for asked in ["a.ke", "http://a.ke/2"] {
        let view = played.why(asked);
        let said = view.answer_text;
        assert!(said.starts_with("The configuration of this access point denies a.ke: no request is sent there."), "{said}");
        assert!(said.contains("belongs to this access point") && said.contains("nothing is asked there"), "{said}");
        assert!(!said.contains("crawls a.ke") && !said.contains("the next request") && !said.contains("pausing"), "{said}");
        assert_eq!(view.next_visit_in_ms, None);
    }
    let said = played.why("www.a.ke").answer_text;
    assert_eq!(said, "The configuration of this access point denies www.a.ke: no request is sent there.", "whose it would be is not said");
}

/// Pages under work at two hosts: one that people named, and one that a link led to.
fn with_a_linked_host() -> Played {
    let mut played = Played::alone();
    played.names.insert(host("b.ke"), "9.0.2.1".parse().unwrap());
    played.seed("http://a.ke/");
    played.web_answers(&[]);
    played.pass(1_000);
    let links: Vec<String> = (0..9).flat_map(|page| [format!("http://a.ke/{page}"), format!("http://b.ke/{page}")]).collect();
    played.web_answers(&links.iter().map(String::as_str).collect::<Vec<_>>());
    played
}

/// Answers what is asked for so many seconds; of which hosts pages were asked for.
fn asked(played: &mut Played, seconds: u64) -> BTreeSet<String> {
    let mut hosts = BTreeSet::new();
    for _ in 0..seconds {
        while let Some(order) = played.fetches.last() {
            hosts.insert(order.url.host().to_string());
            played.web_answers(&[]);
        }
        played.pass(1_000);
    }
    hosts
}

#[test]
fn what_links_led_to_is_asked_nothing_once_it_is_out_of_scope_and_goes_on_when_it_is_in_it_again() {
    let both: BTreeSet<_> = ["a.ke".to_owned(), "b.ke".to_owned()].into();
    assert_eq!(asked(&mut with_a_linked_host(), 10), both);
    let mut played = with_a_linked_host();
    assert_eq!(asked(&mut played, 4), both);
    let mut ever = EverInScope::default();
    ever.add(&settings().scope);
    let narrow = Scope { tlds: ["tz".to_owned()].into(), ever: ever.clone(), ..Scope::default() };
    played.handle(Event::Scope(Box::new(narrow)));
    // What is under way is finished.
    played.fetches.retain(|order| order.url.host() != host("b.ke"));
    assert_eq!(asked(&mut played, 10), ["a.ke".to_owned()].into(), "people named that one");
    let said = played.why("b.ke").answer_text;
    assert!(said.starts_with("Its operator took b.ke out of the scope of this access point"), "{said}");
    assert!(!said.contains("crawls b.ke"), "{said}");
    played.seed("http://b.ke/");
    assert!(played.why("b.ke").answer_text.starts_with("This access point crawls b.ke"), "named by people now");

    let mut played = with_a_linked_host();
    asked(&mut played, 4);
    played.handle(Event::Scope(Box::new(Scope { ever: ever.clone(), ..Scope::default() })));
    asked(&mut played, 10);
    played.handle(Event::Scope(Box::new(Scope { ever, ..settings().scope })));
    assert!(asked(&mut played, 10).contains("b.ke"), "in scope again");
}

#[test]
fn what_is_never_contacted_is_said_with_the_reason_and_without_an_owner_to_come() {
    let mut played = Played::alone();
    for (asked, says) in [
        ("10.0.0.1", "this is a private address"),
        ("http://10.0.0.1/", "this is a private address"),
        ("localhost", "this is a loopback address"),
        ("http://www.localhost/a", "this is a loopback address"),
        ("169.254.169.254", "this is a link-local address"),
        ("[::1]", "this is a loopback address"),
        ("10.0.0.0/8", "10.0.0.0/8: this is a private address"),
    ] {
        let subject: Subject = asked.parse().unwrap();
        assert_eq!(played.crawler.view().unlocated(&subject, &AddressPolicy::default()), None, "{asked}: nothing is looked up");
        let said = played.why(asked).answer_text;
        assert!(said.contains(says) && said.contains("crawl.allow_ranges"), "{asked}: {said}");
        assert!(!said.contains("owner"), "{asked}: {said}");
    }
    let opened = AddressPolicy { allowed: vec!["10.0.0.0/8".parse().unwrap()], ..AddressPolicy::default() };
    let said = played.crawler.view().why(&"10.0.0.1".parse().unwrap(), &opened).answer_text;
    assert!(!said.contains("crawl.allow_ranges"), "{said}");

    played.seed("http://a.ke/");
    let said = played.why("http://a.ke:9999/").answer_text;
    assert!(said.contains("to port 9999 of a.ke") && said.contains("crawl.ports") && said.contains("9.0.1.0/24"), "{said}");
    played.handle(Event::Resolved { host: host("inside.ke"), answer: Err(ResolveError::ForbiddenAddress) });
    let denied = AddressPolicy { denied: vec!["9.0.1.0/24".parse().unwrap()].into(), ..AddressPolicy::default() };
    let said = played.crawler.view().why(&"a.ke".parse().unwrap(), &denied).answer_text;
    assert!(said.contains("crawl.deny_ranges") && said.contains("9.0.1.0/24"), "{said}");
}

#[test]
fn a_neighbour_of_this_machine_is_not_asked_and_it_is_said_what_opens_its_network() {
    let played = Played::alone();
    let policy = AddressPolicy::default();
    policy.seen_at.set(&["2a00:1:2:3::7".parse().unwrap()], &[]);
    let why = |asked: &str, policy: &AddressPolicy| played.crawler.view().why(&asked.parse::<Subject>().unwrap(), policy).answer_text;
    for asked in ["2a00:1:2:3::8", "http://[2a00:1:2:3::8]/"] {
        let said = why(asked, &policy);
        assert!(said.contains("in the IPv6 network of this machine") && said.contains("crawl.allow_ranges opens it"), "{said}");
    }
    let opened = AddressPolicy { allowed: vec!["2a00:1:2:3::/64".parse().unwrap()], ..policy };
    assert!(!why("2a00:1:2:3::8", &opened).contains("allow_ranges"));
}

#[test]
fn without_a_contact_it_is_said_that_this_is_why_a_server_is_not_asked() {
    let mut played = Played::alone();
    played.seed("http://a.ke/");
    let policy = AddressPolicy { only_allowed: true, ..AddressPolicy::default() };
    for asked in ["http://a.ke/", "a.ke", "9.0.1.1", "http://1.1.1.1/"] {
        let said = played.crawler.view().why(&asked.parse().unwrap(), &policy).answer_text;
        assert!(said.contains("it has no contact") && said.contains("Set contact in the configuration"), "{asked}: {said}");
    }
    let said = played.crawler.view().why(&"10.0.0.1".parse().unwrap(), &policy).answer_text;
    assert!(said.contains("private address") && !said.contains("contact in the configuration"), "{said}");
}

#[test]
fn a_subnet_is_answered_by_the_registered_one_around_it_or_sent_to_those_within() {
    let played = Played::alone();
    let said = played.why("9.0.3.128/25").answer_text;
    assert!(said.starts_with("No member owns its subnet 9.0.3.0/24 yet"), "{said}");
    let said = played.why("9.0.0.0/16").answer_text;
    assert!(said.starts_with("9.0.0.0/16 has no owner as a whole"), "{said}");
}

#[test]
fn rows_of_servers_that_were_just_named_say_that_they_count_as_themselves() {
    let mut played = Played::alone();
    played.seed("http://a.ke/");
    let told = |played: &Played| {
        let rows = played.crawler.view().rows(RowsOf::Servers, None).unwrap().rows;
        rows.iter().map(|row| ServerRow::read(row).unwrap().inclusion_probability).collect::<Vec<_>>()
    };
    assert_eq!(told(&played), [None], "they are not in the sums yet");
    played.crawler.prepare_rows();
    assert_eq!(told(&played), [Some(1.0)]);
}

#[test]
fn a_member_that_rests_for_its_memory_may_give_subnets_away_and_says_so() {
    let mut played = Played::alone();
    played.seed("http://a.ke/");
    played.finish(&[]);
    played.meet(2);
    let subnet = "9.0.1.0/24".parse().unwrap();
    let mut may_move = |rest| {
        played.handle(Event::Rest(rest));
        played.crawler.view().may_move(&subnet, &member(2))
    };
    assert_eq!(may_move(None), Ok(1));
    assert_eq!(may_move(Some(Rest::MemoryFull { limit: 1 })), Ok(1), "otherwise it would never use less");
    assert_eq!(may_move(Some(Rest::Paused { until: None })), Err(Immovable::Unsettled));
}
