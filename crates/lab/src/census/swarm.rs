//! The daemons: configured, started, killed and stopped as processes of their own.

use super::{
    plan::DEPTH,
    requests::End,
    servers::{PORT, SECURE_PORT},
    watch::Watch,
    world::{Study, TLDS, World},
};
use crate::{
    demo::daemons::{API_PORT, Common, Daemon, DaemonError, SWARM_PORT},
    web::server::Log,
};
use serde_json::Value;
use std::{net::Ipv4Addr, path::Path, path::PathBuf, sync::Arc, time::Duration};

/// How patient members are with each other: a third of the default, so that a death is over sooner. Builds that share the machine must not
/// look like deaths.
const TIMERS: &str = "dead_after = \"15s\"\nlease = \"10s\"\nvote_after = \"5s\"\nping_interval = \"1s\"\nping_timeout = \"800ms\"\n\
    suspicion_timeout = \"3s\"\n";

/// How old a configuration has to be before a daemon takes it over while it runs.
const SETTLED: Duration = Duration::from_millis(600);

/// What the daemons' configuration says of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// How long after its beginning a run of a site is followed by the next one.
    pub(crate) revisit: Duration,
    pub(crate) evaluation: bool,
}

/// All daemons with what they have in common.
#[derive(Debug)]
pub(crate) struct Swarm {
    pub(crate) common: Common,
    pub(crate) daemons: Vec<Daemon>,
    pub(crate) ends: Vec<End>,
    world: Arc<World>,
    snapshot: PathBuf,
    authorities: PathBuf,
    log: Arc<Log>,
    /// How they are configured, and the host that they deny.
    habits: Option<Habits>,
    denied: Option<String>,
}

