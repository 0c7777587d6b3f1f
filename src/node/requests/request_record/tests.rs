//! Tests of records of requests in a store, and of what replicas are sent.

use super::*;
use crate::io::{request_log::RequestKind, store::StoreConfig};
use nearcrawl_model::{
    request_hour::{RequestHour, hour_of},
    request_record::RecordGap,
    requests_made::{RequestsQuery, Verdict},
};
use std::path::Path;

fn ap(number: u8) -> AccessPoint {
    AccessPoint([number; 32])
}

fn open(directory: &Path) -> Store {
    Store::open(directory, &StoreConfig::default()).unwrap().0
}

/// So many hours ago.
fn ago(hours: u64) -> WallTime {
    WallTime(clock::now().wall.0 - hours * HOUR)
}

fn line(at: WallTime) -> RequestLine {
    RequestLine {
        asked_at: at,
        kind: RequestKind::Page,
        reason: "link".to_owned(),
        host: "a.ke".to_owned(),
        address: "192.0.2.1".parse().ok(),
        bytes: Some(9),
        ..RequestLine::default()
    }
}

fn around(at: WallTime) -> RequestsQuery {
    RequestsQuery { address: "192.0.2.1".parse().unwrap(), from: WallTime(at.0 - 1_000), until: WallTime(at.0 + 1_000) }
}

async fn told(record: &RequestRecord, owner: AccessPoint, at: WallTime) -> Option<RecordedRequests> {
    record.tell(&RecordsQuery { owners: vec![owner], query: around(at) }).await.pop()
}

/// A replica that takes what it is sent, and counts messages and hours.
async fn replica(record: RequestRecord, mut asked: mpsc::Receiver<PeerQuestion>) -> (usize, usize) {
    let (mut messages, mut hours) = (0, 0);
    while let Some(PeerQuestion { request, reply, .. }) = asked.recv().await {
        messages += 1;
        let answer = match request {
            Request::CompareRecord(range) => Some(record.compare(ap(1), &range).await),
            Request::KeepRecord(parcel) => {
                hours += parcel.hours.len();
                record.keep(ap(1), *parcel).await
            }
            other => panic!("{other:?}"),
        };
        let _ = reply.send(answer);
    }
    (messages, hours)
}

#[tokio::test]
async fn a_record_outlasts_restarts_and_its_replica_tells_of_it_when_its_owner_is_gone() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at = ago(5);
    let store = open(here.path());
    let record = RequestRecord::begin(store.clone(), ap(1), true).await.unwrap();
    record.add(&line(at));
    record.end().await;
    store.close().await;
    drop((record, store));

    let store = open(here.path());
    let record = RequestRecord::begin(store.clone(), ap(1), true).await.unwrap();
    let own = told(&record, ap(1), at).await.unwrap();
    assert_eq!((own.verdict, own.hours[0].requests, own.hours[0].reasons.as_slice()), (Verdict::Yes, 1, &["link".to_owned()][..]));
    assert!(told(&record, ap(2), at).await.is_none(), "nothing is here of another member");

    let (asking, asked) = mpsc::channel(4);
    let copies = RequestRecord::begin(open(there.path()), ap(2), true).await.unwrap();
    let serving = tokio::spawn(replica(copies.clone(), asked));
    record.replicas([ap(2)].into());
    let (mut deliveries, now) = (Deliveries::new(600_000), clock::now());
    record.send(now, &asking, &mut deliveries, false).await;
    record.send(now, &asking, &mut deliveries, false).await;
    drop((asking, record));
    assert_eq!(serving.await.unwrap(), (2, 1), "asked what it has, then sent it, once");
    let copy = told(&copies, ap(1), at).await.unwrap();
    assert_eq!((copy.verdict, copy.hours), (Verdict::Yes, own.hours));
    let before = told(&copies, ap(1), ago(10)).await.unwrap();
    assert_eq!((before.verdict, before.gap), (Verdict::Unknown, Some(RecordGap::NoRecord)), "no record of that hour is kept");
}

#[tokio::test]
async fn what_is_no_record_and_what_is_over_is_not_kept() {
    let directory = tempfile::tempdir().unwrap();
    let record = RequestRecord::begin(open(directory.path()), ap(2), false).await.unwrap();
    let parcel = |hours| RecordParcel { covered: Spans::default(), asked: Spans::default(), hours };
    let hour = hour_of(ago(5));
    let refused = record.keep(ap(1), parcel(vec![(hour, vec![1, 2, 3])])).await;
    assert!(matches!(refused, Some(Response::Refused(_))), "{refused:?}");
    assert_eq!(record.refusals()[1].1, 1);
    let fine = RequestHour::new(hour);
    let kept = record.keep(ap(1), parcel(vec![(hour, fine.pack())])).await;
    assert_eq!(kept, Some(Response::RecordKept([hour].into_iter().collect())));
    assert_eq!(record.limits()[1].used, 2, "its own and this one");
    record.0.kept.expire(hour + 1).await.unwrap();
    assert!(record.limits()[1].used == 1 && told(&record, ap(1), ago(5)).await.is_none());
}

