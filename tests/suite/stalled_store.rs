//! Test that a daemon whose store stands still stays in its swarm, and answers as quickly as one beside it whose store does not.
//!
//! Both are asked the same at the same moment over every GET route that the daemon's description names. What makes both late is the
//! machine's; the store's is what only one has.

use crate::support::{Ground, Habits, Judge, SmallWeb, Swarm};
use futures::future::join;
use nearcrawl_lab::demo::daemons::API_PORT;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::MissedTickBehavior;

/// For how long the store stands still.
const STANDS_STILL: Duration = Duration::from_secs(10);

/// By so much an answer may be later than it would be with another store.
const MAX_LATE: Duration = Duration::from_millis(100);

/// Answers within this time of one another were given on an equally busy machine.
const SAME_TIME: Duration = Duration::from_millis(500);

/// How often all routes are asked. Asked without a pause, the daemons and the servers would have nothing else to do.
const ROUND: Duration = Duration::from_millis(250);

/// How long the crawl may take until it is far enough, and to its end.
const LONG_ENOUGH: Duration = Duration::from_secs(90);

/// The least pause between two requests to a server.
const MIN_DELAY: Duration = Duration::from_millis(500);

/// One question to both daemons.
struct Asked {
    route: String,
    at: Instant,
    /// How long the answers took: with the stalled store, and with the other one.
    took: [Duration; 2],
    answers: [String; 2],
}

/// What a parameter of a route can stand for. `NEW` is a name that nobody has heard before, `ME` the daemon that is asked.
fn values(parameter: &str, route: &str, web: &SmallWeb) -> Vec<String> {
    let (host, address) = &web.hosts[1];
    match (parameter, route) {
        ("q", _) => [web.url(1, 3), host.to_string(), address.to_string(), format!("{address}/32"), "NEW".to_owned()].to_vec(),
        ("by", "/api/cross-table") => vec!["country,tld".to_owned()],
        ("by", _) => vec!["country".to_owned()],
        ("of", _) => vec!["ME".to_owned()],
        ("after", "/api/ownership") => vec![web.places.lands[0].subnet.to_string()],
        ("after", _) => vec![host.to_string()],
        ("question", "/api/sums") => vec!["NEW".to_owned()],
        ("limit", _) => vec!["3".to_owned()],
        ("address", _) => vec![address.to_string()],
        ("from" | "until", _) => vec!["2026-11-26T08:15:00Z".to_owned()],
        // Pages and links are read from the disk, and wait for it.
        ("rows", _) => vec!["hosts".to_owned()],
        // These are nothing alone; and there is no survey here.
        ("run" | "sequence" | "part", _) | ("name", "/api/survey" | "/api/survey/probes") => Vec::new(),
        _ => panic!("{route} has a parameter {parameter:?}, of which this test knows no value"),
    }
}

/// A route with one more parameter.
fn with(route: &str, parameter: &str) -> String {
    let mark = if route.contains('?') { '&' } else { '?' };
    format!("{route}{mark}{parameter}")
}

/// All GET routes of a daemon's own description: with what they need, and with each value of each of their other parameters.
fn routes(description: &Value, web: &SmallWeb) -> Vec<String> {
    let mut all = Vec::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        let Some(get) = methods.get("get") else { continue };
        let parameters = get["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
        let named = |parameter: &Value| {
            assert_eq!(parameter["in"], "query", "{path}: {parameter}");
            let name = parameter["name"].as_str().unwrap();
            values(name, path, web).into_iter().map(|value| format!("{name}={value}")).collect::<Vec<_>>()
        };
        let (needed, others): (Vec<_>, Vec<_>) = parameters.iter().partition(|parameter| parameter["required"] == true);
        let needed = needed.into_iter().map(named).fold(vec![path.clone()], |begun, values| {
            let with = |route: &String| values.iter().map(|value| with(route, value)).collect::<Vec<_>>();
            begun.iter().flat_map(with).collect()
        });
        for value in others.into_iter().flat_map(named) {
            all.extend(needed.iter().map(|route| with(route, &value)));
        }
        all.extend(needed);
    }
    all
}

/// Asks both daemons the same, all routes in turn, round after round for as long as it lasts.
async fn ask_both(client: &reqwest::Client, daemons: &[(Ipv4Addr, String); 2], routes: &[String], lasts: Duration) -> Vec<Asked> {
    let (begun, mut all) = (Instant::now(), Vec::new());
    let mut round = tokio::time::interval(ROUND);
    round.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while begun.elapsed() < lasts {
        round.tick().await;
        // A round that began in time must not outlast the stall.
        for route in routes.iter().take_while(|_| begun.elapsed() < lasts + SAME_TIME / 2) {
            // Each has a name of its own, so that neither learns it from the other.
            let names = [0, 1].map(|who| format!("unheard-{}-{who}.test", all.len()));
            let at = Instant::now();
            let ask = |who: usize| {
                let (point, id) = &daemons[who];
                let url = format!("http://{point}:{API_PORT}{}", route.replace("NEW", &names[who]).replace("=ME", &format!("={id}")));
                let client = client.clone();
                async move {
                    let asked = Instant::now();
                    let answer = client.get(&url).send().await.unwrap();
                    assert!(answer.status().is_success(), "{url}: {}", answer.status());
                    let text = answer.text().await.unwrap();
                    (asked.elapsed(), text)
                }
            };
            let ((stalled, says), (control, other_says)) = join(ask(0), ask(1)).await;
            all.push(Asked { route: route.clone(), at, took: [stalled, control], answers: [says, other_says] });
        }
    }
    all
}

