//! Test that nothing recorded is lost or requested again when daemons are killed again and again; measures how soon they are back.
//!
//! Five real daemons crawl a web, and one after the other is killed (`kill -9`) at a moment drawn from a seed and started again on its
//! own state. What was durable at that moment is read from a copy of its state directory, made before it is started again.
//! `NEARCRAWL_KILLS` says how many kills there are, `NEARCRAWL_SEED` which.

use crate::support::{
    Ground, Habits, Judge, Kill, SmallWeb, Swarm,
    disk::{copy, visited},
};
use nearcrawl_lab::demo::daemons::API_PORT;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::{
    collections::BTreeSet,
    env,
    net::Ipv4Addr,
    sync::Arc,
    time::{Duration, Instant},
};

/// How many kills, unless the environment says so.
const KILLS: usize = 50;

/// The hosts, one a subnet.
const HOSTS: usize = 16;

/// Pages of a host that the depth lets through.
const MOST_PAGES: usize = 500;

/// How long a server rests after each answer at least, in milliseconds.
const REST_MS: usize = 1_000;

/// A kill and what follows take so long, in milliseconds: a host's pages shall last for all of them.
const KILL_MS: usize = 1_250;

/// A daemon that was killed answers again within this.
const READY_WITHIN: Duration = Duration::from_secs(5);

/// How long it may take until the daemons agree.
const SOON: Duration = Duration::from_secs(60);

/// What was durable at a kill.
struct Durable {
    kill: Kill,
    /// As the servers' log files URLs.
    urls: BTreeSet<(String, String)>,
}

struct Stage {
    swarm: Swarm,
    web: Arc<SmallWeb>,
    client: reqwest::Client,
    durable: Vec<Durable>,
    /// How long those took to answer that were left alone until they did.
    ready: Vec<Duration>,
}

fn number(variable: &str, unless: usize) -> usize {
    env::var(variable).map_or(unless, |text| text.parse().unwrap_or_else(|why| panic!("{variable}: {why}")))
}

impl Stage {
    async fn set(pages: usize, rest_ms: u64) -> Stage {
        let ground = Ground::claim();
        let web = Arc::new(SmallWeb::new(&ground, HOSTS, pages, 10));
        let points: Vec<Ipv4Addr> = web.places.access_points.to_vec();
        let habits = Habits { threshold_ms: 4, min_delay_ms: rest_ms, ..Habits::default() };
        let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &points, habits).await;
        assert_eq!(points.len(), 5);
        swarm.start(0..5).await;
        swarm.vote(3, SOON).await;
        let client = nearcrawl::io::client::client().no_proxy().timeout(READY_WITHIN).build().unwrap();
        Stage { swarm, web, client, durable: Vec::new(), ready: Vec::new() }
    }

    /// Waits until a daemon that was started at `since` answers; how long it took.
    async fn answers(&mut self, daemon: usize, since: Instant) -> Duration {
        let url = format!("http://{}:{API_PORT}/api/status", self.swarm.daemons[daemon].address);
        loop {
            if let Ok(answer) = self.client.get(&url).send().await
                && answer.status().is_success()
            {
                return since.elapsed();
            }
            if let Some(why) = self.swarm.daemons[daemon].ended() {
                panic!("it does not start again: {why}");
            }
            assert!(since.elapsed() < SOON, "does not answer after a kill: {}", self.swarm.daemons[daemon].address);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Kills a daemon and starts it again; with `patience`, waits until it answers.
    async fn kill(&mut self, victim: usize, patience: bool) {
        self.swarm.daemons[victim].kill().await;
        let who = self.swarm.daemons[victim].address;
        let kill = Kill { who, when: self.swarm.log().now() };
        let copied = self.swarm.common.directory.join("copy");
        copy(&self.swarm.common.directory.join(who.to_string()), &copied);
        let started = Instant::now();
        self.swarm.daemons[victim].start(&self.swarm.common).unwrap();
        if patience {
            let took = self.answers(victim, started).await;
            self.ready.push(took);
        }
        self.durable.push(Durable { kill, urls: visited(&copied).await });
        std::fs::remove_dir_all(&copied).unwrap();
    }

    /// No page that was durable at a kill is asked for after it.
    fn nothing_durable_is_asked_for_again(&self) {
        let requests = self.swarm.log().requests();
        let mut again = Vec::new();
        for Durable { kill, urls } in &self.durable {
            for request in requests.iter().filter(|request| request.method == "GET" && request.start > kill.when) {
                if urls.contains(&(request.host.clone(), request.path.clone())) {
                    again.push(format!("{request:?} after {kill:?}"));
                }
            }
        }
        let most = self.durable.iter().map(|durable| durable.urls.len()).max().unwrap_or_default();
        println!("up to {most} visits were durable where a daemon was killed");
        assert!(most > 0, "nothing was durable at any kill");
        assert!(again.is_empty(), "{} asked for again: {:#?}", again.len(), &again[..again.len().min(10)]);
    }

    fn all_were_ready_soon(&mut self) {
        self.ready.sort_unstable();
        let (median, worst) = (self.ready[self.ready.len() / 2], self.ready[self.ready.len() - 1]);
        println!("{} daemons answered {median:?} after their start (median), {worst:?} at worst", self.ready.len());
        assert!(worst <= READY_WITHIN, "ready after {worst:?}: {:?}", self.ready);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_that_are_killed_again_and_again_lose_nothing_and_ask_for_nothing_twice() {
    let (kills, seed) = (number("NEARCRAWL_KILLS", KILLS), number("NEARCRAWL_SEED", 1));
    let pages = (kills * KILL_MS / REST_MS).clamp(8, MOST_PAGES);
    // What does not fit into the depth is made up for by slower servers.
    let rest_ms = (kills * KILL_MS / pages).max(REST_MS) as u64;
    let mut stage = Stage::set(pages, rest_ms).await;
    let (expected, log) = (stage.web.expected(&stage.web.seeds()), stage.swarm.log().clone());
    let judge = Judge { expected: &expected, log: &log, min_delay: Duration::from_millis(rest_ms) };
    stage.swarm.seed(0, &stage.web.seeds()).await;
    stage.swarm.owned_by_the_living(&stage.web.subnets(), SOON).await;
    let mut random = StdRng::seed_from_u64(seed as u64);
    let mut at_work = 0;
    for number in 1..=kills {
        // The moment is what is drawn: nothing is waited for.
        tokio::time::sleep(Duration::from_millis(random.random_range(0..800))).await;
        let (victim, patience) = (random.random_range(0..5), random.random_range(0..5) > 0);
        at_work += usize::from(judge.fetched() < expected.fetched.len());
        stage.kill(victim, patience).await;
        if number % 10 == 0 {
            println!("{:6.1} s: {number} kills, {} of {} URLs fetched", stage.swarm.age(), judge.fetched(), expected.fetched.len());
        }
    }
    assert!(at_work * 2 >= kills, "everything was fetched after {at_work} kills");
    stage.swarm.together().await;
    let limit = SOON + Duration::from_millis(2 * rest_ms * pages as u64);
    stage.swarm.until("everything is fetched", limit, async || judge.all_fetched()).await;
    stage.swarm.agree(expected.pages() as u64, SOON).await;
    let kills: Vec<Kill> = stage.durable.iter().map(|durable| durable.kill).collect();
    judge.check(&kills);
    stage.nothing_durable_is_asked_for_again();
    stage.all_were_ready_soon();
    assert!(stage.swarm.stop().await);
}
