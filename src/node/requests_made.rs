//! Did the swarm make a request to an address at a certain time? Each member searches its own log of requests; who is asked asks all of them.

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
    ids::Ticket,
    message::{PublicResponse, Request, Response},
    requests_made::{MAX_MADE, MemberRequests, RequestsMade, RequestsQuery, RequestsView, Uncovered},
};
use std::{
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
}

impl Searches {
    /// In the log in this directory, with what writes to it; none if no log is kept.
    pub fn new(log: Option<(PathBuf, Option<RequestLog>)>) -> Searches {
        Searches { log, turn: Arc::new(Semaphore::new(1)) }
    }

    /// For a member; none if it is to ask again.
    pub async fn for_member(self, query: RequestsQuery) -> Option<RequestsMade> {
        let turn = Arc::clone(&self.turn).try_acquire_owned().ok()?;
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
            let response = PublicResponse::RequestsMade(Box::new(view));
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
    use nearcrawl_model::{requests_made::Verdict, time::WallTime};

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

    #[tokio::test]
    async fn members_are_answered_one_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let searches = Searches::new(Some((directory.path().to_owned(), None)));
        let turn = Arc::clone(&searches.turn).try_acquire_owned().unwrap();
        assert_eq!(searches.clone().for_member(QUERY).await, None);
        drop(turn);
        assert!(searches.for_member(QUERY).await.is_some());
    }
}
