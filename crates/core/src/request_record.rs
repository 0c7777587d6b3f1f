//! Record of the requests of a member: what is added to it, what it covers, when it is over, and what of a copy is kept.
//!
//! It is kept in hours ([`RequestHour`]), for 30 days. An hour is final when all requests that began in it have ended. What is covered goes
//! on across a restart if the process before ended cleanly; after a kill it begins anew, for what was under way then was not added.
//! `record_deliveries` decides which copies are sent to whom.

use nearcrawl_model::{
    request_hour::{AskedServer, HOUR, MAX_PACKED, RequestHour, SLOT, SLOTS, digest_of, hour_of, mark_of, slot_of},
    request_record::{HourMarks, MAX_HOURS, RECORDED_FOR, RecordParcel, RecordRange},
    requests_made::LATEST_END,
    spans::Spans,
    time::{Millis, WallTime},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    ops::Range,
};

/// What the record of one member takes at most, in bytes: 182 MiB.
pub const MAX_RECORD_BYTES: u64 = (MAX_HOURS * MAX_PACKED) as u64;

/// Members whose records are kept here, our own among them, and what all of these take.
pub const MAX_RECORDS: usize = 64;
/// All records together take at most so many bytes.
pub const MAX_ALL_BYTES: u64 = 1 << 30;

/// Hours that a member may send at a time: each may unpack to 8 MiB.
pub const MAX_HOURS_SENT: usize = 8;

/// Hours to which requests are added at a time: this one, the one before, and others if the clock is set meanwhile.
const MAX_OPEN: usize = 4;

/// A clock that goes back by more was set.
const SET_BACK: Millis = SLOT;

/// Why a copy is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeepRecordError {
    /// An hour that cannot be read.
    #[error("this is no record of requests")]
    Malformed,
    /// There is no room for more.
    #[error("there is no room for more records")]
    NoRoom,
}

/// What is stored of a member's record besides its hours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordIndex {
    /// The five minutes that it covers.
    pub covered: Spans,
    /// The hours in which something was asked.
    pub asked: Spans,
    /// The bytes of each hour that is stored here.
    pub hours: BTreeMap<u32, u32>,
    /// Of our own: from which five minutes on it goes on after a clean end; none while a process runs, and after a kill.
    pub goes_on: Option<u32>,
    /// The mark of each hour: of our own of what is stored, of a copy of what its owner sent last. Earlier builds stored none.
    pub marks: BTreeMap<u32, u64>,
}

impl RecordIndex {
    /// Reads what is stored; none if it cannot be read. What an earlier release stored has no marks.
    pub fn read(bytes: &[u8]) -> Option<RecordIndex> {
        postcard::from_bytes(bytes).ok().or_else(|| {
            let (covered, asked, hours, goes_on) = postcard::from_bytes(bytes).ok()?;
            Some(RecordIndex { covered, asked, hours, goes_on, marks: BTreeMap::new() })
        })
    }

    /// The hours that are stored and have no mark.
    pub fn unmarked(&self) -> Vec<u32> {
        self.hours.keys().copied().filter(|hour| !self.marks.contains_key(hour)).collect()
    }

    /// What its hours take.
    pub fn bytes(&self) -> u64 {
        self.hours.values().map(|bytes| u64::from(*bytes)).sum()
    }

    /// Forgets what is over, below this hour; which of the hours that were stored.
    pub fn expire(&mut self, first: u32) -> Vec<u32> {
        self.covered = self.covered.within(first.saturating_mul(SLOTS), u32::MAX);
        self.asked = self.asked.within(first, u32::MAX);
        let kept = self.hours.split_off(&first);
        self.marks = self.marks.split_off(&first);
        std::mem::replace(&mut self.hours, kept).into_keys().collect()
    }

    /// An hour of our own was stored, packed like this.
    pub fn stored(&mut self, hour: u32, packed: &[u8]) {
        self.put(hour, packed.len(), mark_of(packed));
    }

