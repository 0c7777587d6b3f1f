//! Finds out whether the swarm made a request to an address at a certain time.
//!
//! Each member searches its own log of requests; who is asked asks all of them. Where a log does not say, and of members that do not answer or
//! are gone, all are asked in turn what the records of requests say that they have: their own, and copies.

use crate::io::request_log::{RequestLog, Writing, search};
use crate::node::{
    clock,
    requests::request_record::RequestRecord,
    transfers::peer_transfers::{self, PeerQuestion},
};
use futures::{StreamExt, stream};
use nearcrawl_model::{
    access_point::AccessPoint,
    message::{Request, Response},
    request_record::{MAX_OWNERS, RecordTold, RecordedRequests, RecordsAsked, RecordsQuery, RequestsAnswer},
    requests_made::{MAX_MADE, MemberRequests, RequestsMade, RequestsQuery, RequestsView, Uncovered, Verdict},
    time::WallTime,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Members that are asked at the same time.
const AT_ONCE: usize = 16;

/// How long a member may take to search its log, and all of them together.
const EACH_WITHIN: Duration = Duration::from_secs(5);
const LOGS_WITHIN: Duration = Duration::from_secs(6);

/// And with the records: less than who asked waits.
const ALL_WITHIN: Duration = Duration::from_secs(8);

/// How long a member waits for its turn before it is told to ask again, and how many may wait.
const WAITS: Duration = Duration::from_secs(3);
const MAX_WAITING: usize = 16;

/// After a search nothing is searched for so many times as long as it took.
const RESTS: u32 = 4;

/// Whom to ask for what.
#[derive(Clone, Debug)]
pub struct Inquiry {
    /// Who asks.
    pub me: AccessPoint,
    /// The members that may have made such a request, and whether they are alive.
    pub members: Vec<(AccessPoint, bool)>,
    /// When those parted that are members no more.
    pub gone: BTreeMap<AccessPoint, WallTime>,
    /// Which requests.
    pub query: RequestsQuery,
}

impl Inquiry {
    /// What is known if nobody answers.
    pub fn unanswered(self) -> RequestsAnswer {
        let members: BTreeSet<_> = self.members.into_iter().map(|(member, _)| member).collect();
        let silent = members.iter().map(|member| MemberRequests::of(*member, None)).collect();
        let asked = RecordsAsked { owners: members.clone(), unanswered: members, ..RecordsAsked::default() };
        RequestsAnswer::new(&self.query, RequestsView::new(&self.query, silent), Vec::new(), &asked)
    }
}

/// The log of requests of this access point, to be searched: one search at a time, with a rest after it. Clones are the same.
#[derive(Clone, Debug)]
pub struct Searches {
    /// None if there is no log.
    log: Option<(PathBuf, Option<RequestLog>)>,
    turn: Arc<Semaphore>,
    /// Members that may wait for it.
    waiting: Arc<Semaphore>,
}

impl Searches {
    /// In the log in this directory, with what writes to it; none if no log is kept.
    pub fn new(log: Option<(PathBuf, Option<RequestLog>)>) -> Searches {
        Searches { log, turn: Arc::new(Semaphore::new(1)), waiting: Arc::new(Semaphore::new(MAX_WAITING)) }
    }

    /// For a member; none if it is to ask again.
    pub async fn for_member(self, query: RequestsQuery) -> Option<RequestsMade> {
        let turn = self.turn().await?;
        self.search(query, turn).await
    }

    /// Does for a member what takes the disk's time, one after another; none if it is to ask again.
    pub async fn in_turn<T>(self, work: impl Future<Output = T>) -> Option<T> {
        let (turn, begun) = (self.turn().await?, Instant::now());
        let done = work.await;
        rest(turn, begun);
        Some(done)
    }

    async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        let _waits = Arc::clone(&self.waiting).try_acquire_owned().ok()?;
        // In the order in which they came: who asks often has no more turns than who asks once.
        tokio::time::timeout(WAITS, Arc::clone(&self.turn).acquire_owned()).await.ok()?.ok()
    }

    /// For somebody here, who waits.
    async fn own(self, query: RequestsQuery) -> Option<RequestsMade> {
        let turn = Arc::clone(&self.turn).acquire_owned().await.ok()?;
        self.search(query, turn).await
    }

    async fn search(self, query: RequestsQuery, turn: OwnedSemaphorePermit) -> Option<RequestsMade> {
        let Some((directory, writer)) = self.log else {
            return Some(RequestsMade { requests: 0, lines: Vec::new(), uncovered: Some(Uncovered::NoLog) });
        };
        let begun = Instant::now();
        let writing = Writing { now: clock::now().wall, unwritten: writer.map_or(0, |writer| writer.unwritten()) };
        let found = tokio::task::spawn_blocking(move || search(&directory, &query, &writing)).await;
        rest(turn, begun);
        match found.ok()? {
            Ok(found) => Some(found.told(MAX_MADE)),
            Err(why) => {
                tracing::warn!("the log of requests cannot be read: {why}");
                Some(RequestsMade { requests: 0, lines: Vec::new(), uncovered: Some(Uncovered::NoLog) })
            }
        }
    }
}

