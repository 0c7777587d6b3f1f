//! Tests that nothing is lost or requested twice when a subnet goes from one real daemon to another, and one of them dies, or both.
//!
//! The daemons are told where to die: at each step of a hand-over, before what follows from it is done. They come back, and the crawl
//! goes on; in the end the servers' log is judged as a whole.

use crate::support::{Ended, Ground, Habits, Judge, Kill, SmallWeb, Swarm, nearcrawl};
use nearcrawl_lab::demo::daemons::API_PORT;
use nearcrawl_lab::oracle::Expected;
use nearcrawl_lab::web::server::Log;
use nearcrawl_model::{claim::ClaimReason, subnet::Subnet};
use std::{
    collections::BTreeSet,
    net::Ipv4Addr,
    sync::Arc,
    time::{Duration, Instant},
};

/// How long a step may take.
const SOON: Duration = Duration::from_secs(40);

/// How long until others take over from the dead with the default timers: a minute and a bit.
const TAKE_OVER_WITHIN: Duration = Duration::from_secs(120);

/// How long the whole web may take.
const LONG_ENOUGH: Duration = Duration::from_secs(180);

/// How soon a daemon answers if it ever does.
const ANSWERED: Duration = Duration::from_secs(1);

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
    /// The other one, while whoever comes to the step stands still; it comes back at once.
    Other,
    /// Both; they come back at once.
    Both,
    /// One, who is away for longer than others wait.
    ForLong,
}

struct Stage {
    swarm: Swarm,
    web: Arc<SmallWeb>,
    expected: Expected,
    /// Of the first half of the web alone.
    expected_of_first_half: Expected,
    log: Arc<Log>,
    /// The subnets with servers that are known by now.
    subnets: BTreeSet<Subnet>,
    kills: Vec<Kill>,
}

