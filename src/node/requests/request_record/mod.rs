//! Record of this access point's requests, which outlasts its log of requests and the access point itself.
//!
//! It has some bytes for each server and hour ([`RequestHour`](nearcrawl_model::request_hour::RequestHour)), is stored every five minutes and
//! kept for 30 days. Once an hour the replicas of our journals get what is new, and keep it as long. So any member can have it told what was
//! asked, also when we are gone.

mod kept;

use crate::io::{
    request_log::RequestLine,
    store::{Store, StoreError},
};
use crate::node::{
    clock,
    transfers::peer_transfers::{self, PeerQuestion},
};
use kept::{KeepError, KeptRecords};
use nearcrawl_core::request_record::{
    Deliveries, KeepRecordError, MAX_ALL_BYTES, MAX_PARCELS, MAX_RECORDS, OpenHours, final_hours, first_kept,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    message::{Request, Response},
    request_hour::{AskedServer, HOUR, slot_of},
    request_record::{RecordParcel, RecordedRequests, RecordsQuery},
    spans::Spans,
    time::{Now, WallTime},
    view::LimitView,
};
use std::{
    collections::BTreeSet,
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval},
};

/// How often it is looked what is to be stored and sent.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Hours that are told of in one answer, of all members together: it is to fit into a message.
const MAX_HOURS_TOLD: usize = 500;

/// Requests that are not on record.
const LEFT_OUT: &str = "requests for which the record of requests had no room";

/// Copies that were refused.
const NOT_KEPT: &str = "copies of records of requests that are malformed, or for which there was no room";

/// The records: our own, and the copies of others. Clones are the same.
#[derive(Clone)]
pub struct RequestRecord(Arc<Inner>);

