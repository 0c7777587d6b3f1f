//! Queries of people and programs to the loop: a bounded queue, each query with a channel for its answer.
//!
//! The API asks by the [`QueryHandle`]; the node's loop takes queries from the receiver and gives them to [`handler::QueryHandler`].

mod deferred;
pub(crate) mod handler;
pub(crate) mod seeding;

use nearcrawl_model::{
    access_point::AccessPoint,
    admission::{AdmissionView, SignedAdmission},
    allowance::AllowanceView,
    cross_table::{CrossTableView, Pair},
    distinct::DistinctView,
    exported::{ExportQuery, ExportedRows},
    opt_out::{OptOutKey, OptOutView},
    request_record::RequestsAnswer,
    requests_made::RequestsQuery,
    server_rows::{RowsOf, ServerOwner, ServerRows},
    subnet::Subnet,
    summary::SwarmResults,
    survey::{SurveyPlan, SurveyRef, SurveyState, SurveyView},
    survey_probes::SurveyProbes,
    time::Millis,
    url::{Host, PageUrl},
    view::{
        DeclaredLostView, EventsView, LeaveView, MeasuredTransfer, MemberView, MoveView, OwnershipView, PinView, RefusedSeed, SeedView,
        ServersPage, StatusView, Subject, WhyView,
    },
};
use std::time::Duration;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

/// Queries that may wait at once; the sender of a further one waits for a place.
pub const MAX_WAITING: usize = 64;

/// How long a caller waits for an answer.
pub const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Where the answer to a query goes. A caller that has stopped waiting is no error: ignore what `send` returns.
pub type Reply<T> = oneshot::Sender<T>;

/// How the allowance stands after a pause or its end, or why that could not be stored.
pub type PauseReply = Result<AllowanceView, String>;

/// Where a survey goes, or why there is none.
pub type SurveyReply = Reply<Result<SurveyView, String>>;

/// Where what was probed for a survey goes, or why there is no answer.
pub type ProbesReply = Reply<Result<SurveyProbes, NoProbesError>>;

/// Why it is not told what was probed for a survey.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoProbesError {
    /// There is no such survey, or it has no sample.
    #[error("{0}")]
    NoSample(String),
    /// The member does not answer.
    #[error("{0}")]
    NoAnswer(String),
}

/// Why nothing was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeasureError {
    /// It is asked of itself.
    #[error("this is the daemon that is asked: name another member")]
    Oneself,
    /// No such member is alive.
    #[error("it does not answer")]
    Silent,
    /// Which hierarchy is in use here is not known yet.
    #[error("the hierarchy is not known yet")]
    Starting,
    /// Nothing may be measured now, and why not.
    #[error("{0}")]
    Refused(&'static str),
    /// No manifest came.
    #[error("it does not answer, it uses another hierarchy, or its bytes of today are spent")]
    NoFile,
    /// It has the file no more.
    #[error("it does not have the hierarchy's file any more")]
    Gone,
    /// Of a file of less than a whole piece nothing is measured but round trips.
    #[error("the hierarchy's file is smaller than one piece ({0} bytes): nothing can be measured by it")]
    TooSmall(u64),
    /// What came is not what the manifest says.
    #[error("it sends other bytes than its manifest says")]
    WrongBytes,
}

/// Where it goes how many bytes came from a member, or why none was measured.
pub type MeasureReply = Reply<Result<MeasuredTransfer, MeasureError>>;

/// Where the member goes that a certificate or an expulsion is about, or why it is not taken in.
pub type AdmissionReply = Reply<Result<AccessPoint, String>>;

/// Where an opt-out goes, or why there is none.
pub type OptOutReply = Reply<Result<OptOutView, String>>;