impl Stage {
    /// Four daemons that crawl the first half of a web.
    async fn set(timers: &'static str) -> Stage {
        let ground = Ground::claim();
        let web = Arc::new(SmallWeb::new(&ground, 8, 900, 10));
        let points: Vec<Ipv4Addr> = (0..4).map(|point| web.places.access_points[point]).collect();
        let habits = Habits { threshold_ms: 4, timers, ..Habits::default() };
        let swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &points, habits).await;
        let (expected, expected_of_first_half) = (web.expected(&web.seeds()), web.expected(&web.seeds()[..1]));
        let (log, subnets) = (swarm.log().clone(), web.subnets_of_half(0));
        let mut stage = Stage { swarm, web, expected, expected_of_first_half, log, subnets, kills: Vec::new() };
        stage.swarm.start(0..4).await;
        stage.swarm.seed(0, &stage.web.seeds()[..1]).await;
        stage.swarm.owned_by_the_living(&stage.subnets, LONG_ENOUGH).await;
        stage
    }

    /// The second half becomes known, so that there is still something to fetch, however long the first deaths took.
    async fn name_the_rest(&mut self) {
        self.subnets = self.web.subnets();
        self.swarm.seed(0, &self.web.seeds()[1..]).await;
        self.swarm.owned_by_the_living(&self.subnets, LONG_ENOUGH).await;
    }

    fn judge<'a>(&'a self, expected: &'a Expected) -> Judge<'a> {
        Judge { expected, log: &self.log, min_delay: Duration::from_millis(REST_MS) }
    }

    /// Some of what is known by now waits to be fetched: else nothing could be lost.
    fn assert_at_work(&self, step: &str) {
        let all_known = self.subnets.len() == self.web.subnets().len();
        let expected = if all_known { &self.expected } else { &self.expected_of_first_half };
        assert!(self.judge(expected).all_fetched().is_err(), "{step}: everything was fetched before the hand-over");
    }

    /// At every step somebody dies, in each of these ways.
    async fn die_at_every_step(&mut self, deaths: &[Death]) {
        for (number, step) in STEPS.into_iter().enumerate() {
            if number == STEPS.len() / 2 {
                self.name_the_rest().await;
            }
            for (further, death) in deaths.iter().enumerate() {
                self.die_at(step, *death, number + further).await;
            }
            self.assert_at_work(step.0);
        }
    }

    /// The crawl comes to its end, and is judged as a whole.
    async fn finish(mut self) {
        let judge = Judge { expected: &self.expected, log: &self.log, min_delay: Duration::from_millis(REST_MS) };
        self.swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
        self.swarm.agree(self.expected.pages() as u64, SOON).await;
        judge.check(&self.kills);
        self.swarm.owned_by_the_living(&self.subnets, SOON).await;
        assert!(self.swarm.stop().await, "a daemon had to be killed at the end");
    }

    /// The index of the daemon that holds a subnet.
    async fn owner(&self, subnet: &Subnet) -> usize {
        // Between a release and the next claim it is nobody's for a moment.
        let begun = Instant::now();
        let owner = loop {
            if let Some((owner, _)) = self.swarm.owners(0).await.remove(subnet) {
                break owner;
            }
            assert!(begun.elapsed() < SOON, "nobody holds {subnet}");
            tokio::time::sleep(LOOK_EVERY).await;
        };
        self.swarm.daemons.iter().position(|daemon| daemon.access_point == owner).expect("a daemon of the swarm")
    }

    /// The subnets with servers that no daemon is in itself.
    async fn movable(&self) -> Vec<Subnet> {
        let claims = self.swarm.ownership(0).await.into_iter();
        let movable = claims.filter(|claim| claim.reason != ClaimReason::OwnSubnet && self.subnets.contains(&claim.subnet));
        movable.map(|claim| claim.subnet).collect()
    }

    async fn ask_to_move(&self, from: usize, subnet: &Subnet, to: usize) -> Ended {
        let api = format!("http://{}:{API_PORT}", self.swarm.daemons[from].address);
        nearcrawl(&["move", &subnet.to_string(), &self.swarm.daemons[to].access_point, "--api", &api]).await
    }

    /// Starts a daemon again, to die at a step, or to freeze, or neither.
    async fn restart(&mut self, daemon: usize, fault: Option<(&str, &str)>) {
        let environment: Vec<(&str, &str)> = fault.into_iter().collect();
        self.swarm.daemons[daemon].start_with(&self.swarm.common, &environment).unwrap_or_else(|why| panic!("{why}"));
        self.swarm.together().await;
    }

    async fn kill(&mut self, daemon: usize) {
        self.swarm.daemons[daemon].kill().await;
        self.kills.push(Kill { who: self.swarm.daemons[daemon].address, when: self.swarm.log().now() });
    }

    async fn an_undisturbed_move_is_quick_and_remembered(&self) {
        let subnet = self.movable().await[0];
        let (from, epoch) = (self.owner(&subnet).await, self.swarm.owners(0).await[&subnet].1);
        let to = (from + 1) % 4;
        let begun = Instant::now();
        loop {
            let said = self.ask_to_move(from, &subnet, to).await;
            if said.code == Some(0) && said.said.starts_with("handing ") {
                break;
            }
            // Its claim is being watched for a moment.
            assert!(said.complained.contains("its claim is new") && begun.elapsed() < SOON, "{} {}", said.said, said.complained);
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let moved = (self.swarm.daemons[to].access_point.clone(), epoch + 1);
        while self.swarm.owners(from).await.get(&subnet) != Some(&moved) {
            assert!(begun.elapsed() < SOON, "it never arrived");
            tokio::time::sleep(LOOK_EVERY).await;
        }
        loop {
            // Long sentences are wrapped. Who asked for the move is told a moment after the claim.
            let why = self.swarm.cli(to, &["why", &subnet.to_string()]).await.split_whitespace().collect::<Vec<_>>().join(" ");
            if why.contains("moved by its operator") && why.contains("the previous owner handed it over") {
                break;
            }
            assert!(begun.elapsed() < SOON, "{why}");
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let stays = self.ask_to_move(from, &subnet, to).await;
        assert!(stays.code == Some(65) && stays.complained.contains("does not own it"), "{}", stays.complained);
    }

    /// Has one die at a step of a hand-over, and come back.
    async fn die_at(&mut self, (step, whose): (&str, Whose), death: Death, number: usize) {
        let movable = self.movable().await;
        let subnet = movable[number % movable.len()];
        let from = self.owner(&subnet).await;
        let to = (from + 1 + number % (self.swarm.daemons.len() - 1)) % self.swarm.daemons.len();
        let (reaches, other) = if whose == Whose::Senders { (from, to) } else { (to, from) };
        assert!(self.swarm.daemons[reaches].stop().await);
        let fault = if death == Death::Other { "NEARCRAWL_FREEZE_AT" } else { "NEARCRAWL_DIE_AT" };
        self.restart(reaches, Some((fault, step))).await;
        let begun = Instant::now();
        let mut was_alive = self.log.now();
        while self.swarm.daemons[reaches].ended().is_none() && !self.swarm.daemons[reaches].is_frozen() {
            was_alive = self.log.now();
            assert!(begun.elapsed() < SOON, "{step}: the hand-over never came so far");
            // It may not be settled yet after the restart; and who is frozen does not answer.
            let _ = tokio::time::timeout(ANSWERED, self.ask_to_move(from, &subnet, to)).await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let dead = match death {
            Death::One | Death::ForLong => vec![reaches],
            Death::Other => vec![other],
            Death::Both => vec![other, reaches],
        };
        for daemon in &dead {
            self.kill(*daemon).await;
        }
        // Whoever came to the step ended by itself, some time before that was seen.
        let reached = self.swarm.daemons[reaches].address;
        self.kills.iter_mut().rev().take(dead.len()).filter(|kill| kill.who == reached).for_each(|kill| kill.when = was_alive);
        if death == Death::Other {
            self.swarm.daemons[reaches].thaw();
        }
        if death == Death::ForLong {
            self.swarm.owned_by_the_living(&self.subnets, TAKE_OVER_WITHIN).await;
        }
        for daemon in dead {
            self.restart(daemon, None).await;
        }
        self.swarm.owned_by_the_living(&self.subnets, SOON).await;
        println!("{:6.1} s: {step}, {death:?}: {subnet} is with {}", self.swarm.age(), self.owner(&subnet).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_comes_to_any_step_of_a_hand_over_and_dies_nothing_recorded_is_lost_or_fetched_again() {
    let mut stage = Stage::set(Habits::default().timers).await;
    stage.die_at_every_step(&[Death::One, Death::Both]).await;
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn if_the_other_one_dies_at_any_step_of_a_hand_over_nothing_recorded_is_lost_or_fetched_again() {
    let mut stage = Stage::set(Habits::default().timers).await;
    stage.an_undisturbed_move_is_quick_and_remembered().await;
    stage.die_at_every_step(&[Death::Other]).await;
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_default_timers_nothing_is_lost_either_if_one_stays_away_or_both_die() {
    let mut stage = Stage::set("").await;
    stage.swarm.vote(3, SOON).await;
    stage.die_at(("given", Whose::Senders), Death::Both, 0).await;
    stage.die_at(("releasing", Whose::Senders), Death::ForLong, 1).await;
    stage.name_the_rest().await;
    stage.die_at(("handed", Whose::Receivers), Death::ForLong, 2).await;
    stage.assert_at_work("handed");
    stage.finish().await;
}