struct Inner {
    me: AccessPoint,
    kept: KeptRecords,
    /// Hours to which requests are added; none if no requests are to be written down.
    open: Option<Mutex<OpenHours>>,
    /// Held while our own record is stored, so that what is due is stored in order.
    storing: tokio::sync::Mutex<()>,
    /// Who keeps copies of our journals at the moment.
    replicas: Mutex<BTreeSet<AccessPoint>>,
    refused: AtomicU64,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RequestRecord {
    /// What is stored; `writes` is whether requests of this access point are to be written down.
    ///
    /// # Errors
    /// The store fails.
    pub async fn begin(store: Store, me: AccessPoint, writes: bool) -> Result<RequestRecord, StoreError> {
        let (kept, goes_on) = KeptRecords::begin(store, me).await?;
        let open = writes.then(|| Mutex::new(OpenHours::begin(clock::now().wall, goes_on)));
        let (storing, replicas, refused) = (tokio::sync::Mutex::new(()), Mutex::default(), AtomicU64::new(0));
        Ok(RequestRecord(Arc::new(Inner { me, kept, open, storing, replicas, refused })))
    }

    /// A request has ended.
    pub fn add(&self, line: &RequestLine) {
        let (Some(open), Some(address)) = (&self.0.open, line.address.filter(|_| line.kind.is_contact())) else { return };
        let (rule, host, bytes) = (line.reason.as_str(), line.host.parse().ok(), line.bytes.unwrap_or(0));
        locked(open).add(&AskedServer { at: line.asked_at, address, rule, host, bytes }, clock::now().wall);
    }

    /// These members keep copies of our journals.
    pub fn replicas(&self, replicas: BTreeSet<AccessPoint>) {
        *locked(&self.0.replicas) = replicas;
    }

    /// What was refused since the start, by class.
    pub fn refusals(&self) -> [(&'static str, u64); 2] {
        let left_out = self.0.open.as_ref().map_or(0, |open| locked(open).left_out());
        [(LEFT_OUT, left_out), (NOT_KEPT, self.0.refused.load(Ordering::Relaxed))]
    }

    /// What grows here, with its limits.
    pub fn limits(&self) -> [LimitView; 2] {
        let (bytes, owners) = self.0.kept.used();
        [
            LimitView { name: "bytes of records of requests, our own and copies".to_owned(), used: bytes, max: MAX_ALL_BYTES },
            LimitView { name: "members whose records of requests are kept".to_owned(), used: owners, max: MAX_RECORDS as u64 },
        ]
    }

    /// What of this hour and the last one is known of requests to a server, in words.
    pub fn lately(&self, address: IpAddr) -> String {
        let Some(open) = &self.0.open else { return "not known: no record of requests is kept here (log.requests)".to_owned() };
        locked(open).lately(address, clock::now().wall)
    }

    /// Stores what is due of our own record. Whether that is so.
    async fn store(&self, now: WallTime) -> bool {
        let Some(open) = &self.0.open else { return false };
        let _turn = self.0.storing.lock().await;
        if !self.read_earlier(open).await {
            return false;
        }
        let due = locked(open).due(now);
        match self.0.kept.store_own(&due, None).await {
            Ok(()) => {
                locked(open).stored(now);
                true
            }
            Err(why) => {
                tracing::warn!("the record of requests could not be stored, and is tried again in a minute: {why}");
                locked(open).not_stored(&due);
                false
            }
        }
    }

    /// Adds what earlier processes stored of the hours that go on.
    async fn read_earlier(&self, open: &Mutex<OpenHours>) -> bool {
        let unread = locked(open).unread();
        for hour in unread {
            match self.0.kept.own_hour(hour).await {
                Ok(before) => locked(open).was_read(hour, before.as_ref()),
                Err(why) => {
                    tracing::warn!("the record of requests cannot be read, which is tried again in a minute: {why}");
                    return false;
                }
            }
        }
        true
    }

    /// The process ends in good order: all requests have ended.
    pub async fn end(&self) {
        let Some(open) = &self.0.open else { return };
        let _turn = self.0.storing.lock().await;
        if !self.read_earlier(open).await {
            return;
        }
        let (due, goes_on) = locked(open).end(clock::now().wall);
        if let Err(why) = self.0.kept.store_own(&due, Some(goes_on)).await {
            tracing::warn!("the end of the record of requests could not be stored: {why}");
        }
    }

    /// Stores and sends what is due, as long as the process runs.
    pub async fn serve(self, asking: mpsc::Sender<PeerQuestion>) {
        let mut timer = interval(LOOK_EVERY);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut deliveries, mut stored, mut expired) = (Deliveries::default(), None, None);
        loop {
            timer.tick().await;
            let now = clock::now();
            let slot = slot_of(now.wall);
            if stored != Some(slot) {
                stored = self.store(now.wall).await.then_some(slot);
            }
            expired = self.expire(now.wall, expired).await;
            // What is final was stored before it is sent.
            if stored == Some(slot) {
                self.send(now, &asking, &mut deliveries).await;
            }
        }
    }

    /// Forgets what is over by this look and by the one before, an hour ago: a clock may be wrong for a while. Returns the limit of this one.
    async fn expire(&self, now: WallTime, before: Option<u32>) -> Option<u32> {
        let first = first_kept(now);
        if before.is_none_or(|before| before == first) {
            return Some(first);
        }
        if let Err(why) = self.0.kept.expire(before.unwrap_or(first).min(first)).await {
            tracing::warn!("what is over of the records of requests could not be removed, which is tried again in an hour: {why}");
        }
        Some(first)
    }

    /// Sends replicas what they lack.
    async fn send(&self, now: Now, asking: &mpsc::Sender<PeerQuestion>, deliveries: &mut Deliveries) {
        let (replicas, upto) = (locked(&self.0.replicas).clone(), final_hours(now.wall));
        for (member, has) in deliveries.due(&replicas, upto, now.moment) {
            let has = self.send_to(member, has, upto, asking).await;
            deliveries.answered(member, upto, has, now.moment);
        }
    }

    /// Sends a replica a few messages. One of which it is not known yet what it has is asked first. Returns what it has then.
    async fn send_to(&self, member: AccessPoint, has: Spans, upto: u32, asking: &mpsc::Sender<PeerQuestion>) -> Option<Spans> {
        let mut has = (!has.is_empty()).then_some(has);
        for _ in 0..MAX_PARCELS {
            let (parcel, is_all) = self.0.kept.parcel(upto, has.as_ref()).await;
            match peer_transfers::ask(asking, member, Request::KeepRecord(Box::new(parcel))).await {
                Some(Response::RecordKept(kept)) => has = Some(kept),
                _ => return None,
            }
            if is_all {
                break;
            }
        }
        has
    }

    /// Keeps what a member sent of its record; none if it is to come again.
    pub async fn keep(&self, from: AccessPoint, parcel: RecordParcel) -> Option<Response> {
        match self.0.kept.keep(from, parcel, clock::now().wall).await {
            Ok(has) => Some(Response::RecordKept(has)),
            Err(KeepError::Unfit(KeepRecordError::NoRoom)) => {
                self.0.refused.fetch_add(1, Ordering::Relaxed);
                Some(Response::NoRoom)
            }
            Err(KeepError::Unfit(why @ KeepRecordError::Malformed)) => {
                self.0.refused.fetch_add(1, Ordering::Relaxed);
                Some(Response::Refused(why.to_string()))
            }
            Err(KeepError::Store(StoreError::NoSpace(_))) => Some(Response::NoRoom),
            Err(KeepError::Store(why)) => {
                tracing::warn!("the copy of {}'s record of requests could not be stored: {why}", from.short());
                None
            }
        }
    }

    /// What the records of these members say that are here.
    pub async fn tell(&self, asked: &RecordsQuery) -> Vec<RecordedRequests> {
        let now = clock::now().wall;
        if asked.owners.contains(&self.0.me) {
            self.store(now).await;
        }
        let final_until = WallTime(u64::from(final_hours(now)) * HOUR);
        let (mut told, mut room): (Vec<RecordedRequests>, usize) = (Vec::new(), MAX_HOURS_TOLD);
        for owner in &asked.owners {
            let is_own_and_not_written = *owner == self.0.me && self.0.open.is_none();
            if !is_own_and_not_written {
                let said = self.0.kept.tell(*owner, &asked.query, final_until).await;
                told.extend(said.map(|mut said| {
                    said.hours.truncate(room);
                    room -= said.hours.len();
                    said
                }));
            }
        }
        told
    }
}

impl std::fmt::Debug for RequestRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RequestRecord({})", self.0.me.short())
    }
}

#[cfg(test)]
mod tests;
