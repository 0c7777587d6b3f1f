//! The course of the demonstration: start, seed, watch, kill one, watch the others take over, ask for the totals.

use crate::demo::asking::{Asker, Owned, Told};
use crate::demo::daemons::{Common, Daemon};
use crate::demo::show::{Now, Show};
use crate::demo::verdict::{FailOver, Observed, Row, key};
use crate::demo::world::World;
use crate::demo::{DemoArgs, DemoError};
use crate::oracle::Expected;
use crate::web::server::Log;
use nearcrawl_model::{subnet::Subnet, view::counted};
use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::{Duration, Instant},
};

/// How long the five may take to find each other.
const TOGETHER_WITHIN: Duration = Duration::from_secs(40);

/// When it ends, however far it is: three minutes less what starting and stopping take.
const ENDS_AFTER: Duration = Duration::from_secs(165);

/// How often everything is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// One run of the demonstration.
pub(super) struct Course {
    started: Instant,
    latest_kill: Duration,
    world: Arc<World>,
    expected: Expected,
    must: BTreeSet<(String, String)>,
    log: Arc<Log>,
    common: Common,
    daemons: Vec<Daemon>,
    peers: Vec<String>,
    asker: Asker,
    show: Show,
    ownership: Vec<Owned>,
    fail_over: FailOver,
}

impl Course {
    pub(super) fn new(
        args: &DemoArgs,
        world: &Arc<World>,
        log: Arc<Log>,
        common: Common,
        daemons: Vec<Daemon>,
        asker: Asker,
        show: Show,
    ) -> Course {
        let expected = world.expected();
        Course {
            started: Instant::now(),
            latest_kill: args.latest_kill(),
            world: world.clone(),
            must: expected.fetched.keys().map(key).collect(),
            expected,
            log,
            common,
            peers: daemons.iter().map(|daemon| daemon.access_point.clone()).collect(),
            daemons,
            asker,
            show,
            ownership: Vec::new(),
            fail_over: FailOver::default(),
        }
    }

    /// From the first process to the table.
    pub(super) async fn run(&mut self) -> Result<Vec<Row>, DemoError> {
        self.show.event("part 1 of 3: five daemons find each other, about 5 s");
        for daemon in &mut self.daemons {
            daemon.start(&self.common)?;
        }
        self.come_together().await?;
        self.show.event("part 2 of 3: they crawl, one is killed, the others take over; about 2 minutes");
        let seeds: Vec<String> = self.world.seeds().iter().map(ToString::to_string).collect();
        let accepted = self.asker.seed(self.daemons[0].address, &seeds).await?;
        self.show.event(&format!("{} accepted: {}", counted(accepted, "seed"), seeds.join(" ")));
        self.watch().await?;
        self.show.event("part 3 of 3: two members and a non-member are asked for the totals, about 5 s");
        let told = self.agree().await;
        self.show.finish();
        Ok(Observed {
            world: &self.world,
            expected: &self.expected,
            log: &self.log,
            peers: &self.peers,
            ownership: &self.ownership,
            fail_over: &self.fail_over,
            told: &told,
        }
        .table())
    }

    /// Where people can look at the daemons that run.
    pub(super) fn pages(&self) -> Vec<String> {
        self.daemons.iter().filter(|daemon| daemon.process().is_some()).map(Daemon::page).collect()
    }

    /// Stops all daemons, all at the same time.
    pub(super) async fn end(&mut self) {
        self.show.finish();
        futures::future::join_all(self.daemons.iter_mut().map(Daemon::stop)).await;
    }

