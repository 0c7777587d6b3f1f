//! Runs daemons as separate processes, and ends them in any case: configured, started, killed and stopped from here.

use super::world::{DEPTH, TLD, WEB_PORT};
use std::{
    fs::File,
    io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::process::{Child, Command};

/// The swarm port of all daemons; they have an address each.
pub const SWARM_PORT: u16 = 4817;

/// The API port of all daemons; they have an address each.
pub const API_PORT: u16 = 4880;

/// The least pause between two requests to a server here. The default is longer; this web shall be crawled in two minutes.
pub(crate) const MIN_DELAY: Duration = Duration::from_millis(200);

/// How long one may take that was asked to stop: it waits 15 s at most for its replicas.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// How much of a daemon's messages is shown when it fails, in bytes.
const TAIL: usize = 2000;

/// Why a daemon could not be run.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// One of its files could not be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file's path.
        path: PathBuf,
        /// The error that the system reports.
        source: io::Error,
    },
    /// No process could be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// The program's path.
        program: PathBuf,
        /// The error that the system reports.
        source: io::Error,
    },
    /// The command exited with an error.
    #[error("`nearcrawl {command}` ended with {status}:\n{said}")]
    Failed {
        /// The command line.
        command: String,
        /// The status that it exited with.
        status: ExitStatus,
        /// The end of what it said.
        said: String,
    },
    /// The output of the command is not what was expected.
    #[error("`nearcrawl {command}` said something unexpected: {said}")]
    Unexpected {
        /// Which.
        command: String,
        /// What it said.
        said: String,
    },
}

/// What the daemons of one demonstration have in common.
#[derive(Clone, Debug)]
pub struct Common {
    /// Where everything is written.
    pub directory: PathBuf,
    /// The registry files.
    pub registries: Vec<PathBuf>,
    /// The name server.
    pub name_server: SocketAddr,
    /// The only range that may be contacted.
    pub range: String,
    /// The program: normally this one.
    pub program: PathBuf,
}

/// A daemon's process with its directory and addresses.
#[derive(Debug)]
pub struct Daemon {
    /// Its address, for everything.
    pub address: Ipv4Addr,
    /// Its peer id.
    pub access_point: String,
    config: PathBuf,
    log: PathBuf,
    child: Option<Child>,
}

impl Common {
    /// Writes text under the directory.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, DaemonError> {
        let path = self.directory.join(name);
        std::fs::write(&path, text).map_err(|source| DaemonError::Write { path: path.clone(), source })?;
        Ok(path)
    }

    /// Runs a command of the program to its end and returns what it printed.
    pub async fn ask(&self, arguments: &[&str]) -> Result<String, DaemonError> {
        let mut command = Command::new(&self.program);
        command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
        end_with_parent(&mut command);
        let output = command.output().await.map_err(|source| DaemonError::Start { program: self.program.clone(), source })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = tail(&String::from_utf8_lossy(&output.stderr));
        Err(DaemonError::Failed { command: arguments.join(" "), status: output.status, said })
    }

    /// The configuration of the daemon at `address`; `bootstrap` is the multiaddress of a member, if there is one already.
    pub fn configuration(&self, address: Ipv4Addr, bootstrap: Option<&str>) -> String {
        let quoted = |path: &Path| format!("{:?}", path.display().to_string());
        let registries: Vec<String> = self.registries.iter().map(|path| quoted(path)).collect();
        let bootstrap = bootstrap.map(|address| format!("{address:?}")).unwrap_or_default();
        format!(
            "# Written by `nearcrawl demo`.\n\
             state_dir = {state}\n\
             contact = \"nobody@demo.test\"\n\n\
             [swarm]\nlisten = [\"/ip4/{address}/tcp/{SWARM_PORT}\"]\nbootstrap = [{bootstrap}]\n\n\
             [crawl]\ndepth = {DEPTH}\nrule = \"depth\"\nsource_address = \"{address}\"\nmin_delay = \"{delay}ms\"\ndelay_factor = 10\n\
             allow_ranges = [\"{range}\"]\nports = [{WEB_PORT}]\nmax_pages_per_run = 0\nrevisit = \"1h\"\n\n\
             [scope]\ntlds = [\"{TLD}\"]\n\n\
             [dns]\nservers = [\"{dns}\"]\nmin_ttl = \"60s\"\n\n\
             [hierarchy]\ndelegated = [{registries}]\n\n\
             [delegation]\npolicy = \"nearcrawl\"\nthreshold = \"40ms\"\nprobe = \"http-head\"\nhome_port = {WEB_PORT}\n\n\
             [api]\nlisten = \"{address}:{API_PORT}\"\n",
            state = quoted(&self.directory.join(address.to_string())),
            delay = MIN_DELAY.as_millis(),
            range = self.range,
            dns = self.name_server,
            registries = registries.join(", "),
        )
    }

    /// Makes the key and configuration of the daemon at `address`.
    pub async fn prepare(&self, address: Ipv4Addr, bootstrap: Option<&str>) -> Result<Daemon, DaemonError> {
        self.prepare_as(&address.to_string(), address, &self.configuration(address, bootstrap)).await
    }

    /// Makes the key of a daemon at `address` with this configuration; its files have this name.
    pub async fn prepare_as(&self, name: &str, address: Ipv4Addr, configuration: &str) -> Result<Daemon, DaemonError> {
        let config = self.write(&format!("{name}.toml"), configuration)?;
        let path = config.display().to_string();
        let said = self.ask(&["init", "--config", &path, "--json"]).await?;
        let value: serde_json::Value = serde_json::from_str(&said).unwrap_or_default();
        let Some(access_point) = value.get("access_point").and_then(|id| id.as_str()) else {
            return Err(DaemonError::Unexpected { command: "init".to_owned(), said: tail(&said) });
        };
        let log = self.directory.join(format!("{name}.log"));
        Ok(Daemon { address, access_point: access_point.to_owned(), config, log, child: None })
    }
}

