//! Journals in `state/`: rows under their keys, and a head for each journal.
//!
//! The head says how far the journal goes without a gap and how many bytes its rows are, so that nobody has to walk them to know. Row and
//! head change in the same batch.

use super::columns::Column;
use super::{database::within, error::StoreError, key};
use nearcrawl_model::{
    journal::{JournalKey, JournalRow},
    subnet::Subnet,
};
use rocksdb::{DB, Direction, IteratorMode, WriteBatch};
use std::collections::{BTreeMap, BTreeSet};

/// Rows of a subnet's journals, and where to go on, if there is more.
type Piece = (Vec<JournalRow>, Option<(JournalKey, u64)>);

/// A read that went wrong: RocksDB said so, or what it gave makes no sense.
#[derive(Debug)]
pub(super) enum ReadFault {
    Database(rocksdb::Error),
    Nonsense(&'static str),
}

impl From<rocksdb::Error> for ReadFault {
    fn from(error: rocksdb::Error) -> Self {
        ReadFault::Database(error)
    }
}

impl ReadFault {
    /// Reports the error to the database, and translates it.
    pub(super) fn settle(self, database: &mut super::database::Database) -> StoreError {
        match self {
            ReadFault::Database(error) => database.fail(&error),
            ReadFault::Nonsense(what) => database.found_damaged(what.to_owned()),
        }
    }
}

/// How far a journal goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Head {
    /// The first sequence number that is missing.
    next: u64,
    /// One more than the greatest sequence number there is; more than `next` if there is a gap.
    end: u64,
    /// What the rows and their keys take, uncompressed. Where rows were cut off, what remains is taken to be the same share of the bytes
    /// as of the rows: exact sizes would have to be read.
    bytes: u64,
}

/// What a row counts for in a journal that was written before heads told sizes.
const UNKNOWN_ROW_BYTES: u64 = 512;

/// How much the journals of some subnets grew, in bytes; negative if they shrank.
pub type Growth = BTreeMap<Subnet, i64>;

/// What came of storing rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// For each journal named, the first sequence number that is missing now.
    pub heads: Vec<(JournalKey, u64)>,
    /// How much the journals grew.
    pub growth: Growth,
}

impl Head {
    fn read(bytes: &[u8]) -> Result<Head, ReadFault> {
        let (numbers, rest) = bytes.as_chunks::<8>();
        match *numbers {
            [next, end, ref size @ ..] if rest.is_empty() && size.len() <= 1 => {
                let (next, end) = (u64::from_be_bytes(next), u64::from_be_bytes(end));
                let bytes = size.first().map_or(end.saturating_mul(UNKNOWN_ROW_BYTES), |bytes| u64::from_be_bytes(*bytes));
                Ok(Head { next, end, bytes })
            }
            _ => Err(ReadFault::Nonsense("the head of a journal has the wrong length")),
        }
    }

    fn encoded(&self) -> Vec<u8> {
        [self.next, self.end, self.bytes].map(u64::to_be_bytes).concat()
    }
}

/// One journal as a batch that is being put together will leave it.
struct Touched {
    head: Head,
    /// Rows that this batch writes.
    written: BTreeMap<u64, Vec<u8>>,
    /// Rows of the database from this sequence number on are deleted by this batch.
    holds_below: u64,
}

impl Touched {
    fn new(head: Head) -> Touched {
        Touched { head, written: BTreeMap::new(), holds_below: u64::MAX }
    }

    /// What stands at a sequence number, as this batch will leave it: none if nothing does, else whether it is this entry.
    fn compare(&self, db: &DB, journal: &[u8], sequence: u64, entry: &[u8]) -> Result<Option<bool>, ReadFault> {
        if sequence >= self.head.end {
            return Ok(None);
        }
        if let Some(written) = self.written.get(&sequence) {
            return Ok(Some(written == entry));
        }
        if sequence >= self.holds_below {
            return Ok(None);
        }
        Ok(db.get_pinned_cf(Column::Rows.of(db), key::of_row(journal, sequence))?.map(|stored| *stored == *entry))
    }

    /// Deletes all rows from this one on.
    fn cut(&mut self, db: &DB, batch: &mut WriteBatch, journal: &[u8], from: u64) {
        let rows = Column::Rows.of(db);
        if self.head.end - from <= DROPPED_ROW_BY_ROW {
            for sequence in from..self.head.end {
                batch.delete_cf(rows, key::of_row(journal, sequence));
            }
        } else {
            batch.delete_range_cf(rows, key::of_row(journal, from), key::of_row(journal, u64::MAX));
            batch.delete_cf(rows, key::of_row(journal, u64::MAX));
        }
        self.written.split_off(&from);
        self.holds_below = self.holds_below.min(from);
        let share = u128::from(self.head.bytes) * u128::from(from) / u128::from(self.head.end.max(1));
        let bytes = u64::try_from(share).unwrap_or(u64::MAX).min(self.head.bytes);
        self.head = Head { next: self.head.next.min(from), end: from, bytes };
    }
}

