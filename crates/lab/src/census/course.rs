//! The course of a census, run after run: start, crawl, join, kill, restart, compare.

use super::{
    compare::Compared,
    error::CensusError,
    outcome::{Outcome, Report, first},
    plan::CensusPlan,
    reference::{Reference, sums},
    reports::{Asking, CHECKS, during_a_revisit, is_due},
    requests::{self, Verdict},
    servers::Servers,
    swarm::{Habits, Swarm},
    watch::Watch,
    world::World,
};
use crate::demo::asking::Asker;
use nearcrawl_model::view::counted;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

/// How long daemons may take to find each other.
const TOGETHER_WITHIN: Duration = Duration::from_secs(90);

/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long nothing is asked for in the middle of a run until nothing more is waited for: longer than a robots.txt that fails is waited for.
const QUIET: Duration = Duration::from_secs(45);

/// For how long reports may lag behind the servers: exact totals may be 30 s old.
const LAG: Duration = Duration::from_secs(50);

/// A killed daemon comes back after so long, when others have what it had.
const COMES_BACK_AFTER: Duration = Duration::from_secs(35);

/// How old the youngest site must be before all are visited again.
const OLD_ENOUGH: Duration = Duration::from_secs(40);

/// The report on servers that are visited again.
const REVISITED: &str = "export servers, amid a re-visit";

/// The report on totals after the last run, when something is denied, opted out and ended.
const AFTER_NOES: &str = "results, after a deny and a no";

/// For how long totals are asked for after each of these.
const WATCHED: Duration = Duration::from_secs(4);

/// An event in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// A daemon joins that was not there.
    Join(usize),
    /// One is killed, and comes back, or not.
    Kill(usize, bool),
    /// Some subnets go from the member that has most of them to another one, by order.
    Moves,
}

/// How many subnets are moved at a time.
const MOVED_AT_ONCE: usize = 3;

/// A census.
pub(super) struct Course {
    begun: Instant,
    plan: CensusPlan,
    world: Arc<World>,
    reference: Reference,
    servers: Servers,
    swarm: Swarm,
    watch: Watch,
    asker: Asker,
    reports: Vec<Report>,
    /// The positions in the servers' log at which the run before began, and the present one.
    before: usize,
    since: usize,
    restarted: usize,
    moved: usize,
}

impl Course {
    pub(super) fn new(world: Arc<World>, reference: Reference, servers: Servers, swarm: Swarm, watch: Watch, asker: Asker) -> Course {
        let plan = world.plan;
        let due = CHECKS.iter().filter(|(name, _)| is_due(name, plan.runs)).map(|(name, _)| *name);
        let reports = due.chain((plan.runs > 1).then_some(REVISITED)).chain([AFTER_NOES]).map(Report::new).collect();
        Course {
            begun: Instant::now(),
            plan,
            world,
            reference,
            servers,
            swarm,
            watch,
            asker,
            reports,
            before: 0,
            since: 0,
            restarted: 0,
            moved: 0,
        }
    }

    /// Something that people may want to know.
    fn say(&self, what: &str) {
        eprintln!("{:6.1} s  {what}", self.begun.elapsed().as_secs_f64());
    }

    /// From the first process to the verdict.
    pub(super) async fn run(&mut self) -> Result<Outcome, CensusError> {
        for run in 1..=self.plan.runs {
            (self.before, self.since) = (self.since, self.servers.log().len());
            self.servers.begin(run).await?;
            let before = (run > 1).then(|| self.reference.run(run - 1));
            self.watch.run_begins(self.since, before, self.reference.run(run));
            if run == 1 {
                self.first_run().await?
            } else {
                self.visit_again(run).await?
            }
            self.complete(run).await?;
            self.watch.run_is_over(self.reference.run(run));
            self.compare(run).await?;
        }
        self.say_no().await?;
        Ok(self.outcome())
    }