impl Daemon {
    /// Starts the process; what it says goes to its log file.
    pub fn start(&mut self, common: &Common) -> Result<(), DaemonError> {
        self.start_with(common, &[])
    }

    /// The same with variables in its environment.
    pub fn start_with(&mut self, common: &Common, environment: &[(&str, &str)]) -> Result<(), DaemonError> {
        let unwritable = |source| DaemonError::Write { path: self.log.clone(), source };
        let log = File::options().create(true).append(true).open(&self.log).map_err(unwritable)?;
        let errors = log.try_clone().map_err(unwritable)?;
        let mut command = Command::new(&common.program);
        command.arg("run").arg("--config").arg(&self.config);
        command.stdin(Stdio::null()).stdout(log).stderr(errors).kill_on_drop(true);
        // Environment variables that the user has set for a real daemon must not change these.
        for name in ["STATE_DIRECTORY", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "JOURNAL_STREAM", "NEARCRAWL_API"] {
            command.env_remove(name);
        }
        command.envs(environment.iter().copied());
        end_with_parent(&mut command);
        let child = command.spawn().map_err(|source| DaemonError::Start { program: common.program.clone(), source })?;
        self.child = Some(child);
        Ok(())
    }

    /// Where members find it.
    pub fn multiaddress(&self) -> String {
        format!("/ip4/{}/tcp/{SWARM_PORT}/p2p/{}", self.address, self.access_point)
    }

    /// Where people find it.
    pub fn page(&self) -> String {
        format!("http://{}:{API_PORT}/", self.address)
    }

    /// Its process id while it runs.
    pub fn process(&self) -> Option<u32> {
        self.child.as_ref().and_then(Child::id)
    }

    /// If its process has ended by itself: how, with the end of what it said.
    pub fn ended(&mut self) -> Option<DaemonError> {
        let status = self.child.as_mut()?.try_wait().ok()??;
        let said = tail(&std::fs::read_to_string(&self.log).unwrap_or_default());
        Some(DaemonError::Failed { command: format!("run --config {}", self.config.display()), status, said })
    }

    /// Whether it has been stopped by SIGSTOP, or stopped itself so.
    pub fn is_frozen(&self) -> bool {
        let Some(id) = self.child.as_ref().and_then(Child::id) else { return false };
        let status = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // The state stands behind the name, which stands in parentheses.
        status.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    }

    /// Lets it go on when it has been stopped.
    pub fn thaw(&self) {
        if let Some(id) = self.child.as_ref().and_then(Child::id) {
            // SAFETY: plain system call; the child has not been waited for, so the id is still its own.
            unsafe { libc::kill(id.cast_signed(), libc::SIGCONT) };
        }
    }

    /// Has it read its configuration's rules on hosts again (SIGHUP).
    pub fn reload(&self) {
        if let Some(id) = self.child.as_ref().and_then(Child::id) {
            // SAFETY: plain system call; the child has not been waited for, so the id is still its own.
            unsafe { libc::kill(id.cast_signed(), libc::SIGHUP) };
        }
    }

    /// Kills it as a power cut would (`kill -9`), and waits until the process has ended.
    pub async fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill().await;
        }
    }

    /// Asks it to stop (SIGTERM); if that takes too long, kills it. Whether it stopped by itself.
    pub async fn stop(&mut self) -> bool {
        let Some(mut child) = self.child.take() else { return true };
        if let Some(id) = child.id() {
            // SAFETY: plain system call; the child has not been waited for, so the id is still its own.
            unsafe { libc::kill(id.cast_signed(), libc::SIGTERM) };
        }
        let in_time = tokio::time::timeout(STOP_TIMEOUT, child.wait()).await.is_ok();
        if !in_time {
            let _ = child.kill().await;
        }
        in_time
    }
}

