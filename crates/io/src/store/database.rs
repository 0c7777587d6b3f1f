//! One RocksDB: its options, and what is done when the disk is full or the files are damaged.
//!
//! RocksDB keeps an error that occurred while writing: it refuses all writes from then on, even when there is space again. So a database
//! whose write found the disk full is closed and opened again, at first for reading only if even that needs space.

use super::columns::{Column, DEFAULT};
use super::{
    config::StoreConfig,
    counters::{StoreCounters, add},
    error::{StoreError, Trouble, trouble},
    stall,
};
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, DB, DBCompressionType, DBRecoveryMode, LogLevel, Options, ReadOptions, WriteBatch,
    WriteOptions,
};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

/// A file in a database's directory that says it was found damaged while in use, so that the next opening does not trust it.
pub(super) const DAMAGE_MARK: &str = "DAMAGED";

/// What distinguishes one database from the other.
#[derive(Clone)]
pub(super) struct Plan {
    /// `state` or `cache`: its directory and its name in messages.
    pub(super) name: &'static str,
    /// Its column families besides `default`.
    pub(super) columns: &'static [Column],
    /// Bytes for rows not yet in tables.
    pub(super) write_buffer_bytes: usize,
    /// Whether a write is on the disk before it counts as done.
    pub(super) synced: bool,
    /// Blocks read, shared by both.
    pub(super) blocks: Cache,
    /// How long a full disk is left alone.
    pub(super) retry_full_disk: Duration,
}

impl Plan {
    pub(super) fn state(config: &StoreConfig, blocks: &Cache) -> Plan {
        Plan {
            name: "state",
            columns: &Column::STATE,
            write_buffer_bytes: config.state_write_buffer_bytes(),
            synced: true,
            blocks: blocks.clone(),
            retry_full_disk: config.retry_full_disk,
        }
    }

    pub(super) fn cache(config: &StoreConfig, blocks: &Cache) -> Plan {
        Plan {
            name: "cache",
            columns: &Column::CACHE,
            write_buffer_bytes: config.cache_write_buffer_bytes(),
            synced: false,
            blocks: blocks.clone(),
            retry_full_disk: config.retry_full_disk,
        }
    }

    fn options(&self) -> Options {
        let mut options = Options::default();
        // A crash may tear the last record of the log; refusing to start for that would lose everything after any power cut. Damage before
        // the end, which this mode takes for the end, was looked for before (`log_files.rs`).
        options.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
        options.set_track_and_verify_wals_in_manifest(true);
        options.set_paranoid_checks(true);
        options.set_max_total_wal_size(64 << 20);
        options.set_db_write_buffer_size(self.write_buffer_bytes);
        options.set_max_open_files(256);
        options.set_max_background_jobs(2);
        options.set_log_level(LogLevel::Warn);
        options.set_max_log_file_size(1 << 20);
        options.set_keep_log_file_num(3);
        options.set_stats_dump_period_sec(0);
        // Callers' threads read what is in memory: none of them shall remove files, or wait for a lock under which a directory is listed.
        options.set_avoid_unnecessary_blocking_io(true);
        options.set_delete_obsolete_files_period_micros(u64::MAX);
        options.create_missing_column_families(true);
        self.tables(&mut options);
        options
    }

