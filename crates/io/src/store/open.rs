//! Opens a state directory: whose it is, what format it has, then `state/`, which must be sound, then `cache/`, which need not.
//!
//! ```text
//! lock                 held by the process that uses the directory
//! format               the number of the format, written once `state/` exists
//! state/               what must not be lost
//! cache/               what can be found out again
//! cache.damaged-N/     a damaged cache that was moved aside, to find out why
//! ```

use super::{
    config::StoreConfig,
    counters::StoreCounters,
    database::{DAMAGE_MARK, Database, Plan},
    disk::{self, DirectoryLock},
    error::{OpenError, Trouble, trouble},
    log_files,
};
use rocksdb::Cache;
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The newest format of a state directory that this version reads, and the one it writes.
pub const FORMAT: u32 = 1;

/// The format of `cache/`. Any other is not read but rebuilt.
const CACHE_FORMAT: &[u8] = b"2";

/// How many damaged caches are kept to find out why; the oldest is removed when another is added.
const MAX_DAMAGED_KEPT: usize = 2;

/// What was found when a state directory was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenReport {
    /// The directory was new or empty.
    pub new: bool,
    /// The cache could not be used and starts empty.
    pub cache_rebuilt: Option<CacheRebuilt>,
}

/// Why a cache starts empty, and where the old one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheRebuilt {
    /// What was found.
    pub reason: String,
    /// Where the old one was moved.
    pub moved_to: PathBuf,
}

/// All that an open store consists of.
pub(super) struct Opened {
    pub(super) lock: DirectoryLock,
    pub(super) state: Database,
    pub(super) cache: Database,
    pub(super) report: OpenReport,
}

/// Opens or creates everything. On an error nothing stays open.
pub(super) fn open(dir: &Path, config: &StoreConfig, counters: &Arc<StoreCounters>) -> Result<Opened, OpenError> {
    // Before the lock, for a directory of a newer version is not touched at all.
    read_format(dir)?;
    fs::create_dir_all(dir).map_err(|error| io_error(dir, &error))?;
    let lock = disk::lock(dir).map_err(|error| io_error(&dir.join("lock"), &error))?;
    let lock = lock.ok_or_else(|| OpenError::InUse { dir: dir.to_path_buf() })?;
    // And again: the process that just went may have been an upgrade.
    let format = read_format(dir)?;
    let blocks = Cache::new_lru_cache(config.block_cache_bytes());
    let state = open_state(dir, format.is_none(), Plan::state(config, &blocks), counters)?;
    let mut report = OpenReport { new: format.is_none(), cache_rebuilt: None };
    if format.is_none() {
        // Only now: where the format stands, `state/` has to be whole; where it does not, nothing was ever acknowledged.
        let path = dir.join("format");
        disk::write_whole(&path, format!("{FORMAT}\n").as_bytes()).map_err(|error| io_error(&path, &error))?;
    }
    let cache = open_cache(dir, &Plan::cache(config, &blocks), counters, &mut report)?;
    Ok(Opened { lock, state, cache, report })
}

/// Whether this version can read the directory, as far as can be seen without opening it.
pub(super) fn check_format(dir: &Path) -> Result<(), OpenError> {
    read_format(dir).map(drop)
}

/// The format of a directory, none if it is new.
fn read_format(dir: &Path) -> Result<Option<u32>, OpenError> {
    let path = dir.join("format");
    let text = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(|error| io_error(&path, &error))?,
    };
    let number = std::str::from_utf8(&text).ok().and_then(|text| text.trim().parse::<u32>().ok()).filter(|number| *number > 0);
    match number {
        Some(found) if found > FORMAT => Err(OpenError::NewerFormat { dir: dir.to_path_buf(), found, ours: FORMAT }),
        Some(found) => Ok(Some(found)),
        None => Err(OpenError::Damaged { path, reason: "it does not hold the number of a format".to_owned() }),
    }
}

fn open_state(dir: &Path, create: bool, plan: Plan, counters: &Arc<StoreCounters>) -> Result<Database, OpenError> {
    let path = dir.join(plan.name);
    if let Ok(reason) = fs::read_to_string(path.join(DAMAGE_MARK)) {
        return Err(OpenError::Damaged { path, reason });
    }
    if let Some(reason) = log_files::damage(&path).map_err(|error| io_error(&path, &error))? {
        return Err(OpenError::Damaged { path, reason });
    }
    Database::open(plan, dir, create, counters).map_err(|error| database_error(&path, &error))
}

