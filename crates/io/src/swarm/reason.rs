//! Describes errors of libp2p in words for people: its own are nested, take several lines, and do not say what to do.

use super::ways::is_quic;
use libp2p::{core::transport::TransportError, swarm::DialError};
use std::{error::Error, io};

/// Addresses of one member whose failures are told; it has four at most.
const MAX_TOLD: usize = 4;

/// Of another side's or the system's words about a failure no more is repeated, in characters.
const MAX_REASON: usize = 200;

/// That an address leads back, whatever peer id it has.
pub(super) const ITSELF: &str = "this access point itself answers there: name another member";

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
            let mut told: Vec<String> = failures
                .iter()
                .take(MAX_TOLD)
                .map(|(address, failure)| advised(&innermost(failure), Way::of(is_quic(address), failure)))
                .collect();
            told.dedup();
            if told.is_empty() { "none of its addresses can be dialled from here".to_owned() } else { told.join("; ") }
        }
        DialError::WrongPeerId { obtained, .. } => {
            format!("the member there has another peer id, {obtained}: correct what follows /p2p/ in the address")
        }
        DialError::LocalPeerId { .. } => ITSELF.to_owned(),
        DialError::NoAddresses => "no address is known".to_owned(),
        DialError::Aborted => "the attempt was called off".to_owned(),
        DialError::DialPeerConditionFalse(_) => "it is connected already, or being connected".to_owned(),
        DialError::Denied { cause } => format!("this access point refuses the connection: {}", innermost(cause)),
    }
}

/// By which way a connection was tried, and how far it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Its name has no address yet.
    Name,
    /// To a port of TCP.
    Tcp,
    /// To a port of UDP: there is no pre-shared key.
    Quic,
}

impl Way {
    fn of(quic: bool, failure: &TransportError<io::Error>) -> Way {
        // libp2p wraps the error of its resolver in types without a common one, and that of the connection in the same.
        let unresolved = format!("{failure:?}").contains("ResolveError(");
        match quic {
            _ if unresolved => Way::Name,
            true => Way::Quic,
            false => Way::Tcp,
        }
    }
}

/// A reason with what to do about it.
fn advised(reason: &str, way: Way) -> String {
    let says = |words: &[&str]| words.iter().any(|word| reason.contains(word));
    // The resolver appends the whole question to this answer; the address says the name.
    let reason = reason.split(" for Query").next().unwrap_or(reason);
    if says(&["record found", "records found"]) {
        return format!("there is no such name ({reason}): is it spelled rightly?");
    }
    if way == Way::Name {
        return format!("its name could not be looked up ({reason}): do the name servers of dns.servers, else of this machine, answer?");
    }
    if says(&["nsupported resolved", "not supported"]) {
        return match way {
            Way::Quic => "QUIC has no pre-shared key, and one is set here: give the member's address with /tcp/".to_owned(),
            _ => format!("{reason}: give an address like /ip4/192.0.2.7/tcp/4817"),
        };
    }
    let advice = match way {
        _ if says(&["refused"]) => {
            return "nothing listens at that port (connection refused): is its daemon running, and this its port?".to_owned();
        }
        Way::Quic if says(&["imeout", "imed out", "unreachable"]) => "is the machine up, and its UDP port open?",
        _ if says(&["imeout", "imed out", "unreachable"]) => "is the machine up, its port open, and the pre-shared key the same?",
        _ if says(&["os error"]) => "this is what the system says",
        Way::Quic => "is this a member of this version?",
        _ => "is this a member of this version, and the pre-shared key the same?",
    };
    format!("{reason}; {advice}")
}

#[cfg(test)]
mod tests {
    use super::{Way, advised};

    #[test]
    fn a_name_that_does_not_exist_is_asked_for_and_no_key() {
        let said = advised("no records found for Query { name: Name(\"nope.invalid.\"), query_type: A, query_class: IN }", Way::Name);
        assert_eq!(said, "there is no such name (no records found): is it spelled rightly?");
    }

    #[test]
    fn what_is_not_understood_is_asked_for_version_and_key() {
        assert_eq!(advised("invalid data", Way::Tcp), "invalid data; is this a member of this version, and the pre-shared key the same?");
    }

    #[test]
    fn of_quic_no_key_is_asked_for_and_of_a_name_no_port() {
        let quic = |reason| advised(reason, Way::Quic);
        assert_eq!(
            quic("Handshake with the remote timed out."),
            "Handshake with the remote timed out.; is the machine up, and its UDP port open?"
        );
        assert!(!quic("invalid data").contains("key"));
        let keyed = quic("Unsupported resolved address: /ip4/192.0.2.7/udp/4817/quic-v1");
        assert!(keyed.contains("QUIC has no pre-shared key") && keyed.contains("/tcp/"), "{keyed}");
        let unnamed = advised("request timed out", Way::Name);
        assert!(unnamed.contains("dns.servers") && !unnamed.contains("port"), "{unnamed}");
    }
}
