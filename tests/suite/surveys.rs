//! Tests that a survey is crawled by the owners of its servers, and told by any member as the web servers' logs have it.
//!
//! They run real daemons, and the program.

use crate::support::{Ended, Ground, Habits, SmallWeb, Swarm, nearcrawl};
use nearcrawl_lab::{demo::daemons::API_PORT, web::server::Log};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    sync::Arc,
    time::Duration,
};

const LONG_ENOUGH: Duration = Duration::from_secs(90);

/// Pages of a host in a list: two levels below its root, of more that there are.
const OF_DEPTH_2: usize = 7;

/// Host → the paths of its pages that were asked for.
fn asked(log: &Log) -> BTreeMap<String, Vec<String>> {
    let mut asked: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for request in log.requests().into_iter().filter(|request| request.method == "GET" && request.path != "/robots.txt") {
        asked.entry(request.host).or_default().push(request.path);
    }
    asked
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {text}"))
}

#[tokio::test]
async fn a_survey_made_at_one_member_is_crawled_by_the_owners_and_told_by_another() {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 8, 12, 10));
    let points: Vec<Ipv4Addr> = [0, 1, 3].map(|point| web.places.access_points[point]).to_vec();
    // The configuration's scope is empty: nothing is crawled but what surveys want.
    let habits = Habits { threshold_ms: 4, tlds: "[]", ..Habits::default() };
    let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &points, habits).await;
    let log = swarm.log().clone();
    // One member answers no strangers; the others get its rows all the same.
    let configuration = swarm.common.directory.join(format!("{}.toml", points[1]));
    let text = std::fs::read_to_string(&configuration).unwrap().replacen("[swarm]\n", "[swarm]\nreaders = \"members\"\n", 1);
    std::fs::write(&configuration, text).unwrap();
    swarm.start(0..3).await;

    let host = |number: usize| web.hosts[number].0.to_string();
    let listed = [(0, "university"), (1, "museum"), (3, "university"), (5, "university")];
    let lines: Vec<String> = listed.iter().map(|(number, sector)| format!("{},{sector}\n", web.url(*number, 0))).collect();
    let list = swarm.common.write("list.csv", &format!("url,sector\n{}", lines.concat())).unwrap();
    let list = list.display().to_string();
    let made = swarm.cli(0, &["survey", "create", "unis", "--list", &list, "--depth", "2", "--licence", "CC0-1.0"]).await;
    assert!(made.contains("survey unis is made of 4 URLs at 4 hosts"), "{made}");
    // Another member's survey has two of these hosts, and calls them something else.
    let other = format!("url,sector\n{},archive\n{},archive\n", web.url(0, 0), web.url(1, 0));
    let other = swarm.common.write("other.csv", &other).unwrap().display().to_string();
    swarm.cli(1, &["survey", "create", "archives", "--list", &other, "--depth", "2"]).await;

    let whole = async || {
        let asked = asked(&log);
        let done: usize = asked.values().map(Vec::len).sum();
        if done >= listed.len() * OF_DEPTH_2 { Ok(()) } else { Err(format!("{done} pages")) }
    };
    swarm.until("the survey's pages are fetched", LONG_ENOUGH, whole).await;
    let results = async || json(&swarm.cli(2, &["results", "--survey", "unis", "--json"]).await);
    let told = loop {
        let told = results().await;
        if told["summary"]["total"]["unfinished"] == 0 && told["summary"]["total"]["pages"] == listed.len() * OF_DEPTH_2 {
            break told;
        }
        assert!(swarm.age() < LONG_ENOUGH.as_secs_f64(), "{told}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    assert_eq!(
        (&told["all_owners_answered"], &told["summary"]["total"]["servers"]),
        (&Value::Bool(true), &Value::from(listed.len())),
        "{told}"
    );
    assert_eq!(told["labels"]["sector=university"]["pages"], 3 * OF_DEPTH_2, "{told}");
    assert_eq!(told["labels"]["sector=museum"]["servers"], 1, "{told}");
    assert_eq!(told["owners"].as_object().unwrap().values().map(|servers| servers.as_u64().unwrap()).sum::<u64>(), 4);
    for of in [["--survey", "unis"].as_slice(), &["--survey", "unis", "--run", "1"]] {
        let arguments = [&["results", "--by", "label,status", "--json"], of].concat();
        let table = json(&swarm.cli(1, &arguments).await);
        let cell =
            |cell: &Value| (cell["values"].clone(), cell["counts"]["servers"].as_u64().unwrap(), cell["counts"]["pages"].as_u64().unwrap());
        let mut cells: Vec<_> = table["cells"].as_array().unwrap().iter().map(cell).collect();
        cells.sort_by_key(|(_, servers, _)| *servers);
        let expected =
            [(json!(["sector=museum", "up"]), 1, OF_DEPTH_2 as u64), (json!(["sector=university", "up"]), 3, 3 * OF_DEPTH_2 as u64)];
        assert_eq!(cells, expected, "{arguments:?}: {table}");
    }

    // As the servers have it: those of the list, as deep as it wishes, each page once.
    let seen = asked(&log);
    assert_eq!(seen.keys().cloned().collect::<BTreeSet<_>>(), listed.iter().map(|(number, _)| host(*number)).collect());
    for (name, paths) in &seen {
        assert_eq!((paths.len(), paths.iter().collect::<BTreeSet<_>>().len()), (OF_DEPTH_2, OF_DEPTH_2), "{name}: {paths:?}");
    }
    let rows = swarm.cli(2, &["export", "servers", "--survey", "unis"]).await;
    let rows: Vec<Value> = rows.lines().map(json).collect();
    assert_eq!(rows.len(), listed.len());
    for row in &rows {
        let name = row["host"].as_str().unwrap();
        assert_eq!(row["pages"], seen[name].len(), "{row}");
        let sector = listed.iter().find(|(number, _)| host(*number) == name).unwrap().1;
        assert_eq!(row["labels"], json!({"sector": [sector]}), "only what this survey says");
        assert!(row["surveys"].as_array().unwrap().iter().any(|survey| survey["name"] == "unis"), "{row}");
    }
    each_survey_has_its_own_labels(&swarm, &[host(0), host(1)]).await;
    let owners: BTreeSet<_> = rows.iter().map(|row| row["access_point"].to_string()).collect();
    assert!(owners.len() > 1, "one member owns everything: {owners:?}");
    let shown = json(&swarm.cli(1, &["survey", "show", "unis", "--json"]).await);
    assert_eq!((&shown["hosts"]["crawled"], &shown["hosts"]["not_known"]), (&Value::from(4), &Value::from(0)), "{shown}");
    assert_eq!((&shown["survey"]["licence"], &shown["survey"]["is_mine"]), (&Value::from("CC0-1.0"), &Value::Bool(false)));

    // Another survey is slower than the configuration. Paused, it asks nothing more, and its results stay.
    let slow = swarm
        .common
        .write("slow.txt", &format!("{} kind=slow\nhttp://nobody.test:8080/ kind=none\n", web.url(2, 0)))
        .unwrap()
        .display()
        .to_string();
    swarm.cli(1, &["survey", "create", "slow", "--list", &slow, "--delay", "1s"]).await;
    let count = |log: &Log| asked(log).get(&host(2)).map_or(0, Vec::len);
    swarm.until("the slow survey has begun", LONG_ENOUGH, async || if count(&log) >= 2 { Ok(()) } else { Err("not yet".to_owned()) }).await;
    swarm.cli(1, &["survey", "pause", "slow"]).await;
    let paused = async || {
        let views = [0, 1, 2].map(|daemon| swarm_state(&swarm, daemon));
        let states = futures::future::join_all(views).await;
        if states.iter().all(|state| state == "paused") { Ok(()) } else { Err(format!("{states:?}")) }
    };
    let begun = std::time::Instant::now();
    while let Err(seen) = paused().await {
        assert!(begun.elapsed() < LONG_ENOUGH, "not paused everywhere: {seen}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let before = count(&log);
    assert!(before < 12, "in the middle of it");
    let times: Vec<_> = log
        .requests()
        .into_iter()
        .filter(|request| request.host == host(2) && request.method == "GET")
        .map(|request| request.start)
        .collect();
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= Duration::from_millis(995)), "it rests for a second: {times:?}");
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(count(&log), before, "nothing is asked while it is paused");
    let why = swarm.cli(0, &["why", &host(2)]).await.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(why.contains("It belongs to the survey: slow (paused)"), "{why}");
    who_has_no_address_is_told(&swarm).await;
    let ended = swarm.cli(1, &["survey", "end", "slow"]).await;
    assert!(ended.contains("survey slow is ended now"), "{ended}");
    let told = json(&swarm.cli(2, &["results", "--survey", "slow", "--json"]).await);
    assert_eq!(
        (&told["summary"]["total"]["servers"], &told["summary"]["total"]["pages"]),
        (&Value::from(1), &Value::from(before)),
        "{told}"
    );
    // All owners answered; that does not say that nothing waits.
    assert_eq!((&told["all_owners_answered"], &told["servers_waiting"]), (&Value::Bool(true), &Value::from(1)), "{told}");
    let text = swarm.cli(2, &["results", "--survey", "slow"]).await.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("at 1 server") && text.contains("wait"), "{text}");
    strangers_are_refused(&swarm.daemons[1].multiaddress()).await;
    told_apart(&swarm, listed.len(), &host(2)).await;
    assert!(swarm.stop().await);
}

