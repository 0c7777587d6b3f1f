//! Test that one "no", given to any member, stops requests and probes of all, as the web servers see it: real daemons, and the program.

use crate::support::{Ended, Ground, Habits, SmallWeb, Swarm, nearcrawl};
use nearcrawl_lab::demo::daemons::API_PORT;
use nearcrawl_lab::web::dns::Reply;
use nearcrawl_lab::web::server::{HttpAnswer, HttpSite, RequestSeen};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

const LONG_ENOUGH: Duration = Duration::from_secs(90);

/// Within so long every reachable member asks nothing more.
const SOON: Duration = Duration::from_secs(10);

/// Pages of a host: far more than are asked for while a few commands start, slow as they may be.
const PAGES: usize = 3_000;

/// Where a file says no.
const PROOF_PATH: &str = "/.well-known/nearcrawl-opt-out";

/// A web some of whose hosts have a file that says no.
struct WithFiles {
    web: SmallWeb,
    saying_no: Mutex<BTreeSet<String>>,
}

impl HttpSite for WithFiles {
    fn respond(&self, host: &str, path: &str) -> HttpAnswer {
        if path == PROOF_PATH && self.saying_no.lock().unwrap().contains(host) {
            return HttpAnswer::ok("text/plain", "no-crawl\n");
        }
        self.web.respond(host, path)
    }

    fn delay(&self, server: IpAddr, peer: IpAddr) -> Duration {
        self.web.delay(server, peer)
    }
}

/// Everything but looks for the proof: pages, robots.txt and probes.
fn contacts(swarm: &Swarm, host: &str, since: usize) -> Vec<RequestSeen> {
    let seen = swarm.log().requests().into_iter().skip(since);
    seen.filter(|request| request.host == host && request.path != PROOF_PATH).collect()
}

