//! The seen set, which remembers 10^8 pages.
//!
//! Pages are packed in rows of up to a thousand, a few bytes each; what changed lately is in memory and in a log.
//!
//! A question is answered at once: by what changed lately, else by the one row that the page would be in. Rows are found again from the
//! log; see [`rows`] and [`recent`].
//!
//! The store's thread writes an answer to the log before it gives it. A caller's thread must not wait for the disk: what it answers from
//! memory ([`SeenSet::ask_in_memory`]) is gathered for the log, and the store's thread writes that before it does anything else with the
//! set. So the log holds all answers up to some moment, and a kill loses about [`MAX_UNWRITTEN`] bytes of it at most. That costs nothing:
//! after a start sites have new numbers, and the set is filled again from the journals.

mod alone;
mod asked;
mod bits;
mod entry;
mod recent;
mod row;
mod rows;
#[cfg(test)]
mod tests;

use super::columns::Column;
use super::{database::Database, error::StoreError, journal::ReadFault, state::look};
pub use alone::{LoneSeenSet, SeenSizes};
use asked::{Asked, Page};
use entry::{Entry, Remembered};
use nearcrawl_model::{
    fingerprint::Fingerprint,
    seen::{PageState, SeenAnswer, SeenBatch},
};
use recent::Recent;
use rocksdb::{DB, FlushOptions, IteratorMode, ReadOptions, ReadTier, WriteBatch};
use rows::{Depths, Sweep};
use std::ops::RangeInclusive;

/// A generation has at least so many pages before it is swept.
const MIN_GENERATION: usize = 32 << 10;

/// It may grow to this part of all pages: then a sweep brings each row about a dozen new ones.
const PART_OF_ALL: usize = 32;

/// About as many bytes as a page takes in the rows.
const PAGE_BYTES: usize = 5;

/// A page of a generation takes at most so many bytes: 18 in a hash table that has just grown, while one of the generation before takes 8, sorted.
const RECENT_BYTES: usize = 26;

/// For each page entered so many of the generation before are swept: that is done when this one is full.
const SWEPT_FOR_EACH: usize = 2;

/// And not fewer at a time, for a row is rewritten for all of its changes at once.
const MIN_SHARE: usize = 256;

/// More rows than this are not looked at together.
const MAX_ROWS_AT_ONCE: usize = 64;

/// More questions than this are not answered on the caller's thread.
const MAX_AT_ONCE: usize = 1_000;

/// When callers' threads have gathered so many bytes for the log, the store's thread is to write them.
const WRITE_AT: usize = 64 << 10;

/// With so many they enter no more.
const MAX_UNWRITTEN: usize = 2 * WRITE_AT;

/// The seen set, of which the rows and the log are in a [`Database`].
pub(super) struct SeenSet {
    recent: Recent,
    depths: Depths,
    sweep: Sweep,
    /// How many pages are still to be swept for what was entered.
    owed: usize,
    /// All is swept, and was told to go to the disk.
    flushing: bool,
    /// When to turn to the next generation.
    limit: usize,
    /// The most that the limit may be.
    most: usize,
    /// Most rows fit into RocksDB's cache of blocks. If they do not, each would only drive another out: the system's own cache has them all the same.
    fits_cache: bool,
    /// How rows are read by the store's thread: through that cache, and past it.
    reading: (ReadOptions, ReadOptions),
    /// How they are read by callers' threads: if they are in memory.
    in_memory: ReadOptions,
    /// What callers' threads entered and the log does not have yet.
    unwritten: WriteBatch,
    /// Which opening of the database this was read from.
    opening: u64,
}

impl SeenSet {
    /// An empty one that reads itself from the database at the first question. May take about `memory_bytes` for what changed lately.
    pub(super) fn new(memory_bytes: usize) -> SeenSet {
        let most = (memory_bytes / RECENT_BYTES).max(1024);
        let limit = MIN_GENERATION.min(most);
        let mut in_memory = ReadOptions::default();
        in_memory.set_read_tier(ReadTier::BlockCache);
        SeenSet {
            recent: Recent::default(),
            depths: Depths::new(),
            sweep: Sweep::default(),
            owed: 0,
            flushing: false,
            fits_cache: true,
            reading: (ReadOptions::default(), rows::uncached()),
            in_memory,
            unwritten: WriteBatch::default(),
            limit,
            most,
            opening: 0,
        }
    }

    /// Enters a visit and answers questions, in order, as if asked one after another. May wait for the disk.
    pub(super) fn ask(&mut self, database: &mut Database, batch: &SeenBatch) -> Result<Vec<SeenAnswer>, StoreError> {
        self.make_ready(database)?;
        let mut asked = Asked::of(batch);
        let reading = if self.fits_cache { &self.reading.0 } else { &self.reading.1 };
        look(database, |db| self.recall(db, batch.site.0, &mut asked, reading))?;
        let answers = asked.decide(batch);
        let mut write = WriteBatch::default();
        put_children(database.db()?, &mut write, batch);
        self.enter(database, batch.site.0, asked.changed(), write)?;
        Ok(answers)
    }

