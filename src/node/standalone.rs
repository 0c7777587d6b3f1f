//! One access point alone: crawls the trees of the given hosts and ends when everything is done.
//!
//! In a state directory that is kept it goes on where it stopped.

use crate::node::{
    clock,
    config::Config,
    error::NodeError,
    executor::{Executor, Inbox},
    hierarchy::reading,
    query::handler,
    setup,
    state::{
        keyfile,
        persisted_state::{self, Place},
    },
};
use nearcrawl_core::{
    crawler::{Crawler, Settings},
    event::{Command, Event, StoreCommand},
    report::View,
    routing::locator::MAX_LOOKUPS_ALONE,
};
use nearcrawl_model::{
    fetch::ResolveError,
    fingerprint::FingerprintKey,
    ids::SiteNumber,
    journal::{JournalKey, JournalRow},
    record::ServerRecord,
    summary::Summary,
    url::PageUrl,
};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{Instant, sleep},
};

/// How often the watcher is shown how far it is.
const SHOW_EVERY: Duration = Duration::from_millis(100);

/// The result of a crawl without a swarm.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The sums over all servers.
    pub summary: Summary,
    /// One record a server, in the order of their names.
    pub servers: Vec<ServerRecord>,
    /// Whether everything was done; false if it was interrupted.
    pub exact: bool,
    /// The signal that ended it before its end, if one did.
    pub signal: Option<i32>,
    /// External hosts that were named, in or out of scope, counted once a server.
    pub external_hosts: u64,
    /// External URLs that were named, counted likewise; of a server with more than 256 an estimate.
    pub external_urls: u64,
    /// Registrable domains of those hosts, counted likewise.
    pub external_domains: u64,
    /// How often a page named an external host that is out of scope.
    pub beyond_scope: u64,
    /// URLs whose host has no usable address.
    pub nowhere: u64,
    /// Such hosts, by why they have none.
    pub unresolved: BTreeMap<ResolveError, u64>,
}

/// Who follows a crawl: is told what happens in the order in which it does, and writes it down.
pub trait Watcher: Send {
    /// It begins. What earlier calls recorded: journals with their number of rows; the key is that of the fingerprints in them.
    ///
    /// # Errors
    ///
    /// What is to be written cannot be.
    fn begins(&mut self, journals: &[(JournalKey, u64)], key: FingerprintKey) -> Result<(), NodeError>;

    /// This happened; the crawler will be told next.
    ///
    /// # Errors
    ///
    /// What is to be written cannot be.
    fn hears(&mut self, event: &Event) -> Result<(), NodeError>;

    /// These rows are going to be stored. What is written before they are is known of in the next call, if this one is killed.
    ///
    /// # Errors
    ///
    /// What is to be written cannot be.
    fn stores(&mut self, rows: &[JournalRow]) -> Result<(), NodeError>;

    /// How far it is; ten times a second, and at the end. Returns further URLs to begin with, each in the place of one of which nothing came.
    ///
    /// # Errors
    ///
    /// What is to be written cannot be.
    fn looks(&mut self, view: &View<'_>) -> Result<Vec<Instead>, NodeError>;

    /// Whether nothing more is to be taken in for the moment, because what was written is not taken away.
    fn is_behind(&self) -> bool;

    /// Whether nobody wants to know more.
    fn has_enough(&self) -> bool;
}

/// A starting URL in the place of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instead {
    /// Of this one nothing came.
    pub of: PageUrl,
    /// The one that is asked for now.
    pub url: PageUrl,
}

/// Follows nothing.
pub struct Unwatched;

impl Watcher for Unwatched {
    fn begins(&mut self, _: &[(JournalKey, u64)], _: FingerprintKey) -> Result<(), NodeError> {
        Ok(())
    }

    fn hears(&mut self, _: &Event) -> Result<(), NodeError> {
        Ok(())
    }

    fn stores(&mut self, _: &[JournalRow]) -> Result<(), NodeError> {
        Ok(())
    }

