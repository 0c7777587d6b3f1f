//! Tests that each row fails when, and only when, what it says is not so.
//!
//! A flawless crawl is made up, then spoiled in one way a time.

use super::*;
use crate::demo::world::WorldPlan;
use nearcrawl_model::summary::Summary;
use std::sync::Arc;

/// A crawl as the demonstration would have observed it.
struct Crawl {
    world: World,
    expected: Expected,
    log: Arc<Log>,
    peers: Vec<String>,
    ownership: Vec<Owned>,
    fail_over: FailOver,
    told: Vec<(String, Option<Told>)>,
}

fn ask(log: &Arc<Log>, server: IpAddr, peer: IpAddr, method: &str, host: &str, path: &str) {
    let request = RequestSeen {
        start: Duration::ZERO,
        end: None,
        server,
        peer,
        method: method.to_owned(),
        host: host.to_owned(),
        path: path.to_owned(),
        status: None,
    };
    log.asked(request).answered(200);
}

impl Crawl {
    fn flawless() -> Crawl {
        let world = World::new(WorldPlan::default());
        let expected = world.expected();
        let log: Arc<Log> = Arc::default();
        let (socket, _other) = socket2::Socket::pair(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
        drop(log.opened(world.servers[0].into(), socket));
        let addresses: BTreeMap<_, _> = world.names().collect();
        for url in expected.fetched.keys() {
            let server = addresses[&url.host()];
            let land = &world.places.lands[world.land_of(server).unwrap()];
            let nearest = land.nearest(|point| point != world.victim()).unwrap();
            ask(&log, server, world.access_points()[nearest].into(), "GET", url.host().as_str(), url.path_and_query());
        }
        let peers: Vec<String> = (0..5).map(|point| format!("peer-{point}")).collect();
        let own = |land: &super::super::world::Land| Owned {
            subnet: land.subnet,
            owner: peers[land.nearest(|point| point != world.victim()).unwrap()].clone(),
            probes: 1,
            released: false,
        };
        let ownership = world.places.lands.iter().map(own).collect();
        let fail_over = FailOver {
            killed: Some(log.now()),
            held: ["127.16.192.0/24".to_owned()].into(),
            taken_over: Some(log.now() + Duration::from_secs(50)),
        };
        let mut summary = Summary::default();
        summary.total.pages = expected.pages() as u64;
        let told =
            ["one", "two", "a non-member"].map(|who| (who.to_owned(), Some(Told { exact: true, summary: summary.clone() }))).to_vec();
        Crawl { world, expected, log, peers, ownership, fail_over, told }
    }

    fn table(&self) -> Vec<Row> {
        let Crawl { world, expected, log, peers, ownership, fail_over, told } = self;
        Observed { world, expected, log, peers, ownership, fail_over, told }.table()
    }

    /// What does not hold.
    fn failures(&self) -> Vec<String> {
        self.table().into_iter().filter(|row| !row.holds).map(|row| row.what).collect()
    }

    /// The first URL to be fetched, with its server.
    fn some_url(&self) -> (IpAddr, String, String) {
        let (host, path) = key(self.expected.fetched.keys().next().unwrap());
        let server = self.world.names().find(|(name, _)| name.as_str() == host).unwrap().1;
        (server, host, path)
    }
}

#[test]
fn a_flawless_crawl_holds_in_every_row() {
    assert_eq!(Crawl::flawless().failures(), Vec::<String>::new());
}

#[test]
fn a_fifth_of_wrong_owners_is_borne_and_more_is_not() {
    let mut crawl = Crawl::flawless();
    let lands = crawl.ownership.len();
    for owned in &mut crawl.ownership[..lands / 6] {
        owned.owner = "peer-4".to_owned();
    }
    assert!(crawl.failures().is_empty());
    for owned in &mut crawl.ownership[..lands / 4] {
        owned.owner = "peer-4".to_owned();
    }
    assert_eq!(crawl.failures(), ["subnets owned by the nearest living access point"]);
    crawl = Crawl::flawless();
    crawl.ownership.clear();
    assert_eq!(crawl.failures().len(), 1);
}

#[test]
fn a_misplaced_subnet_is_told_in_words() {
    let mut crawl = Crawl::flawless();
    let place = crawl.world.places.lands[0].clone();
    let nearest = place.nearest(|point| point != crawl.world.victim()).unwrap();
    let other = (nearest + 1) % crawl.world.victim();
    let at = |point: usize| format!("{} at {} ms", crawl.world.access_points()[point], place.delays[point]);
    let (nearest, owner) = (at(nearest), at(other));
    let told = |crawl: &Crawl| crawl.table()[0].examples[0].clone();
    let start = format!("{} ({}): ", place.subnet, place.organisation);

    crawl.ownership[0].owner = crawl.peers[other].clone();
    assert_eq!(told(&crawl), format!("{start}owner is {owner}; nearest is {nearest}"));
    let victim = crawl.world.victim();
    crawl.ownership[0].owner = crawl.peers[victim].clone();
    assert_eq!(told(&crawl), format!("{start}owner is {}, killed; nearest is {nearest}", crawl.world.access_points()[victim]));
    crawl.ownership.remove(0);
    assert_eq!(told(&crawl), format!("{start}has no owner; nearest is {nearest}"));
}

#[test]
fn the_table_fits_a_hundred_columns_however_much_fails() {
    let flawless = Crawl::flawless();
    let mut spoilt = Crawl::flawless();
    spoilt.log = Arc::default();
    spoilt.ownership.iter_mut().for_each(|owned| owned.owner = "peer-4".to_owned());
    spoilt.fail_over.taken_over = None;
    spoilt.told.iter_mut().for_each(|(_, told)| told.as_mut().unwrap().exact = false);
    spoilt.told[1].1 = None;
    let (server, host, path) = spoilt.some_url();
    for path in
        [path.as_str(), path.as_str(), "/a/very/long/path/that/nobody/links/to/and/that/would/never/fit/into/one/line/of/a/hundred/columns"]
    {
        ask(&spoilt.log, server, spoilt.world.access_points()[0].into(), "GET", &host, path);
    }
    assert!(spoilt.failures().len() > 5, "{:?}", spoilt.failures());
    for crawl in [flawless, spoilt] {
        let text = crate::demo::show::table(&crawl.table());
        let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(widest.chars().count() <= crate::demo::show::MAX_COLUMNS, "{widest}");
    }
}

#[test]
fn probes_are_counted_by_the_servers() {
    let crawl = Crawl::flawless();
    let (server, host, _) = crawl.some_url();
    for _ in 0..crawl.world.inhabited().len() * 4 {
        ask(&crawl.log, server, crawl.world.access_points()[0].into(), "HEAD", &host, "/robots.txt");
    }
    assert_eq!(crawl.failures(), ["probes a subnet, counted by the servers"]);
}

#[test]
fn a_missing_page_and_a_forbidden_one_are_named() {
    let mut crawl = Crawl::flawless();
    let url = PageUrl::parse("http://museum.ke.test:8080/never-asked").unwrap();
    let visit = crawl.expected.fetched.values().next().unwrap().clone();
    crawl.expected.fetched.insert(url, visit);
    crawl.told.iter_mut().for_each(|(_, told)| told.as_mut().unwrap().summary.total.pages += 1);
    assert_eq!(crawl.failures(), ["reachable URLs fetched"]);

    let crawl = Crawl::flawless();
    let closed = crawl.expected.refused_by_robots.first().unwrap().clone();
    let (server, ..) = crawl.some_url();
    ask(&crawl.log, server, crawl.world.access_points()[0].into(), "GET", closed.host().as_str(), closed.path());
    assert_eq!(crawl.failures(), ["URLs fetched that must not be"]);
}

#[test]
fn fetched_again_is_excused_only_by_the_kill() {
    let again = |first_by_victim: bool, long_before: bool| {
        let mut crawl = Crawl::flawless();
        crawl.log = Arc::default();
        let (server, host, path) = crawl.some_url();
        let [.., other, victim] = crawl.world.access_points();
        ask(&crawl.log, server, if first_by_victim { victim } else { other }.into(), "GET", &host, &path);
        ask(&crawl.log, server, other.into(), "GET", &host, &path);
        crawl.fail_over.killed = Some(crawl.log.now() + if long_before { Duration::from_secs(60) } else { Duration::ZERO });
        crawl.failures().contains(&"URLs fetched again".to_owned())
    };
    assert!(!again(true, false));
    assert!(again(true, true));
    assert!(again(false, false));
}

#[test]
fn two_at_once_fail_their_rows() {
    let crawl = Crawl::flawless();
    let server: IpAddr = crawl.world.servers[3].into();
    let pair = || socket2::Socket::pair(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
    let ((one, _one), (two, _two)) = (pair(), pair());
    for socket in [&one, &two] {
        socket.set_nonblocking(true).unwrap();
    }
    let _both = (crawl.log.opened(server, one), crawl.log.opened(server, two));
    assert_eq!(crawl.failures(), ["most connections at once at any server"]);
}

#[test]
fn totals_must_be_equal_exact_and_right() {
    let mut crawl = Crawl::flawless();
    crawl.told[2].1.as_mut().unwrap().summary.total.bytes += 1;
    assert_eq!(crawl.failures(), ["totals told by two members and a non-member"]);
    let mut crawl = Crawl::flawless();
    crawl.told.iter_mut().for_each(|(_, told)| told.as_mut().unwrap().exact = false);
    assert_eq!(crawl.failures(), ["totals told by two members and a non-member"]);
    let mut crawl = Crawl::flawless();
    crawl.told[1].1 = None;
    assert_eq!(crawl.failures(), ["totals told by two members and a non-member"]);
    let mut crawl = Crawl::flawless();
    crawl.told.iter_mut().for_each(|(_, told)| told.as_mut().unwrap().summary.total.pages -= 1);
    assert_eq!(crawl.failures(), ["pages recorded, each once"]);
}

#[test]
fn without_a_take_over_the_fail_over_row_fails() {
    let mut crawl = Crawl::flawless();
    crawl.fail_over.taken_over = None;
    assert_eq!(crawl.failures(), ["fail-over: from kill -9 to a living owner for all"]);
    crawl.fail_over.killed = None;
    assert!(crawl.failures().contains(&"fail-over: from kill -9 to a living owner for all".to_owned()));
}
