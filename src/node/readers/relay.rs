//! Asks other members for readers: a few at a time, and nobody while the bytes among members are spent.

use crate::io::swarm::SwarmMeter;
use crate::node::{
    query::{MeasureError, NoProbesError},
    transfers::peer_transfers::{self, PeerQuestion},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    exported::{ExportQuery, ExportedRows},
    message::{Request, Response},
    server_rows::{RowsOf, ServerRows},
    survey::SurveyId,
    survey_probes::SurveyProbes,
    url::Host,
    view::{Subject, WhyView},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Readers' questions that are passed on to other members at once.
const MAX_RELAYED: usize = 8;

/// Questions of programs that are no members which all members are asked: so many under way at once, so many after a rest, and one more each so
/// often. Each has all members search, and together they are to leave members' own questions most of the time.
const MAX_SEARCHES: usize = 2;
const SEARCHES_BURST: u32 = 4;
const SEARCHES_EACH: Duration = Duration::from_secs(30);

/// Why no member is asked for a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RelayError {
    /// The operator's limit is reached.
    #[error("{}", self.why())]
    Spent,
    /// So many questions of readers are passed on already.
    #[error("{}", self.why())]
    ManyReaders,
    /// All members were asked for readers so often lately.
    #[error("{}", self.why())]
    ManySearches,
}

impl RelayError {
    /// The sentence that readers hear.
    pub fn why(self) -> &'static str {
        match self {
            RelayError::Spent => {
                "its bytes of today among members are spent (allowance.swarm_per_day); ask another member, or again tomorrow"
            }
            RelayError::ManyReaders => "too many readers ask at once; ask again in a second",
            RelayError::ManySearches => "too many readers ask about requests; ask again in a minute, or another member",
        }
    }
}

impl From<RelayError> for String {
    fn from(why: RelayError) -> String {
        why.why().to_owned()
    }
}

impl From<RelayError> for NoProbesError {
    fn from(why: RelayError) -> NoProbesError {
        NoProbesError::NoAnswer(why.into())
    }
}

impl From<RelayError> for MeasureError {
    fn from(why: RelayError) -> MeasureError {
        MeasureError::Refused(why.why())
    }
}

/// How many questions of readers are passed on, and whether any is.
#[derive(Debug)]
pub struct Relay {
    /// The bytes among members; none in a process that is no member.
    meter: Option<Arc<SwarmMeter>>,
    at_once: Arc<Semaphore>,
    searches: Arc<Semaphore>,
    /// When as many searches as after a rest may begin again.
    rested_at: Instant,
    refused_searches: u64,
}

impl Relay {
    /// After a rest.
    pub fn new(meter: Option<Arc<SwarmMeter>>, now: Instant) -> Relay {
        let (at_once, searches) = (Arc::new(Semaphore::new(MAX_RELAYED)), Arc::new(Semaphore::new(MAX_SEARCHES)));
        Relay { meter, at_once, searches, rested_at: now, refused_searches: 0 }
    }

    /// Whether nothing large is to be sent to members: the operator's limit is reached.
    pub fn is_spent(&self) -> bool {
        self.meter.as_ref().is_some_and(|meter| meter.is_spent())
    }

    /// The turn of a question that a member is asked for somebody here or elsewhere, to be held until it has answered.
    ///
    /// # Errors
    /// The bytes among members are spent, or too many are asked.
    pub fn turn(&self) -> Result<OwnedSemaphorePermit, RelayError> {
        if self.is_spent() {
            return Err(RelayError::Spent);
        }
        Arc::clone(&self.at_once).try_acquire_owned().map_err(|_| RelayError::ManyReaders)
    }

    /// The turn of a program's question that all members are asked, to be held until they have answered: such questions have a place of their own
    /// beside those of members and of somebody here.
    ///
    /// # Errors
    /// The bytes among members are spent, or there are too many such questions, which is counted.
    pub fn search_turn(&mut self, now: Instant) -> Result<OwnedSemaphorePermit, RelayError> {
        if self.is_spent() {
            return Err(RelayError::Spent);
        }
        let rested_at = self.rested_at.max(now) + SEARCHES_EACH;
        let has_rested = rested_at <= now + SEARCHES_EACH * SEARCHES_BURST;
        let turn = if has_rested { Arc::clone(&self.searches).try_acquire_owned().ok() } else { None };
        match turn {
            Some(_) => self.rested_at = rested_at,
            None => self.refused_searches += 1,
        }
        turn.ok_or(RelayError::ManySearches)
    }

