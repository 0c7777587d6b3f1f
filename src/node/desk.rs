//! Where do people ask? At the desk: a bounded queue of questions, each with a way for its answer to come back.
//!
//! The API stands in front of it, the node's loop behind it: it takes [`Asked`] values from the receiver, looks, and answers.

use crate::model::{
    access_point::AccessPoint,
    subnet::Subnet,
    url::{Host, PageUrl},
    view::{LeaveView, MoveView, OwnershipView, PeerView, RefusedSeed, ResultsView, SeedView, ServersPage, StatusView, Subject, WhyView},
};
use std::time::Duration;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

/// Questions that may wait at once; who asks one more waits for room.
pub const MOST_WAITING: usize = 64;

/// How long an asker waits for an answer.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// What people can ask of a node. Whatever they typed was checked before: a question is well-formed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Who are you and what are you doing?
    Status,
    /// Whom do you know?
    Peers,
    /// Whose are the subnets after this one, in order, at most so many?
    Ownership {
        /// From the first one, if none.
        after: Option<Subnet>,
        /// At most.
        most: usize,
    },
    /// What does the swarm know so far?
    Results,
    /// Why is this crawled by whom, and when?
    Why(Subject),
    /// Please start from these.
    AddSeeds(Vec<PageUrl>),
    /// Which servers do you have on record after this one, in order, at most so many?
    Servers {
        /// From the first one, if none.
        after: Option<Host>,
        /// At most.
        most: usize,
    },
    /// Please leave the swarm for good: give everything back, then end.
    Leave,
    /// Please hand this subnet over to that access point.
    Move(Subnet, AccessPoint),
}

/// What the loop answers: the variant of the same name as the question's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To [`Question::Status`].
    Status(Box<StatusView>),
    /// To [`Question::Peers`].
    Peers(Vec<PeerView>),
    /// To [`Question::Ownership`].
    Ownership(Vec<OwnershipView>),
    /// To [`Question::Results`].
    Results(Box<ResultsView>),
    /// To [`Question::Why`].
    Why(Box<WhyView>),
    /// To [`Question::AddSeeds`].
    Seeds(SeedView),
    /// To [`Question::Servers`].
    Servers(ServersPage),
    /// To [`Question::Leave`]: it has begun.
    Leaving(LeaveView),
    /// To [`Question::Move`]: whether it has begun.
    Moving(MoveView),
}

/// A question on the desk, with the way back. An asker who went away is no error: ignore what `send` returns.
pub type Asked = (Question, oneshot::Sender<Answer>);

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeskFailure {
    /// The loop has ended.
    #[error("the daemon is stopping")]
    Closed,
    /// The loop is busy.
    #[error("the daemon is too busy to answer")]
    TooBusy,
    /// The loop answered another question.
    #[error("the daemon answered something else than it was asked")]
    WrongAnswer,
}

/// The asker's side of the desk; clones ask at the same desk.
#[derive(Clone, Debug)]
pub struct Desk {
    questions: mpsc::Sender<Asked>,
    patience: Duration,
}

impl Desk {
    /// A desk, and what the loop takes questions from.
    pub fn new() -> (Desk, mpsc::Receiver<Asked>) {
        let (questions, receiver) = mpsc::channel(MOST_WAITING);
        (Desk { questions, patience: PATIENCE }, receiver)
    }

    /// The same desk with another patience.
    pub fn with_patience(self, patience: Duration) -> Desk {
        Desk { patience, ..self }
    }

    /// Asks anything.
    pub async fn ask(&self, question: Question) -> Result<Answer, DeskFailure> {
        let (reply, answer) = oneshot::channel();
        let asking = async {
            self.questions.send((question, reply)).await.map_err(|_| DeskFailure::Closed)?;
            answer.await.map_err(|_| DeskFailure::Closed)
        };
        timeout(self.patience, asking).await.map_err(|_| DeskFailure::TooBusy)?
    }

    /// Who it is and what it does.
    pub async fn status(&self) -> Result<StatusView, DeskFailure> {
        match self.ask(Question::Status).await? {
            Answer::Status(status) => Ok(*status),
            _ => Err(DeskFailure::WrongAnswer),
        }
    }

    /// Whom it knows.
    pub async fn peers(&self) -> Result<Vec<PeerView>, DeskFailure> {
        match self.ask(Question::Peers).await? {
            Answer::Peers(peers) => Ok(peers),
            _ => Err(DeskFailure::WrongAnswer),
        }
    }

