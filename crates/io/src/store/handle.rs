//! The handle by which async code uses the store: one method for each query.

use super::{
    action_timer::ActionTimer,
    cache::{self, CacheAction, table_key},
    config::StoreConfig,
    counters::StoreCounters,
    disk,
    error::{OpenError, StoreError},
    journal::{Appended, Growth},
    key,
    open::{self, OpenReport, Opened},
    queue::ActionQueue,
    room::{AtOnce, Room, Shared},
    seen::SeenSet,
    stall,
    state::{self, Answer, Closing, StateAction, StateRead, StateWrite},
};
use crate::tasks::{self, TaskKind};
use nearcrawl_model::{
    claim::SignedClaim,
    fingerprint::Fingerprint,
    ids::SiteNumber,
    journal::{JournalKey, JournalRow},
    previous_run::{PreviousRow, PreviousVersion},
    seen::{PageState, SeenAnswer, SeenBatch},
    subnet::Subnet,
};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
    time::Duration,
};
use tokio::sync::{mpsc, oneshot};

/// An open state directory. Clones share it; when the last one goes, both databases are flushed and closed and the directory is
/// free again (the drop waits for that: rather call [`Store::close`] first).
#[derive(Clone, Debug)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    dir: PathBuf,
    /// None only while this is being dropped.
    state: Option<ActionQueue<StateAction>>,
    /// None only while this is being dropped.
    cache: Option<ActionQueue<CacheAction>>,
    room: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    counters: Arc<StoreCounters>,
    /// Of the threads of `state/` and `cache/`.
    timers: [Arc<ActionTimer>; 2],
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Without askers the threads do what is left to do and end.
        self.state = None;
        self.cache = None;
        if let Ok(threads) = self.threads.get_mut() {
            for thread in threads.drain(..) {
                let _ = thread.join();
            }
        }
    }
}

impl Store {
    /// Whether this version can read the state directory, found out without writing or locking anything.
    ///
    /// # Errors
    /// A newer version wrote it, or its format cannot be read.
    pub fn check_format(dir: &Path) -> Result<(), OpenError> {
        open::check_format(dir)
    }

    /// Opens the state directory `dir`, creating it if need be. Blocks until it can be used, normally for well under a second.
    ///
    /// # Errors
    /// See [`OpenError`]: every one says what to do and has an exit status.
    pub fn open(dir: &Path, config: &StoreConfig) -> Result<(Store, OpenReport), OpenError> {
        let counters = Arc::new(StoreCounters::default());
        let Opened { lock, state, cache, report } = open::open(dir, config, &counters)?;
        // The lock goes with the last of the two threads, when both databases are closed.
        let lock = Arc::new(lock);
        let (to_state, state_actions) = mpsc::channel(config.queue.max(1));
        let (to_cache, cache_actions) = mpsc::channel(config.queue.max(1));
        let failed = |error: std::io::Error| OpenError::Io { path: dir.to_path_buf(), reason: format!("no thread to be had: {error}") };
        let timers = [(); 2].map(|()| Arc::new(ActionTimer::new()));
        let [state_timer, cache_timer] = timers.clone();
        let (held, counts) = (Arc::clone(&lock), Arc::clone(&counters));
        let state_thread = thread::Builder::new().name("store-state".to_owned()).spawn(move || {
            let _running = tasks::begin(TaskKind::StateThread);
            let closed = state::serve(state, state_actions, &counts, &state_timer);
            drop(held);
            closed.map(|done| done.send(()));
        });
        let room = Arc::new(Shared::new(Room { database: cache, seen: SeenSet::new(config.recent_bytes()) }));
        let (shared, counts) = (Arc::clone(&room), Arc::clone(&counters));
        let cache_thread = thread::Builder::new().name("store-cache".to_owned()).spawn(move || {
            let _running = tasks::begin(TaskKind::CacheThread);
            let closed = cache::serve(&shared, cache_actions, &counts, &cache_timer);
            drop(lock);
            closed.map(|done| done.send(()));
        });
        let threads = Mutex::new(vec![state_thread.map_err(failed)?, cache_thread.map_err(failed)?]);
        let dir = dir.to_path_buf();
        Ok((
            Store(Arc::new(Inner {
                dir,
                state: Some(ActionQueue::new(to_state)),
                cache: Some(ActionQueue::new(to_cache)),
                room,
                threads,
                counters,
                timers,
            })),
            report,
        ))
    }

    /// Does what was asked for until now, flushes and closes both databases and frees the directory. From then on every action is
    /// answered with [`StoreError::Closed`].
    pub async fn close(&self) {
        self.end(true).await;
    }

