//! What the record of a member's requests, or a replica's copy of it, says about a server and a time; and how copies get to replicas.
//!
//! The record has an hour for each in which something was asked, and the five minutes that it covers: only of these it says that nothing
//! was asked else.

use super::{
    access_point::AccessPoint,
    ownership_map::at_most,
    request_hour::{HOUR, RequestHour, SLOT, Within, hour_of, slot_of},
    requests_made::{LATEST_END, MemberRequests, RequestsQuery, RequestsView, Uncovered, Verdict},
    spans::Spans,
    time::WallTime,
    url::Host,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use utoipa::ToSchema;

/// For how long requests are on record, in milliseconds: 30 days.
pub const RECORDED_FOR: u64 = 30 * 24 * HOUR;

/// Hours of one record: 30 days, and the hours at both ends of which a part is in these.
pub const MAX_HOURS: usize = 30 * 24 + 2;

/// Members whose records are asked about at once.
pub const MAX_OWNERS: usize = 64;

/// Hours in one message, and hours that are told of in an answer: two days, begun and ended within an hour.
const MAX_SENT: usize = MAX_HOURS;
const MAX_TOLD: usize = 50;

/// Reasons of an hour that are told.
const MAX_REASONS: usize = 16;

/// Records that are told of in one answer.
pub const MAX_COPIES: usize = 4_096;

/// A member's record as it is now, with hours that the replica may not have yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordParcel {
    /// The five minutes that it covers, counted from 1970.
    pub covered: Spans,
    /// The hours in which something was asked, counted from 1970.
    pub asked: Spans,
    /// Some of these hours, packed ([`RequestHour::pack`]).
    #[serde(deserialize_with = "at_most::<_, _, MAX_SENT>")]
    pub hours: Vec<(u32, Vec<u8>)>,
}

/// Did these members make a request, by the copies of their records that the asked member has?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordsQuery {
    /// The members.
    #[serde(deserialize_with = "at_most::<_, _, MAX_OWNERS>")]
    pub owners: Vec<AccessPoint>,
    /// Which requests.
    pub query: RequestsQuery,
}

/// A part of a member's record, to be compared with a copy: hours, and the digest of the sender's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordRange {
    /// The first hour, counted from 1970.
    pub from: u32,
    /// The hour behind the last.
    pub until: u32,
    /// Of the numbers and marks ([`mark_of`](crate::request_hour::mark_of)) of all hours between them that the sender has stored.
    pub digest: u64,
}

/// The hours of a copy with the marks of what was sent last of each, in order.
pub type HourMarks = Vec<(u32, u64)>;

/// Why a record does not say whether there was a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecordGap {
    /// There were requests in five minutes that are partly in the time that is asked about.
    Nearby,
    /// No record of that hour is kept.
    NoRecord,
    /// It may still come: requests are on record when they have ended, and get to replicas some minutes later.
    TooRecent,
}

/// Requests to a server within one hour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecordedHour {
    /// When the first one began, at the earliest.
    #[schema(value_type = String)]
    pub first_at: WallTime,
    /// When the last one began, at the latest.
    #[schema(value_type = String)]
    pub last_at: WallTime,
    /// How many.
    pub requests: u64,
    /// Bytes of the answers, rounded up to KiB; 0 if that is not on record.
    pub bytes: u64,
    /// By which rules, each one word: see docs/OPERATING.md.
    #[serde(deserialize_with = "at_most::<_, _, MAX_REASONS>")]
    pub reasons: Vec<String>,
    /// For which hosts, a few of them.
    #[schema(value_type = Vec<String>)]
    #[serde(deserialize_with = "at_most::<_, _, MAX_REASONS>")]
    pub hosts: Vec<Host>,
    /// Whether these are all.
    pub all_hosts: bool,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedRequests {
    /// Whose it is.
    pub owner: AccessPoint,
    /// Whether there was such a request.
    pub verdict: Verdict,
    /// The hours with such requests, or with ones nearby.
    #[serde(deserialize_with = "at_most::<_, _, MAX_TOLD>")]
    pub hours: Vec<RecordedHour>,
    /// Why it does not say whether there was one, or another one.
    pub gap: Option<RecordGap>,
}