    /// Whose the subnets after `after` are, at most `most` of them.
    pub async fn ownership(&self, after: Option<Subnet>, most: usize) -> Result<Vec<OwnershipView>, DeskFailure> {
        match self.ask(Question::Ownership { after, most }).await? {
            Answer::Ownership(claims) => Ok(claims),
            _ => Err(DeskFailure::WrongAnswer),
        }
    }

    /// What the swarm knows so far.
    pub async fn results(&self) -> Result<ResultsView, DeskFailure> {
        match self.ask(Question::Results).await? {
            Answer::Results(results) => Ok(*results),
            _ => Err(DeskFailure::WrongAnswer),
        }
    }

    /// Why something is crawled by whom, and when.
    pub async fn why(&self, subject: Subject) -> Result<WhyView, DeskFailure> {
        match self.ask(Question::Why(subject)).await? {
            Answer::Why(why) => Ok(*why),
            _ => Err(DeskFailure::WrongAnswer),
        }
    }

    /// Names starting points. Texts that are no URLs are refused here and do not reach the loop.
    pub async fn add_seeds(&self, texts: &[String]) -> Result<SeedView, DeskFailure> {
        let mut urls = Vec::new();
        let mut refused = Vec::new();
        for text in texts {
            match PageUrl::parse(text) {
                Ok(url) => urls.push(url),
                Err(why) => {
                    let url = text.chars().take(200).collect();
                    refused.push(RefusedSeed { url, why: format!("{why}; write it in full, like https://example.org/") });
                }
            }
        }
        let mut view = SeedView::default();
        if !urls.is_empty() {
            view = match self.ask(Question::AddSeeds(urls)).await? {
                Answer::Seeds(view) => view,
                _ => return Err(DeskFailure::WrongAnswer),
            };
        }
        view.refused.append(&mut refused);
        Ok(view)
    }

    /// The servers on record after `after`, at most `most` of them.
    pub async fn servers(&self, after: Option<Host>, most: usize) -> Result<ServersPage, DeskFailure> {
        match self.ask(Question::Servers { after, most }).await? {
            Answer::Servers(page) => Ok(page),
            _ => Err(DeskFailure::WrongAnswer),
        }
    }

    /// Asks it to hand a subnet over.
    pub async fn hand_over(&self, subnet: Subnet, to: AccessPoint) -> Result<MoveView, DeskFailure> {
        match self.ask(Question::Move(subnet, to)).await? {
            Answer::Moving(view) => Ok(view),
            _ => Err(DeskFailure::WrongAnswer),
        }
    }

    /// Asks it to leave the swarm for good.
    pub async fn leave(&self) -> Result<LeaveView, DeskFailure> {
        match self.ask(Question::Leave).await? {
            Answer::Leaving(view) => Ok(view),
            _ => Err(DeskFailure::WrongAnswer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_closed_desk_says_so_and_a_busy_one_gives_up() {
        let (desk, receiver) = Desk::new();
        let desk = desk.with_patience(Duration::from_millis(20));
        assert_eq!(desk.peers().await, Err(DeskFailure::TooBusy));
        drop(receiver);
        assert_eq!(desk.peers().await, Err(DeskFailure::Closed));
    }

    #[tokio::test]
    async fn another_answer_than_asked_for_is_not_passed_off_as_one() {
        let (desk, mut receiver) = Desk::new();
        let answering = tokio::spawn(async move {
            let (question, reply) = receiver.recv().await.unwrap();
            assert_eq!(question, Question::Peers);
            reply.send(Answer::Leaving(LeaveView { released: 1 })).unwrap();
        });
        assert_eq!(desk.peers().await, Err(DeskFailure::WrongAnswer));
        answering.await.unwrap();
    }

    #[tokio::test]
    async fn texts_that_are_no_urls_are_refused_without_asking_the_loop() {
        let (desk, mut receiver) = Desk::new();
        let answering = tokio::spawn(async move {
            let (question, reply) = receiver.recv().await.unwrap();
            assert_eq!(question, Question::AddSeeds(vec![PageUrl::parse("http://a.test/").unwrap()]));
            reply.send(Answer::Seeds(SeedView { accepted: 1, refused: vec![] })).unwrap();
            receiver
        });
        let view = desk.add_seeds(&["a.test".into(), "http://a.test".into()]).await.unwrap();
        assert_eq!(view.accepted, 1);
        assert_eq!(view.refused[0].url, "a.test");
        assert!(view.refused[0].why.contains("https://example.org/"), "{}", view.refused[0].why);

        let mut receiver = answering.await.unwrap();
        let view = desk.add_seeds(&["mailto:x@a.test".into()]).await.unwrap();
        assert_eq!((view.accepted, view.refused.len()), (0, 1));
        assert!(receiver.try_recv().is_err(), "the loop was asked although nothing was left to ask");
    }
}
