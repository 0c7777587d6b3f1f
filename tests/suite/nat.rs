//! Test that daemons behind routers take part, in a virtual network, with routers whose rules are the kernel's.

use nearcrawl_lab::{
    demo::daemons::Common,
    nat::{Around, Kind, NatWorld, Place},
    web::{
        dns::{DnsServer, Zone},
        server::{HttpAnswer, HttpSite, Log, WebServers},
    },
};
use nearcrawl_netlab::{Lab, Node};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Where servers are, and the name server.
const SITES: [Ipv4Addr; 4] =
    [Ipv4Addr::new(10, 65, 201, 9), Ipv4Addr::new(10, 65, 202, 9), Ipv4Addr::new(10, 65, 203, 9), Ipv4Addr::new(10, 65, 204, 9)];
const NAMES: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 65, 200, 53)), 53);

/// The round trip between who is reached from outside and a server; those behind routers are next to them.
const FAR: Duration = Duration::from_millis(40);

/// How soon another relay is in place of one that vanished, and two are connected directly that can be.
const NEXT_RELAY_WITHIN: Duration = Duration::from_secs(30);
const DIRECT_WITHIN: Duration = Duration::from_secs(120);

/// On a machine that others use, too, starting a daemon may take as long as all that is measured.
const STARTED_WITHIN: Duration = Duration::from_secs(120);

/// Each host is one page with three others.
struct Pages;

impl HttpSite for Pages {
    fn respond(&self, _: &str, path: &str) -> HttpAnswer {
        match path {
            "/" => HttpAnswer::html("<a href=/1>1</a> <a href=/2>2</a> <a href=/3>3</a>".to_owned()),
            "/1" | "/2" | "/3" => HttpAnswer::html("<p>a page</p>".to_owned()),
            _ => HttpAnswer::status(404),
        }
    }
}

fn place(name: &str, kind: Kind) -> Place {
    Place { name: name.to_owned(), kind }
}

/// A network with these places, and a web that is far from those that are reached from outside.
fn world(places: &[Place]) -> (NatWorld, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let common = Common {
        directory: directory.path().to_owned(),
        registries: Vec::new(),
        name_server: NAMES,
        range: String::new(),
        program: env!("CARGO_BIN_EXE_nearcrawl").into(),
    };
    let IpAddr::V4(names) = NAMES.ip() else { unreachable!("it is IPv4") };
    let web = Node { name: "web".to_owned(), addresses: SITES.into_iter().chain([names]).collect() };
    let open = (0..places.len()).filter(|number| places[*number].kind == Kind::Open).map(Place::address);
    let round_trips = open.flat_map(|open| SITES.map(|site| ((open, site), FAR))).collect();
    let configuration = "[timers]\nvote_after = \"5s\"\n\n[scope]\ntlds = [\"test\"]\n".to_owned();
    let around = Around { nodes: vec![web], round_trips, configuration };
    (NatWorld::start(common, places, around).unwrap_or_else(|why| panic!("{why}")), directory)
}

/// Serves the web and its names from their node, on a thread that stays there until what is returned is dropped.
fn serve(lab: &Arc<Lab>) -> (Arc<Log>, tokio::sync::oneshot::Sender<()>) {
    let (told, served) = mpsc::sync_channel(1);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let there = lab.clone();
    std::thread::spawn(move || {
        there.enter("web").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let web = WebServers::start(SITES.map(|site| SocketAddr::new(site.into(), 8080)), Arc::new(Pages)).await.unwrap();
            let names = SITES.iter().enumerate().map(|(number, site)| (host(number).parse().unwrap(), IpAddr::V4(*site)));
            let _dns = DnsServer::start(NAMES, Zone::new(names)).await.unwrap();
            told.send(web.log().clone()).unwrap();
            let _ = stopped.await;
        });
    });
    (served.recv().expect("the web is served"), stop)
}

fn host(number: usize) -> String {
    format!("host{number}.test")
}