/// By how much the answers of one were later than the slowest of the other at about the same time, at most; by route.
fn lateness(all: &[Asked], who: usize) -> BTreeMap<&str, Duration> {
    let mut worst = BTreeMap::<&str, Duration>::new();
    for asked in all {
        let meanwhile = all.iter().filter(|other| other.at.max(asked.at) - other.at.min(asked.at) <= SAME_TIME);
        let usual = meanwhile.map(|other| other.took[1 - who]).max().unwrap_or_default();
        let late = worst.entry(&asked.route).or_default();
        *late = (*late).max(asked.took[who].saturating_sub(usual));
    }
    worst
}

/// Prints how long the slowest answers took, and by how much those of the first one were late; at most so much is noise.
fn compare(all: &[Asked]) -> (BTreeMap<&str, Duration>, Duration) {
    let slowest = |route: &str, who: usize| all.iter().filter(|asked| asked.route == route).map(|asked| asked.took[who]).max().unwrap();
    let (late, noise) = (lateness(all, 0), lateness(all, 1).into_values().max().unwrap_or_default());
    println!("{:>9} {:>9} {:>9}  route; slowest of {} answers, in ms", "stalled", "control", "late", all.len());
    for (route, late) in &late {
        let [stalled, control, late] = [slowest(route, 0), slowest(route, 1), *late].map(|took| took.as_secs_f64() * 1e3);
        println!("{stalled:9.1} {control:9.1} {late:9.1}  {route}");
    }
    println!("the control was up to {noise:?} later than the other");
    (late, noise)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {text}"))
}

/// What the answers during the stall say: nobody is missed, and the one says that its store does not answer.
fn check_answers(all: &[Asked]) {
    for Asked { answers, .. } in all.iter().filter(|asked| asked.route == "/api/status") {
        for status in answers {
            assert_eq!(json(status)["members"]["alive"], 2, "{status}");
        }
    }
    let last = |route: &str| all.iter().rfind(|asked| asked.route == route).map(|asked| asked.answers.each_ref().map(|text| json(text)));
    let [stalled, control] = last("/api/status").unwrap();
    let silent = stalled["store"]["silent_for_ms"].as_u64().unwrap_or_default();
    assert!(silent > STANDS_STILL.as_millis() as u64 / 2, "{stalled}");
    assert_eq!(control["store"]["silent_for_ms"], Value::Null, "{control}");
    for route in all.iter().map(|asked| &asked.route).filter(|route| route.starts_with("/api/why")) {
        let [stalled, control] = last(route).unwrap();
        assert!(stalled["store_silent_for_ms"].as_u64() > Some(1_000), "{route}: {stalled}");
        assert!(stalled["answer_text"].as_str().unwrap().contains("has not answered for"), "{route}: {stalled}");
        assert_eq!(control["store_silent_for_ms"], Value::Null, "{route}: {control}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_whose_store_stands_still_answers_as_one_whose_store_does_not() {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 8, 60, 10));
    let points = [0, 1].map(|point| web.places.access_points[point]);
    let habits = Habits { threshold_ms: 4, min_delay_ms: MIN_DELAY.as_millis() as u64, ..Habits::default() };
    let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &points, habits).await;
    let (expected, log) = (web.expected(&web.seeds()), swarm.log().clone());
    let judge = Judge { expected: &expected, log: &log, min_delay: MIN_DELAY };
    let stall = swarm.common.directory.join("stall");
    let environment = [("NEARCRAWL_STALL_STORE", stall.to_str().unwrap())];
    swarm.daemons[0].start_with(&swarm.common, &environment).unwrap();
    swarm.start([1]).await;
    swarm.seed(0, &web.seeds()).await;
    swarm.owned_by_the_living(&web.subnets(), LONG_ENOUGH).await;
    let wanted = expected.fetched.len() / 5;
    let far_enough = async || if judge.fetched() >= wanted { Ok(()) } else { Err(format!("{} URLs", judge.fetched())) };
    swarm.until("a fifth is fetched", LONG_ENOUGH, far_enough).await;
    let client = nearcrawl::io::client::client().no_proxy().build().unwrap();
    let description = client.get(format!("http://{}:{API_PORT}/openapi.json", points[0])).send().await.unwrap().text().await.unwrap();
    let routes = routes(&json(&description), &web);
    assert!(["/api/status", "/api/why?q=NEW", "/metrics", "/"].iter().all(|route| routes.contains(&(*route).to_owned())), "{routes:?}");
    let daemons = [0, 1].map(|who| (points[who], swarm.daemons[who].access_point.to_string()));
    let before = ask_both(&client, &daemons, &routes, Duration::from_secs(2)).await;
    let (late, noise) = compare(&before);
    let usual = late.into_values().chain([noise]).max().unwrap_or_default();

    std::fs::write(&stall, "").unwrap();
    // By a clock of its own: who waits for the store is answered in the end, and found to be late.
    let going_on = std::thread::spawn(move || {
        std::thread::sleep(STANDS_STILL);
        std::fs::remove_file(&stall).unwrap();
    });
    let during = ask_both(&client, &daemons, &routes, STANDS_STILL - SAME_TIME).await;
    going_on.join().unwrap();
    let (late, noise) = compare(&during);
    for (route, late) in late {
        assert!(late <= MAX_LATE + noise.max(usual), "{route} was answered {late:?} late; {noise:?} and {usual:?} are noise");
    }
    check_answers(&during);
    assert!(judge.fetched() < expected.fetched.len(), "everything was fetched before the store went on");

    let (theirs, asked) = (swarm.held_by(0, 1).await, log.len());
    swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
    let went_on = log.since(asked).iter().filter(|request| theirs.iter().any(|subnet| subnet.contains(request.server))).count();
    assert!(went_on > 0, "asked none of its servers when its store went on");
    swarm.agree(expected.pages() as u64, LONG_ENOUGH).await;
    judge.check(&[]);
    assert!(swarm.stop().await);
}
