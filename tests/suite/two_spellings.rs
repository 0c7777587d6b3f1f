//! Test that `www.museum.ke` and `museum.ke` are one tree, though two access points crawl them.
//!
//! It runs real daemons and real servers, both seeded at once.

use crate::support::{Ground, Habits, Swarm};
use nearcrawl_lab::demo::world::Places;
use nearcrawl_lab::web::server::{HttpAnswer, HttpSite};
use nearcrawl_model::record::{RunState, ServerRecord};
use serde_json::Value;
use std::{net::Ipv4Addr, sync::Arc, time::Duration};

const BARE: &str = "museum.ke.test:8080";

/// A museum under two names, at two servers. Each page links to the other name, the shop, and museums out of scope.
struct Museum;

impl HttpSite for Museum {
    fn respond(&self, host: &str, path: &str) -> HttpAnswer {
        let others = ["http://national.museum/", "http://national.museum/masks", "http://www.national.museum/", "http://louvre.example/"];
        let links = match (host.split(':').next().unwrap_or_default(), path) {
            ("www.museum.ke.test", "/") => vec![format!("http://{BARE}/rooms"), "/visit".to_owned(), others[0].to_owned()],
            ("www.museum.ke.test", "/visit") => vec![format!("http://shop.{BARE}/"), others[0].to_owned(), others[1].to_owned()],
            ("museum.ke.test", "/") => vec![format!("http://www.{BARE}/visit"), others[2].to_owned()],
            ("museum.ke.test", "/rooms") => vec![others[2].to_owned(), others[3].to_owned()],
            ("shop.museum.ke.test", "/") => vec![format!("http://{BARE}/rooms")],
            _ => return HttpAnswer::status(404),
        };
        HttpAnswer::html(links.iter().map(|link| format!("<p><a href=\"{link}\">on</a></p>\n")).collect::<String>())
    }
}

#[tokio::test]
async fn two_access_points_name_the_same_tree_for_a_site_with_and_without_www() {
    let ground = Ground::claim();
    let places = Places::new(ground.net, 12, 7);
    let hosts = ["www.museum.ke.test", "museum.ke.test", "shop.museum.ke.test"];
    // Each is in a subnet of its own, far from the others.
    let names = hosts.iter().zip(places.lands.iter().step_by(5));
    let names = names.map(|(host, land)| {
        let std::net::IpAddr::V4(first) = land.subnet.first() else { unreachable!("places are IPv4") };
        (host.parse().unwrap(), Ipv4Addr::from_bits(first.to_bits() + 9).into())
    });
    let habits = Habits { delay_factor: 0, min_delay_ms: 20, ..Habits::default() };
    let mut swarm =
        Swarm::prepare(ground, Arc::new(Museum), places.registry_files(), names.collect(), &places.access_points[..2], habits).await;
    swarm.start([0, 1]).await;
    swarm.together().await;
    swarm.seed(0, &[format!("http://www.{BARE}/")]).await;
    swarm.seed(1, &[format!("http://{BARE}/")]).await;
    swarm.agree(5, Duration::from_secs(60)).await;

    let mut records: Vec<ServerRecord> = swarm.records(0).await.unwrap();
    records.extend(swarm.records(1).await.unwrap());
    records.sort_by(|a, b| a.host.cmp(&b.host));
    let trees: Vec<_> = records.iter().map(|record| (record.host.as_str(), record.tree.as_str(), record.state)).collect();
    let tree = |host| (host, "museum.ke.test", RunState::Complete);
    assert_eq!(trees, [tree("museum.ke.test"), tree("shop.museum.ke.test"), tree("www.museum.ke.test")]);
    let external: Vec<_> = records.iter().map(|r| (r.external_urls, r.external_hosts, r.external_domains)).collect();
    assert_eq!(external, [(2, 2, 2), (0, 0, 0), (2, 1, 1)], "what lies within the tree is not external");
    let told: Value = serde_json::from_str(&swarm.cli(0, &["results", "--json"]).await).unwrap();
    let total = &told["summary"]["total"];
    assert_eq!((&total["external_urls"], &total["external_hosts"], &total["external_domains"]), (&4.into(), &3.into(), &3.into()));
    assert!(swarm.stop().await);
}
