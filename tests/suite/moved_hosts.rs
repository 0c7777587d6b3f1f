//! Test of a server's name that leads to another address between two runs: real daemons, real servers with ETags, a real name server.

use crate::support::{Ground, Habits, SmallWeb, Swarm, nearcrawl};
use nearcrawl_lab::demo::daemons::API_PORT;
use nearcrawl_lab::web::dns::Reply;
use nearcrawl_model::{
    record::{RunState, ServerRecord},
    url::Host,
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

const HOSTS: usize = 6;
const PAGES: usize = 10;

/// How long a run and what it waits for may take.
const SOON: Duration = Duration::from_secs(120);

/// When a move is ordered again that has not come about.
const ASK_AGAIN: Duration = Duration::from_secs(20);

/// The records of all daemons, with the number of the daemon.
async fn records(swarm: &Swarm) -> Vec<(usize, ServerRecord)> {
    let mut all = Vec::new();
    for daemon in 0..swarm.daemons.len() {
        all.extend(swarm.records(daemon).await.unwrap_or_default().into_iter().map(|record| (daemon, record)));
    }
    all
}

/// Waits until this run of every host is over.
async fn run_is_over(swarm: &mut Swarm, run: u32) -> Vec<(usize, ServerRecord)> {
    let begun = std::time::Instant::now();
    loop {
        let seen = records(swarm).await;
        let over =
            seen.iter().filter(|(_, record)| record.run == run && record.state == RunState::Complete && record.pages == PAGES as u64);
        if over.count() == HOSTS && seen.len() == HOSTS {
            return seen;
        }
        let states: Vec<_> = seen.iter().map(|(daemon, r)| (daemon, r.host.to_string(), r.run, r.state, r.pages)).collect();
        assert!(begun.elapsed() < SOON, "run {run} is not over: {states:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Both daemons have a host: near equal, one of them may have won all. Then it hands one over.
async fn each_has_a_host(swarm: &Swarm, mut seen: Vec<(usize, ServerRecord)>) -> Vec<(usize, ServerRecord)> {
    // An order to move may be refused or called off; then it is given again.
    let (begun, mut asked) = (std::time::Instant::now(), None::<std::time::Instant>);
    loop {
        let without = (0..2).find(|daemon| seen.iter().all(|(with, _)| with != daemon));
        if without.is_none() && seen.len() == HOSTS {
            return seen;
        }
        assert!(begun.elapsed() < SOON, "no host was handed over");
        let subnets = swarm.owners(0).await.into_keys();
        let of_first = seen.first().and_then(|(_, record)| {
            let address = record.address?;
            subnets.into_iter().find(|subnet| subnet.contains(address))
        });
        let is_asked = asked.is_some_and(|at| at.elapsed() < ASK_AGAIN);
        if let (Some(to), Some(subnet), false) = (without, of_first, is_asked) {
            let api = format!("http://{}:{API_PORT}", swarm.daemons[1 - to].address);
            let said = nearcrawl(&["move", &subnet.to_string(), &swarm.daemons[to].access_point, "--api", &api]).await;
            asked = (said.code == Some(0)).then(std::time::Instant::now);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        seen = records(swarm).await;
    }
}

#[tokio::test]
async fn a_host_whose_address_changed_between_two_runs_has_one_record_with_the_owner_of_the_new_one() {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, HOSTS, PAGES, 10));
    let points = [0, 1].map(|point| web.places.access_points[point]);
    let habits = Habits { threshold_ms: 4, revisit: "95s", min_delay_ms: 50, ..Habits::default() };
    let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &points, habits).await;
    swarm.start([0, 1]).await;
    let seeds: Vec<String> = (0..HOSTS).map(|host| web.url(host, 0)).collect();
    swarm.seed(0, &seeds).await;
    let pages = (HOSTS * PAGES) as u64;
    let first = run_is_over(&mut swarm, 1).await;
    let first = each_has_a_host(&swarm, first).await;
    swarm.agree(pages, SOON).await;

    // One host of the first daemon is now where one of the second daemon's is.
    let of = |daemon: usize| first.iter().find(|(with, _)| *with == daemon).map(|(_, record)| record.clone()).expect("each has a host");
    let (moved, other) = (of(0), of(1));
    let (old, new) = (moved.address.unwrap(), other.address.unwrap());
    let position = swarm.log().len();
    swarm.dns.zone().set(moved.host.clone(), Reply::Addresses(vec![new]));

    let second = run_is_over(&mut swarm, 2).await;
    let (daemon, record) = second.iter().find(|(_, record)| record.host == moved.host).expect("it has a record");
    assert_eq!((*daemon, record.address), (1, Some(new)), "{record:?}");
    let changes = record.changes.expect("it is compared with the run before");
    assert_eq!((changes.compared_run, changes.unchanged, changes.not_modified), (1, PAGES as u64, PAGES as u64), "{changes:?}");
    let mut asked: BTreeMap<(Host, String), u32> = BTreeMap::new();
    for request in swarm.log().since(position).into_iter().filter(|request| request.method == "GET") {
        assert_ne!(request.server, old, "nobody is asked at the address before: {request:?}");
        *asked.entry((request.host.parse().unwrap(), request.path)).or_default() += 1;
    }
    assert_eq!(asked.iter().filter(|(_, times)| **times > 1).collect::<Vec<_>>(), [], "once in the second run");
    let told = swarm.agree(pages, SOON).await;
    assert_eq!(told.summary.total.servers, HOSTS as u64);
    assert!(swarm.stop().await);
}

/// As long as a volunteer's line may be away.
const SILENT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_name_whose_name_server_was_silent_for_a_while_is_looked_up_again_soon_and_loses_nothing() {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 2, PAGES, 10));
    let points = [web.places.access_points[0]];
    let habits = Habits { threshold_ms: 4, min_delay_ms: 50, ..Habits::default() };
    let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &points, habits).await;
    let names = web.names();
    for (host, _) in &names {
        swarm.dns.zone().set(host.clone(), Reply::Silence);
    }
    swarm.start([0]).await;
    swarm.seed(0, &(0..2).map(|host| web.url(host, 0)).collect::<Vec<_>>()).await;
    tokio::time::sleep(SILENT).await;
    let asked: Vec<u64> = names.iter().map(|(host, _)| swarm.dns.zone().asked(host)).collect();
    assert!(asked.iter().all(|times| *times >= 4), "it was asked {asked:?} times within {SILENT:?}");
    for (host, address) in names {
        swarm.dns.zone().set(host, Reply::Addresses(vec![address]));
    }
    // The pauses are 5, 10 and 20 s, each after what a look-up takes; a name that does not exist would wait for five minutes.
    swarm.agree((2 * PAGES) as u64, Duration::from_secs(60)).await;
    assert!(swarm.stop().await);
}