    /// Stops everything.
    pub(super) async fn end(&mut self) {
        self.swarm.stop(None).await;
        self.servers.stop().await;
    }

    /// Whether one joins only when the others are at work.
    fn joins(&self) -> Option<usize> {
        (self.plan.daemons > 2).then(|| self.plan.daemons - 1)
    }

    async fn first_run(&mut self) -> Result<(), CensusError> {
        let habits = Habits { revisit: Duration::from_secs(3_600), evaluation: self.plan.evaluates(1) };
        self.swarm.configure(habits)?;
        let joins = self.joins();
        for number in (0..self.plan.daemons).filter(|number| Some(*number) != joins) {
            self.swarm.start(number, &self.watch)?;
        }
        self.together().await?;
        let seeds = self.world.seeds();
        let accepted = self.asker.seed(self.swarm.daemons[0].address, &seeds).await?;
        for study in self.world.studies() {
            self.swarm.study(&study).await?;
        }
        self.say(&format!(
            "{} found each other; {} accepted, {} made",
            counted(self.swarm.running().len() as u64, "daemon"),
            counted(accepted, "seed"),
            counted(self.world.studies().len() as u64, "survey")
        ));
        Ok(())
    }

    /// Waits until each of the daemons that run knows all of them.
    async fn together(&mut self) -> Result<(), CensusError> {
        let begun = Instant::now();
        loop {
            self.swarm.nobody_ended()?;
            let running = self.swarm.running();
            let answers = running.iter().map(|number| self.asker.alive(self.swarm.daemons[*number].address));
            let answers = futures::future::join_all(answers).await;
            let alive = answers.into_iter().map(|answer| answer.unwrap_or(0)).min().unwrap_or(0);
            if alive >= running.len() as u64 {
                return Ok(());
            }
            if begun.elapsed() > TOGETHER_WITHIN {
                let (seconds, logs) = (TOGETHER_WITHIN.as_secs(), self.swarm.common.directory.clone());
                return Err(CensusError::NotTogether { seconds, alive, wanted: running.len(), logs });
            }
            tokio::time::sleep(LOOK_EVERY / 4).await;
        }
    }

    /// All daemons stop and start with other configurations: the next run of all sites begins, and no further one for a long time.
    async fn visit_again(&mut self, run: u32) -> Result<(), CensusError> {
        // Sites are visited again so long after they were opened.
        tokio::time::sleep(OLD_ENOUGH.saturating_sub(self.age_of_last_run())).await;
        let age = self.age_of_last_run();
        let evaluation = self.plan.evaluates(run);
        self.restart(Habits { revisit: age - Duration::from_secs(10), evaluation }).await?;
        self.say(&format!(
            "run {run} begins: all daemons were stopped and started{}",
            if run == 2 { ", and evaluate from now on" } else { "" }
        ));
        self.all_begun(run).await?;
        // A part of a tree is led to again after a quarter of this at the earliest.
        self.restart(Habits { revisit: self.age_of_last_run() * 3, evaluation }).await?;
        self.say("all servers are being visited again; all daemons were stopped and started in the middle of it");
        Ok(())
    }

    /// How long ago the last server was asked for the first time in the run before this one.
    fn age_of_last_run(&self) -> Duration {
        let log = self.servers.log();
        let mut first: BTreeMap<String, Duration> = BTreeMap::new();
        let before = log.since(self.before).into_iter().take(self.since - self.before);
        before.filter(|request| request.method == "GET").for_each(|request| {
            first.entry(request.host).or_insert(request.start);
        });
        log.now().saturating_sub(first.into_values().max().unwrap_or_default())
    }

    async fn restart(&mut self, habits: Habits) -> Result<(), CensusError> {
        let running = self.swarm.stop(Some(&self.watch)).await;
        self.swarm.configure(habits)?;
        for number in running {
            self.swarm.start(number, &self.watch)?;
        }
        self.together().await
    }

