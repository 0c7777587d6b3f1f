//! The seen set without the store's thread around it, for measurements.

use super::super::columns::Column;
use super::{
    super::{
        config::StoreConfig,
        counters::StoreCounters,
        database::{Database, Plan},
        error::{OpenError, StoreError},
    },
    SeenSet,
};
use nearcrawl_model::{
    fingerprint::Fingerprint,
    seen::{PageState, SeenAnswer, SeenBatch},
};
use rocksdb::Cache;
use std::{path::Path, sync::Arc};

/// A seen set in a directory of its own.
pub struct LoneSeenSet {
    database: Database,
    set: SeenSet,
}

/// What a seen set takes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenSizes {
    /// Files of packed rows.
    pub rows: u64,
    /// Files of the log of what changed lately.
    pub log: u64,
    /// Memory of RocksDB: rows not yet in files, blocks, tables' readers.
    pub database_memory: u64,
    /// Pages that changed lately, and are in memory.
    pub recent: u64,
}

impl LoneSeenSet {
    /// Opens or creates it in `dir`, with the same share of `config.memory_bytes` as a store gives it.
    ///
    /// # Errors
    /// What RocksDB says.
    pub fn open(dir: &Path, config: &StoreConfig) -> Result<LoneSeenSet, OpenError> {
        let plan = Plan::cache(config, &Cache::new_hyper_clock_cache(config.block_cache_bytes(), 0));
        let failed = |error: rocksdb::Error| OpenError::Io { path: dir.to_path_buf(), reason: error.to_string() };
        let database = Database::open(plan, dir, true, &Arc::new(StoreCounters::default())).map_err(failed)?;
        Ok(LoneSeenSet { database, set: SeenSet::new(config.recent_bytes()) })
    }

    /// Records a batch and answers its questions, as [`super::super::Store::seen`] does.
    ///
    /// # Errors
    /// As there.
    pub fn ask(&mut self, batch: &SeenBatch) -> Result<Vec<SeenAnswer>, StoreError> {
        self.set.ask(&mut self.database, batch)
    }

    /// Enters known pages of a site, as [`super::super::Store::site_load`] does.
    ///
    /// # Errors
    /// As there.
    pub fn load(&mut self, site: u64, rows: &[(Fingerprint, u8, PageState)]) -> Result<(), StoreError> {
        self.set.load(&mut self.database, site, rows)
    }

    /// What it takes now.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn sizes(&self) -> Result<SeenSizes, StoreError> {
        let db = self.database.db()?;
        let of = |column: Column, property: &str| db.property_int_value_cf(column.of(db), property).ok().flatten().unwrap_or(0);
        let all = |property: &str| -> u64 {
            [Column::Seen, Column::Recent, Column::Children, Column::Cut, Column::Tables].map(|column| of(column, property)).iter().sum()
        };
        let memory = all("rocksdb.cur-size-all-mem-tables")
            + all("rocksdb.estimate-table-readers-mem")
            + of(Column::Seen, "rocksdb.block-cache-usage");
        Ok(SeenSizes {
            rows: of(Column::Seen, "rocksdb.total-sst-files-size"),
            log: of(Column::Recent, "rocksdb.total-sst-files-size"),
            database_memory: memory,
            recent: self.set.recent.len() as u64,
        })
    }
}
