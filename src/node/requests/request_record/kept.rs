//! The records that are stored here: of this access point's requests, and copies of those of members whose replica it is.
//!
//! Each hour is a value of its own in the state database; beside them there is an index for each member.

use crate::io::store::{Store, StoreError};
use nearcrawl_core::request_record::{Due, KeepRecordError, MAX_ALL_BYTES, MAX_HOURS_SENT, MAX_RECORDS, RecordIndex};
use nearcrawl_model::{
    access_point::AccessPoint,
    request_hour::{RequestHour, mark_of},
    request_record::{HourMarks, Record, RecordParcel, RecordRange, RecordedRequests},
    requests_made::RequestsQuery,
    spans::Spans,
    time::WallTime,
};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};
use tokio::sync::Mutex;

/// The name of the list of members of whom there is an index.
const OWNERS: &str = "record-owners";

fn index_name(owner: AccessPoint) -> String {
    format!("record-{owner}")
}

fn hour_name(owner: AccessPoint, hour: u32) -> String {
    format!("rec-{owner}-{hour:06x}")
}

fn encoded<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, StoreError> {
    postcard::to_stdvec(value).map_err(|why| StoreError::Io(why.to_string()))
}

/// Why a copy was not kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// It is no record, or there is no room.
    #[error(transparent)]
    Unfit(#[from] KeepRecordError),
    /// The disk did not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// All records.
pub struct KeptRecords {
    store: Store,
    me: AccessPoint,
    indexes: Mutex<BTreeMap<AccessPoint, RecordIndex>>,
    /// What they take, and of how many members: read without waiting for the disk.
    bytes: AtomicU64,
    owners: AtomicU64,
}

impl KeptRecords {
    /// What is stored; and from when on our own record goes on, if the process before ended cleanly: that is not so any more from now on.
    ///
    /// # Errors
    /// The store fails.
    pub async fn begin(store: Store, me: AccessPoint) -> Result<(KeptRecords, Option<u32>), StoreError> {
        let mut indexes = BTreeMap::new();
        let owners = store.meta_get(OWNERS).await?.and_then(|bytes| postcard::from_bytes::<Vec<AccessPoint>>(&bytes).ok());
        for owner in owners.into_iter().flatten().chain([me]) {
            // An index that cannot be read counts as none: its hours are written anew, or stay until the state is removed.
            let index = store.meta_get(&index_name(owner)).await?.and_then(|bytes| RecordIndex::read(&bytes));
            indexes.insert(owner, index.unwrap_or_default());
        }
        let own: &mut RecordIndex = indexes.entry(me).or_default();
        let goes_on = own.goes_on.take();
        // An earlier release stored none. Those of copies come with what is sent.
        for hour in own.unmarked() {
            match store.meta_get(&hour_name(me, hour)).await? {
                Some(packed) => drop(own.marks.insert(hour, mark_of(&packed))),
                None => drop(own.hours.remove(&hour)),
            }
        }
        let values = vec![(index_name(me), Some(encoded(own)?)), (OWNERS.to_owned(), Some(encoded(&indexes.keys().collect::<Vec<_>>())?))];
        store.meta_put_all(values).await?;
        let bytes = indexes.values().map(RecordIndex::bytes).sum();
        let (bytes, owners) = (AtomicU64::new(bytes), AtomicU64::new(indexes.len() as u64));
        Ok((KeptRecords { store, me, indexes: Mutex::new(indexes), bytes, owners }, goes_on))
    }

    fn count(&self, indexes: &BTreeMap<AccessPoint, RecordIndex>) {
        self.bytes.store(indexes.values().map(RecordIndex::bytes).sum(), Ordering::Relaxed);
        self.owners.store(indexes.len() as u64, Ordering::Relaxed);
    }

    /// What they take, and of how many members they are.
    pub fn used(&self) -> (u64, u64) {
        (self.bytes.load(Ordering::Relaxed), self.owners.load(Ordering::Relaxed))
    }

    /// What is stored of an hour of our own; none if there is nothing, or what cannot be read.
    ///
    /// # Errors
    /// The store fails.
    pub async fn own_hour(&self, hour: u32) -> Result<Option<RequestHour>, StoreError> {
        Ok(self.store.meta_get(&hour_name(self.me, hour)).await?.and_then(|packed| RequestHour::unpack(&packed).ok()))
    }

    /// Stores what is due of our own record; with `goes_on` it is the last time in this process.
    ///
    /// # Errors
    /// The store fails: nothing of it was stored.
    pub async fn store_own(&self, due: &Due, goes_on: Option<u32>) -> Result<(), StoreError> {
        let mut indexes = self.indexes.lock().await;
        let mut own = indexes.get(&self.me).cloned().unwrap_or_default();
        let mut values = Vec::new();
        for hour in &due.hours {
            let packed = hour.pack();
            own.stored(hour.hour, &packed);
            values.push((hour_name(self.me, hour.hour), Some(packed)));
        }
        own.covered.add(due.covered.0, due.covered.1);
        own.goes_on = goes_on;
        if indexes.get(&self.me) == Some(&own) && values.is_empty() {
            return Ok(());
        }
        values.push((index_name(self.me), Some(encoded(&own)?)));
        self.store.meta_put_all(values).await?;
        indexes.insert(self.me, own);
        self.count(&indexes);
        Ok(())
    }

    /// Forgets the hours before this one, and members of whom nothing is left.
    ///
    /// # Errors
    /// The store fails.
    pub async fn expire(&self, first: u32) -> Result<(), StoreError> {
        let mut indexes = self.indexes.lock().await;
        let (mut left, mut values) = (indexes.clone(), Vec::new());
        for (owner, index) in &mut left {
            let before = index.clone();
            values.extend(index.expire(first).into_iter().map(|hour| (hour_name(*owner, hour), None)));
            let is_over = *owner != self.me && index.covered.is_empty() && index.hours.is_empty();
            if is_over {
                values.push((index_name(*owner), None));
            } else if *index != before {
                values.push((index_name(*owner), Some(encoded(index)?)));
            }
        }
        left.retain(|owner, index| *owner == self.me || !index.covered.is_empty() || !index.hours.is_empty());
        if left.len() < indexes.len() {
            values.push((OWNERS.to_owned(), Some(encoded(&left.keys().collect::<Vec<_>>())?)));
        }
        if !values.is_empty() {
            self.store.meta_put_all(values).await?;
        }
        *indexes = left;
        self.count(&indexes);
        Ok(())
    }

    /// Keeps what a member sent of its record. Returns the hours of it that are stored here, of those that were sent if that copy is in it.
    ///
    /// # Errors
    /// It is none, there is no room, or the store fails: nothing of it was stored.
    pub async fn keep(&self, from: AccessPoint, parcel: RecordParcel, now: WallTime) -> Result<Spans, KeepError> {
        let mut indexes = self.indexes.lock().await;
        let (is_new, total) = (!indexes.contains_key(&from), indexes.values().map(RecordIndex::bytes).sum());
        if from == self.me || (is_new && indexes.len() >= MAX_RECORDS) {
            return Err(KeepRecordError::NoRoom.into());
        }
        let different: BTreeMap<u32, u64> = parcel.hours.iter().map(|(hour, packed)| (*hour, mark_of(packed))).collect();
        if different.len() < parcel.hours.len() || different.len() > MAX_HOURS_SENT {
            return Err(KeepRecordError::Malformed.into());
        }
        let before = indexes.get(&from).cloned().unwrap_or_default();
        let room = MAX_ALL_BYTES.saturating_sub(total);
        let mut stored = BTreeMap::new();
        for hour in different.keys().filter(|hour| before.hours.contains_key(hour)) {
            stored.extend(self.store.meta_get(&hour_name(from, *hour)).await?.map(|packed| (*hour, packed)));
        }
        // Few bytes may unpack to many: the loop does not wait for that.
        let mut index = before.clone();
        let read = tokio::task::spawn_blocking(move || index.take(&parcel, &stored, now, room).map(|taken| (index, taken))).await;
        let (index, taken) = read.map_err(|why| StoreError::Io(why.to_string()))??;
        let has = index.has(&different);
        if index == before && taken.is_empty() {
            return Ok(has);
        }
        let mut values: Vec<_> = taken.into_iter().map(|(hour, packed)| (hour_name(from, hour), Some(packed))).collect();
        values.push((index_name(from), Some(encoded(&index)?)));
        if is_new {
            values.push((OWNERS.to_owned(), Some(encoded(&indexes.keys().chain([&from]).collect::<Vec<_>>())?)));
        }
        self.store.meta_put_all(values).await?;
        indexes.insert(from, index);
        self.count(&indexes);
        Ok(has)
    }

    /// What the record of a member says; none if there is none here.
    pub async fn tell(&self, owner: AccessPoint, query: &RequestsQuery, final_until: WallTime) -> Option<RecordedRequests> {
        let index = self.indexes.lock().await.get(&owner).cloned()?;
        let mut hours = Vec::new();
        for hour in Record::hours_of(query).filter(|hour| index.hours.contains_key(hour)) {
            // What cannot be read is an hour that is not here.
            let packed = self.store.meta_get(&hour_name(owner, hour)).await.ok().flatten();
            // An hour may have tens of thousands of servers, and one of them is asked for.
            let address = query.address;
            let read = move || RequestHour::unpack(packed.as_deref()?).ok().map(|hour| hour.only(&address));
            let read = tokio::task::spawn_blocking(read).await;
            hours.extend(read.ok().flatten());
        }
        Some(Record { covered: &index.covered, asked: &index.asked, hours: &hours }.answer(owner, query, final_until))
    }

    /// Which hours in this range are here of a member's record; none if they are those that it has.
    pub async fn compared(&self, owner: AccessPoint, with: &RecordRange) -> Option<HourMarks> {
        let indexes = self.indexes.lock().await;
        indexes.get(&owner).map_or_else(|| Some(Vec::new()), |index| index.compared(with))
    }

    /// What is stored of our own record besides its hours.
    pub async fn own(&self) -> RecordIndex {
        self.indexes.lock().await.get(&self.me).cloned().unwrap_or_default()
    }

    /// These hours of our own record, packed, as far as they can be read.
    pub async fn own_packed(&self, hours: &[u32]) -> Vec<(u32, Vec<u8>)> {
        let mut packed = Vec::new();
        for hour in hours {
            packed.extend(self.store.meta_get(&hour_name(self.me, *hour)).await.ok().flatten().map(|bytes| (*hour, bytes)));
        }
        packed
    }
}