    /// The same without waiting for the disk, in some microseconds: none, and nothing is entered, if the answer is not in memory, or if too
    /// much of what was entered so is to be written and swept.
    pub(super) fn ask_in_memory(&mut self, database: &Database, batch: &SeenBatch) -> Option<Vec<SeenAnswer>> {
        let small = batch.questions.len() <= MAX_AT_ONCE && self.unwritten.size_in_bytes() < MAX_UNWRITTEN;
        let swept = self.recent.full.is_empty() || self.owed < MIN_SHARE;
        let room = self.recent.filling.len() + batch.questions.len() + 1 < self.limit;
        if !(small && swept && room && self.fits_cache && self.opening == database.openings()) {
            return None;
        }
        let db = database.in_memory()?;
        let mut asked = Asked::of(batch);
        // What is wrong with it, the store's thread will find, too.
        self.recall(db, batch.site.0, &mut asked, &self.in_memory).ok()?;
        let answers = asked.decide(batch);
        put_children(db, &mut self.unwritten, batch);
        let entries = asked.changed();
        if !entries.is_empty() {
            self.unwritten.put_cf(Column::Recent.of(db), self.recent.next_key(), recent::entered(batch.site.0, &entries));
            self.remember(batch.site.0, entries);
        }
        Some(answers)
    }

    /// Whether the store's thread is to write and sweep what callers' threads entered.
    pub(super) fn is_due(&self) -> bool {
        self.unwritten.size_in_bytes() >= WRITE_AT || self.owed >= MIN_SHARE && !self.recent.full.is_empty()
    }

    /// Enters pages as they are, over what was known of them: for filling the set from a journal.
    pub(super) fn load(&mut self, database: &mut Database, site: u64, rows: &[(Fingerprint, u8, PageState)]) -> Result<(), StoreError> {
        for part in rows.chunks(16 * 1024) {
            self.make_ready(database)?;
            let entry = |(page, level, state): &(Fingerprint, u8, PageState)| {
                Entry::new(entry::code(site, *page), Remembered { level: *level, state: *state }.byte())
            };
            self.enter(database, site, part.iter().map(entry).collect(), WriteBatch::default())?;
        }
        Ok(())
    }

    /// Forgets these sites, together with what else is in the batch.
    pub(super) fn forget(&mut self, database: &mut Database, sites: &RangeInclusive<u64>, mut batch: WriteBatch) -> Result<(), StoreError> {
        self.make_ready(database)?;
        let db = database.db()?;
        rows::forget(db, &mut batch, &mut self.depths, sites);
        batch.put_cf(Column::Recent.of(db), self.recent.next_key(), recent::forgotten(sites));
        database.write(batch)?;
        self.recent.forget(sites);
        Ok(())
    }

    /// Has the log hold all that was entered, the memory what the log holds, and sweeps what is to be swept. The store's thread does this before
    /// each question, so that what fails here has changed no answer, and after [`Self::is_due`].
    pub(super) fn make_ready(&mut self, database: &mut Database) -> Result<(), StoreError> {
        self.write_log(database)?;
        if self.opening != database.openings() {
            (self.depths, self.recent) = look(database, |db| {
                let lines = db.iterator_cf(Column::Recent.of(db), IteratorMode::Start);
                Ok((rows::depths(db)?, Recent::read(lines)?))
            })?;
            (self.sweep, self.flushing) = (Sweep::default(), false);
            self.opening = database.openings();
            self.adapt(database)?;
        }
        self.sweep_due(database)
    }

    /// Writes to the log what callers' threads entered.
    pub(super) fn write_log(&mut self, database: &mut Database) -> Result<(), StoreError> {
        database.make_writable()?;
        if !self.unwritten.is_empty() {
            // A copy: it is not written if the disk is full, and tried again.
            database.write(WriteBatch::from_data(self.unwritten.data()))?;
            self.unwritten.clear();
        }
        Ok(())
    }

    /// Looks up what is known of each page asked for: lately, or in its row.
    fn recall(&self, db: &DB, site: u64, asked: &mut Asked, reading: &ReadOptions) -> Result<(), ReadFault> {
        let depth = rows::depth_of(&self.depths, site);
        let mut rest: Vec<&mut Page> = Vec::with_capacity(asked.pages.len());
        for page in &mut asked.pages {
            page.colour = self.recent.find(site, page.code);
            if page.colour.is_none() {
                rest.push(page);
            }
        }
        let key = |page: &Page| rows::key(site, depth, rows::bucket(page.code, depth));
        let seen = Column::Seen.of(db);
        if let [page] = &mut *rest {
            let packed = db.get_pinned_cf_opt(seen, key(page), reading)?;
            page.colour = packed.and_then(|packed| row::find(&packed, depth, page.code).transpose()).transpose()?;
            return Ok(());
        }
        // In the order of rows, for the pages are in the order of codes.
        let mut rows: Vec<&mut [&mut Page]> =
            rest.chunk_by_mut(|a, b| rows::bucket(a.code, depth) == rows::bucket(b.code, depth)).collect();
        for rows in rows.chunks_mut(MAX_ROWS_AT_ONCE) {
            let keys: Vec<_> = rows.iter().map(|pages| key(pages[0])).collect();
            let found = db.batched_multi_get_cf_opt(seen, &keys, true, reading);
            for (pages, packed) in rows.iter_mut().zip(found) {
                let Some(packed) = packed? else { continue };
                for page in &mut **pages {
                    page.colour = row::find(&packed, depth, page.code)?;
                }
            }
        }
        Ok(())
    }

