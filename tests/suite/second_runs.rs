//! Tests of a second run: what it requests, and what it says has changed.
//!
//! They run a real daemon, real servers with ETags, and a kill -9 between.

use crate::support::{Ground, Habits, Swarm};
use nearcrawl_lab::demo::world::Places;
use nearcrawl_lab::web::server::{HttpAnswer, HttpSite};
use nearcrawl_model::{
    account::Changes,
    evaluation::{EvaluationCounts, RULE_SET},
    record::{RunState, ServerRecord},
    url::Host,
};
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, Mutex},
    time::Duration,
};

const HOST: &str = "museum.ke.test";

const SOON: Duration = Duration::from_secs(60);

/// One site whose pages can be changed: path → links. All pages have the same long text beside.
struct Museum(Mutex<BTreeMap<String, Vec<String>>>);

impl Museum {
    fn new() -> Museum {
        let rooms = (1..=8).map(|room| (format!("/room{room}"), vec![format!("/room{room}/case"), "/".to_owned()]));
        let cases = (1..=8).map(|room| (format!("/room{room}/case"), vec![format!("/room{}", room % 8 + 1)]));
        // Two other museums, which are out of scope: one is named at once, the other a level deeper.
        let others = ["http://national.museum/", "http://louvre.example/"].map(str::to_owned);
        let home = ("/".to_owned(), (1..=8).map(|room| format!("/room{room}")).chain([others[0].clone()]).collect());
        let rooms = rooms.map(move |(path, links)| (path, links.into_iter().chain([others[1].clone()]).collect()));
        Museum(Mutex::new(rooms.chain(cases).chain([home]).collect()))
    }

    fn put(&self, path: &str, links: &[&str]) {
        self.0.lock().unwrap().insert(path.to_owned(), links.iter().map(|link| (*link).to_owned()).collect());
    }

    fn remove(&self, path: &str) {
        self.0.lock().unwrap().remove(path);
    }

    fn pages(&self) -> u64 {
        self.0.lock().unwrap().len() as u64
    }
}

impl HttpSite for Museum {
    fn respond(&self, _: &str, path: &str) -> HttpAnswer {
        let pages = self.0.lock().unwrap();
        let Some(links) = pages.get(path) else { return HttpAnswer::status(404) };
        let links: String = links.iter().map(|link| format!("<p><a href=\"{link}\">on</a></p>\n")).collect();
        HttpAnswer::html(links + &"<p>Masks, drums and stools.</p>".repeat(300))
    }
}

