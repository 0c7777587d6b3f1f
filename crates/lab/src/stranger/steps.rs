//! The steps of the volunteer, and what must hold after each, as its own commands, the other members and the web servers say.

use super::{
    error::StrangerError,
    machine::Machine,
    world::{FEW, FEW_PAGES, HOME, LONG, MANY, World},
};
use crate::{
    nat::{Kind, NatWorld},
    web::{dns::Reply, server::RequestSeen},
};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    net::IpAddr,
    path::PathBuf,
    time::{Duration, Instant},
};

/// How long anything may take that is waited for, and how often it is looked.
const LIMIT: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Within so long after a site owner's no nothing more is asked.
const SOON: Duration = Duration::from_secs(10);

/// Nothing was asked for so long: it is over.
const SILENCE: Duration = Duration::from_secs(20);

/// Where the package is on the volunteer's machine.
const PACKAGE: &str = "/tmp/nearcrawl.deb";

/// What the volunteer's line may carry in a day, as in the configuration and in bytes; the least that can be configured.
const BUDGET: (&str, u64) = ("16MiB", 16 << 20);

/// How many more requests must come elsewhere until it is said that none comes any more.
const WITNESSES: usize = 4;

/// What is done in a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    Install,
    Init,
    Check,
    Doctor,
    Join,
    Crawl,
    Totals,
    OptOut,
    Budget,
    Purge,
}

/// All steps in their order.
pub(super) const STEPS: [(&str, Task); 10] = [
    ("dpkg --install", Task::Install),
    ("nearcrawl init", Task::Init),
    ("nearcrawl check", Task::Check),
    ("nearcrawl doctor", Task::Doctor),
    ("member behind a NAT", Task::Join),
    ("first server crawled", Task::Crawl),
    ("totals at another member", Task::Totals),
    ("opt-out in force", Task::OptOut),
    ("budget held", Task::Budget),
    ("dpkg --purge", Task::Purge),
];

/// The world, the machine, and what came of it so far.
pub(super) struct Volunteer {
    world: World,
    machine: Machine,
    package: PathBuf,
    before: BTreeSet<String>,
    access_point: String,
}

type Seen = Result<String, StrangerError>;

fn not_so(why: impl Into<String>) -> StrangerError {
    StrangerError::NotSo(why.into())
}

fn must(holds: bool, why: impl FnOnce() -> String) -> Result<(), StrangerError> {
    if holds { Ok(()) } else { Err(StrangerError::NotSo(why())) }
}

impl Volunteer {
    pub(super) fn new(world: World, machine: Machine, package: PathBuf) -> Volunteer {
        Volunteer { world, machine, package, before: BTreeSet::new(), access_point: String::new() }
    }

    /// Ends everything.
    pub(super) async fn end(self) {
        drop(self.machine);
        self.world.stop().await;
    }

    pub(super) async fn take(&mut self, task: Task) -> Seen {
        match task {
            Task::Install => self.install(),
            Task::Init => self.init(),
            Task::Check => self.check(),
            Task::Doctor => self.doctor(),
            Task::Join => self.join().await,
            Task::Crawl => self.crawl().await,
            Task::Totals => self.totals().await,
            Task::OptOut => self.opt_out().await,
            Task::Budget => self.budget().await,
            Task::Purge => self.purge().await,
        }
    }