    /// The same for a directory that will be removed: nothing is made ready for the next opening.
    pub async fn discard(&self) {
        self.end(false).await;
    }

    async fn end(&self, keep: bool) {
        let (state_done, state_closed) = oneshot::channel();
        let (cache_done, cache_closed) = oneshot::channel();
        if let Some(state) = &self.0.state {
            let _ = state.put(|| StateAction::Close(Closing { keep, done: state_done })).await;
        }
        if let Some(cache) = &self.0.cache {
            let close = || {
                self.0.room.hand_over();
                CacheAction::Close(Closing { keep, done: cache_done })
            };
            let _ = cache.put(close).await;
        }
        // An error means that it was closed already.
        let _ = state_closed.await;
        let _ = cache_closed.await;
    }

    /// What the store has done so far.
    pub fn counters(&self) -> &StoreCounters {
        &self.0.counters
    }

    /// How many actions wait: for `state/` and for `cache/`.
    pub fn waiting(&self) -> (usize, usize) {
        let state = self.0.state.as_ref().map_or(0, ActionQueue::waiting);
        let cache = self.0.cache.as_ref().map_or(0, ActionQueue::waiting);
        (state, cache)
    }

    /// The damage that was found in `state/` while it was in use, if any was: whoever came across it may have taken it for something that
    /// passes. Nothing is searched for.
    pub async fn state_damage(&self) -> Option<StoreError> {
        // The thread of `state/` answers every read with the damage once it knows of it.
        self.meta_get("format").await.err().filter(|error| matches!(error, StoreError::StateDamaged { .. }))
    }

    /// For how long the store has been at one action without an end: as long as its disk stands still. Zero if it has nothing to do.
    pub fn silent_for(&self) -> Duration {
        self.0.timers.iter().map(|timer| timer.elapsed()).max().unwrap_or_default()
    }

    /// Bytes that the state directory takes on the disk.
    pub async fn disk_usage(&self) -> Result<u64, StoreError> {
        self.look(disk::used_bytes).await
    }

    /// Bytes of these that are what must not be lost.
    pub async fn state_usage(&self) -> Result<u64, StoreError> {
        self.look(|dir| disk::used_bytes(&dir.join("state"))).await
    }

    /// Bytes that may still be written on the state directory's disk.
    pub async fn free_space(&self) -> Result<u64, StoreError> {
        self.look(disk::free_bytes).await
    }

    async fn look(&self, ask: fn(&Path) -> std::io::Result<u64>) -> Result<u64, StoreError> {
        let dir = self.0.dir.clone();
        let asked = tokio::task::spawn_blocking(move || {
            stall::wait();
            ask(&dir)
        })
        .await;
        asked.map_err(|_| StoreError::Closed)?.map_err(|error| StoreError::Io(error.to_string()))
    }

    async fn write<T>(&self, action: impl FnOnce(Answer<T>) -> StateWrite) -> Result<T, StoreError> {
        self.state(|answer| StateAction::Write(action(answer))).await
    }

    async fn read<T>(&self, action: impl FnOnce(Answer<T>) -> StateRead) -> Result<T, StoreError> {
        self.state(|answer| StateAction::Read(action(answer))).await
    }

    async fn state<T>(&self, action: impl FnOnce(Answer<T>) -> StateAction) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let state = self.0.state.as_ref().ok_or(StoreError::Closed)?;
        state.put(|| action(answer)).await?;
        answered.await.map_err(|_| StoreError::Closed)?
    }

    async fn cache<T>(&self, action: impl FnOnce(Answer<T>) -> CacheAction) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let cache = self.0.cache.as_ref().ok_or(StoreError::Closed)?;
        let handed = || {
            self.0.room.hand_over();
            action(answer)
        };
        cache.put(handed).await?;
        answered.await.map_err(|_| StoreError::Closed)?
    }
}

