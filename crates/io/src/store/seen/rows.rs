//! Stores the rows of the seen set, and merges changes into them.
//!
//! A site has one row until that has a thousand pages, then 2, then 4, each for the codes that begin with the same 1, 2, ... bits. What has
//! changed is swept into the rows in their order: RocksDB then gets them sorted, and merges each stretch with the same stretch below only.
//!
//! ```text
//! 0 site                 how many bits have rows of their own, if any
//! 1 site depth bucket    a row
//! ```
//!
//! Rows are written without a log: what is in them is in the log of the generation that is being swept, until all of them are on the disk.

use super::super::columns::Column;
use super::{
    super::{
        database::{Database, within},
        error::StoreError,
        journal::ReadFault,
        state::look,
    },
    entry::{CODE_BITS, Entry},
    recent::Full,
    row::{self, Piece},
};
use rocksdb::{DB, Direction, IteratorMode, WriteBatch};
use std::{collections::HashMap, ops::RangeInclusive};

/// A row with more pages is split. Shorter rows would be read more quickly, one by one (640: -10 %), but there would be more of them to
/// rewrite (+35 % for each new page at 10^8) and to keep.
const MAX_IN_ROW: usize = 1024;

/// A split makes two of one.
const SPLIT_BITS: u32 = 1;

/// No site has more rows than for so many bits.
const MAX_DEPTH: u32 = 30;

/// Rows are written in batches of about so many bytes.
const BATCH_BYTES: usize = 256 << 10;

/// By how many bits the rows of each site are told apart; 0 for sites that are not in it.
// unordered: looked up by site only
pub(super) type Depths = HashMap<u64, u8>;

pub(super) fn key(site: u64, depth: u32, bucket: u64) -> [u8; 14] {
    let mut key = [1; 14];
    key[1..9].copy_from_slice(&site.to_be_bytes());
    key[9] = depth as u8;
    key[10..].copy_from_slice(&(bucket as u32).to_be_bytes());
    key
}

fn depth_key(site: u64) -> [u8; 9] {
    let mut key = [0; 9];
    key[1..].copy_from_slice(&site.to_be_bytes());
    key
}

/// In which row a code is.
pub(super) fn bucket(code: u64, depth: u32) -> u64 {
    code >> (CODE_BITS - depth)
}

pub(super) fn depth_of(depths: &Depths, site: u64) -> u32 {
    depths.get(&site).copied().map_or(0, u32::from)
}

/// Reads how deep each site is.
pub(super) fn depths(db: &DB) -> Result<Depths, ReadFault> {
    let mut depths = Depths::new();
    for item in db.iterator_cf_opt(Column::Seen.of(db), within(&[0]), IteratorMode::From(&[0], Direction::Forward)) {
        let (key, depth) = item?;
        let site = key.last_chunk::<8>().filter(|_| key.len() == 9);
        let (Some(site), [depth]) = (site, &*depth) else { return Err(ReadFault::Nonsense("a site of the seen set has no depth")) };
        depths.insert(u64::from_be_bytes(*site), *depth);
    }
    Ok(depths)
}

/// Forgets the rows of these sites, with whatever else is in the batch.
pub(super) fn forget(db: &DB, batch: &mut WriteBatch, depths: &mut Depths, sites: &RangeInclusive<u64>) {
    let (first, last) = (*sites.start(), *sites.end());
    if first == last && !depths.contains_key(&first) {
        batch.delete_cf(Column::Seen.of(db), key(first, 0, 0));
        return;
    }
    depths.retain(|site, _| !sites.contains(site));
    // The end of a range is not part of it; 2 begins no key.
    let behind = |behind: Option<u64>, key: fn(u64) -> Vec<u8>, end: u8| behind.map_or(vec![end], key);
    batch.delete_range_cf(Column::Seen.of(db), depth_key(first).to_vec(), behind(last.checked_add(1), |site| depth_key(site).to_vec(), 1));
    batch.delete_range_cf(Column::Seen.of(db), key(first, 0, 0).to_vec(), behind(last.checked_add(1), |site| key(site, 0, 0).to_vec(), 2));
}

/// A sweep of a full generation.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// The site at which it goes on.
    site: u64,
    /// How many of its pages are done.
    done: usize,
    /// A row while it is packed.
    packed: Vec<u8>,
}

impl Sweep {
    /// Sweeps at least `most` pages of `full`, if there are so many; whether all are done.
    pub(super) fn advance(&mut self, database: &mut Database, depths: &mut Depths, full: &Full, most: usize) -> Result<bool, StoreError> {
        let mut batch = WriteBatch::default();
        let mut swept = 0;
        while swept < most {
            let Some((site, pages)) = full.first_from(self.site) else {
                write(database, &mut batch)?;
                return Ok(true);
            };
            if site != self.site {
                (self.site, self.done) = (site, 0);
            }
            let Some(next) = pages.get(self.done) else {
                let Some(next) = site.checked_add(1) else {
                    write(database, &mut batch)?;
                    return Ok(true);
                };
                (self.site, self.done) = (next, 0);
                continue;
            };
            while self.done == 0 && pages.len() >> depth_of(depths, site) > MAX_IN_ROW && depth_of(depths, site) < MAX_DEPTH {
                write(database, &mut batch)?;
                self.split(database, depths, site)?;
            }
            let depth = depth_of(depths, site);
            let row = bucket(next.code(), depth);
            let pages = &pages[self.done..];
            let pages = &pages[..pages.partition_point(|page| bucket(page.code(), depth) == row)];
            let mut pieces = look(database, |db| match db.get_pinned_cf_opt(Column::Seen.of(db), key(site, depth, row), &uncached())? {
                Some(packed) => row::unpack(&packed, depth, row),
                None => Ok(Vec::new()),
            })?;
            enter(&mut pieces, pages, row::kept(depth));
            row::pack(&pieces, depth, &mut self.packed);
            batch.put_cf(Column::Seen.of(database.db()?), key(site, depth, row), &self.packed);
            swept += pages.len();
            self.done += pages.len();
            let crowded = pieces.iter().map(|piece| piece.entries.len()).sum::<usize>() > MAX_IN_ROW && depth < MAX_DEPTH;
            if crowded || batch.size_in_bytes() > BATCH_BYTES {
                write(database, &mut batch)?;
            }
            if crowded {
                self.split(database, depths, site)?;
            }
        }
        write(database, &mut batch)?;
        Ok(false)
    }

