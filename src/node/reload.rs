//! Reloads on SIGHUP: the configuration's file, the hierarchy and the certificate.
//!
//! The file is read again for the rules on which hosts are crawled; so are the hierarchy that it names and the certificate in the state
//! directory.
//!
//! It is listened for before anything else is done: a signal that comes while the daemon starts would end the process, by the system's
//! default.

use crate::io::tasks::{self, TaskKind};
use crate::node::{
    config::{Config, ConfigError, CrawlConfig, NotReady, ScopeConfig},
    error::NodeError,
    hierarchy::snapshot_store::SnapshotStore,
    state::admission_files,
};
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{admission::SignedAdmission, edition::Edition, view::counted};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
};

/// A file that has changed within this time is being written: some editors empty it first.
const SETTLES: Duration = Duration::from_millis(300);

/// Why the rules of a file are not taken over.
#[derive(Debug, thiserror::Error)]
enum UntakenError {
    /// It cannot be read, or has mistakes.
    #[error("the configuration has mistakes: {0}")]
    Wrong(#[from] ConfigError),
    /// It is being written.
    #[error("{} was being written: send the signal again when it is whole", .0.display())]
    Changing(PathBuf),
    /// No daemon would start with it.
    #[error("no daemon would start with the configuration: {0}")]
    NotReady(#[from] NotReady),
    /// A file that was cut off reads like this one.
    #[error("contact is no longer what it was: was {} cut off? Another contact needs a restart", .0.display())]
    OtherContact(PathBuf),
}

/// The signal, and the file that is read again when it comes.
#[derive(Debug)]
pub struct Reloads {
    signal: Signal,
    file: Option<PathBuf>,
    /// Held while it is read: of two signals the later one's reading is told last.
    reading: Arc<Mutex<()>>,
}

/// What was read again.
#[derive(Debug)]
pub enum Reread {
    /// The rules on which hosts are crawled.
    Rules(Box<(ScopeConfig, CrawlConfig)>, String),
    /// Another hierarchy than the one in use.
    Hierarchy(Edition, Arc<Hierarchy>),
    /// The certificate in the state directory, which may be the one that is shown.
    Certificate(Box<SignedAdmission>),
}

impl Reloads {
    /// From now on the signal ends nobody: it waits until it is asked for.
    ///
    /// # Errors
    /// The system does not let the signal be handled.
    pub fn listen(file: Option<&Path>) -> Result<Reloads, NodeError> {
        let signal = signal(SignalKind::hangup()).map_err(|_| NodeError::Ended("signal handling"))?;
        Ok(Reloads { signal, file: file.map(Path::to_owned), reading: Arc::default() })
    }

    /// What the file says; nothing if there is none.
    pub(super) fn text(&self) -> String {
        self.file.as_deref().and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default()
    }

    /// Waits for the signal.
    pub(super) async fn next(&mut self) {
        self.signal.recv().await;
    }

    /// Reads everything again, on a thread of its own. What cannot be read stays as it is. `known` is the edition of the hierarchy that the
    /// configuration named last.
    pub(super) fn read(&self, running: &Config, known: Option<Edition>, snapshots: SnapshotStore, told: mpsc::Sender<Reread>) {
        let (file, running, reading) = (self.file.clone(), running.clone(), Arc::clone(&self.reading));
        tokio::task::spawn_blocking(move || {
            let _running = tasks::begin(TaskKind::ConfiguredHierarchy);
            let _one_at_a_time = reading.lock().unwrap_or_else(PoisonError::into_inner);
            // If the loop has ended, nobody needs to know.
            match file.as_deref().map(|file| rules(file, &running, || thread::sleep(SETTLES))) {
                None => {}
                Some(Ok(rules)) => drop(told.blocking_send(rules)),
                Some(Err(why)) => tracing::error!("SIGHUP: the rules on hosts stay as they are, since {why}"),
            }
            if let Some(hierarchy) = known.and_then(|known| hierarchy(&snapshots, &running, &known)) {
                let _ = told.blocking_send(hierarchy);
            }
            match admission_files::certificate(&running) {
                Ok(None) => {}
                Ok(Some(signed)) => drop(told.blocking_send(Reread::Certificate(Box::new(signed)))),
                Err(why) => tracing::error!("SIGHUP: the certificate cannot be read, and the one before is shown: {why}"),
            }
        });
    }
}

/// The rules of the file, if it says the same before and after a pause.
fn rules(file: &Path, running: &Config, pause: impl FnOnce()) -> Result<Reread, UntakenError> {
    let text = Config::text_of(file)?;
    pause();
    if Config::text_of(file)? != text {
        return Err(UntakenError::Changing(file.to_owned()));
    }
    let config = Config::parse(&text, file)?;
    config.ready_to_run()?;
    if running.contact != config.contact {
        return Err(UntakenError::OtherContact(file.to_owned()));
    }
    let sections = needing_restart(running, &config);
    if !sections.is_empty() {
        let sections = sections.join(", ");
        tracing::warn!("SIGHUP: {} has other values in {sections}, too: they hold from the next start on", file.display());
    }
    Ok(Reread::Rules(Box::new((config.scope, config.crawl)), text))
}

/// The hierarchy that the configuration names, if it is another one.
fn hierarchy(snapshots: &SnapshotStore, running: &Config, known: &Edition) -> Option<Reread> {
    match snapshots.given_again(running, known) {
        Ok(None) => tracing::info!("SIGHUP: the configured hierarchy has not changed"),
        Ok(Some((edition, hierarchy))) => {
            tracing::info!("SIGHUP: the configured hierarchy is now {edition}; it is announced to the other members");
            return Some(Reread::Hierarchy(edition, hierarchy));
        }
        Err(why) => tracing::error!("SIGHUP: the configured hierarchy cannot be read, the one in use is kept: {why}"),
    }
    None
}

/// Sections whose values differ and are read at a start only.
fn needing_restart(running: &Config, read: &Config) -> Vec<&'static str> {
    let mut read = read.clone();
    adopt(&mut read, &running.scope, &running.crawl);
    // Members named on the command line stand behind those of the file.
    if running.swarm.bootstrap.starts_with(&read.swarm.bootstrap) {
        read.swarm.bootstrap.clone_from(&running.swarm.bootstrap);
    }
    // Named one by one, so that none is forgotten.
    let Config {
        state_dir,
        contact,
        page,
        swarm,
        nat,
        admission,
        crawl,
        scope: _,
        dns,
        fetch,
        hierarchy,
        delegation,
        timers,
        cache,
        store,
        api,
        allowance,
        log,
    } = running;
    let differs = [
        ("state_dir, contact or page", (state_dir, contact, page) != (&read.state_dir, &read.contact, &read.page)),
        ("[swarm]", *swarm != read.swarm),
        ("[nat]", *nat != read.nat),
        ("[admission]", *admission != read.admission),
        ("[crawl]", *crawl != read.crawl),
        ("[dns]", *dns != read.dns),
        ("[fetch]", *fetch != read.fetch),
        ("[hierarchy]", *hierarchy != read.hierarchy),
        ("[delegation]", *delegation != read.delegation),
        ("[timers]", *timers != read.timers),
        ("[cache]", *cache != read.cache),
        ("[store]", *store != read.store),
        ("[api]", *api != read.api),
        ("[allowance]", *allowance != read.allowance),
        ("[log]", *log != read.log),
    ];
    differs.into_iter().filter(|(_, differs)| *differs).map(|(section, _)| section).collect()
}

/// Takes the rules on hosts over, and nothing else.
pub(super) fn adopt(config: &mut Config, scope: &ScopeConfig, crawl: &CrawlConfig) {
    config.scope = scope.clone();
    config.crawl = CrawlConfig {
        deny_hosts: crawl.deny_hosts.clone(),
        deny_tlds: crawl.deny_tlds.clone(),
        deny_ranges: crawl.deny_ranges.clone(),
        deny_asns: crawl.deny_asns.clone(),
        ..config.crawl.clone()
    };
}

/// Whether a key is one of the rules on hosts.
pub(super) fn is_rule(section: &str, key: &str) -> bool {
    section == "scope" || section == "crawl" && key.starts_with("deny_")
}

/// The rules in a sentence.
pub(super) fn in_words(config: &Config) -> String {
    let (scope, crawl) = (&config.scope, &config.crawl);
    let listed = |parts: [(usize, &str); 4]| {
        let all: Vec<_> = parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| counted(count, what)).collect();
        if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
    };
    let (hosts, tlds, ranges, systems) = ("host", "top-level domain", "range", "autonomous system");
    let admitted =
        listed([(scope.tlds.len(), tlds), (scope.hosts.len(), hosts), (scope.ranges.len(), ranges), (scope.asns.len(), systems)]);
    let admitted = if scope.open { "every host".to_owned() } else { admitted };
    let lists = [
        (crawl.deny_tlds.len(), tlds),
        (crawl.deny_hosts.len(), hosts),
        (crawl.deny_ranges.len(), ranges),
        (crawl.deny_asns.len(), systems),
    ];
    format!("in scope {admitted}; denied {}", listed(lists))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        Config::parse(text, Path::new("node.toml")).unwrap()
    }

    #[test]
    fn only_the_rules_on_hosts_are_taken_over_and_the_rest_is_named() {
        let mut running = config("[crawl]\ndepth = 3\n[scope]\ntlds = [\"ke\"]\n");
        running.swarm.bootstrap.push("/ip4/192.0.2.7/tcp/4817".to_owned());
        let root = "ab".repeat(32);
        let read = config(&format!(
            "[crawl]\ndepth = 5\ndeny_tlds = [\"test\"]\ndeny_asns = [\"AS64500\", 64501]\n[scope]\nopen = true\n[dns]\nattempts = 9\n\
             [nat]\nrelay = false\n[admission]\nmode = \"invite\"\nswarm = \"{root}\"\n",
        ));
        assert_eq!(needing_restart(&running, &read), ["[nat]", "[admission]", "[crawl]", "[dns]"]);
        adopt(&mut running, &read.scope, &read.crawl);
        assert_eq!((running.crawl.depth, &running.crawl.deny_asns[..], running.scope.open), (3, &[64_500, 64_501][..], true));
        assert_eq!(in_words(&running), "in scope every host; denied 1 top-level domain, 2 autonomous systems");
        assert!(needing_restart(&running, &running).is_empty());
    }

    #[test]
    fn a_file_that_is_being_written_or_was_cut_off_changes_no_rules() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("node.toml");
        let whole = "contact = \"me@museum.ke\"\n[crawl]\ndeny_hosts = [\"bad.ke\"]\n";
        let running = config(whole);
        let reread = |before: &str, after: &str| {
            fs::write(&file, before).unwrap();
            rules(&file, &running, || fs::write(&file, after).unwrap())
        };
        for (before, after) in [("", whole), (whole, ""), ("contact = \"me@museum.ke\"\n", whole), ("", "\n")] {
            assert!(matches!(reread(before, after), Err(UntakenError::Changing(_))), "{before:?} {after:?}");
        }
        assert!(matches!(reread("", ""), Err(UntakenError::NotReady(NotReady::NoContact))));
        let other = "contact = \"you@museum.ke\"\n";
        assert!(matches!(reread(other, other), Err(UntakenError::OtherContact(_))));
        assert!(matches!(reread("[crawl", "[crawl"), Err(UntakenError::Wrong(_))));
        let Ok(Reread::Rules(rules, text)) = reread(whole, whole) else { panic!("it is whole") };
        assert_eq!((rules.1.deny_hosts, &*text), (running.crawl.deny_hosts.clone(), whole));
    }
}
