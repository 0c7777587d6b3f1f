//! Tests that the made-up world is what the demonstration says of it.

use super::*;
use crate::oracle::Kind;
use crate::web::server::{HttpSite, WebServers};
use std::{collections::BTreeSet, sync::Arc};

fn worlds() -> impl Iterator<Item = World> {
    let plan = |seed, servers| WorldPlan { seed, servers, net: 16 };
    [plan(1, 66), plan(2, 66), plan(3, 60), plan(4, 120), plan(5, 87)].into_iter().map(World::new)
}

#[test]
fn equal_seeds_make_equal_worlds_and_others_do_not() {
    let make = |seed| format!("{:?}", World::new(WorldPlan { seed, ..WorldPlan::default() }));
    assert_eq!(make(7), make(7));
    assert_ne!(make(7), make(8));
}

#[test]
fn there_are_as_many_servers_as_asked_for_each_at_its_own_address_in_a_subnet_of_its_own_region() {
    for world in worlds() {
        let addresses: BTreeSet<_> = world.servers.iter().collect();
        assert_eq!((addresses.len(), world.servers.len()), (world.plan().servers, world.plan().servers));
        assert!(world.inhabited().len() >= 54, "{}", world.inhabited().len());
        assert_eq!(world.inhabited().len(), world.places.lands.len());
        let points: BTreeSet<_> = world.access_points().iter().map(|point| world.places.land_of((*point).into()).unwrap()).collect();
        assert_eq!(points.len(), ACCESS_POINTS);
        assert!(world.access_points().iter().all(|point| !addresses.contains(point)));
    }
}

#[test]
fn the_nearest_is_near_and_the_others_are_told_apart() {
    for world in worlds() {
        for land in &world.places.lands {
            let mut sorted = land.delays;
            sorted.sort_unstable();
            assert!((8..=25).contains(&sorted[0]) && sorted[1] >= 60, "{land:?}");
            assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= 20), "{land:?}");
        }
        let near = |point| world.places.lands.iter().filter(|land| land.nearest(|_| true) == Some(point)).count();
        let counts: Vec<usize> = (0..ACCESS_POINTS).map(near).collect();
        assert!(counts.iter().all(|count| *count >= 5), "{counts:?}");
        assert!(counts[world.victim()] * 8 <= world.places.lands.len(), "{counts:?}");
        let land = world.places.lands[0].clone();
        assert_eq!(land.nearest(|point| point != 0), Some(3));
    }
}

#[test]
fn organisations_help_but_do_not_know_everything() {
    let world = World::new(WorldPlan::default());
    let mut near: BTreeMap<&str, BTreeSet<Option<usize>>> = BTreeMap::new();
    for land in &world.places.lands {
        near.entry(&land.organisation).or_default().insert(land.nearest(|_| true));
    }
    let spread = near.values().filter(|points| points.len() > 1).count();
    assert!((1..=4).contains(&spread), "{spread} of {}", near.len());
    let nested =
        world.places.lands.iter().filter(|land| world.places.lands.iter().any(|other| other != *land && other.subnet.covers(&land.subnet)));
    assert!(nested.count() >= 3);
}

#[test]
fn the_registry_files_count_right_and_hold_every_subnet() {
    for world in worlds() {
        let files = world.places.registry_files();
        assert_eq!(files.len(), ACCESS_POINTS);
        let mut ranges = Vec::new();
        for (name, text) in &files {
            let records: Vec<Vec<&str>> = text.lines().map(|line| line.split('|').collect::<Vec<_>>()).filter(|f| f.len() == 8).collect();
            let summary = text.lines().find(|line| line.ends_with("|summary")).unwrap().split('|').nth(4).unwrap();
            assert_eq!(summary, records.len().to_string(), "{name}");
            for record in records {
                let first = record[3].parse::<Ipv4Addr>().unwrap().to_bits();
                ranges.push((first, first + record[4].parse::<u32>().unwrap()));
            }
        }
        for land in &world.places.lands {
            let IpAddr::V4(first) = land.subnet.first() else { panic!("{land:?}") };
            let end = first.to_bits() + (1 << (32 - land.subnet.length()));
            assert!(ranges.iter().any(|range| range.0 <= first.to_bits() && end <= range.1), "{land:?}");
        }
        // Ranges are nested or apart; none is cut by another, and regions do not run into each other.
        for (start, end) in &ranges {
            let cut = |other: &&(u32, u32)| *start < other.0 && other.0 < *end && *end < other.1;
            assert_eq!(ranges.iter().find(cut), None);
        }
    }
}