    /// Makes two rows of each row of a site. The old ones go when the new ones are complete: whatever part of the writes survives a kill,
    /// the first of them do, so that the site is whole.
    fn split(&mut self, database: &mut Database, depths: &mut Depths, site: u64) -> Result<(), StoreError> {
        let depth = depth_of(depths, site);
        let deeper = depth + SPLIT_BITS;
        let mut from = key(site, depth, 0).to_vec();
        let mut more = true;
        while more {
            let mut batch = WriteBatch::default();
            more = look(database, |db| {
                let seen = Column::Seen.of(db);
                for item in db.iterator_cf_opt(seen, within(&from[..10]), IteratorMode::From(&from, Direction::Forward)) {
                    let (key_found, packed) = item?;
                    if batch.size_in_bytes() > BATCH_BYTES {
                        from = key_found.to_vec();
                        return Ok(true);
                    }
                    let old = key_found.last_chunk::<4>().map_or(0, |bucket| u64::from(u32::from_be_bytes(*bucket)));
                    let pieces = row::unpack(&packed, depth, old)?;
                    for new in old << SPLIT_BITS..(old + 1) << SPLIT_BITS {
                        let part = part(&pieces, deeper, new);
                        if !part.is_empty() {
                            row::pack(&part, deeper, &mut self.packed);
                            batch.put_cf(seen, key(site, deeper, new), &self.packed);
                        }
                    }
                }
                Ok(false)
            })?;
            write(database, &mut batch)?;
        }
        let mut batch = WriteBatch::default();
        let seen = Column::Seen.of(database.db()?);
        batch.put_cf(seen, depth_key(site), [deeper as u8]);
        if depth == 0 {
            batch.delete_cf(seen, key(site, 0, 0));
        } else {
            batch.delete_range_cf(seen, key(site, depth, 0), key(site, depth + 1, 0));
        }
        write(database, &mut batch)?;
        depths.insert(site, deeper as u8);
        Ok(())
    }
}

pub(super) fn uncached() -> rocksdb::ReadOptions {
    let mut options = rocksdb::ReadOptions::default();
    options.fill_cache(false);
    options
}

fn write(database: &mut Database, batch: &mut WriteBatch) -> Result<(), StoreError> {
    if batch.is_empty() { Ok(()) } else { database.write_unlogged(std::mem::take(batch)) }
}

/// Those of a row's pages that are in one of the rows it is split into.
fn part(pieces: &[Piece], depth: u32, row: u64) -> Vec<Piece> {
    let of = |piece: &Piece| {
        let from = piece.entries.partition_point(|entry| bucket(entry.code(), depth) < row);
        let len = piece.entries[from..].partition_point(|entry| bucket(entry.code(), depth) == row);
        Piece { bits: piece.bits, entries: piece.entries[from..from + len].to_vec() }
    };
    pieces.iter().map(of).filter(|piece| !piece.entries.is_empty()).collect()
}

/// Enters pages, in order, over what was known of them; new ones are kept with so many bits.
pub(super) fn enter(pieces: &mut Vec<Piece>, pages: &[Entry], bits: u32) {
    let main = pieces.iter().position(|piece| piece.bits == bits).unwrap_or_else(|| {
        pieces.insert(0, Piece { bits, entries: Vec::new() });
        0
    });
    let old = std::mem::take(&mut pieces[main].entries);
    let mut merged: Vec<Entry> = Vec::with_capacity(old.len() + pages.len());
    let mut old = old.into_iter().peekable();
    for page in pages {
        let in_other = pieces.iter_mut().filter(|piece| piece.bits != bits).find_map(|piece| {
            let place = piece.entries.binary_search_by_key(&page.cut_to(piece.bits).code(), |entry| entry.code()).ok()?;
            Some(&mut piece.entries[place])
        });
        if let Some(entry) = in_other {
            *entry = Entry::new(entry.code(), page.colour());
            continue;
        }
        let page = page.cut_to(bits);
        while let Some(before) = old.next_if(|entry| entry.code() <= page.code()) {
            merged.push(before);
        }
        match merged.last_mut() {
            Some(last) if last.code() == page.code() => *last = page,
            _ => merged.push(page),
        }
    }
    merged.extend(old);
    pieces[main].entries = merged;
    pieces.retain(|piece| !piece.entries.is_empty());
}
