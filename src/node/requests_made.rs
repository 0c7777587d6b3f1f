//! Finds out whether the swarm made a request to an address at a certain time.
//!
//! Each member searches its own log of requests; who is asked asks all of them.

use super::{
    clock,
    peer_transfers::{self, PeerQuestion},
    query::Reply,
};
use crate::io::{
    request_log::{RequestLog, Writing, search},
    swarm::{SwarmCommand, SwarmHandle},
};
use futures::{StreamExt, stream};
use nearcrawl_model::{
    access_point::AccessPoint,
    address::AddressPolicy,
    ids::Ticket,
    message::{MAX_MESSAGE, PublicResponse, Request, Response},
    requests_made::{MAX_MADE, MemberRequests, RequestsMade, RequestsQuery, RequestsView, Uncovered},
};
use std::{
    net::IpAddr,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Members that are asked at the same time.
const AT_ONCE: usize = 16;

/// How long a member may take, and all of them together: less than who asked waits.
const EACH_WITHIN: Duration = Duration::from_secs(6);
const ALL_WITHIN: Duration = Duration::from_secs(8);

/// How long a member waits for its turn before it is told to ask again, and how many may wait.
const WAITS: Duration = Duration::from_secs(3);
const MAX_WAITING: usize = 16;

/// Questions of programs that are no members: so many under way at once, so many after a rest, and one more each so often. Each has all members
/// search, and together they are to leave members' own questions most of the time.
const READERS_AT_ONCE: usize = 2;
const READERS_BURST: u32 = 4;
const READERS_EACH: Duration = Duration::from_secs(30);

/// An answer to a reader is shorter, in bytes: what it is wrapped in has room within a message.
const MAX_TOLD: usize = MAX_MESSAGE - (16 << 10);

/// After a search nothing is searched for so many times as long as it took.
const RESTS: u32 = 4;

/// Who asked.
pub enum RequestsAsker {
    /// Somebody on this machine.
    Here(Reply<RequestsView>),
    /// A program that is no member.
    Reader(Ticket),
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

/// How many questions of programs that are no members are passed on: others than those of members and of somebody here have a place of their own.
#[derive(Debug)]
pub struct ReaderTurns {
    at_once: Arc<Semaphore>,
    /// When as many as after a rest may be asked again.
    rested_at: Instant,
    refused: u64,
}

impl ReaderTurns {
    /// After a rest.
    pub fn new(now: Instant) -> ReaderTurns {
        ReaderTurns { at_once: Arc::new(Semaphore::new(READERS_AT_ONCE)), rested_at: now, refused: 0 }
    }

    /// The turn of a question, to be held until it is answered; none if there are too many, which is counted.
    pub fn take(&mut self, now: Instant) -> Option<OwnedSemaphorePermit> {
        let rested_at = self.rested_at.max(now) + READERS_EACH;
        let turn = if rested_at <= now + READERS_EACH * READERS_BURST { Arc::clone(&self.at_once).try_acquire_owned().ok() } else { None };
        match turn {
            Some(_) => self.rested_at = rested_at,
            None => self.refused += 1,
        }
        turn
    }

    /// Questions that had no turn.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

/// Why a reader is told nothing of this address, whatever there is: what members ask in private networks is their operators' concern.
pub fn untold(address: IpAddr) -> Option<&'static str> {
    let is_public = AddressPolicy::default().check_ip(address).is_ok();
    (!is_public).then_some("requests to private and other special-purpose addresses are told to members only")
}

impl Searches {
    /// In the log in this directory, with what writes to it; none if no log is kept.
    pub fn new(log: Option<(PathBuf, Option<RequestLog>)>) -> Searches {
        Searches { log, turn: Arc::new(Semaphore::new(1)), waiting: Arc::new(Semaphore::new(MAX_WAITING)) }
    }

    /// For a member; none if it is to ask again.
    pub async fn for_member(self, query: RequestsQuery) -> Option<RequestsMade> {
        let _waits = Arc::clone(&self.waiting).try_acquire_owned().ok()?;
        // In the order in which they came: who asks often has no more turns than who asks once.
        let turn = tokio::time::timeout(WAITS, Arc::clone(&self.turn).acquire_owned()).await.ok()?.ok()?;
        self.search(query, turn).await
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
        let rest = begun.elapsed() * RESTS;
        tokio::spawn(async move {
            tokio::time::sleep(rest).await;
            drop(turn);
        });
        match found.ok()? {
            Ok(found) => Some(found.told(MAX_MADE)),
            Err(why) => {
                tracing::warn!("the log of requests cannot be read: {why}");
                Some(RequestsMade { requests: 0, lines: Vec::new(), uncovered: Some(Uncovered::NoLog) })
            }
        }
    }
}

/// Asks all members, those that are alive: the others do not answer.
pub async fn of_all(
    searches: Searches,
    asking: mpsc::Sender<PeerQuestion>,
    me: AccessPoint,
    members: Vec<(AccessPoint, bool)>,
    query: RequestsQuery,
) -> RequestsView {
    let deadline = tokio::time::Instant::now() + ALL_WITHIN;
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

/// Gives an answer to who asked.
pub fn answer(swarm: Option<&SwarmHandle>, asker: RequestsAsker, view: RequestsView) {
    match asker {
        // Whoever has stopped waiting is no error.
        RequestsAsker::Here(reply) => drop(reply.send(view)),
        RequestsAsker::Reader(ticket) => {
            let response = PublicResponse::RequestsMade(Box::new(view.fitting(MAX_TOLD)));
            let told = swarm.is_some_and(|swarm| swarm.tell(SwarmCommand::AnswerPublic { ticket, response }).is_ok());
            if !told {
                tracing::debug!("a reader was not answered, because the swarm task is busy or has ended");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::{
        requests_made::{MadeRequest, Verdict},
        time::WallTime,
    };

    const QUERY: RequestsQuery =
        RequestsQuery { address: std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), from: WallTime(0), until: WallTime(1) };

    #[tokio::test]
    async fn members_that_are_gone_or_keep_no_log_make_it_unknown() {
        let (asking, mut asked) = mpsc::channel::<PeerQuestion>(4);
        let [me, other, gone] = [1, 2, 3].map(|number| AccessPoint([number; 32]));
        let answering = tokio::spawn(async move {
            let question = asked.recv().await.unwrap();
            assert_eq!((question.to, &question.request), (other, &Request::RequestsMade(QUERY)));
            let made = RequestsMade { requests: 0, lines: Vec::new(), uncovered: None };
            question.reply.send(Some(Response::RequestsMade(Box::new(made)))).unwrap();
        });
        let view = of_all(Searches::new(None), asking, me, vec![(me, true), (other, true), (gone, false)], QUERY).await;
        answering.await.unwrap();
        assert_eq!(view.verdict, Verdict::Unknown);
        assert_eq!(view.silent().collect::<Vec<_>>(), [gone]);
        let own = view.members.iter().find(|member| member.access_point == me).unwrap();
        assert_eq!((own.verdict, own.uncovered), (Verdict::Unknown, Some(Uncovered::NoLog)));
    }

    /// All members search for each of them.
    #[test]
    fn readers_questions_are_few_and_the_others_are_counted() {
        let start = Instant::now();
        let mut turns = ReaderTurns::new(start);
        let held: Vec<_> = std::iter::from_fn(|| turns.take(start)).collect();
        assert_eq!((held.len(), turns.refused()), (READERS_AT_ONCE, 1), "at once");
        drop(held);
        let more = std::iter::from_fn(|| turns.take(start).map(drop)).count();
        assert_eq!((more, turns.refused()), (READERS_BURST as usize - READERS_AT_ONCE, 2), "one after the other");
        assert!(turns.take(start + READERS_EACH / 2).is_none());
        let later = start + READERS_EACH;
        assert!(turns.take(later).is_some() && turns.take(later).is_none());
    }

    #[test]
    fn readers_hear_nothing_of_private_networks() {
        for address in ["10.1.2.3", "127.0.0.1", "192.168.1.1", "100.64.0.1", "169.254.1.1", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1"]
        {
            assert!(untold(address.parse().unwrap()).is_some(), "{address}");
        }
        assert!(untold("8.8.8.8".parse().unwrap()).is_none() && untold("2606:4700::1111".parse().unwrap()).is_none());
    }

    #[tokio::test]
    async fn a_reader_gets_an_answer_that_fits_into_a_message() {
        let line =
            MadeRequest { asked_at: WallTime(5), reason: "second-try".to_owned(), host: format!("{}.ke", "a".repeat(60)).parse().ok() };
        let made = RequestsMade { requests: 100, lines: vec![line; MAX_MADE], uncovered: None };
        let members = (0..250).map(|number| MemberRequests::of(AccessPoint([number; 32]), Some(made.clone()))).collect();
        let view = RequestsView::new(&QUERY, members);
        let length = |view: RequestsView| postcard::to_stdvec(&PublicResponse::RequestsMade(Box::new(view))).unwrap().len();
        assert!(length(view.clone()) > MAX_MESSAGE && length(view.fitting(MAX_TOLD)) < MAX_MESSAGE);
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