    fn put(&mut self, hour: u32, bytes: usize, mark: u64) {
        self.asked.add(hour, hour.saturating_add(1));
        self.hours.insert(hour, u32::try_from(bytes).unwrap_or(u32::MAX));
        self.marks.insert(hour, mark);
    }

    /// Takes in what a member sent of its record; `stored` are the copies that are here of these hours, and `room` is how many bytes there
    /// are for more. Returns what is to be stored: of an hour that is here already both copies together, for a member may want to hide what
    /// it asked, and so no later copy takes away what an earlier one says. Where both are too long together the earlier one stays: the hour
    /// is not covered by this message, and what was sent is not what is here ([`Self::has`]). Hours that it is too early or too late for
    /// are left out, so that one that a wrong clock made does not keep the others back.
    ///
    /// # Errors
    ///
    /// It is no record, or there is no room: nothing was taken.
    pub fn take(
        &mut self,
        parcel: &RecordParcel,
        stored: &BTreeMap<u32, Vec<u8>>,
        now: WallTime,
        room: u64,
    ) -> Result<Vec<(u32, Vec<u8>)>, KeepRecordError> {
        // Its clock may be ahead by some hours.
        let hours = first_kept(now)..=hour_of(now).saturating_add(24);
        let slots = |spans: &Spans| spans.within(hours.start() * SLOTS, hours.end().saturating_mul(SLOTS));
        let (mut taken, mut stays) = (Vec::new(), Vec::new());
        for (hour, packed) in parcel.hours.iter().filter(|(hour, _)| hours.contains(hour)) {
            let read = if packed.len() <= MAX_PACKED { RequestHour::unpack(packed).ok() } else { None };
            let read = read.filter(|read| read.hour == *hour).ok_or(KeepRecordError::Malformed)?;
            match together(stored.get(hour), &read, packed) {
                Some(both) => taken.push((*hour, both, mark_of(packed))),
                None => stays.push(*hour),
            }
        }
        let new: u64 = taken.iter().map(|(_, packed, _)| packed.len() as u64).sum();
        let replaced: u64 = taken.iter().filter_map(|(hour, ..)| self.hours.get(hour)).map(|bytes| u64::from(*bytes)).sum();
        let more = new.saturating_sub(replaced);
        if more > room || self.bytes().saturating_add(more) > MAX_RECORD_BYTES {
            return Err(KeepRecordError::NoRoom);
        }
        self.covered.join(&slots(&without_hours(parcel.covered.clone(), &stays)));
        self.asked.join(&parcel.asked.within(*hours.start(), *hours.end()));
        for (hour, packed, mark) in &taken {
            self.put(*hour, packed.len(), *mark);
        }
        Ok(taken.into_iter().map(|(hour, packed, _)| (hour, packed)).collect())
    }

    /// The hours that are here, but for those of which not this copy was taken that was sent: their numbers and marks.
    pub fn has(&self, sent: &BTreeMap<u32, u64>) -> Spans {
        let is_sent = |hour: &u32| sent.get(hour).is_none_or(|mark| self.marks.get(hour) == Some(mark));
        self.hours.keys().copied().filter(is_sent).collect()
    }

    /// The digest of the hours in this range that are stored.
    pub fn digest(&self, hours: Range<u32>) -> u64 {
        digest_of(self.marks_of(hours))
    }

    fn marks_of(&self, hours: Range<u32>) -> impl Iterator<Item = (u32, u64)> {
        let marks = (hours.start < hours.end).then(|| self.marks.range(hours));
        marks.into_iter().flatten().map(|(hour, mark)| (*hour, *mark))
    }

    /// Which hours in this range are here; none if they are those of the owner.
    pub fn compared(&self, with: &RecordRange) -> Option<HourMarks> {
        let hours = with.from..with.until;
        (self.digest(hours.clone()) != with.digest).then(|| self.marks_of(hours).take(MAX_HOURS).collect())
    }

