//! Does a daemon use no more of its operator's line than he allows, and none while he does not? Real daemons, and servers that count.

use crate::support::{Ground, Habits, QUICK_TIMERS, Swarm};
use nearcrawl_lab::demo::world::Places;
use nearcrawl_lab::web::server::{HttpAnswer, HttpSite};
use nearcrawl_model::{
    url::Host,
    view::{State, StatusView},
};
use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Duration,
};

const LONG_ENOUGH: Duration = Duration::from_secs(60);

/// The least limit that can be configured.
const LIMIT: u64 = 16 << 20;

/// Several servers, each with a front page that links to long pages.
struct LongPages {
    pages: usize,
    text: String,
}

impl LongPages {
    fn new(pages: usize, bytes: usize) -> LongPages {
        LongPages { pages, text: "Masks, drums and stools. ".repeat(bytes / 25) }
    }
}

impl HttpSite for LongPages {
    fn respond(&self, _: &str, path: &str) -> HttpAnswer {
        match path {
            "/" => HttpAnswer::html((0..self.pages).map(|page| format!("<a href=\"/{page}\">on</a>")).collect::<String>()),
            "/robots.txt" => HttpAnswer::status(404),
            _ => HttpAnswer::html(format!("<p>{}", self.text)),
        }
    }
}

const SERVERS: u32 = 4;

async fn swarm(site: LongPages, allowance: &str) -> Swarm {
    let ground = Ground::claim();
    let places = Places::new(ground.net, 1, 7);
    let IpAddr::V4(first) = places.lands[0].subnet.first() else { unreachable!("places are IPv4") };
    let name = |number: u32| -> (Host, IpAddr) {
        (format!("h{number}.ke.test").parse().unwrap(), Ipv4Addr::from_bits(first.to_bits() + 9 + number).into())
    };
    let names = (0..SERVERS).map(name).collect();
    let timers = Box::leak(format!("{QUICK_TIMERS}\n[allowance]\ntime_zone = \"UTC\"\n{allowance}").into_boxed_str());
    let habits = Habits { delay_factor: 0, min_delay_ms: 20, timers, ..Habits::default() };
    let point = places.access_points[0];
    let mut swarm = Swarm::prepare(ground, Arc::new(site), places.registry_files(), names, &[point], habits).await;
    swarm.start([0]).await;
    swarm
}

async fn seed(swarm: &Swarm) {
    let seeds: Vec<String> = (0..SERVERS).map(|number| format!("http://h{number}.ke.test:8080/")).collect();
    swarm.seed(0, &seeds).await;
}

async fn status(swarm: &Swarm) -> StatusView {
    serde_json::from_str(&swarm.cli(0, &["status", "--json"]).await).unwrap()
}

async fn until_state(swarm: &mut Swarm, state: State) -> StatusView {
    let url = format!("http://{}:4880/api/status", swarm.daemons[0].address);
    let client = nearcrawl::io::client::client().no_proxy().build().unwrap();
    swarm
        .until(&format!("it is {state:?}"), LONG_ENOUGH, async || {
            let answer = client.get(&url).send().await.map_err(|why| why.to_string())?;
            let status: StatusView = answer.json().await.map_err(|why| why.to_string())?;
            if status.state == state { Ok(status) } else { Err(status.state_text) }
        })
        .await
}

/// How many requests the servers saw, those for robots.txt included.
fn asked(swarm: &Swarm) -> usize {
    swarm.log().requests().len()
}

