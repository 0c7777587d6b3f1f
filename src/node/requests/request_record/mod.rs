//! Record of this access point's requests, which outlasts its log of requests and the access point itself.
//!
//! It has some bytes for each server and hour ([`RequestHour`](nearcrawl_model::request_hour::RequestHour)), is stored every five minutes and
//! kept for 30 days. Every ten minutes the replicas of our journals get what is new, and keep it as long. So any member can have it told
//! what was asked, also when we are gone.

mod kept;

use crate::io::{
    request_log::RequestLine,
    store::{Store, StoreError},
    swarm::SwarmMeter,
};
use crate::node::{
    clock,
    transfers::peer_transfers::{self, PeerQuestion},
};
use kept::{KeepError, KeptRecords};
use nearcrawl_core::{
    record_deliveries::{Deliveries, Delivery, SentHour},
    request_record::{KeepRecordError, MAX_ALL_BYTES, MAX_RECORDS, OpenHours, final_hours, first_kept},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    message::{Request, Response},
    request_hour::{AskedServer, HOUR, mark_of, slot_of},
    request_record::{RecordParcel, RecordRange, RecordedRequests, RecordsQuery},
    spans::Spans,
    time::{Millis, Moment, Now, WallTime},
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

/// How often it is looked what is to be stored and sent, at least.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// When our own record is stored: once in each five minutes and before copies are sent; if that failed, a minute later.
#[derive(Debug)]
struct StoreTimes {
    /// The five minutes in which it was; none after a failure.
    stored: Option<u32>,
    at: Moment,
}

impl StoreTimes {
    fn is_due(&self, slot: u32, now: Moment) -> bool {
        now >= self.at || self.stored.is_some_and(|stored| stored != slot)
    }

    fn tried(&mut self, is_stored: bool, slot: u32, now: Moment, every: Millis) {
        let again = u64::try_from(LOOK_EVERY.as_millis()).unwrap_or(u64::MAX);
        (self.stored, self.at) = if is_stored { (Some(slot), now.after(every)) } else { (None, now.after(again)) };
    }
}

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

    /// Stores and sends what is due, as long as the process runs: what is new is sent so often.
    pub async fn serve(self, asking: mpsc::Sender<PeerQuestion>, copies_every: Duration, meter: Option<Arc<SwarmMeter>>) {
        let mut timer = interval(LOOK_EVERY.min(copies_every));
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let every = u64::try_from(copies_every.as_millis()).unwrap_or(u64::MAX);
        let (mut deliveries, mut expired) = (Deliveries::new(every), None);
        let mut times = StoreTimes { stored: None, at: clock::now().moment };
        loop {
            timer.tick().await;
            let now = clock::now();
            let slot = slot_of(now.wall);
            // What is to be sent is stored before.
            if times.is_due(slot, now.moment) {
                times.tried(self.store(now.wall).await, slot, now.moment, every);
            }
            expired = self.expire(now.wall, expired).await;
            if times.stored == Some(slot) {
                let saves = meter.as_ref().is_some_and(|meter| meter.is_spent());
                self.send(now, &asking, &mut deliveries, saves).await;
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

    /// Sends replicas what they lack; of what goes on nothing if bytes are to be saved.
    async fn send(&self, now: Now, asking: &mpsc::Sender<PeerQuestion>, deliveries: &mut Deliveries, saves: bool) {
        let replicas = locked(&self.0.replicas).clone();
        for member in deliveries.due(&replicas, now.moment) {
            loop {
                let own = self.0.kept.own().await;
                let Some(delivery) = deliveries.next(member, &own, now, saves) else { break };
                match delivery {
                    Delivery::Compare(range) => {
                        match peer_transfers::ask(asking, member, Request::CompareRecord(range)).await {
                            Some(Response::RecordHours(told)) => deliveries.compared(member, &own, Some(told), now),
                            Some(Response::Refused(_)) => deliveries.compared(member, &own, None, now),
                            // It was away or busy: that does not tell what it has.
                            _ => deliveries.failed(member, now.moment),
                        }
                    }
                    Delivery::Hours(hours, parcel) => {
                        let (sent, kept) = self.send_hours(member, &hours, parcel, asking).await;
                        match kept {
                            Some(kept) => deliveries.kept(member, &own, &sent, &kept, now),
                            None => deliveries.failed(member, now.moment),
                        }
                    }
                }
            }
        }
    }

    /// Sends a replica hours. Returns what was sent, and which hours it has then; none if it did not answer.
    async fn send_hours(
        &self,
        member: AccessPoint,
        hours: &[u32],
        mut parcel: RecordParcel,
        asking: &mpsc::Sender<PeerQuestion>,
    ) -> (Vec<SentHour>, Option<Spans>) {
        parcel.hours = self.0.kept.own_packed(hours).await;
        if parcel.hours.len() < hours.len() {
            // It would say no of what cannot be read here.
            (parcel.covered, parcel.asked) = (Spans::default(), Spans::default());
        }
        let sent = |(hour, packed): &(u32, Vec<u8>)| (*hour, mark_of(packed), u32::try_from(packed.len()).unwrap_or(u32::MAX));
        let sent = parcel.hours.iter().map(sent).collect();
        let kept = match peer_transfers::ask(asking, member, Request::KeepRecord(Box::new(parcel))).await {
            Some(Response::RecordKept(kept)) => Some(kept),
            _ => None,
        };
        (sent, kept)
    }

    /// Which hours of its record a member is told to have here.
    pub async fn compare(&self, from: AccessPoint, range: &RecordRange) -> Response {
        Response::RecordHours(self.0.kept.compared(from, range).await)
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
        let (mut told, mut room): (Vec<RecordedRequests>, usize) = (Vec::new(), MAX_HOURS_TOLD);
        for owner in &asked.owners {
            let is_own_and_not_written = *owner == self.0.me && self.0.open.is_none();
            if !is_own_and_not_written {
                let said = self.0.kept.tell(*owner, &asked.query, self.final_until(*owner, now)).await;
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

impl RequestRecord {
    /// Until when a member's record here is as complete as it will be. Nothing is added to our own of the time before this process.
    fn final_until(&self, owner: AccessPoint, now: WallTime) -> WallTime {
        let until = WallTime(u64::from(final_hours(now)) * HOUR);
        match &self.0.open {
            Some(open) if owner == self.0.me => until.max(locked(open).known_from()),
            _ => until,
        }
    }
}

impl std::fmt::Debug for RequestRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RequestRecord({})", self.0.me.short())
    }
}

#[cfg(test)]
mod tests;