/// Lets the kernel end the process when this one ends, however that happens.
fn end_with_parent(command: &mut Command) {
    // SAFETY: between fork and exec only prctl is called, which is async-signal-safe and touches no memory of ours.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
}

/// The end of a text.
fn tail(text: &str) -> String {
    let mut start = text.len().saturating_sub(TAIL);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text[start..].trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common() -> Common {
        Common {
            directory: std::env::temp_dir(),
            registries: vec!["/srv/with \"quotes\"/delegated-a".into(), "/srv/delegated-b".into()],
            name_server: "127.16.250.53:5300".parse().unwrap(),
            range: "127.16.0.0/16".to_owned(),
            program: "/bin/sh".into(),
        }
    }

    #[test]
    fn the_configuration_is_toml_with_the_addresses_in_place() {
        let text = common().configuration("127.16.0.1".parse().unwrap(), Some("/ip4/127.16.48.1/tcp/4817/p2p/12D3KooW"));
        let table: toml::Table = text.parse().unwrap();
        assert_eq!(table["crawl"]["source_address"].as_str(), Some("127.16.0.1"));
        assert_eq!(table["crawl"]["min_delay"].as_str(), Some("200ms"));
        assert_eq!(table["swarm"]["bootstrap"][0].as_str(), Some("/ip4/127.16.48.1/tcp/4817/p2p/12D3KooW"));
        assert_eq!(table["hierarchy"]["delegated"].as_array().map(Vec::len), Some(2));
        assert_eq!(table["dns"]["servers"][0].as_str(), Some("127.16.250.53:5300"));
    }

    fn daemon(name: &str, script: &str) -> (Common, Daemon) {
        let directory = tempfile::tempdir().unwrap().keep();
        let config = directory.join(format!("{name}.toml"));
        let program = directory.join("program");
        // Written by another process: a test that forks meanwhile would inherit the open file, and it could not be run then.
        let text = format!("#!/bin/sh\n{script}\n");
        let write = std::process::Command::new("sh")
            .args(["-c", "printf %s \"$1\" >\"$2\"; chmod 755 \"$2\"", "sh"])
            .arg(text)
            .arg(&program)
            .status();
        assert!(write.unwrap().success());
        let common = Common { directory: directory.clone(), program, ..common() };
        let log = directory.join("log");
        (common, Daemon { address: Ipv4Addr::LOCALHOST, access_point: "me".to_owned(), config, log, child: None })
    }

    fn alive(process: u32) -> bool {
        // SAFETY: signal 0 only asks.
        unsafe { libc::kill(process.cast_signed(), 0) == 0 }
    }

    #[tokio::test]
    async fn daemons_are_stopped_killed_and_dropped_for_sure() {
        let (common, mut polite) = daemon("polite", "exec sleep 100");
        polite.start(&common).unwrap();
        let process = polite.process().unwrap();
        assert!(alive(process) && polite.ended().is_none());
        assert!(polite.stop().await);
        assert!(!alive(process));
        polite.start(&common).unwrap();
        let process = polite.process().unwrap();
        polite.kill().await;
        assert!(!alive(process) && polite.process().is_none());
        std::fs::remove_dir_all(&common.directory).unwrap();
    }

    #[tokio::test]
    async fn one_that_ends_by_itself_is_noticed_with_its_last_words() {
        let (common, mut daemon) = daemon("failing", "echo 'no such bootstrap' >&2; exit 69");
        daemon.start(&common).unwrap();
        let started = std::time::Instant::now();
        let why = loop {
            assert!(started.elapsed() < Duration::from_secs(5));
            match daemon.ended() {
                Some(why) => break why.to_string(),
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        assert!(why.contains("no such bootstrap") && why.contains("69"), "{why}");
        std::fs::remove_dir_all(&common.directory).unwrap();
    }

    #[tokio::test]
    async fn a_command_that_fails_is_reported_with_what_it_said() {
        let (common, _) = daemon("init", "echo '{\"access_point\": \"12D3KooWx\"}'");
        assert_eq!(common.prepare(Ipv4Addr::LOCALHOST, None).await.unwrap().access_point, "12D3KooWx");
        let (silent, _) = daemon("init", "echo nothing");
        assert!(matches!(silent.prepare(Ipv4Addr::LOCALHOST, None).await, Err(DaemonError::Unexpected { .. })));
        let (failing, _) = daemon("init", "echo broken >&2; exit 78");
        let why = failing.prepare(Ipv4Addr::LOCALHOST, None).await.unwrap_err().to_string();
        assert!(why.contains("init") && why.contains("broken"), "{why}");
        for common in [common, silent, failing] {
            std::fs::remove_dir_all(&common.directory).unwrap();
        }
    }
}