fn relays(status: &Value) -> Vec<&str> {
    status["reachability"]["relays"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Kills a member through which another is reached; it is reached through two others soon.
async fn lose_a_relay(world: &mut NatWorld, name: &str) {
    let status = world.ask(name, &["status"]).unwrap();
    let lost = (*relays(&status).first().expect("it is reached through somebody")).to_owned();
    let relay = world.daemons.values_mut().find(|at| at.daemon.access_point == lost).expect("it is one of ours");
    relay.daemon.kill().await;
    let killed = Instant::now();
    let others = |status: &Value| relays(status).len() == 2 && !relays(status).contains(&&*lost);
    world.until(name, STARTED_WITHIN, others).await.unwrap_or_else(|why| panic!("{why}"));
    println!("another relay after {:.1} s", killed.elapsed().as_secs_f64());
    assert!(killed.elapsed() <= NEXT_RELAY_WITHIN);
}

/// More than a connection through a third member may carry comes from another all the same.
fn fetch_much(world: &NatWorld, name: &str, of: &Value) {
    let measured = world.ask(name, &["measure", of.as_str().unwrap(), "--bytes", "72MiB"]).unwrap_or_else(|why| panic!("{why}"));
    println!("fetched through a third member: {measured}");
    let came = |way: &str| measured[way].as_u64().unwrap();
    // Which way it is that is told once a second: right after a connection has ended, some may be called direct.
    assert!(came("relayed_bytes") >= 60 << 20 && came("relayed_bytes") + came("direct_bytes") >= 72 << 20, "{measured}");
}

#[test]
fn daemons_behind_routers_are_members_crawl_meet_and_outlive_their_relay() {
    let places: Vec<Place> = [
        place("hub0", Kind::Open),
        place("hub1", Kind::Open),
        place("hub2", Kind::Open),
        place("home0", Kind::PortRestricted),
        place("home1", Kind::PortRestricted),
        place("office", Kind::Symmetric),
    ]
    .into();
    let (mut world, _directory) = world(&places);
    let (log, _stop) = serve(world.lab());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let panics = |why| -> Duration { panic!("{why}") };
        for (number, place) in places.iter().enumerate() {
            world.join(place).await.unwrap();
            // The first one is alone until the second comes.
            if number > 0 {
                let took = world.until(&place.name, STARTED_WITHIN, NatWorld::is_full(place.kind, number + 1)).await.unwrap_or_else(panics);
                println!("{}: a full member after {:.1} s", place.name, took.as_secs_f64());
            }
        }
        let seeds: Vec<String> = (0..SITES.len()).map(|number| format!("http://{}:8080/", host(number))).collect();
        let seeds = [&["seed", "add"], &*seeds.iter().map(String::as_str).collect::<Vec<_>>()].concat();
        world.ask("hub0", &seeds).unwrap();
        let crawled = |status: &Value| status["work"]["pages"].as_u64().is_some_and(|pages| pages > 0);
        let own = |name: &str| IpAddr::V4(world.address(name).unwrap());
        let began = Instant::now();
        while log.since(0).iter().filter(|request| request.path == "/3").count() < SITES.len() {
            assert!(began.elapsed() < STARTED_WITHIN, "{:?}", log.since(0));
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        let peers: BTreeSet<IpAddr> = log.since(0).iter().map(|request| request.peer).collect();
        let at_home: Vec<&str> = ["home0", "home1", "office"].into_iter().filter(|name| peers.contains(&own(name))).collect();
        assert!(!at_home.is_empty(), "who is behind a router is near and was given nothing: {peers:?}");
        world.until(at_home[0], STARTED_WITHIN, crawled).await.unwrap_or_else(panics);
        let id = |name: &str| Value::from(world.daemons[name].daemon.access_point.clone());
        let connected = places.len() - 1;
        let (other_home, office) = (id("home1"), id("office"));
        let direct = |status: &Value| {
            let relayed = status["reachability"]["members_relayed"].as_array().cloned().unwrap_or_default();
            status["reachability"]["members_connected"] == connected && !relayed.contains(&other_home) && relayed.contains(&office)
        };
        let took = world.until("home0", DIRECT_WITHIN, direct).await.unwrap_or_else(panics);
        println!("the two homes are connected directly {:.1} s after the start of one", took.as_secs_f64());
        let seen = world.ask("home0", &["status"]).unwrap()["reachability"]["own_addresses"].clone();
        assert_eq!(seen, serde_json::json!([world.address("home0").unwrap().to_string()]));
        fetch_much(&world, "office", &other_home);
        lose_a_relay(&mut world, "office").await;
        world.stop().await;
    });
}
