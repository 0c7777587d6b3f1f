//! What went wrong in libp2p, in words for people: its own errors nest, over several lines, and do not say what to do.

use libp2p::swarm::DialError;
use std::error::Error;

/// Addresses of one member whose failures are told; it has four at most.
const MAX_TOLD: usize = 4;

/// Of another side's or the system's words about a failure no more is repeated, in characters.
const MAX_REASON: usize = 200;

/// The text of the innermost error that has one: libp2p's own wrappers print nothing, or the whole chain.
pub(super) fn innermost(error: &dyn Error) -> String {
    let mut said = error.to_string();
    let mut inner = error.source();
    while let Some(error) = inner {
        let text = error.to_string();
        said = if text.is_empty() { said } else { text };
        inner = error.source();
    }
    said.lines().last().unwrap_or_default().chars().take(MAX_REASON).collect()
}

/// Why no connection could be made, and what to do about it.
pub(super) fn dial_reason(error: &DialError) -> String {
    match error {
        DialError::Transport(failures) => {
            let mut told: Vec<String> = failures.iter().take(MAX_TOLD).map(|(_, failure)| advised(&innermost(failure))).collect();
            told.dedup();
            if told.is_empty() { "none of its addresses can be dialled from here".to_owned() } else { told.join("; ") }
        }
        DialError::WrongPeerId { obtained, .. } => {
            format!("the member there has another peer id, {obtained}: correct what follows /p2p/ in the address")
        }
        DialError::LocalPeerId { .. } => "this access point itself answers there: name another member".to_owned(),
        DialError::NoAddresses => "no address is known".to_owned(),
        DialError::Aborted => "the attempt was called off".to_owned(),
        DialError::DialPeerConditionFalse(_) => "it is connected already, or being connected".to_owned(),
        DialError::Denied { cause } => format!("this access point refuses the connection: {}", innermost(cause)),
    }
}

/// A reason with what to do about it.
fn advised(reason: &str) -> String {
    let says = |words: &[&str]| words.iter().any(|word| reason.contains(word));
    // The resolver appends the whole question to this answer; the address says the name.
    let reason = reason.split(" for Query").next().unwrap_or(reason);
    let advice = if says(&["refused"]) {
        return "nothing listens at that port (connection refused): is its daemon running, and this its port?".to_owned();
    } else if says(&["imeout", "imed out", "unreachable"]) {
        "is the machine up, its port open, and the pre-shared key the same?"
    } else if says(&["record found", "records found"]) {
        return format!("there is no such name ({reason}): is it spelled rightly?");
    } else if says(&["lookup", "resolve"]) {
        "do name servers answer this machine, and is the name spelled rightly?"
    } else if says(&["os error"]) {
        "this is what the system says"
    } else {
        "is this a member of this version, and the pre-shared key the same?"
    };
    format!("{reason}; {advice}")
}

#[cfg(test)]
mod tests {
    use super::advised;

    #[test]
    fn a_name_that_does_not_exist_is_asked_for_and_no_key() {
        let said = advised("no records found for Query { name: Name(\"nope.invalid.\"), query_type: A, query_class: IN }");
        assert_eq!(said, "there is no such name (no records found): is it spelled rightly?");
    }

    #[test]
    fn what_is_not_understood_is_asked_for_version_and_key() {
        assert_eq!(advised("invalid data"), "invalid data; is this a member of this version, and the pre-shared key the same?");
    }
}