    /// Writes changes to the log, then enters them in memory.
    fn enter(&mut self, database: &mut Database, site: u64, entries: Vec<Entry>, mut batch: WriteBatch) -> Result<(), StoreError> {
        if !entries.is_empty() {
            batch.put_cf(Column::Recent.of(database.db()?), self.recent.next_key(), recent::entered(site, &entries));
        }
        if !batch.is_empty() {
            database.write(batch)?;
            self.remember(site, entries);
        }
        Ok(())
    }

    fn remember(&mut self, site: u64, entries: Vec<Entry>) {
        self.owed += entries.len() * SWEPT_FOR_EACH;
        self.recent.filling.enter(site, entries.into_iter());
    }

    /// Sweeps so many older changes that the generation before is swept when this one is full, and then turns to the next one.
    fn sweep_due(&mut self, database: &mut Database) -> Result<(), StoreError> {
        let full = self.recent.filling.len() >= self.limit;
        if (full || self.owed >= MIN_SHARE) && !self.recent.full.is_empty() {
            let share = if full { usize::MAX } else { self.owed };
            let done = self.sweep.advance(database, &mut self.depths, &self.recent.full, share)?;
            self.owed = 0;
            if done {
                self.swept(database, full)?;
            }
        }
        if full {
            self.recent.turn();
            self.adapt(database)?;
        }
        Ok(())
    }

    /// All that is full is in the rows: once they are on the disk, its log is not needed. Waits for the disk only if told to.
    fn swept(&mut self, database: &mut Database, wait: bool) -> Result<(), StoreError> {
        let db = database.db()?;
        let rows = Column::Seen.of(db);
        let (from, to) = self.recent.full_log();
        let mut flush = FlushOptions::default();
        flush.set_wait(wait);
        let flushed = if wait || !self.flushing { db.flush_cf_opt(rows, &flush) } else { Ok(()) };
        self.flushing = true;
        // Nothing is written to the rows between sweeps: what waits to be flushed are theirs.
        let pending = db.property_int_value_cf(rows, "rocksdb.num-immutable-mem-table");
        let pending = flushed.and(pending).map_err(|error| database.fail(&error))?;
        if pending != Some(0) {
            return Ok(());
        }
        let db = database.db()?;
        db.delete_file_in_range_cf(Column::Recent.of(db), from, to).map_err(|error| database.fail(&error))?;
        let mut batch = WriteBatch::default();
        batch.delete_range_cf(Column::Recent.of(database.db()?), from, to);
        database.write(batch)?;
        self.recent.full = recent::Full::default();
        (self.sweep, self.flushing) = (Sweep::default(), false);
        Ok(())
    }

    /// Adapts what depends on how large the set is.
    fn adapt(&mut self, database: &mut Database) -> Result<(), StoreError> {
        let bytes = look(database, |db| Ok(db.property_int_value_cf(Column::Seen.of(db), "rocksdb.estimate-live-data-size")?))?;
        let bytes = bytes.unwrap_or(0) as usize;
        self.limit = (bytes / PAGE_BYTES / PART_OF_ALL).max(MIN_GENERATION).min(self.most);
        self.fits_cache = bytes < self.most * RECENT_BYTES / 2;
        Ok(())
    }
}

/// Puts the children of the visited page of a batch, if there is one, into a write.
fn put_children(db: &DB, write: &mut WriteBatch, batch: &SeenBatch) {
    let Some(visit) = &batch.visited else { return };
    let children: Vec<u8> = visit.children.iter().flat_map(|child| child.0.to_be_bytes()).collect();
    write.put_cf(Column::Children.of(db), key(batch.site.0, visit.page), children);
}

/// The key of what else belongs to a page: big endian, so that a site is one range.
pub(super) fn key(site: u64, page: Fingerprint) -> [u8; 16] {
    (u128::from(site) << 64 | u128::from(page.0)).to_be_bytes()
}

/// The children of a visited page; none of one that is not known.
pub(super) fn children(db: &DB, site: u64, page: Fingerprint) -> Result<Vec<Fingerprint>, ReadFault> {
    let Some(bytes) = db.get_pinned_cf(Column::Children.of(db), key(site, page))? else { return Ok(Vec::new()) };
    let (children, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(ReadFault::Nonsense("the children of a page have the wrong length"));
    }
    Ok(children.iter().map(|child| Fingerprint(u64::from_be_bytes(*child))).collect())
}