    /// Waits until each of the daemons knows all of them.
    async fn come_together(&mut self) -> Result<(), DemoError> {
        loop {
            self.nobody_ended()?;
            let answers = futures::future::join_all(self.daemons.iter().map(|daemon| self.asker.alive(daemon.address))).await;
            let alive = answers.into_iter().map(|answer| answer.unwrap_or(0)).min().unwrap_or(0);
            if alive >= self.daemons.len() as u64 {
                return Ok(());
            }
            if self.started.elapsed() > TOGETHER_WITHIN {
                let (seconds, logs) = (TOGETHER_WITHIN.as_secs(), self.common.directory.clone());
                return Err(DemoError::NotTogether { seconds, alive, wanted: self.daemons.len(), logs });
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn nobody_ended(&mut self) -> Result<(), DemoError> {
        match self.daemons.iter_mut().find_map(Daemon::ended) {
            Some(why) => Err(why.into()),
            None => Ok(()),
        }
    }

    /// Looks until every URL was fetched and the killed one's subnets have new owners, or time is over.
    async fn watch(&mut self) -> Result<(), DemoError> {
        while self.started.elapsed() < ENDS_AFTER {
            self.nobody_ended()?;
            if let Ok(ownership) = self.asker.ownership(self.daemons[0].address).await {
                self.ownership = ownership;
            }
            self.note_take_over();
            let fetches = self.log.fetches();
            let fetched = self.must.iter().filter(|key| fetches.contains_key(*key)).count();
            if self.fail_over.killed.is_none() && self.time_to_kill() {
                self.kill_one().await;
            }
            let phase = match &self.fail_over {
                FailOver { killed: None, .. } => "one will be killed soon",
                FailOver { taken_over: None, .. } => "others take over",
                _ => "taken over",
            };
            self.show.progress(&Now {
                fetched,
                of: self.must.len(),
                owned: self.owned(),
                subnets: self.world.inhabited().len(),
                probes: self.log.probes(),
                alive: self.pages().len(),
                phase: phase.to_owned(),
            });
            if fetched == self.must.len() && self.fail_over.taken_over.is_some() {
                break;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Subnets with servers whose every server has an owner. Large subnets are delegated in parts.
    fn owned(&self) -> usize {
        let held: Vec<Subnet> = self.ownership.iter().filter(|owned| !owned.released).map(|owned| owned.subnet).collect();
        let nobodys = |server: &&Ipv4Addr| !held.iter().any(|subnet| subnet.contains(IpAddr::V4(**server)));
        let waiting: BTreeSet<usize> =
            self.world.servers.iter().filter(nobodys).filter_map(|server| self.world.land_of(IpAddr::V4(*server))).collect();
        self.world.inhabited().difference(&waiting).count()
    }

    fn victim_address(&self) -> Ipv4Addr {
        self.world.access_points()[self.world.victim()]
    }

    /// In the middle of its work: when it has fetched a quarter of what is near it, or when it gets late.
    fn time_to_kill(&self) -> bool {
        let world = &self.world;
        let near = |host: &&super::world::HostPlan| {
            let land = world.land_of(IpAddr::V4(world.servers[host.server]));
            land.and_then(|land| world.places.lands[land].nearest(|_| true)) == Some(world.victim())
        };
        let share: usize = world.hosts.iter().filter(near).map(|host| host.pages).sum();
        let victim = IpAddr::V4(self.victim_address());
        let done = self.log.requests().iter().filter(|request| request.peer == victim && request.method == "GET").count();
        done >= share.div_ceil(4) || self.started.elapsed() >= self.latest_kill
    }

    async fn kill_one(&mut self) {
        let victim = self.world.victim();
        let peer = &self.peers[victim];
        self.fail_over.held =
            self.ownership.iter().filter(|owned| owned.owner == *peer && !owned.released).map(|owned| owned.subnet.to_string()).collect();
        self.daemons[victim].kill().await;
        self.fail_over.killed = Some(self.log.now());
        let held = self.fail_over.held.len();
        self.show.event(&format!("killed the daemon at {} (kill -9), which held {}", self.victim_address(), counted(held, "subnet")));
    }

    /// Notes when nothing belongs to the killed one any more.
    fn note_take_over(&mut self) {
        let Some(killed) = self.fail_over.killed.filter(|_| self.fail_over.taken_over.is_none()) else { return };
        let held = &self.fail_over.held;
        let dead = &self.peers[self.world.victim()];
        let waiting = self.ownership.iter().filter(|owned| held.contains(&owned.subnet.to_string()));
        let mut seen = 0;
        let all_alive = waiting.inspect(|_| seen += 1).all(|owned| owned.owner != *dead && !owned.released);
        if all_alive && seen >= held.len() && !held.is_empty() {
            let now = self.log.now();
            self.fail_over.taken_over = Some(now);
            let lasted = now.saturating_sub(killed).as_secs_f64();
            self.show.event(&format!("living owners for its {} after {lasted:.1} s", counted(held.len(), "subnet")));
        }
    }

    /// Asks two members and, as a non-member, a third for the totals until all say the same, exactly, or time is over.
    async fn agree(&mut self) -> Vec<(String, Option<Told>)> {
        let pages = self.expected.pages() as u64;
        loop {
            let told = self.ask_for_totals().await;
            let done = told.iter().all(|(_, told)| told.as_ref().is_some_and(|told| told.exact && told.summary.total.pages == pages));
            let equal = told.windows(2).all(|pair| pair[0].1 == pair[1].1);
            if (done && equal) || self.started.elapsed() >= ENDS_AFTER {
                if let Ok(ownership) = self.asker.ownership(self.daemons[0].address).await {
                    self.ownership = ownership;
                    self.note_take_over();
                }
                return told;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn ask_for_totals(&self) -> Vec<(String, Option<Told>)> {
        let mut told = Vec::new();
        for daemon in &self.daemons[..2] {
            told.push((format!("the member at {}", daemon.address), self.asker.results(daemon.address).await.ok()));
        }
        let third = self.daemons[2].multiaddress();
        let said = self.common.ask(&["results", "--member", &third, "--json"]).await.ok();
        told.push(("a non-member".to_owned(), said.and_then(|said| serde_json::from_str(&said).ok())));
        told
    }
}