    /// Waits until every site has begun this run.
    async fn all_begun(&mut self, run: u32) -> Result<(), CensusError> {
        let begun = Instant::now();
        while begun.elapsed() < TOGETHER_WITHIN {
            self.swarm.nobody_ended()?;
            if self.look_amid(run).await {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Compares the records while servers are visited again; whether all have begun. A member that cannot tell them now is asked again later.
    async fn look_amid(&mut self, run: u32) -> bool {
        let running = self.swarm.running();
        let number = running[self.reports.last().map_or(0, |report| report.rows as usize) % running.len()];
        let asking = Asking { swarm: &self.swarm, world: &self.world, reference: &self.reference, run };
        let Ok((Compared { rows, wrong }, begun)) = during_a_revisit(asking, number).await else { return false };
        self.reports.iter_mut().filter(|report| report.name == REVISITED).for_each(|report| report.enter(run, rows, wrong.clone()));
        begun
    }

    /// What happens in this run: at which share of its requests, in percent.
    fn events(&self, run: u32) -> Vec<(u64, Event)> {
        let mut events: Vec<(u64, Event)> = self.joins().filter(|_| run == 1).map(|number| (25, Event::Join(number))).into_iter().collect();
        let kills = (0..self.plan.kills).filter(|kill| self.plan.run_of_kill(*kill) == run);
        for (place, kill) in kills.enumerate() {
            let draw = self.plan.seed.wrapping_mul(31).wrapping_add(kill as u64);
            let victim = 1 + (kill + self.plan.seed as usize) % (self.plan.daemons - 1);
            let percent = 30 + draw % 30 + 10 * place as u64;
            events.push((percent.min(85), Event::Kill(victim, draw.is_multiple_of(2))));
        }
        if self.plan.daemons > 1 {
            events.insert(0, (20, Event::Moves));
            events.push((86, Event::Moves));
        }
        events.reverse();
        events
    }

    /// Waits until this run is over, whatever happens in it.
    async fn complete(&mut self, run: u32) -> Result<(), CensusError> {
        let (begun, limit) = (Instant::now(), Duration::from_secs(150) + Duration::from_millis(800) * self.plan.hosts as u32);
        let (mut events, mut back) = (self.events(run), Vec::new());
        let all: u64 = self.reference.run(run).asked.values().sum();
        let (mut seen, mut changed, mut looked) = (0, Instant::now(), Instant::now());
        loop {
            self.swarm.nobody_ended()?;
            let now = self.servers.log().since(self.since).iter().filter(|request| request.method == "GET").count();
            if now != seen {
                (seen, changed) = (now, Instant::now());
            }
            let percent = seen as u64 * 100 / all.max(1);
            while let Some((_, event)) = events.pop_if(|(at, _)| *at <= percent) {
                self.happen(event, &mut back).await?;
            }
            for number in back.extract_if(.., |(_, at)| Instant::now() >= *at).map(|(number, _)| number).collect::<Vec<_>>() {
                self.swarm.start(number, &self.watch)?;
                self.restarted += 1;
                self.say(&format!("{} is started again", self.swarm.daemons[number].address));
            }
            if run > 1 && looked.elapsed() > 5 * LOOK_EVERY {
                looked = Instant::now();
                self.look_amid(run).await;
            }
            let over = events.is_empty() && back.is_empty();
            if over && (changed.elapsed() > QUIET || self.all_told(run).await) || begun.elapsed() > limit {
                let what = if over && changed.elapsed() < QUIET { "is over" } else { "goes no further" };
                self.say(&format!("run {run} {what}: {seen} requests for {all} URLs"));
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn happen(&mut self, event: Event, back: &mut Vec<(usize, Instant)>) -> Result<(), CensusError> {
        match event {
            Event::Join(number) => {
                self.swarm.start(number, &self.watch)?;
                self.say(&format!("{} joins", self.swarm.daemons[number].address));
            }
            Event::Kill(number, comes_back) => {
                self.enough_vote().await;
                self.swarm.kill(number, &self.watch).await;
                self.say(&format!(
                    "{} is killed (kill -9){}",
                    self.swarm.daemons[number].address,
                    if comes_back { ", to come back" } else { "" }
                ));
                back.extend(comes_back.then(|| (number, Instant::now() + COMES_BACK_AFTER)));
            }
            Event::Moves => self.move_some().await,
        }
        Ok(())
    }

    /// Has some subnets with work moved. A member may refuse: a subnet that is on its way already, or with which nothing can begin yet.
    async fn move_some(&mut self) {
        let running = self.swarm.running();
        let Ok(claims) = self.asker.ownership(self.swarm.daemons[running[0]].address).await else { return };
        let of = |number: usize| {
            let owner = &self.swarm.daemons[number].access_point;
            claims.iter().filter(move |claim| !claim.released && claim.owner == *owner)
        };
        let Some(giver) = running.iter().copied().max_by_key(|number| of(*number).count()) else { return };
        let Some(receiver) = running.iter().copied().filter(|number| *number != giver).min_by_key(|number| of(*number).count()) else {
            return;
        };
        let (mut moved, to) = (0, self.swarm.daemons[receiver].access_point.clone());
        for claim in of(giver).take(MOVED_AT_ONCE) {
            moved += usize::from(self.swarm.ask(giver, &["move", &claim.subnet.to_string(), &to]).await.is_ok());
        }
        self.moved += moved;
        let [from, to] = [giver, receiver].map(|number| self.swarm.daemons[number].address);
        self.say(&format!("{} of {from} go to {to}", counted(moved as u64, "subnet")));
    }

    /// Waits until three vote: from then on the swarm survives the loss of one.
    async fn enough_vote(&self) {
        let begun = Instant::now();
        while begun.elapsed() < TOGETHER_WITHIN {
            let status = self.swarm.json(0, &["status"]).await.unwrap_or_default();
            if status["voters"]["voters"].as_array().is_some_and(|voters| voters.len() >= 3) {
                return;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Whether every member tells exact totals that are those of this run.
    async fn all_told(&self, run: u32) -> bool {
        let wanted = sums(self.reference.run(run).servers.values());
        let running = self.swarm.running();
        let answers = running.iter().map(|number| self.asker.results(self.swarm.daemons[*number].address));
        let answers = futures::future::join_all(answers).await;
        let fits = |told: &crate::demo::asking::Told| {
            let total = &told.summary.total;
            told.exact
                && (total.servers, total.pages, total.requests) == (wanted["servers"], wanted["pages"], wanted["requests"])
                && (total.bytes, total.evaluated, total.unfinished) == (wanted["bytes"], wanted["evaluated"], 0)
        };
        answers.iter().all(|answer| answer.as_ref().is_ok_and(fits))
    }

    /// All reports after a run. One that is not as it must be is asked for again for a while: members hear of what others have by and by.
    async fn compare(&mut self, run: u32) -> Result<(), CensusError> {
        let begun = Instant::now();
        for (name, check) in CHECKS.iter().filter(|(name, _)| is_due(name, run)) {
            let compared = loop {
                let asking = Asking { swarm: &self.swarm, world: &self.world, reference: &self.reference, run };
                match check(asking).await {
                    Ok(compared) if compared.wrong.is_empty() || begun.elapsed() > LAG => break compared,
                    Err(why) if begun.elapsed() > LAG => {
                        let mut compared = Compared::default();
                        compared.wrong("", *name, "an answer", why);
                        break compared;
                    }
                    _ => tokio::time::sleep(LOOK_EVERY).await,
                }
            };
            let Compared { rows, wrong } = compared;
            self.reports.iter_mut().filter(|report| report.name == *name).for_each(|report| report.enter(run, rows, wrong.clone()));
        }
        let wrong: u64 = self.reports.iter().map(|report| report.wrong).sum();
        let rows: u64 = self.reports.iter().map(|report| report.rows).sum();
        self.say(&format!("reports after run {run}: {} compared so far, {wrong} wrong", counted(rows, "row")));
        Ok(())
    }

    /// A host is denied by all, one is opted out, and a survey ends. None of these takes away what is on record: the watch sees no total fall,
    /// and in the end the totals are those of the last run.
    async fn say_no(&mut self) -> Result<(), CensusError> {
        let run = self.plan.runs;
        let mut up = self.reference.run(run).servers.values().filter(|server| server.status == "up" && server.fetched > 1);
        let Some((denied, opted_out)) = up.next().zip(up.next()).map(|(one, other)| (one.host.clone(), other.host.clone())) else {
            return Ok(());
        };
        let survey = self.world.studies()[0].name;
        let mut compared = Compared::default();
        self.swarm.deny(&denied).await?;
        self.all_say(&mut compared, &["why", &denied], |said| said["answer_text"].to_string().contains(" denies ")).await;
        tokio::time::sleep(WATCHED).await;
        self.swarm.ask(0, &["opt-out", "add", &opted_out, "--proof", "order"]).await?;
        let is_listed =
            |said: &Value| said.as_array().into_iter().flatten().any(|view| view["subject"] == *opted_out && view["in_force"] == true);
        self.all_say(&mut compared, &["opt-out", "list"], is_listed).await;
        tokio::time::sleep(WATCHED).await;
        self.swarm.ask(0, &["survey", "end", survey]).await?;
        self.all_say(&mut compared, &["survey", "show", survey], |said| said["survey"]["state"] == "ended").await;
        tokio::time::sleep(WATCHED).await;
        self.say(&format!("{denied} was denied, {opted_out} opted out, and the survey {survey} has ended"));
        let begun = Instant::now();
        while !self.all_told(run).await {
            if begun.elapsed() > LAG {
                compared.wrong("", AFTER_NOES, "the totals of the last run", "others, or none that are exact");
                break;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        compared.rows += self.swarm.running().len() as u64;
        self.reports
            .iter_mut()
            .filter(|report| report.name == AFTER_NOES)
            .for_each(|report| report.enter(run, compared.rows, compared.wrong.clone()));
        Ok(())
    }

    /// Waits until every member's answer to a command, as JSON, is as it has to be; if that takes too long it is wrong.
    async fn all_say(&self, compared: &mut Compared, arguments: &[&str], is_so: impl Fn(&Value) -> bool) {
        let begun = Instant::now();
        for number in self.swarm.running() {
            while !self.swarm.json(number, arguments).await.is_ok_and(|said| is_so(&said)) {
                if begun.elapsed() > LAG {
                    return compared.wrong("", AFTER_NOES, format!("in force by `{}`", arguments.join(" ")), "not at all members");
                }
                tokio::time::sleep(LOOK_EVERY / 4).await;
            }
        }
    }

    fn outcome(&self) -> Outcome {
        let log = self.servers.log().requests();
        let Verdict { extra, missing, again, probes } = requests::judge(&log, &self.reference, self.plan.runs, &self.swarm.ends);
        let (falls, polls) = self.watch.end();
        let CensusPlan { seed, hosts, daemons, runs, kills } = self.plan;
        Outcome {
            seed,
            hosts,
            daemons,
            runs,
            killed: kills,
            restarted: self.restarted,
            moved: self.moved,
            joined: usize::from(self.joins().is_some()),
            took_ms: u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            reports: self.reports.clone(),
            falls: falls.len() as u64,
            extra_requests: extra.len() as u64,
            missing_pages: missing.len() as u64,
            requests: log.len() as u64 - probes,
            probes,
            requests_again: again,
            polls,
            first_falls: first(&falls),
            first_extra: first(&extra),
            first_missing: first(&missing),
        }
    }
}