#[test]
fn every_page_is_reached_from_the_seeds_and_the_oddities_are_there() {
    for world in worlds() {
        let expected = world.expected();
        for host in &world.hosts {
            assert!(expected.of_host(&host.name) >= host.pages, "{} is not reached", host.name);
            assert!((6..=14).contains(&host.pages));
        }
        let kinds = |kind| expected.fetched.values().filter(|visit| visit.kind == kind).count();
        assert!(kinds(Kind::Redirect) >= 10 && kinds(Kind::NotHtml) >= 10 && kinds(Kind::Status(404)) >= 5);
        let unasked: Vec<_> = expected.fetched.keys().filter(|url| url.names_media()).collect();
        assert!(unasked.is_empty(), "nobody asks for what its name says is no page: {unasked:?}");
        assert_eq!(expected.cut_by_script.len() % (ITEMS as usize - 1), 0);
        assert!(!expected.cut_by_script.is_empty() && expected.refused_by_robots.len() >= 10);
        // Levels 1 to 8 of the chain are fetched, level 9 is the one that is named and cut.
        assert_eq!(expected.cut_by_depth.iter().map(|url| url.path()).collect::<Vec<_>>(), ["/deep/9.html"]);
        assert_eq!(expected.out_of_scope.iter().map(Host::as_str).collect::<Vec<_>>(), ["outside.example"]);
        let subdomain = &world.hosts.last().unwrap().name;
        assert_eq!(expected.trees[subdomain], world.hosts[0].name);
    }
}

#[test]
fn the_rendered_pages_say_what_the_reference_says() {
    let world = World::new(WorldPlan::default());
    for (url, visit) in &world.expected().fetched {
        let answer = world.respond(url.host().as_str(), url.path_and_query());
        match visit.kind {
            Kind::Page => {
                let crate::web::Answer::Page(links) = crate::web::Web::answer(&world, url) else { panic!("{url}") };
                let html = String::from_utf8(answer.body.to_vec()).unwrap();
                let hrefs: Vec<PageUrl> =
                    html.split("href=\"").skip(1).map(|rest| url.join(rest.split('"').next().unwrap()).unwrap()).collect();
                assert_eq!((answer.status, hrefs), (200, links), "{url}");
            }
            Kind::Redirect => assert!(answer.status == 302 && answer.location.is_some(), "{url}"),
            Kind::NotHtml => assert_eq!(answer.content_type, Some("application/pdf"), "{url}"),
            Kind::Status(status) => assert_eq!(answer.status, status, "{url}"),
            Kind::Broken => panic!("{url}: no page of the demonstration is broken"),
        }
    }
}

#[tokio::test]
async fn all_its_servers_can_listen_and_are_as_far_away_as_planned() {
    let world = Arc::new(World::new(WorldPlan { net: 29, ..WorldPlan::default() }));
    let web = WebServers::start(world.web_servers(), world.clone()).await.unwrap();
    assert_eq!(web.addresses().len(), 66);
    let server = IpAddr::V4(world.servers[20]);
    let delays = world.places.lands[world.land_of(server).unwrap()].delays;
    for (point, address) in world.access_points().into_iter().enumerate() {
        assert_eq!(world.delay_ms(server, address.into()), delays[point]);
    }
    web.stop().await;
}

#[test]
fn the_hierarchy_made_of_the_registry_files_knows_the_very_subnets() {
    for world in worlds() {
        let mut builder = nearcrawl_hierarchy::Builder::new();
        for (name, text) in world.places.registry_files() {
            builder.read_delegated(&name, text.as_bytes()).unwrap();
        }
        let hierarchy = builder.finish().unwrap();
        for server in &world.servers {
            let address = IpAddr::V4(*server);
            assert_eq!(hierarchy.subnet_of(address), world.places.lands[world.land_of(address).unwrap()].subnet);
        }
        assert_eq!(hierarchy.len() as usize, world.places.lands.len());
    }
}
