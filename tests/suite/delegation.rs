//! Do twelve real daemons find the nearest of them as well as the laboratory says? Real distances, over real sockets.
//!
//! Twelve daemons and 220 servers stand for as many places on Earth, on loopback, with the registration and the round trips that these
//! places have. The servers' logs count the probes; the laboratory is given the same addresses, hierarchy and round trips.

use crate::support::{Anchor, Ground, Habits, RELAY_PORT, RealPlaces, Relay, Swarm};
use nearcrawl::{
    demo::{
        daemons::SWARM_PORT,
        web::{RequestSeen, Site},
    },
    logic::hierarchy::{Builder, Hierarchy},
    model::subnet::Subnet,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Duration,
};

/// Answers take so many times as long as in the world, so that the moments that two busy cores are late weigh less.
const SCALE: f64 = 1.0;

/// The threshold of the paper.
const THRESHOLD_MS: f64 = 50.0;

/// So many sites are waiting for their owner at any time; the laboratory delegates them one by one.
const AT_ONCE: usize = 12;

/// How long it may take until one of them has one.
const STUCK: Duration = Duration::from_secs(40);

/// Members of this swarm are as far apart as in the world.
const TIMERS: &str = "dead_after = \"15s\"\nfence_after = \"10s\"\nstable_after = \"6s\"\n\
     probe_every = \"1s\"\nprobe_timeout = \"800ms\"\nsuspect_for = \"4s\"\n";

/// What a swarm did with some sites.
#[derive(Debug)]
struct Figures {
    sites: usize,
    probes_per_site: f64,
    optimal: f64,
    within: f64,
    mean_extra_ms: f64,
}

impl Figures {
    /// `owner_of` gives the address of the one who holds a site.
    fn new(places: &RealPlaces, probes: usize, owner_of: impl Fn(&Anchor) -> Ipv4Addr) -> Figures {
        let (mut optimal, mut within, mut extra) = (0, 0, 0.0);
        for site in &places.sites {
            let ms = |point: Ipv4Addr| places.ms(site.address, point).expect("measured from everywhere");
            let least = places.points.iter().map(|point| ms(point.address)).fold(f64::INFINITY, f64::min);
            let got = ms(owner_of(site));
            optimal += usize::from(got <= least);
            within += usize::from(got <= (least * 1.1).max(least + 2.0));
            extra += got - least;
        }
        let sites = places.sites.len();
        let share = |count: usize| count as f64 / sites as f64;
        Figures {
            sites,
            probes_per_site: share(probes),
            optimal: share(optimal),
            within: share(within),
            mean_extra_ms: extra / sites as f64,
        }
    }
}

/// The hierarchy that the daemons build of these files.
fn hierarchy_of(places: &RealPlaces) -> Hierarchy {
    let mut builder = Builder::new();
    for (name, text) in places.registry_files() {
        builder.read_delegated(&name, text.as_bytes()).unwrap();
    }
    builder.finish().unwrap()
}

/// Probes of sites, that is without those by which access points measure each other.
fn probes_of_sites(requests: &[RequestSeen], places: &RealPlaces) -> Vec<RequestSeen> {
    let points: BTreeSet<IpAddr> = places.points.iter().map(|point| IpAddr::V4(point.address)).collect();
    requests.iter().filter(|request| request.method == "HEAD" && !points.contains(&request.server)).cloned().collect()
}

