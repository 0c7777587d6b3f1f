//! Deliveries of our record of requests: which replica is asked what it has, and sent which hours of it when.
//!
//! A replica is asked by a digest which hours it has when it becomes one, and once a day; by its answers to what it is sent it is known
//! which of them it lost meanwhile. So it gets again what has changed since (the machine slept, the clock was set), and what is not on its
//! disk any more. The hours that go on are sent every few minutes, so that little is lost with a member: the larger, the more rarely.

use super::request_record::{MAX_HOURS_SENT, RecordIndex, final_hours, first_kept};
use nearcrawl_model::{
    access_point::AccessPoint,
    request_hour::{HOUR, hour_of},
    request_record::{HourMarks, RecordParcel, RecordRange},
    spans::Spans,
    time::{Millis, Moment, Now},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

/// How often a replica gets what is new, unless it is set otherwise.
pub const SEND_EVERY: Millis = 600_000;

/// An hour that goes on and takes more bytes is sent as many times more rarely.
const RUNNING_BYTES: u32 = 16 << 10;

/// If there is nothing new it is told so often that nothing was asked.
const TELL_EVERY: Millis = HOUR;

/// How often a replica is asked which hours it has.
const COMPARE_EVERY: Millis = 24 * HOUR;

/// One that refused that question, as an earlier build does that does not know it, is asked again after so long.
const COMPARE_AGAIN: Millis = HOUR;

/// Bytes of hours in one message, and in all to one replica within an hour.
const MAX_SENT_BYTES: u32 = 256 << 10;
const MAX_HOURLY_BYTES: u32 = 1 << 20;

/// Messages to one replica at a time.
const MAX_MESSAGES: usize = 5;

/// A replica that does not answer, or has no room, is sent something as late as otherwise, then twice as late each time, and this at most.
const MAX_SEND_AGAIN: Millis = 24 * HOUR;

/// Hours that are over so soon that a replica whose clock is ahead would refuse them are not sent any more.
const SOON_OVER: u32 = 2;

/// Hours before the last final one that a replica is sent again of which it is not known which copies it has.
const SENT_AGAIN: u32 = 3;

/// What a replica is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The question which hours it has.
    Compare(RecordRange),
    /// These hours, with what is said besides.
    Hours(Vec<u32>, RecordParcel),
}

/// An hour that was sent: which one, its mark, and its bytes.
pub type SentHour = (u32, u64, u32);

/// Which replica gets what, and when.
#[derive(Debug)]
pub struct Deliveries {
    every: Millis,
    replicas: BTreeMap<AccessPoint, Replica>,
}

#[derive(Debug, Default)]
struct Replica {
    /// The hours that it has, with the marks of what it was sent; none as long as it has not said so.
    has: Option<BTreeMap<u32, u64>>,
    /// Those of them of which it did not say which copy it has: they are not sent again, and not told as covered either.
    assumed: BTreeSet<u32>,
    /// What it was sent and did not keep: it is not sent that once more before it is asked again what it has.
    unkept: BTreeMap<u32, u64>,
    /// Up to which hour it was told what is covered; none since it was asked what it has.
    told_until: Option<u32>,
    /// When it is sent something at the earliest, and hours that go on.
    send_at: Moment,
    running_at: Moment,
    /// When it is told something in any case, and asked what it has.
    tell_at: Moment,
    compare_at: Moment,
    /// Bytes of hours that it was sent, and until when these count.
    sent: (u32, Moment),
    /// Messages of this time.
    messages: usize,
    failures: u32,
}

/// The hours that are final and not soon over.
fn final_range(now: Now) -> Range<u32> {
    first_kept(now.wall).saturating_add(SOON_OVER)..final_hours(now.wall)
}

impl Deliveries {
    /// Of a record of which what is new is sent so often.
    pub fn new(every: Millis) -> Deliveries {
        Deliveries { every, replicas: BTreeMap::new() }
    }

    /// The replicas to which something may be sent.
    pub fn due(&mut self, replicas: &BTreeSet<AccessPoint>, now: Moment) -> Vec<AccessPoint> {
        self.replicas.retain(|member, _| replicas.contains(member));
        replicas.iter().filter(|member| now >= self.replicas.entry(**member).or_default().send_at).copied().collect()
    }

    /// What a replica is to be sent next; none if that is all for now. With `saves` nothing is sent of what goes on: bytes are spent.
    pub fn next(&mut self, member: AccessPoint, own: &RecordIndex, now: Now, saves: bool) -> Option<Delivery> {
        let replica = self.replicas.get_mut(&member).filter(|replica| now.moment >= replica.send_at)?;
        let next = replica.next(own, now, saves);
        match next {
            Some(_) => replica.messages += 1,
            None => (replica.messages, replica.send_at) = (0, now.moment.after(self.every)),
        }
        next
    }

    /// A replica said which hours it has, none if they are those that were ours when it was asked; or it refused the question.
    pub fn compared(&mut self, member: AccessPoint, own: &RecordIndex, told: Option<Option<HourMarks>>, now: Now) {
        let Some(replica) = self.replicas.get_mut(&member) else { return };
        replica.compare_at = now.moment.after(if told.is_some() { COMPARE_EVERY } else { COMPARE_AGAIN });
        let Some(told) = told else { return };
        replica.unkept.clear();
        replica.assumed.clear();
        let range = final_range(now);
        let mut has = replica.has.take().unwrap_or_default();
        has.retain(|hour, _| *hour >= range.end);
        match told {
            Some(told) => has.extend(told.into_iter().filter(|(hour, _)| range.contains(hour))),
            None => has.extend(own.marks.iter().filter(|(hour, _)| range.contains(hour)).map(|(hour, mark)| (*hour, *mark))),
        }
        (replica.has, replica.told_until) = (Some(has), None);
    }