/// What must not be lost: on the disk before it is answered.
impl Store {
    /// A named value.
    pub async fn meta_get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let name = checked(name)?;
        self.read(|answer| StateRead::MetaGet { name, answer }).await
    }

    /// Sets a named value. Names have 1 to 64 bytes without NUL.
    pub async fn meta_put(&self, name: &str, value: Vec<u8>) -> Result<(), StoreError> {
        self.meta_put_all(vec![(name.to_owned(), Some(value))]).await
    }

    /// Sets named values, or deletes those without one; all or none.
    pub async fn meta_put_all(&self, values: Vec<(String, Option<Vec<u8>>)>) -> Result<(), StoreError> {
        values.iter().try_for_each(|(name, _)| checked(name).map(drop))?;
        self.write(|answer| StateWrite::MetaPut { values, answer }).await
    }

    /// Stores claims, each in place of the one to the same subnet. Which claim holds is not decided here.
    pub async fn claims_put(&self, claims: Vec<SignedClaim>) -> Result<(), StoreError> {
        let encode = |signed: SignedClaim| {
            let subnet = signed.read().map_err(|_| StoreError::MalformedClaim)?.subnet;
            let bytes = postcard::to_stdvec(&signed).map_err(|_| StoreError::MalformedClaim)?;
            Ok((key::of_subnet(&subnet), bytes))
        };
        let claims = claims.into_iter().map(encode).collect::<Result<_, _>>()?;
        self.write(|answer| StateWrite::ClaimsPut { claims, answer }).await
    }

    /// Stores what concerns votes, all or none: keys with their values, or without one to delete the key.
    pub async fn voting_put(&self, records: Vec<(Vec<u8>, Option<Vec<u8>>)>) -> Result<(), StoreError> {
        self.write(|answer| StateWrite::VotingPut { records, answer }).await
    }

    /// Everything that concerns votes, in the order of the keys.
    pub async fn voting_all(&self) -> Result<Vec<(Vec<u8>, Vec<u8>)>, StoreError> {
        self.read(|answer| StateRead::Voting { answer }).await
    }

    /// All claims, in the order of their subnets.
    pub async fn claims_all(&self) -> Result<Vec<SignedClaim>, StoreError> {
        self.read(|answer| StateRead::Claims { answer }).await
    }

    /// Stores journal rows, all or none; a row whose sequence number is there already changes nothing, and rows beyond a gap are
    /// kept until the gap closes.
    pub async fn journal_append(&self, rows: Vec<JournalRow>) -> Result<Appended, StoreError> {
        self.write(|answer| StateWrite::Append { rows, answer }).await
    }

    /// A journal's rows from a sequence number on, until there are `most_bytes`; at least one if there is one.
    pub async fn journal_read(&self, journal: JournalKey, from: u64, most_bytes: usize) -> Result<Vec<JournalRow>, StoreError> {
        self.read(|answer| StateRead::Journal { journal, from, most_bytes, answer }).await
    }

    /// All journals, or those of one subnet, in key order, each with the first sequence number that is missing.
    pub async fn journals(&self, subnet: Option<Subnet>) -> Result<Vec<(JournalKey, u64)>, StoreError> {
        self.read(|answer| StateRead::Journals { subnet, answer }).await
    }

    /// The rows of a subnet's journals from a place on, until there are `most_bytes` (at least one row), and where to go on if
    /// there is more.
    pub async fn journal_range(
        &self,
        subnet: Subnet,
        from: Option<(JournalKey, u64)>,
        most_bytes: usize,
    ) -> Result<state::Page, StoreError> {
        self.read(|answer| StateRead::Range { subnet, from, most_bytes, answer }).await
    }

    /// How many bytes the rows of each subnet's journals are, uncompressed.
    pub async fn journal_sizes(&self) -> Result<Growth, StoreError> {
        self.read(|answer| StateRead::Sizes { answer }).await
    }

    /// Drops the journals of a site's runs before this one; with `but_newest` except the newest of them that has its first row. Returns how much
    /// its subnet's journals shrank, as a negative number.
    pub async fn journal_drop_runs(&self, before: JournalKey, but_newest: bool) -> Result<Growth, StoreError> {
        self.write(|answer| StateWrite::DropRuns { before, but_newest, answer }).await
    }
}

/// What can be found out again: not synced, so a power cut may lose the last of it.
impl Store {
    /// Enters a visit into the seen set and answers questions about pages, in order. See [`SeenAnswer`]. It is answered from memory where that
    /// can be done, and then before what other futures, which were made earlier, have not handed to the store's thread yet: where a question
    /// depends on one of these, see [`Self::seen_in_turn`].
    pub async fn seen(&self, batch: &SeenBatch) -> Result<Vec<SeenAnswer>, StoreError> {
        match self.0.room.at_once(batch, &self.0.counters) {
            Some(AtOnce { answers, is_due }) => {
                if is_due {
                    self.settle();
                }
                Ok(answers)
            }
            None => self.seen_in_turn(batch).await,
        }
    }

    /// The same after everything that was asked of the store's thread before: by futures that were polled before this one.
    pub async fn seen_in_turn(&self, batch: &SeenBatch) -> Result<Vec<SeenAnswer>, StoreError> {
        self.cache(|answer| CacheAction::Seen { batch: batch.clone(), answer }).await
    }