/// Nothing is asked while the daemon looks at its clock several times.
async fn stays_quiet(swarm: &Swarm) {
    let (before, since) = (asked(swarm), status(swarm).await.uptime_ms);
    while status(swarm).await.uptime_ms < since + 3_000 {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(asked(swarm), before, "it asks all the same");
}

#[tokio::test]
async fn the_bytes_of_a_day_are_spent_once_across_kill_9_and_no_more() {
    let mut swarm = swarm(LongPages::new(100, 300_000), "crawl_per_day = \"16MiB\"").await;
    seed(&swarm).await;
    let mut started = 0;
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(700)).await;
        swarm.daemons[0].kill().await;
        swarm.start([0]).await;
        started += 1;
    }
    let spent = until_state(&mut swarm, State::Stopped).await;
    assert!(spent.state_text.contains("allowance.crawl_per_day"), "{}", spent.state_text);
    let allowance = &spent.allowance;
    assert_eq!(allowance.day_limit_bytes, Some(LIMIT));
    assert!((LIMIT..LIMIT + LIMIT / 100).contains(&allowance.day_bytes), "{allowance:?}");
    stays_quiet(&swarm).await;
    // What came to be on record, pages alone: no start may cost more than half a percent, nor what a kill made be asked for again.
    let records = swarm.records(0).await.unwrap();
    let bytes: u64 = records.iter().map(|record| record.bytes).sum();
    let lost = (started + 1) * (LIMIT / 200 + u64::from(SERVERS) * 2 * 330_000);
    assert!(bytes <= LIMIT && bytes * 106 / 100 + lost >= LIMIT, "{bytes} of pages on record");
    assert_eq!(records.iter().map(|record| record.failed).sum::<u64>(), 0, "requests that were cancelled are no failures");
    swarm.daemons[0].kill().await;
    swarm.start([0]).await;
    until_state(&mut swarm, State::Stopped).await;
    stays_quiet(&swarm).await;
    let said = swarm.cli(0, &["status"]).await;
    assert!(said.contains(" today") && said.contains("allowance.crawl_per_day"), "{said}");
    assert!(swarm.stop().await);
}

#[tokio::test]
async fn a_paused_daemon_asks_nothing_even_after_a_restart_until_it_is_resumed() {
    let mut swarm = swarm(LongPages::new(60, 1_000), "").await;
    let said = swarm.cli(0, &["pause"]).await;
    assert!(said.contains("nearcrawl resume"), "{said}");
    seed(&swarm).await;
    let paused = until_state(&mut swarm, State::Paused).await;
    assert!(paused.allowance.paused && paused.state_text.contains("paused by its operator"), "{}", paused.state_text);
    stays_quiet(&swarm).await;
    swarm.daemons[0].kill().await;
    swarm.start([0]).await;
    until_state(&mut swarm, State::Paused).await;
    stays_quiet(&swarm).await;
    assert_eq!(asked(&swarm), 0, "not even a probe");
    assert_eq!(swarm.cli(0, &["resume"]).await, "resumed\n");
    until_state(&mut swarm, State::Fetching).await;
    let said = swarm.cli(0, &["pause", "--for", "4s"]).await;
    assert!(said.starts_with("paused until 20"), "{said}");
    until_state(&mut swarm, State::Paused).await;
    // By itself it goes on, and all is fetched once.
    until_state(&mut swarm, State::Idle).await;
    let mut pages: Vec<_> = swarm.log().requests().into_iter().filter(|seen| seen.method == "GET" && seen.path != "/robots.txt").collect();
    let all = pages.len();
    pages.sort_by(|a, b| (&a.host, &a.path).cmp(&(&b.host, &b.path)));
    pages.dedup_by(|a, b| (&a.host, &a.path) == (&b.host, &b.path));
    assert_eq!((all, pages.len()), (61 * SERVERS as usize, 61 * SERVERS as usize), "each page once");
    assert!(swarm.stop().await);
}

#[tokio::test]
async fn outside_of_its_hours_it_asks_nothing() {
    // The two days after tomorrow, in UTC: not now.
    let days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() / 86_400;
    let day = |ahead: u64| days[(since + 3 + ahead) as usize % 7];
    let hours = format!("hours = [\"{},{} 00:00-24:00\"]", day(2), day(3));
    let mut swarm = swarm(LongPages::new(5, 1_000), &hours).await;
    seed(&swarm).await;
    let paused = until_state(&mut swarm, State::Paused).await;
    assert!(paused.state_text.contains("allowance.hours") && paused.state_text.contains("1 d "), "{}", paused.state_text);
    stays_quiet(&swarm).await;
    assert_eq!(asked(&swarm), 0);
    assert!(swarm.stop().await);
}