    /// Waits until something is so; `look` says what, or why it is not so yet.
    async fn until<T>(&mut self, what: &str, look: impl Fn(&Volunteer) -> Result<T, StrangerError>) -> Result<T, StrangerError> {
        let began = Instant::now();
        loop {
            let why = match look(self) {
                Ok(seen) => return Ok(seen),
                Err(why) => why,
            };
            if let Some(code) = self.machine.ended() {
                return Err(not_so(format!("the daemon ended with exit status {code}: {}", self.machine.said())));
            }
            must(began.elapsed() < LIMIT, || format!("{what}: not after {} s: {why}\n{}", LIMIT.as_secs(), self.machine.said()))?;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// What a command says on the volunteer's machine, as JSON.
    fn says(&self, words: &[&str]) -> Result<Value, StrangerError> {
        let said = self.machine.types(&[&["nearcrawl"], words, &["--json"]].concat())?;
        serde_json::from_str(&said).map_err(|why| not_so(format!("nearcrawl {} prints no JSON: {why}", words.join(" "))))
    }

    /// What the volunteer's daemon asked of a host.
    fn asked(&self, host: &str, since: usize) -> Vec<RequestSeen> {
        let own = |request: &RequestSeen| request.peer == IpAddr::V4(HOME) && request.host == host;
        self.world.log().since(since).into_iter().filter(own).collect()
    }

    fn seed(&self, hosts: &[&str]) -> Result<(), StrangerError> {
        let urls: Vec<String> = hosts.iter().map(|host| format!("http://{host}/")).collect();
        let words: Vec<&str> = ["seed", "add"].into_iter().chain(urls.iter().map(String::as_str)).collect();
        self.world.ask(1, &words).map(drop)
    }

    fn install(&mut self) -> Seen {
        self.before = self.machine.changes()?;
        self.machine.receives(&self.package, PACKAGE)?;
        self.machine.types(&["dpkg", "--install", PACKAGE])?;
        self.machine.types(&["rm", PACKAGE])?;
        must(self.machine.processes()? == 0, || "installing it has started something".to_owned())?;
        self.machine.types(&["nearcrawl", "--version"]).map(|said| said.trim().to_owned())
    }

    fn init(&mut self) -> Seen {
        let bootstrap = self.world.bootstrap();
        let view = self.says(&["init", "--contact", "ann@museum.or.ke", "--bootstrap", &bootstrap])?;
        self.access_point = view["access_point"].as_str().unwrap_or_default().to_owned();
        must(view["created"] == true && view["written"] == "/etc/nearcrawl/nearcrawl.toml", || format!("init says {view}"))?;
        let budget = format!("printf '\\n[allowance]\\ncrawl_per_day = \"{}\"\\n' >>/etc/nearcrawl/nearcrawl.toml", BUDGET.0);
        self.machine.types(&["sh", "-c", &budget])?;
        Ok(self.access_point.clone())
    }

    fn check(&mut self) -> Seen {
        let view = self.says(&["check"])?;
        must(view["ready_to_run"] == true, || format!("check says {view}"))?;
        let warnings: Vec<&str> = view["warnings_text"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        Ok(if warnings.is_empty() { "no mistakes".to_owned() } else { warnings.join("; ") })
    }

    fn doctor(&mut self) -> Seen {
        let view = self.says(&["doctor"])?;
        let findings = view["findings"].as_array().cloned().unwrap_or_default();
        let of = |state: &str| -> Vec<String> {
            let having = findings.iter().filter(|finding| finding["state"] == state);
            having.map(|finding| finding["check"].as_str().unwrap_or_default().to_owned()).collect()
        };
        must(!findings.is_empty() && of("failed").is_empty(), || format!("doctor says {view}"))?;
        let member = findings.iter().find(|finding| finding["check"] == "member");
        must(member.is_some_and(|member| member["state"] == "good"), || format!("of the member to join by doctor says {member:?}"))?;
        Ok(format!("{} good, warnings: {}", of("good").len(), of("warning").join(", ")))
    }

    async fn join(&mut self) -> Seen {
        self.machine.start_daemon()?;
        let full = NatWorld::is_full(Kind::PortRestricted, self.world.members() + 1);
        let status = self
            .until("a member that others reach through a relay, with a lease", |volunteer| {
                let status = volunteer.says(&["status"])?;
                let said = [&status["state_text"], &status["members"], &status["reachability"]["state_text"]];
                must(full(&status), || format!("{said:?}")).map(|()| status)
            })
            .await?;
        must(status["access_point"] == *self.access_point, || "it is another access point than init said".to_owned())?;
        Ok(format!(
            "{} members, reached through {}",
            status["members"]["alive"],
            status["reachability"]["relays"].as_array().map_or(0, Vec::len)
        ))
    }

    async fn crawl(&mut self) -> Seen {
        self.seed(&[FEW])?;
        let pages = |volunteer: &Volunteer| {
            let pages = volunteer.asked(FEW, 0).into_iter().filter(|request| request.method == "GET" && request.status == Some(200));
            pages.map(|request| request.path).collect::<Vec<_>>()
        };
        let seen = self
            .until("the volunteer's daemon has asked for every page of its first server", |volunteer| {
                let seen = pages(volunteer);
                must(seen.len() >= FEW_PAGES, || format!("{seen:?}")).map(|()| seen)
            })
            .await?;
        must(seen.iter().collect::<BTreeSet<_>>().len() == seen.len(), || format!("a page was asked for twice: {seen:?}"))?;
        Ok(format!("{} pages of {FEW}", seen.len()))
    }

    async fn totals(&mut self) -> Seen {
        let results = self
            .until("exact totals at another member, with that server", |volunteer| {
                let results = volunteer.world.ask(2, &["results"])?;
                let total = &results["summary"]["total"];
                let whole = results["exact"] == true && results["whole_runs"] == true && total["pages"] == FEW_PAGES;
                must(whole, || format!("exact {}, {total}, {}", results["exact"], results["in_transition_text"])).map(|()| results)
            })
            .await?;
        let why = self.world.ask(2, &["why", FEW])?;
        must(why["ownership"]["owner"] == *self.access_point, || format!("of {FEW} another member says {}", why["answer_text"]))?;
        Ok(format!("exact: {} pages of {} server", results["summary"]["total"]["pages"], results["summary"]["total"]["servers"]))
    }

    /// A site owner's no, given to another member while the volunteer's daemon crawls the site.
    async fn opt_out(&mut self) -> Seen {
        let [no, witness] = MANY;
        self.seed(&MANY)?;
        self.until("both are being crawled by the volunteer's daemon", |volunteer| {
            let asked = [no, witness].map(|host| volunteer.asked(host, 0).len());
            must(asked.iter().all(|asked| *asked >= WITNESSES), || format!("{asked:?} requests"))
        })
        .await?;
        let record = format!("_nearcrawl.{no}").parse().map_err(|_| not_so("the record has no name"))?;
        self.world.zone().set(record, Reply::Texts(vec!["no-crawl".to_owned()]));
        let told_at = self.world.log().now();
        self.world.ask(0, &["opt-out", "add", no])?;
        self.until("the opt-out is in force at the volunteer's daemon", |volunteer| {
            let listed = volunteer.says(&["opt-out", "list"])?;
            let in_force = listed.as_array().into_iter().flatten().any(|one| one["subject"] == no && one["in_force"] == true);
            must(in_force, || listed.to_string())
        })
        .await?;
        let listed_after = self.world.log().now().saturating_sub(told_at);
        let since = self.world.log().len();
        self.until("the other server is crawled on", |volunteer| {
            let asked = volunteer.asked(witness, since).len();
            must(asked >= WITNESSES && volunteer.world.log().now() >= told_at + SOON, || format!("{asked} requests"))
        })
        .await?;
        let late = |request: &RequestSeen| request.host == no && request.start >= told_at + SOON;
        let late: Vec<RequestSeen> = self.world.log().since(0).into_iter().filter(late).collect();
        must(late.is_empty(), || format!("asked after the no: {late:?}"))?;
        let after = self.asked(no, 0).into_iter().filter(|request| request.start > told_at).count();
        Ok(format!("in force after {:.1} s, {after} requests after the no, none after {} s", listed_after.as_secs_f64(), SOON.as_secs()))
    }

    /// Long pages, until the day's bytes are spent: then the volunteer's daemon asks nothing more, and others go on in its place.
    async fn budget(&mut self) -> Seen {
        self.seed(&LONG)?;
        self.until("the bytes of the day are spent", |volunteer| {
            let status = volunteer.says(&["status"])?;
            let (state, used) = (&status["state"], status["allowance"]["day_bytes"].as_u64().unwrap_or_default());
            // What would not fit any more is not begun, and goes to another member.
            let given_away = volunteer.asked_by_others(&LONG, 0) > 0;
            must((state == "stopped" || given_away) && used >= BUDGET.1 * 9 / 10, || format!("{}, {used} bytes", status["state_text"]))
        })
        .await?;
        let (counted, since, requests) = (self.machine.counted()?, self.world.log().len(), self.asked_in_all());
        // Others may have none of these servers: whoever owns them asks each once a second, so that nothing for as long as this is the end of it.
        let spent_at = self.world.log().now();
        self.until("others crawl on, or nobody does", |volunteer| {
            let others = volunteer.asked_by_others(&LONG, since);
            let silent = volunteer.world.log().now() >= spent_at + SILENCE;
            must(others >= WITNESSES || silent, || format!("{others} requests"))
        })
        .await?;
        let (after, later) = (self.machine.counted()?, self.asked_in_all());
        let share = after as f64 / BUDGET.1 as f64;
        let said = format!("{after} bytes of {} by the kernel's count: {:.2} %", BUDGET.1, share * 100.0);
        must((0.9..=1.01).contains(&share), || said.clone())?;
        let (bytes, asked) = (after - counted, later - requests);
        must(asked == 0 && bytes < BUDGET.1 / 100, || format!("it asks on: {bytes} bytes, {asked} requests"))?;
        Ok(said)
    }

    /// Requests of other members.
    fn asked_by_others(&self, hosts: &[&str], since: usize) -> usize {
        let of_others = |request: &&RequestSeen| request.peer != IpAddr::V4(HOME) && hosts.contains(&request.host.as_str());
        self.world.log().since(since).iter().filter(of_others).filter(|request| request.method == "GET").count()
    }

    fn asked_in_all(&self) -> usize {
        self.world.log().since(0).iter().filter(|request| request.peer == IpAddr::V4(HOME)).count()
    }

    async fn purge(&mut self) -> Seen {
        self.machine.stop_daemon()?;
        let began = Instant::now();
        let code = loop {
            match self.machine.ended() {
                Some(code) => break code,
                None if began.elapsed() >= LIMIT => return Err(not_so(format!("it does not stop: {}", self.machine.said()))),
                None => tokio::time::sleep(LOOK_EVERY).await,
            }
        };
        must(code == 0, || format!("the daemon ended with exit status {code}: {}", self.machine.said()))?;
        self.machine.types(&["dpkg", "--purge", "nearcrawl"])?;
        let left: Vec<String> = self.machine.changes()?.difference(&self.before).cloned().collect();
        must(left.is_empty(), || format!("left: {}", left.join(", ")))?;
        let user = self.machine.types(&["sh", "-c", "getent passwd nearcrawl; getent group nearcrawl; true"])?;
        must(user.trim().is_empty(), || format!("left: {user}"))?;
        let processes = self.machine.processes()?;
        must(processes == 0, || format!("{processes} processes are left"))?;
        Ok("no file, no user, no process".to_owned())
    }
}