    fn looks(&mut self, _: &View<'_>) -> Result<Vec<Instead>, NodeError> {
        Ok(Vec::new())
    }

    fn is_behind(&self) -> bool {
        false
    }

    fn has_enough(&self) -> bool {
        false
    }
}

/// Why a starting URL would not be asked for, by what is known without a look-up of its host.
pub fn seed_refusal(config: &Config, url: &PageUrl) -> Option<String> {
    handler::seed_refusal(&setup::settings(config, false).scope, &setup::policy(config), url)
}

/// Crawls from `urls` until everything is done, or until SIGTERM or Ctrl-C. With a state directory it goes on where an earlier call with it
/// stopped, and leaves there what the next one needs; without one it leaves nothing behind.
///
/// # Errors
///
/// The state directory is in use, is that of a member of a swarm, or cannot be written or read; the hierarchy or the web clients could not be
/// set up; what the watcher writes cannot be written.
pub async fn crawl(
    mut config: Config,
    urls: Vec<PageUrl>,
    state: Option<PathBuf>,
    watcher: &mut impl Watcher,
) -> Result<Findings, NodeError> {
    // From now on, for whoever is ended by a signal removes nothing.
    let signals = Signals::new()?;
    let scratch = if state.is_none() { Some(Scratch::new()?) } else { None };
    config.state_dir = state.or_else(|| scratch.as_ref().map(|scratch| scratch.0.clone())).unwrap_or_default();
    let identity = keyfile::init(&config)?;
    let hierarchy = Arc::new(reading::hierarchy(&config)?);
    let store = setup::store(&config)?;
    let persisted = persisted_state::recall(&store, Place::of(&config.state_dir)).await?;
    // What it owns there it may ask only while the swarm's voters renew its lease.
    if persisted.members.iter().any(|member| *member != identity.access_point) {
        return Err(NodeError::StateOfMember(config.state_dir));
    }
    let secrets = persisted.secrets.map_or_else(setup::new_secrets, Ok)?;
    persisted_state::keep_secrets(&store, &secrets).await?;
    watcher.begins(&store.journals(None).await?, secrets.fingerprint_key)?;
    let web = setup::web_clients(&config, secrets.fingerprint_key)?;
    // Rows of the seen set from earlier starts are read back from the journals, under new site numbers.
    store.sites_drop_below(SiteNumber(persisted.incarnation << 32)).await?;
    let (claims, journal_sizes) = (store.claims_all().await?, store.journal_sizes().await?);
    let (executor, mut inbox) = Executor::new(web, config.delegation.probe, store, None);
    let settings = Settings { max_lookups: MAX_LOOKUPS_ALONE, ..setup::settings(&config, false) };
    let crawler = setup::crawler(&identity, &persisted, secrets, claims, settings, hierarchy, clock::now());
    let mut course = Course { crawler, executor, watcher };
    course.crawler.handle(clock::now(), Event::JournalsResized { growth: journal_sizes });
    course.crawler.handle(clock::now(), Event::Seeds(urls));
    let ended = course.until_done(&mut inbox, signals).await;
    course.executor.rest_for_good().await;
    let (exact, signal) = match ended? {
        Ended::Done => (true, None),
        Ended::Stopped(signal) => (false, signal),
    };
    Ok(found(&mut course.crawler, exact, signal))
}

fn found(crawler: &mut Crawler, exact: bool, signal: Option<i32>) -> Findings {
    let summary = crawler.own_summary();
    Findings {
        external_hosts: summary.total.external_hosts,
        external_urls: summary.total.external_urls,
        external_domains: summary.total.external_domains,
        nowhere: crawler.view().counters().nowhere,
        unresolved: crawler.view().counters().unresolved.clone(),
        beyond_scope: crawler.view().counters().beyond_scope,
        summary,
        servers: servers(&crawler.view()).collect(),
        exact,
        signal,
    }
}

