//! Tests that every request that a server saw is in the log of the daemon that made it, once, with its reason.
//!
//! Real daemons are compared with what the servers saw.

use crate::support::{Ground, Habits, Judge, QUICK_TIMERS, SmallWeb, Swarm, nearcrawl};
use nearcrawl_lab::demo::daemons::API_PORT;
use nearcrawl_model::time::WallTime;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    net::IpAddr,
    path::Path,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

const LONG_ENOUGH: Duration = Duration::from_secs(90);

/// Who asked whom for what.
type Asked = (IpAddr, String, String, String);

fn lines(said: &str) -> Vec<Value> {
    said.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"))).collect()
}

/// So many minutes ago.
fn ago(minutes: u64) -> WallTime {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    WallTime(now - minutes * 60_000)
}

/// Has the log in this state directory begin with a daemon that started two hours ago and was stopped an hour later: since then it is known what
/// was asked, and what was not.
fn ran_two_hours_ago(state: &Path) {
    let (began, ended) = (ago(120), ago(60));
    let day: String = began.to_string().chars().take(10).collect();
    let (directory, file) = (state.join("requests"), state.join(format!("requests/{day}-00000.jsonl")));
    std::fs::create_dir_all(directory).unwrap();
    let mark = |at: WallTime, kind: &str| format!("{{\"asked_at\":\"{at}\",\"kind\":\"{kind}\"}}\n");
    let since = std::fs::read_to_string(&file).unwrap_or_default();
    std::fs::write(file, format!("{}{}{since}", mark(began, "begin"), mark(ended, "end"))).unwrap();
}