/// The queries that a node answers, each with the channel for its answer. Their texts were parsed before: a query is well-formed.
///
/// A query is written here, at its route in [`super::api`], and in [`handler::QueryHandler::answer`], which matches all of them.
#[derive(Debug)]
pub enum Query {
    /// Its identity, its state and its counters.
    Status(Reply<StatusView>),
    /// The members that it knows.
    Members(Reply<Vec<MemberView>>),
    /// The owners of the subnets, in the order of the subnets.
    Ownership {
        /// Those after this one; from the first one, if none.
        after: Option<Subnet>,
        /// At most so many.
        limit: usize,
        /// Where the rows are sent.
        reply: Reply<Vec<OwnershipView>>,
    },
    /// The totals of the swarm, as far as they are known here.
    Results(Reply<SwarmResults>),
    /// How many different hosts, domains and addresses the swarm has, as far as members told it: they are asked once more.
    Distinct(Reply<DistinctView>),
    /// The totals of the swarm by two dimensions: the members are asked for them.
    CrossTable {
        /// The dimensions.
        by: Pair,
        /// Where the table is sent.
        reply: Reply<CrossTableView>,
    },
    /// Why something is crawled by whom, and when.
    Why {
        /// What is asked about.
        subject: Subject,
        /// Where the explanation is sent.
        reply: Reply<WhyView>,
    },
    /// The same by what a member knows; or why there is no answer, as a sentence.
    WhyAt {
        /// What is asked about.
        subject: Subject,
        /// The member: this one, or another, which is asked.
        of: AccessPoint,
        /// Where the explanation is sent.
        reply: Reply<Result<WhyView, String>>,
    },
    /// The delegations and hand-overs that ended here lately.
    Events(Reply<EventsView>),
    /// Add starting points.
    AddSeeds {
        /// The starting points, in canonical form.
        urls: Vec<PageUrl>,
        /// Where it is sent which of them were accepted.
        reply: Reply<SeedView>,
    },
    /// The servers on record, in the order of their names.
    Servers {
        /// Those after this one; from the first one, if none.
        after: Option<Host>,
        /// At most so many.
        limit: usize,
        /// Where the rows are sent, with the host to go on after.
        reply: Reply<ServersPage>,
    },
    /// The members that have servers on record.
    ServerOwners(Reply<Vec<ServerOwner>>),
    /// The servers that a member has on record, or their runs, as many as one answer takes; or why there is no answer, as a sentence.
    ServerRows {
        /// Which of both.
        rows: RowsOf,
        /// The member: this one, or another, which is asked.
        of: AccessPoint,
        /// Those behind this one; from the first one, if none.
        after: Option<Host>,
        /// Where the rows are sent.
        reply: Reply<Result<ServerRows, String>>,
    },
    /// Pages or links that a member has on record, as many rows as one answer takes; or why there is no answer, as a sentence.
    Export {
        /// The member: this one, or another, which is asked.
        of: AccessPoint,
        /// Which rows.
        query: ExportQuery,
        /// Where the rows are sent.
        reply: Reply<Result<ExportedRows, String>>,
    },
    /// Whether any member made such requests: all are asked.
    RequestsMade {
        /// Which.
        query: RequestsQuery,
        /// Where it is sent what they say.
        reply: Reply<RequestsAnswer>,
    },
    /// All surveys, without their lists.
    Surveys(Reply<Vec<SurveyView>>),
    /// A survey with its list, or why there is none, as a sentence.
    Survey {
        /// What it is called.
        which: SurveyRef,
        /// Where it is sent.
        reply: SurveyReply,
    },
    /// What a member's probes of a survey's sample came to; or why there is no answer, as a sentence.
    SurveyProbes {
        /// What the survey is called.
        which: SurveyRef,
        /// The member: this one, or another, which is asked.
        of: AccessPoint,
        /// Where it is sent.
        reply: ProbesReply,
    },
    /// Make a survey; or why it may not be made, as a sentence.
    MakeSurvey {
        /// What is to be studied.
        plan: Box<SurveyPlan>,
        /// Where the survey is sent when it is stored.
        reply: SurveyReply,
    },
    /// Pause, resume or end a survey; or why it may not be changed, as a sentence.
    ChangeSurvey {
        /// What it is called.
        name: String,
        /// What it is to be.
        state: SurveyState,
        /// Where the survey is sent when that is stored.
        reply: SurveyReply,
    },
    /// Ask no server anything for so long, in milliseconds, or until it is resumed.
    Pause {
        /// For how long; none until it is resumed.
        length: Option<Millis>,
        /// Where it is sent how it stands, when that is stored.
        reply: Reply<PauseReply>,
    },
    /// Go on after a pause.
    Resume(Reply<PauseReply>),
    /// Who may be a member, by what is known here.
    Admission(Reply<AdmissionView>),
    /// Take in a certificate or an expulsion, and tell all members; or why not, as a sentence.
    GiveAdmission {
        /// What was signed.
        signed: Box<SignedAdmission>,
        /// Where it is sent whom it is about, when it is stored.
        reply: AdmissionReply,
    },
    /// All opt-outs.
    OptOuts(Reply<Vec<OptOutView>>),
    /// Have nothing asked of a server any more, or have it asked again; or why that may not be, as a sentence.
    SayOptOut {
        /// Which, and by which proof.
        key: OptOutKey,
        /// Whether nothing is to be asked.
        stops: bool,
        /// Where the opt-out is sent when that is stored.
        reply: OptOutReply,
    },
    /// Leave the swarm for good: release all subnets, then end.
    Leave(Reply<LeaveView>),
    /// Members will not come back: they are not needed for decisions any more.
    DeclareLost {
        /// Who.
        members: Vec<AccessPoint>,
        /// Where it is sent which of them were refused.
        reply: Reply<DeclaredLostView>,
    },
    /// Measure the connection to a member, or why that cannot be done.
    Measure {
        /// The member.
        of: AccessPoint,
        /// How many bytes are fetched from it, at most.
        bytes: u64,
        /// Where it is sent how many came.
        reply: MeasureReply,
    },
    /// Keep a subnet here, or let it move again.
    Pin {
        /// The subnet.
        subnet: Subnet,
        /// Whether it is to stay.
        pinned: bool,
        /// Where it is sent whether it is so.
        reply: Reply<PinView>,
    },
    /// Hand a subnet over to another member.
    Move {
        /// The subnet to be handed over.
        subnet: Subnet,
        /// The member that is to own it.
        to: AccessPoint,
        /// Where it is sent whether the hand-over has begun.
        reply: Reply<MoveView>,
    },
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The loop has ended.
    #[error("the daemon is stopping")]
    Closed,
    /// The loop is busy.
    #[error("the daemon is too busy to answer")]
    TooBusy,
}

