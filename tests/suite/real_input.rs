//! Tests that five daemons crawl real pages exactly once, politely, and that this survives the sudden end of one of them.
//!
//! Debian's documentation, split over some thirty hosts in a zone of its own; links cross hosts, and one synthetic site is deeper
//! than the crawl may go. Everything is read off the servers' logs and compared with a traversal by another parser.

use crate::{
    corpus::{Corpus, CorpusPlan, DEPTH},
    support::{Ground, Habits, Judge, Kill, Swarm},
};
use nearcrawl_lab::oracle::Expected;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

/// How long the whole web may take.
const LONG_ENOUGH: Duration = Duration::from_secs(150);

/// How long until everybody knows of everything.
const SOON: Duration = Duration::from_secs(40);

/// The least pause. Answers come at once, so this is what decides how long the largest host takes.
const MIN_DELAY: Duration = Duration::from_millis(100);

/// Whom the starting points are named to.
const SEEDED: usize = 0;

async fn begin() -> (Swarm, Arc<Corpus>, Expected) {
    let ground = Ground::claim();
    let plan = CorpusPlan { net: ground.net, delay_percent: 10, ..CorpusPlan::default() };
    let corpus = Arc::new(Corpus::open(plan).unwrap_or_else(|why| panic!("{why}")));
    let expected = corpus.expected();
    assert_eq!(DEPTH, nearcrawl_lab::demo::world::DEPTH, "the configuration's depth is the demonstration's");
    assert!(corpus.hosts.len() >= 20 && !expected.cut_by_depth.is_empty(), "not the corpus that is meant");
    // A tenth of the round trips, so a tenth of the threshold: distances still decide.
    let habits = Habits { threshold_ms: 4, min_delay_ms: MIN_DELAY.as_millis() as u64, ..Habits::default() };
    let points = corpus.places.access_points;
    let mut swarm = Swarm::prepare(ground, corpus.clone(), corpus.places.registry_files(), corpus.names(), &points, habits).await;
    swarm.start(0..points.len()).await;
    let seeds: Vec<String> = corpus.seeds().iter().map(ToString::to_string).collect();
    swarm.seed(SEEDED, &seeds).await;
    (swarm, corpus, expected)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_daemons_fetch_every_real_page_once() {
    let (mut swarm, corpus, expected) = begin().await;
    let begun = Instant::now();
    let log = swarm.log().clone();
    let judge = Judge { expected: &expected, log: &log, min_delay: MIN_DELAY };
    swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
    let told = swarm.agree(expected.pages() as u64, SOON).await;
    judge.check(&[]);
    assert_eq!(told.summary.total.servers, corpus.hosts.len() as u64);
    assert_eq!(told.summary.total.cut_by_depth, expected.cut_by_depth.len() as u64);
    assert_eq!(told.summary.total.refused_by_robots, expected.refused_by_robots.len() as u64);
    swarm.owned_by_the_living(&corpus.subnets(), SOON).await;
    let workers = log.peers();
    println!("{} requests of {} daemons, {} probes, {:?}", log.len(), workers.len(), log.probes(), begun.elapsed());
    assert_eq!(workers.len(), 5, "work was not shared: {workers:?}");
    // The rows that docs/STUDIES.md and `lab figures` draw a real crawl from are written here.
    if let Ok(file) = std::env::var("NEARCRAWL_SERVERS") {
        swarm.cli(0, &["export", "servers", "--out", &file]).await;
    }
    assert!(swarm.stop().await, "a daemon had to be killed at the end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killing_one_daemon_at_any_moment_loses_nothing() {
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_millis() as u64);
    let seed: u64 = std::env::var("NEARCRAWL_SEED").map_or_else(|_| now(), |text| text.parse().expect("NEARCRAWL_SEED is a number"));
    println!("NEARCRAWL_SEED={seed} repeats this run");
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut swarm, corpus, expected) = begin().await;
    let log = swarm.log().clone();
    let judge = Judge { expected: &expected, log: &log, min_delay: MIN_DELAY };

    // A moment by how far the crawl is, so that it lies in the middle of it on any machine, and a little more.
    let victim = rng.random_range(0..5);
    let after = rng.random_range(30..expected.fetched.len() * 4 / 5);
    let then = Duration::from_millis(rng.random_range(0..400));
    swarm
        .until(&format!("{after} URLs are fetched"), LONG_ENOUGH, async || {
            let done = judge.fetched();
            if done >= after { Ok(()) } else { Err(format!("{done} URLs")) }
        })
        .await;
    if victim == SEEDED {
        // Starting points are with the one they were named to until their owners have recorded them: it would take them along.
        let hosts: BTreeSet<String> = corpus.hosts.iter().map(|host| host.name.to_string()).collect();
        swarm
            .until("every host has been asked something", LONG_ENOUGH, async || {
                let asked: BTreeSet<String> = log.fetches().into_keys().map(|(host, _)| host).collect();
                let left: Vec<_> = hosts.difference(&asked).collect();
                if left.is_empty() { Ok(()) } else { Err(format!("not yet: {left:?}")) }
            })
            .await;
    }
    tokio::time::sleep(then).await;
    let witness = (victim + 1) % 5;
    let held = swarm.held_by(victim, witness).await;
    swarm.daemons[victim].kill().await;
    let kill = Kill { who: swarm.daemons[victim].address, when: log.now() };
    println!("killed daemon {victim} at {} after {} of {} URLs; it held {held:?}", kill.who, judge.fetched(), expected.fetched.len());

    swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
    swarm.agree(expected.pages() as u64, SOON).await;
    judge.check(&[kill]);
    swarm.owned_by_the_living(&corpus.subnets(), SOON).await;
    assert!(swarm.stop().await, "a daemon had to be killed at the end");
}