/// Lets the next one have its turn some time after the work that began then.
fn rest(turn: OwnedSemaphorePermit, begun: Instant) {
    let rest = begun.elapsed() * RESTS;
    tokio::spawn(async move {
        tokio::time::sleep(rest).await;
        drop(turn);
    });
}

/// What all members say: by their logs, and where these do not say by the records that they have.
pub async fn of_all(
    searches: Searches,
    record: Option<RequestRecord>,
    asking: mpsc::Sender<PeerQuestion>,
    inquiry: Inquiry,
) -> RequestsAnswer {
    let deadline = tokio::time::Instant::now() + ALL_WITHIN;
    let Inquiry { me, members, gone, query } = inquiry;
    let view = by_logs(searches, asking.clone(), me, members.clone(), query).await;
    let absent = members.iter().filter(|(member, is_alive)| *member != me && !is_alive);
    let absent = absent.map(|(member, _)| (*member, gone.get(member).copied())).collect();
    let mut asked = RecordsAsked { absent, ..RecordsAsked::default() };
    let unsure = view.members.iter().filter(|member| member.verdict == Verdict::Unknown && member.uncovered != Some(Uncovered::TooRecent));
    let owners: Vec<_> = unsure.map(|member| member.access_point).take(MAX_OWNERS).collect();
    if owners.is_empty() || view.verdict == Verdict::Yes {
        return RequestsAnswer::new(&query, view, Vec::new(), &asked);
    }
    asked.owners = owners.iter().copied().collect();
    let wanted = RecordsQuery { owners, query };
    let others = members.into_iter().filter(|(member, is_alive)| *member != me && *is_alive).map(|(member, _)| {
        let (asking, request) = (asking.clone(), Request::Records(Box::new(wanted.clone())));
        async move {
            let said = tokio::time::timeout_at(deadline, peer_transfers::ask(&asking, member, request)).await;
            let said = if let Ok(Some(Response::Records(said))) = said { Some(said) } else { None };
            (member, said)
        }
    });
    let here = async {
        let Some(record) = record else { return (me, Some(Vec::new())) };
        (me, tokio::time::timeout_at(deadline, record.tell(&wanted)).await.ok())
    };
    let (here, others) = tokio::join!(here, stream::iter(others).buffer_unordered(AT_ONCE).collect::<Vec<_>>());
    let mut records = Vec::new();
    for (answered_by, said) in std::iter::once(here).chain(others) {
        let Some(said) = said else {
            asked.unanswered.insert(answered_by);
            continue;
        };
        for RecordedRequests { owner, verdict, hours, gap } in said.into_iter().filter(|said| asked.owners.contains(&said.owner)) {
            records.push(RecordTold { access_point: owner, answered_by, gone_at: gone.get(&owner).copied(), verdict, hours, gap });
        }
    }
    RequestsAnswer::new(&query, view, records, &asked)
}

