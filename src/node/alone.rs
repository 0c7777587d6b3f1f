//! One access point alone: crawls the trees of the given hosts and ends when everything is done.

use super::{
    birth, clock,
    config::Config,
    failure::NodeFailure,
    keyfile,
    perform::{Ears, Hands},
    souvenirs,
};
use crate::{
    logic::crawler::{
        Crawler,
        event::{Command, Event},
    },
    model::{fetch::ResolveFailure, record::ServerRecord, summary::Summary, url::PageUrl, view::ProgressView},
};
use std::{collections::BTreeMap, pin::pin, sync::Arc, time::Duration};
use tokio::{
    signal,
    time::{Instant, sleep},
};

/// How often the watcher is shown how far it is.
const SHOW_EVERY: Duration = Duration::from_millis(100);

/// What a crawl found.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The sums.
    pub summary: Summary,
    /// One record a server, in the order of their names.
    pub servers: Vec<ServerRecord>,
    /// Whether everything was done; false if it was interrupted.
    pub whole: bool,
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
    pub unresolved: BTreeMap<ResolveFailure, u64>,
}

/// Crawls from `urls`, in a state directory that is removed afterwards, and shows how far it is.
pub async fn crawl(mut config: Config, urls: Vec<PageUrl>, mut show: impl FnMut(ProgressView) + Send) -> Result<Findings, NodeFailure> {
    let directory = Scratch::new()?;
    config.state_dir = directory.0.clone();
    let born = keyfile::init(&config)?;
    let hierarchy = Arc::new(birth::hierarchy(&config)?);
    let store = birth::store(&config)?;
    let souvenirs = souvenirs::recall(&store).await?;
    let secrets = birth::new_secrets()?;
    let web = birth::web_hands(&config, secrets.fingerprint_key)?;
    let (mut hands, mut ears) = Hands::new(web, config.delegation.probe, store, None);
    let settings = birth::settings(&config, false);
    let mut mind = birth::mind(&born, &souvenirs, secrets, Vec::new(), settings, hierarchy, clock::now());
    mind.handle(clock::now(), Event::Seeds(urls));
    let crawled = until_done(&mut mind, &mut hands, &mut ears, &mut show).await;
    hands.rest_for_good().await;
    let whole = crawled?;
    let mut servers = Vec::new();
    let mut after = None;
    loop {
        let page = mind.servers(after.as_ref(), 1000);
        servers.extend(page.servers);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let summary = mind.own_summary();
    Ok(Findings {
        external_hosts: summary.total.external_hosts,
        external_urls: summary.total.external_urls,
        external_domains: summary.total.external_domains,
        nowhere: mind.counters().nowhere,
        unresolved: mind.counters().unresolved.clone(),
        beyond_scope: mind.counters().beyond_scope,
        summary,
        servers,
        whole,
    })
}

async fn until_done(
    mind: &mut Crawler,
    hands: &mut Hands,
    ears: &mut Ears,
    show: &mut impl FnMut(ProgressView),
) -> Result<bool, NodeFailure> {
    let mut shown = tokio::time::interval(SHOW_EVERY);
    // Kept from turn to turn: making them anew costs more than most events.
    let (mut waking, mut interrupted) = (pin!(sleep(Duration::ZERO)), pin!(signal::ctrl_c()));
    loop {
        while let Some(command) = mind.next_command() {
            if matches!(command, Command::Finished) {
                return Ok(false);
            }
            if let Some(event) = hands.perform(command) {
                mind.handle(clock::now(), event);
            }
        }
        if mind.all_done() {
            show(mind.progress());
            return Ok(true);
        }
        let wait = Duration::from_millis(mind.wake_at().since(clock::now().moment));
        waking.as_mut().reset(Instant::now() + wait);
        tokio::select! {
            event = ears.events.recv() => mind.handle(clock::now(), event.ok_or(NodeFailure::Ended("a hand"))?),
            outcome = ears.outcomes.recv() => {
                if let Some(event) = outcome.ok_or(NodeFailure::Ended("the clerk"))?? {
                    mind.handle(clock::now(), event);
                }
            }
            () = &mut waking => mind.handle(clock::now(), Event::Tick),
            _ = shown.tick() => show(mind.progress()),
            _ = &mut interrupted => {
                interrupted.set(signal::ctrl_c());
                mind.handle(clock::now(), Event::Drain);
            }
        }
    }
}

/// A directory that goes away with its owner.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new() -> Result<Scratch, NodeFailure> {
        let failed = |path: &std::path::Path, why: String| NodeFailure::Key { path: path.to_owned(), why, forbidden: false };
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