/// The sending half of the queue of queries; clones ask the same node.
#[derive(Clone, Debug)]
pub struct QueryHandle {
    queries: mpsc::Sender<Query>,
    patience: Duration,
}

impl QueryHandle {
    /// A handle, and what the loop takes queries from.
    pub fn new() -> (QueryHandle, mpsc::Receiver<Query>) {
        let (queries, receiver) = mpsc::channel(MAX_WAITING);
        (QueryHandle { queries, patience: QUERY_TIMEOUT }, receiver)
    }

    /// The same handle with another time limit for answers.
    pub fn with_patience(self, patience: Duration) -> QueryHandle {
        QueryHandle { patience, ..self }
    }

    /// Sends the query that `query` makes of the answer's channel, and waits for the answer.
    pub async fn ask<T>(&self, query: impl FnOnce(Reply<T>) -> Query) -> Result<T, QueryError> {
        let (reply, answer) = oneshot::channel();
        let asking = async {
            self.queries.send(query(reply)).await.map_err(|_| QueryError::Closed)?;
            answer.await.map_err(|_| QueryError::Closed)
        };
        timeout(self.patience, asking).await.map_err(|_| QueryError::TooBusy)?
    }

    /// Names starting points. Texts that are no URLs are refused here and do not reach the loop.
    pub async fn add_seeds(&self, texts: &[String]) -> Result<SeedView, QueryError> {
        let mut urls = Vec::new();
        let mut refused = Vec::new();
        for text in texts {
            match PageUrl::parse(text) {
                Ok(url) => urls.push(url),
                Err(why) => {
                    let url = text.chars().take(200).collect();
                    refused.push(RefusedSeed { url, reason_text: format!("{why}; write it in full, like https://example.org/") });
                }
            }
        }
        let mut view = SeedView::default();
        if !urls.is_empty() {
            view = self.ask(|reply| Query::AddSeeds { urls, reply }).await?;
        }
        view.refused.append(&mut refused);
        Ok(view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_node_that_ended_says_so_and_a_busy_one_is_given_up() {
        let (queries, receiver) = QueryHandle::new();
        let queries = queries.with_patience(Duration::from_millis(20));
        assert_eq!(queries.ask(Query::Members).await, Err(QueryError::TooBusy));
        drop(receiver);
        assert_eq!(queries.ask(Query::Members).await, Err(QueryError::Closed));
    }

    #[tokio::test]
    async fn texts_that_are_no_urls_are_refused_without_asking_the_loop() {
        let (queries, mut receiver) = QueryHandle::new();
        let answering = tokio::spawn(async move {
            let Some(Query::AddSeeds { urls, reply }) = receiver.recv().await else { panic!("another query") };
            assert_eq!(urls, vec![PageUrl::parse("http://a.test/").unwrap()]);
            reply.send(SeedView { accepted: 1, ..SeedView::default() }).unwrap();
            receiver
        });
        let view = queries.add_seeds(&["a.test".into(), "http://a.test".into()]).await.unwrap();
        assert_eq!(view.accepted, 1);
        assert_eq!(view.refused[0].url, "a.test");
        assert!(view.refused[0].reason_text.contains("https://example.org/"), "{}", view.refused[0].reason_text);

        let mut receiver = answering.await.unwrap();
        let view = queries.add_seeds(&["mailto:x@a.test".into()]).await.unwrap();
        assert_eq!((view.accepted, view.refused.len()), (0, 1));
        assert!(receiver.try_recv().is_err(), "the loop was asked although nothing was left to ask");
    }
}