/// Asks all members for what their logs say, those that are alive: the others do not answer.
async fn by_logs(
    searches: Searches,
    asking: mpsc::Sender<PeerQuestion>,
    me: AccessPoint,
    members: Vec<(AccessPoint, bool)>,
    query: RequestsQuery,
) -> RequestsView {
    let deadline = tokio::time::Instant::now() + LOGS_WITHIN;
    let (alive, gone): (Vec<_>, Vec<_>) = members.into_iter().filter(|(member, _)| *member != me).partition(|(_, alive)| *alive);
    let others = stream::iter(alive).map(|(member, _)| {
        let asked = other(asking.clone(), member, query);
        async move {
            let within = tokio::time::timeout(EACH_WITHIN, asked);
            let made = tokio::time::timeout_at(deadline, within).await;
            MemberRequests::of(member, made.ok().and_then(Result::ok).flatten())
        }
    });
    let own = async {
        let made = tokio::time::timeout_at(deadline, searches.own(query)).await;
        MemberRequests::of(me, made.ok().flatten())
    };
    let (own, others) = tokio::join!(own, others.buffer_unordered(AT_ONCE).collect::<Vec<_>>());
    let gone = gone.into_iter().map(|(member, _)| MemberRequests::of(member, None));
    RequestsView::new(&query, std::iter::once(own).chain(others).chain(gone).collect())
}

