//! Tests that twelve real daemons find the nearest of them as well as the laboratory says: real distances, over real sockets.
//!
//! Twelve daemons and 220 servers stand for as many places on Earth, on loopback, with the registration and the round trips that these
//! places have; what the daemons say to each other takes its time, too. The servers' logs count the probes. The laboratory is given the
//! same addresses, hierarchy and round trips.

pub mod figures;
mod laboratory;

use crate::support::{FAR_TIMERS, Ground, Habits, RELAY_PORT, RealPlaces, Relay, Swarm};
use figures::{Figures, Measured, Outcome, hierarchy_of};
use nearcrawl_lab::web::server::{HttpSite, RequestSeen};
use nearcrawl_model::{access_point::AccessPoint, subnet::Subnet, view::WhyView};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::{Duration, Instant},
};

/// Answers take so many times as long as in the world.
const SCALE: f64 = 1.0;

/// The threshold of the paper, in milliseconds of the world.
const THRESHOLD_MS: f64 = 50.0;

/// So many sites are waiting for their owner at any time; the laboratory delegates them one by one.
const AT_ONCE: usize = 16;

/// How long it may take until one of them has one.
const STUCK: Duration = Duration::from_secs(60);

/// How often is looked whether a site has its owner.
const LOOK_EVERY: Duration = Duration::from_millis(150);

/// How long until everybody tells the same.
const SOON: Duration = Duration::from_secs(60);

/// Twelve daemons at their places.
struct World {
    policy: &'static str,
    places: Arc<RealPlaces>,
    swarm: Swarm,
    _relays: Vec<Relay>,
}

impl World {
    async fn start(policy: &'static str) -> World {
        let ground = Ground::claim_wide();
        let places = Arc::new(RealPlaces::new(&ground, SCALE));
        let points: Vec<Ipv4Addr> = places.points.iter().map(|point| point.address).collect();
        let habits = Habits {
            policy,
            threshold_ms: (THRESHOLD_MS * SCALE) as u32,
            min_delay_ms: 50,
            delay_factor: 0,
            advertised_port: RELAY_PORT,
            timers: FAR_TIMERS,
            ..Habits::default()
        };
        let mut swarm = Swarm::prepare(ground, places.clone(), places.registry_files(), places.names(), &points, habits).await;
        let between = places.clone();
        let relays = Relay::before_all(&points, move |point, asker| between.delay(point.into(), asker.into())).await;
        swarm.start(0..points.len()).await;
        let pairs = points.len() * (points.len() - 1);
        let (asker, running) = (&swarm, swarm.running().len());
        assert_eq!(running, points.len());
        let begun = Instant::now();
        while asker.metrics("nearcrawl_members_measured").await < pairs as f64 {
            assert!(begun.elapsed() < SOON, "some members do not know how far others are");
            tokio::time::sleep(LOOK_EVERY).await;
        }
        World { policy, places, swarm, _relays: relays }
    }

    /// What the daemons delegate when each of the sites turns up.
    fn units(&self) -> BTreeMap<Ipv4Addr, Subnet> {
        let hierarchy = hierarchy_of(&self.places);
        let unit = |site: Ipv4Addr| match self.policy {
            "ipmicra" => hierarchy.subnet_of(site.into()),
            _ => hierarchy.unit_of(site.into()),
        };
        self.places.sites.iter().map(|site| (site.address, unit(site.address))).collect()
    }

    /// Names the sites a few at a time, in an order that has nothing to do with place and each to another member, until all are
    /// somebody's and crawled.
    async fn crawl(&mut self) {
        let units = self.units();
        let mut order: Vec<_> = self.places.sites.iter().collect();
        order.sort_by_key(|site| site.id.bytes().rev().collect::<Vec<u8>>());
        let mut waiting: BTreeSet<Subnet> = BTreeSet::new();
        for (number, site) in order.iter().enumerate() {
            let member = number % self.places.points.len();
            let begun = Instant::now();
            while waiting.len() >= AT_ONCE {
                let owned = self.swarm.owners(member).await;
                waiting.retain(|subnet| !owned.contains_key(subnet));
                assert!(begun.elapsed() < STUCK, "nobody holds {waiting:?}");
                tokio::time::sleep(LOOK_EVERY).await;
            }
            waiting.insert(units[&site.address]);
            self.swarm.seed(member, &[format!("http://{}:8080/", site.host)]).await;
        }
        self.swarm.owned_by_the_living(&units.into_values().collect(), STUCK).await;
        self.swarm.agree(order.len() as u64, SOON).await;
    }

    /// The requests that sites got by this method: not those by which members time the way to each other.
    fn asked(&self, method: &str) -> Vec<RequestSeen> {
        let points: BTreeSet<IpAddr> = self.places.points.iter().map(|point| IpAddr::V4(point.address)).collect();
        let requests = self.swarm.log().requests().into_iter();
        requests.filter(|request| request.method == method && !points.contains(&request.server)).collect()
    }

    async fn outcome(&self) -> Outcome {
        let daemons = self.swarm.daemons.iter();
        let points = daemons.map(|daemon| (daemon.access_point.parse::<AccessPoint>().expect("a peer id"), daemon.address)).collect();
        Outcome::new(self.swarm.ownership(0).await, points)
    }