    /// A message to a replica, without hours: what is covered and was asked from this hour on. That an hour is covered is not said of
    /// these, of which it may have earlier copies: it would say *no* of what came later.
    pub fn parcel(&self, from: u32, outdated: &[u32]) -> RecordParcel {
        let covered = without_hours(self.covered.within(from.saturating_mul(SLOTS), u32::MAX), outdated);
        RecordParcel { covered, asked: self.asked.within(from, u32::MAX), hours: Vec::new() }
    }
}

/// What is to be stored of an hour that was sent: both copies, if one is here that can be read; none if they are too long together.
fn together(stored: Option<&Vec<u8>>, sent: &RequestHour, packed: &[u8]) -> Option<Vec<u8>> {
    let Some(stored) = stored.filter(|stored| *stored != packed) else { return Some(packed.to_vec()) };
    match RequestHour::unpack(stored) {
        Ok(earlier) => earlier.pack_with(sent),
        Err(_) => Some(packed.to_vec()),
    }
}

/// These five minutes, but for those of these hours.
fn without_hours(covered: Spans, hours: &[u32]) -> Spans {
    let without = |covered: Spans, hour: &u32| covered.without(hour.saturating_mul(SLOTS), hour.saturating_add(1).saturating_mul(SLOTS));
    hours.iter().fold(covered, without)
}

/// The first hour that is not over.
pub fn first_kept(now: WallTime) -> u32 {
    hour_of(WallTime(now.0.saturating_sub(RECORDED_FOR)))
}

/// Hours before this one are final: nothing is added to them any more.
pub fn final_hours(now: WallTime) -> u32 {
    // It is looked at every minute, and stored then.
    hour_of(WallTime(now.0.saturating_sub(LATEST_END + SLOT)))
}

/// Hours to which requests are added.
#[derive(Debug)]
pub struct OpenHours {
    hours: BTreeMap<u32, RequestHour>,
    changed: BTreeSet<u32>,
    /// Those that have what earlier processes stored of them.
    read: BTreeSet<u32>,
    /// From which five minutes on all requests are added.
    known_from: u32,
    latest: WallTime,
    /// Requests that were not added, because there are too many hours.
    left_out: u64,
}

/// What is to be stored.
#[derive(Debug, PartialEq, Eq)]
pub struct Due {
    /// Hours that have changed.
    pub hours: Vec<RequestHour>,
    /// The five minutes that are covered, from the first one to the one behind the last.
    pub covered: (u32, u32),
}

impl OpenHours {
    /// At a start; `goes_on` is from when on, if the process before ended cleanly.
    pub fn begin(now: WallTime, goes_on: Option<u32>) -> OpenHours {
        let next = slot_of(now).saturating_add(1);
        let known_from = goes_on.map_or(next, |slot| if slot < next { slot } else { slot.saturating_add(1) });
        OpenHours { hours: BTreeMap::new(), changed: BTreeSet::new(), read: BTreeSet::new(), known_from, latest: now, left_out: 0 }
    }

    /// A request has ended.
    pub fn add(&mut self, asked: &AskedServer<'_>, now: WallTime) {
        let hour = hour_of(asked.at);
        if self.hours.len() >= MAX_OPEN && !self.hours.contains_key(&hour) {
            self.left_out += 1;
            self.known_from = self.known_from.max(slot_of(now.max(asked.at)).saturating_add(1));
            return;
        }
        self.hours.entry(hour).or_insert_with(|| RequestHour::new(hour)).add(asked);
        self.changed.insert(hour);
    }

    /// Of which hours what is stored is to be read before they are due.
    pub fn unread(&self) -> Vec<u32> {
        self.changed.difference(&self.read).copied().collect()
    }

    /// This is stored of an hour; none if nothing is.
    pub fn was_read(&mut self, hour: u32, before: Option<&RequestHour>) {
        if let Some(open) = self.hours.get_mut(&hour).filter(|_| self.read.insert(hour)) {
            before.iter().for_each(|before| open.merge(before));
        }
    }

