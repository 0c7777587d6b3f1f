//! Is every request that a server saw in the log of the daemon that made it, once, with its reason? Real daemons, and what the servers saw.

use crate::support::{Ground, Habits, Judge, SmallWeb, Swarm, nearcrawl};
use serde_json::Value;
use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Duration};

const LONG_ENOUGH: Duration = Duration::from_secs(90);

/// Who asked whom for what.
type Asked = (IpAddr, String, String, String);

fn lines(said: &str) -> Vec<Value> {
    said.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"))).collect()
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

    // A site owner asks: by the address of their server, now, and an hour ago.
    let server = log.requests().last().unwrap().server.to_string();
    let asker = log.requests().last().unwrap().peer;
    let state = &states[points.iter().position(|point| IpAddr::V4(*point) == asker).unwrap()];
    let last = lines(&nearcrawl(&["log", "--json", "--state", state]).await.said).pop().unwrap();
    let (now, then) = (text(&last, "asked_at"), "2020-01-01T00:00:00Z");
    let yes = nearcrawl(&["verify", &server, &now, "--state", state]).await;
    assert!(yes.code == Some(0) && yes.said.starts_with("yes: "), "{}{}", yes.said, yes.complained);
    assert_eq!(nearcrawl(&["verify", &server, then, "--state", state]).await.code, Some(69));
    assert_eq!(nearcrawl(&["verify", "192.0.2.1", &now, "--state", state, "--within", "1s"]).await.code, Some(1));
    // People read the same lines.
    let read = nearcrawl(&["log", "--state", state]).await.said;
    assert!(read.contains(" page   ") && read.contains("a starting URL") && read.contains("first run; 200"), "{read}");
}
