//! One access point alone: crawls the trees of the given hosts and ends when everything is done.

use super::{
    clock,
    config::Config,
    error::NodeError,
    executor::{Executor, Inbox},
    keyfile, persisted_state, setup,
};
use nearcrawl_core::{
    crawler::{Crawler, Settings},
    event::{Command, Event},
    routing::locator::MAX_LOOKUPS_ALONE,
};
use nearcrawl_model::{fetch::ResolveError, record::ServerRecord, summary::Summary, url::PageUrl, view::ProgressView};
use std::{collections::BTreeMap, pin::pin, sync::Arc, time::Duration};
use tokio::{
    signal,
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

/// Crawls from `urls`, in a state directory that is removed afterwards, and shows how far it is.
pub async fn crawl(mut config: Config, urls: Vec<PageUrl>, mut show: impl FnMut(ProgressView) + Send) -> Result<Findings, NodeError> {
    let directory = Scratch::new()?;
    config.state_dir = directory.0.clone();
    let identity = keyfile::init(&config)?;
    let hierarchy = Arc::new(setup::hierarchy(&config)?);
    let store = setup::store(&config)?;
    let persisted = persisted_state::recall(&store, None).await?;
    let secrets = setup::new_secrets()?;
    let web = setup::web_clients(&config, secrets.fingerprint_key)?;
    let (mut executor, mut inbox) = Executor::new(web, config.delegation.probe, store, None);
    let settings = Settings { max_lookups: MAX_LOOKUPS_ALONE, ..setup::settings(&config, false) };
    let mut crawler = setup::crawler(&identity, &persisted, secrets, Vec::new(), settings, hierarchy, clock::now());
    crawler.handle(clock::now(), Event::Seeds(urls));
    let crawled = until_done(&mut crawler, &mut executor, &mut inbox, &mut show).await;
    executor.rest_for_good().await;
    let exact = crawled?;
    let mut servers = Vec::new();
    let mut after = None;
    loop {
        let page = crawler.view().servers(after.as_ref(), 1000);
        servers.extend(page.servers);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let summary = crawler.own_summary();
    Ok(Findings {
        external_hosts: summary.total.external_hosts,
        external_urls: summary.total.external_urls,
        external_domains: summary.total.external_domains,
        nowhere: crawler.view().counters().nowhere,
        unresolved: crawler.view().counters().unresolved.clone(),
        beyond_scope: crawler.view().counters().beyond_scope,
        summary,
        servers,
        exact,
    })
}

async fn until_done(
    crawler: &mut Crawler,
    executor: &mut Executor,
    inbox: &mut Inbox,
    show: &mut impl FnMut(ProgressView),
) -> Result<bool, NodeError> {
    let mut shown = tokio::time::interval(SHOW_EVERY);
    // Kept from turn to turn: making them anew costs more than most events.
    let (mut waking, mut interrupted) = (pin!(sleep(Duration::ZERO)), pin!(signal::ctrl_c()));
    loop {
        while let Some(command) = crawler.next_command() {
            if matches!(command, Command::Finished) {
                return Ok(false);
            }
            if let Some(event) = executor.perform(command) {
                crawler.handle(clock::now(), event);
            }
        }
        if crawler.view().all_done() {
            show(crawler.view().progress());
            return Ok(true);
        }
        let wait = Duration::from_millis(crawler.wake_at().since(clock::now().moment));
        waking.as_mut().reset(Instant::now() + wait);
        tokio::select! {
            event = inbox.events.recv(), if executor.behind() == 0 => crawler.handle(clock::now(), event.ok_or(NodeError::Ended("a task"))?),
            told = inbox.outcomes.recv() => {
                let (outcome, _turn) = told.ok_or(NodeError::Ended("the store queue"))?;
                if let Some(event) = outcome? {
                    crawler.handle(clock::now(), event);
                }
            }
            () = executor.room(), if executor.behind() > 0 => executor.store_queue().catch_up(),
            () = &mut waking => crawler.handle(clock::now(), Event::Tick),
            _ = shown.tick() => show(crawler.view().progress()),
            _ = &mut interrupted => {
                interrupted.set(signal::ctrl_c());
                crawler.handle(clock::now(), Event::Drain);
            }
        }
    }
}

/// A directory that is removed when this value is dropped.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new() -> Result<Scratch, NodeError> {
        let failed = |path: &std::path::Path, why: String| NodeError::Key { path: path.to_owned(), why, forbidden: false };
        let parent = std::env::temp_dir();
        let random = keyfile::random_seed().map_err(|error| failed(&parent, error.to_string()))?;
        let name: String = random[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let path = parent.join(format!("nearcrawl-{name}"));
        std::fs::create_dir_all(&path)
            .map_err(|error| failed(&path, format!("cannot be created: {error}; set TMPDIR to a place with room")))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's cleaning of temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