    /// What holds for each column family.
    fn tables(&self, options: &mut Options) {
        options.set_write_buffer_size(self.write_buffer_bytes);
        options.set_compression_type(DBCompressionType::Lz4);
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&self.blocks);
        // Index and filters live in the block cache too: memory stays within its limit however much is stored.
        blocks.set_cache_index_and_filter_blocks(true);
        blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
        // Most queries of the seen set are about new pages: 10 bits a key answer 99 % of those without reading a block.
        blocks.set_bloom_filter(10.0, false);
        blocks.set_optimize_filters_for_memory(true);
        options.set_block_based_table_factory(&blocks);
    }

    /// The options of the column family of the seen set. They are packed already, and come sorted, in sweeps: new files lie side by side
    /// and each is merged with the stretch of old ones that it replaces. So one level is enough, in files of the size of the new ones; a
    /// row is then found where it is searched first, and replaced rows are dropped soon.
    fn packed_rows(&self, options: &mut Options) {
        const FILE_BYTES: usize = 8 << 20;
        options.set_compression_type(DBCompressionType::None);
        options.set_write_buffer_size(self.write_buffer_bytes.min(FILE_BYTES));
        options.set_target_file_size_base(FILE_BYTES as u64);
        options.set_max_bytes_for_level_base(1 << 50);
        options.set_level_zero_file_num_compaction_trigger(2);
        // Writing waits rather than letting what is replaced pile up.
        options.set_level_zero_slowdown_writes_trigger(6);
        options.set_level_zero_stop_writes_trigger(10);
        // Nearly every row that is asked for is there: filters of the level where most lie would only be one more look.
        options.set_optimize_filters_for_hits(true);
        // Rows that wait to be written are few, and seldom the one asked for.
        options.set_memtable_prefix_bloom_ratio(0.02);
        options.set_memtable_whole_key_filtering(true);
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&self.blocks);
        // A block for each row: what else is read with it is of another site.
        blocks.set_block_size(1 << 10);
        blocks.set_bloom_filter(10.0, false);
        options.set_block_based_table_factory(&blocks);
    }

    fn descriptors(&self) -> Vec<ColumnFamilyDescriptor> {
        let describe = |column: &Column| {
            let mut options = Options::default();
            self.tables(&mut options);
            match column {
                Column::Seen => self.packed_rows(&mut options),
                // Fingerprints, which nothing makes shorter.
                Column::Recent | Column::Children => options.set_compression_type(DBCompressionType::None),
                Column::Claims | Column::Voting | Column::Rows | Column::Heads | Column::Cut | Column::Tables | Column::PreviousRun => {}
            }
            ColumnFamilyDescriptor::new(column.name(), options)
        };
        let mut default = Options::default();
        self.tables(&mut default);
        let default = ColumnFamilyDescriptor::new(DEFAULT, default);
        self.columns.iter().map(describe).chain([default]).collect()
    }

    fn open(&self, path: &Path, create: bool) -> Result<DB, rocksdb::Error> {
        stall::wait();
        let mut options = self.options();
        options.create_if_missing(create);
        DB::open_cf_descriptors(&options, path, self.descriptors())
    }

    fn open_for_reading(&self, path: &Path) -> Result<DB, rocksdb::Error> {
        stall::wait();
        DB::open_cf_descriptors_read_only(&self.options(), path, self.descriptors(), false)
    }
}

/// What a database is good for at the moment.
#[derive(Clone, Debug)]
enum Condition {
    Sound,
    /// The disk was full at this time; what it said.
    Full(Instant, String),
    /// Damaged; what was found.
    Damaged(String),
}

/// A RocksDB with its column families, as one thread uses it.
pub(super) struct Database {
    plan: Plan,
    path: PathBuf,
    counters: Arc<StoreCounters>,
    /// None while it could not even be opened for reading.
    db: Option<DB>,
    condition: Condition,
    /// How many times it was opened.
    openings: u64,
    /// How is written what has to survive, and what is known from elsewhere.
    logged: WriteOptions,
    unlogged: WriteOptions,
}

impl Database {
    /// Opens the database in `dir`; unless `create` is set it must be there already.
    pub(super) fn open(plan: Plan, dir: &Path, create: bool, counters: &Arc<StoreCounters>) -> Result<Database, rocksdb::Error> {
        let path = dir.join(plan.name);
        let db = plan.open(&path, create)?;
        let (mut logged, mut unlogged) = (WriteOptions::default(), WriteOptions::default());
        logged.set_sync(plan.synced);
        unlogged.disable_wal(true);
        let (db, condition, counters) = (Some(db), Condition::Sound, Arc::clone(counters));
        Ok(Database { plan, path, counters, db, condition, openings: 1, logged, unlogged })
    }

    /// The database, for reading. May wait for the disk, as all that is done with it may.
    pub(super) fn db(&self) -> Result<&DB, StoreError> {
        stall::wait();
        match (&self.condition, &self.db) {
            (Condition::Damaged(reason), _) => Err(self.damage(reason.clone())),
            (_, Some(db)) => Ok(db),
            (Condition::Full(_, reason), None) => Err(StoreError::NoSpace(reason.clone())),
            (Condition::Sound, None) => Err(StoreError::Closed),
        }
    }

    /// The database, for callers that must not wait for the disk: to fill batches for it, and to read with [`rocksdb::ReadTier::BlockCache`].
    /// None if anything is known to be wrong with it.
    pub(super) fn in_memory(&self) -> Option<&DB> {
        self.db.as_ref().filter(|_| matches!(self.condition, Condition::Sound))
    }

