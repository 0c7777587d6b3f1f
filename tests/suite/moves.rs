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
    collections::BTreeSet,
    net::Ipv4Addr,
    sync::Arc,
    time::{Duration, Instant},
};

/// How long a step may take.
const SOON: Duration = Duration::from_secs(40);

/// How long until others take over from the dead with the default timers: a minute and a bit.
const DEFAULT_PATIENCE: Duration = Duration::from_secs(120);

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

/// Who dies with whoever comes to the step, and who comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    /// One, who comes back at once.
    One,
    /// The other one with it; both come back at once.
    Both,
    /// One, who is away for longer than others wait.
    ForLong,
}

struct Stage {
    swarm: Swarm,
    /// The subnets with servers that are known by now.
    subnets: BTreeSet<Subnet>,
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
        let claims = self.swarm.ownership(0).await.into_iter();
        let movable = claims.filter(|claim| claim.reason != ClaimReason::OwnSubnet && self.subnets.contains(&claim.subnet));
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

    /// Has one die at a step of a hand-over, and come back.
    async fn die_at(&mut self, (step, whose): (&str, Whose), death: Death, number: usize) {
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
        match death {
            Death::One => {}
            Death::Both => {
                self.kill(other).await;
                self.restart(other, None).await;
            }
            Death::ForLong => self.swarm.owned_by_the_living(&self.subnets, DEFAULT_PATIENCE).await,
        }
        self.restart(victim, None).await;
        self.swarm.owned_by_the_living(&self.subnets, SOON).await;
        println!("{:6.1} s: {step}, {death:?}: {subnet} is with {}", self.swarm.age(), self.owner(&subnet).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_dies_at_any_step_of_a_hand_over_nothing_recorded_is_lost_or_fetched_again() {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 8, 900, 10));
    let points: Vec<Ipv4Addr> = (0..4).map(|point| web.places.access_points[point]).collect();
    let habits = Habits { threshold_ms: 4, ..Habits::default() };
    let swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &points, habits).await;
    let (expected, of_first_half, log) = (web.expected(&web.seeds()), web.expected(&web.seeds()[..1]), swarm.log().clone());
    let first_half = Judge { expected: &of_first_half, log: &log, least_delay: Duration::from_millis(REST_MS) };
    let judge = Judge { expected: &expected, log: &log, least_delay: Duration::from_millis(REST_MS) };
    let mut stage = Stage { swarm, subnets: web.subnets_of_half(0), kills: Vec::new() };
    stage.swarm.start(0..4).await;
    stage.swarm.seed(0, &web.seeds()[..1]).await;
    stage.swarm.owned_by_the_living(&stage.subnets, LONG_ENOUGH).await;

    // Undisturbed it only takes a moment, and both sides remember who had it.
    let subnet = stage.movable().await[0];
    let (from, epoch) = (stage.owner(&subnet).await, stage.swarm.owners(0).await[&subnet].1);
    let to = (from + 1) % 4;
    let begun = Instant::now();
    loop {
        let said = stage.ask_to_move(from, &subnet, to).await;
        if said.code == Some(0) && said.said.contains("on its way") {
            break;
        }
        // Its claim is being watched for a moment.
        assert!(said.complained.contains("not settled") && begun.elapsed() < SOON, "{} {}", said.said, said.complained);
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let moved = (stage.swarm.daemons[to].peer_id.clone(), epoch + 1);
    while stage.swarm.owners(from).await.get(&subnet) != Some(&moved) {
        assert!(begun.elapsed() < SOON, "it never arrived");
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let why = stage.swarm.cli(to, &["why", &subnet.to_string()]).await;
    assert!(why.contains("its operator gave it away") && why.contains("better off here"), "{why}");
    let stays = stage.ask_to_move(from, &subnet, to).await;
    assert!(stays.code == Some(69) && stays.complained.contains("does not own it"), "{}", stays.complained);

    for (number, step) in STEPS.into_iter().enumerate() {
        if number == STEPS.len() / 2 {
            // So that there is still something to fetch at the last steps, however long the first ones took.
            stage.subnets = web.subnets();
            stage.swarm.seed(0, &web.seeds()[1..]).await;
            stage.swarm.owned_by_the_living(&stage.subnets, LONG_ENOUGH).await;
        }
        let known_by_now = if number < STEPS.len() / 2 { &first_half } else { &judge };
        stage.die_at(step, Death::One, number).await;
        stage.die_at(step, Death::Both, number + 1).await;
        assert!(known_by_now.all_fetched().is_err(), "{}: everything was fetched before the hand-over", step.0);
    }
    let Stage { mut swarm, kills, .. } = stage;
    swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
    swarm.agree(expected.pages() as u64, SOON).await;
    judge.check(&kills);
    swarm.owned_by_the_living(&web.subnets(), SOON).await;
    assert!(swarm.stop().await, "a daemon had to be killed at the end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_default_timers_nothing_is_lost_either_if_one_stays_away_or_both_die() {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 8, 1_200, 10));
    let points: Vec<Ipv4Addr> = (0..4).map(|point| web.places.access_points[point]).collect();
    let habits = Habits { threshold_ms: 4, timers: "", ..Habits::default() };
    let swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &points, habits).await;
    let (expected, log) = (web.expected(&web.seeds()), swarm.log().clone());
    let judge = Judge { expected: &expected, log: &log, least_delay: Duration::from_millis(REST_MS) };
    let mut stage = Stage { swarm, subnets: web.subnets(), kills: Vec::new() };
    stage.swarm.start(0..4).await;
    stage.swarm.seed(0, &web.seeds()).await;
    stage.swarm.owned_by_the_living(&stage.subnets, LONG_ENOUGH).await;
    let cases = [
        (("given", Whose::Senders), Death::Both),
        (("releasing", Whose::Senders), Death::ForLong),
        (("handed", Whose::Receivers), Death::ForLong),
    ];
    for (number, (step, death)) in cases.into_iter().enumerate() {
        stage.die_at(step, death, number).await;
        assert!(judge.all_fetched().is_err(), "{}: everything was fetched before the hand-over", step.0);
    }
    let Stage { mut swarm, kills, .. } = stage;
    swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
    swarm.agree(expected.pages() as u64, SOON).await;
    judge.check(&kills);
    swarm.owned_by_the_living(&web.subnets(), SOON).await;
    assert!(swarm.stop().await, "a daemon had to be killed at the end");
}
