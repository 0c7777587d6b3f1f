//! How does the seen set remember a page? One byte under (site, fingerprint), and its children under the same key.
//!
//! A batch is answered with one look at all its pages and one write of what changed.

use super::{
    database::{Database, family},
    error::StoreError,
    journal::ReadFault,
    state::look,
};
use crate::model::{
    fingerprint::Fingerprint,
    seen::{DEEPEST_LEVEL, PageState, SeenAnswer, SeenBatch},
};
use rocksdb::{DB, WriteBatch};
use std::collections::BTreeMap;

/// A page as it is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Remembered {
    pub(super) level: u8,
    pub(super) state: PageState,
}

impl Remembered {
    /// Six bits of level, two of state.
    fn byte(self) -> u8 {
        let state = match self.state {
            PageState::Waiting => 0,
            PageState::Cut => 1,
            PageState::Visited => 2,
        };
        self.level.min(DEEPEST_LEVEL) << 2 | state
    }

    fn read(bytes: &[u8]) -> Result<Remembered, ReadFault> {
        let [byte] = bytes else { return Err(ReadFault::Nonsense("an entry of the seen set has the wrong length")) };
        let state = match byte & 3 {
            0 => PageState::Waiting,
            1 => PageState::Cut,
            2 => PageState::Visited,
            _ => return Err(ReadFault::Nonsense("an entry of the seen set is in no known state")),
        };
        Ok(Remembered { level: byte >> 2, state })
    }
}

/// The key of a page: big endian, so that a site is one range.
pub(super) fn key(site: u64, page: Fingerprint) -> [u8; 16] {
    (u128::from(site) << 64 | u128::from(page.0)).to_be_bytes()
}

/// Enters a visit and answers questions, in order, as if asked one after another.
pub(super) fn ask(database: &mut Database, batch: SeenBatch) -> Result<Vec<SeenAnswer>, StoreError> {
    database.make_writable()?;
    let pages: Vec<Fingerprint> =
        batch.visited.iter().map(|visit| visit.page).chain(batch.questions.iter().map(|(page, _)| *page)).collect();
    let mut known = look(database, |db| recall(db, batch.site, pages))?;
    let mut changed = BTreeMap::new();
    if let Some(visit) = &batch.visited {
        let level = visit.level.min(DEEPEST_LEVEL);
        let level = known.get(&visit.page).map_or(level, |before| before.level.min(level));
        let now = Remembered { level, state: PageState::Visited };
        known.insert(visit.page, now);
        changed.insert(visit.page, now);
    }
    let mut answers = Vec::with_capacity(batch.questions.len());
    for (page, level) in &batch.questions {
        let level = (*level).min(DEEPEST_LEVEL);
        let within = if level <= batch.depth { PageState::Waiting } else { PageState::Cut };
        let (answer, now) = match known.get(page) {
            Some(before) if before.level <= level => (SeenAnswer::Known, None),
            Some(before) => {
                let state = if before.state == PageState::Cut { within } else { before.state };
                (SeenAnswer::Shorter { was: before.state }, Some(Remembered { level, state }))
            }
            None => (SeenAnswer::New, Some(Remembered { level, state: within })),
        };
        if let Some(now) = now {
            known.insert(*page, now);
            changed.insert(*page, now);
        }
        answers.push(answer);
    }
    let mut write = WriteBatch::default();
    let db = database.db()?;
    for (page, now) in changed {
        write.put_cf(family(db, "seen"), key(batch.site, page), [now.byte()]);
    }
    if let Some(visit) = &batch.visited {
        let children: Vec<u8> = visit.children.iter().flat_map(|child| child.0.to_be_bytes()).collect();
        write.put_cf(family(db, "children"), key(batch.site, visit.page), children);
    }
    if !write.is_empty() {
        database.write(write)?;
    }
    Ok(answers)
}

/// What is known of these pages: one look for all of them, in key order as RocksDB likes it.
fn recall(db: &DB, site: u64, mut pages: Vec<Fingerprint>) -> Result<BTreeMap<Fingerprint, Remembered>, ReadFault> {
    pages.sort_unstable();
    pages.dedup();
    let keys: Vec<[u8; 16]> = pages.iter().map(|page| key(site, *page)).collect();
    let mut known = BTreeMap::new();
    for (page, found) in pages.into_iter().zip(db.batched_multi_get_cf(family(db, "seen"), &keys, true)) {
        if let Some(byte) = found? {
            known.insert(page, Remembered::read(&byte)?);
        }
    }
    Ok(known)
}

/// The children of a visited page; none of one that is not known.
pub(super) fn children(db: &DB, site: u64, page: Fingerprint) -> Result<Vec<Fingerprint>, ReadFault> {
    let Some(bytes) = db.get_pinned_cf(family(db, "children"), key(site, page))? else { return Ok(Vec::new()) };
    let (children, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(ReadFault::Nonsense("the children of a page have the wrong length"));
    }
    Ok(children.iter().map(|child| Fingerprint(u64::from_be_bytes(*child))).collect())
}

/// Enters pages as they are, over what was known of them: for filling the set from a journal.
pub(super) fn load(database: &mut Database, site: u64, rows: &[(Fingerprint, u8, PageState)]) -> Result<(), StoreError> {
    for part in rows.chunks(16 * 1024) {
        let mut write = WriteBatch::default();
        database.make_writable()?;
        let db = database.db()?;
        for (page, level, state) in part {
            write.put_cf(family(db, "seen"), key(site, *page), [Remembered { level: *level, state: *state }.byte()]);
        }
        database.write(write)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_and_state_fits_a_byte() {
        for level in 0..=DEEPEST_LEVEL {
            for state in [PageState::Waiting, PageState::Cut, PageState::Visited] {
                let page = Remembered { level, state };
                assert_eq!(Remembered::read(&[page.byte()]).unwrap(), page);
            }
        }
        assert!(Remembered::read(&[3]).is_err());
        assert!(Remembered::read(&[]).is_err());
    }
}
