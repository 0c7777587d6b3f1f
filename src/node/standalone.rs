//! One access point alone: crawls the trees of the given hosts and ends when everything is done. In a state directory that is kept it goes on
//! where it stopped.

use super::{
    clock,
    config::Config,
    error::NodeError,
    executor::{Executor, Inbox},
    keyfile,
    persisted_state::{self, Place},
    setup,
};
use nearcrawl_core::{
    crawler::{Crawler, Settings},
    event::{Command, Event},
    report::View,
    routing::locator::MAX_LOOKUPS_ALONE,
};
use nearcrawl_model::{fetch::ResolveError, ids::SiteNumber, record::ServerRecord, summary::Summary, url::PageUrl};
use std::{collections::BTreeMap, path::PathBuf, pin::pin, sync::Arc, time::Duration};
use tokio::{
    signal::unix::{SignalKind, signal},
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

/// Crawls from `urls` until everything is done, or until SIGTERM or Ctrl-C; `show` is shown how far it is ten times a second, and at the end.
/// With a state directory it goes on where an earlier call with it stopped, and leaves there what the next one needs; without one it leaves
/// nothing behind.
///
/// # Errors
///
/// The state directory is in use, is that of a member of a swarm, or cannot be written or read; the hierarchy or the web clients could not be set up.
pub async fn crawl(
    mut config: Config,
    urls: Vec<PageUrl>,
    state: Option<PathBuf>,
    mut show: impl FnMut(View<'_>) + Send,
) -> Result<Findings, NodeError> {
    let scratch = if state.is_none() { Some(Scratch::new()?) } else { None };
    config.state_dir = state.or_else(|| scratch.as_ref().map(|scratch| scratch.0.clone())).unwrap_or_default();
    let identity = keyfile::init(&config)?;
    let hierarchy = Arc::new(setup::hierarchy(&config)?);
    let store = setup::store(&config)?;
    let persisted = persisted_state::recall(&store, Place::of(&config.state_dir)).await?;
    // What it owns there it may ask only while the swarm's voters renew its lease.
    if persisted.members.iter().any(|member| *member != identity.access_point) {
        return Err(NodeError::StateOfMember(config.state_dir));
    }
    let secrets = persisted.secrets.map_or_else(setup::new_secrets, Ok)?;
    persisted_state::keep_secrets(&store, &secrets).await?;
    let web = setup::web_clients(&config, secrets.fingerprint_key)?;
    // Rows of the seen set from earlier starts are read back from the journals, under new site numbers.
    store.sites_drop_below(SiteNumber(persisted.incarnation << 32)).await?;
    let (claims, journal_sizes) = (store.claims_all().await?, store.journal_sizes().await?);
    let (mut executor, mut inbox) = Executor::new(web, config.delegation.probe, store, None);
    let settings = Settings { max_lookups: MAX_LOOKUPS_ALONE, ..setup::settings(&config, false) };
    let mut crawler = setup::crawler(&identity, &persisted, secrets, claims, settings, hierarchy, clock::now());
    crawler.handle(clock::now(), Event::JournalsResized { growth: journal_sizes });
    crawler.handle(clock::now(), Event::Seeds(urls));
    let crawled = until_done(&mut crawler, &mut executor, &mut inbox, &mut show).await;
    executor.rest_for_good().await;
    let exact = crawled?;
    let summary = crawler.own_summary();
    Ok(Findings {
        external_hosts: summary.total.external_hosts,
        external_urls: summary.total.external_urls,
        external_domains: summary.total.external_domains,
        nowhere: crawler.view().counters().nowhere,
        unresolved: crawler.view().counters().unresolved.clone(),
        beyond_scope: crawler.view().counters().beyond_scope,
        summary,
        servers: servers(&crawler.view()).collect(),
        exact,
    })
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

async fn until_done(
    crawler: &mut Crawler,
    executor: &mut Executor,
    inbox: &mut Inbox,
    show: &mut impl FnMut(View<'_>),
) -> Result<bool, NodeError> {
    let mut shown = tokio::time::interval(SHOW_EVERY);
    let failed = |_| NodeError::Ended("signal handling");
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate()).map_err(failed)?, signal(SignalKind::interrupt()).map_err(failed)?);
    // Kept from turn to turn: making it anew costs more than most events.
    let mut waking = pin!(sleep(Duration::ZERO));
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
            show(crawler.view());
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
            _ = shown.tick() => show(crawler.view()),
            _ = terminate.recv() => crawler.handle(clock::now(), Event::Drain),
            _ = interrupt.recv() => crawler.handle(clock::now(), Event::Drain),
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

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::access_point::AccessPoint;

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
        let refused = crawl(config.clone(), urls, Some(config.state_dir), |_| panic!("it crawls")).await.unwrap_err();
        assert!(matches!(&refused, NodeError::StateOfMember(_)) && refused.exit_status() == 73, "{refused}");
    }
}
