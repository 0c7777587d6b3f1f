//! Tests that hosts that a limit holds back wait across kill -9, and come when the limit lets go: a real daemon and real servers.

use crate::support::{Ground, Habits, Swarm};
use nearcrawl_lab::demo::world::Places;
use nearcrawl_lab::web::server::{HttpAnswer, HttpSite};
use nearcrawl_model::{
    record::{RunState, ServerRecord},
    url::Host,
};
use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Duration,
};

const PORTAL: &str = "portal.ke.test";

const HOSTS: usize = 5;

/// A portal that names eight hosts out of scope, then some in scope, each of which has one page.
struct Portal;

impl HttpSite for Portal {
    fn respond(&self, host: &str, path: &str) -> HttpAnswer {
        let (link, beyond) = (|url: String| format!("<p><a href=\"{url}\">on</a></p>"), 8);
        match (host.starts_with("portal"), path) {
            (true, "/") => {
                let beyond = (0..beyond).map(|number| format!("http://far{number}.example/"));
                let hosts = (0..HOSTS).map(|number| format!("http://h{number}.ke.test:8080/"));
                HttpAnswer::html(beyond.chain(hosts).map(link).collect::<String>())
            }
            (false, "/") => HttpAnswer::html("<p>Masks, drums and stools.</p>".to_owned()),
            _ => HttpAnswer::status(404),
        }
    }
}

/// Waits until so many servers have answered with a page, so many hosts wait, and the totals say so; gives back the portal's record.
async fn so_many(swarm: &mut Swarm, up: usize, waiting: u64) -> ServerRecord {
    for _ in 0..1_000 {
        let records = swarm.records(0).await.unwrap_or_default();
        let portal = records.iter().find(|record| record.host.as_str() == PORTAL);
        if let Some(portal) = portal.filter(|record| record.held_back.hosts_by_site_limit == waiting)
            && records.iter().filter(|record| record.pages > 0).count() == up
            && totals(swarm).await["summary"]["total"]["up"] == up
        {
            return portal.clone();
        }
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    panic!("not {up} servers with {waiting} hosts waiting: {:?}", swarm.records(0).await);
}

async fn totals(swarm: &Swarm) -> serde_json::Value {
    serde_json::from_str(&swarm.cli(0, &["results", "--json"]).await).unwrap()
}

#[tokio::test]
async fn hosts_beyond_the_limit_of_a_site_wait_across_kill_9_and_come_when_it_lets_go() {
    let ground = Ground::claim();
    let places = Places::new(ground.net, 1, 7);
    let IpAddr::V4(first) = places.lands[0].subnet.first() else { unreachable!("places are IPv4") };
    let at = |number: usize| IpAddr::from(Ipv4Addr::from_bits(first.to_bits() + 9 + number as u32));
    let names = (0..HOSTS).map(|number| (format!("h{number}.ke.test").parse().unwrap(), at(1 + number)));
    let names: Vec<(Host, IpAddr)> = names.chain([(PORTAL.parse().unwrap(), at(0))]).collect();
    let crawl = "max_new_hosts_per_site = 3\nmax_new_hosts_per_domain = 100".to_owned();
    let habits = Habits { delay_factor: 0, min_delay_ms: 20, crawl, ..Habits::default() };
    let point = places.access_points[0];
    let mut swarm = Swarm::prepare(ground, Arc::new(Portal), places.registry_files(), names, &[point], habits).await;
    swarm.start([0]).await;
    swarm.seed(0, &[format!("http://{PORTAL}:8080/")]).await;
    let portal = so_many(&mut swarm, 4, 2).await;
    assert_eq!((portal.state, portal.external_hosts, portal.held_back.host_urls), (RunState::HeldBack, 8 + HOSTS as u64, 2));
    let said = swarm.cli(0, &["results"]).await;
    assert!(said.contains("held back until later: 2 new hosts by the limit for a site and day"), "{said}");
    let rows = swarm.cli(0, &["results", "--by", "tld", "--csv"]).await;
    let column = rows.lines().next().unwrap().split(',').position(|name| name == "hosts_held_by_site_limit").unwrap();
    assert_eq!(rows.lines().nth(1).unwrap().split(',').nth(column), Some("2"), "{rows}");
    let why = swarm.cli(0, &["why", PORTAL]).await;
    assert!(why.contains("complete but for what limits hold back") && why.contains("counts anew in 23 h 59 min"), "{why}");

    swarm.daemons[0].kill().await;
    swarm.start([0]).await;
    let portal = so_many(&mut swarm, 4, 2).await;
    assert_eq!(portal.state, RunState::HeldBack);

    swarm.crawl_with("max_new_hosts_per_site = 4\nmax_new_hosts_per_domain = 100");
    swarm.revisit_after(0, "1h");
    swarm.daemons[0].kill().await;
    swarm.start([0]).await;
    so_many(&mut swarm, 5, 1).await;
    swarm.crawl_with("max_new_hosts_per_site = 0");
    swarm.revisit_after(0, "1h");
    assert!(swarm.daemons[0].stop().await);
    swarm.start([0]).await;
    let portal = so_many(&mut swarm, 6, 0).await;
    assert_eq!((portal.state, portal.run), (RunState::Complete, 1));
    let said = swarm.cli(0, &["results"]).await;
    assert!(!said.contains("held back"), "{said}");
    let mut asked = swarm.log().requests();
    asked.retain(|seen| seen.method == "GET" && seen.path == "/");
    assert_eq!(asked.len(), 1 + HOSTS, "each page once: {asked:?}");
    assert!(swarm.stop().await);
}
