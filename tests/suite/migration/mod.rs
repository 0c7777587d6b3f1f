//! Test that servers move as in the laboratory when ways change while twelve real daemons crawl, without a page lost or requested twice.
//!
//! Twelve daemons and 220 servers stand for as many places on Earth, with the round trips measured between them. In the middle of the
//! crawl half of the daemons change places, as if their networks had been connected elsewhere: what everybody knows of their distances
//! is wrong from then on. Nobody is told. The servers' logs say what became of it.

mod laboratory;

use crate::support::{FAR_TIMERS, Ground, Habits, RELAY_PORT, RealPlaces, Relay, Swarm};
use nearcrawl_core::migration::judge::Rule;
use nearcrawl_lab::web::server::{HttpAnswer, HttpSite, RequestSeen};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    net::{IpAddr, Ipv4Addr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Pages of each server: more than are crawled while the test lasts.
const PAGES: usize = 160;

/// How many of the daemons change places.
const MOVED: usize = 6;

/// How long a server rests after each answer, in milliseconds.
const REST_MS: u64 = 1_500;

/// How long a server may be nobody's, beside the time that it rests anyway.
const MAX_WITHOUT_OWNER: Duration = Duration::from_secs(5);

/// How long its owner may have stopped before that, until the last rows are copied over long ways.
const MAX_STOP: Duration = Duration::from_secs(2);

/// Requests that make an access.
const ACCESS_REQUESTS: u32 = 4;

/// How long the crawl goes on before the ways change, and afterwards.
const BEFORE: Duration = Duration::from_secs(20);
const AFTER: Duration = Duration::from_secs(90);

/// By how much of what was lost the parts that are regained may differ between daemons and laboratory.
const MAX_APART: f64 = 0.35;

/// What a page takes is the mean of so long.
const LAST: Duration = Duration::from_secs(20);

/// The places, and whether some of them have changed.
struct Shifting {
    places: RealPlaces,
    shifted: AtomicBool,
}

impl Shifting {
    /// Where an access point's traffic enters the world now.
    fn stands_at(&self, point: Ipv4Addr, shifted: bool) -> Ipv4Addr {
        let points = &self.places.points;
        match points.iter().position(|other| other.address == point) {
            Some(index) if shifted && index < MOVED => points[(index + 1) % MOVED].address,
            _ => point,
        }
    }

    /// The way from a server to an access point, in milliseconds.
    fn ms(&self, server: Ipv4Addr, point: Ipv4Addr, shifted: bool) -> Option<f64> {
        self.places.ms(server, self.stands_at(point, shifted))
    }

    fn nearest_ms(&self, server: Ipv4Addr, shifted: bool) -> f64 {
        self.places.points.iter().filter_map(|point| self.ms(server, point.address, shifted)).fold(f64::INFINITY, f64::min)
    }
}

impl HttpSite for Shifting {
    fn respond(&self, _: &str, path: &str) -> HttpAnswer {
        if path != "/" {
            return if path.starts_with("/page/") {
                HttpAnswer::html("<title>A page</title><p>It leads nowhere.")
            } else {
                HttpAnswer::status(404)
            };
        }
        let mut text = "<title>Contents</title>".to_owned();
        for page in 0..PAGES {
            // Writing to a string cannot fail.
            let _ = write!(text, "<a href=/page/{page}>{page}</a>");
        }
        HttpAnswer::html(text)
    }

    fn delay(&self, server: IpAddr, peer: IpAddr) -> Duration {
        let (IpAddr::V4(server), IpAddr::V4(peer)) = (server, peer) else { return Duration::ZERO };
        let ms = self.ms(server, peer, self.shifted.load(Ordering::Relaxed));
        ms.map_or(Duration::ZERO, |ms| Duration::from_secs_f64(ms / 1000.0))
    }
}

/// The pages asked for between two moments of the servers' log.
fn fetches(requests: &[RequestSeen], from: Duration, to: Duration) -> impl Iterator<Item = (Ipv4Addr, Ipv4Addr)> {
    let pages = requests.iter().filter(move |seen| seen.path.starts_with("/page/") && seen.start >= from && seen.start < to);
    pages.filter_map(|seen| match (seen.server, seen.peer) {
        (IpAddr::V4(server), IpAddr::V4(peer)) => Some((server, peer)),
        _ => None,
    })
}

/// The times between two requests to one server when its owner changed between them, the shortest first. Probes are no owner's.
fn pauses_at_changes(requests: &[RequestSeen]) -> Vec<Duration> {
    let mut last: BTreeMap<IpAddr, (Duration, IpAddr)> = BTreeMap::new();
    let mut pauses = Vec::new();
    for seen in requests.iter().filter(|seen| seen.method == "GET") {
        let before = last.insert(seen.server, (seen.end.unwrap_or(seen.start), seen.peer));
        if let Some((ended, _)) = before.filter(|(_, peer)| *peer != seen.peer) {
            pauses.push(seen.start.saturating_sub(ended));
        }
    }
    pauses.sort_unstable();
    pauses
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_move_as_in_the_laboratory_when_the_ways_change_and_no_page_is_asked_for_twice() {
    // Servers of which two moves were in vain stay where they are for a while: so not all is regained in this time, and daemons, which share two
    // cores, regain less than the laboratory. All else has to hold in each.
    let (mut ours, mut theirs) = crawl().await;
    if (ours - theirs).abs() > MAX_APART {
        println!("once more");
        (ours, theirs) = crawl().await;
    }
    assert!((ours - theirs).abs() <= MAX_APART, "the daemons do not do as the laboratory says: {ours:.2} of {theirs:.2}");
}

/// What part of what was lost is regained, by daemons and in the laboratory.
async fn crawl() -> (f64, f64) {
    let ground = Ground::claim_wide();
    let world = Arc::new(Shifting { places: RealPlaces::new(&ground, 1.0), shifted: AtomicBool::new(false) });
    let places = &world.places;
    let points: Vec<Ipv4Addr> = places.points.iter().map(|point| point.address).collect();
    let habits = Habits {
        policy: "nearcrawl",
        min_delay_ms: REST_MS,
        delay_factor: 0,
        advertised_port: RELAY_PORT,
        timers: FAR_TIMERS,
        delegation: format!("requests_per_access = {ACCESS_REQUESTS}\n"),
        ..Habits::default()
    };
    let mut swarm = Swarm::prepare(ground, world.clone(), places.registry_files(), places.names(), &points, habits).await;
    let between = world.clone();
    let _relays = Relay::before_all(&points, move |point, asker| between.places.delay(point.into(), asker.into())).await;
    swarm.start(0..points.len()).await;
    for (number, site) in places.sites.iter().enumerate() {
        swarm.seed(number % points.len(), &[format!("http://{}:8080/", site.host)]).await;
    }
    let all: BTreeSet<Ipv4Addr> = places.sites.iter().map(|site| site.address).collect();
    let log = swarm.log().clone();
    let crawled = |since: Duration| fetches(&log.requests(), since, log.now()).map(|(server, _)| server).collect::<BTreeSet<_>>();
    swarm
        .until("all servers are crawled", Duration::from_secs(120), async || match crawled(Duration::ZERO).len() {
            count if count == all.len() => Ok(()),
            count => Err(format!("{count} of {}", all.len())),
        })
        .await;
    tokio::time::sleep(BEFORE).await;
    world.shifted.store(true, Ordering::Relaxed);
    let shifted_at = log.now();
    tokio::time::sleep(AFTER).await;
    let ended_at = log.now();
    let requests = log.requests();

    let before: Vec<_> = fetches(&requests, shifted_at - LAST, shifted_at).collect();
    let after: Vec<_> = fetches(&requests, ended_at - LAST, ended_at).collect();
    let by = |fetched: &[(Ipv4Addr, Ipv4Addr)], shifted: bool| {
        mean(fetched.iter().filter_map(|(server, point)| world.ms(*server, *point, shifted)))
    };
    let best = |shifted: bool| mean(all.iter().map(|server| world.nearest_ms(*server, shifted)));
    let (settled, struck, recovered) = (by(&before, false), by(&before, true), by(&after, true));
    println!(
        "ms a page: {settled:.1} before (best {:.1}), {struck:.1} had nobody moved, {recovered:.1} in the end (best {:.1})",
        best(false),
        best(true)
    );
    let moved = swarm.metrics("nearcrawl_handovers_total{outcome=\"released\"}").await;
    let owners: BTreeMap<Ipv4Addr, BTreeSet<Ipv4Addr>> =
        fetches(&requests, Duration::ZERO, ended_at).fold(BTreeMap::new(), |mut owners, (server, point)| {
            owners.entry(server).or_insert_with(BTreeSet::new).insert(point);
            owners
        });
    let several = owners.values().filter(|owners| owners.len() > 1).count();
    println!("{moved} moves; {several} of {} servers had several owners", all.len());
    swarm.stop().await;

    let twice: Vec<_> = log.fetches().into_iter().filter(|((_, path), count)| path.starts_with("/page/") && *count > 1).collect();
    assert!(twice.is_empty(), "asked for more than once: {twice:?}");
    let shortest = log.shortest_pause().expect("servers were asked more than once");
    assert!(shortest.lasted >= Duration::from_millis(REST_MS - 1), "{shortest:?}");
    assert_eq!(log.most_requests_at_once().at_once, 1);
    let pauses = pauses_at_changes(&requests);
    let longest = *pauses.last().expect("owners changed");
    let below = |percent: usize| pauses[pauses.len() * percent / 100].as_secs_f64();
    println!(
        "pauses at changes of owner: half below {:.1} s, nine of ten below {:.1}, the longest {:.1}",
        below(50),
        below(90),
        longest.as_secs_f64()
    );
    assert!(longest <= Duration::from_millis(REST_MS) + MAX_STOP + MAX_WITHOUT_OWNER, "a server was left alone for {longest:?}");
    // The laboratory's access points have nothing else to do; these here share two cores with 220 servers.
    let hierarchy = Arc::new(crate::delegation::figures::hierarchy_of(places));
    let expected = laboratory::play(&world, hierarchy, Rule::Nearcrawl, BEFORE, AFTER, LAST);
    println!("the laboratory: {expected:.1?}");
    let regained = |settled: f64, recovered: f64| (struck - recovered) / (struck - settled);
    let (theirs, ours) = (regained(expected.settled, expected.recovered), regained(settled, recovered));
    println!("of what was lost {:.0} % was regained, in the laboratory {:.0} %", 100.0 * ours, 100.0 * theirs);
    (ours, theirs)
}
