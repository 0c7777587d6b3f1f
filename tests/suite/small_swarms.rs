//! Tests of swarms of one, two and three when members are killed, stopped, join and leave.
//!
//! Real daemons, a small made-up web, and timers a fifth as patient as the default ones.

use crate::support::{DEAD_AFTER, Ground, Habits, Judge, Kill, SmallWeb, Swarm};
use nearcrawl_lab::{
    demo::daemons::{API_PORT, DaemonError},
    web::server::Log,
};
use nearcrawl_model::{facts::HttpVersion, record::ServerRecord, subnet::Subnet, summary::Dimension};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    net::Ipv4Addr,
    sync::Arc,
    time::{Duration, Instant},
};

/// How long a small web may take.
const LONG_ENOUGH: Duration = Duration::from_secs(90);

/// How long until everybody knows of everything.
const SOON: Duration = Duration::from_secs(40);

/// After a crash a daemon must be useful again, and a new one for the first time, within this.
const USEFUL_WITHIN: Duration = Duration::from_secs(10);

/// A prepared swarm at some of the five places, with its web. Answers take a tenth of the made-up round trips.
async fn prepare(hosts: usize, pages: usize, points: &[usize], habits: Habits) -> (Swarm, Arc<SmallWeb>) {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, hosts, pages, 10));
    let points: Vec<Ipv4Addr> = points.iter().map(|point| web.places.access_points[*point]).collect();
    let habits = Habits { threshold_ms: 4, ..habits };
    (Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &points, habits).await, web)
}

/// Waits until every subnet is somebody's and a part of the work is done; the rest is still to be done.
async fn in_the_middle(swarm: &mut Swarm, web: &SmallWeb, judge: &Judge<'_>, share: f64) {
    swarm.owned_by_the_living(&web.subnets(), LONG_ENOUGH).await;
    let (all, wanted) = (judge.expected.fetched.len(), (judge.expected.fetched.len() as f64 * share) as usize);
    swarm
        .until(&format!("{wanted} of {all} URLs are fetched"), LONG_ENOUGH, async || {
            let done = judge.fetched();
            if done >= wanted { Ok(()) } else { Err(format!("{done} URLs")) }
        })
        .await;
    assert!(judge.fetched() < all, "everything is fetched already");
}

async fn kill(swarm: &mut Swarm, log: &Log, victim: usize) -> Kill {
    swarm.daemons[victim].kill().await;
    let kill = Kill { who: swarm.daemons[victim].address, when: log.now() };
    println!("{:6.1} s: killed {}", swarm.age(), kill.who);
    kill
}

/// Requests to servers in these subnets of a silent member, while nobody may take them over yet.
fn asked_early(log: &Log, web: &SmallWeb, subnets: &BTreeSet<Subnet>, kill: &Kill) -> Vec<String> {
    // It was last heard a little before it was killed.
    let early = kill.when + Duration::from_millis(200)..kill.when + DEAD_AFTER - Duration::from_secs(2);
    let requests = log.requests().into_iter().filter(|request| early.contains(&request.start) && web.is_in(request.server, subnets));
    requests.map(|request| format!("{request:?}")).collect()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {text}"))
}