/// Waits until this run is over, and gives back its record.
async fn run_is_over(swarm: &mut Swarm, run: u32) -> ServerRecord {
    let points: Vec<_> = swarm.daemons.iter().map(|daemon| daemon.address).collect();
    assert_eq!(points.len(), 1);
    loop {
        let seen = swarm.records(0).await.unwrap_or_default();
        if let Some(record) = seen.into_iter().find(|record| record.run == run && record.state == RunState::Complete && record.pages > 0) {
            return record;
        }
        assert!(swarm.age() < 3.0 * SOON.as_secs_f64(), "run {run} is not over: {:?}", swarm.records(0).await);
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

/// The totals, once they are exact and those of a run that moved so much.
async fn totals_with(swarm: &Swarm, bytes: u64) -> serde_json::Value {
    loop {
        let said: serde_json::Value = serde_json::from_str(&swarm.cli(0, &["results", "--json"]).await).unwrap();
        if said["exact"] == true && said["summary"]["total"]["bytes"] == bytes {
            return said;
        }
        assert!(swarm.age() < 3.0 * SOON.as_secs_f64(), "{said}");
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

/// What was answered since robots.txt was asked for last: with that each run begins.
fn answers_of_last_run(swarm: &Swarm) -> Vec<u16> {
    let mut asked = swarm.log().requests();
    asked.retain(|seen| seen.method == "GET");
    let begin = asked.iter().rposition(|seen| seen.path == "/robots.txt").expect("robots.txt comes first");
    asked.drain(..=begin);
    asked.iter().filter_map(|seen| seen.status).collect()
}

#[tokio::test]
async fn a_second_run_downloads_what_changed_and_nothing_else_across_kill_9() {
    let ground = Ground::claim();
    let (places, museum) = (Places::new(ground.net, 1, 7), Arc::new(Museum::new()));
    let IpAddr::V4(first) = places.lands[0].subnet.first() else { unreachable!("places are IPv4") };
    let names: Vec<(Host, IpAddr)> = vec![(HOST.parse().unwrap(), Ipv4Addr::from_bits(first.to_bits() + 9).into())];
    let habits = Habits { delay_factor: 0, min_delay_ms: 20, crawl: "evaluation = true".to_owned(), ..Habits::default() };
    let point = places.access_points[0];
    let mut swarm = Swarm::prepare(ground, museum.clone(), places.registry_files(), names, &[point], habits).await;
    swarm.start([0]).await;
    swarm.seed(0, &[format!("http://{HOST}:8080/")]).await;
    let first = run_is_over(&mut swarm, 1).await;
    assert_eq!((first.pages, first.changes), (museum.pages(), None));
    assert_eq!(first.known, first.accounted(), "{first:?}");

    // Nothing has changed: the second run costs requests, and no bodies.
    swarm.daemons[0].kill().await;
    swarm.revisit_after(0, "10s");
    swarm.start([0]).await;
    let second = run_is_over(&mut swarm, 2).await;
    let all = museum.pages();
    let same =
        Changes { compared_run: 1, pages_before: all, unchanged: all, not_modified: all, bytes_saved: first.bytes, ..Changes::default() };
    assert_eq!(second.changes, Some(same));
    assert_eq!((second.bytes, second.pages, second.known, second.fetched), (0, first.pages, first.known, first.fetched));
    assert_eq!(second.page_bytes, first.bytes, "the size of pages is not what the run moved");
    let said = totals_with(&swarm, 0).await;
    assert_eq!(said["summary"]["total"]["page_bytes"], first.bytes, "{said}");
    let said = swarm.cli(0, &["results"]).await;
    assert!(said.lines().next().is_some_and(|line| line.ends_with(" of pages, 0 B moved")), "{said}");
    let (before, now) = (first.evaluation.unwrap(), second.evaluation.unwrap());
    assert_eq!((before.pages, before.failing), (all, all), "no page names its language");
    assert_eq!(now, EvaluationCounts { took_us: 0, ..before }, "what was detected holds for what has not changed");
    let answers = answers_of_last_run(&swarm);
    assert_eq!(answers.iter().filter(|status| **status == 304).count() as u64, all, "{answers:?}");
    assert!(!answers.contains(&200), "{answers:?}");
    assert_eq!(swarm.metrics("nearcrawl_not_modified_pages_total").await as u64, all);

    // One page is another, two are new, and two are gone: one answers 404, and to one no link leads any more.
    // From what was measured, depth 1 is enough for both other museums, and depth 2 is all there is.
    let plan = swarm.cli(0, &["plan", "--coverage", "0.9", "--tld", "test", "--json"]).await;
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    assert_eq!((&plan["grounds"]["kind"], &plan["chosen"]["depth"]), (&"measured".into(), &1.into()), "{plan}");
    assert_eq!((&plan["total"]["servers"], &plan["total"]["requests"]), (&1.into(), &10.into()), "home, rooms and robots.txt: {plan}");

    assert!(swarm.daemons[0].stop().await);
    museum.put("/room1", &["/room1/case", "/new"]);
    museum.put("/new", &["/new/too"]);
    museum.put("/new/too", &[]);
    museum.remove("/room5/case");
    museum.put("/room6", &["/"]);
    swarm.start([0]).await;
    let third = run_is_over(&mut swarm, 3).await;
    let changes = third.changes.unwrap();
    let expected = Changes {
        compared_run: 2,
        pages_before: all,
        new: 2,
        changed: 2,
        unchanged: all - 4,
        not_modified: all - 4,
        gone: 2,
        missed: 0,
        bytes_saved: changes.bytes_saved,
    };
    assert_eq!(changes, expected);
    assert_eq!((third.pages, third.known), (all, third.accounted()));
    let sent = answers_of_last_run(&swarm).iter().filter(|status| **status == 200).count();
    assert_eq!(sent, 4, "only what is new or another was sent");
    let pages: Vec<u64> = rows(&swarm.cli(0, &["export", "history"]).await).iter().map(|run| run["pages"].as_u64().unwrap()).collect();
    assert_eq!(pages, [first.pages, second.pages, third.pages]);
    assert!(swarm.stop().await);
}

/// Lines of JSON.
fn rows(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn three_runs_are_on_record_across_restarts_and_two_of_them_are_compared() {
    let ground = Ground::claim();
    let (places, museum) = (Places::new(ground.net, 1, 7), Arc::new(Museum::new()));
    let IpAddr::V4(first) = places.lands[0].subnet.first() else { unreachable!("places are IPv4") };
    let names: Vec<(Host, IpAddr)> = vec![(HOST.parse().unwrap(), Ipv4Addr::from_bits(first.to_bits() + 9).into())];
    let habits = Habits { delay_factor: 0, min_delay_ms: 20, ..Habits::default() };
    let point = places.access_points[0];
    let mut swarm = Swarm::prepare(ground, museum.clone(), places.registry_files(), names, &[point], habits).await;
    swarm.start([0]).await;
    swarm.seed(0, &[format!("http://{HOST}:8080/")]).await;
    let mut pages = vec![run_is_over(&mut swarm, 1).await.pages];
    swarm.daemons[0].kill().await;
    museum.put("/room1", &["/room1/case", "/new"]);
    museum.put("/new", &[]);
    swarm.revisit_after(0, "10s");
    swarm.start([0]).await;
    pages.push(run_is_over(&mut swarm, 2).await.pages);
    assert!(swarm.daemons[0].stop().await);
    museum.put("/room2", &[]);
    museum.remove("/room3");
    swarm.start([0]).await;
    pages.push(run_is_over(&mut swarm, 3).await.pages);
    assert!(swarm.daemons[0].stop().await);
    swarm.revisit_after(0, "1h");
    swarm.start([0]).await;

    let runs = rows(&swarm.cli(0, &["export", "history"]).await);
    let said: Vec<_> = runs.iter().map(|run| (run["host"].clone(), run["run"].as_u64(), run["pages"].as_u64())).collect();
    let expected: Vec<_> = (1..).zip(&pages).map(|(run, pages)| (HOST.into(), Some(run), Some(*pages))).collect();
    assert_eq!(said, expected, "{runs:?}");
    let trend: serde_json::Value =
        serde_json::from_str(&swarm.cli(0, &["trend", "--from", "1", "--to", "3", "--by", "tld", "--json"]).await).unwrap();
    let total = &trend["total"];
    assert_eq!(
        (&total["servers"], &total["pages"]["from"], &total["pages"]["to"]),
        (&1.into(), &pages[0].into(), &pages[2].into()),
        "{trend}"
    );
    assert_eq!(total["pages"]["difference"].as_i64(), Some(pages[2] as i64 - pages[0] as i64), "{trend}");
    assert_eq!(trend["by"]["tld"]["test"], *total, "{trend}");
    assert_eq!(total["pages_before"], pages[1], "{trend}");
    let address = swarm.daemons[0].multiaddress();
    let member = crate::support::nearcrawl(&["export", "history", "--member", &address, "--format", "csv"]).await;
    assert_eq!((member.code, member.said.lines().count()), (Some(0), 4), "{member:?}");
    assert!(swarm.stop().await);
}

#[tokio::test]
async fn pages_of_a_run_without_evaluation_are_fetched_whole_once_it_is_switched_on() {
    let ground = Ground::claim();
    let (places, museum) = (Places::new(ground.net, 1, 7), Arc::new(Museum::new()));
    let IpAddr::V4(first) = places.lands[0].subnet.first() else { unreachable!("places are IPv4") };
    let names: Vec<(Host, IpAddr)> = vec![(HOST.parse().unwrap(), Ipv4Addr::from_bits(first.to_bits() + 9).into())];
    let habits = Habits { delay_factor: 0, min_delay_ms: 20, crawl: "evaluation = false".to_owned(), ..Habits::default() };
    let point = places.access_points[0];
    let mut swarm = Swarm::prepare(ground, museum.clone(), places.registry_files(), names, &[point], habits).await;
    swarm.start([0]).await;
    swarm.seed(0, &[format!("http://{HOST}:8080/")]).await;
    let first = run_is_over(&mut swarm, 1).await;
    assert_eq!((first.pages, first.evaluation, first.evaluation_rules), (museum.pages(), None, None));

    assert!(swarm.daemons[0].stop().await);
    swarm.crawl_with("evaluation = true");
    swarm.revisit_after(0, "10s");
    swarm.start([0]).await;
    let second = run_is_over(&mut swarm, 2).await;
    let evaluation = second.evaluation.unwrap();
    assert_eq!((evaluation.pages, evaluation.failing, second.evaluation_rules), (museum.pages(), museum.pages(), Some(RULE_SET)));
    assert!(!answers_of_last_run(&swarm).contains(&304));
    assert_eq!(second.changes.map(|changes| changes.unchanged), Some(museum.pages()));

    let third = run_is_over(&mut swarm, 3).await;
    assert_eq!((third.evaluation.map(|sums| sums.pages), third.bytes), (Some(museum.pages()), 0), "those are evaluated");
    assert!(swarm.stop().await);
}
