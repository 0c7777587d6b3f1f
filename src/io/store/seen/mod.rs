//! How does the seen set remember 10^8 pages? Packed in rows of up to a thousand, a few bytes each; what changed lately in memory and in a log.
//!
//! A question is answered at once: by what changed lately, else by the one row that the page would be in. An answer is in the log before it is
//! given: it survives a kill. Rows are found again from the log; see [`rows`] and [`recent`].

mod alone;
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
use entry::{Entry, Remembered};
use nearcrawl_model::{
    fingerprint::Fingerprint,
    seen::{DEEPEST_LEVEL, PageState, SeenAnswer, SeenBatch},
};
use recent::Recent;
use rocksdb::{DB, FlushOptions, IteratorMode, ReadOptions, WriteBatch};
use rows::{Depths, Sweep};
use std::{ops::RangeInclusive, time::Instant};

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

/// More questions than this are not answered on the spot.
const MAX_AT_ONCE: usize = 1_000;

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
    /// How rows are read: through that cache, and past it.
    reading: (ReadOptions, ReadOptions),
    /// Which opening of the database this was read from.
    opening: u64,
}

impl SeenSet {
    /// An empty one that reads itself from the database at the first question. May take about `memory_bytes` for what changed lately.
    pub(super) fn new(memory_bytes: usize) -> SeenSet {
        let most = (memory_bytes / RECENT_BYTES).max(1024);
        let limit = MIN_GENERATION.min(most);
        SeenSet {
            recent: Recent::default(),
            depths: Depths::new(),
            sweep: Sweep::default(),
            owed: 0,
            flushing: false,
            fits_cache: true,
            reading: (ReadOptions::default(), rows::uncached()),
            limit,
            most,
            opening: 0,
        }
    }

    /// Enters a visit and answers questions, in order, as if asked one after another.
    pub(super) fn ask(&mut self, database: &mut Database, batch: &SeenBatch) -> Result<Vec<SeenAnswer>, StoreError> {
        self.make_ready(database)?;
        let pages = batch.visited.iter().map(|visit| visit.page).chain(batch.questions.iter().map(|(page, _)| *page));
        let mut asked = Asked::new(batch.site.0, pages);
        self.recall(database, batch.site.0, &mut asked)?;
        if let Some(visit) = &batch.visited {
            let known = asked.known(0);
            let level = visit.level.min(DEEPEST_LEVEL);
            let level = known.map_or(level, |before| before.level.min(level));
            asked.change(0, Remembered { level, state: PageState::Visited });
        }
        let first = usize::from(batch.visited.is_some());
        let mut answers = Vec::with_capacity(batch.questions.len());
        for (number, (_, level)) in (first..).zip(&batch.questions) {
            let level = (*level).min(DEEPEST_LEVEL);
            let within = if level <= batch.depth { PageState::Waiting } else { PageState::Cut };
            answers.push(match asked.known(number) {
                Some(before) if before.level <= level => SeenAnswer::Known,
                Some(before) => {
                    let state = if before.state == PageState::Cut { within } else { before.state };
                    asked.change(number, Remembered { level, state });
                    SeenAnswer::Shorter { was: before.state }
                }
                None => {
                    asked.change(number, Remembered { level, state: within });
                    SeenAnswer::New
                }
            });
        }
        let mut write = WriteBatch::default();
        if let Some(visit) = &batch.visited {
            let children: Vec<u8> = visit.children.iter().flat_map(|child| child.0.to_be_bytes()).collect();
            write.put_cf(Column::Children.of(database.db()?), key(batch.site.0, visit.page), children);
        }
        self.enter(database, batch.site.0, asked.changed(), write)?;
        Ok(answers)
    }