    /// Questions for all members that had no turn, because there were too many.
    pub fn refused_searches(&self) -> u64 {
        self.refused_searches
    }
}

/// Why there is nothing to tell of a member that was asked.
pub fn silent(of: AccessPoint) -> String {
    format!("{} does not answer", of.short())
}

/// Asks a member for the servers that it has on record, or their runs.
pub async fn rows(asking: mpsc::Sender<PeerQuestion>, of: AccessPoint, rows: RowsOf, after: Option<Host>) -> Result<ServerRows, String> {
    let request = match rows {
        RowsOf::Servers => Request::ServerRows(after),
        RowsOf::History => Request::HistoryRows(after),
    };
    match peer_transfers::ask(&asking, of, request).await {
        Some(Response::ServerRows(rows)) => Ok(rows),
        Some(Response::Refused(why)) => Err(format!("{} {why}", of.short())),
        _ => Err(silent(of)),
    }
}

/// Asks a member what its probes of a survey's sample came to.
pub async fn probes(asking: mpsc::Sender<PeerQuestion>, of: AccessPoint, survey: SurveyId) -> Result<SurveyProbes, NoProbesError> {
    let why = match peer_transfers::ask(&asking, of, Request::SurveyProbes(survey)).await {
        // Whoever is asked speaks for itself.
        Some(Response::SurveyProbes(Some(probes))) => return Ok(SurveyProbes { access_point: of, ..*probes }),
        Some(Response::SurveyProbes(None)) => format!("{} does not know the survey yet", of.short()),
        _ => silent(of),
    };
    Err(NoProbesError::NoAnswer(why))
}

/// Asks a member why something is crawled by whom.
pub async fn why(asking: mpsc::Sender<PeerQuestion>, of: AccessPoint, subject: Subject) -> Result<WhyView, String> {
    match peer_transfers::ask(&asking, of, Request::Why(subject.to_string())).await {
        Some(Response::Why(said)) => serde_json::from_str(&said).map_err(|_| format!("{} says what cannot be understood", of.short())),
        Some(Response::Refused(why)) => Err(format!("{} refuses: {why}", of.short())),
        _ => Err(silent(of)),
    }
}

/// Asks a member for pages or links of its journals.
pub async fn export(asking: mpsc::Sender<PeerQuestion>, of: AccessPoint, query: ExportQuery) -> Result<ExportedRows, String> {
    match peer_transfers::ask(&asking, of, Request::ExportRows(query)).await {
        Some(Response::ExportedRows(rows)) => Ok(rows),
        Some(Response::Refused(why)) => Err(format!("{} refuses: {why}", of.short())),
        _ => Err(silent(of)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_questions_are_passed_on_at_once_and_none_while_the_bytes_among_members_are_spent() {
        let meter: Arc<SwarmMeter> = Arc::default();
        let mut relay = Relay::new(Some(Arc::clone(&meter)), Instant::now());
        let held: Vec<_> = std::iter::from_fn(|| relay.turn().ok()).collect();
        assert_eq!((held.len(), relay.turn().err()), (MAX_RELAYED, Some(RelayError::ManyReaders)));
        assert!(relay.search_turn(Instant::now()).is_ok(), "searches have a place of their own");
        drop(held);
        meter.spend(true);
        assert_eq!(relay.turn().err(), Some(RelayError::Spent));
        assert_eq!(relay.search_turn(Instant::now()).err(), Some(RelayError::Spent));
        meter.spend(false);
        assert!(relay.turn().is_ok() && relay.refused_searches() == 0);
    }

    /// All members search for each of them.
    #[test]
    fn programs_questions_for_all_members_are_few_and_the_others_are_counted() {
        let start = Instant::now();
        let mut relay = Relay::new(None, start);
        let held: Vec<_> = std::iter::from_fn(|| relay.search_turn(start).ok()).collect();
        assert_eq!((held.len(), relay.refused_searches()), (MAX_SEARCHES, 1), "at once");
        drop(held);
        let more = std::iter::from_fn(|| relay.search_turn(start).ok().map(drop)).count();
        assert_eq!((more, relay.refused_searches()), (SEARCHES_BURST as usize - MAX_SEARCHES, 2), "one after the other");
        assert!(relay.search_turn(start + SEARCHES_EACH / 2).is_err());
        let later = start + SEARCHES_EACH;
        assert!(relay.search_turn(later).is_ok() && relay.search_turn(later).is_err());
    }
}
