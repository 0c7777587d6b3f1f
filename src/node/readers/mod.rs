//! Questions of readers: how each is answered, which are refused, and who asks another member for them.
//!
//! A reader is a program that is no member, which asks over the network, or somebody on this machine, who asks by the API.

pub(super) mod public;
pub(super) mod relay;
mod requests;

use crate::io::swarm::{SwarmCommand, SwarmHandle};
use crate::node::query::{NoProbesError, Reply};
use nearcrawl_model::{
    exported::ExportedRows, ids::Ticket, message::PublicResponse, opt_out::OptOutView, server_rows::ServerRows, survey_probes::SurveyProbes,
};

/// Who waits for an answer.
#[derive(Debug)]
pub enum Asker<T> {
    /// A program that is no member.
    Reader(Ticket),
    /// Somebody on this machine.
    Local(Reply<T>),
}

/// What is told to programs that are no members, too.
pub trait PublicAnswer {
    /// As it is sent to them.
    fn response(self) -> PublicResponse;
}

impl<T: PublicAnswer> Asker<T> {
    /// Gives the answer to who asked.
    pub fn answer(self, swarm: Option<&SwarmHandle>, answer: T) {
        match self {
            Asker::Reader(ticket) => respond(swarm, ticket, answer.response()),
            // Whoever has stopped waiting is no error.
            Asker::Local(reply) => drop(reply.send(answer)),
        }
    }

    /// What gives it the answer when it is there.
    pub fn answering(self, swarm: Option<SwarmHandle>) -> impl FnOnce(T) {
        move |answer| self.answer(swarm.as_ref(), answer)
    }
}

/// Answers a program that is no member.
pub fn respond(swarm: Option<&SwarmHandle>, ticket: Ticket, response: PublicResponse) {
    let told = swarm.is_some_and(|swarm| swarm.tell(SwarmCommand::AnswerPublic { ticket, response }).is_ok());
    if !told {
        tracing::debug!("a reader was not answered, because the swarm task is busy or has ended");
    }
}

impl PublicAnswer for Result<ServerRows, String> {
    fn response(self) -> PublicResponse {
        self.map_or_else(PublicResponse::Refused, PublicResponse::ServerRows)
    }
}

impl PublicAnswer for Result<ExportedRows, String> {
    fn response(self) -> PublicResponse {
        self.map_or_else(PublicResponse::Refused, PublicResponse::ExportedRows)
    }
}

impl PublicAnswer for Result<SurveyProbes, NoProbesError> {
    fn response(self) -> PublicResponse {
        self.map_or_else(|why| PublicResponse::Refused(why.to_string()), |probes| PublicResponse::SurveyProbes(Box::new(probes)))
    }
}

impl PublicAnswer for Result<OptOutView, String> {
    fn response(self) -> PublicResponse {
        let written = self.and_then(|view| serde_json::to_string(&view).map_err(|why| why.to_string()));
        written.map_or_else(PublicResponse::Refused, PublicResponse::OptOut)
    }
}