/// What a copy of a member's record says, and who has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecordTold {
    /// Whose requests they are.
    #[schema(value_type = String)]
    pub access_point: AccessPoint,
    /// Who has the record: the member itself, or a replica.
    #[schema(value_type = String)]
    pub answered_by: AccessPoint,
    /// Until when the member was there, if it is not any more.
    #[schema(value_type = Option<String>)]
    pub gone_at: Option<WallTime>,
    /// Whether there was such a request.
    pub verdict: Verdict,
    /// The hours with such requests, or with ones nearby.
    #[serde(deserialize_with = "at_most::<_, _, MAX_TOLD>")]
    pub hours: Vec<RecordedHour>,
    /// Why it does not say whether there was one, or another one; none if it does.
    pub gap: Option<RecordGap>,
}

/// Whose records were asked for, and who did not answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordsAsked {
    /// Members that were asked nothing, for they are not there; since when, of those that parted.
    pub absent: BTreeMap<AccessPoint, Option<WallTime>>,
    /// The members whose records were asked for.
    pub owners: BTreeSet<AccessPoint>,
    /// Members that were asked for these records, and did not answer.
    pub unanswered: BTreeSet<AccessPoint>,
}

/// Why no record says whether a member made such a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecordMissing {
    /// All members that are there were asked and have answered: none keeps a record of that hour.
    NotKept,
    /// Nobody was asked: another member made such a request.
    NotNeeded,
    /// Nobody was asked: requests of that time may be under way, and the member's log tells when they have ended.
    TooRecent,
    /// Nobody was asked: the records of [`MAX_OWNERS`] other members were asked for, and no more are at a time.
    TooMany,
    /// Members were asked that may have one, and did not answer.
    NoAnswer,
}

/// A member of which it is not known whether it made such a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnknownMember {
    /// The member.
    #[schema(value_type = String)]
    pub access_point: AccessPoint,
    /// Whether it was asked for its log: not if it is not there.
    pub was_asked: bool,
    /// Until when the member was there, if it is not any more.
    #[schema(value_type = Option<String>)]
    pub gone_at: Option<WallTime>,
    /// Why no record says it either.
    pub record: RecordMissing,
}

/// What all members say together, by their logs and where these say nothing by their records. It is for JSON: postcard does not know
/// flattened fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestsAnswer {
    /// By their logs.
    #[serde(flatten)]
    pub view: RequestsView,
    /// What records say of members whose logs do not.
    #[serde(default)]
    pub records: Vec<RecordTold>,
    /// What is missing.
    #[serde(flatten)]
    pub missing: RequestsMissing,
}

/// What is missing to know more of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct RequestsMissing {
    /// Members of which it is not known, but for those whose record says itself why.
    #[serde(deserialize_with = "at_most::<_, _, MAX_COPIES>")]
    pub unknown: Vec<UnknownMember>,
    /// Members that were asked for records, and did not answer: each may have a copy.
    #[schema(value_type = Vec<String>)]
    #[serde(deserialize_with = "at_most::<_, _, MAX_COPIES>")]
    pub unanswered: Vec<AccessPoint>,
}

impl RecordsAsked {
    /// What is missing of a member of which it is not known; none if its record says why.
    fn missing(&self, member: &MemberRequests, told: Option<&RecordTold>, found: bool) -> Option<UnknownMember> {
        let is_asked = self.owners.contains(&member.access_point);
        let record = match told.and_then(|told| told.gap) {
            _ if found && !is_asked => RecordMissing::NotNeeded,
            _ if !is_asked && member.uncovered == Some(Uncovered::TooRecent) => RecordMissing::TooRecent,
            _ if !is_asked => RecordMissing::TooMany,
            _ if !self.unanswered.is_empty() => RecordMissing::NoAnswer,
            Some(RecordGap::Nearby | RecordGap::TooRecent) => return None,
            Some(RecordGap::NoRecord) | None => RecordMissing::NotKept,
        };
        let absent = self.absent.get(&member.access_point);
        let gone_at = absent.copied().flatten();
        Some(UnknownMember { access_point: member.access_point, was_asked: absent.is_none(), gone_at, record })
    }
}