fn text(line: &Value, name: &str) -> String {
    line[name].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn each_request_that_a_server_saw_has_one_line_in_the_log_of_who_made_it_with_its_reason() {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 10, 12, 10));
    let points = [web.places.access_points[0], web.places.access_points[1]];
    // These daemons probe by HEAD, so the servers see probes as requests, too.
    let habits = Habits { min_delay_ms: 20, delay_factor: 0, ..Habits::default() };
    let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &points, habits).await;
    swarm.start([0]).await;
    swarm.start([1]).await;
    swarm.together().await;
    let (expected, log) = (web.expected(&web.seeds()), swarm.log().clone());
    let judge = Judge { expected: &expected, log: &log, min_delay: Duration::from_millis(20) };
    swarm.seed(0, &web.seeds()).await;
    swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
    swarm.agree(expected.pages() as u64, LONG_ENOUGH).await;
    let state = |point: &std::net::Ipv4Addr| swarm.common.directory.join(point.to_string()).display().to_string();
    let states: Vec<String> = points.iter().map(state).collect();
    assert!(swarm.stop().await);

    let mut seen: BTreeMap<Asked, usize> = BTreeMap::new();
    for request in log.requests() {
        let kind = match (request.method.as_str(), request.path.as_str()) {
            ("HEAD", _) => "probe",
            (_, "/robots.txt") => "robots",
            _ => "page",
        };
        // A probe says which host it is for, not what it asks for.
        let path = if kind == "probe" { String::new() } else { request.path };
        *seen.entry((request.peer, kind.to_owned(), request.host, path)).or_default() += 1;
    }
    let mut written: BTreeMap<Asked, usize> = BTreeMap::new();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for (point, state) in points.iter().zip(&states) {
        let ended = nearcrawl(&["log", "--json", "--state", state]).await;
        let lines = lines(&ended.said);
        let kinds: Vec<String> = lines.iter().map(|line| text(line, "kind")).collect();
        assert!(kinds.first().is_some_and(|kind| kind == "begin") && kinds.last().is_some_and(|kind| kind == "end"), "{kinds:?}");
        for line in lines.into_iter().filter(|line| !["begin", "end"].contains(&line["kind"].as_str().unwrap())) {
            *reasons.entry(text(&line, "reason")).or_default() += 1;
            let kind = text(&line, "kind");
            // Members have no web server here, by which the way to them would be measured.
            if kind != "dns" && text(&line, "reason") != "home" {
                *written.entry((IpAddr::V4(*point), kind, text(&line, "host"), text(&line, "path"))).or_default() += 1;
                assert_eq!((line["port"].as_u64(), line["failure"].as_str()), (Some(8080), None), "{line}");
            }
        }
    }
    println!("{} requests; lines by reason: {reasons:?}", log.requests().len());
    assert_eq!(written, seen);
    for reason in ["start", "link", "robots", "delegation", "lookup"] {
        assert!(reasons.contains_key(reason), "nothing was asked for by the reason {reason}: {reasons:?}");
    }

    // A site owner asks: by the address of their server, of a moment ago, and of long ago.
    let server = log.requests().last().unwrap().server.to_string();
    let asker = log.requests().last().unwrap().peer;
    let state = &states[points.iter().position(|point| IpAddr::V4(*point) == asker).unwrap()];
    let last = lines(&nearcrawl(&["log", "--json", "--state", state]).await.said).pop().unwrap();
    let (now, then) = (text(&last, "asked_at"), "2020-01-01T00:00:00Z");
    let yes = nearcrawl(&["verify", &server, &now, "--state", state]).await;
    assert!(yes.code == Some(0) && yes.said.starts_with("yes: "), "{}{}", yes.said, yes.complained);
    assert_eq!(nearcrawl(&["verify", &server, then, "--state", state]).await.code, Some(69));
    // What was asked a moment ago may be under way. Of an hour ago it is known.
    let early = nearcrawl(&["verify", "192.0.2.1", &now, "--state", state, "--within", "1s"]).await;
    assert!(early.code == Some(69) && early.complained.contains("ask again in "), "{}{}", early.said, early.complained);
    ran_two_hours_ago(Path::new(state));
    for minutes in [90, 30] {
        let none = nearcrawl(&["verify", "192.0.2.1", &ago(minutes).to_string(), "--state", state]).await;
        assert!(none.code == Some(1) && none.said.starts_with("no: "), "{}{}", none.said, none.complained);
    }
    // People read the same lines.
    let read = nearcrawl(&["log", "--state", state]).await.said;
    assert!(read.contains(" page   ") && read.contains("a starting URL") && read.contains("first run; 200"), "{read}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_member_says_who_made_a_request_and_by_which_rule_and_names_those_that_do_not_answer() {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 4, 4, 10));
    let points = [web.places.access_points[0], web.places.access_points[1]];
    let habits = Habits { min_delay_ms: 20, delay_factor: 0, ..Habits::default() };
    let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &points, habits).await;
    for point in &points {
        ran_two_hours_ago(&swarm.common.directory.join(point.to_string()));
    }
    swarm.start([0, 1]).await;
    swarm.seed(0, &web.seeds()).await;
    let expected = web.expected(&web.seeds());
    swarm.agree(expected.pages() as u64, LONG_ENOUGH).await;

    let request = swarm.log().requests().last().unwrap().clone();
    let (maker, other) = if request.peer == IpAddr::V4(points[0]) { (0, 1) } else { (1, 0) };
    let state = swarm.common.directory.join(points[maker].to_string()).display().to_string();
    let last = lines(&nearcrawl(&["log", "--json", "--state", &state]).await.said).pop().unwrap();
    let (server, now) = (request.server.to_string(), text(&last, "asked_at"));
    let api = format!("http://{}:{API_PORT}", points[other]);
    let asked = nearcrawl(&["verify", &server, &now, "--api", &api, "--json"]).await;
    let said: Value = serde_json::from_str(&asked.said).unwrap_or_else(|why| panic!("{why}: {}{}", asked.said, asked.complained));
    assert_eq!((asked.code, &said["verdict"]), (Some(0), &Value::from("yes")), "{said}");
    let members = said["members"].as_array().unwrap();
    let made = members.iter().find(|member| member["access_point"] == swarm.daemons[maker].access_point.as_str()).unwrap();
    assert!(made["lines"].as_array().unwrap().iter().any(|line| line["host"] == request.host.as_str() && line["reason"] != ""), "{said}");
    let names: Vec<&String> = made["lines"][0].as_object().unwrap().keys().collect();
    assert_eq!(names, ["asked_at", "host", "reason"], "no more is told to others");
    // A program that is no member hears nothing of private networks, as this one is.
    let multiaddress = swarm.daemons[other].multiaddress();
    let by_reader = nearcrawl(&["verify", &server, &now, "--member", &multiaddress, "--json"]).await;
    assert!(by_reader.code == Some(69) && by_reader.complained.contains("private"), "{}{}", by_reader.said, by_reader.complained);
    // What was asked a moment ago may be under way. Of an hour ago all know it, whoever asks.
    let half_an_hour_ago = ago(30).to_string();
    let early = nearcrawl(&["verify", "8.8.8.8", &now, "--api", &api]).await;
    assert!(early.code == Some(69) && early.complained.contains("ask again in "), "{}{}", early.said, early.complained);
    let ask = ["verify", "8.8.8.8", &half_an_hour_ago, "--api", &api];
    for way in [["--api", &api], ["--member", &multiaddress]] {
        let none = nearcrawl(&["verify", "8.8.8.8", &half_an_hour_ago, way[0], way[1]]).await;
        assert!(none.code == Some(1) && none.said.starts_with("no: none of 2 members"), "{}{}", none.said, none.complained);
    }
    // Programs that are no members have few turns, of which the others lose none.
    let mut refused = String::new();
    for _ in 0..8 {
        let asked = nearcrawl(&["verify", "8.8.8.8", &half_an_hour_ago, "--member", &multiaddress]).await;
        if asked.code == Some(69) {
            refused = asked.complained;
        }
    }
    assert!(refused.contains("too many readers"), "{refused}");
    assert_eq!(nearcrawl(&ask).await.code, Some(1));

    // Why it was crawled is said by its owner, whoever is asked.
    let peer = swarm.daemons[maker].access_point.clone();
    let why = nearcrawl(&["why", &request.host, "--peer", &peer, "--api", &api, "--json"]).await;
    let said: Value = serde_json::from_str(&why.said).unwrap_or_else(|failure| panic!("{failure}: {}{}", why.said, why.complained));
    assert_eq!((said["host"].as_str(), &said["owner_is_me"]), (Some(request.host.as_str()), &Value::from(true)), "{said}");

    // It has asked there lately, and says so apart from what it does not know.
    assert!(text(&said, "requests_text").contains(" at about "), "{said}");

    swarm.daemons[maker].kill().await;
    let unknown = nearcrawl(&ask).await;
    // As long as it counts as a member it is asked, and its answer could be another one.
    let named = ["did not answer", "was not asked"].map(|how| format!("{} {how}", swarm.daemons[maker].access_point));
    let is_named = named.iter().any(|named| unknown.said.contains(named));
    assert!(unknown.code == Some(69) && is_named, "{}{}", unknown.said, unknown.complained);
    let why = ["did not answer: ask again", "no record of that hour is kept of 1 member"];
    assert!(why.iter().any(|why| unknown.complained.contains(why)), "{}", unknown.complained);
    assert!(swarm.stop().await);
}