    /// A replica was sent these hours, and has these now.
    pub fn kept(&mut self, member: AccessPoint, own: &RecordIndex, sent: &[SentHour], kept: &Spans, now: Now) {
        if let Some(replica) = self.replicas.get_mut(&member) {
            replica.kept(own, sent, kept, now, self.every);
        }
    }

    /// A replica did not answer, or has no room.
    pub fn failed(&mut self, member: AccessPoint, now: Moment) {
        let Some(replica) = self.replicas.get_mut(&member) else { return };
        let failures = replica.failures;
        let send_at = now.after(self.every.saturating_mul(1 << failures.min(20)).min(MAX_SEND_AGAIN));
        // What it has is asked before it is sent something again, unless it has just refused to say so.
        let compare_at = if replica.has.is_some() { Moment(0) } else { replica.compare_at };
        *replica = Replica { send_at, compare_at, failures: failures.saturating_add(1), ..Replica::default() };
    }
}

impl Replica {
    fn next(&mut self, own: &RecordIndex, now: Now, saves: bool) -> Option<Delivery> {
        if self.messages >= MAX_MESSAGES {
            return None;
        }
        let range = final_range(now);
        if now.moment >= self.compare_at {
            let digest = own.digest(range.clone());
            return Some(Delivery::Compare(RecordRange { from: range.start, until: range.end, digest }));
        }
        // It refuses that question: which hours it has it says to any message, but not which copies of them.
        let Some(has) = &self.has else { return Some(Delivery::Hours(Vec::new(), RecordParcel::default())) };
        if now.moment >= self.sent.1 {
            (self.sent.0, self.sent.1) = (0, now.moment.after(HOUR));
        }
        let is_same = |marks: &BTreeMap<u32, u64>, hour: &u32| marks.contains_key(hour) && marks.get(hour) == own.marks.get(hour);
        let lacking: Vec<u32> = own.hours.keys().rev().copied().filter(|hour| *hour >= range.start && !is_same(has, hour)).collect();
        // A clock that was ahead leaves hours that no replica takes yet.
        let latest = hour_of(now.wall).saturating_add(1);
        let is_due = |hour: &u32| *hour < range.end || (*hour <= latest && now.moment >= self.running_at && !saves);
        let may_be_sent = |hour: &u32| !is_same(&self.unkept, hour) && is_due(hour);
        let hours = self.fitting(own, lacking.iter().copied().filter(may_be_sent));
        if hours.is_empty() && now.moment < self.tell_at {
            return None;
        }
        // It may have earlier copies of them.
        let outdated: Vec<u32> = lacking.iter().chain(&self.assumed).copied().filter(|hour| !hours.contains(hour)).collect();
        let first = hours.last().copied().unwrap_or(u32::MAX);
        let from = self.told_until.map_or(range.start, |told| first.min(told.min(range.end).saturating_sub(1)));
        Some(Delivery::Hours(hours, own.parcel(from, &outdated)))
    }

    /// Which of these hours go into one message.
    fn fitting(&self, own: &RecordIndex, hours: impl Iterator<Item = u32>) -> Vec<u32> {
        let room = MAX_SENT_BYTES.min(MAX_HOURLY_BYTES.saturating_sub(self.sent.0));
        let mut bytes = 0_u32;
        let fits = hours.take_while(|hour| {
            bytes = bytes.saturating_add(own.hours.get(hour).copied().unwrap_or_default());
            bytes <= room
        });
        fits.take(MAX_HOURS_SENT).collect()
    }

    fn kept(&mut self, own: &RecordIndex, sent: &[SentHour], kept: &Spans, now: Now, every: Millis) {
        self.failures = 0;
        let range = final_range(now);
        let Some(has) = &mut self.has else {
            // Which copies it has is not known. The last ones are likely to have changed, and are sent again.
            let old = range.start..range.end.saturating_sub(SENT_AGAIN);
            let has = own.marks.iter().filter(|(hour, _)| old.contains(hour) && kept.contains(**hour));
            let has: BTreeMap<u32, u64> = has.map(|(hour, mark)| (*hour, *mark)).collect();
            self.assumed = has.keys().copied().collect();
            self.has = Some(has);
            return;
        };
        has.retain(|hour, _| kept.contains(*hour));
        for (hour, mark, bytes) in sent {
            if kept.contains(*hour) {
                has.insert(*hour, *mark);
                self.assumed.remove(hour);
            } else {
                self.unkept.insert(*hour, *mark);
            }
            self.sent.0 = self.sent.0.saturating_add(*bytes);
            if *hour >= range.end {
                let longer = u64::from(bytes.div_ceil(RUNNING_BYTES).max(1));
                self.running_at = self.running_at.max(now.moment.after(every.saturating_mul(longer)));
            }
        }
        self.told_until = Some(range.end);
        self.tell_at = now.moment.after(TELL_EVERY);
    }
}

#[cfg(test)]
mod tests;