impl RequestsAnswer {
    /// Adds what records say: the verdict of a member whose log does not say is that of its record, if one is kept. Of several that which
    /// knows of a request is told: that another copy has none is no proof that there was none. So a copy's *no* counts only if
    /// all members have answered that are there; those that are not are not asked, and may have another one.
    pub fn new(query: &RequestsQuery, mut view: RequestsView, mut records: Vec<RecordTold>, asked: &RecordsAsked) -> RequestsAnswer {
        records.retain(|told| {
            view.members.iter().any(|member| member.access_point == told.access_point && member.verdict == Verdict::Unknown)
        });
        let doubt = |verdict: Verdict| match verdict {
            Verdict::Yes => 0,
            Verdict::No => 1,
            Verdict::Unknown => 2,
        };
        let rank = |told: &RecordTold| (doubt(told.verdict), told.gap, told.answered_by != told.access_point);
        records.sort_by_key(|told| (told.access_point, rank(told), told.answered_by));
        records.dedup_by_key(|told| told.access_point);
        records.truncate(MAX_COPIES);
        let of = |member: &AccessPoint| records.iter().find(|told| told.access_point == *member);
        for member in view.members.iter_mut().filter(|member| member.verdict == Verdict::Unknown) {
            if let Some(told) = of(&member.access_point) {
                let is_copy = told.answered_by != told.access_point;
                let is_doubtful = told.verdict == Verdict::No && is_copy && !asked.unanswered.is_empty();
                member.verdict = if is_doubtful { Verdict::Unknown } else { told.verdict };
            }
        }
        let view = RequestsView::new(query, view.members);
        let found = view.verdict == Verdict::Yes;
        let unknown = view.members.iter().filter(|member| member.verdict == Verdict::Unknown);
        let unknown: Vec<_> = unknown.filter_map(|member| asked.missing(member, of(&member.access_point), found)).collect();
        let unanswered = asked.unanswered.iter().copied().take(MAX_COPIES).collect();
        RequestsAnswer { missing: RequestsMissing { unknown, unanswered }, view, records }
    }

    /// What the record of this member says.
    pub fn record_of(&self, member: &AccessPoint) -> Option<&RecordTold> {
        self.records.iter().find(|told| told.access_point == *member)
    }

    /// What is missing of this member.
    pub fn missing_of(&self, member: &AccessPoint) -> Option<&UnknownMember> {
        self.missing.unknown.iter().find(|unknown| unknown.access_point == *member)
    }
}

/// When records of that time are final: all requests of its last hour have ended and been stored, which is five minutes later at most.
pub fn recorded_at(query: &RequestsQuery) -> WallTime {
    let over = u64::from(hour_of(query.until)).saturating_add(1).saturating_mul(HOUR);
    WallTime(over.saturating_add(LATEST_END).saturating_add(SLOT))
}

/// What is known of a member's requests: the five minutes that are covered, the hours in which something was asked, and these.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The five minutes.
    pub covered: &'a Spans,
    /// The hours.
    pub asked: &'a Spans,
    /// The hours that were asked about, as far as they are here.
    pub hours: &'a [RequestHour],
}