/// Of hosts that two surveys have, each survey says what it calls them, whoever is asked and however.
async fn each_survey_has_its_own_labels(swarm: &Swarm, shared: &[String]) {
    for run in [&[][..], &["--run", "1"]] {
        for (survey, labels) in [("unis", &["sector=museum", "sector=university"][..]), ("archives", &["sector=archive"])] {
            for daemon in 0..2 {
                let told = json(&swarm.cli(daemon, &[&["results", "--survey", survey, "--by", "label", "--json"], run].concat()).await);
                let found: Vec<_> = told["labels"].as_object().unwrap().keys().collect();
                assert_eq!(found, labels, "{survey}: {told}");
            }
        }
        let told = json(&swarm.cli(0, &[&["results", "--survey", "archives", "--by", "label", "--json"], run].concat()).await);
        assert_eq!(told["labels"]["sector=archive"]["servers"], shared.len(), "{told}");
    }
    for row in swarm.cli(0, &["export", "servers", "--survey", "archives"]).await.lines().map(json) {
        assert!(shared.iter().any(|host| row["host"] == **host) && row["labels"] == json!({"sector": ["archive"]}), "{row}");
    }
}

/// A member with `readers = "members"` tells strangers nothing, and commands say why.
async fn strangers_are_refused(member: &str) {
    for command in [&["results"][..], &["results", "--distinct"], &["results", "--run", "1"], &["export", "servers"], &["report", "load"]] {
        let ended = nearcrawl(&[command, &["--member", member]].concat()).await;
        assert_eq!((ended.code, ended.said.as_str()), (Some(69), ""), "{command:?}: {ended:?}");
        assert!(ended.complained.contains("answers members of the swarm only"), "{command:?}: {ended:?}");
    }
}