/// What a command says that is refused.
async fn refused(swarm: &Swarm, daemon: usize, arguments: &[&str]) -> String {
    let api = format!("http://{}:{API_PORT}", swarm.daemons[daemon].address);
    let Ended { code, complained, .. } = nearcrawl(&[arguments, &["--api", &api]].concat()).await;
    assert_ne!(code, Some(0), "{arguments:?}");
    complained.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The opt-outs in force, as each of the three daemons lists them.
async fn listed(swarm: &Swarm) -> [BTreeSet<String>; 3] {
    let mut all: [BTreeSet<String>; 3] = Default::default();
    for (daemon, listed) in all.iter_mut().enumerate() {
        let views: Value = serde_json::from_str(&swarm.cli(daemon, &["opt-out", "list", "--json"]).await).unwrap();
        let in_force = views.as_array().unwrap().iter().filter(|view| view["in_force"] == true);
        listed.extend(in_force.map(|view| view["subject"].as_str().unwrap().to_owned()));
    }
    all
}

/// Waits until all three list exactly these.
async fn all_list(swarm: &mut Swarm, wanted: &[&str], limit: Duration) {
    let wanted: BTreeSet<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
    let begun = Instant::now();
    loop {
        let seen = listed(swarm).await;
        if seen.iter().all(|listed| *listed == wanted) {
            return;
        }
        assert!(begun.elapsed() < limit, "{wanted:?}: {seen:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Says so to each of the members over the network: one takes it in, the others name it, and the server is asked by that one only. When the
/// one was told is returned.
async fn said_to_all_and_looked_for_by_one(swarm: &Swarm, host: &str) -> Duration {
    let before = swarm.log().len();
    let (mut taken, mut named) = (Vec::new(), BTreeSet::new());
    for daemon in &swarm.daemons {
        let told_at = swarm.log().now();
        let Ended { code, said, complained } =
            nearcrawl(&["opt-out", "add", host, "--proof", "file", "--member", &daemon.multiaddress()]).await;
        if code == Some(0) {
            assert!(said.contains("is opted out by a file; all members hear of it now"), "{said}");
            taken.push(told_at);
        } else {
            let complained = complained.split_whitespace().collect::<Vec<_>>().join(" ");
            let at = complained.split_once("say so there (--member ").and_then(|(_, rest)| rest.split_once(')'));
            named.insert(at.unwrap_or_else(|| panic!("{complained}")).0.to_owned());
        }
    }
    assert_eq!((taken.len(), named.len()), (1, 1), "{named:?}");
    let looks = swarm.log().requests().into_iter().skip(before).filter(|seen| seen.host == host && seen.path == PROOF_PATH);
    let sources: BTreeSet<IpAddr> = looks.map(|seen| seen.peer).collect();
    assert_eq!(sources.len(), 1, "{sources:?}");
    taken[0]
}

#[tokio::test]
async fn one_no_at_any_member_stops_all_and_is_taken_back_only_when_its_proof_is_gone() {
    let ground = Ground::claim();
    let web = Arc::new(WithFiles { web: SmallWeb::new(&ground, 8, PAGES, 10), saying_no: Mutex::default() });
    let points: Vec<Ipv4Addr> = [0, 1, 3].map(|point| web.web.places.access_points[point]).to_vec();
    let (registries, names) = (web.web.places.registry_files(), web.web.names());
    let habits = Habits { threshold_ms: 4, ..Habits::default() };
    let mut swarm = Swarm::prepare(ground, web.clone(), registries, names, &points, habits).await;
    swarm.start(0..3).await;
    let host = |number: usize| web.web.hosts[number].0.to_string();

    // With a record in the DNS, before anybody knows of the server: it is not even probed.
    let (first, record) = (host(4), format!("_nearcrawl.{}", host(4)));
    let why = refused(&swarm, 1, &["opt-out", "add", &first]).await;
    assert!(why.contains(&format!("there is no TXT record at {record}")) && why.contains("no-crawl"), "{why}");
    swarm.dns.zone().set(record.parse().unwrap(), Reply::Texts(vec!["no-crawl".to_owned()]));
    let said = swarm.cli(1, &["opt-out", "add", &first]).await;
    assert!(said.contains("is opted out by a TXT record; all members hear of it now"), "{said}");
    all_list(&mut swarm, &[&first], SOON).await;

    // With a file, in the middle of its crawl.
    let second = host(2);
    swarm.seed(0, &web.web.seeds()).await;
    let asked = |swarm: &Swarm, host: &str| contacts(swarm, host, 0).len();
    let begun = Instant::now();
    while asked(&swarm, &second) < 6 || asked(&swarm, &host(1)) < 6 {
        assert!(begun.elapsed() < LONG_ENOUGH, "{} is not crawled", second);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(refused(&swarm, 2, &["opt-out", "add", &second, "--proof", "file"]).await.contains("answers with 404"));
    web.saying_no.lock().unwrap().insert(second.clone());
    // Its owner runs no daemon, and says so over the network.
    let member = swarm.daemons[2].multiaddress();
    let Ended { code, complained, .. } = nearcrawl(&["opt-out", "add", &second, "--proof", "order", "--member", &member]).await;
    let complained = complained.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(code != Some(0) && complained.contains("an order is given by the operator"), "{complained}");
    let told_at = said_to_all_and_looked_for_by_one(&swarm, &second).await;
    all_list(&mut swarm, &[&second, &first], SOON).await;
    tokio::time::sleep((told_at + SOON).saturating_sub(swarm.log().now())).await;
    let since = swarm.log().len();
    let last = contacts(&swarm, &second, 0).into_iter().map(|request| request.start).max().unwrap();
    println!("the last request came {:.2} s after the \"no\"", last.as_secs_f64() - told_at.as_secs_f64());
    assert!(last < told_at + SOON && asked(&swarm, &second) < PAGES, "in the middle of its crawl");
    for daemon in 0..3 {
        let why = swarm.cli(daemon, &["why", &second]).await.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(why.contains(&format!("No member asks it anything: {second} is opted out by")) && why.contains("proof file"), "{why}");
    }

    // They are stopped and started, and have not forgotten.
    assert!(swarm.stop().await);
    swarm.start(0..3).await;
    all_list(&mut swarm, &[&second, &first], SOON).await;
    let others = contacts(&swarm, &host(1), since).len();
    let crawled =
        async |swarm: &Swarm| if contacts(swarm, &host(1), since).len() > others + 5 { Ok(()) } else { Err("not yet".to_owned()) };
    let begun = Instant::now();
    while crawled(&swarm).await.is_err() {
        assert!(begun.elapsed() < LONG_ENOUGH, "others are not crawled after the start");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!((contacts(&swarm, &second, since), contacts(&swarm, &first, 0)), (Vec::new(), Vec::new()), "no request and no probe");

    // Over the network a member lists what its own daemon does; without a word of JSON, too.
    for daemon in 0..3 {
        let member = swarm.daemons[daemon].multiaddress();
        let here: Value = serde_json::from_str(&swarm.cli(daemon, &["opt-out", "list", "--json"]).await).unwrap();
        let Ended { said, complained, .. } = nearcrawl(&["opt-out", "list", "--json", "--member", &member]).await;
        assert_eq!(serde_json::from_str::<Value>(&said).unwrap_or_else(|_| panic!("{complained}")), here);
        let Ended { said, .. } = nearcrawl(&["opt-out", "list", "--member", &member]).await;
        assert!(said.contains(&first) && said.contains(&second) && said.contains("in force"), "{said}");
    }
    let Ended { code, complained, .. } = nearcrawl(&["opt-out", "list", "--member", "/ip4/127.0.0.1/tcp/9"]).await;
    assert!(code != Some(0) && complained.contains("/ip4/127.0.0.1/tcp/9"), "{complained}");

    // An order covers addresses, and only its operator takes it back.
    let range = format!("{}/32", web.web.hosts[5].1);
    swarm.cli(0, &["opt-out", "add", &range, "--proof", "order"]).await;
    all_list(&mut swarm, &[&second, &first, &range], SOON).await;
    let why = refused(&swarm, 1, &["opt-out", "remove", &range, "--proof", "order"]).await;
    assert!(why.contains("only there it can be withdrawn"), "{why}");
    swarm.cli(0, &["opt-out", "remove", &range, "--proof", "order"]).await;
    all_list(&mut swarm, &[&second, &first], SOON).await;

    // What is not known or may not be asked is refused over the network, too.
    let member = swarm.daemons[0].multiaddress();
    let over_the_network = async |arguments: &[&str]| {
        let Ended { code, complained, .. } = nearcrawl(&[&["opt-out"], arguments, &["--member", &member]].concat()).await;
        assert_ne!(code, Some(0), "{arguments:?}");
        complained.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let unknown = over_the_network(&["remove", &host(6)]).await;
    assert!(unknown.contains(&format!("no opt-out of {} by a txt proof is known here", host(6))), "{unknown}");
    swarm.cli(0, &["pause"]).await;
    let resting = over_the_network(&["add", &host(6), "--proof", "file"]).await;
    assert!(resting.contains("its operator lets it ask nothing now; say so to another member"), "{resting}");
    let looked_up = over_the_network(&["add", &host(6)]).await;
    assert!(looked_up.contains("there is no TXT record at"), "a record is looked up in a pause, too: {looked_up}");
    swarm.cli(0, &["resume"]).await;

    // The proof is there still; then it is gone, and another member is told.
    let why = refused(&swarm, 0, &["opt-out", "remove", &second, "--proof", "file"]).await;
    assert!(why.contains("the proof is still there"), "{why}");
    web.saying_no.lock().unwrap().remove(&second);
    let (before, looks) = (swarm.log().len(), |swarm: &Swarm| swarm.log().requests().iter().filter(|seen| seen.path == PROOF_PATH).count());
    let said = swarm.cli(0, &["opt-out", "remove", &second, "--proof", "file"]).await;
    assert!(said.contains("taken back here; in force until the proof was looked for in vain three times in eleven minutes"), "{said}");
    // That it is asked again after these minutes is tested on the virtual clock of the laboratory.
    tokio::time::sleep(2 * SOON).await;
    assert!(contacts(&swarm, &second, before).is_empty(), "one answer of a server is not enough");
    println!("{} looks for the file in all", looks(&swarm));
    assert!(looks(&swarm) <= 12, "few requests for the proof itself");
    assert!(contacts(&swarm, &first, 0).is_empty(), "the other one still is asked nothing");
    assert!(swarm.stop().await);
}