impl Record<'_> {
    /// The hours that are to be read for a question.
    pub fn hours_of(query: &RequestsQuery) -> std::ops::RangeInclusive<u32> {
        hour_of(query.from)..=hour_of(query.until)
    }

    /// What it says; `final_until` is until when it is as complete as it will be.
    pub fn answer(&self, owner: AccessPoint, query: &RequestsQuery, final_until: WallTime) -> RecordedRequests {
        let query = RequestsQuery { address: query.address.to_canonical(), ..*query };
        let (mut best, mut hours) = (Within::No, Vec::new());
        for hour in self.hours.iter().filter(|hour| Record::hours_of(&query).contains(&hour.hour)) {
            let within = hour.within(&query.address, &query);
            best = best.max(within);
            if within > Within::No && hours.len() < MAX_TOLD {
                hours.extend(told_of(hour, &query));
            }
        }
        let gap = match best {
            _ if self.lacks(&query, final_until, true) => Some(RecordGap::NoRecord),
            _ if self.lacks(&query, final_until, false) => Some(RecordGap::TooRecent),
            Within::Perhaps => Some(RecordGap::Nearby),
            Within::No | Within::Yes => None,
        };
        let verdict = match (best, gap) {
            (Within::Yes, _) => Verdict::Yes,
            (_, Some(_)) => Verdict::Unknown,
            (_, None) => Verdict::No,
        };
        RecordedRequests { owner, verdict, hours, gap }
    }

    /// Whether five minutes are not covered that are over, or not yet; or an hour is not here.
    fn lacks(&self, query: &RequestsQuery, final_until: WallTime, over: bool) -> bool {
        let is_over = |slot: u32| (u64::from(slot) + 1) * SLOT <= final_until.0;
        let covered = |slot: u32| {
            let hour = slot / (HOUR / SLOT) as u32;
            let whole = |known: &RequestHour| known.hour == hour && (known.left_out == 0 || known.server(&query.address).is_some());
            self.covered.contains(slot) && (!self.asked.contains(hour) || self.hours.iter().any(whole))
        };
        (slot_of(query.from)..=slot_of(query.until)).any(|slot| is_over(slot) == over && !covered(slot))
    }
}