/// Pages, links and reports of one survey, where the swarm has a server of another one, too.
async fn told_apart(swarm: &Swarm, servers: usize, of_another: &str) {
    let report = async |more: &[&str]| json(&swarm.cli(1, &[&["report", "reachability", "--format", "json"], more].concat()).await);
    let (all, one) = (report(&[]).await, report(&["--survey", "unis"]).await);
    assert_eq!((&all["data"]["servers"], &all["data"]["survey"]), (&Value::from(servers + 1), &Value::Null), "{all}");
    assert_eq!((&one["data"]["servers"], &one["data"]["survey"]), (&Value::from(servers), &Value::from("unis")), "{one}");
    let export = async |more: &[&str]| {
        let rows = swarm.cli(1, &[&["export"], more].concat()).await;
        rows.lines().map(json).collect::<Vec<_>>()
    };
    let hosts = |rows: &[Value]| rows.iter().map(|row| row["host"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>();
    let (all, one) = (export(&["pages"]).await, export(&["pages", "--survey", "unis"]).await);
    assert!(hosts(&all).contains(of_another) && !hosts(&one).contains(of_another), "{all:?}");
    assert_eq!((one.len(), hosts(&one).len()), (servers * OF_DEPTH_2, servers));
    let links = hosts(&export(&["links", "--survey", "unis"]).await);
    assert!(!links.is_empty() && links.is_subset(&hosts(&one)), "{links:?}");
}

/// Servers that every member probes.
const SAMPLE: usize = 6;

/// What a placement survey comes to, as two files have it.
struct Files {
    nodes: String,
    rtt: String,
}

impl Files {
    async fn export(&self, swarm: &Swarm, daemon: usize) -> Ended {
        let api = format!("http://{}:{API_PORT}", swarm.daemons[daemon].address);
        self.export_by(["--api", &api]).await
    }

    /// The same from a member over the network, by a program that is none.
    async fn export_from_outside(&self, swarm: &Swarm, daemon: usize) -> Ended {
        self.export_by(["--member", &swarm.daemons[daemon].multiaddress()]).await
    }

    async fn export_by(&self, way: [&str; 2]) -> Ended {
        let to = ["--nodes", &self.nodes, "--rtt", &self.rtt, way[0], way[1]];
        nearcrawl(&[&["export", "placement", "--survey", "near"][..], &to].concat()).await
    }

    /// The lines of round-trip times to servers: from which member, to which server.
    fn to_servers(&self, hosts: &BTreeSet<String>) -> BTreeMap<(String, String), String> {
        let text = std::fs::read_to_string(&self.rtt).unwrap();
        let cells = text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        cells.filter(|cells| hosts.contains(&cells[1])).map(|cells| ((cells[0].clone(), cells[1].clone()), cells[2].clone())).collect()
    }
}

/// Waits until a daemon says that all members have probed all servers.
async fn all_whole(swarm: &Swarm, daemon: usize) -> Value {
    let begun = std::time::Instant::now();
    loop {
        // While one that was started again reads its journals its servers are missing, and the exit code says so.
        let api = format!("http://{}:{API_PORT}", swarm.daemons[daemon].address);
        let told = json(&nearcrawl(&["survey", "show", "near", "--json", "--api", &api]).await.said)["placement"].clone();
        if told["members_whole"] == 3 {
            return told;
        }
        assert!(begun.elapsed() < LONG_ENOUGH, "{told}");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

#[tokio::test]
async fn a_placement_survey_measures_the_matrix_that_the_laboratory_reads() {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 8, 3, 10));
    let points: Vec<Ipv4Addr> = [0, 1, 3].map(|point| web.places.access_points[point]).to_vec();
    let habits = Habits { threshold_ms: 4, tlds: "[]", ..Habits::default() };
    let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &points, habits).await;
    swarm.start(0..3).await;
    let hosts: BTreeSet<String> = web.hosts.iter().map(|(host, _)| host.to_string()).collect();
    let lines: Vec<String> = (0..8).map(|number| format!("{}\n", web.url(number, 0))).collect();
    let list = swarm.common.write("list.txt", &lines.concat()).unwrap().display().to_string();
    swarm.cli(0, &["survey", "create", "near", "--list", &list, "--depth", "0", "--probe", &SAMPLE.to_string()]).await;
    let [nodes, rtt] = ["nodes.csv", "rtt.csv"].map(|name| swarm.common.directory.join(name).display().to_string());
    let files = Files { nodes, rtt };

    let told = all_whole(&swarm, 1).await;
    assert_eq!((&told["servers"], &told["probed"], &told["members"]), (&SAMPLE.into(), &SAMPLE.into(), &3.into()), "{told}");
    assert_eq!(told["missing_text"], Value::Array(Vec::new()), "{told}");
    let shown = swarm.cli(2, &["survey", "show", "near"]).await.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("placement: 6 of 6 servers probed by this member, 3 of 3 members whole"), "{shown}");

    let exported = files.export(&swarm, 1).await;
    assert_eq!(exported.code, Some(0), "{}", exported.complained);
    assert!(exported.complained.contains("18 of 18 round trips at 3 members: 6 servers written"), "{}", exported.complained);
    let nodes = std::fs::read_to_string(&files.nodes).unwrap();
    let sources = nodes.lines().filter(|line| line.ends_with(",1,0")).count();
    assert_eq!((sources, nodes.lines().count()), (3, 1 + 3 + SAMPLE), "{nodes}");
    let measured = files.to_servers(&hosts);
    assert_eq!(measured.len(), 3 * SAMPLE, "each member each server: {measured:?}");
    assert!(measured.values().all(|ms| ms.parse::<f64>().is_ok_and(|ms| ms > 0.0)), "{measured:?}");
    // Any member tells the same to who is no member.
    for daemon in [0, 2] {
        std::fs::remove_file(&files.rtt).unwrap();
        let outside = files.export_from_outside(&swarm, daemon).await;
        assert_eq!((outside.code, files.to_servers(&hosts)), (Some(0), measured.clone()), "{}", outside.complained);
        assert!(outside.complained.contains("18 of 18 round trips at 3 members: 6 servers written"), "{}", outside.complained);
    }
    let address = swarm.daemons[0].multiaddress();
    let unknown = ["export", "placement", "--survey", "nowhere", "--nodes", &files.nodes, "--rtt", &files.rtt, "--member", &address];
    let unknown = nearcrawl(&unknown).await;
    assert!(unknown.code == Some(69) && unknown.complained.contains("knows of no survey nowhere"), "{unknown:?}");
    let laboratory = ["lab", "delegation", "--nodes", &files.nodes, "--rtt", &files.rtt, "--crawlers", "3", "--rounds", "1", "--json"];
    let rows = nearcrawl(&laboratory).await;
    assert_eq!(rows.code, Some(0), "{}", rows.complained);
    let rows = json(&rows.said);
    assert!(rows.to_string().contains(&format!("\"sites\":{SAMPLE},")), "{rows}");

    // A process that is killed and started again has its rows, and measures nothing anew.
    swarm.daemons[2].kill().await;
    swarm.start([2]).await;
    all_whole(&swarm, 0).await;
    let again = files.export(&swarm, 0).await;
    assert_eq!((again.code, files.to_servers(&hosts)), (Some(0), measured), "{}", again.complained);

    // Without a member its rows are missing, and the files have the others.
    swarm.daemons[1].kill().await;
    let outside = files.export_from_outside(&swarm, 0).await;
    assert!(outside.code == Some(69) && outside.complained.contains("rows are missing: "), "{}", outside.complained);
    assert_eq!(files.to_servers(&hosts).len(), 2 * SAMPLE);
    let partly = files.export(&swarm, 0).await;
    assert_eq!(partly.code, Some(69), "{}", partly.complained);
    assert!(partly.complained.contains("rows are missing: ") && partly.complained.contains("does not answer"), "{}", partly.complained);
    assert_eq!(files.to_servers(&hosts).len(), 2 * SAMPLE);
    assert!(swarm.stop().await);
}

