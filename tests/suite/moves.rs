//! A subnet goes from one real daemon to another, and one of them dies on the way, or both: is anything lost or asked for twice?
//!
//! The daemons are told where to die: at each step of a hand-over, before what follows from it is done. They come back, and the crawl
//! goes on; in the end the servers' log is judged as a whole.

use crate::support::{Ended, Ground, Habits, Judge, Kill, SmallWeb, Swarm, nearcrawl};
use nearcrawl::{
    demo::daemons::API_PORT,
    model::{claim::ClaimReason, subnet::Subnet},
};
use std::{
    net::Ipv4Addr,
    sync::Arc,
    time::{Duration, Instant},
};

/// How long a step may take.
const SOON: Duration = Duration::from_secs(40);

/// How long the whole web may take.
const LONG_ENOUGH: Duration = Duration::from_secs(180);

/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long servers rest, in milliseconds.
const REST_MS: u64 = 100;

/// Whose step it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Senders,
    Receivers,
}

/// The steps, as the daemons name them.
const STEPS: [(&str, Whose); 8] = [
    ("offered", Whose::Senders),
    ("coming", Whose::Receivers),
    ("copying", Whose::Senders),
    ("stopping", Whose::Senders),
    ("closing", Whose::Senders),
    ("releasing", Whose::Senders),
    ("given", Whose::Senders),
    ("handed", Whose::Receivers),
];

struct Stage {
    swarm: Swarm,
    web: Arc<SmallWeb>,
    kills: Vec<Kill>,
}

impl Stage {
    /// The index of the daemon that holds a subnet.
    async fn owner(&self, subnet: &Subnet) -> usize {
        let owners = self.swarm.owners(0).await;
        let owner = &owners.get(subnet).unwrap_or_else(|| panic!("nobody holds {subnet}")).0;
        self.swarm.daemons.iter().position(|daemon| daemon.peer_id == *owner).expect("a daemon of the swarm")
    }

    /// The subnets with servers that no daemon lives in itself.
    async fn movable(&self) -> Vec<Subnet> {
        let with_servers = self.web.subnets();
        let claims = self.swarm.ownership(0).await.into_iter();
        let movable = claims.filter(|claim| claim.reason != ClaimReason::OwnSubnet && with_servers.contains(&claim.subnet));
        movable.map(|claim| claim.subnet).collect()
    }

    async fn ask_to_move(&self, from: usize, subnet: &Subnet, to: usize) -> Ended {
        let api = format!("http://{}:{API_PORT}", self.swarm.daemons[from].address);
        nearcrawl(&["move", &subnet.to_string(), &self.swarm.daemons[to].peer_id, "--api", &api]).await
    }

    /// Starts a daemon again, to die at a step or not.
    async fn restart(&mut self, daemon: usize, die_at: Option<&str>) {
        let environment: Vec<(&str, &str)> = die_at.iter().map(|step| ("NEARCRAWL_DIE_AT", *step)).collect();
        self.swarm.daemons[daemon].start_with(&self.swarm.common, &environment).unwrap_or_else(|why| panic!("{why}"));
        self.swarm.together().await;
    }

    async fn kill(&mut self, daemon: usize) {
        self.swarm.daemons[daemon].kill().await;
        self.kills.push(Kill { who: self.swarm.daemons[daemon].address, when: self.swarm.log().now() });
    }

    /// Has one die at a step of a hand-over, the other with it or not, and both come back.
    async fn die_at(&mut self, (step, whose): (&str, Whose), both: bool, number: usize) {
        let subnets = self.web.subnets();
        let movable = self.movable().await;
        let subnet = movable[number % movable.len()];
        let from = self.owner(&subnet).await;
        let to = (from + 1 + number % (self.swarm.daemons.len() - 1)) % self.swarm.daemons.len();
        let (victim, other) = if whose == Whose::Senders { (from, to) } else { (to, from) };
        assert!(self.swarm.daemons[victim].stop().await);
        self.restart(victim, Some(step)).await;
        let begun = Instant::now();
        while self.swarm.daemons[victim].ended().is_none() {
            assert!(begun.elapsed() < SOON, "{step}: the hand-over never came so far");
            // It may not be settled yet after the restart.
            self.ask_to_move(from, &subnet, to).await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
        self.kill(victim).await;
        if both {
            self.kill(other).await;
            self.restart(other, None).await;
        }
        self.restart(victim, None).await;
        self.swarm.owned_by_the_living(&subnets, SOON).await;
        println!(
            "{:6.1} s: {step}, {}: {subnet} is with {}",
            self.swarm.age(),
            if both { "both" } else { "one" },
            self.owner(&subnet).await
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_dies_at_any_step_of_a_hand_over_nothing_recorded_is_lost_or_fetched_again() {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 8, 900, 10));
    let points: Vec<Ipv4Addr> = (0..4).map(|point| web.places.access_points[point]).collect();
    let habits = Habits { threshold_ms: 4, ..Habits::default() };
    let swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &points, habits).await;
    let (expected, log) = (web.expected(&web.seeds()), swarm.log().clone());
    let judge = Judge { expected: &expected, log: &log, least_delay: Duration::from_millis(REST_MS) };
    let mut stage = Stage { swarm, web: web.clone(), kills: Vec::new() };
    stage.swarm.start(0..4).await;
    stage.swarm.seed(0, &web.seeds()).await;
    stage.swarm.owned_by_the_living(&web.subnets(), LONG_ENOUGH).await;

    // Undisturbed it only takes a moment, and both sides remember who had it.
    let subnet = stage.movable().await[0];
    let (from, epoch) = (stage.owner(&subnet).await, stage.swarm.owners(0).await[&subnet].1);
    let to = (from + 1) % 4;
    let said = stage.ask_to_move(from, &subnet, to).await;
    assert!(said.code == Some(0) && said.said.contains("on its way"), "{} {}", said.said, said.complained);
    let moved = (stage.swarm.daemons[to].peer_id.clone(), epoch + 1);
    let begun = Instant::now();
    while stage.swarm.owners(from).await.get(&subnet) != Some(&moved) {
        assert!(begun.elapsed() < SOON, "it never arrived");
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let why = stage.swarm.cli(to, &["why", &subnet.to_string()]).await;
    assert!(why.contains("its operator gave it away") && why.contains("better off here"), "{why}");
    let stays = stage.ask_to_move(from, &subnet, to).await;
    assert!(stays.code == Some(69) && stays.complained.contains("does not own it"), "{}", stays.complained);

    for (number, step) in STEPS.into_iter().enumerate() {
        stage.die_at(step, false, number).await;
        stage.die_at(step, true, number + 1).await;
    }
    let Stage { mut swarm, kills, .. } = stage;
    let waiting = expected.fetched.len() - judge.fetched();
    assert!(waiting > 0, "everything was fetched before the last hand-over");
    swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
    swarm.agree(expected.pages() as u64, SOON).await;
    judge.check(&kills);
    swarm.owned_by_the_living(&web.subnets(), SOON).await;
    assert!(swarm.stop().await, "a daemon had to be killed at the end");
}