    /// What the servers saw, what claims tell and what the metrics count must be the same.
    async fn everybody_tells_the_same(&self, outcome: &Outcome) {
        let mut seen: BTreeMap<Subnet, u16> = BTreeMap::new();
        for probe in self.asked("HEAD") {
            let IpAddr::V4(site) = probe.server else { unreachable!("all of it is IPv4") };
            *seen.entry(outcome.claim_of(site).subnet).or_default() += 1;
        }
        let told = outcome.claims.values().filter(|claim| claim.probes > 0).map(|claim| (claim.subnet, claim.probes)).collect();
        assert_eq!(seen, told, "probes by subnet: as the servers saw them, and as the claims tell them");
        for request in self.asked("GET") {
            let IpAddr::V4(site) = request.server else { unreachable!("all of it is IPv4") };
            assert_eq!(request.peer, IpAddr::V4(outcome.owner_of(site)), "not the owner's business: {request:?}");
        }
        let probes = f64::from(seen.values().map(|probes| u32::from(*probes)).sum::<u32>());
        assert_eq!(self.swarm.metrics("nearcrawl_probes_total").await, probes, "probes by the metrics, and by the servers");
        let held = outcome.claims.len() as f64;
        assert_eq!(self.swarm.metrics("nearcrawl_subnets_owned").await, held, "subnets owned by the metrics, and claims");
        for (number, site) in self.places.sites.iter().step_by(self.places.sites.len() / 5).enumerate() {
            let said = self.swarm.cli(number, &["why", site.host.as_str(), "--json"]).await;
            let why: WhyView = serde_json::from_str(&said).unwrap_or_else(|why| panic!("{why}: {said}"));
            assert_eq!(why.address, Some(IpAddr::V4(site.address)), "{said}");
            assert_eq!(why.ownership.as_ref(), Some(outcome.claim_of(site.address)), "{said}");
        }
    }

    /// One of them is gone without notice. What it held goes to those who measured it, too, the nearest first, and nobody probes again.
    async fn deputies_take_over(&mut self, before: &Outcome) {
        let count = |index: &usize| before.held_by(self.places.points[*index].address).len();
        // Not the first, whom the others were told to ask; of the others the one with the most to take over.
        let victim = (1..self.places.points.len()).max_by_key(count).expect("there are twelve");
        let held = before.held_by(self.places.points[victim].address);
        let remembered = held.iter().filter(|subnet| Outcome::others(&before.claims[*subnet]).next().is_some()).count();
        assert!(remembered >= 5, "only {remembered} of {} subnets were measured by others", held.len());
        let probes = self.asked("HEAD").len();
        self.swarm.daemons[victim].kill().await;
        println!("{:6.1} s: killed the owner of {} subnets, {remembered} of which others measured", self.swarm.age(), held.len());
        self.swarm.owned_by_the_living(&before.claims.keys().copied().collect(), SOON).await;
        self.swarm.agree(self.places.sites.len() as u64, SOON).await;

        let after = self.outcome().await;
        for (subnet, claim) in &before.claims {
            let (new, is_its) = (&after.claims[subnet], held.contains(subnet));
            assert_eq!(new.epoch, claim.epoch + u64::from(is_its), "{subnet}: only what it held changes hands, and only once");
            if let (true, Some(nearest)) = (is_its, Outcome::others(claim).next()) {
                assert_eq!(Some(new.owner), nearest.access_point, "{subnet}: not to the nearest of {:?}", claim.measurements);
            }
        }
        assert_eq!(self.asked("HEAD").len(), probes, "probes after a death");
        assert_eq!(self.swarm.metrics("nearcrawl_takeovers_without_probe_total").await, remembered as f64, "take-overs by the metrics");
    }
}

/// Delegates all sites by one policy, and compares.
async fn as_the_laboratory_says(policy: &'static str, in_the_laboratory: &str) -> (World, Outcome) {
    let mut world = World::start(policy).await;
    world.crawl().await;
    let outcome = world.outcome().await;
    world.everybody_tells_the_same(&outcome).await;

    let probes = world.asked("HEAD");
    let measured = Measured::new(&world.places, &outcome, probes.iter().map(|probe| (probe.server, probe.peer)));
    let (places, owner_of) = (&world.places, |site| outcome.owner_of(site));
    let real = Figures::new(places, probes.len(), |site, point| places.ms(site, point).expect("measured"), owner_of);
    let got = Figures::new(places, probes.len(), |site, point| measured.ms(site, point), owner_of);
    let expected = laboratory::play(&world.swarm, places, &measured, in_the_laboratory, THRESHOLD_MS).await;
    println!("{policy}, twelve daemons, {} sites, answers {SCALE} times as slow as in the world", places.sites.len());
    println!("by the real round trips:      {real:?}");
    println!("by those that were measured:  {got:?}");
    println!("the laboratory with the same: {expected:?}");
    let late: Vec<String> = (0..=10).map(|decile| format!("{:.1}", measured.late(decile))).collect();
    println!("{} answers came late by (deciles, ms): {}", measured.count(), late.join(" "));
    expected.check(&got);
    (world, outcome)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn daemons_with_the_paper_s_procedure_do_as_the_laboratory_says() {
    let (mut world, _) = as_the_laboratory_says("ipmicra", "ipmicra").await;
    world.swarm.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn daemons_with_the_default_procedure_do_as_the_laboratory_says_and_deputies_need_no_probe() {
    let (mut world, outcome) = as_the_laboratory_says("nearcrawl", "nearcrawl@0.3").await;
    world.deputies_take_over(&outcome).await;
    // Whoever still has journals to copy to those who have stopped would wait for them.
    world.swarm.stop().await;
}