/// What is used of a limit of a daemon.
async fn used(api: &str, name: &str) -> u64 {
    let said = nearcrawl(&["status", "--json", "--api", api]).await;
    let status: Value = serde_json::from_str(&said.said).unwrap_or_else(|why| panic!("{why}: {}{}", said.said, said.complained));
    let limit = status["limits"].as_array().unwrap().iter().find(|limit| limit["name"] == name);
    limit.and_then(|limit| limit["used"].as_u64()).unwrap_or_else(|| panic!("{name}: {}", status["limits"]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_says_yes_for_a_daemon_that_is_lost_and_whose_record_it_is() {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 4, 2, 4));
    let points = [web.places.access_points[0], web.places.access_points[1]];
    let timers = Box::leak(format!("{QUICK_TIMERS}copy_record = \"1s\"\n").into_boxed_str());
    let habits = Habits { min_delay_ms: 20, delay_factor: 0, timers, ..Habits::default() };
    let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &points, habits).await;
    swarm.start([0, 1]).await;
    swarm.seed(0, &web.seeds()).await;
    let expected = web.expected(&web.seeds());
    swarm.agree(expected.pages() as u64, LONG_ENOUGH).await;
    let request = swarm.log().requests().last().unwrap().clone();
    let (maker, other) = if request.peer == IpAddr::V4(points[0]) { (0, 1) } else { (1, 0) };
    let (server, api) = (request.server.to_string(), format!("http://{}:{API_PORT}", points[other]));

    // The other one has a copy, and nothing new came for three times as long as it takes at most.
    let mut copied = (0, Instant::now());
    swarm
        .until("the record is copied", LONG_ENOUGH, async || {
            let owners = used(&api, "members whose records of requests are kept").await;
            let bytes = used(&api, "bytes of records of requests, our own and copies").await;
            if copied.0 != bytes {
                copied = (bytes, Instant::now());
            }
            let quiet = copied.1.elapsed();
            if owners == 2 && quiet > Duration::from_secs(3) { Ok(()) } else { Err(format!("{owners} records, {bytes} bytes, {quiet:?}")) }
        })
        .await;
    swarm.daemons[maker].kill().await;

    let (lost, replica) = (swarm.daemons[maker].access_point.clone(), swarm.daemons[other].access_point.clone());
    let yes = nearcrawl(&["verify", &server, &ago(0).to_string(), "--api", &api]).await;
    let from = format!("told by {replica}, which says that it keeps the record of {lost}");
    assert_eq!(yes.code, Some(0), "{}{}", yes.said, yes.complained);
    assert!(yes.said.starts_with(&format!("yes: requests to {server} ")) && yes.said.contains(&from), "{}", yes.said);
    // Of a server that nobody asked it does not say no: what was under way is known to nobody any more.
    let unknown = nearcrawl(&["verify", "8.8.8.8", &ago(0).to_string(), "--api", &api]).await;
    assert_eq!(unknown.code, Some(69), "{}{}", unknown.said, unknown.complained);
    assert!(swarm.stop().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_tells_what_members_found_and_has_one_try_where_no_daemon_runs() {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 2, 2, 0));
    let points = [web.places.access_points[0], web.places.access_points[1]];
    let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &points, Habits::default()).await;
    swarm.start([0]).await;
    let directory = swarm.common.directory.clone();
    let doctor = async |daemon: usize| -> Vec<Value> {
        let file = directory.join(format!("{}.toml", points[daemon])).display().to_string();
        let ended = nearcrawl(&["doctor", "--config", &file, "--json"]).await;
        let said: Value = serde_json::from_str(&ended.said).unwrap_or_else(|why| panic!("{why}: {}{}", ended.said, ended.complained));
        said["findings"].as_array().unwrap().iter().filter(|finding| finding["check"] == "reachability").cloned().collect()
    };
    // The second one is not started yet: the first one tries.
    let tried = doctor(1).await;
    let first = swarm.daemons[0].access_point[44..].to_owned();
    assert!(!tried.is_empty() && tried.iter().all(|finding| finding["state"] == "good"), "{tried:?}");
    assert!(text(&tried[0], "found_text").contains(&format!("…{first} reached /ip4/{}/tcp/", points[1])), "{tried:?}");
    swarm.start([1]).await;
    let found = swarm
        .until("the members have found out", LONG_ENOUGH, async || {
            let found = doctor(1).await;
            if found.iter().all(|finding| finding["state"] == "good") { Ok(found) } else { Err(format!("{found:?}")) }
        })
        .await;
    assert!(text(&found[0], "found_text").contains(&format!("…{first} connected to it")), "{found:?}");
    assert!(swarm.stop().await);
}