/// The state of the slow survey, as a daemon has it.
async fn swarm_state(swarm: &Swarm, daemon: usize) -> String {
    let all = json(&swarm.cli(daemon, &["survey", "list", "--json"]).await);
    let survey = all.as_array().unwrap().iter().find(|survey| survey["name"] == "slow");
    survey.map_or("none".to_owned(), |survey| survey["state"].as_str().unwrap().to_owned())
}

/// Of the list of `slow` one host has no address, whoever is asked.
async fn who_has_no_address_is_told(swarm: &Swarm) {
    for daemon in [0, 1, 2] {
        let begun = std::time::Instant::now();
        loop {
            let hosts = json(&swarm.cli(daemon, &["survey", "show", "slow", "--json"]).await)["hosts"].clone();
            if (&hosts["known"], &hosts["without_address"], &hosts["not_known"]) == (&Value::from(1), &Value::from(1), &Value::from(0)) {
                break;
            }
            assert!(begun.elapsed() < LONG_ENOUGH, "{daemon}: {hosts}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let text = swarm.cli(daemon, &["survey", "show", "slow"]).await.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("1 host of the list has no address") && !text.contains("known yet"), "{text}");
        let report = json(&swarm.cli(daemon, &["report", "reachability", "--survey", "slow", "--format", "json"]).await);
        let data = &report["data"];
        assert_eq!((&data["hosts_without_address"], &data["hosts_not_known"]), (&Value::from(1), &Value::from(0)), "{report}");
    }
}
