//! Diagnoses what answers at a member that the operator named, if it was reached and no connection came of it.
//!
//! libp2p says only that bytes were not what it expected. One more connection tells: a member with a pre-shared key speaks first, one
//! without answers the first line of libp2p's negotiation, and any other program does neither. Nothing of this access point is told on it.

use super::{dialling::Dialable, source};
use crate::resolver;
use libp2p::{Multiaddr, multiaddr::Protocol, swarm::DialError};
use std::{
    collections::BTreeSet,
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::mpsc,
    time::timeout,
};

/// How long connecting may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);

/// How long it is waited for what the other side says, before and after it is spoken to.
const SPEAK_WITHIN: Duration = Duration::from_millis(1_500);

/// What a member with a pre-shared key sends at once, in bytes.
const NONCE: usize = 24;

/// The first line of libp2p's negotiation, with its length before it.
const MULTISTREAM: &[u8] = b"\x13/multistream/1.0.0\n";

/// Of what another program says no more is repeated, in characters.
const MAX_SAID: usize = 60;

/// Members that are looked at, at the same time.
const MAX_AT_ONCE: usize = 8;

/// What answers at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    /// A member with a pre-shared key.
    WithKey,
    /// A member without one.
    WithoutKey,
    /// Another program, and how its first line begins.
    Other(String),
    /// Something that says nothing.
    Silent,
}

impl Found {
    /// Why no connection came of it; none if that is not seen from here.
    fn reason(&self, key: bool) -> Option<String> {
        let name_key = "swarm.pre_shared_key_file";
        Some(match (self, key) {
            (Found::WithKey, true) => {
                format!("the member there has another pre-shared key: put the key of its swarm into the file that {name_key} names")
            }
            (Found::WithKey, false) => {
                format!(
                    "the member there has a pre-shared key and this access point has none: set {name_key} to the file with the key of its swarm"
                )
            }
            (Found::WithoutKey, true) => format!("the member there has no pre-shared key and this access point has one: remove {name_key}"),
            (Found::WithoutKey, false) => return None,
            (Found::Other(said), _) => {
                format!("no swarm is there: another program answers, with {said:?}; is this the port of a nearcrawl daemon?")
            }
            (Found::Silent, _) => {
                "no swarm is there: something takes the connection and says nothing; is this the port of a nearcrawl daemon?".to_owned()
            }
        })
    }
}

/// How it is looked.
#[derive(Clone, Debug)]
pub(super) struct Looker {
    /// From this address.
    pub(super) source: Option<IpAddr>,
    /// Whether there is a pre-shared key here.
    pub(super) key: bool,
    /// Which addresses may be dialled; all if there is none.
    pub(super) dialable: Option<Dialable>,
    /// Who is asked for the addresses of names; nobody in particular for those that the system asks.
    pub(super) name_servers: Vec<SocketAddr>,
}

impl Looker {
    /// Why no connection came of it; none if that is not seen from here.
    pub(super) async fn look(&self, address: &Multiaddr) -> Option<String> {
        look(address, self).await.ok()?.reason(self.key)
    }
}

/// Which members are being looked at, and what came of it.
#[derive(Debug)]
pub(super) struct Diagnoses {
    under_way: BTreeSet<String>,
    tell: mpsc::Sender<(String, String)>,
    told: mpsc::Receiver<(String, String)>,
}

impl Diagnoses {
    pub(super) fn new() -> Diagnoses {
        let (tell, told) = mpsc::channel(MAX_AT_ONCE);
        Diagnoses { under_way: BTreeSet::new(), tell, told }
    }

    /// Whether a look tells more than this error: the port takes connections, as far as is known.
    pub(super) fn helps(error: &DialError) -> bool {
        let DialError::Transport(failures) = error else { return false };
        let settled = |failure: &dyn std::error::Error| {
            let said = super::reason::innermost(failure);
            ["refused", "nreachable", "no route", "record", "lookup", "resolve", "not supported", "dialled only"]
                .iter()
                .any(|word| said.contains(word))
        };
        !failures.is_empty() && failures.iter().any(|(_, failure)| !settled(failure))
    }