/// The records of all servers so far, in the order of their names.
pub fn servers(view: &View<'_>) -> impl Iterator<Item = ServerRecord> {
    const PIECE: usize = 1_000;
    let mut next = Some(None);
    std::iter::from_fn(move || {
        let page = view.servers(next.take()?.as_ref(), PIECE);
        next = page.next.map(Some);
        Some(page.servers)
    })
    .flatten()
}

/// How it ended.
enum Ended {
    /// Everything is done.
    Done,
    /// By this signal, or because nobody wants to know more.
    Stopped(Option<i32>),
}

/// Ctrl-C and SIGTERM: they end nothing by themselves from the moment on in which this is made.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> Result<Signals, NodeError> {
        let heard = |kind| signal(kind).map_err(|_| NodeError::Ended("signal handling"));
        Ok(Signals { terminate: heard(SignalKind::terminate())?, interrupt: heard(SignalKind::interrupt())? })
    }

    /// The number of the next one.
    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate().as_raw_value(),
            _ = self.interrupt.recv() => SignalKind::interrupt().as_raw_value(),
        }
    }
}

/// A crawl under way.
struct Course<'a, W> {
    crawler: Crawler,
    executor: Executor,
    watcher: &'a mut W,
}

impl<W: Watcher> Course<'_, W> {
    fn take_in(&mut self, event: Event) -> Result<(), NodeError> {
        self.watcher.hears(&event)?;
        self.crawler.handle(clock::now(), event);
        Ok(())
    }

    /// Carries out what the crawler wants; whether it has finished.
    fn carry_out(&mut self) -> Result<bool, NodeError> {
        while let Some(command) = self.crawler.next_command() {
            match &command {
                Command::Finished => return Ok(true),
                Command::Store(StoreCommand::Append { rows, .. }) => self.watcher.stores(rows)?,
                _ => {}
            }
            if let Some(event) = self.executor.perform(command) {
                self.take_in(event)?;
            }
        }
        Ok(false)
    }

    fn look(&mut self) -> Result<bool, NodeError> {
        let further = self.watcher.looks(&self.crawler.view())?;
        let is_more = !further.is_empty();
        if is_more {
            let (before, urls) = further.into_iter().map(|Instead { of, url }| (of, url)).unzip();
            self.take_in(Event::Superseded(before))?;
            self.take_in(Event::Seeds(urls))?;
        }
        Ok(is_more)
    }

    async fn until_done(&mut self, inbox: &mut Inbox, mut signals: Signals) -> Result<Ended, NodeError> {
        let mut shown = tokio::time::interval(SHOW_EVERY);
        // Kept from turn to turn: making it anew costs more than most events.
        let mut waking = pin!(sleep(Duration::ZERO));
        let mut stopped = None;
        loop {
            if self.carry_out()? {
                self.look()?;
                return Ok(Ended::Stopped(stopped.flatten()));
            }
            if stopped.is_none() && self.crawler.view().all_done() && !self.look()? {
                return Ok(Ended::Done);
            }
            let wait = Duration::from_millis(self.crawler.wake_at().since(clock::now().moment));
            waking.as_mut().reset(Instant::now() + wait);
            let is_behind = self.executor.behind() > 0 || (self.watcher.is_behind() && stopped.is_none());
            let signalled = tokio::select! {
                event = inbox.events.recv(), if !is_behind => {
                    self.take_in(event.ok_or(NodeError::Ended("a task"))?)?;
                    None
                }
                told = inbox.outcomes.recv() => {
                    let (outcome, _turn) = told.ok_or(NodeError::Ended("the store queue"))?;
                    outcome?.map_or(Ok(()), |event| self.take_in(event))?;
                    None
                }
                () = self.executor.room(), if self.executor.behind() > 0 => {
                    self.executor.store_queue().catch_up();
                    None
                }
                () = &mut waking => {
                    self.crawler.handle(clock::now(), Event::Tick);
                    None
                }
                _ = shown.tick() => {
                    self.look()?;
                    (self.watcher.has_enough() && stopped.is_none()).then_some(None)
                }
                signal = signals.next() => Some(Some(signal)),
            };
            match (signalled, stopped) {
                (None, _) => {}
                (Some(signal), None) => {
                    stopped = Some(signal);
                    self.crawler.handle(clock::now(), Event::Drain);
                }
                // What is under way is not waited for any more.
                (Some(_), Some(signal)) => return Ok(Ended::Stopped(signal)),
            }
        }
    }
}