/// Opens the cache; one that cannot be trusted is moved aside and a new one begun.
fn open_cache(dir: &Path, plan: &Plan, counters: &Arc<StoreCounters>, report: &mut OpenReport) -> Result<Database, OpenError> {
    let path = dir.join(plan.name);
    let reason = match try_cache(dir, plan, counters) {
        Ok(database) => return Ok(database),
        Err(OpenError::Damaged { reason, .. }) => reason,
        Err(error) => return Err(error),
    };
    let moved_to = move_aside(dir, &path).map_err(|error| io_error(&path, &error))?;
    report.cache_rebuilt = Some(CacheRebuilt { reason, moved_to });
    try_cache(dir, plan, counters)
}

fn try_cache(dir: &Path, plan: &Plan, counters: &Arc<StoreCounters>) -> Result<Database, OpenError> {
    let path = dir.join(plan.name);
    let damaged = |reason: &str| OpenError::Damaged { path: path.clone(), reason: reason.to_owned() };
    if let Ok(reason) = fs::read_to_string(path.join(DAMAGE_MARK)) {
        return Err(damaged(&reason));
    }
    if let Some(reason) = log_files::damage(&path).map_err(|error| io_error(&path, &error))? {
        return Err(damaged(&reason));
    }
    // RocksDB would quietly begin anew where only CURRENT is missing, and trip over the old files later.
    if holds_tables(&path) && !path.join("CURRENT").exists() {
        return Err(damaged("the file CURRENT is missing"));
    }
    let mut cache = Database::open(plan.clone(), dir, true, counters).map_err(|error| database_error(&path, &error))?;
    let db = cache.db().map_err(|error| damaged(&error.to_string()))?;
    match db.get("format").map_err(|error| database_error(&path, &error))? {
        Some(format) if format == CACHE_FORMAT => {}
        Some(_) => return Err(damaged("another version wrote it")),
        None if db.latest_sequence_number() > 0 => return Err(damaged("it does not say which version wrote it")),
        None => {
            let mut batch = rocksdb::WriteBatch::default();
            batch.put("format", CACHE_FORMAT);
            cache.write(batch).map_err(|error| OpenError::Io { path: path.clone(), reason: error.to_string() })?;
        }
    }
    Ok(cache)
}

/// Whether anything that RocksDB wrote rows to lies in a directory.
fn holds_tables(path: &Path) -> bool {
    let Ok(entries) = fs::read_dir(path) else { return false };
    entries.flatten().any(|entry| entry.path().extension().is_some_and(|end| end == "sst" || end == "log"))
}

/// Moves a damaged cache to the next free `cache.damaged-N`, keeping only the newest few.
fn move_aside(dir: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut kept: Vec<(u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let number = path.file_name().and_then(|name| name.to_str()?.strip_prefix("cache.damaged-")?.parse().ok());
        kept.extend(number.map(|number| (number, path.clone())));
    }
    kept.sort();
    let next = kept.last().map_or(1, |(number, _)| number + 1);
    while kept.len() >= MAX_DAMAGED_KEPT {
        fs::remove_dir_all(kept.remove(0).1)?;
    }
    let moved_to = dir.join(format!("cache.damaged-{next}"));
    fs::rename(path, &moved_to)?;
    Ok(moved_to)
}

fn io_error(path: &Path, error: &io::Error) -> OpenError {
    let (path, reason) = (path.to_path_buf(), error.to_string());
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => OpenError::NoSpace { path, reason },
        _ => OpenError::Io { path, reason },
    }
}

fn database_error(path: &Path, error: &rocksdb::Error) -> OpenError {
    let (path, reason) = (path.to_path_buf(), error.to_string());
    match trouble(error) {
        Trouble::NoSpace => OpenError::NoSpace { path, reason },
        Trouble::Damaged => OpenError::Damaged { path, reason },
        Trouble::Locked => OpenError::InUse { dir: path },
        Trouble::Io => OpenError::Io { path, reason },
    }
}
