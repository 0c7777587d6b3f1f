//! Results without a daemon of one's own: a request to any member of the swarm, over the public protocol.

use crate::io::swarm::{AskError, ask_public};
use nearcrawl_model::{
    message::{PublicRequest, PublicResponse},
    summary::SwarmResults,
};
use std::time::Duration;

/// How long a member may take to answer, connecting included.
pub const MEMBER_TIMEOUT: Duration = Duration::from_secs(20);

/// Why a member did not answer with its results.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoResults {
    /// The address cannot be one of a member's.
    #[error("{address:?} is not a member's address: {reason}")]
    BadAddress {
        /// As it was given.
        address: String,
        /// What is wrong.
        reason: String,
    },
    /// There was no answer.
    #[error("the member at {address} {failure}")]
    NoAnswer {
        /// Who was asked.
        address: String,
        /// What happened instead, as the end of a sentence.
        failure: String,
    },
    /// The member refuses to answer.
    #[error("the member at {address} refused: {reason}")]
    Refused {
        /// Who was asked.
        address: String,
        /// What it says, without control characters.
        reason: String,
    },
}

/// The results of a swarm, from the member at this multiaddr; a reader need not be one.
pub async fn results_of_member(address: &str, patience: Duration) -> Result<SwarmResults, NoResults> {
    let address = address.trim();
    let bad = |reason: String| NoResults::BadAddress { address: address.chars().take(200).collect(), reason };
    let parsed: libp2p::Multiaddr = address.parse().map_err(|_| bad("it is no multiaddr".to_owned()))?;
    if parsed.is_empty() {
        return Err(bad("it is empty".to_owned()));
    }
    match ask_public(address, PublicRequest::Results, patience).await {
        Ok(PublicResponse::Results(results)) => Ok(*results),
        Ok(other) => Err(refused(address, other)),
        Err(failure) => Err(no_answer(address, &failure)),
    }
}

/// The member answers with something else, or says why it does not.
pub fn refused(address: &str, response: PublicResponse) -> NoResults {
    let reason = match response {
        // It came from somewhere on the network and goes to a terminal.
        PublicResponse::Refused(reason) => reason.chars().filter(|c| !c.is_control()).take(300).collect(),
        _ => "it answers another question".to_owned(),
    };
    NoResults::Refused { address: address.to_owned(), reason }
}

/// There was no answer, because of that.
pub fn no_answer(address: &str, failure: &AskError) -> NoResults {
    NoResults::NoAnswer { address: address.to_owned(), failure: words(failure) }
}

/// What happened, as the end of "the member at … ".
fn words(failure: &AskError) -> String {
    match failure {
        AskError::TimedOut => "did not answer in time".to_owned(),
        AskError::ConnectionLost => "closed the connection before it answered".to_owned(),
        AskError::Dropped => "dropped the question without an answer".to_owned(),
        AskError::TooManyOpen | AskError::Stopping => "was not asked".to_owned(),
        AskError::Broken(why) => format!("sent a broken message: {why}"),
        AskError::Unreachable(why) => format!("cannot be reached: {why}"),
        AskError::NotLetIn(_) | AskError::NotSpoken => failure.to_string(),
    }
}

#[cfg(test)]
mod tests;