    /// Has the store's thread write and sweep what was entered in the seen set on callers' threads, without waiting for it. If its queue is full,
    /// it has actions to do that begin with that.
    pub fn settle(&self) {
        let Some(cache) = &self.0.cache else { return };
        cache.try_put(|| {
            self.0.room.hand_over();
            CacheAction::Settle
        });
    }

    /// The links of a visited page to pages of its site; none of a page that is not known.
    pub async fn children(&self, site: SiteNumber, page: Fingerprint) -> Result<Vec<Fingerprint>, StoreError> {
        self.cache(|answer| CacheAction::Children { site: site.0, page, answer }).await
    }

    /// Keeps the URLs of pages that were cut, in case a shorter way to them is found.
    pub async fn cut_put(&self, site: SiteNumber, urls: Vec<(Fingerprint, String)>) -> Result<(), StoreError> {
        self.cache(|answer| CacheAction::CutPut { site: site.0, urls, answer }).await
    }

    /// Gives out the URLs of cut pages and forgets them; none for a page that has none.
    pub async fn cut_take(&self, site: SiteNumber, pages: Vec<Fingerprint>) -> Result<Vec<Option<String>>, StoreError> {
        self.cache(|answer| CacheAction::CutTake { site: site.0, pages, answer }).await
    }

    /// Enters pages with level and state as they are, over what was known: for filling the seen set from a journal.
    pub async fn site_load(&self, site: SiteNumber, rows: Vec<(Fingerprint, u8, PageState)>) -> Result<(), StoreError> {
        self.cache(|answer| CacheAction::SiteLoad { site: site.0, rows, answer }).await
    }

    /// Enters what the run before knew, for a site that is visited again.
    pub async fn previous_run_put(&self, site: SiteNumber, rows: Vec<PreviousRow>) -> Result<(), StoreError> {
        self.cache(|answer| CacheAction::PreviousRunPut { site: site.0, rows, answer }).await
    }

    /// A page as the run before left it, with its links by name, if it knew the page.
    pub async fn previous_version(&self, site: SiteNumber, page: Fingerprint) -> Result<Option<PreviousVersion>, StoreError> {
        self.cache(|answer| CacheAction::PreviousPage { site: site.0, page, answer }).await
    }

    /// Forgets what the run before knew.
    pub async fn previous_run_drop(&self, site: SiteNumber) -> Result<(), StoreError> {
        self.cache(|answer| CacheAction::PreviousRunDrop { site: site.0, answer }).await
    }

    /// Forgets all pages, children and cut URLs of a site.
    pub async fn site_drop(&self, site: SiteNumber) -> Result<(), StoreError> {
        self.cache(|answer| CacheAction::SitesDrop { sites: site.0..=site.0, answer }).await
    }

    /// Forgets the sites of previous processes: all whose number is below this one.
    pub async fn sites_drop_below(&self, site: SiteNumber) -> Result<(), StoreError> {
        let Some(last) = site.0.checked_sub(1) else { return Ok(()) };
        self.cache(|answer| CacheAction::SitesDrop { sites: 0..=last, answer }).await
    }

    /// Sets a row of the small table `name`.
    pub async fn cache_put(&self, name: &str, key: &[u8], value: Vec<u8>) -> Result<(), StoreError> {
        let key = table_key(&checked(name)?, key);
        self.cache(|answer| CacheAction::TablePut { key, value, answer }).await
    }

    /// A row of the small table `name`.
    pub async fn cache_get(&self, name: &str, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let key = table_key(&checked(name)?, key);
        self.cache(|answer| CacheAction::TableGet { key, answer }).await
    }

    /// Deletes a row of the small table `name`.
    pub async fn cache_delete(&self, name: &str, key: &[u8]) -> Result<(), StoreError> {
        let key = table_key(&checked(name)?, key);
        self.cache(|answer| CacheAction::TableDelete { key, answer }).await
    }

    /// All rows of the small table `name`, in key order.
    pub async fn cache_all(&self, name: &str) -> Result<Vec<(Vec<u8>, Vec<u8>)>, StoreError> {
        let prefix = table_key(&checked(name)?, &[]);
        self.cache(|answer| CacheAction::TableAll { prefix, answer }).await
    }
}

/// A name that may stand in a key.
fn checked(name: &str) -> Result<String, StoreError> {
    let fits = (1..=64).contains(&name.len()) && !name.contains('\0');
    if fits { Ok(name.to_owned()) } else { Err(StoreError::BadName(name.chars().take(80).collect())) }
}