    /// What is to be stored now. Where the clock was set back nobody knows which of the requests of that time are which.
    pub fn due(&mut self, now: WallTime) -> Due {
        if now.0.saturating_add(SET_BACK) < self.latest.0 {
            self.known_from = self.known_from.max(slot_of(self.latest).saturating_add(1));
        }
        self.latest = self.latest.max(now);
        let ready: Vec<u32> = self.changed.extract_if(.., |hour| self.read.contains(hour)).collect();
        let hours = ready.iter().filter_map(|hour| self.hours.get(hour).cloned()).collect();
        Due { hours, covered: (self.known_from, slot_of(WallTime(now.0.saturating_sub(LATEST_END)))) }
    }

    /// It was not stored: it is due again.
    pub fn not_stored(&mut self, due: &Due) {
        self.changed.extend(due.hours.iter().map(|hour| hour.hour));
    }

    /// It was stored. Hours that are final are not held any longer.
    pub fn stored(&mut self, now: WallTime) {
        let last = final_hours(now);
        let changed = &self.changed;
        self.hours.retain(|hour, _| *hour >= last || changed.contains(hour));
        let hours = &self.hours;
        self.read.retain(|hour| hours.contains_key(hour));
    }

    /// All requests have ended and no other begins: what is to be stored, and from which five minutes on the next process goes on.
    pub fn end(&mut self, now: WallTime) -> (Due, u32) {
        // All of them: what was being stored when the process was told to end may not be.
        self.changed = self.hours.keys().copied().collect();
        let due = self.due(now);
        let until = slot_of(now);
        (Due { covered: (self.known_from, until), ..due }, until.max(self.known_from))
    }

    /// What is known of requests to a server in the hours that are held, in words: this hour, and in its first quarter the one before.
    pub fn lately(&self, address: IpAddr, now: WallTime) -> String {
        let address = address.to_canonical();
        let since = (u64::from(self.known_from) * SLOT).max(u64::from(final_hours(now)) * HOUR);
        let asked = self.hours.iter().filter_map(|(hour, held)| Some((*hour, held.server(&address)?)));
        let (mut requests, mut last, mut rules) = (0_u64, WallTime(0), BTreeSet::new());
        for (hour, server) in asked {
            requests += u64::from(server.requests());
            last = last.max(server.span(hour).1);
            rules.extend(server.rules());
        }
        let rules = rules.into_iter().collect::<Vec<_>>().join(", ");
        match requests {
            0 if since > now.0 => "not known: no record of this hour is kept yet".to_owned(),
            0 => format!("none since {}", WallTime(since)),
            1 => format!("1 at about {last} ({rules})"),
            _ => format!("{requests} within the last 75 minutes, the last one at about {last} ({rules})"),
        }
    }

    /// From when on all requests are added: what is not covered before never will be.
    pub fn known_from(&self) -> WallTime {
        WallTime(u64::from(self.known_from) * SLOT)
    }