    /// Whether a question can be answered without sweeping, reading rows from the disk, opening the database or waiting for it to take a
    /// write: in some microseconds.
    pub(super) fn is_quick(&self, database: &mut Database, batch: &SeenBatch, now: Instant) -> bool {
        let small = batch.questions.len() <= MAX_AT_ONCE;
        let swept = self.recent.full.is_empty() || self.owed < MIN_SHARE;
        let room = self.recent.filling.len() + batch.questions.len() + 1 < self.limit;
        small && swept && room && self.fits_cache && self.opening == database.openings() && database.writes_at_once(now)
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

    /// Reads what is remembered from the database, if that was opened anew.
    fn make_ready(&mut self, database: &mut Database) -> Result<(), StoreError> {
        database.make_writable()?;
        if self.opening != database.openings() {
            (self.depths, self.recent) = look(database, |db| {
                let lines = db.iterator_cf(Column::Recent.of(db), IteratorMode::Start);
                Ok((rows::depths(db)?, Recent::read(lines)?))
            })?;
            (self.sweep, self.flushing) = (Sweep::default(), false);
            self.opening = database.openings();
            self.adapt(database)?;
        }
        Ok(())
    }

    /// Looks up what is known of each page asked for: lately, or in its row.
    fn recall(&self, database: &mut Database, site: u64, asked: &mut Asked) -> Result<(), StoreError> {
        let depth = rows::depth_of(&self.depths, site);
        let mut rest: Vec<&mut Page> = Vec::with_capacity(asked.pages.len());
        for page in &mut asked.pages {
            page.colour = self.recent.find(site, page.code);
            if page.colour.is_none() {
                rest.push(page);
            }
        }
        let key = |page: &Page| rows::key(site, depth, rows::bucket(page.code, depth));
        let reading = if self.fits_cache { &self.reading.0 } else { &self.reading.1 };
        look(database, |db| {
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
        })
    }

    /// Writes changes to the log, and sweeps so many older ones that the generation before is swept when this one is full.
    fn enter(&mut self, database: &mut Database, site: u64, entries: Vec<Entry>, mut batch: WriteBatch) -> Result<(), StoreError> {
        if !entries.is_empty() {
            batch.put_cf(Column::Recent.of(database.db()?), self.recent.next_key(), recent::entered(site, &entries));
        }
        if batch.is_empty() {
            return Ok(());
        }
        database.write(batch)?;
        let pages = entries.len();
        self.recent.filling.enter(site, entries.into_iter());
        self.owed += pages * SWEPT_FOR_EACH;
        let full = self.recent.filling.len() >= self.limit;
        if (full || self.owed >= MIN_SHARE) && !self.recent.full.is_empty() {
            let share = if full { usize::MAX } else { std::mem::take(&mut self.owed) };
            if self.sweep.advance(database, &mut self.depths, &self.recent.full, share)? {
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

/// The pages of a batch, each once, in the order of their codes.
struct Asked {
    pages: Vec<Page>,
    /// For each question, which page it is about.
    places: Vec<u32>,
}

struct Page {
    code: u64,
    colour: Option<u8>,
    changed: bool,
}

impl Asked {
    fn new(site: u64, pages: impl Iterator<Item = Fingerprint>) -> Asked {
        let mut order: Vec<(u64, u32)> = pages.map(|page| entry::code(site, page)).zip(0..).collect();
        order.sort_unstable();
        let mut places = vec![0; order.len()];
        let mut pages: Vec<Page> = Vec::with_capacity(order.len());
        for (code, number) in order {
            if pages.last().is_none_or(|last| last.code != code) {
                pages.push(Page { code, colour: None, changed: false });
            }
            places[number as usize] = pages.len() as u32 - 1;
        }
        Asked { pages, places }
    }

    fn known(&self, number: usize) -> Option<Remembered> {
        self.pages[self.places[number] as usize].colour.map(Remembered::of)
    }

    fn change(&mut self, number: usize, now: Remembered) {
        let page = &mut self.pages[self.places[number] as usize];
        (page.colour, page.changed) = (Some(now.byte()), true);
    }

    fn changed(&self) -> Vec<Entry> {
        self.pages.iter().filter(|page| page.changed).filter_map(|page| Some(Entry::new(page.code, page.colour?))).collect()
    }
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