/// The changes to journals in one batch. Nothing is visible before the batch is written.
#[derive(Default)]
pub(super) struct JournalChanges {
    touched: BTreeMap<Vec<u8>, Touched>,
}

/// Journals up to this long are dropped row by row; a range deletion slows down every later read a little.
const DROPPED_ROW_BY_ROW: u64 = 256;

impl JournalChanges {
    fn touch(&mut self, db: &DB, journal: &[u8]) -> Result<&mut Touched, ReadFault> {
        // Not the entry API: its key would have to be made anew for every row.
        if !self.touched.contains_key(journal) {
            let head = db.get_pinned_cf(Column::Heads.of(db), journal)?;
            let head = head.map_or(Ok(Head::default()), |bytes| Head::read(&bytes))?;
            self.touched.insert(journal.to_vec(), Touched::new(head));
        }
        Ok(self.touched.entry(journal.to_vec()).or_insert_with(|| Touched::new(Head::default())))
    }

    /// Adds rows. One that stands there already changes nothing; one that differs from what stands there replaces it, and
    /// everything behind it goes: a previous owner wrote that, and the present one's statement holds. Returns how far each journal
    /// goes then, in the order in which the rows name them, and how much they grew.
    pub(super) fn append(&mut self, db: &DB, batch: &mut WriteBatch, rows: &[JournalRow]) -> Result<Appended, ReadFault> {
        let family_rows = Column::Rows.of(db);
        let mut growth = Growth::new();
        let mut named: Vec<(JournalKey, Vec<u8>)> = Vec::new();
        for row in rows {
            if named.last().is_none_or(|(key, _)| *key != row.key) {
                named.push((row.key.clone(), key::of_journal(&row.key)));
            }
            let Some((_, journal)) = named.last() else { continue };
            let touched = self.touch(db, journal)?;
            let before = touched.head.bytes;
            match touched.compare(db, journal, row.sequence, &row.entry)? {
                Some(true) => continue,
                Some(false) => touched.cut(db, batch, journal, row.sequence),
                None => {}
            }
            let row_key = key::of_row(journal, row.sequence);
            touched.head.bytes = touched.head.bytes.saturating_add((row_key.len() + row.entry.len()) as u64);
            *growth.entry(row.key.subnet).or_default() += touched.head.bytes.wrapping_sub(before).cast_signed();
            batch.put_cf(family_rows, row_key, &row.entry);
            touched.written.insert(row.sequence, row.entry.clone());
            touched.head.end = touched.head.end.max(row.sequence.saturating_add(1));
            if row.sequence > touched.head.next {
                continue;
            }
            touched.head.next = row.sequence.saturating_add(1);
            // The gap may be closed now: go on over what lies behind it.
            while touched.compare(db, journal, touched.head.next, &[])?.is_some() {
                touched.head.next += 1;
            }
        }
        let mut heads: Vec<(JournalKey, u64)> = Vec::with_capacity(named.len());
        let mut said = BTreeSet::new();
        for (key, journal) in named {
            let next = self.touched.get(&journal).map_or(0, |touched| touched.head.next);
            if said.insert(journal) {
                heads.push((key, next));
            }
        }
        Ok(Appended { heads, growth })
    }

    /// Drops a whole journal. Returns by how many bytes its subnet's journals shrank.
    fn drop_journal(&mut self, db: &DB, batch: &mut WriteBatch, journal: &[u8]) -> Result<u64, ReadFault> {
        let touched = self.touch(db, journal)?;
        let bytes = touched.head.bytes;
        touched.cut(db, batch, journal, 0);
        Ok(bytes)
    }