#[tokio::test]
async fn a_replica_keeps_what_a_later_copy_of_an_hour_leaves_out_and_knows_which_copy_came_last() {
    let directory = tempfile::tempdir().unwrap();
    let at = ago(5);
    let asked = |address: &str| AskedServer { at, address: address.parse().unwrap(), rule: "link", host: "a.ke".parse().ok(), bytes: 9 };
    let hour = |address| {
        let mut hour = RequestHour::new(hour_of(at));
        hour.add(&asked(address));
        hour.pack()
    };
    let store = open(directory.path());
    let record = RequestRecord::begin(store.clone(), ap(2), true).await.unwrap();
    let (first, later) = (hour("192.0.2.1"), hour("192.0.2.2"));
    for packed in [&first, &later] {
        let parcel = RecordParcel { hours: vec![(hour_of(at), packed.clone())], ..RecordParcel::default() };
        assert!(matches!(record.keep(ap(1), parcel).await, Some(Response::RecordKept(_))));
    }
    assert_eq!(told(&record, ap(1), at).await.unwrap().verdict, Verdict::Yes, "its owner cannot take it back");
    let range = |digest| RecordRange { from: 0, until: hour_of(at) + 1, digest };
    let marks = vec![(hour_of(at), mark_of(&later))];
    assert_eq!(record.compare(ap(1), &range(0)).await, Response::RecordHours(Some(marks.clone())));
    let digest = nearcrawl_model::request_hour::digest_of(marks.into_iter());
    assert_eq!(record.compare(ap(1), &range(digest)).await, Response::RecordHours(None));
    assert_eq!(record.compare(ap(3), &range(digest)).await, Response::RecordHours(Some(Vec::new())));
    store.close().await;
    drop((record, store));
    let record = RequestRecord::begin(open(directory.path()), ap(2), true).await.unwrap();
    assert_eq!(told(&record, ap(1), at).await.unwrap().verdict, Verdict::Yes);
}

#[tokio::test]
async fn a_replica_that_is_busy_once_is_asked_again_soon_and_one_that_refuses_is_sent_something() {
    for (answer, messages) in [(None, 1), (Some(Response::Refused("no".to_owned())), 2)] {
        let directory = tempfile::tempdir().unwrap();
        let record = RequestRecord::begin(open(directory.path()), ap(1), true).await.unwrap();
        record.replicas([ap(2)].into());
        let (asking, mut asked) = mpsc::channel::<PeerQuestion>(4);
        let serving = tokio::spawn(async move {
            let mut kinds = Vec::new();
            while let Some(PeerQuestion { request, reply, .. }) = asked.recv().await {
                let compares = matches!(request, Request::CompareRecord(_));
                kinds.push(compares);
                let _ = reply.send(if compares { answer.clone() } else { None });
            }
            kinds
        });
        let (mut deliveries, now) = (Deliveries::new(600_000), clock::now());
        record.send(now, &asking, &mut deliveries, false).await;
        let later = Now { moment: now.moment.after(600_000), wall: now.wall };
        record.send(later, &asking, &mut deliveries, false).await;
        drop(asking);
        let kinds = serving.await.unwrap();
        assert!(kinds[0] && kinds[messages] == (messages == 1), "{kinds:?}");
    }
}

/// "Too recent" would say that it may come.
#[tokio::test]
async fn of_the_time_before_the_process_its_own_record_says_that_none_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let record = RequestRecord::begin(open(directory.path()), ap(1), true).await.unwrap();
    let before = WallTime(clock::now().wall.0 - 60_000);
    let own = told(&record, ap(1), before).await.unwrap();
    assert_eq!((own.verdict, own.gap), (Verdict::Unknown, Some(RecordGap::NoRecord)));
    let ahead = WallTime(clock::now().wall.0 + HOUR);
    assert_eq!(told(&record, ap(1), ahead).await.unwrap().gap, Some(RecordGap::TooRecent));
}

#[test]
fn what_could_not_be_stored_is_tried_again_in_a_minute_however_often_copies_are_sent() {
    for every in [1_000, 600_000] {
        let mut times = StoreTimes { stored: None, at: Moment(5) };
        assert!(times.is_due(7, Moment(5)));
        times.tried(false, 7, Moment(5), every);
        assert!(!times.is_due(7, Moment(60_004)) && !times.is_due(8, Moment(60_004)) && times.is_due(7, Moment(60_005)), "{every}");
        times.tried(true, 7, Moment(60_005), every);
        assert!(!times.is_due(7, Moment(60_004 + every)) && times.is_due(8, Moment(60_006)) && times.is_due(7, Moment(60_005 + every)));
    }
}
