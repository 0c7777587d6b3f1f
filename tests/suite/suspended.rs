//! Tests of a daemon that wakes up (SIGSTOP, SIGCONT) after its lease has ended: it requests nothing without a fresh lease.
//!
//! Others may request by then.

use crate::support::{DEAD_AFTER, Ground, Habits, Judge, Kill, LEASE, QUICK_TIMERS, SmallWeb, Swarm};
use nearcrawl_lab::web::server::{Log, RequestSeen};
use nearcrawl_model::subnet::Subnet;
use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::{Duration, Instant},
};

const LONG_ENOUGH: Duration = Duration::from_secs(120);

const SOON: Duration = Duration::from_secs(40);

/// The least pause between two requests to a server: the crawl shall last for longer than a daemon stands still.
const MIN_DELAY: Duration = Duration::from_millis(1_000);

/// The lease of [`LEASE`], but nobody takes over while the sleeper and then the voters stand still: by their clocks both times count.
const PATIENT_TIMERS: &str = "dead_after = \"40s\"\nlease = \"6s\"\nvote_after = \"6s\"\n\
     ping_interval = \"400ms\"\nping_timeout = \"300ms\"\nsuspicion_timeout = \"2s\"\n";

/// Whoever stands still; the founder and the other one go on.
const SLEEPER: usize = 1;

struct Stage {
    swarm: Swarm,
    web: Arc<SmallWeb>,
    log: Arc<Log>,
}

impl Stage {
    /// Three daemons that vote, in the middle of a crawl.
    async fn set(timers: &'static str) -> Stage {
        let ground = Ground::claim();
        let web = Arc::new(SmallWeb::new(&ground, 16, 45, 10));
        let points: Vec<Ipv4Addr> = [0, 1, 3].map(|point| web.places.access_points[point]).to_vec();
        let habits = Habits { threshold_ms: 4, min_delay_ms: MIN_DELAY.as_millis() as u64, timers, ..Habits::default() };
        let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &points, habits).await;
        swarm.start(0..3).await;
        swarm.vote(3, SOON).await;
        swarm.seed(0, &web.seeds()).await;
        swarm.owned_by_the_living(&web.subnets(), LONG_ENOUGH).await;
        let log = swarm.log().clone();
        Stage { swarm, web, log }
    }

    fn signal(&self, daemon: usize, signal: i32) {
        let process = self.swarm.daemons[daemon].process().expect("it runs");
        // SAFETY: plain system call; the child has not been waited for, so the id is still its own.
        assert_eq!(unsafe { libc::kill(process.cast_signed(), signal) }, 0);
    }

    async fn freeze(&self, daemon: usize) {
        self.signal(daemon, libc::SIGSTOP);
        while !self.swarm.daemons[daemon].is_frozen() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// What the sleeper asked since the log had so many requests.
    fn asked_since(&self, position: usize) -> Vec<RequestSeen> {
        let sleeper = IpAddr::V4(self.swarm.daemons[SLEEPER].address);
        self.log.since(position).into_iter().filter(|request| request.peer == sleeper).collect()
    }

    /// The crawl comes to its end, and is judged.
    async fn finish(&mut self, stopped: Kill) {
        let expected = self.web.expected(&self.web.seeds());
        let judge = Judge { expected: &expected, log: &self.log, min_delay: MIN_DELAY };
        assert!(judge.all_fetched().is_err(), "everything was fetched while it stood still");
        self.swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
        self.swarm.agree(expected.pages() as u64, SOON).await;
        // Whoever stands still cannot close its idle connections: they are not counted here.
        judge.everything_once_and_nothing_else(&[stopped]);
        judge.pauses_kept();
        assert_eq!(self.log.most_requests_at_once().at_once, 1, "{:?}", self.log.most_requests_at_once());
    }
}

/// The requests among these to servers in one of the subnets.
fn into(requests: Vec<RequestSeen>, web: &SmallWeb, subnets: &BTreeSet<Subnet>) -> Vec<RequestSeen> {
    requests.into_iter().filter(|request| web.is_in(request.server, subnets)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_wakes_after_others_took_over_asks_their_servers_nothing() {
    let mut stage = Stage::set(QUICK_TIMERS).await;
    let theirs = stage.swarm.held_by(SLEEPER, 0).await;
    assert!(theirs.len() >= 2, "{theirs:?}");
    stage.freeze(SLEEPER).await;
    let stopped = Kill { who: stage.swarm.daemons[SLEEPER].address, when: stage.log.now() };
    let (begun, sleeper) = (Instant::now(), stage.swarm.daemons[SLEEPER].access_point.clone());
    // Another asks one of these servers, and none is the sleeper's any more.
    loop {
        let owners = stage.swarm.owners(0).await;
        let left = owners.values().filter(|(owner, _)| *owner == sleeper).count();
        let others = stage.log.requests().into_iter().filter(|request| request.start > stopped.when && request.peer != stopped.who);
        if left == 0 && !into(others.collect(), &stage.web, &theirs).is_empty() {
            break;
        }
        assert!(begun.elapsed() < DEAD_AFTER + SOON, "{left} subnets are not taken over");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("taken over within {:?}", begun.elapsed());
    let position = stage.log.len();
    stage.swarm.daemons[SLEEPER].thaw();
    stage.swarm.together().await;
    stage.swarm.owned_by_the_living(&stage.web.subnets(), SOON).await;
    stage.finish(stopped).await;
    // Nothing moves but from the dead: what the others took is theirs to the end.
    let asked = into(stage.asked_since(position), &stage.web, &theirs);
    assert!(asked.is_empty(), "asked servers that are another's: {asked:#?}");
    let back = stage.swarm.held_by(SLEEPER, 0).await;
    assert!(theirs.is_disjoint(&back), "it got some of {theirs:?} back: {back:?}");
    assert!(stage.swarm.stop().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_wakes_after_its_lease_asks_nothing_before_it_is_renewed() {
    let mut stage = Stage::set(PATIENT_TIMERS).await;
    stage.freeze(SLEEPER).await;
    let stopped = Kill { who: stage.swarm.daemons[SLEEPER].address, when: stage.log.now() };
    // Time is what ends a lease: there is nothing else to wait for. Nobody may take over yet.
    tokio::time::sleep(LEASE + Duration::from_millis(300)).await;
    // Those that could renew it stand still now, and it wakes.
    for voter in [0, 2] {
        stage.freeze(voter).await;
    }
    let position = stage.log.len();
    stage.swarm.daemons[SLEEPER].thaw();
    tokio::time::sleep(4 * MIN_DELAY).await;
    let asked = stage.asked_since(position);
    assert!(asked.is_empty(), "asked without a lease: {asked:#?}");
    for voter in [0, 2] {
        stage.swarm.daemons[voter].thaw();
    }
    let (begun, log) = (Instant::now(), stage.log.clone());
    let who = IpAddr::V4(stopped.who);
    stage
        .swarm
        .until("it asks again", SOON, async || {
            let asked = log.since(position).iter().any(|request| request.peer == who);
            if asked { Ok(()) } else { Err("nothing".to_owned()) }
        })
        .await;
    println!("it asks again {:?} after the others are back", begun.elapsed());
    stage.finish(stopped).await;
    assert!(stage.swarm.stop().await);
}
