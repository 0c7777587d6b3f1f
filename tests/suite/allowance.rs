//! Tests that a daemon uses no more of its operator's line than he allows, and none while he does not.
//!
//! They run real daemons, and servers that count.

use crate::support::{Ground, Habits, QUICK_TIMERS, Swarm, nearcrawl};
use nearcrawl_lab::demo::world::Places;
use nearcrawl_lab::web::server::{HttpAnswer, HttpSite};
use nearcrawl_model::{
    time::WallTime,
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
    let mut swarm = prepared(1, site, allowance, 20).await;
    swarm.start([0]).await;
    swarm
}

/// So many daemons that are not started yet, and servers that rest so long between requests.
async fn prepared(daemons: usize, site: LongPages, allowance: &str, min_delay_ms: u64) -> Swarm {
    let ground = Ground::claim();
    let places = Places::new(ground.net, daemons, 7);
    // The first subnet is the first daemon's own network, which moves to nobody.
    let IpAddr::V4(first) = places.lands[daemons - 1].subnet.first() else { unreachable!("places are IPv4") };
    let name = |number: u32| -> (Host, IpAddr) {
        (format!("h{number}.ke.test").parse().unwrap(), Ipv4Addr::from_bits(first.to_bits() + 9 + number).into())
    };
    let names = (0..SERVERS).map(name).collect();
    let timers = Box::leak(format!("{QUICK_TIMERS}\n[allowance]\ntime_zone = \"UTC\"\n{allowance}").into_boxed_str());
    let habits = Habits { delay_factor: 0, min_delay_ms, timers, ..Habits::default() };
    let points = &places.access_points[..daemons];
    Swarm::prepare(ground, Arc::new(site), places.registry_files(), names, points, habits).await
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

/// Waits until the servers were asked for something new. (A request takes milliseconds: that one is under way may never be seen.)
async fn until_it_asks(swarm: &mut Swarm) {
    let before = asked(swarm);
    let log = swarm.log().clone();
    let has_asked = async || if log.requests().len() > before { Ok(()) } else { Err("nothing was asked".to_owned()) };
    swarm.until("the servers are asked", LONG_ENOUGH, has_asked).await;
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
    until_it_asks(&mut swarm).await;
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
async fn a_daemon_that_uses_more_memory_than_it_may_asks_nothing_until_it_may_use_more() {
    let mut swarm = swarm(LongPages::new(5, 1_000), "memory = \"4MiB\"").await;
    seed(&swarm).await;
    let full = until_state(&mut swarm, State::Stopped).await;
    assert!(full.state_text.contains("the 4 MiB of memory that it may (allowance.memory"), "{}", full.state_text);
    assert!(full.allowance.memory_bytes > 4 << 20 && full.allowance.memory_limit_bytes == Some(4 << 20), "{:?}", full.allowance);
    assert!(full.allowance.notes_text.iter().any(|note| note.contains("no further subnets")), "{:?}", full.allowance);
    stays_quiet(&swarm).await;
    let pages = |swarm: &Swarm| swarm.log().requests().into_iter().filter(|seen| seen.method == "GET").count();
    let early = pages(&swarm);
    assert!(early <= SERVERS as usize * 2, "what was asked before the first look: {early}");
    let file = swarm.common.directory.join(format!("{}.toml", swarm.daemons[0].address));
    let text = std::fs::read_to_string(&file).unwrap();
    swarm.daemons[0].kill().await;
    std::fs::write(&file, text.replace("memory = \"4MiB\"", "memory = \"4GiB\"")).unwrap();
    swarm.start([0]).await;
    let done = until_state(&mut swarm, State::Idle).await;
    assert_eq!((done.work.pages, done.allowance.memory_limit_bytes), (6 * u64::from(SERVERS), Some(4 << 30)));
    assert!(done.allowance.notes_text.is_empty(), "{:?}", done.allowance);
    let said = swarm.cli(0, &["status"]).await;
    assert!(said.contains(" of 4.3 GB"), "{said}");
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

#[tokio::test]
async fn a_rate_holds_over_all_servers_and_costs_no_page() {
    const RATE: u64 = 128 << 10;
    let mut swarm = swarm(LongPages::new(4, 100_000), "crawl_rate = \"128KiB\"").await;
    let begun = status(&swarm).await;
    let since = std::time::Instant::now();
    seed(&swarm).await;
    let mut most = 0.0f64;
    let all = loop {
        let before = since.elapsed();
        let status = status(&swarm).await;
        let moved = status.allowance.day_bytes - begun.allowance.day_bytes;
        // What a tenth of a second brings may be ahead of it.
        most = most.max(moved as f64 - since.elapsed().as_secs_f64() * RATE as f64);
        if status.state == State::Idle {
            break (before, moved);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let (took, moved) = all;
    assert!(took >= Duration::from_secs(10), "{took:?}");
    assert!(moved >= 1_500_000 && most <= (RATE / 10) as f64, "{moved} bytes in {took:?}, {most} ahead of the rate");
    let records = swarm.records(0).await.unwrap();
    assert_eq!(records.iter().map(|record| (record.pages, record.failed)).fold((0, 0), |(a, b), (c, d)| (a + c, b + d)), (20, 0));
    let said = swarm.cli(0, &["status"]).await;
    assert!(said.contains("at most 128.0 KiB a second") || said.contains("at most 131"), "{said}");
    assert!(swarm.stop().await);
}

#[tokio::test]
async fn questions_and_bytes_among_members_are_counted_and_kept_across_starts() {
    let mut swarm = prepared(2, LongPages::new(5, 1_000), "", 20).await;
    swarm.start([0, 1]).await;
    seed(&swarm).await;
    let urls = [0, 1].map(|daemon: usize| format!("http://{}:4880/api/status", swarm.daemons[daemon].address));
    let client = nearcrawl::io::client::client().no_proxy().build().unwrap();
    let ask = async |url: &str| -> Result<StatusView, String> {
        client.get(url).send().await.map_err(|why| why.to_string())?.json().await.map_err(|why| why.to_string())
    };
    let all = swarm
        .until("all is fetched, and both have talked", LONG_ENOUGH, async || {
            let (status, other) = (ask(&urls[0]).await?, ask(&urls[1]).await?);
            // A name is looked up by one of the two, for both.
            let questions = status.allowance.dns_questions + other.allowance.dns_questions;
            if status.allowance.swarm_day_bytes > 20_000 && questions > 0 && status.allowance.day_bytes > 1_000 {
                Ok(status)
            } else {
                Err(format!("{:?}", status.allowance))
            }
        })
        .await;
    // A kill may cost up to 32 MiB of what is counted without a limit; a stop in good order costs nothing.
    assert!(swarm.daemons[0].stop().await);
    swarm.start([0]).await;
    let after = status(&swarm).await;
    assert!(after.allowance.swarm_day_bytes >= all.allowance.swarm_day_bytes, "{:?}", after.allowance);
    let said = swarm.cli(0, &["status"]).await;
    assert!(said.contains("swarm bytes") && said.contains("to name servers"), "{said}");
    assert!(swarm.stop().await);
}

/// The time of day in UTC, so many minutes from now.
fn time_of_day(minutes: i64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let minute = (i64::try_from(now / 60).unwrap() + minutes).rem_euclid(1_440);
    format!("{:02}:{:02}", minute / 60, minute % 60)
}

async fn status_of(swarm: &Swarm, daemon: usize) -> StatusView {
    serde_json::from_str(&swarm.cli(daemon, &["status", "--json"]).await).unwrap()
}

#[tokio::test]
async fn before_its_hours_end_a_daemon_gives_what_has_work_to_one_that_is_awake() {
    // Pages for many minutes.
    let mut swarm = prepared(2, LongPages::new(900, 1_000), "", 1_000).await;
    let path = swarm.common.directory.join(format!("{}.toml", swarm.daemons[0].address));
    let text = std::fs::read_to_string(&path).unwrap();
    let hours = format!("[allowance]\nhours = [\"{}-{}\"]\nhand_over_before = \"1m\"", time_of_day(-120), time_of_day(3));
    std::fs::write(&path, text.replace("[allowance]", &hours)).unwrap();
    swarm.start([0, 1]).await;
    // Who is paused is given nothing: the one whose hours end gets it.
    swarm.cli(1, &["pause"]).await;
    seed(&swarm).await;
    until_it_asks(&mut swarm).await;
    let owned = status_of(&swarm, 0).await.subnets_owned;
    assert!(owned > 0 && status_of(&swarm, 1).await.work.pages == 0);
    swarm.cli(1, &["resume"]).await;
    let url = |swarm: &Swarm, daemon: usize| format!("http://{}:4880/api/status", swarm.daemons[daemon].address);
    let (here, there) = (url(&swarm, 0), url(&swarm, 1));
    let client = nearcrawl::io::client::client().no_proxy().build().unwrap();
    let ask = async |url: &str| -> Result<StatusView, String> {
        client.get(url).send().await.map_err(|why| why.to_string())?.json().await.map_err(|why| why.to_string())
    };
    let told = swarm
        .until("it says what it will do", Duration::from_secs(240), async || {
            let status = ask(&here).await?;
            if status.allowance.notes_text.is_empty() { Err(status.state_text) } else { Ok(status.allowance.notes_text) }
        })
        .await;
    assert!(told[0].contains("allowance.hand_over_before"), "{told:?}");
    swarm
        .until("the other goes on while it rests", Duration::from_secs(150), async || {
            let (gone, other) = (ask(&here).await?, ask(&there).await?);
            let is_so = gone.state == State::Paused && other.work.pages > 0 && other.state != State::Paused;
            if is_so { Ok(()) } else { Err(format!("{}; {}, {} pages", gone.state_text, other.state_text, other.work.pages)) }
        })
        .await;
    let before = status_of(&swarm, 0).await.work.requests;
    let mut pages: Vec<_> = swarm.log().requests().into_iter().filter(|seen| seen.method == "GET" && seen.path != "/robots.txt").collect();
    let all = pages.len();
    pages.sort_by(|a, b| (&a.host, &a.path).cmp(&(&b.host, &b.path)));
    pages.dedup_by(|a, b| (&a.host, &a.path) == (&b.host, &b.path));
    assert_eq!(all, pages.len(), "each page once, whoever asks");
    assert_eq!(status_of(&swarm, 0).await.work.requests, before);
    assert!(swarm.stop().await);
}

#[tokio::test]
async fn no_request_begins_after_the_end_of_its_hours() {
    let since_epoch = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    // Time for the start and some requests.
    let minutes = if since_epoch().as_secs() % 60 < 30 { 1 } else { 2 };
    let ends_at = Duration::from_secs((since_epoch().as_secs() / 60 + minutes) * 60);
    let hours = format!("hours = [\"{}-{}\"]\nhand_over_before = \"0s\"", time_of_day(-120), time_of_day(minutes as i64));
    let mut swarm = swarm(LongPages::new(6_000, 1_000), &hours).await;
    seed(&swarm).await;
    until_it_asks(&mut swarm).await;
    let log = swarm.log().clone();
    tokio::time::sleep(ends_at.saturating_sub(since_epoch())).await;
    let ended = log.now().saturating_sub(since_epoch().saturating_sub(ends_at));
    let paused = until_state(&mut swarm, State::Paused).await;
    assert!(paused.state_text.contains("allowance.hours"), "{}", paused.state_text);
    stays_quiet(&swarm).await;
    let requests = log.requests();
    let in_the_last_second = requests.iter().filter(|seen| seen.start + Duration::from_secs(1) > ended && seen.start <= ended).count();
    let late: Vec<_> = requests.iter().filter(|seen| seen.start > ended).map(|seen| seen.start - ended).collect();
    println!("{} requests, {in_the_last_second} in the last second, and after the end {late:?}", requests.len());
    assert!(in_the_last_second > 10, "it asks up to the end");
    // From the daemon's look at its clock to the server's takes a moment.
    assert!(late.iter().all(|after| *after < Duration::from_millis(50)), "{late:?}");
    // What is on record says the same.
    let state = swarm.common.directory.join(swarm.daemons[0].address.to_string()).display().to_string();
    let said = nearcrawl(&["log", "--json", "--state", &state]).await.said;
    let begun = said.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let begun: Vec<WallTime> = begun.filter_map(|line| line["asked_at"].as_str().and_then(|at| at.parse().ok())).collect();
    assert!(begun.len() > 10 && begun.iter().all(|at| at.0 <= ends_at.as_millis() as u64), "{:?} of {}", begun.iter().max(), begun.len());
    assert!(swarm.stop().await);
}

/// A file without content takes room as any other one counts, and needs none.
#[tokio::test]
async fn a_daemon_whose_files_take_the_disk_that_they_may_asks_nothing_until_they_take_less() {
    const DISK: u64 = 64 << 20;
    let mut swarm = swarm(LongPages::new(6_000, 1_000), "disk = \"64MiB\"").await;
    seed(&swarm).await;
    let log = swarm.log().clone();
    let asks = async |more: usize| if log.requests().len() >= more { Ok(()) } else { Err("it asks little".to_owned()) };
    swarm.until("it is at work", LONG_ENOUGH, async || asks(20).await).await;
    let ballast = swarm.common.directory.join(swarm.daemons[0].address.to_string()).join("ballast");
    std::fs::File::create(&ballast).unwrap().set_len(DISK).unwrap();
    let full = until_state(&mut swarm, State::Stopped).await;
    assert!(full.state_text.contains("64 MiB of the disk") && full.state_text.contains("allowance.disk"), "{}", full.state_text);
    assert_eq!(full.allowance.disk_limit_bytes, Some(DISK));
    // What was under way may end.
    let seen = std::cell::Cell::new((0, 0));
    let is_quiet = async || {
        let (asked, times) = (log.requests().len(), seen.get().1 + 1);
        seen.set((asked, if asked == seen.get().0 { times } else { 0 }));
        if times > 20 { Ok(()) } else { Err(format!("{asked} requests")) }
    };
    swarm.until("what was under way has ended", LONG_ENOUGH, is_quiet).await;
    stays_quiet(&swarm).await;
    let before = asked(&swarm);
    std::fs::remove_file(&ballast).unwrap();
    swarm.until("it asks again", LONG_ENOUGH, async || asks(before + 20).await).await;
    let said = swarm.cli(0, &["status"]).await;
    assert!(said.contains("(allowance.disk)"), "{said}");
    assert!(swarm.stop().await);
}