#[tokio::test]
async fn one_alone_crawls_everything_and_answers_every_question() {
    let (mut swarm, web) = prepare(8, 15, &[0], Habits::default()).await;
    let (expected, log) = (web.expected(&web.seeds()), swarm.log().clone());
    let judge = Judge { expected: &expected, log: &log, min_delay: Duration::from_millis(100) };
    swarm.start([0]).await;
    let idle = json(&swarm.cli(0, &["status", "--json"]).await);
    assert_eq!(idle["state_text"], "no work: nothing was seeded", "{idle}");

    let seeds = web.seeds();
    let said = swarm.cli(0, &["seed", "add", &seeds[0], &seeds[1], "ftp://not.a.page/"]).await;
    assert!(said.starts_with("2 accepted, 1 refused") && said.contains("ftp://not.a.page/"), "{said}");
    swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
    let told = swarm.agree(expected.pages() as u64, SOON).await;
    judge.check(&[]);
    assert_eq!((told.summary.total.servers, told.summary.total.unfinished), (web.hosts.len() as u64, 0));

    let status = json(&swarm.cli(0, &["status", "--json"]).await);
    assert_eq!(status["access_point"], *swarm.daemons[0].access_point);
    assert_eq!(status["work"]["pages"], expected.pages());
    assert_eq!(status["members"]["alive"], 1);
    let begun = std::time::Instant::now();
    loop {
        let status = json(&swarm.cli(0, &["status", "--json"]).await);
        if status["state_text"].as_str().unwrap().starts_with("no work: everything is fetched") {
            break;
        }
        assert!(begun.elapsed() < SOON, "{status}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let members = json(&swarm.cli(0, &["members", "--json"]).await);
    assert_eq!((members.as_array().unwrap().len(), &members[0]["is_me"]), (1, &Value::Bool(true)));
    let (host, address) = &web.hosts[2];
    let why = json(&swarm.cli(0, &["why", &web.url(2, 3), "--json"]).await);
    assert_eq!((why["host"].as_str(), why["address"].as_str()), (Some(host.as_str()), Some(address.to_string().as_str())));
    assert_eq!((&why["owner_is_me"], &why["tree"]), (&Value::Bool(true), &why["host"]), "{why}");
    assert!(why["answer_text"].as_str().unwrap().contains("crawls"), "{why}");
    let results = swarm.cli(0, &["results", "--by", "country"]).await;
    assert!(results.contains(&format!("{} pages", expected.pages())) && results.contains("exact"), "{results}");
    assert!(swarm.stop().await);
}

#[tokio::test]
async fn what_answers_say_of_servers_is_on_record_at_no_further_request_and_two_splits_go_together() {
    let (mut swarm, web) = prepare(8, 10, &[0, 1], Habits::default()).await;
    let (expected, log) = (web.expected(&web.seeds()), swarm.log().clone());
    let judge = Judge { expected: &expected, log: &log, min_delay: Duration::from_millis(100) };
    swarm.start(0..2).await;
    swarm.seed(0, &web.seeds()).await;
    swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
    let told = swarm.agree(expected.pages() as u64, SOON).await;
    judge.check(&[]);
    let records = swarm.records(0).await.unwrap();
    assert!(!records.is_empty());
    for record in &records {
        let facts = record.facts.as_deref().unwrap_or_else(|| panic!("{record:?}"));
        assert_eq!((facts.http_version, facts.charset.as_deref()), (Some(HttpVersion::Http11), Some("UTF-8")), "{facts:?}");
        assert!(facts.rtt_us.is_some() && facts.first_byte_us.is_some() && facts.robots.is_some(), "{facts:?}");
        assert!(facts.vantage.as_ref().is_some_and(|vantage| vantage.country.is_some()), "{facts:?}");
    }
    let http = &told.summary.by[&Dimension::Http]["1.1"];
    assert_eq!(
        (http.servers, told.summary.by[&Dimension::Family]["ipv4"].servers),
        (told.summary.total.servers, told.summary.total.servers)
    );
    let table = json(&swarm.cli(1, &["results", "--by", "country,http", "--json"]).await);
    let servers: u64 = table["cells"].as_array().unwrap().iter().map(|cell| cell["counts"]["servers"].as_u64().unwrap()).sum();
    assert_eq!((servers, &table["exact"]), (told.summary.total.servers, &Value::Bool(true)), "{table}");
    let why = swarm.cli(0, &["why", records[0].host.as_str()]).await;
    assert!(why.contains("HTTP/1.1") && why.contains(" away, first byte after "), "{why}");

    // A process that begins anew reads the same from its journals.
    assert!(swarm.daemons[0].stop().await);
    swarm.start([0]).await;
    swarm.agree(expected.pages() as u64, SOON).await;
    let facts = |records: &[ServerRecord]| records.iter().map(|record| (record.host.clone(), record.facts.clone())).collect::<Vec<_>>();
    assert_eq!(facts(&swarm.records(0).await.unwrap()), facts(&records));
    assert!(swarm.stop().await);
}

/// What people ask of a daemon; each is answered from what it knows, without its disk.
const PATHS: [&str; 6] = ["/api/status", "/api/peers", "/api/results", "/api/ownership", "/api/servers", "/metrics"];

/// How long the answers took that daemons gave to all of [`PATHS`], in order, and that they saw each other alive all the time.
async fn answered_for(swarm: &Swarm, client: &reqwest::Client, while_it_lasts: Duration) -> Vec<Duration> {
    let (begun, mut took) = (Instant::now(), Vec::new());
    while begun.elapsed() < while_it_lasts {
        for daemon in &swarm.daemons {
            for path in PATHS {
                let asked = Instant::now();
                let answer = client.get(format!("http://{}:{API_PORT}{path}", daemon.address)).send().await.unwrap();
                let text = answer.text().await.unwrap();
                took.push(asked.elapsed());
                if path == PATHS[0] {
                    assert_eq!(json(&text)["members"]["alive"], swarm.daemons.len(), "{text}");
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    took.sort_unstable();
    took
}

#[tokio::test]
async fn while_the_stores_stand_still_nobody_falls_silent_and_every_answer_comes_in_time() {
    let (mut swarm, web) = prepare(8, 15, &[0, 1], Habits { min_delay_ms: 500, ..Habits::default() }).await;
    let (expected, log) = (web.expected(&web.seeds()), swarm.log().clone());
    let judge = Judge { expected: &expected, log: &log, min_delay: Duration::from_millis(500) };
    let stall = swarm.common.directory.join("stall");
    let environment = [("NEARCRAWL_STALL_STORE", stall.to_str().unwrap())];
    for daemon in 0..2 {
        swarm.daemons[daemon].start_with(&swarm.common, &environment).unwrap();
    }
    swarm.together().await;
    swarm.seed(0, &web.seeds()).await;
    in_the_middle(&mut swarm, &web, &judge, 0.2).await;
    let client = nearcrawl::io::client::client().no_proxy().build().unwrap();
    let usual = answered_for(&swarm, &client, Duration::from_secs(3)).await;

    std::fs::write(&stall, "").unwrap();
    let stalled = answered_for(&swarm, &client, Duration::from_secs(10)).await;
    let asked = Instant::now();
    let body = json(r#"{"urls": ["http://elsewhere.test:8080/"]}"#).to_string();
    let post = client.post(format!("http://{}:{API_PORT}/api/seeds", swarm.daemons[0].address));
    let seeded = json(
        &post
            .header("x-nearcrawl-token", swarm.token(0))
            .header("content-type", "application/json")
            .body(body)
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap(),
    );
    let seeding = asked.elapsed();
    std::fs::remove_file(&stall).unwrap();
    // A busy machine makes all answers late now and then, with a store or without.
    let at = |took: &[Duration], percent: usize| took[took.len() * percent / 100];
    for percent in [50, 90] {
        let (usual, stalled) = (at(&usual, percent), at(&stalled, percent));
        println!("{percent} % of the answers within {usual:?} usually, {stalled:?} with stores that stand still");
        assert!(stalled < usual + Duration::from_millis(100), "{percent} %: {usual:?}, then {stalled:?}");
    }
    println!("seeds answered within {seeding:?}: {seeded}");
    assert_eq!((&seeded["accepted"], &seeded["not_durable"]), (&Value::from(1), &Value::from(1)), "{seeded}");

    swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
    judge.check(&[]);
    assert!(swarm.stop().await);
}

#[tokio::test]
async fn one_alone_goes_on_after_a_crash_without_asking_twice() {
    let (mut swarm, web) = prepare(10, 12, &[0], Habits { min_delay_ms: 1000, ..Habits::default() }).await;
    let (expected, log) = (web.expected(&web.seeds()), swarm.log().clone());
    let judge = Judge { expected: &expected, log: &log, min_delay: Duration::from_millis(1000) };
    swarm.start([0]).await;
    swarm.seed(0, &web.seeds()).await;
    in_the_middle(&mut swarm, &web, &judge, 0.5).await;
    let kills = [kill(&mut swarm, &log, 0).await];
    let begun = Instant::now();
    swarm.start([0]).await;
    assert!(begun.elapsed() < USEFUL_WITHIN, "{:?}", begun.elapsed());
    swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
    swarm.agree(expected.pages() as u64, SOON).await;
    judge.check(&kills);
    assert!(swarm.stop().await);
}

#[tokio::test]
async fn of_two_the_founder_takes_over_from_the_other_which_stops_without_it() {
    let (mut swarm, web) = prepare(16, 50, &[0, 1], Habits::default()).await;
    let (expected, log) = (web.expected(&web.seeds()), swarm.log().clone());
    let judge = Judge { expected: &expected, log: &log, min_delay: Duration::from_millis(100) };
    swarm.start(0..2).await;
    swarm.seed(0, &web.seeds()).await;
    in_the_middle(&mut swarm, &web, &judge, 0.2).await;
    let theirs = swarm.held_by(1, 0).await;
    assert!(theirs.len() >= 2, "{theirs:?}");
    let killed = kill(&mut swarm, &log, 1).await;
    swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
    swarm.agree(expected.pages() as u64, SOON).await;
    let early = asked_early(&log, &web, &theirs, &killed);
    assert!(early.is_empty(), "asked servers of the silent one: {early:#?}");

    // The other one is back, and now the founder, the only one that votes, is gone.
    swarm.start([1]).await;
    let gone = kill(&mut swarm, &log, 0).await;
    let begun = Instant::now();
    loop {
        let status = json(&swarm.cli(1, &["status", "--json"]).await);
        if status["state"] == "fenced" {
            let why = status["state_text"].as_str().unwrap();
            assert!(why.contains("no member reachable") || why.contains("0 of the 1 voters needed renew its lease"), "{why}");
            break;
        }
        assert!(begun.elapsed() < DEAD_AFTER, "it goes on: {status}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    swarm.start([0]).await;
    swarm.agree(expected.pages() as u64, SOON).await;
    judge.check(&[killed, gone]);
    assert!(swarm.stop().await);
}

#[tokio::test]
async fn a_founder_that_was_declared_lost_comes_back_to_the_list_of_the_other_and_asks_nothing_twice() {
    let (mut swarm, web) = prepare(16, 50, &[0, 3], Habits::default()).await;
    let (expected, log) = (web.expected(&web.seeds()), swarm.log().clone());
    let judge = Judge { expected: &expected, log: &log, min_delay: Duration::from_millis(100) };
    swarm.start(0..2).await;
    swarm.seed(0, &web.seeds()).await;
    in_the_middle(&mut swarm, &web, &judge, 0.3).await;
    let founder = swarm.daemons[0].access_point.clone();
    let voters = async |swarm: &Swarm, daemon: usize| json(&swarm.cli(daemon, &["status", "--json"]).await)["voters"]["voters"].clone();
    assert_eq!(voters(&swarm, 1).await, serde_json::json!([founder]));

    let gone = kill(&mut swarm, &log, 0).await;
    let begun = Instant::now();
    loop {
        let status = json(&swarm.cli(1, &["status", "--json"]).await);
        if status["members"]["alive"] == 1 {
            break;
        }
        assert!(begun.elapsed() < DEAD_AFTER, "it is still taken for alive: {status}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let said = json(&swarm.cli(1, &["declare-lost", &founder, "--json"]).await);
    assert_eq!(said["lost"], serde_json::json!([founder]), "{said}");
    swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
    let asked = log.len();
    swarm.start([0]).await;
    // Half a minute passes until the one that came back goes by the other's list.
    swarm.agree(expected.pages() as u64, LONG_ENOUGH).await;
    swarm.owned_by_the_living(&web.subnets(), SOON).await;
    let other = serde_json::json!([swarm.daemons[1].access_point]);
    assert_eq!((voters(&swarm, 0).await, voters(&swarm, 1).await), (other.clone(), other));
    let again: Vec<_> = log.since(asked).into_iter().filter(|request| request.method == "GET").collect();
    assert!(again.is_empty(), "{again:?}");
    judge.check(&[gone]);
    assert!(swarm.stop().await);
}

#[tokio::test]
async fn of_three_the_others_take_over_when_one_is_dead() {
    let (mut swarm, web) = prepare(16, 50, &[0, 1, 3], Habits::default()).await;
    let (expected, log) = (web.expected(&web.seeds()), swarm.log().clone());
    let judge = Judge { expected: &expected, log: &log, min_delay: Duration::from_millis(100) };
    swarm.start(0..3).await;
    swarm.seed(1, &web.seeds()).await;
    in_the_middle(&mut swarm, &web, &judge, 0.2).await;
    let theirs = swarm.held_by(1, 0).await;
    assert!(!theirs.is_empty());
    let kill = kill(&mut swarm, &log, 1).await;
    swarm.owned_by_the_living(&web.subnets(), DEAD_AFTER + SOON).await;
    let lasted = log.now() - kill.when;
    assert!(lasted + Duration::from_secs(2) > DEAD_AFTER, "taken over after {lasted:?}: it could have been a hiccup");
    swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
    swarm.agree(expected.pages() as u64, SOON).await;
    judge.check(&[kill]);
    let early = asked_early(&log, &web, &theirs, &kill);
    assert!(early.is_empty(), "asked servers of the silent one: {early:#?}");

    // It comes back to a swarm that went on without it, and nothing is done again.
    let asked = log.len();
    swarm.start([1]).await;
    swarm.agree(expected.pages() as u64, SOON).await;
    swarm.owned_by_the_living(&web.subnets(), SOON).await;
    let again: Vec<_> = log.since(asked).into_iter().filter(|request| request.method == "GET").collect();
    assert!(again.is_empty(), "{again:?}");
    assert!(swarm.stop().await);
}

/// One of three ends in the middle of the crawl and is back before the others may take over.
async fn back_soon(kill_it: bool) {
    let (mut swarm, web) = prepare(16, 50, &[0, 1, 3], Habits::default()).await;
    let (expected, log) = (web.expected(&web.seeds()), swarm.log().clone());
    let judge = Judge { expected: &expected, log: &log, min_delay: Duration::from_millis(100) };
    swarm.start(0..3).await;
    swarm.seed(0, &web.seeds()).await;
    in_the_middle(&mut swarm, &web, &judge, 0.2).await;
    let before = swarm.owners(0).await;
    let begun = Instant::now();
    let mut kills = Vec::new();
    if kill_it {
        kills.push(kill(&mut swarm, &log, 1).await);
    } else {
        assert!(swarm.daemons[1].stop().await, "it had to be killed");
        println!("stopped within {:?}", begun.elapsed());
    }
    assert!(judge.fetched() < expected.fetched.len());
    swarm.start([1]).await;
    assert!(begun.elapsed() < DEAD_AFTER, "not back in time: {:?}", begun.elapsed());
    swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
    swarm.agree(expected.pages() as u64, SOON).await;
    judge.check(&kills);
    assert_eq!(swarm.owners(0).await, before);
    assert_eq!(swarm.owners(1).await, before);
    assert!(swarm.stop().await);
}

#[tokio::test]
async fn back_soon_after_a_stop_nothing_moves_and_nothing_is_asked_twice() {
    back_soon(false).await;
}

#[tokio::test]
async fn back_soon_after_a_crash_nothing_moves_and_nothing_recorded_is_asked_twice() {
    back_soon(true).await;
}

#[tokio::test]
async fn a_third_joins_is_useful_at_once_and_leaves_for_good() {
    let (mut swarm, web) = prepare(16, 50, &[0, 3], Habits::default()).await;
    let seeds = web.seeds();
    let (expected, log) = (web.expected(&seeds), swarm.log().clone());
    let judge = Judge { expected: &expected, log: &log, min_delay: Duration::from_millis(100) };
    swarm.start(0..2).await;
    swarm.seed(0, &seeds[..1]).await;
    let half = web.expected(&seeds[..1]).pages() as u64;
    swarm.agree(half, LONG_ENOUGH).await;

    let third = swarm.add(web.places.access_points[1]).await;
    let begun = Instant::now();
    swarm.start([third]).await;
    swarm.agree(half, USEFUL_WITHIN).await;
    assert!(begun.elapsed() < USEFUL_WITHIN, "{:?}", begun.elapsed());
    swarm.seed(third, &seeds[1..]).await;
    in_the_middle(&mut swarm, &web, &judge, 0.6).await;
    let held = swarm.held_by(third, 0).await;
    assert!(!held.is_empty());

    let said = json(&swarm.cli(third, &["leave", "--json"]).await);
    println!("{:6.1} s: {held:?} are given back: {said}", swarm.age());
    let begun = Instant::now();
    let status = loop {
        match swarm.daemons[third].ended() {
            Some(DaemonError::Failed { status, .. }) => break status,
            Some(other) => panic!("{other}"),
            None => assert!(begun.elapsed() < Duration::from_secs(20), "does not end"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    println!("{:6.1} s: it ended ({:?})", swarm.age(), begun.elapsed());
    assert_eq!(status.code(), Some(0));
    swarm.daemons[third].stop().await;
    swarm.owned_by_the_living(&web.subnets(), USEFUL_WITHIN).await;
    assert!(begun.elapsed() < DEAD_AFTER, "given back no sooner than by dying: {:?}", begun.elapsed());
    swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
    swarm.agree(expected.pages() as u64, SOON).await;
    judge.check(&[]);
    assert!(swarm.stop().await);
}