impl Swarm {
    /// Writes the files and makes a key for each daemon; none is started.
    pub(crate) async fn prepare(world: &Arc<World>, common: Common, authorities: &str, log: Arc<Log>) -> Result<Swarm, DaemonError> {
        let mut common = common;
        let mut arguments = vec!["hierarchy".to_owned(), "build".to_owned(), "--fresh".to_owned(), "--overrule".to_owned()];
        let snapshot = common.directory.join("hierarchy.snapshot");
        arguments.extend(["--out".to_owned(), snapshot.display().to_string()]);
        for (name, text) in world.places.files() {
            let path = common.write(&name, &text)?;
            arguments.push(path.display().to_string());
            common.registries.extend(name.starts_with("delegated").then_some(path));
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        common.ask(&arguments).await?;
        let authorities = common.write("authorities.pem", authorities)?;
        let (daemons, ends, world) = (Vec::new(), Vec::new(), world.clone());
        let mut swarm = Swarm { common, daemons, ends, world, snapshot, authorities, log, habits: None, denied: None };
        for (address, _) in &swarm.world.clone().places.daemons {
            let first = swarm.daemons.first().map(Daemon::multiaddress);
            swarm.daemons.push(swarm.common.prepare(*address, first.as_deref()).await?);
        }
        Ok(swarm)
    }

    /// Writes all configurations anew: daemons go by them from their next start on.
    pub(crate) fn configure(&mut self, habits: Habits) -> Result<(), DaemonError> {
        self.habits = Some(habits);
        for daemon in &self.daemons {
            let first = self.daemons.first().filter(|first| first.address != daemon.address).map(Daemon::multiaddress);
            self.common.write(&format!("{}.toml", daemon.address), &self.configuration(daemon.address, first.as_deref(), habits))?;
        }
        Ok(())
    }

    fn configuration(&self, address: Ipv4Addr, bootstrap: Option<&str>, habits: Habits) -> String {
        let quoted = |path: &Path| format!("{:?}", path.display().to_string());
        let tlds: Vec<String> = TLDS.iter().map(|tld| format!("{tld:?}")).collect();
        format!(
            "# Written by `nearcrawl lab census`.\nstate_dir = {state}\ncontact = \"nobody@census.test\"\n\n\
             [swarm]\nlisten = [\"/ip4/{address}/tcp/{SWARM_PORT}\"]\nbootstrap = [{bootstrap}]\n\n\
             [crawl]\ndepth = {DEPTH}\nrule = \"depth\"\nsource_address = \"{address}\"\nmin_delay = \"30ms\"\ndelay_factor = 2\n\
             allow_ranges = [\"{range}\"]\nports = [{PORT}, {SECURE_PORT}]\nmax_pages_per_run = 0\nmax_parallel_per_subnet = 64\n\
             revisit = \"{revisit}ms\"\nevaluation = {evaluation}\nmax_new_hosts_per_site = {limit}\nmax_new_hosts_per_domain = 0\n\
             deny_hosts = [{denied}]\n\n\
             [scope]\ntlds = [{tlds}]\n\n[dns]\nservers = [\"{dns}\"]\nmin_ttl = \"60s\"\n\n\
             [fetch]\nhead_timeout = \"6s\"\nca_files = [{authorities}]\n\n[hierarchy]\nsnapshot = {snapshot}\n\n\
             [delegation]\nprobe = \"http-head\"\n\n[timers]\n{TIMERS}\n[api]\nlisten = \"{address}:{API_PORT}\"\n",
            state = quoted(&self.common.directory.join(address.to_string())),
            bootstrap = bootstrap.map(|address| format!("{address:?}")).unwrap_or_default(),
            range = self.common.range,
            revisit = habits.revisit.as_millis(),
            evaluation = habits.evaluation,
            limit = self.world.plan.new_hosts_per_site(),
            denied = self.denied.as_ref().map(|host| format!("{host:?}")).unwrap_or_default(),
            tlds = tlds.join(", "),
            dns = self.common.name_server,
            authorities = quoted(&self.authorities),
            snapshot = quoted(&self.snapshot),
        )
    }

    /// Has all deny this host from now on: those that run read their configurations again.
    pub(crate) async fn deny(&mut self, host: &str) -> Result<(), DaemonError> {
        self.denied = Some(host.to_owned());
        self.habits.map_or(Ok(()), |habits| self.configure(habits))?;
        // A file that has changed a moment ago is not taken over: somebody may be writing it.
        tokio::time::sleep(SETTLED).await;
        self.daemons.iter().for_each(Daemon::reload);
        Ok(())
    }

    /// Starts one.
    pub(crate) fn start(&mut self, number: usize, watch: &Watch) -> Result<(), DaemonError> {
        self.daemons[number].start(&self.common)?;
        watch.started(self.daemons[number].address);
        Ok(())
    }

    /// Kills one as a power cut would.
    pub(crate) async fn kill(&mut self, number: usize, watch: &Watch) {
        let who = self.daemons[number].address;
        watch.ended(who);
        self.daemons[number].kill().await;
        self.ends.push(End { who, when: self.log.now() });
    }

    /// Stops all that run, at the same time; returns their numbers.
    pub(crate) async fn stop(&mut self, watch: Option<&Watch>) -> Vec<usize> {
        let running = self.running();
        running.iter().for_each(|number| watch.iter().for_each(|watch| watch.ended(self.daemons[*number].address)));
        futures::future::join_all(self.daemons.iter_mut().map(Daemon::stop)).await;
        let when = self.log.now();
        self.ends.extend(running.iter().map(|number| End { who: self.daemons[*number].address, when }));
        running
    }

    /// The numbers of those that run.
    pub(crate) fn running(&self) -> Vec<usize> {
        (0..self.daemons.len()).filter(|number| self.daemons[*number].process().is_some()).collect()
    }

    /// An error if a process has ended by itself.
    pub(crate) fn nobody_ended(&mut self) -> Result<(), DaemonError> {
        self.daemons.iter_mut().find_map(Daemon::ended).map_or(Ok(()), Err)
    }

    /// The first daemon makes a survey.
    pub(crate) async fn study(&self, study: &Study) -> Result<(), DaemonError> {
        let (list, tlds) = (self.common.write(&format!("{}.csv", study.name), &study.csv())?, study.tlds.join(","));
        let list = list.display().to_string();
        let of = if study.list.is_empty() { ["--tld", &tlds] } else { ["--list", &list] };
        self.ask(0, &[&["survey", "create", study.name, "--licence", "CC0-1.0"], &of[..]].concat()).await.map(drop)
    }

    /// What a command says when it asks a daemon.
    pub(crate) async fn ask(&self, number: usize, arguments: &[&str]) -> Result<String, DaemonError> {
        let api = format!("http://{}:{API_PORT}", self.daemons[number].address);
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--api", &api]).collect();
        self.common.ask(&arguments).await
    }

    /// The same as JSON.
    pub(crate) async fn json(&self, number: usize, arguments: &[&str]) -> Result<Value, DaemonError> {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        parsed(&arguments.join(" "), &self.ask(number, &arguments).await?)
    }

    /// One value a line.
    pub(crate) async fn lines(&self, number: usize, arguments: &[&str]) -> Result<Vec<Value>, DaemonError> {
        let said = self.ask(number, arguments).await?;
        said.lines().map(|line| parsed(&arguments.join(" "), line)).collect()
    }
}

/// What a command printed, as JSON.
pub(crate) fn parsed(command: &str, said: &str) -> Result<Value, DaemonError> {
    let start: String = said.chars().take(300).collect();
    serde_json::from_str(said).map_err(|_| DaemonError::Unexpected { command: command.to_owned(), said: start })
}