async fn end_to_end(policy: &'static str) {
    let env = |name: &str, default: f64| std::env::var(name).ok().and_then(|t| t.parse().ok()).unwrap_or(default);
    let (scale, at_once) = (env("E2E_SCALE", SCALE), env("E2E_AT_ONCE", AT_ONCE as f64) as usize);
    let ground = Ground::claim_wide();
    let places = Arc::new(RealPlaces::new(&ground, scale));
    let hierarchy = hierarchy_of(&places);
    let points: Vec<Ipv4Addr> = places.points.iter().map(|point| point.address).collect();
    let habits = Habits { policy, threshold_ms: (THRESHOLD_MS * scale) as u32, least_delay_ms: 50, delay_factor: 0, ..Habits::default() };
    let mut swarm = Swarm::prepare(ground, places.clone(), places.registry_files(), places.names(), &points, habits).await;
    let mut relays = Vec::new();
    for point in points.clone() {
        let places = places.clone();
        relays.push(Relay::start(point, SWARM_PORT, move |asker| places.delay(point.into(), asker.into())).await.unwrap());
    }
    swarm.start(0..points.len()).await;

    let mut last = std::time::Instant::now();
    // A fixed order that has nothing to do with place: by the last digits of the anchors' numbers.
    let mut order: Vec<&Anchor> = places.sites.iter().collect();
    order.sort_by_key(|site| site.id.bytes().rev().collect::<Vec<u8>>());
    let mut waiting: BTreeSet<Subnet> = BTreeSet::new();
    for (number, site) in order.iter().enumerate() {
        let watch = number % points.len();
        while waiting.len() >= at_once {
            let owned = swarm.owners(watch).await;
            waiting.retain(|subnet| !owned.contains_key(subnet));
            assert!(last.elapsed() < STUCK, "nobody holds {waiting:?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        last = std::time::Instant::now();
        waiting.insert(hierarchy.subnet_of(site.address.into()));
        swarm.seed(number % points.len(), &[format!("http://{}:8080/", site.host)]).await;
    }
    let subnets: BTreeSet<Subnet> = places.sites.iter().map(|site| hierarchy.subnet_of(site.address.into())).collect();
    swarm.owned_by_the_living(&subnets, STUCK).await;
    swarm.agree(places.sites.len() as u64, Duration::from_secs(60)).await;

    let log = swarm.log().clone();
    let owners = swarm.owners(0).await;
    let address_of: BTreeMap<String, Ipv4Addr> = swarm.daemons.iter().map(|daemon| (daemon.peer_id.clone(), daemon.address)).collect();
    let owner_of = |site: &Anchor| address_of[&owners[&hierarchy.subnet_of(site.address.into())].0];
    let probes = probes_of_sites(&log.requests(), &places);
    let figures = Figures::new(&places, probes.len(), owner_of);
    println!("{policy}: {figures:?}");

    // Lab
    swarm.common.write("nodes.csv", &places.nodes_csv()).unwrap();
    swarm.common.write("rtt.csv", &places.round_trips_csv()).unwrap();
    let file = |name: &str| swarm.common.directory.join(name).display().to_string();
    let (snapshot, nodes, rtt) = (file("snapshot"), file("nodes.csv"), file("rtt.csv"));
    let registries: Vec<String> = swarm.common.registries.iter().map(|path| path.display().to_string()).collect();
    let mut build = vec!["hierarchy", "build", "--out", &snapshot];
    build.extend(registries.iter().map(String::as_str));
    println!("{}", swarm.common.ask(&build).await.unwrap());
    for t in ["50"] {
        let args = [
            "lab",
            "delegation",
            "--nodes",
            &nodes,
            "--rtt",
            &rtt,
            "--hierarchy",
            &snapshot,
            "--crawlers",
            "12",
            "--train",
            "0",
            "--policy",
            "ipmicra,random-order,popular-first,brute-force,random-delegation",
            "--rounds",
            "50",
            "--seed",
            "1",
            "--threshold-ms",
            t,
        ];
        println!("{t} {}", swarm.common.ask(&args).await.unwrap());
    }

    {
        use nearcrawl::logic::delegation::{Delegated, Step, ipmicra::IpMicra};
        let point_of: BTreeMap<_, Ipv4Addr> =
            swarm.daemons.iter().map(|d| (d.peer_id.parse::<nearcrawl::model::access_point::AccessPoint>().unwrap(), d.address)).collect();
        let live: Vec<_> = point_of.keys().copied().collect();
        for lag in [0usize, 2, 4, 6, 12, 20] {
            let mut delegated = Delegated::default();
            let mut owner = BTreeMap::new();
            let mut pending = std::collections::VecDeque::new();
            for (who, address) in &point_of {
                let subnet = hierarchy.subnet_of((*address).into());
                delegated.set(hierarchy.position(subnet).unwrap().0, Some(*who));
                owner.insert(subnet, *who);
            }
            let mut total = 0;
            for site in &order {
                let subnet = hierarchy.subnet_of(site.address.into());
                if owner.contains_key(&subnet) {
                    continue;
                }
                let mut search = IpMicra::new(subnet, 50_000);
                let mut asked = Vec::new();
                let verdict = loop {
                    match search.next(&hierarchy, &delegated, &live) {
                        Step::Ask(who) => {
                            let ms = places.ms(site.address, point_of[&who]).unwrap();
                            asked.push(format!("{}:{ms:.0}", point_of[&who]));
                            search.answer(who, Some((ms * 1000.0) as u32));
                        }
                        Step::Settle(verdict) => break verdict,
                    }
                };
                total += asked.len();
                pending.push_back((hierarchy.position(subnet).unwrap().0, Some(verdict.owner)));
                if pending.len() > lag {
                    let (p, o) = pending.pop_front().unwrap();
                    delegated.set(p, o);
                }
                owner.insert(subnet, verdict.owner);
            }
            let figures = Figures::new(&places, total, |site| point_of[&owner[&hierarchy.subnet_of(site.address.into())]]);
            println!("replay {lag} {figures:?}");
        }
    }
    // Noise
    let views = swarm.ownership(0).await;
    let mut noise = Vec::new();
    for view in &views {
        let site = places.sites.iter().find(|site| hierarchy.subnet_of(site.address.into()) == view.subnet);
        if let (Some(site), Some(us)) = (site, view.rtt_us) {
            let shared = places.sites.iter().filter(|site| hierarchy.subnet_of(site.address.into()) == view.subnet).count();
            if shared == 1 && us > 0 {
                let configured = places.ms(site.address, address_of[&view.owner.to_string()]).unwrap() * scale;
                noise.push(f64::from(us) / 1000.0 - configured);
            }
        }
    }
    noise.sort_by(f64::total_cmp);
    let at = |share: f64| noise[((noise.len() - 1) as f64 * share) as usize];
    println!("noise of {}: {:.2} {:.2} {:.2} {:.2} {:.2}", noise.len(), at(0.0), at(0.1), at(0.5), at(0.9), at(1.0));
    assert!(swarm.stop().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn daemons_with_the_paper_s_procedure_do_as_the_laboratory_says() {
    end_to_end("ipmicra").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn daemons_with_the_default_procedure_do_as_the_laboratory_says() {
    end_to_end("nearcrawl").await;
}