    /// Requests that were not added.
    pub fn left_out(&self) -> u64 {
        let cut = self.hours.values().map(|hour| hour.left_out);
        cut.fold(self.left_out, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::{
        access_point::AccessPoint,
        request_record::Record,
        requests_made::{RequestsQuery, Verdict},
    };

    const HOUR_0: u32 = 497_000;

    fn at(minutes: u64) -> WallTime {
        WallTime(u64::from(HOUR_0) * HOUR + minutes * 60_000)
    }

    fn asked(minutes: u64) -> AskedServer<'static> {
        AskedServer { at: at(minutes), address: "192.0.2.1".parse().unwrap(), rule: "link", host: "a.ke".parse().ok(), bytes: 9 }
    }

    /// What is stored, as the daemon stores it.
    fn store(open: &mut OpenHours, index: &mut RecordIndex, disk: &mut BTreeMap<u32, Vec<u8>>, now: WallTime) {
        read(open, disk);
        let due = open.due(now);
        put(due, index, disk);
        open.stored(now);
    }

    fn read(open: &mut OpenHours, disk: &BTreeMap<u32, Vec<u8>>) {
        for hour in open.unread() {
            let before = disk.get(&hour).map(|packed| RequestHour::unpack(packed).unwrap());
            open.was_read(hour, before.as_ref());
        }
    }

    fn put(due: Due, index: &mut RecordIndex, disk: &mut BTreeMap<u32, Vec<u8>>) {
        for hour in due.hours {
            let packed = hour.pack();
            index.stored(hour.hour, &packed);
            disk.insert(hour.hour, packed);
        }
        index.covered.add(due.covered.0, due.covered.1);
    }

    fn verdict(index: &RecordIndex, disk: &BTreeMap<u32, Vec<u8>>, from: u64, until: u64) -> Verdict {
        let query = RequestsQuery { address: "192.0.2.1".parse().unwrap(), from: at(from), until: at(until) };
        let hours: Vec<_> = disk.values().map(|packed| RequestHour::unpack(packed).unwrap()).collect();
        Record { covered: &index.covered, asked: &index.asked, hours: &hours }.answer(AccessPoint([1; 32]), &query, at(100_000)).verdict
    }

    #[test]
    fn a_day_without_requests_is_covered_and_the_time_around_a_kill_is_not() {
        let (mut index, mut disk) = (RecordIndex::default(), BTreeMap::new());
        let mut open = OpenHours::begin(at(2), None);
        open.add(&asked(20), at(21));
        store(&mut open, &mut index, &mut disk, at(120));
        assert_eq!(verdict(&index, &disk, 0, 4), Verdict::Unknown, "before it began");
        assert_eq!(verdict(&index, &disk, 18, 22), Verdict::Yes);
        assert_eq!(verdict(&index, &disk, 30, 100), Verdict::No);
        assert_eq!(verdict(&index, &disk, 105, 115), Verdict::Unknown, "requests of that time may be under way");
        // It is killed, and begins again a day later.
        let mut open = OpenHours::begin(at(1_500), index.goes_on);
        store(&mut open, &mut index, &mut disk, at(1_600));
        assert_eq!(verdict(&index, &disk, 200, 300), Verdict::Unknown);
        assert_eq!(verdict(&index, &disk, 1_510, 1_580), Verdict::No);
        // It ends cleanly, and begins again a day later. What was being stored then is stored in any case.
        open.add(&asked(1_595), at(1_600));
        read(&mut open, &disk);
        open.due(at(1_600));
        let (due, goes_on) = open.end(at(1_601));
        put(due, &mut index, &mut disk);
        let mut open = OpenHours::begin(at(3_000), Some(goes_on));
        store(&mut open, &mut index, &mut disk, at(3_100));
        assert_eq!(verdict(&index, &disk, 1_510, 1_590), Verdict::No);
        assert_eq!(verdict(&index, &disk, 1_590, 1_600), Verdict::Yes);
        assert_eq!(verdict(&index, &disk, 1_600, 3_080), Verdict::No, "a daemon that is off asks nothing");
    }

    #[test]
    fn a_process_adds_to_what_the_one_before_stored_of_the_hour() {
        let (mut index, mut disk) = (RecordIndex::default(), BTreeMap::new());
        for minutes in [10, 20] {
            let mut open = OpenHours::begin(at(minutes - 1), None);
            open.add(&asked(minutes), at(minutes));
            (0..2).for_each(|_| store(&mut open, &mut index, &mut disk, at(minutes)));
            open.add(&asked(minutes + 1), at(minutes + 1));
            store(&mut open, &mut index, &mut disk, at(minutes + 1));
        }
        let hour = RequestHour::unpack(&disk[&HOUR_0]).unwrap();
        assert_eq!(hour.server(&"192.0.2.1".parse().unwrap()).unwrap().requests(), 4);
    }

    #[test]
    fn what_was_asked_lately_is_said_apart_from_what_is_not_known() {
        let address = "192.0.2.1".parse().unwrap();
        let mut open = OpenHours::begin(at(0), None);
        assert!(open.lately(address, at(2)).starts_with("not known"));
        assert_eq!(open.lately(address, at(30)), format!("none since {}", at(5)));
        [10, 20].iter().for_each(|minutes| open.add(&asked(*minutes), at(*minutes)));
        let said = open.lately(address, at(30));
        assert!(said.starts_with("2 within the last 75 minutes") && said.contains("T") && said.ends_with("(link)"), "{said}");
    }

    #[test]
    fn what_is_not_stored_is_due_again_and_what_is_final_is_not_held() {
        let mut open = OpenHours::begin(at(0), None);
        open.add(&asked(10), at(11));
        assert!(open.due(at(11)).hours.is_empty(), "what is stored of the hour is not read yet");
        read(&mut open, &BTreeMap::new());
        let due = open.due(at(11));
        assert_eq!((due.hours.len(), open.due(at(12)).hours.len()), (1, 0));
        open.not_stored(&due);
        assert_eq!(open.due(at(13)).hours, due.hours);
        open.stored(at(13));
        open.add(&asked(11), at(14));
        let due = open.due(at(80));
        assert_eq!(due.hours[0].server(&"192.0.2.1".parse().unwrap()).unwrap().requests(), 2, "it is held until it is final");
        open.stored(at(80));
        assert!(open.hours.is_empty());
    }

    #[test]
    fn a_clock_that_is_set_back_leaves_a_time_uncovered_and_too_many_hours_are_counted() {
        let mut open = OpenHours::begin(at(0), Some(slot_of(at(0))));
        assert_eq!(open.due(at(300)).covered, (slot_of(at(0)), slot_of(at(290))));
        assert_eq!(open.due(at(299)).covered.0, slot_of(at(0)), "a little is no jump");
        assert_eq!(open.due(at(100)).covered.0, slot_of(at(300)) + 1);
        for hour in 0..=MAX_OPEN as u64 {
            open.add(&asked(60 * hour), at(60 * hour));
        }
        assert_eq!((open.hours.len(), open.left_out()), (MAX_OPEN, 1));
    }

    #[test]
    fn thirty_days_are_kept_and_a_member_has_no_more_room_than_others() {
        let mut index = RecordIndex::default();
        for hour in 0..30 * 24 + 5 {
            index.stored(HOUR_0 + hour, &[7; 100]);
        }
        index.covered.add(HOUR_0 * SLOTS, (HOUR_0 + 725) * SLOTS);
        let now = WallTime(at(0).0 + RECORDED_FOR + 3 * HOUR);
        assert_eq!(index.expire(first_kept(now)), (HOUR_0..HOUR_0 + 3).collect::<Vec<_>>());
        assert!(index.hours.len() == 722 && !index.covered.contains((HOUR_0 + 3) * SLOTS - 1) && !index.asked.contains(HOUR_0 + 2));
        assert!(index.hours.len() <= MAX_HOURS && MAX_RECORD_BYTES < 200 << 20);
        let mut hour = RequestHour::new(HOUR_0 + 9);
        hour.add(&AskedServer { at: at(9 * 60), ..asked(0) });
        let parcel = |number, packed| RecordParcel { hours: vec![(number, packed)], ..index.parcel(0, &[]) };
        let none = BTreeMap::new();
        let mut copy = RecordIndex::default();
        assert_eq!(copy.take(&parcel(HOUR_0 + 9, hour.pack()), &none, now, 0), Err(KeepRecordError::NoRoom));
        assert_eq!(copy.take(&parcel(HOUR_0 + 8, hour.pack()), &none, now, 1_000), Err(KeepRecordError::Malformed), "another hour");
        assert_eq!(copy.take(&parcel(HOUR_0 + 9, vec![1, 2]), &none, now, 1_000), Err(KeepRecordError::Malformed));
        let old = RequestHour::new(HOUR_0);
        assert_eq!(copy, RecordIndex::default());
        assert_eq!(copy.take(&parcel(HOUR_0, old.pack()), &none, now, 1_000), Ok(vec![]), "it is over");
        assert!(copy.hours.is_empty());
        assert_eq!(copy.take(&parcel(HOUR_0 + 9, hour.pack()), &none, now, 1_000), Ok(vec![(HOUR_0 + 9, hour.pack())]));
        assert!(copy.hours.contains_key(&(HOUR_0 + 9)) && copy.covered.contains((HOUR_0 + 5) * SLOTS), "{copy:?}");
    }

    /// The clock of its owner was ahead by more than a day for a while.
    #[test]
    fn an_hour_far_ahead_does_not_keep_the_others_of_its_parcel_back() {
        let mut hour = RequestHour::new(HOUR_0);
        hour.add(&asked(10));
        let ahead = RequestHour::new(HOUR_0 + 48);
        let hours = vec![(HOUR_0 + 48, ahead.pack()), (HOUR_0, hour.pack())];
        let mut copy = RecordIndex::default();
        let taken = copy.take(&RecordParcel { hours, ..RecordParcel::default() }, &BTreeMap::new(), at(120), 1_000);
        assert_eq!(taken, Ok(vec![(HOUR_0, hour.pack())]));
        assert_eq!(copy.hours.keys().copied().collect::<Vec<_>>(), [HOUR_0], "its owner is told that the other one is not here");
    }

    #[test]
    fn a_later_copy_of_an_hour_takes_nothing_away_that_an_earlier_one_says() {
        let server = |number: u8| AskedServer { address: [192, 0, 2, number].into(), ..asked(10) };
        let hour = |numbers: &[u8]| {
            let mut hour = RequestHour::new(HOUR_0);
            numbers.iter().for_each(|number| hour.add(&server(*number)));
            hour
        };
        let (mut copy, mut disk) = (RecordIndex::default(), BTreeMap::new());
        let sent = [hour(&[1, 2, 2]), hour(&[2, 3])];
        for hour in &sent {
            let parcel = RecordParcel { hours: vec![(HOUR_0, hour.pack())], ..RecordIndex::default().parcel(0, &[]) };
            disk.extend(copy.take(&parcel, &disk, at(120), 1_000).unwrap());
        }
        let kept = RequestHour::unpack(&disk[&HOUR_0]).unwrap();
        let requests = |number: u8| kept.server(&server(number).address).map(count);
        assert_eq!((requests(1), requests(2), requests(3), requests(4)), (Some(1), Some(2), Some(1), None));
        assert_eq!(copy.marks[&HOUR_0], mark_of(&sent[1].pack()), "its owner is told that it has got there");
        assert_eq!(copy.bytes(), disk[&HOUR_0].len() as u64);
        // What it is sent as it is stays so.
        let parcel = RecordParcel { hours: vec![(HOUR_0, disk[&HOUR_0].clone())], ..RecordIndex::default().parcel(0, &[]) };
        assert_eq!(copy.take(&parcel, &disk, at(120), 0), Ok(vec![(HOUR_0, disk[&HOUR_0].clone())]), "it takes no more room");
    }

    /// It would say *no* of what only the later copy tells.
    #[test]
    fn an_hour_of_which_the_earlier_copy_stays_is_not_covered_by_the_later_one_and_is_not_said_to_be_here() {
        // Addresses and five minutes that hardly get shorter by packing.
        let spread = |number: u64| {
            let spread = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (spread ^ (spread >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(31)
        };
        let address = |number: u64| IpAddr::from((u128::from(spread(number)) << 64 | u128::from(spread(number + 500_000))).to_be_bytes());
        let of = |servers: u64, is_in: &dyn Fn(u64, u64) -> bool| {
            let mut hour = RequestHour::new(HOUR_0);
            for (number, slot) in (0..servers).flat_map(|number| (0..12).map(move |slot| (number, slot))) {
                if is_in(number, slot) {
                    hour.add(&AskedServer { address: address(number), ..asked(5 * slot) });
                }
            }
            RequestHour::unpack(&hour.pack()).unwrap()
        };
        // As many servers as have room.
        let full = (12_000..18_000).rev().step_by(250).map(|servers| of(servers, &|_, slot| slot == 2));
        let first = full.into_iter().find(|hour| hour.left_out == 0).unwrap();
        let later = of(first.len() as u64, &|number, slot| spread(number + 1_000_000) >> (20 + slot) & 1 == 1);
        assert!(first.pack_with(&later).is_none());
        let (first, later) = (first.pack(), later.pack());
        let (mut copy, mut disk) = (RecordIndex::default(), BTreeMap::new());
        let slots = HOUR_0 * SLOTS;
        let parcel = |packed: &Vec<u8>, until| RecordParcel {
            covered: (slots..until).collect(),
            hours: vec![(HOUR_0, packed.clone())],
            ..RecordParcel::default()
        };
        disk.extend(copy.take(&parcel(&first, slots + 4), &disk, at(120), 1 << 20).unwrap());
        assert_eq!(copy.take(&parcel(&later, slots + 24), &disk, at(120), 1 << 20), Ok(vec![]));
        let is_covered = [3, 4, 11, 12].map(|slot| copy.covered.contains(slots + slot));
        assert_eq!(is_covered, [true, false, false, true]);
        assert_eq!(copy.marks[&HOUR_0], mark_of(&first));
        let has = |packed: &[u8]| copy.has(&[(HOUR_0, mark_of(packed))].into()).contains(HOUR_0);
        assert!(has(&first) && !has(&later) && copy.has(&BTreeMap::new()).contains(HOUR_0));
    }

    fn count(server: &nearcrawl_model::request_hour::ServerHour) -> u32 {
        server.requests()
    }

    #[test]
    fn what_an_earlier_release_stored_is_read_without_marks() {
        let mut index = RecordIndex::default();
        index.stored(HOUR_0, &[7; 100]);
        index.covered.add(HOUR_0 * SLOTS, HOUR_0 * SLOTS + 5);
        let stored = postcard::to_stdvec(&index).unwrap();
        assert_eq!(RecordIndex::read(&stored), Some(index.clone()));
        let earlier = postcard::to_stdvec(&(&index.covered, &index.asked, &index.hours, index.goes_on)).unwrap();
        let read = RecordIndex::read(&earlier).unwrap();
        assert_eq!((read.unmarked(), index.unmarked()), (vec![HOUR_0], vec![]));
        assert_eq!(RecordIndex { marks: index.marks.clone(), ..read }, index);
        assert_eq!(RecordIndex::read(&[9]), None);
    }

    #[test]
    fn copies_are_compared_hour_by_hour_and_same_ones_by_a_digest() {
        let mut own = RecordIndex::default();
        [1, 2, 5].iter().for_each(|hour| own.stored(HOUR_0 + hour, &[*hour as u8; 100]));
        let range = |from, until| RecordRange { from, until, digest: own.digest(from..until) };
        let mut copy = own.clone();
        assert_eq!(copy.compared(&range(HOUR_0, HOUR_0 + 9)), None);
        copy.stored(HOUR_0 + 5, &[7; 100]);
        let told = copy.compared(&range(HOUR_0 + 2, HOUR_0 + 9)).unwrap();
        assert_eq!(told, [(HOUR_0 + 2, own.marks[&(HOUR_0 + 2)]), (HOUR_0 + 5, copy.marks[&(HOUR_0 + 5)])]);
        assert_eq!(copy.compared(&range(HOUR_0, HOUR_0 + 5)), None, "of that part they are the same");
        assert!(copy.compared(&RecordRange { from: 9, until: 3, digest: 1 }).is_some_and(|told| told.is_empty()));
    }

    #[test]
    fn what_is_told_leaves_out_hours_of_which_the_replica_has_earlier_copies() {
        let mut own = RecordIndex::default();
        own.covered.add(HOUR_0 * SLOTS, (HOUR_0 + 4) * SLOTS);
        [0, 1, 2].iter().for_each(|hour| own.stored(HOUR_0 + hour, &[1]));
        let told = own.parcel(HOUR_0 + 1, &[HOUR_0 + 2]);
        let covered = |hour: u32| (told.covered.contains((HOUR_0 + hour) * SLOTS), told.covered.contains((HOUR_0 + hour + 1) * SLOTS - 1));
        assert_eq!([0, 1, 2, 3].map(covered), [(false, false), (true, true), (false, false), (true, true)]);
        assert!(told.asked.contains(HOUR_0 + 2) && !told.asked.contains(HOUR_0));
    }
}