    /// How many times it was opened: after another time, what was written without a log may be gone.
    pub(super) fn openings(&self) -> u64 {
        self.openings
    }

    /// Makes sure that it can be written to, trying again after a full disk if it is time.
    pub(super) fn make_writable(&mut self) -> Result<(), StoreError> {
        if let Condition::Full(since, reason) = &self.condition {
            if since.elapsed() < self.plan.retry_full_disk {
                add(&self.counters.no_space, 1);
                return Err(StoreError::NoSpace(reason.clone()));
            }
            self.reopen()?;
        }
        self.db().map(|_| ())
    }

    /// Writes all of a batch or nothing; synced if this database is.
    pub(super) fn write(&mut self, batch: WriteBatch) -> Result<(), StoreError> {
        self.make_writable()?;
        let written = self.db()?.write_opt(batch, &self.logged);
        written.map_err(|error| self.fail(&error))
    }

    /// Writes a batch without a log: after a kill, what was written before some moment is there and the rest of this column family is not.
    pub(super) fn write_unlogged(&mut self, batch: WriteBatch) -> Result<(), StoreError> {
        self.make_writable()?;
        let written = self.db()?.write_opt(batch, &self.unlogged);
        written.map_err(|error| self.fail(&error))
    }

    /// Takes note of an error that RocksDB reported and says what it means.
    pub(super) fn fail(&mut self, error: &rocksdb::Error) -> StoreError {
        let reason = error.to_string();
        let meaning = match trouble(error) {
            Trouble::Damaged => return self.found_damaged(reason),
            Trouble::NoSpace => {
                add(&self.counters.no_space, 1);
                StoreError::NoSpace(reason)
            }
            Trouble::Locked | Trouble::Io => StoreError::Io(reason),
        };
        // At once: readers shall see only what a restart would show them too, and RocksDB would refuse every write from now on.
        let _ = self.reopen();
        meaning
    }

    /// Takes note that something stored does not make sense; from now on this database answers nothing.
    pub(super) fn found_damaged(&mut self, reason: String) -> StoreError {
        if !matches!(self.condition, Condition::Damaged(_)) {
            add(&self.counters.damaged, 1);
            // If this cannot be written, the next opening finds the damage for itself when it comes across it again.
            let _ = fs::write(self.path.join(DAMAGE_MARK), &reason);
        }
        self.condition = Condition::Damaged(reason.clone());
        self.damage(reason)
    }

    fn damage(&self, reason: String) -> StoreError {
        let path = self.path.clone();
        if self.plan.synced { StoreError::StateDamaged { path, reason } } else { StoreError::CacheDamaged { path, reason } }
    }

    /// Closes the database and opens it again; for reading only if the disk is still full.
    fn reopen(&mut self) -> Result<(), StoreError> {
        self.db = None;
        add(&self.counters.reopened, 1);
        match self.plan.open(&self.path, false) {
            Ok(db) => {
                self.db = Some(db);
                self.openings += 1;
                self.condition = Condition::Sound;
                Ok(())
            }
            Err(error) => {
                let reason = error.to_string();
                match trouble(&error) {
                    Trouble::Damaged => return Err(self.found_damaged(reason)),
                    Trouble::NoSpace | Trouble::Locked | Trouble::Io => {}
                }
                self.db = self.plan.open_for_reading(&self.path).ok();
                self.condition = Condition::Full(Instant::now(), reason.clone());
                Err(StoreError::NoSpace(reason))
            }
        }
    }

    /// Writes to tables what is only in the log, so that the next opening is quick. Not needed for safety.
    pub(super) fn flush(&self) {
        stall::wait();
        if let (Condition::Sound, Some(db)) = (&self.condition, &self.db) {
            for name in self.plan.columns.iter().map(|column| column.name()).chain([DEFAULT]) {
                if let Some(family) = db.cf_handle(name) {
                    let _ = db.flush_cf(family);
                }
            }
        }
    }
}

/// Options for reading the keys that begin with `prefix` and no others.
pub(super) fn within(prefix: &[u8]) -> ReadOptions {
    let mut options = ReadOptions::default();
    if let Some(end) = super::key::behind(prefix) {
        options.set_iterate_upper_bound(end);
    }
    options
}