    /// Looks who answers at an address that could not be connected to for `reason`; [`Diagnoses::next`] tells. Not if it is being looked at.
    pub(super) fn begin(&mut self, address: String, reason: String, looker: Looker) {
        if self.under_way.len() >= MAX_AT_ONCE || !self.under_way.insert(address.clone()) {
            return;
        }
        let tell = self.tell.clone();
        tokio::spawn(async move {
            let found = match address.parse() {
                Ok(parsed) => looker.look(&parsed).await,
                Err(_) => None,
            };
            let _ = tell.send((address, found.unwrap_or(reason))).await;
        });
    }

    /// The next address that was looked at, and why it could not be connected to.
    pub(super) async fn next(&mut self) -> Option<(String, String)> {
        let told = self.told.recv().await?;
        self.under_way.remove(&told.0);
        Some(told)
    }
}

/// Connects once more and listens.
async fn look(address: &Multiaddr, looker: &Looker) -> io::Result<Found> {
    let target = resolved(address, &looker.name_servers).await?;
    if let Some(dialable) = &looker.dialable {
        dialable.check(target.ip())?;
    }
    let mut stream = timeout(CONNECT_WITHIN, source::connect(looker.source, target)).await??;
    let unasked = heard(&mut stream).await;
    if !unasked.is_empty() {
        return Ok(judged(&unasked));
    }
    let _ = stream.write_all(MULTISTREAM).await;
    let answer = heard(&mut stream).await;
    Ok(match answer.as_slice() {
        [] => Found::Silent,
        said if said.starts_with(MULTISTREAM) => Found::WithoutKey,
        said => judged(said),
    })
}

/// What is said before anything libp2p knows: the nonce of a pre-shared key, or words of another program.
fn judged(said: &[u8]) -> Found {
    if said.len() == NONCE && !said.is_ascii() {
        return Found::WithKey;
    }
    let text = String::from_utf8_lossy(said);
    let line = text.lines().next().unwrap_or_default();
    Found::Other(line.chars().filter(|character| !character.is_control()).take(MAX_SAID).collect())
}

/// The first bytes that come; none if none do in time.
async fn heard(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = vec![0; 256];
    let read = timeout(SPEAK_WITHIN, stream.read(&mut bytes)).await;
    bytes.truncate(read.ok().and_then(Result::ok).unwrap_or(0));
    bytes
}

/// The address and port of a multiaddr; of a name, the first address that it has.
async fn resolved(address: &Multiaddr, name_servers: &[SocketAddr]) -> io::Result<SocketAddr> {
    if let Some(target) = source::socket_address(address) {
        return Ok(target);
    }
    let mut parts = address.iter();
    match (parts.next(), parts.next()) {
        (Some(Protocol::Dns(name) | Protocol::Dns4(name) | Protocol::Dns6(name)), Some(Protocol::Tcp(port))) => {
            let mut found = if name_servers.is_empty() {
                tokio::net::lookup_host((name.into_owned(), port)).await?.collect::<Vec<_>>()
            } else {
                resolver::addresses(&name, name_servers).await?.into_iter().map(|address| SocketAddr::new(address, port)).collect()
            };
            found.drain(..).next().ok_or_else(|| io::ErrorKind::NotFound.into())
        }
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_told_from_words() {
        assert_eq!(judged(&[0xc3; NONCE]), Found::WithKey);
        assert_eq!(judged(b"SSH-2.0-OpenSSH_9.2p1\r\n"), Found::Other("SSH-2.0-OpenSSH_9.2p1".to_owned()));
        assert_eq!(judged(&[0xc3; 40]), Found::Other("\u{fffd}".repeat(40)));
    }
}
