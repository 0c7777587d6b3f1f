//! Tests of a daemon one of whose background tasks panics: real daemons that are told to panic once in each kind of task.

use crate::support::{Ground, Habits, Judge, SmallWeb, Swarm};
use nearcrawl_lab::demo::daemons::API_PORT;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    sync::Arc,
    time::{Duration, Instant},
};

/// How long a small web may take, with the pauses after failures.
const LONG_ENOUGH: Duration = Duration::from_secs(150);

/// Kinds of tasks after whose panic the daemon goes on, and how often each is to panic. In a swarm of two with
/// small pages all of them run; the others panic in `src/node/executor/tests.rs`.
const SURVIVED: &[(&str, u64)] = &[
    ("fetch", 1),
    ("connection", 1),
    ("idle connections", 1),
    ("probe", 1),
    ("resolve", 1),
    ("member transfer", 1),
    ("disk usage", 1),
    ("persisted state", 1),
    ("api", 1),
    ("api request", 1),
    ("request log", 1),
];

/// Kinds of tasks without which a daemon cannot go on: it ends and says why, so that the service manager starts it again.
const FATAL: &[&str] = &["store queue", "store thread: state", "store thread: cache", "housekeeping", "swarm"];

/// A URL is asked for this often at most, whatever fails on the way.
const MAX_ASKED: usize = 4;

async fn prepare(points: &[usize]) -> (Swarm, Arc<SmallWeb>) {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 8, 15, 10));
    let points: Vec<Ipv4Addr> = points.iter().map(|point| web.places.access_points[*point]).collect();
    let habits = Habits { threshold_ms: 4, ..Habits::default() };
    (Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &points, habits).await, web)
}

async fn status(client: &reqwest::Client, address: Ipv4Addr) -> Result<Value, String> {
    let answer = client.get(format!("http://{address}:{API_PORT}/api/status")).send().await.map_err(|why| why.to_string())?;
    let text = answer.text().await.map_err(|why| why.to_string())?;
    serde_json::from_str(&text).map_err(|why| format!("{why}: {text}"))
}

/// How many tasks of this kind have panicked, as a daemon tells.
fn panics_in(status: &Value, kind: &str) -> u64 {
    let tasks = status["tasks"].as_array().into_iter().flatten();
    tasks.filter(|task| task["name"] == *kind).filter_map(|task| task["panicked"].as_u64()).sum()
}

#[tokio::test]
async fn a_panic_in_each_kind_of_task_costs_a_piece_of_work_and_never_the_daemon() {
    let (mut swarm, web) = prepare(&[0, 1]).await;
    // Several ways into each site: the page whose reading panics may be the only one that leads on.
    let seeds: Vec<String> =
        (0..web.hosts.len()).flat_map(|host| (0..4).map(move |page| (host, page))).map(|(host, page)| web.url(host, page)).collect();
    let asked: Vec<String> = SURVIVED.iter().map(|(kind, times)| format!("{kind}={times}")).collect();
    let asked = asked.join(",");
    for daemon in 0..2 {
        swarm.daemons[daemon].start_with(&swarm.common, &[("NEARCRAWL_PANIC_IN", &asked)]).unwrap();
    }
    swarm.together().await;
    let client = nearcrawl::io::client::client().no_proxy().build().unwrap();
    let addresses: Vec<Ipv4Addr> = swarm.daemons.iter().map(|daemon| daemon.address).collect();
    let (expected, log) = (web.expected(&seeds), swarm.log().clone());
    let judge = Judge { expected: &expected, log: &log, min_delay: Duration::from_millis(100) };
    // A name whose look-up panics counts as one that has no address, for a while: these have none anyway.
    let nobody: Vec<String> = (0..16).map(|number| format!("http://nobody-{number}.test:8080/")).collect();
    swarm.seed(0, &nobody).await;
    swarm
        .until("a look-up has panicked at each", LONG_ENOUGH, async || {
            for address in &addresses {
                let status = status(&client, *address).await?;
                if panics_in(&status, "resolve") == 0 {
                    return Err(format!("none yet at {address}"));
                }
            }
            Ok(())
        })
        .await;
    swarm.seed(0, &seeds).await;
    swarm
        .until("a panic of each kind is behind them, and nothing is left to do", LONG_ENOUGH, async || {
            let (mut panicked, mut busy): (BTreeMap<String, u64>, Vec<String>) = Default::default();
            for address in &addresses {
                let status = status(&client, *address).await?;
                for task in status["tasks"].as_array().ok_or("no table of tasks")? {
                    *panicked.entry(task["name"].as_str().unwrap_or_default().to_owned()).or_default() +=
                        task["panicked"].as_u64().unwrap_or(0);
                }
                let left = ["waiting_urls", "outgoing_urls"].iter().any(|key| status[key] != 0);
                if left || status["subnets_claimed"] == 0 || status["state"] != "idle" {
                    busy.push(status["state_text"].to_string());
                }
            }
            let missing: Vec<_> = SURVIVED.iter().filter(|(kind, _)| panicked.get(*kind).is_none_or(|times| *times == 0)).collect();
            if missing.is_empty() && busy.is_empty() { Ok(()) } else { Err(format!("no panic yet in {missing:?}; {busy:?}")) }
        })
        .await;
    let (fetched, all) = (judge.fetched(), expected.fetched.len());
    println!("{fetched} of {all} URLs were fetched");
    assert!(fetched * 10 >= all * 8, "a panic costs a page or a look-up, not a site: {fetched} of {all}");
    for (url, times) in log.fetches() {
        assert!(times <= MAX_ASKED, "{url:?} was asked for {times} times");
    }
    assert!(swarm.stop().await);
}

#[tokio::test]
async fn a_panic_where_nothing_can_go_on_ends_the_daemon_and_the_next_start_goes_on() {
    let (mut swarm, web) = prepare(&[0]).await;
    let (expected, log) = (web.expected(&web.seeds()), swarm.log().clone());
    let judge = Judge { expected: &expected, log: &log, min_delay: Duration::from_millis(100) };
    for kind in FATAL {
        swarm.daemons[0].start_with(&swarm.common, &[("NEARCRAWL_PANIC_IN", &format!("{kind}=1"))]).unwrap();
        let begun = Instant::now();
        let ended = loop {
            if let Some(ended) = swarm.daemons[0].ended() {
                break ended.to_string();
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "it goes on after a panic in the {kind}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert!(ended.contains("a task panicked: ") || ended.contains("ended"), "it does not say why it ended: {ended}");
        println!("{kind}: {ended}");
    }
    swarm.start([0]).await;
    swarm.seed(0, &web.seeds()).await;
    swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
    judge.check(&[]);
    assert!(swarm.stop().await);
}