async fn other(asking: mpsc::Sender<PeerQuestion>, member: AccessPoint, query: RequestsQuery) -> Option<RequestsMade> {
    match peer_transfers::ask(&asking, member, Request::RequestsMade(query)).await {
        Some(Response::RequestsMade(made)) => Some(*made),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::request_record::{RecordGap, RecordMissing, UnknownMember};

    const QUERY: RequestsQuery =
        RequestsQuery { address: std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), from: WallTime(0), until: WallTime(1) };

    fn recorded(owner: AccessPoint, verdict: Verdict, gap: Option<RecordGap>) -> RecordedRequests {
        RecordedRequests { owner, verdict, hours: Vec::new(), gap }
    }

    /// Three members, of which one is gone; the other says this of its log and of the records that it has.
    async fn asked_of_all(made: Option<RequestsMade>, records: Option<Vec<RecordedRequests>>) -> RequestsAnswer {
        let (asking, mut asked) = mpsc::channel::<PeerQuestion>(4);
        let [me, other, gone] = [1, 2, 3].map(|number| AccessPoint([number; 32]));
        let answering = tokio::spawn(async move {
            while let Some(PeerQuestion { to, request, reply }) = asked.recv().await {
                assert_eq!(to, other);
                let answer = match request {
                    Request::RequestsMade(query) if query == QUERY => made.clone().map(|made| Response::RequestsMade(Box::new(made))),
                    Request::Records(asked) => {
                        assert!(asked.owners.contains(&gone), "{asked:?}");
                        records.clone().map(Response::Records)
                    }
                    other => panic!("{other:?}"),
                };
                reply.send(answer).unwrap();
            }
        });
        let members = vec![(me, true), (other, true), (gone, false)];
        let inquiry = Inquiry { me, members, gone: [(gone, WallTime(7))].into(), query: QUERY };
        let answer = of_all(Searches::new(None), None, asking, inquiry).await;
        answering.await.unwrap();
        answer
    }

    fn none_made() -> Option<RequestsMade> {
        Some(RequestsMade { requests: 0, lines: Vec::new(), uncovered: None })
    }

    #[tokio::test]
    async fn members_that_are_gone_or_keep_no_log_make_it_unknown() {
        let answer = asked_of_all(none_made(), Some(Vec::new())).await;
        let [me, _, gone] = [1, 2, 3].map(|number| AccessPoint([number; 32]));
        assert!(answer.view.verdict == Verdict::Unknown && answer.records.is_empty());
        assert_eq!(answer.view.silent().collect::<Vec<_>>(), [gone]);
        let own = answer.view.members.iter().find(|member| member.access_point == me).unwrap();
        assert_eq!((own.verdict, own.uncovered), (Verdict::Unknown, Some(Uncovered::NoLog)));
        let of_gone = UnknownMember { access_point: gone, was_asked: false, gone_at: Some(WallTime(7)), record: RecordMissing::NotKept };
        assert_eq!(answer.missing_of(&gone), Some(&of_gone));
    }

    #[tokio::test]
    async fn who_does_not_answer_for_records_is_named_and_nobody_who_is_not_asked() {
        let [me, other, gone] = [1, 2, 3].map(|number| AccessPoint([number; 32]));
        let answer = asked_of_all(none_made(), None).await;
        assert_eq!((answer.view.verdict, answer.missing.unanswered.as_slice()), (Verdict::Unknown, &[other][..]));
        for member in [me, gone] {
            assert_eq!(answer.missing_of(&member).map(|missing| missing.record), Some(RecordMissing::NoAnswer), "{answer:?}");
        }
        // Another member says yes: nobody was asked for records.
        let made = Some(RequestsMade { requests: 1, lines: Vec::new(), uncovered: None });
        let answer = asked_of_all(made, None).await;
        assert_eq!((answer.view.verdict, answer.missing.unanswered.as_slice()), (Verdict::Yes, &[][..]));
        assert_eq!(answer.missing_of(&gone).map(|missing| missing.record), Some(RecordMissing::NotNeeded));
    }

    #[tokio::test]
    async fn a_replica_tells_what_a_member_asked_that_is_gone_and_nothing_of_others() {
        let [me, other, gone] = [1, 2, 3].map(|number| AccessPoint([number; 32]));
        let of_gone = |verdict, gap| vec![recorded(gone, verdict, gap), recorded(other, Verdict::Yes, None)];
        let answer = asked_of_all(none_made(), Some(of_gone(Verdict::Yes, None))).await;
        assert_eq!(answer.view.verdict, Verdict::Yes);
        let [told] = &answer.records[..] else { panic!("{answer:?}") };
        assert_eq!((told.access_point, told.answered_by, told.gone_at), (gone, other, Some(WallTime(7))));
        let mut no = of_gone(Verdict::No, None);
        no.push(recorded(me, Verdict::No, None));
        let answer = asked_of_all(none_made(), Some(no)).await;
        assert_eq!((answer.view.verdict, answer.records.len()), (Verdict::No, 2));
        let answer = asked_of_all(none_made(), Some(of_gone(Verdict::Unknown, Some(RecordGap::NoRecord)))).await;
        assert_eq!((answer.view.verdict, answer.record_of(&gone).unwrap().gap), (Verdict::Unknown, Some(RecordGap::NoRecord)));
    }

    #[tokio::test]
    async fn members_are_answered_one_at_a_time_in_the_order_in_which_they_asked() {
        let directory = tempfile::tempdir().unwrap();
        let searches = Searches::new(Some((directory.path().to_owned(), None)));
        let turn = Arc::clone(&searches.turn).try_acquire_owned().unwrap();
        let all = Arc::clone(&searches.waiting).try_acquire_many_owned(MAX_WAITING as u32).unwrap();
        assert_eq!(searches.clone().for_member(QUERY).await, None, "too many wait");
        drop(all);
        let waiting = tokio::spawn(searches.clone().for_member(QUERY));
        tokio::task::yield_now().await;
        drop(turn);
        assert!(waiting.await.unwrap().is_some());
        assert!(searches.for_member(QUERY).await.is_some());
    }
}
