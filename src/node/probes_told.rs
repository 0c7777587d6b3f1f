//! Answers about the members' probes of a survey's sample: a member is asked for its own, for a reader.

use crate::io::swarm::{SwarmCommand, SwarmHandle};
use crate::node::query::{NoProbesError, ProbesReply};
use nearcrawl_model::{ids::Ticket, message::PublicResponse, survey_probes::SurveyProbes};

/// Who asked.
pub enum ProbesAsker {
    /// Somebody on this machine.
    Here(ProbesReply),
    /// A program that is no member.
    Reader(Ticket),
}

/// Gives an answer to who asked.
pub fn answer(swarm: Option<&SwarmHandle>, asker: ProbesAsker, probes: Result<SurveyProbes, NoProbesError>) {
    match asker {
        // Whoever has stopped waiting is no error.
        ProbesAsker::Here(reply) => drop(reply.send(probes)),
        ProbesAsker::Reader(ticket) => {
            let refused = |why: NoProbesError| PublicResponse::Refused(why.to_string());
            let response = probes.map_or_else(refused, |probes| PublicResponse::SurveyProbes(Box::new(probes)));
            let told = swarm.is_some_and(|swarm| swarm.tell(SwarmCommand::AnswerPublic { ticket, response }).is_ok());
            if !told {
                tracing::debug!("a reader was not answered, because the swarm task is busy or has ended");
            }
        }
    }
}