fn told_of(hour: &RequestHour, query: &RequestsQuery) -> Option<RecordedHour> {
    let server = hour.server(&query.address)?;
    let (first_at, last_at) = server.span(hour.hour);
    let (hosts, all_hosts) = server.hosts();
    Some(RecordedHour {
        first_at,
        last_at,
        requests: server.requests().into(),
        bytes: server.bytes(),
        reasons: server.rules().map(str::to_owned).collect(),
        hosts: hosts.to_vec(),
        all_hosts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{request_hour::AskedServer, requests_made::RequestsMade};

    const HOUR_0: u32 = 497_000;
    const BEGIN: u64 = HOUR_0 as u64 * HOUR;

    fn query(from: u64, until: u64) -> RequestsQuery {
        RequestsQuery { address: "192.0.2.1".parse().unwrap(), from: WallTime(BEGIN + from), until: WallTime(BEGIN + until) }
    }

    fn asked_at(minutes: u64) -> RequestHour {
        let at = WallTime(BEGIN + minutes * 60_000);
        let mut hour = RequestHour::new(hour_of(at));
        let host = "a.ke".parse().ok();
        hour.add(&AskedServer { at, address: "192.0.2.1".parse().unwrap(), rule: "link", host, bytes: 9 });
        hour
    }

    /// What a record of a day says, of which the second hour has a request.
    fn answer(from: u64, until: u64, hours: &[RequestHour]) -> (Verdict, Option<RecordGap>, usize) {
        let slots = HOUR_0 * 12;
        let mut covered = Spans::default();
        covered.add(slots, slots + 24 * 12);
        let asked: Spans = [HOUR_0 + 1].into_iter().collect();
        let said = Record { covered: &covered, asked: &asked, hours }.answer(
            AccessPoint([7; 32]),
            &query(from * 60_000, until * 60_000),
            WallTime(BEGIN + 25 * HOUR),
        );
        (said.verdict, said.gap, said.hours.len())
    }

    #[test]
    fn a_copy_that_knows_of_a_request_is_told_whatever_another_copy_lacks() {
        let gone = AccessPoint([7; 32]);
        let told = |by: u8, verdict, gap| {
            let answered_by = AccessPoint([by; 32]);
            RecordTold { access_point: gone, answered_by, gone_at: None, verdict, hours: Vec::new(), gap }
        };
        let (no, yes) = (told(1, Verdict::No, None), told(2, Verdict::Yes, Some(RecordGap::Nearby)));
        for records in [[no.clone(), yes.clone()], [yes, no]] {
            let view = RequestsView::new(&query(0, 1), vec![MemberRequests::of(gone, None)]);
            let answer = RequestsAnswer::new(&query(0, 1), view, records.into(), &RecordsAsked::default());
            assert_eq!((answer.view.verdict, answer.records[0].answered_by), (Verdict::Yes, AccessPoint([2; 32])));
        }
    }

    #[test]
    fn a_record_tells_no_apart_from_no_record_of_that_hour() {
        let hours = [asked_at(90)];
        assert_eq!(answer(85, 95, &hours), (Verdict::Yes, None, 1));
        assert_eq!(answer(0, 59, &hours), (Verdict::No, None, 0), "nothing was asked in that hour");
        assert_eq!(answer(60, 80, &hours), (Verdict::No, None, 0));
        assert_eq!(answer(85, 95, &[]), (Verdict::Unknown, Some(RecordGap::NoRecord), 0), "the hour is not here");
        assert_eq!(answer(24 * 60 + 1, 24 * 60 + 2, &hours), (Verdict::Unknown, Some(RecordGap::NoRecord), 0), "it is not covered");
        assert_eq!(answer(25 * 60 + 1, 25 * 60 + 2, &hours), (Verdict::Unknown, Some(RecordGap::TooRecent), 0));
        assert_eq!(answer(85, 25 * 60, &hours), (Verdict::Yes, Some(RecordGap::NoRecord), 1));
        let (mut three, first, last) = (asked_at(90), asked_at(86), asked_at(104));
        three.merge(&first);
        three.merge(&last);
        assert_eq!(answer(91, 94, &[three]), (Verdict::Unknown, Some(RecordGap::Nearby), 1));
    }

    #[test]
    fn an_hour_that_left_servers_out_says_no_of_none() {
        let mut hour = RequestHour::new(HOUR_0 + 1);
        hour.left_out = 1;
        assert_eq!(answer(85, 95, &[hour]), (Verdict::Unknown, Some(RecordGap::NoRecord), 0));
    }

    #[test]
    fn what_a_log_does_not_say_a_record_does_and_the_member_itself_before_its_replicas() {
        let [here, gone, silent] = [1, 2, 3].map(|number| AccessPoint([number; 32]));
        let made = |uncovered| Some(RequestsMade { requests: 0, lines: Vec::new(), uncovered });
        let members = |of_here| {
            let members = vec![
                MemberRequests::of(here, made(of_here)),
                MemberRequests::of(gone, None),
                MemberRequests::of(silent, made(Some(Uncovered::BeginsLater))),
            ];
            RequestsView::new(&query(0, 1), members)
        };
        let told = |access_point, answered_by, verdict, gap| RecordTold {
            access_point,
            answered_by,
            gone_at: None,
            verdict,
            hours: Vec::new(),
            gap,
        };
        let none = Some(RecordGap::NoRecord);
        let all = RecordsAsked { owners: [gone, silent].into(), ..RecordsAsked::default() };
        let records = vec![
            told(gone, silent, Verdict::Unknown, none),
            told(gone, here, Verdict::No, None),
            told(silent, here, Verdict::No, None),
            told(silent, silent, Verdict::No, None),
            told(here, gone, Verdict::Yes, None),
        ];
        let answer = RequestsAnswer::new(&query(0, 1), members(None), records.clone(), &all);
        assert_eq!(answer.view.verdict, Verdict::No, "the log of who is here counts, not a copy of its record");
        assert_eq!(answer.records.len(), 2);
        assert_eq!(answer.record_of(&gone).unwrap().answered_by, here);
        assert_eq!(answer.record_of(&silent).unwrap().answered_by, silent);
        assert_eq!(RequestsAnswer::new(&query(0, 1), members(Some(Uncovered::Killed)), records, &all).view.verdict, Verdict::Yes);
        assert_eq!(RequestsAnswer::new(&query(0, 1), members(None), Vec::new(), &all).view.verdict, Verdict::Unknown);
        let json = serde_json::to_value(&answer).unwrap();
        assert_eq!(json["verdict"], "no");
        assert_eq!(serde_json::from_value::<RequestsAnswer>(json).unwrap(), answer);
    }

    /// The verdict on a member that is gone, and why no record says it.
    fn of_gone(records: Vec<RecordTold>, asked: &RecordsAsked) -> (Verdict, Option<RecordMissing>) {
        let gone = AccessPoint([7; 32]);
        let view = RequestsView::new(&query(0, 1), vec![MemberRequests::of(gone, None)]);
        let answer = RequestsAnswer::new(&query(0, 1), view, records, asked);
        (answer.view.verdict, answer.missing_of(&gone).map(|missing| missing.record))
    }

    #[test]
    fn no_record_not_asked_and_no_answer_are_told_apart_and_no_answer_takes_a_copys_no_back() {
        let [gone, replica, mute] = [7, 8, 9].map(|number| AccessPoint([number; 32]));
        let told =
            |verdict, gap| vec![RecordTold { access_point: gone, answered_by: replica, gone_at: None, verdict, hours: Vec::new(), gap }];
        let owners: BTreeSet<_> = [gone].into();
        let all = RecordsAsked { owners: owners.clone(), ..RecordsAsked::default() };
        let few = RecordsAsked { unanswered: [mute].into(), ..all.clone() };
        let none = RecordsAsked::default();
        let no_record = Some(RecordGap::NoRecord);
        assert_eq!(of_gone(Vec::new(), &all), (Verdict::Unknown, Some(RecordMissing::NotKept)));
        assert_eq!(of_gone(told(Verdict::Unknown, no_record), &all), (Verdict::Unknown, Some(RecordMissing::NotKept)));
        assert_eq!(of_gone(Vec::new(), &few), (Verdict::Unknown, Some(RecordMissing::NoAnswer)));
        assert_eq!(of_gone(told(Verdict::Unknown, no_record), &few), (Verdict::Unknown, Some(RecordMissing::NoAnswer)));
        assert_eq!(of_gone(Vec::new(), &none), (Verdict::Unknown, Some(RecordMissing::TooMany)));
        assert_eq!(of_gone(told(Verdict::No, None), &all), (Verdict::No, None));
        assert_eq!(of_gone(told(Verdict::No, None), &few), (Verdict::Unknown, Some(RecordMissing::NoAnswer)), "the other may know of one");
        assert_eq!(of_gone(told(Verdict::Yes, None), &few), (Verdict::Yes, None));
        assert_eq!(of_gone(told(Verdict::Unknown, Some(RecordGap::TooRecent)), &all), (Verdict::Unknown, None), "its record says why");
    }

    #[test]
    fn who_was_not_asked_is_named_with_the_reason() {
        let [here, gone, away] = [1, 7, 9].map(|number| AccessPoint([number; 32]));
        let made = |requests, uncovered| Some(RequestsMade { requests, lines: Vec::new(), uncovered });
        let answer = |of_here| {
            let members = vec![MemberRequests::of(here, of_here), MemberRequests::of(gone, None), MemberRequests::of(away, None)];
            let absent = [(gone, Some(WallTime(5))), (away, None)].into();
            let view = RequestsView::new(&query(0, 1), members);
            RequestsAnswer::new(&query(0, 1), view, Vec::new(), &RecordsAsked { absent, ..RecordsAsked::default() })
        };
        let found = answer(made(1, None));
        let of = |answer: &RequestsAnswer, member| answer.missing_of(&member).map(|of| (of.was_asked, of.gone_at, of.record));
        assert_eq!(of(&found, gone), Some((false, Some(WallTime(5)), RecordMissing::NotNeeded)));
        assert_eq!(of(&found, away), Some((false, None, RecordMissing::NotNeeded)));
        let early = answer(made(0, Some(Uncovered::TooRecent)));
        assert_eq!(of(&early, here), Some((true, None, RecordMissing::TooRecent)));
        let json = serde_json::to_value(&early).unwrap();
        assert_eq!(json["unknown"].as_array().map(Vec::len), Some(3));
        assert_eq!(serde_json::from_value::<RequestsAnswer>(json).unwrap(), early);
    }
}