/// A directory that is removed when this value is dropped.
struct Scratch(PathBuf);

/// Directories of killed crawls are younger for a moment only: the lock is taken soon after the directory was made.
const SURELY_LOCKED: Duration = Duration::from_secs(60);

impl Scratch {
    fn new() -> Result<Scratch, NodeError> {
        let failed = |path: &Path, why: String| NodeError::Key { path: path.to_owned(), why, forbidden: false };
        let parent = std::env::temp_dir();
        remove_abandoned(&parent);
        let random = keyfile::random_seed().map_err(|error| failed(&parent, error.to_string()))?;
        let name: String = random[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let path = parent.join(format!("{SCRATCH}{name}"));
        fs::create_dir_all(&path).map_err(|error| failed(&path, format!("cannot be created: {error}; set TMPDIR to a place with room")))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's cleaning of temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// How the names of scratch directories begin; 16 hexadecimal digits follow.
const SCRATCH: &str = "nearcrawl-";

/// Removes what crawls left that were killed: directories whose lock nobody holds.
fn remove_abandoned(parent: &Path) {
    let is_scratch = |name: &str| {
        let digits = name.strip_prefix(SCRATCH);
        digits.is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
    };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let made = entry.metadata().ok().filter(fs::Metadata::is_dir).and_then(|found| found.modified().ok());
        let is_old = made.and_then(|made| SystemTime::now().duration_since(made).ok()).is_some_and(|age| age >= SURELY_LOCKED);
        if !is_old || !entry.file_name().to_str().is_some_and(is_scratch) {
            continue;
        }
        // Those of other users cannot be opened.
        let lock = fs::OpenOptions::new().write(true).open(entry.path().join("lock"));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::access_point::AccessPoint;

    #[test]
    fn what_a_killed_crawl_left_is_removed_and_what_is_in_use_stays() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        let old = SystemTime::now() - 2 * SURELY_LOCKED;
        let locks = ["nearcrawl-0123456789abcdef", "nearcrawl-fedcba9876543210", "nearcrawl-0123456789abcdex", "nearcrawl-00000000000000"];
        let made = locks.map(|name| {
            fs::create_dir(place(name)).unwrap();
            fs::File::create(place(name).join("lock")).unwrap()
        });
        made[1].try_lock().unwrap();
        fs::create_dir(place("nearcrawl-1111111111111111")).unwrap();
        for entry in fs::read_dir(directory.path()).unwrap() {
            fs::File::open(entry.unwrap().path()).unwrap().set_modified(old).unwrap();
        }
        fs::create_dir(place("nearcrawl-2222222222222222")).unwrap();
        fs::File::create(place("nearcrawl-2222222222222222/lock")).unwrap();
        remove_abandoned(directory.path());
        assert!(!place(locks[0]).exists(), "nobody uses it");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 5, "in use, another name, without a lock, just made");
    }

    #[tokio::test]
    async fn the_state_of_a_member_of_a_swarm_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let config = Config { state_dir: directory.path().to_owned(), contact: Some("nobody@lab.test".to_owned()), ..Config::default() };
        let store = setup::store(&config).unwrap();
        let members = [1, 2].map(|number| AccessPoint([number; 32]));
        persisted_state::keep_members(&store, &members.into(), &[]).await.unwrap();
        store.close().await;
        drop(store);
        let urls = vec![PageUrl::parse("http://127.0.0.1:9/").unwrap()];
        let refused = crawl(config.clone(), urls, Some(config.state_dir), &mut Unwatched).await.unwrap_err();
        assert!(matches!(&refused, NodeError::StateOfMember(_)) && refused.exit_status() == 73, "{refused}");
    }
}