    /// Drops the journals of a site's runs before this one; with `but_newest` except the newest of them that has its first row: a copy that
    /// began in the middle is of no run that could be compared with. Returns how much they shrank, as a negative number.
    pub(super) fn drop_runs(
        &mut self,
        db: &DB,
        batch: &mut WriteBatch,
        before: &JournalKey,
        but_newest: bool,
    ) -> Result<Growth, ReadFault> {
        let (site, end) = (key::of_site(before), key::of_journal(before));
        // Whether each has its first row.
        let mut older = BTreeMap::new();
        for item in db.iterator_cf_opt(Column::Heads.of(db), within(&site), IteratorMode::From(&site, Direction::Forward)) {
            let (head_key, head) = item?;
            if *head_key >= *end {
                break;
            }
            older.insert(head_key.into_vec(), Head::read(&head)?.next > 0);
        }
        for (touched_key, touched) in self.touched.range(site..end) {
            if touched.head.end > 0 {
                older.insert(touched_key.clone(), touched.head.next > 0);
            } else {
                older.remove(touched_key);
            }
        }
        let newest = older.iter().rev().find(|(_, has_first_row)| **has_first_row).map(|(key, _)| key.clone());
        if let Some(newest) = newest.filter(|_| but_newest) {
            older.remove(&newest);
        }
        let mut shrunk = 0;
        for older in older.keys() {
            shrunk += self.drop_journal(db, batch, older)?.cast_signed();
        }
        Ok(if shrunk > 0 { Growth::from([(before.subnet, -shrunk)]) } else { Growth::new() })
    }

    /// Puts the heads into the batch, once for each journal however often it was touched.
    pub(super) fn finish(self, db: &DB, batch: &mut WriteBatch) {
        let heads = Column::Heads.of(db);
        for (journal, touched) in self.touched {
            if touched.head.end == 0 {
                batch.delete_cf(heads, journal);
            } else {
                batch.put_cf(heads, journal, touched.head.encoded());
            }
        }
    }
}

/// Rows from the iterator until there are `most_bytes`, but at least one; and where to go on.
fn rows_within(db: &DB, prefix: &[u8], start: &[u8], most_bytes: usize) -> Result<Piece, ReadFault> {
    let mut rows = Vec::new();
    let mut bytes = 0;
    for item in db.iterator_cf_opt(Column::Rows.of(db), within(prefix), IteratorMode::From(start, Direction::Forward)) {
        let (row_key, entry) = item?;
        let (key, sequence) = key::read_row(&row_key).ok_or(ReadFault::Nonsense("the key of a journal row cannot be read"))?;
        bytes += row_key.len() + entry.len();
        if bytes > most_bytes && !rows.is_empty() {
            return Ok((rows, Some((key, sequence))));
        }
        rows.push(JournalRow { key, sequence, entry: entry.into_vec() });
    }
    Ok((rows, None))
}

/// A journal's rows from a sequence number on.
pub(super) fn read(db: &DB, journal: &JournalKey, from: u64, most_bytes: usize) -> Result<Vec<JournalRow>, ReadFault> {
    let prefix = key::of_journal(journal);
    Ok(rows_within(db, &prefix, &key::of_row(&prefix, from), most_bytes)?.0)
}

/// The rows of a subnet's journals from a place on, and where to go on.
pub(super) fn range(db: &DB, subnet: &Subnet, from: Option<&(JournalKey, u64)>, most_bytes: usize) -> Result<Piece, ReadFault> {
    let prefix = key::of_subnet(subnet);
    // A place in another subnet comes from a confused asker: it begins before this one or ends behind it.
    let start = from.map_or_else(|| prefix.clone(), |(journal, sequence)| key::of_row(&key::of_journal(journal), *sequence));
    rows_within(db, &prefix, start.as_slice().max(&prefix), most_bytes)
}

/// All journals, or those of one subnet, each with the first sequence number that is missing.
pub(super) fn heads(db: &DB, subnet: Option<&Subnet>) -> Result<Vec<(JournalKey, u64)>, ReadFault> {
    let prefix = subnet.map(key::of_subnet).unwrap_or_default();
    let mut found = Vec::new();
    for item in db.iterator_cf_opt(Column::Heads.of(db), within(&prefix), IteratorMode::From(&prefix, Direction::Forward)) {
        let (journal, head) = item?;
        let journal = key::read_journal(&journal).ok_or(ReadFault::Nonsense("the key of a journal cannot be read"))?;
        found.push((journal, Head::read(&head)?.next));
    }
    Ok(found)
}

/// How many bytes the journals of each subnet take.
pub(super) fn sizes(db: &DB) -> Result<Growth, ReadFault> {
    let mut sizes = Growth::new();
    for item in db.iterator_cf(Column::Heads.of(db), IteratorMode::Start) {
        let (journal, head) = item?;
        let journal = key::read_journal(&journal).ok_or(ReadFault::Nonsense("the key of a journal cannot be read"))?;
        let size = sizes.entry(journal.subnet).or_default();
        *size = size.saturating_add_unsigned(Head::read(&head)?.bytes);
    }
    Ok(sizes)
}
